//! What does `__metadata__` say?
//!
//! Pairs of strings, in the order of the header and without loss. Absent and empty differ; `null`,
//! which MLX writes, counts as absent. Values may be long and are seldom asked for: they stay as
//! written until somebody does.

use super::super::error::reserve::{self, room};
use super::super::error::{Error, ErrorKind, Result};
use super::super::json::{Cursor, Text};
use super::names::{NameTable, Named, Unnamed, hash};
use super::strings::{Name, Resolved, Strings};
use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};

/// The `__metadata__` of one file, borrowed from its header.
#[derive(Clone, Copy)]
pub struct Metadata<'a> {
    pub(super) strings: &'a Strings,
    pub(super) pairs: &'a [Pair],
}

/// A key, resolved, and its value, as written.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    key: Name,
    value: Text,
}

/// What one pair takes at least: `"":"",`.
const SHORTEST_PAIR: usize = 6;

impl<'a> Metadata<'a> {
    /// How many pairs there are; 0 for `"__metadata__":{}`.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Keys and values in the order of the header, escapes resolved. A value is copied only if it
    /// holds escapes.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> + use<'a> {
        let strings = self.strings;
        self.pairs
            .iter()
            .map(move |pair| (strings.get(pair.key), pair.value.resolve(&strings.text)))
    }

    /// The value of a key. Looks at one key after the other.
    pub fn get(&self, key: &str) -> Option<Cow<'a, str>> {
        let pair = self.pairs.iter().find(|pair| self.strings.get(pair.key) == key)?;
        Some(pair.value.resolve(&self.strings.text))
    }
}

impl Debug for Metadata<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The keys, as the name table sees them.
impl Named for Metadata<'_> {
    fn count(&self) -> usize {
        self.pairs.len()
    }

    fn name(&self, number: usize) -> &[u8] {
        self.strings.bytes(self.pairs[number].key)
    }

    fn hash(&self, number: usize) -> u32 {
        hash(self.name(number))
    }
}

/// Reads the value of `__metadata__`: pairs, or `None` for `null`.
pub fn read(
    cursor: &mut Cursor<'_>,
    text: &str,
    resolved: &mut Resolved,
) -> Result<Option<Vec<Pair>>> {
    if cursor.take_word("null") {
        return Ok(None);
    }
    if !cursor.take(b'{') {
        return Err(cursor.wrong_type("`__metadata__`", "an object of strings, or null"));
    }
    let mut pairs = Vec::new();
    cursor.skip_blanks();
    let mut more = !cursor.take(b'}');
    while more {
        let key = cursor.string("`\"` to begin a key of `__metadata__`")?;
        cursor.expect(b':', "`:` after the key")?;
        cursor.skip_blanks();
        if cursor.peek() != Some(b'"') {
            return Err(not_a_string(&key.resolve(text), cursor));
        }
        let value = cursor.string("a string")?;
        room(&mut pairs, text.len() - cursor.position(), SHORTEST_PAIR)?;
        pairs.push(Pair { key: resolved.keep(key, text)?, value });
        more = cursor.another(b'}', "`,` or `}` in `__metadata__`")?;
    }
    Ok(Some(pairs))
}

impl Metadata<'_> {
    /// Fails if a key stands there twice.
    pub(super) fn check(&self) -> Result<()> {
        if self.len() < 2 {
            return Ok(());
        }
        let (first, second) = match NameTable::build(self) {
            Ok(_) => return Ok(()),
            Err(Unnamed::NoMemory) => return Err(reserve::no_memory()),
            Err(Unnamed::Duplicate(first, second)) => (first, second),
        };
        let place = |number: usize| self.strings.position(self.pairs[number].key);
        let key = self.strings.get(self.pairs[second].key).to_owned();
        let first = Error::offset_of(place(first));
        Err(Error::at_header(ErrorKind::DuplicateMetadataKey { key, first }, place(second)))
    }
}

/// A value that is no string; and where the key is a tensor's field, what must have happened.
fn not_a_string(key: &str, cursor: &Cursor<'_>) -> Error {
    let shown = super::super::escape::Brief(key);
    let hint = match key {
        "dtype" | "shape" | "data_offsets" => " (no tensor may have that name)",
        _ => "",
    };
    cursor.wrong_type(format!("key `{shown}` of `__metadata__`{hint}"), "a string")
}
