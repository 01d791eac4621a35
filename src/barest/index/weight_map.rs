//! What does `*.safetensors.index.json` say?
//!
//! ```text
//!   {"metadata": {"total_size": 269030016},
//!    "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors", …}}
//! ```
//!
//! It comes from the same place as the shards and is trusted as little: read by the same cursor,
//! under the same cap. Names of shards are paths, so they may not lead out of the directory.

use super::super::error::reserve::{no_memory, room, vector, zeros};
use super::super::error::{Error, ErrorKind, Result};
use super::super::json::{Cursor, Text};
use super::faults::Faults;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// An index, read.
pub struct WeightMap<'a> {
    text: &'a str,
    /// Names of shards, each once, in the order of their bytes.
    shards: Vec<Text>,
    /// The place in that order of each shard, as they were met in the text.
    ranks: Vec<u32>,
    /// In the order of the text.
    pub entries: Vec<Entry>,
    pub total_size: Option<u64>,
}

/// One entry of `weight_map`.
#[derive(Clone, Copy)]
pub struct Entry {
    tensor: Text,
    /// The number of its shard.
    pub shard: u32,
}

/// What one entry takes at least: `"":"",`.
const SHORTEST_ENTRY: usize = 6;

/// What ends a name, in bytes.
const QUOTE: usize = 1;

/// The shard of an entry that names none which may be opened.
const NOWHERE: u32 = u32::MAX;

impl<'a> WeightMap<'a> {
    /// Reads the text of an index. What is no index fails here; a shard's name that must not be
    /// used becomes a fault, and its tensors belong to no shard. The others are handed to `open` as
    /// they are met, with their number in that order.
    pub fn read(
        text: &'a str,
        faults: &mut Faults,
        open: &mut dyn FnMut(u32, Text),
    ) -> Result<WeightMap<'a>> {
        WeightMap::walk(text, faults, open, true)
    }

    /// `quickly` makes no difference to what comes of it.
    fn walk(
        text: &'a str,
        faults: &mut Faults,
        open: &mut dyn FnMut(u32, Text),
        quickly: bool,
    ) -> Result<WeightMap<'a>> {
        let mut reader = Reader {
            quickly,
            cursor: Cursor::new(text),
            text,
            entries: None,
            total_size: None,
            met: Vec::new(),
            numbers: HashMap::new(),
            open,
            faults,
        };
        reader.index().map_err(|error| error.in_whole_text(text.as_bytes()))?;
        let Reader { entries, total_size, met, numbers, .. } = reader;
        let Some(mut entries) = entries else {
            return Err(Error::new(ErrorKind::MissingField { expected: "weight_map" }));
        };
        drop(numbers);
        // Shards are numbered as they were met; sorted, a model's files have the same numbers
        // whatever the order of its index.
        let mut named: Vec<u32> = vector(met.len())?;
        named.extend((0..).zip(&met).filter(|(_, shard)| shard.stays_below).map(|(n, _)| n));
        let name = |number: u32| met[number as usize].name;
        named.sort_unstable_by(|&one, &other| name(one).compare(name(other), text));
        let mut ranks = vector(met.len())?;
        ranks.resize(met.len(), NOWHERE);
        let mut shards = vector(named.len())?;
        for (place, number) in (0..).zip(named) {
            ranks[number as usize] = place;
            shards.push(name(number));
        }
        for entry in &mut entries {
            entry.shard = ranks[entry.shard as usize];
        }
        Ok(WeightMap { text, shards, ranks, entries, total_size })
    }

    /// How many shards are named that may be opened.
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// The name of a shard: a path below the index's directory, in the manner of Unix.
    pub fn shard(&self, number: usize) -> Cow<'_, str> {
        self.shards[number].resolve(self.text)
    }

    /// The number of a shard by the one with which it was handed to `open`.
    pub fn rank(&self, met: u32) -> u32 {
        self.ranks[met as usize]
    }

    /// The name of an entry's tensor.
    pub fn tensor(&self, entry: &Entry) -> Cow<'a, str> {
        entry.tensor.resolve(self.text)
    }

    /// Where that name stands, in bytes from the start of the index.
    pub fn offset(&self, entry: &Entry) -> u64 {
        u64::from(entry.tensor.start)
    }

    /// How many entries each shard has. Looks at all of them: for messages.
    pub fn counts(&self) -> Result<Vec<u32>> {
        let mut counts: Vec<u32> = zeros(self.shard_count())?;
        for entry in &self.entries {
            if let Some(count) = counts.get_mut(entry.shard as usize) {
                *count += 1;
            }
        }
        Ok(counts)
    }
}

