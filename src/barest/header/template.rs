//! Why read the same forty bytes ten thousand times?
//!
//! Entries of one file differ in the name, the dimensions and the offsets; the rest of their text
//! is the same, byte for byte:
//!
//! ```text
//!   "model.norm.weight":{"dtype":"BF16","shape":[576],"data_offsets":[0,1152]},"model.…
//!                     └───────── first ─────────┘   └──── second ────┘      └last┘
//! ```
//!
//! The general path reads an entry and this module keeps those three pieces of it. A later entry
//! whose pieces are equal was checked when they were: what is left to read are its numbers. So any
//! spacing and any order of keys is fast, once it repeats.
//!
//! This path may only accept. Whatever it does not like, it leaves alone, and the general path
//! reads it again and finds the words for the error. What parsing costs is printed by tests/peers.

use super::super::dtype::Dtype;
use super::super::error::reserve::room;
use super::super::json::{digits, next_special};
use super::entry::{Entry, SHORTEST_DIMENSION};
use std::array::from_fn;

/// The text of an entry but for its name and numbers.
#[derive(Clone)]
pub struct Template {
    /// From the name's closing quote to the first array's bracket.
    first: Piece,
    /// From the bracket that ends one array to the one that begins the other.
    second: Piece,
    /// From the bracket that ends the second array to the quote that begins the next name.
    last: Piece,
    shape_comes_first: bool,
    extra: bool,
    dtype: Dtype,
}

/// An entry as a template reads it.
pub struct Quick {
    pub entry: Entry,
    /// Where the next name's opening quote stands.
    pub next: usize,
    /// The end, which is mostly where the next one begins.
    pub end: Written,
}

impl Template {
    /// Keeps the pieces of an entry that was just read: `name_end` is where its name's closing
    /// quote stands, `next` where the next name's opening quote does. `None` if they are unusually
    /// long.
    pub fn learn(text: &[u8], name_end: usize, entry: &Entry, next: usize) -> Option<Template> {
        let shape_comes_first = entry.shape_at.start < entry.offsets_at.start;
        let (one, other) = match shape_comes_first {
            true => (&entry.shape_at, &entry.offsets_at),
            false => (&entry.offsets_at, &entry.shape_at),
        };
        Some(Template {
            first: Piece::new(&text[name_end..one.start + 1])?,
            second: Piece::new(&text[one.end - 1..other.start + 1])?,
            last: Piece::new(&text[other.end - 1..next + 1])?,
            shape_comes_first,
            extra: entry.extra,
            dtype: entry.dtype,
        })
    }

    /// Reads the entry whose name's closing quote stands at `name_end`, if it is like the one learned
    /// from. Its dimensions go to the end of the arena, also where it turns out to be
    /// unlike: the caller cuts them off again.
    #[inline]
    pub fn read(
        &self,
        text: &[u8],
        name_end: usize,
        last: Written,
        dims: &mut Vec<u64>,
    ) -> Option<Quick> {
        let rank_before = dims.len();
        let start = self.first.behind(text, name_end)?;
        let (begin, end, rest) = if self.shape_comes_first {
            let shape_end = read_dims(text, start, dims)?;
            read_offsets(text, self.second.behind(text, shape_end)?, last)?
        } else {
            let (begin, end, offsets_end) = read_offsets(text, start, last)?;
            (begin, end, read_dims(text, self.second.behind(text, offsets_end)?, dims)?)
        };
        let next = self.last.behind(text, rest)? - 1;
        let entry = Entry {
            dtype: self.dtype,
            rank: dims.len() - rank_before,
            begin,
            end: end.value,
            extra: self.extra,
            shape_at: 0..0,
            offsets_at: 0..0,
        };
        Some(Quick { entry, next, end })
    }
}

/// The end of a name without escapes that begins at `start`: where its closing quote stands.
#[inline]
pub fn plain_name_end(text: &[u8], start: usize) -> Option<usize> {
    let end = next_special(text, start);
    (text.get(end) == Some(&b'"')).then_some(end)
}

