//! How is a header read in one walk?
//!
//! Member by member: metadata at most once, and tensors. Each entry is first tried with the texts
//! of earlier ones (`template.rs`); the general path reads what they do not fit, and is the only
//! one that fails.

use super::super::error::reserve::{room, vector};
use super::super::error::{Error, ErrorKind, Result};
use super::super::json::{Cursor, Text};
use super::entry::{self, Entry};
use super::metadata::{self, Pair};
use super::names::{hash, hash_with, seed};
use super::shapes::Shapes;
use super::strings::{Name, Resolved};
use super::template::{Template, Written, plain_name};
use super::{BEGIN, Record};

/// What the walk brings home.
#[derive(Default)]
pub struct Parts {
    pub records: Vec<Record>,
    pub shapes: Shapes,
    pub metadata: Option<Vec<Pair>>,
    pub resolved: Resolved,
    pub departures: Departures,
    /// Where the last entry ended.
    end: u64,
    /// How many entries were like an earlier one.
    pub read_quickly: usize,
}

/// What remarks cannot see in the records.
#[derive(Default)]
pub struct Departures {
    pub metadata_is_null: bool,
    /// Whether an entry does not begin where the one before it ended.
    pub out_of_order: bool,
    pub extra_fields: usize,
}

/// The key that names no tensor.
const METADATA_KEY: &str = "__metadata__";

/// What an entry takes at least: a name, three fields, two numbers.
const SHORTEST_ENTRY: usize = 48;

/// What a rather short name takes with its quotes, colon and comma. When the first entry is read, room
/// is reserved for as many like it with such names: mostly for some more than come.
const SHORT_NAME: usize = 32;

/// A file has few kinds of entries: its dtypes, in one style of writing, with the keys in one order.
const TEMPLATES: usize = 8;

struct Reader<'a> {
    text: &'a str,
    cursor: Cursor<'a>,
    templates: [Option<Template>; TEMPLATES],
    /// How many there were, and which was used last.
    learned: usize,
    recent: usize,
    most_templates: usize,
    parts: Parts,
}

/// Reads the text of a header. Whether it is true is for others to prove.
pub fn read(text: &str) -> Result<Parts> {
    walk(text, TEMPLATES)
}

fn walk(text: &str, most_templates: usize) -> Result<Parts> {
    let parts = Parts { shapes: Shapes::new()?, ..Parts::default() };
    let templates = [const { None }; TEMPLATES];
    let cursor = Cursor::new(text);
    Reader { text, cursor, templates, learned: 0, recent: 0, most_templates, parts }.read()
}