struct Reader<'a, 'f> {
    /// Whether entries may be taken by comparing them with the one before.
    quickly: bool,
    cursor: Cursor<'a>,
    text: &'a str,
    entries: Option<Vec<Entry>>,
    total_size: Option<u64>,
    /// Shards in the order of the text, each once.
    met: Vec<Shard>,
    /// Which of them has a name with this hash; if that is another, the next hash is its own. With
    /// names as keys the table took most of what an index of many shards costs.
    numbers: HashMap<u32, u32>,
    open: &'f mut dyn FnMut(u32, Text),
    faults: &'f mut Faults,
}

struct Shard {
    name: Text,
    /// Whether it may be opened.
    stays_below: bool,
}

impl Reader<'_, '_> {
    fn index(&mut self) -> Result<()> {
        self.cursor.expect(b'{', "`{` to begin the index")?;
        self.cursor.skip_blanks();
        let mut weight_map_key = None;
        let mut more = !self.cursor.take(b'}');
        while more {
            let key = self.cursor.string("a key in quotes")?;
            self.cursor.expect(b':', "`:` after the key")?;
            self.cursor.skip_blanks();
            if key.is(self.text, "weight_map") {
                if let Some(first) = weight_map_key.replace(key.start) {
                    let first = u64::from(first);
                    let kind = ErrorKind::DuplicateField { field: "weight_map", first };
                    return Err(Error::at_header(kind, key.start as usize));
                }
                self.weight_map()?;
            } else if key.is(self.text, "metadata") && self.cursor.peek() == Some(b'{') {
                self.metadata()?;
            } else {
                self.cursor.skip_value(1)?;
            }
            more = self.cursor.another(b'}', "`,` or `}` in the index")?;
        }
        self.cursor.skip_blanks();
        match self.cursor.peek() {
            None => Ok(()),
            Some(_) => Err(self.cursor.unexpected("nothing but white space after the index")),
        }
    }

    /// `total_size` is a hint that tools write and nobody must rely on: of another type it is none.
    fn metadata(&mut self) -> Result<()> {
        self.cursor.take(b'{');
        self.cursor.skip_blanks();
        let mut more = !self.cursor.take(b'}');
        while more {
            let key = self.cursor.string("a key in quotes")?;
            self.cursor.expect(b':', "`:` after the key")?;
            self.cursor.skip_blanks();
            let start = self.cursor.position();
            self.cursor.skip_value(2)?;
            if key.is(self.text, "total_size") {
                let value = &self.text[start..self.cursor.position()];
                let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
                self.total_size = value.parse().ok().filter(|_| is_plain);
            }
            more = self.cursor.another(b'}', "`,` or `}` in `metadata`")?;
        }
        Ok(())
    }

    fn weight_map(&mut self) -> Result<()> {
        if !self.cursor.take(b'{') {
            return Err(self.cursor.wrong_type("`weight_map`", "an object of strings"));
        }
        let mut entries = Vec::new();
        // What was read once need not be read again: behind the name of most tensors stands the same
        // text as behind that of the one before, the shard's name and the blanks with it.
        let (mut behind, mut shard) = ("", 0);
        self.cursor.skip_blanks();
        let mut more = !self.cursor.take(b'}');
        while more {
            let tensor = match self.cursor.string_before(behind) {
                Some(tensor) => tensor,
                None => {
                    self.cursor.skip_blanks();
                    let tensor = self.cursor.string("a tensor's name in quotes")?;
                    let end = self.cursor.position() - QUOTE;
                    self.cursor.expect(b':', "`:` after the name")?;
                    self.cursor.skip_blanks();
                    shard = self.shard(tensor)?;
                    more = self.cursor.another(b'}', "`,` or `}` in `weight_map`")?;
                    if self.quickly {
                        behind = &self.text[end..self.cursor.position()];
                    }
                    tensor
                }
            };
            room(&mut entries, self.text.len() - self.cursor.position(), SHORTEST_ENTRY)?;
            entries.push(Entry { tensor, shard });
        }
        self.entries = Some(entries);
        Ok(())
    }

