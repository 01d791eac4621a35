//! Where do shapes live, and which was this one?
//!
//! The dimensions of all tensors stand in one arena, and a record says which are its own. A model
//! has thousands of tensors and a dozen shapes: those that were written a moment ago, in the same
//! bytes, are found again instead of read again, and stand in the arena once.

use super::super::error::Result;
use super::super::error::reserve::{room, vector};
use super::super::json::digits;
use super::piece::Short;
use std::ops::Range;

/// What one dimension takes at least: a digit and a comma.
pub const SHORTEST_DIMENSION: usize = 2;

/// Which dimensions of the arena a shape is. They fit 32 bits, as the header's length does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dims {
    pub start: u32,
    pub rank: u32,
}

impl Dims {
    /// All that were put at the end of the arena since it had so many. If the same stand before them,
    /// those are taken, and these go.
    pub fn since(start: usize, arena: &mut Vec<u64>) -> Dims {
        let (before, new) = arena.split_at(start);
        let (mut start, rank) = (start, new.len());
        if rank > 0 && before.ends_with(new) {
            arena.truncate(start);
            start -= rank;
        }
        Dims { start: start as u32, rank: rank as u32 }
    }

    /// Where they stand.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.rank as usize
    }
}

/// The shapes of all tensors.
#[derive(Default)]
pub struct Shapes {
    pub dims: Vec<u64>,
    /// Each in the place that its text asks for; a later one takes it over.
    seen: [Seen; PLACES],
}

/// A shape and how its numbers are written, without the brackets.
#[derive(Clone, Copy, Default)]
struct Seen {
    text: Short,
    dims: Dims,
}

const PLACES: usize = 16;

/// A shape of a later entry.
pub struct Shape {
    pub dims: Dims,
    /// How it is written and where to remember that, unless it was known.
    new: Option<(usize, Short)>,
}

/// Room for the shapes of most models.
const ROOM: usize = 64;

impl Shapes {
    /// An arena without a shape.
    pub fn new() -> Result<Shapes> {
        Ok(Shapes { dims: vector(ROOM)?, ..Shapes::default() })
    }

    /// Reads numbers with commas between, up to anything else, and gives what is left of the text.
    /// New dimensions go to the end of the arena, also where it turns out that they do not belong
    /// there: the caller cuts them off again, or remembers the shape.
    #[inline(always)]
    pub fn read<'a>(&mut self, text: &'a [u8], spaced: bool) -> Option<(Shape, &'a [u8])> {
        // The upper bits of the product depend on all eight bytes.
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let first = u64::from_le_bytes(*text.first_chunk()?);
        let place = (first.wrapping_mul(GOLDEN) >> 60) as usize % PLACES;
        let seen = &self.seen[place];
        match seen.text.strip(text) {
            Some(rest) if rest.first() == Some(&b']') => {
                Some((Shape { dims: seen.dims, new: None }, rest))
            }
            _ => self.read_new(text, spaced, place),
        }
    }

    fn read_new<'a>(
        &mut self,
        text: &'a [u8],
        spaced: bool,
        place: usize,
    ) -> Option<(Shape, &'a [u8])> {
        let start = self.dims.len();
        let mut rest = text;
        let mut more = rest.first() != Some(&b']');
        while more {
            let (dimension, behind) = digits(rest)?;
            // Without memory the general path says so.
            room(&mut self.dims, behind.len(), SHORTEST_DIMENSION).ok()?;
            self.dims.push(dimension);
            let next = behind_comma(behind, spaced);
            (rest, more) = (next.unwrap_or(behind), next.is_some());
        }
        let new = Short::before(rest, text).map(|short| (place, short));
        Some((Shape { dims: Dims::since(start, &mut self.dims), new }, rest))
    }

    /// Finds this shape again when it is written so.
    #[inline(always)]
    pub fn remember(&mut self, shape: &Shape) {
        if let Some((place, text)) = shape.new {
            self.seen[place] = Seen { text, dims: shape.dims };
        }
    }
}

