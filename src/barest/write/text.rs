//! How does the reference writer spell a header?
//!
//! Compactly: no blank but the padding, metadata first, the fields of an entry always in one order.
//! Of a string only what must be is escaped.
//!
//! ```text
//!   {"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}······
//! ```

use super::super::dtype::Dtype;
use super::super::error::Result;
use super::super::error::reserve::no_memory;
use super::super::header::PREFIX;
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter, Write};

/// The key that no tensor can have.
pub const METADATA: &str = "__metadata__";

/// A header that is being written.
pub struct Text {
    text: String,
    members: usize,
}

impl Text {
    /// An empty header.
    pub fn new() -> Text {
        Text { text: String::from("{"), members: 0 }
    }

    /// `__metadata__`.
    pub fn metadata<'p>(&mut self, pairs: impl Iterator<Item = (&'p str, &'p str)>) -> Result<()> {
        self.key(METADATA)?;
        self.put(Pairs(pairs.collect()))
    }

    /// The entry of a tensor.
    pub fn entry(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[u64],
        (begin, end): (u64, u64),
    ) -> Result<()> {
        self.key(name)?;
        self.put(format_args!("{{\"dtype\":\"{dtype}\",\"shape\":["))?;
        for (axis, dimension) in shape.iter().enumerate() {
            let comma = if axis > 0 { "," } else { "" };
            self.put(format_args!("{comma}{dimension}"))?;
        }
        self.put(format_args!("],\"data_offsets\":[{begin},{end}]}}"))
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// The whole header.
    pub fn end(mut self) -> Result<String> {
        self.put('}')?;
        Ok(self.text)
    }

    fn key(&mut self, key: &str) -> Result<()> {
        let comma = if self.members > 0 { "," } else { "" };
        self.members += 1;
        self.put(format_args!("{comma}{}:", Quoted(key)))
    }

    fn put(&mut self, what: impl Display) -> Result<()> {
        // One entry at a time; how many there are is up to a caller who holds them all.
        self.text.try_reserve(256).map_err(|_| no_memory())?;
        write!(self.text, "{what}").map_err(|_| no_memory())
    }
}

/// Pairs of strings as an object.
pub struct Pairs<'p>(pub Vec<(&'p str, &'p str)>);

impl Display for Pairs<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        for (number, (key, value)) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}", Quoted(key), Quoted(value))?;
        }
        f.write_char('}')
    }
}

/// Text as a JSON string in which only quotes, backslashes and the characters below 0x20 are
/// escaped, as serde_json does it. For files, not for terminals.
pub struct Quoted<'a>(pub &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let mut rest = self.0;
        let special = |c: char| c < ' ' || c == '"' || c == '\\';
        while let Some(at) = rest.find(special) {
            f.write_str(&rest[..at])?;
            match rest.as_bytes()[at] {
                b'"' => f.write_str("\\\""),
                b'\\' => f.write_str("\\\\"),
                0x08 => f.write_str("\\b"),
                b'\t' => f.write_str("\\t"),
                b'\n' => f.write_str("\\n"),
                0x0c => f.write_str("\\f"),
                b'\r' => f.write_str("\\r"),
                other => write!(f, "\\u{other:04x}"),
            }?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)?;
        f.write_char('"')
    }
}

/// How many spaces make data that follows a header of `len` bytes begin on a multiple of
/// `alignment`, a power of two of at least 8.
pub fn padding(len: usize, alignment: u64) -> u64 {
    let start = PREFIX as u64 + len as u64;
    start.wrapping_neg() % alignment
}

/// The pairs sorted by key or as they were given, the last value of each key.
pub fn last_of_each<'p>(
    pairs: &'p [(Cow<'_, str>, Cow<'_, str>)],
    sorted: bool,
) -> Vec<(&'p str, &'p str)> {
    let mut numbers: Vec<usize> = (0..pairs.len()).collect();
    let key = |number: usize| &*pairs[number].0;
    // Equal keys stay in their order: the first says where, the last says what.
    numbers.sort_by_key(|&number| key(number));
    let mut chosen: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match chosen.last_mut() {
            Some((first, last)) if key(*first) == key(number) => *last = number,
            _ => chosen.push((number, number)),
        }
    }
    if !sorted {
        chosen.sort_unstable();
    }
    chosen.iter().map(|&(first, last)| (key(first), &*pairs[last].1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_must_be_is_escaped() {
        for (raw, quoted) in [
            ("", r#""""#),
            ("a/b'c", r#""a/b'c""#),
            ("\"\\", r#""\"\\""#),
            ("\u{8}\t\n\u{c}\r\0\u{1f}", r#""\b\t\n\f\r\u0000\u001f""#),
            ("\u{7f}\u{202e}é🦀\u{2028}", "\"\u{7f}\u{202e}é🦀\u{2028}\""),
        ] {
            assert_eq!(Quoted(raw).to_string(), quoted);
        }
    }

    #[test]
    fn padding_reaches_the_alignment() {
        for (len, alignment, expected) in
            [(2, 8, 6), (8, 8, 0), (9, 8, 7), (1, 64, 55), (4088, 4096, 0), (4089, 4096, 4095)]
        {
            assert_eq!(padding(len, alignment), expected, "{len} to {alignment}");
        }
    }

    #[test]
    fn a_key_that_comes_again_keeps_its_place_and_takes_the_new_value() {
        let pairs = [("b", "1"), ("a", "2"), ("b", "3"), ("c", "4"), ("b", "5")];
        let pairs = pairs.map(|(key, value)| (Cow::from(key), Cow::from(value)));
        assert_eq!(last_of_each(&pairs, false), [("b", "5"), ("a", "2"), ("c", "4")]);
        assert_eq!(last_of_each(&pairs, true), [("a", "2"), ("b", "5"), ("c", "4")]);
    }
}
