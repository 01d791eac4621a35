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
use super::super::json::{digits, next_special};
use super::entry::Entry;
use super::piece::{Piece, Short};
use super::shapes::{Shapes, behind_comma};

/// The text of an entry but for its name and numbers.
#[derive(Clone)]
pub struct Template {
    /// From the name's closing quote to the first array's bracket.
    first: Piece,
    /// From the bracket that ends one array to the one that begins the other.
    second: Piece,
    /// From the bracket that ends the second array to the quote that begins the next name.
    last: Piece,
    /// Whether a space stands behind each comma of a shape, and of offsets.
    shape_is_spaced: bool,
    offsets_are_spaced: bool,
    shape_comes_first: bool,
    extra: bool,
    dtype: Dtype,
}

/// An entry as a template reads it.
pub struct Quick<'a> {
    pub entry: Entry,
    /// What is behind the next name's opening quote.
    pub rest: &'a [u8],
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
        let is_spaced = |numbers: &[u8]| numbers.contains(&b' ');
        let (shape, offsets) = (&text[entry.shape_at.clone()], &text[entry.offsets_at.clone()]);
        Some(Template {
            first: Piece::new(&text[name_end..one.start + 1])?,
            second: Piece::new(&text[one.end - 1..other.start + 1])?,
            last: Piece::new(&text[other.end - 1..next + 1])?,
            // A shape without a comma does not tell.
            shape_is_spaced: if shape.contains(&b',') {
                is_spaced(shape)
            } else {
                is_spaced(offsets)
            },
            offsets_are_spaced: is_spaced(offsets),
            shape_comes_first,
            extra: entry.extra,
            dtype: entry.dtype,
        })
    }

    /// Reads the entry of which `text` is what begins with its name's closing quote, if it is like the
    /// one learned from. New dimensions go to the end of the arena, also where it turns out to be
    /// unlike: the caller cuts them off again.
    #[inline(always)]
    pub fn read<'a>(
        &self,
        text: &'a [u8],
        last: Written,
        shapes: &mut Shapes,
    ) -> Option<Quick<'a>> {
        let numbers = self.first.strip(text)?;
        let (shape, (begin, end), rest) = if self.shape_comes_first {
            let (shape, rest) = shapes.read(numbers, self.shape_is_spaced)?;
            let (offsets, rest) = self.read_offsets(self.second.strip(rest)?, last)?;
            (shape, offsets, rest)
        } else {
            let (offsets, rest) = self.read_offsets(numbers, last)?;
            let (shape, rest) = shapes.read(self.second.strip(rest)?, self.shape_is_spaced)?;
            (shape, offsets, rest)
        };
        let rest = self.last.strip(rest)?;
        shapes.remember(&shape);
        let entry = Entry {
            dtype: self.dtype,
            dims: shape.dims,
            begin,
            end: end.value,
            extra: self.extra,
            shape_at: 0..0,
            offsets_at: 0..0,
        };
        Some(Quick { entry, rest, end })
    }

    /// Two numbers with a comma between, and what is behind. The first is mostly the number that ended
    /// the entry before.
    #[inline(always)]
    fn read_offsets<'a>(
        &self,
        text: &'a [u8],
        last: Written,
    ) -> Option<((u64, Written), &'a [u8])> {
        let (begin, rest) = match last.text.strip(text) {
            Some(rest) => (last.value, rest),
            None => digits(text)?,
        };
        let text = behind_comma(rest, self.offsets_are_spaced)?;
        let (value, rest) = digits(text)?;
        let end = Written { text: Short::before(rest, text)?, value };
        Some(((begin, end), rest))
    }
}

/// A name without escapes, which `text` begins with, and what begins with its closing quote.
#[inline(always)]
pub fn plain_name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = text.split_at(next_special(text, 0));
    (rest.first() == Some(&b'"')).then_some((name, rest))
}

/// A number and how it is written.
#[derive(Clone, Copy, Default)]
pub struct Written {
    text: Short,
    value: u64,
}