    /// Reads the name of a shard, and gives its number, new or known.
    fn shard(&mut self, tensor: Text) -> Result<u32> {
        if self.cursor.peek() != Some(b'"') {
            let error = self.cursor.wrong_type("the shard of a tensor", "a string");
            return Err(error.in_tensor(&tensor.resolve(self.text)));
        }
        let written = self.cursor.string("a string")?;
        let name = written.resolve(self.text);
        // The hash is seeded anew for each index: nobody can choose names that meet.
        let mut key = self.numbers.hasher().hash_one(&*name) as u32;
        while let Some(&number) = self.numbers.get(&key) {
            if self.met[number as usize].name.is(self.text, &name) {
                return Ok(number);
            }
            key = key.wrapping_add(1);
        }
        let number = self.met.len() as u32;
        let astray = leads_astray(&name);
        match astray {
            None => (self.open)(number, written),
            Some(_) if self.faults.are_many() => self.faults.count(),
            Some(why) => {
                let kind = ErrorKind::BadShardName { found: name.clone().into_owned(), why };
                let error = Error::at_header(kind, written.start as usize)
                    .in_whole_text(self.text.as_bytes())
                    .in_tensor(&tensor.resolve(self.text));
                self.faults.push(error);
            }
        }
        let left = self.text.len() - self.cursor.position();
        room(&mut self.met, left, SHORTEST_ENTRY)?;
        self.met.push(Shard { name: written, stays_below: astray.is_none() });
        self.numbers.try_reserve(1).map_err(|_| no_memory())?;
        self.numbers.insert(key, number);
        Ok(number)
    }
}