/// Numbers with a comma between, up to anything else; gives where that stands.
#[inline]
fn read_dims(text: &[u8], mut at: usize, dims: &mut Vec<u64>) -> Option<usize> {
    if text.get(at) == Some(&b']') {
        return Some(at);
    }
    loop {
        let (dimension, len) = digits(text, at)?;
        // Without memory the general path says so.
        room(dims, text.len() - at, SHORTEST_DIMENSION).ok()?;
        dims.push(dimension);
        at += len;
        match behind_comma(text, at) {
            Some(next) => at = next,
            None => return Some(at),
        }
    }
}

/// Two numbers with a comma between; gives them and where the text goes on. The first is mostly the
/// number that ended the entry before: then its digits are compared, not read, and what follows
/// need not wait until it is known how many they are.
#[inline]
fn read_offsets(text: &[u8], at: usize, last: Written) -> Option<(u64, Written, usize)> {
    let (begin, len) = match last.stands_at(text, at)? {
        true => (last.value, last.len),
        false => digits(text, at)?,
    };
    let at = behind_comma(text, at + len)?;
    let (value, len) = digits(text, at)?;
    Some((begin, Written { words: sixteen(text, at)?, len, value }, at + len))
}

/// A number and how it is written: its digits are the first `len` bytes of the two words.
#[derive(Clone, Copy, Default)]
pub struct Written {
    words: [u64; 2],
    len: usize,
    value: u64,
}

impl Written {
    /// Whether these digits stand there. More may follow: whoever wants a comma next finds them.
    #[inline]
    fn stands_at(self, text: &[u8], at: usize) -> Option<bool> {
        let there = sixteen(text, at)?;
        let masks = FIRST_BYTES[self.len % 16];
        let different =
            (there[0] ^ self.words[0]) & masks[0] | (there[1] ^ self.words[1]) & masks[1];
        Some(self.len > 0 && different == 0)
    }
}

/// Masks for the first 0 to 15 bytes of two words.
const FIRST_BYTES: [[u64; 2]; 16] = {
    let mut masks = [[0; 2]; 16];
    let mut len = 1;
    while len < 16 {
        masks[len] = if len <= 8 { [!0 >> (64 - 8 * len), 0] } else { [!0, !0 >> (128 - 8 * len)] };
        len += 1;
    }
    masks
};

#[inline]
fn sixteen(text: &[u8], at: usize) -> Option<[u64; 2]> {
    let both = u128::from_le_bytes(*text.get(at..)?.first_chunk()?);
    Some([both as u64, (both >> 64) as u64])
}

/// Behind a comma and the one space that some writers put there.
#[inline]
fn behind_comma(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at) {
        Some(b',') => Some(at + 1 + usize::from(text.get(at + 1) == Some(&b' '))),
        _ => None,
    }
}

/// A short text, to be compared with many places. Words and masks instead of a slice: the
/// comparison is then a few instructions without a branch, where `==` on slices calls `memcmp`.
#[derive(Clone)]
struct Piece {
    words: [u64; WORDS],
    masks: [u64; WORDS],
    len: usize,
}

/// Forty bytes: `], "dtype": "F8_E4M3", "data_offsets": [` are just that.
const LONGEST: usize = WORDS * 8;
const WORDS: usize = 5;

impl Piece {
    fn new(text: &[u8]) -> Option<Piece> {
        let mut bytes = [0; LONGEST];
        let mut masks = [0; LONGEST];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        masks[..text.len()].fill(0xff);
        Some(Piece { words: words(&bytes), masks: words(&masks), len: text.len() })
    }

    /// The position behind the piece, if it stands at `at` and forty bytes can be looked at.
    #[inline]
    fn behind(&self, text: &[u8], at: usize) -> Option<usize> {
        let there = words(text.get(at..)?.first_chunk::<LONGEST>()?);
        let mut different = 0;
        for ((there, word), mask) in there.iter().zip(&self.words).zip(&self.masks) {
            different |= (there ^ word) & mask;
        }
        (different == 0).then_some(at + self.len)
    }
}

#[inline]
fn words(bytes: &[u8; LONGEST]) -> [u64; WORDS] {
    from_fn(|word| u64::from_le_bytes(from_fn(|byte| bytes[word * 8 + byte])))
}