impl Reader<'_> {
    fn read(mut self) -> Result<Parts> {
        // 1. White space and a brace: some writers pad in front.
        let begin = match self.text.starts_with('\u{feff}') {
            true => "`{` to begin the header, not a byte order mark",
            false => BEGIN,
        };
        self.cursor.expect(b'{', begin)?;
        self.cursor.skip_blanks();
        // 2. Members: metadata at most once, and tensors.
        let mut metadata_key = None;
        let mut more = !self.cursor.take(b'}');
        while more {
            self.like_earlier_ones()?;
            let key = self.cursor.string("a name in quotes")?;
            self.cursor.expect(b':', "`:` after the name")?;
            self.cursor.skip_blanks();
            let mut entry = None;
            if key.is(self.text, METADATA_KEY) {
                if let Some(first) = metadata_key.replace(key.start as usize) {
                    let kind = ErrorKind::DuplicateMetadata { first: Error::offset_of(first) };
                    return Err(Error::at_header(kind, key.start as usize));
                }
                let pairs = metadata::read(&mut self.cursor, self.text, &mut self.parts.resolved)?;
                self.parts.departures.metadata_is_null = pairs.is_none();
                self.parts.metadata = pairs;
            } else {
                let name = self.parts.resolved.keep(key, self.text)?;
                match self.tensor(name) {
                    Ok(read) => entry = Some(read),
                    Err(error) => {
                        return Err(error.in_tensor(self.parts.resolved.get(name, self.text)));
                    }
                }
            }
            more = self.cursor.another(b'}', "`,` or `}` between entries")?;
            if let Some(entry) = entry.filter(|_| self.cursor.peek() == Some(b'"')) {
                self.learn(key, &entry);
            }
        }
        // 3. Nothing but white space up to the end.
        self.cursor.skip_blanks();
        match self.cursor.peek() {
            None => Ok(self.parts),
            Some(_) => Err(self.cursor.unexpected("nothing but white space after the header")),
        }
    }

    fn tensor(&mut self, name: Name) -> Result<Entry> {
        let start = self.cursor.position();
        let entry = entry::read(&mut self.cursor, self.text, &mut self.parts.shapes.dims)?;
        let hash = hash(self.parts.resolved.get(name, self.text).as_bytes());
        let left = self.text.len() - self.cursor.position();
        if self.parts.records.is_empty() {
            let like_this = left / (self.cursor.position() - start + SHORT_NAME);
            self.parts.records = vector(1 + like_this)?;
        }
        self.parts.push(&entry, name, hash, left)?;
        Ok(entry)
    }

    fn learn(&mut self, key: Text, entry: &Entry) {
        let next = self.cursor.position();
        let template = Template::learn(self.text.as_bytes(), key.range().end, entry, next);
        if let Some(template) = template.filter(|_| self.most_templates > 0) {
            // The oldest makes room.
            self.recent = self.learned % self.most_templates;
            self.templates[self.recent] = Some(template);
            self.learned += 1;
        }
    }

    /// Reads entries for as long as they are like earlier ones, from opening quote to opening
    /// quote, and leaves the cursor at the first that is not.
    fn like_earlier_ones(&mut self) -> Result<()> {
        let text = self.text.as_bytes();
        let quote = self.cursor.position();
        let Some((b'"', mut rest)) = text.get(quote..).and_then(<[u8]>::split_first) else {
            return Ok(());
        };
        let seed = seed();
        let mut last = Written::default();
        while let Some((name, entry)) = plain_name(rest) {
            if name == METADATA_KEY.as_bytes() {
                break;
            }
            let dims_before = self.parts.shapes.dims.len();
            let found = (0..TEMPLATES).find_map(|further| {
                let place = (self.recent + further) % TEMPLATES;
                let template = self.templates[place].as_ref()?;
                let quick = template.read(entry, last, &mut self.parts.shapes);
                if quick.is_none() {
                    self.parts.shapes.dims.truncate(dims_before);
                }
                Some((place, quick?))
            });
            let Some((place, quick)) = found else { break };
            self.recent = place;
            let name_start = text.len() - rest.len();
            let kept = Name::plain(name_start, name.len());
            self.parts.push(&quick.entry, kept, hash_with(seed, name), quick.rest.len())?;
            self.parts.read_quickly += 1;
            rest = quick.rest;
            last = quick.end;
        }
        self.cursor.move_to(text.len() - rest.len() - 1);
        Ok(())
    }
}