/// What is behind a comma between numbers, and the space that some writers put there.
#[inline(always)]
pub fn behind_comma(text: &[u8], spaced: bool) -> Option<&[u8]> {
    match (text, spaced) {
        ([b',', rest @ ..], false) | ([b',', b' ', rest @ ..], true) => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shape, and whether it was found instead of read; longer ones are not remembered either.
    fn read(shapes: &mut Shapes, numbers: &str, spaced: bool) -> Option<(Vec<u64>, bool)> {
        let text = format!("{numbers}],\"data_offsets\"");
        let (shape, rest) = shapes.read(text.as_bytes(), spaced)?;
        assert_eq!(rest, &text.as_bytes()[numbers.len()..], "{numbers}");
        shapes.remember(&shape);
        let found = shape.new.is_none() && numbers.len() < 16;
        Some((shapes.dims[shape.dims.range()].to_vec(), found))
    }

    /// Shapes of up to 18 bytes of which many begin alike, or as another one goes on.
    fn shapes_that_look_alike() -> Vec<String> {
        let mut alike = Vec::new();
        for begin in ["5", "57", "576", "5761", "1,2,3,4", "1,2,3,5", "1000,200", "1000,2000,3"] {
            for end in ["", "1", "0,7", ",7", ",8", ",70", ",1,2,3,4", ",1,2,3,5", ",6,7,8,9,1"] {
                alike.push(format!("{begin}{end}"));
            }
        }
        alike
    }

    #[test]
    fn a_shape_is_taken_for_no_other() {
        let alike = shapes_that_look_alike();
        let mut shapes = Shapes::new().unwrap();
        let mut found_again = 0;
        for one in &alike {
            for other in [&alike[..], &[String::new()]].concat() {
                for numbers in [one, &other, one] {
                    let expected: Vec<u64> =
                        numbers.split(',').flat_map(|number| number.parse().ok()).collect();
                    let (dims, found) = read(&mut shapes, numbers, false).unwrap();
                    assert_eq!(dims, expected, "{one} and {other}");
                    found_again += usize::from(found);
                }
            }
        }
        // Longer ones never are, and some take the place of others.
        let all = alike.len() * (alike.len() + 1) * 3;
        assert!(found_again > all / 2 && found_again < all, "{found_again} of {all}");
    }

    #[test]
    fn what_was_written_the_same_way_is_not_read_again() {
        let mut shapes = Shapes::new().unwrap();
        for (numbers, spaced) in [("576,49152", false), ("576, 49153", true), ("7", true)] {
            assert!(!read(&mut shapes, numbers, spaced).unwrap().1);
            let len = shapes.dims.len();
            assert!(read(&mut shapes, numbers, spaced).unwrap().1, "{numbers}");
            assert_eq!(shapes.dims.len(), len);
        }
        for none in ["1,", "01", "1,02", "1234567890123456", "-1", "1,x"] {
            assert!(read(&mut shapes, none, false).is_none(), "{none}");
        }
        // Nor is what has the other spacing.
        assert!(shapes.read(b"31, 2],\"data\"", false).is_none());
        let (shape, rest) = shapes.read(b"31,2],\"data\"", true).unwrap();
        assert_eq!((shape.dims.rank, rest), (1, &b",2],\"data\""[..]));
    }

    #[test]
    fn dimensions_that_stand_before_the_new_ones_are_taken_instead() {
        for (arena, start, expected, kept) in [
            (vec![1, 2, 1, 2], 2, 0..2, 2),
            (vec![3, 1, 2, 1, 2], 3, 1..3, 3),
            (vec![7, 7, 7], 2, 1..2, 2),
            (vec![1, 2, 2, 1], 2, 2..4, 4),
            (vec![2, 1, 2], 1, 1..3, 3),
            (vec![1, 2], 0, 0..2, 2),
            (vec![1, 2], 2, 2..2, 2),
        ] {
            let mut dims = arena.clone();
            assert_eq!(Dims::since(start, &mut dims).range(), expected, "{arena:?}");
            assert_eq!(dims, arena[..kept]);
        }
    }
}