/// Why a shard's name must not be opened; `None` if it stays below the directory. By its letters
/// alone: a symbolic link may lead anywhere, as those in a hub's cache do.
fn leads_astray(name: &str) -> Option<&'static str> {
    let is_drive =
        |name: &[u8]| name.len() >= 2 && name[0].is_ascii_alphabetic() && name[1] == b':';
    match name {
        "" => Some("which is no name"),
        _ if name.contains('\0') => Some("which holds a NUL"),
        _ if name.contains('\\') => Some("which holds a backslash"),
        _ if name.starts_with('/') => Some("which is an absolute path"),
        _ if is_drive(name.as_bytes()) => Some("which begins with a drive"),
        _ if name.split('/').any(|part| part == "..") => Some("which leads out of the directory"),
        _ if matches!(name.rsplit('/').next(), Some("" | ".")) => Some("which is no file"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> std::result::Result<(WeightMap<'_>, usize), String> {
        let mut faults = Faults::default();
        match WeightMap::read(text, &mut faults, &mut |_, _| {}) {
            Ok(map) => Ok((map, faults.len())),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn entries_are_read_in_order_and_shards_sorted() {
        let text = r#" {"x": [1], "weight_map": {"b": "2", "\u0061": "1", "c" : "2"},
            "metadata": {"total_size": 12, "y": {}}} "#;
        let (map, faults) = read(text).unwrap();
        assert_eq!((map.shard(0), map.shard(1), faults), ("1".into(), "2".into(), 0));
        let told: Vec<(Cow<'_, str>, u32)> =
            map.entries.iter().map(|entry| (map.tensor(entry), entry.shard)).collect();
        assert_eq!(told, [("b".into(), 1), ("a".into(), 0), ("c".into(), 1)]);
        assert_eq!(map.total_size, Some(12));
        assert_eq!(map.counts().unwrap(), [1, 2]);
        assert_eq!(map.offset(&map.entries[0]), 28);
    }

    /// Every byte in turn, replaced by each that could mean something there; and the text cut there.
    #[test]
    fn entries_like_the_one_before_are_read_as_the_others_are() {
        let texts = [
            r#"{"weight_map":{"ab":"x","c":"x","":"x","d":"y","e":"y","f":"x"},"z":1}"#,
            "{\"weight_map\": {\n  \"é\": \"x\",\n  \"c\\n\": \"x\",\n  \"d\" : \"x\",\n  \"e\": \"x\"}}",
        ];
        for text in texts {
            let quick = tell(text, true);
            assert!(quick.starts_with("Ok"), "{quick}");
            assert_eq!(quick, tell(text, false));
            for (at, character) in text.char_indices() {
                let (before, behind) = (&text[..at], &text[at + character.len_utf8()..]);
                assert_eq!(tell(before, true), tell(before, false));
                for other in ["", "\"", ":", ",", "}", " ", "\n", "\\", "x", "y", "\0", "€"] {
                    let text = [before, other, behind].concat();
                    assert_eq!(tell(&text, true), tell(&text, false), "{text}");
                }
            }
        }
    }

    fn tell(text: &str, quickly: bool) -> String {
        let (mut faults, mut met) = (Faults::default(), Vec::new());
        let mut open = |number, name: Text| met.push((number, name));
        let map = WeightMap::walk(text, &mut faults, &mut open, quickly).map(|map| {
            let entries: Vec<(String, u32, u64)> = map
                .entries
                .iter()
                .map(|entry| (map.tensor(entry).into_owned(), entry.shard, map.offset(entry)))
                .collect();
            (entries, map.shards)
        });
        format!("{:?} {met:?} {}", map.map_err(|error| error.to_string()), faults.len())
    }

    #[test]
    fn what_is_no_index_fails_with_the_place_in_its_own_text() {
        for (text, message) in [
            ("", "expected `{` to begin the index, found the end of the text, at offset 0"),
            ("[]", "expected `{` to begin the index, found `[`, at offset 0"),
            ("{}", "lacks the field `weight_map`"),
            (
                r#"{"weight_map":[]}"#,
                "`weight_map` must be an object of strings, found an array, at offset 14",
            ),
            (
                r#"{"weight_map":{"a":1}}"#,
                "tensor `a`: the shard of a tensor must be a string, found a number, at offset 19",
            ),
            (
                r#"{"weight_map":{"a":null}}"#,
                "tensor `a`: the shard of a tensor must be a string, found null, at offset 19",
            ),
            (
                r#"{"weight_map":{"a":"b"}"#,
                "expected `,` or `}` in the index, found the end of the text, at offset 23",
            ),
            (
                r#"{"weight_map":{"a":"b",}}"#,
                "expected a tensor's name in quotes, found `}`, at offset 23",
            ),
            (
                r#"{"weight_map":{},"weight_map":{}}"#,
                "duplicate field `weight_map`, first at 2, again, at offset 18",
            ),
            (
                r#"{"weight_map":{}} x"#,
                "expected nothing but white space after the index, found `x`, at offset 18",
            ),
        ] {
            assert_eq!(read(text).map(drop).unwrap_err(), message, "{text}");
        }
    }

    #[test]
    fn a_total_size_that_is_no_plain_number_is_none() {
        for (value, expected) in
            [("7", Some(7)), ("7.0", None), ("-7", None), ("\"7\"", None), ("1e3", None)]
        {
            let text = format!(r#"{{"metadata":{{"total_size":{value}}},"weight_map":{{}}}}"#);
            assert_eq!(read(&text).unwrap().0.total_size, expected, "{value}");
        }
        assert_eq!(read(r#"{"metadata":null,"weight_map":{}}"#).unwrap().0.total_size, None);
    }

    #[test]
    fn a_shard_s_name_stays_below_the_directory() {
        for name in ["a", "a/b.safetensors", "..a", "a..", "a/..b", ".hidden", "./a", "a//b", "C"] {
            assert_eq!(leads_astray(name), None, "{name}");
        }
        for name in
            ["", "/a", "..", "../a", "a/..", "a/../../b", "a\\b", "C:a", "a\0b", ".", "a/", "a/."]
        {
            assert!(leads_astray(name).is_some(), "{name}");
        }
    }

    /// So many that the hashes of some are the same.
    #[test]
    fn shards_whose_hashes_meet_are_told_apart() {
        const COUNT: usize = 200_000;
        let entry = |number: usize| format!("\"\":\"{:x}\"", number % COUNT);
        let entries: Vec<String> = (0..2 * COUNT).map(entry).collect();
        let text = format!("{{\"weight_map\":{{{}}}}}", entries.join(","));
        let (map, faults) = read(&text).unwrap();
        assert_eq!((map.shard_count(), faults), (COUNT, 0));
    }

    #[test]
    fn a_bad_name_is_a_fault_and_its_tensors_belong_nowhere() {
        let text = r#"{"weight_map":{"a":"../x","b":"y","c":"../x","d":"/z"}}"#;
        let (map, faults) = read(text).unwrap();
        assert_eq!((map.shard_count(), faults), (1, 2));
        let shards: Vec<u32> = map.entries.iter().map(|entry| entry.shard).collect();
        assert_eq!(shards, [NOWHERE, 0, NOWHERE, NOWHERE]);
        assert_eq!(map.counts().unwrap(), [1]);
    }
}