impl Parts {
    /// Keeps an entry, where the header has `left` more bytes.
    #[inline]
    fn push(&mut self, entry: &Entry, name: Name, hash: u32, left: usize) -> Result<()> {
        self.departures.extra_fields += usize::from(entry.extra);
        self.departures.out_of_order |= entry.begin != self.end;
        self.end = entry.end;
        room(&mut self.records, left, SHORTEST_ENTRY)?;
        self.records.push(Record {
            begin: entry.begin,
            end: entry.end,
            name_start: name.start,
            name_len: name.len,
            name_is_resolved: name.resolved,
            dims: entry.dims,
            hash,
            dtype: entry.dtype,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DTYPES: [&str; 3] = ["BF16", "F32", "F8_E4M3"];

    /// Headers of 30 entries in one style of writing each; `{n}`, `{t}`, `{s}`, `{o}` stand for
    /// name, dtype, shape and offsets.
    const STYLES: [(&str, &str, &str); 7] = [
        (r#""{n}":{"dtype":"{t}","shape":[{s}],"data_offsets":[{o}]}"#, ",", ","),
        (r#""{n}": {"dtype": "{t}", "shape": [{s}], "data_offsets": [{o}]}"#, ", ", ", "),
        (r#""{n}":{"dtype":"{t}","shape":[{s}],"data_offsets":[{o,}]}"#, ",", ", "),
        (r#""{n}":{"data_offsets":[{o}],"dtype":"{t}","shape":[{s}]}"#, ",", ","),
        (r#""{n}":{"x":[],"shape":[{s}],"dtyp\u0065":"{t}","data_offsets":[{o}]}"#, ",\n\t", ","),
        (r#""{n}" :{"data_offsets":[ {o}],"shape":[{s}],"dtype":"{t}"}"#, " ,", " , "),
        (
            r#""{n}":{"dtype":"{t}","shape":[{s} ],"data_offsets":[{o}] ,"and":"more than forty bytes behind the offsets"}"#,
            ",",
            ",",
        ),
    ];

    fn header((entry, between_entries, between_numbers): (&str, &str, &str)) -> String {
        let entries: Vec<String> = (0..30u64)
            .map(|number| {
                let name = match number % 7 {
                    3 => format!("esc\\u0061ped.{number}"),
                    4 => format!("é.{number}"),
                    _ => format!("model.layers.{number}.weight"),
                };
                let shape: Vec<String> =
                    (0..number % 4).map(|d| (d + number).to_string()).collect();
                let offsets = [number.pow(9), (number + 1).pow(9)].map(|offset| offset.to_string());
                entry
                    .replace("{n}", &name)
                    .replace("{t}", DTYPES[number as usize % 3])
                    .replace("{s}", &shape.join(between_numbers))
                    .replace("{o}", &offsets.join(between_numbers))
                    .replace("{o,}", &offsets.join(","))
            })
            .collect();
        format!("{{\"__metadata__\":{{}},{}}}", entries.join(between_entries))
    }

    /// All that a walk brings home, as text; or its error.
    fn told(text: &str, most_templates: usize) -> (String, usize) {
        match walk(text, most_templates) {
            Ok(parts) => {
                let records: Vec<String> = parts
                    .records
                    .iter()
                    .map(|r| {
                        let shape = &parts.shapes.dims[r.dims.range()];
                        format!(
                            "{:?} {} {shape:?} {}..{} {}",
                            r.name(),
                            r.dtype,
                            r.begin,
                            r.end,
                            r.hash
                        )
                    })
                    .collect();
                let extra = parts.departures.extra_fields;
                (format!("{records:?} {extra}"), parts.read_quickly)
            }
            Err(error) => (error.to_string(), 0),
        }
    }

    #[test]
    fn the_fast_path_reads_what_the_general_path_reads() {
        for (number, style) in STYLES.into_iter().enumerate() {
            let text = header(style);
            let ((fast, quickly), (general, never)) = (told(&text, TEMPLATES), told(&text, 0));
            assert_eq!(fast, general, "{text}");
            // The last two styles have blanks where the fast path wants a number or a bracket.
            let expected = if number < 5 { 10..31 } else { 0..1 };
            assert!(expected.contains(&quickly), "style {number}: {quickly} of 30");
            assert_eq!(never, 0);
        }
    }

    #[test]
    fn metadata_in_the_form_of_a_tensor_is_no_tensor() {
        let text = header(STYLES[0]).replacen("\"__metadata__\":{},", "", 1);
        assert!(told(&text, TEMPLATES).1 > 10);
        let text = text.replacen("model.layers.15.weight", METADATA_KEY, 1);
        let (fast, general) = (told(&text, TEMPLATES), told(&text, 0));
        assert_eq!(fast, general);
        assert!(fast.0.contains("`shape` of `__metadata__`"), "{}", fast.0);
    }

    /// A shape that is read in vain, as far as it has no blanks, is cut off again.
    #[test]
    fn the_fast_path_keeps_no_more_dimensions_than_the_general_path() {
        let entries: Vec<String> = (10..30)
            .map(|n| (n, if n % 2 == 0 { ", " } else { "," }))
            .map(|(n, comma)| {
                let (shape, offsets) = (format!("{n}{comma}7"), format!("0{comma}0"));
                format!(r#""{n}":{{"dtype":"U8","shape":[{shape}],"data_offsets":[{offsets}]}}"#)
            })
            .collect();
        let text = format!("{{{}}}", entries.join(","));
        let (fast, general) = (walk(&text, TEMPLATES).unwrap(), walk(&text, 0).unwrap());
        assert!(fast.read_quickly > 15);
        assert_eq!(fast.shapes.dims, general.shapes.dims);
    }

    /// Each byte of each header replaced by each of a few others: the same result, or the same
    /// error at the same place.
    #[test]
    fn the_fast_path_only_accepts_what_the_general_path_accepts() {
        for style in STYLES {
            let text = header(style);
            let middle = text.len() / 2..text.len() / 2 + 130;
            for place in middle.filter(|&place| text.is_char_boundary(place)) {
                let end = (place + 1..).find(|&end| text.is_char_boundary(end)).unwrap();
                for other in ["", "0", "9", "\"", "\\", ",", "]", "}", " ", "-", "x", "\u{1}"] {
                    let changed = format!("{}{other}{}", &text[..place], &text[end..]);
                    assert_eq!(told(&changed, TEMPLATES).0, told(&changed, 0).0, "{changed}");
                }
            }
        }
    }
}
