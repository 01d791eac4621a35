//! Which bytes belong to a part of a tensor?
//!
//! Arithmetic alone, on a shape and the bits of an element. In C order the last axes that are taken
//! whole lie together: what is selected is a number of runs of equal length, found by counting up
//! the indices of the axes before them. Nothing is listed in advance, so a slice of a million runs
//! costs as much memory as one of two.
//!
//! ```text
//!   shape [4, 6], slice [1..3, 2..4]        . . . . . .
//!                                           . . # # . .     two runs of two elements,
//!                                           . . # # . .     6 apart, from element 8 on
//!                                           . . . . . .
//! ```

use super::error::ErrorKind;
use std::io;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// What is taken of one axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Select {
    /// One index; the axis falls away.
    Index(u64),
    /// From `start` up to `end`, not included, or to the end of the axis; every `step`th.
    Range {
        /// The first index.
        start: u64,
        /// The index behind the last; `None` for the end of the axis.
        end: Option<u64>,
        /// 1 for every index; 0 is refused.
        step: u64,
    },
}

impl Select {
    /// A whole axis.
    pub const fn all() -> Select {
        Select::Range { start: 0, end: None, step: 1 }
    }

    /// Every `step`th index of a range, from its first on. A single index has no step.
    pub fn every(self, step: u64) -> Select {
        match self {
            Select::Index(index) => Select::Index(index),
            Select::Range { start, end, .. } => Select::Range { start, end, step },
        }
    }
}

impl From<u64> for Select {
    fn from(index: u64) -> Select {
        Select::Index(index)
    }
}

impl From<RangeFull> for Select {
    fn from(_: RangeFull) -> Select {
        Select::all()
    }
}

impl From<Range<u64>> for Select {
    fn from(range: Range<u64>) -> Select {
        Select::Range { start: range.start, end: Some(range.end), step: 1 }
    }
}

impl From<RangeFrom<u64>> for Select {
    fn from(range: RangeFrom<u64>) -> Select {
        Select::Range { start: range.start, end: None, step: 1 }
    }
}

impl From<RangeTo<u64>> for Select {
    fn from(range: RangeTo<u64>) -> Select {
        Select::Range { start: 0, end: Some(range.end), step: 1 }
    }
}

impl From<RangeInclusive<u64>> for Select {
    /// No axis has the index `u64::MAX`, so that an end there is as far out of range as its own
    /// successor would be.
    fn from(range: RangeInclusive<u64>) -> Select {
        let end = Some(range.end().saturating_add(1));
        Select::Range { start: *range.start(), end, step: 1 }
    }
}

impl From<RangeToInclusive<u64>> for Select {
    fn from(range: RangeToInclusive<u64>) -> Select {
        Select::from(0..=range.end)
    }
}

/// The part of a tensor that was selected.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The dimensions that are left.
    pub shape: Vec<u64>,
    /// Elements of one run.
    run: u64,
    /// Element at which the first run begins.
    first: u64,
    /// Of each axis before the runs, the slowest first: how many indices, and how many elements
    /// apart.
    outer: Vec<(u64, u64)>,
    bits: u64,
}

/// Selects a part of a tensor of this shape, whose elements have so many bits. The shape was proved:
/// its product is the number of elements of the tensor.
pub fn select(shape: &[u64], bits: u64, selects: &[Select]) -> Result<Selection, ErrorKind> {
    if selects.len() > shape.len() {
        return Err(ErrorKind::NoSuchAxis { expected: shape.len(), found: selects.len() - 1 });
    }
    // 1. What is left of the shape, and whether each axis has what is asked of it.
    let mut left = Vec::new();
    left.try_reserve_exact(shape.len()).map_err(|_| {
        let source = io::ErrorKind::OutOfMemory.into();
        ErrorKind::Io { action: "reserve memory for a shape", source }
    })?;
    for (axis, &dimension) in shape.iter().enumerate() {
        let (_, count, _) = on_axis(dimension, selects.get(axis))?;
        if !matches!(selects.get(axis), Some(Select::Index(_))) {
            left.push(count);
        }
    }
    if left.contains(&0) || shape.contains(&0) {
        return Ok(Selection { shape: left, run: 0, first: 0, outer: Vec::new(), bits });
    }
    // 2. From the last axis on: as long as axes are taken whole, they lengthen the run. No product
    //    overflows, since none of the dimensions is 0 and the product of all is known to fit.
    let mut selection = Selection { shape: left, run: 1, first: 0, outer: Vec::new(), bits };
    let mut stride = 1;
    let mut together = true;
    for (axis, &dimension) in shape.iter().enumerate().rev() {
        let (start, count, step) = on_axis(dimension, selects.get(axis))?;
        selection.first += start * stride;
        if together && (step == 1 || count == 1) {
            selection.run *= count;
            together = count == dimension;
        } else {
            together = false;
            if count > 1 {
                selection.outer.push((count, step * stride));
            }
        }
        stride *= dimension;
    }
    selection.outer.reverse();
    // 3. Runs begin and end with a byte.
    let begins = selection.outer.iter().map(|(_, apart)| *apart).chain([selection.first]);
    if begins.chain([selection.run]).any(|elements| elements * bits % 8 != 0) {
        return Err(ErrorKind::PartOfByte);
    }
    Ok(selection)
}

/// The first index, the number of indices and the step on an axis of this length.
fn on_axis(dimension: u64, select: Option<&Select>) -> Result<(u64, u64, u64), ErrorKind> {
    match select.copied().unwrap_or(Select::all()) {
        Select::Index(index) if index < dimension => Ok((index, 1, 1)),
        Select::Index(found) => Err(ErrorKind::OutOfRange { expected: dimension, found }),
        Select::Range { start, end, step } => {
            let end = end.unwrap_or(dimension);
            if step == 0 || start > end || end > dimension {
                return Err(ErrorKind::BadRange { dimension, start, end, step });
            }
            Ok((start, (end - start).div_ceil(step), step))
        }
    }
}

impl Selection {
    /// Elements in all.
    pub fn elements(&self) -> u64 {
        self.run * self.outer.iter().map(|(count, _)| count).product::<u64>()
    }

    /// Bytes in all.
    pub fn byte_len(&self) -> u64 {
        self.elements() * self.bits / 8
    }

    /// The runs, as ranges of the tensor's bytes.
    pub fn runs(&self) -> Runs {
        Runs {
            at: self.outer.iter().map(|_| 0).collect(),
            next: (self.run > 0).then(|| self.first * self.bits / 8),
            len: self.run * self.bits / 8,
            left: self.outer.iter().map(|(count, _)| count).product(),
            outer: self
                .outer
                .iter()
                .map(|&(count, apart)| (count, apart * self.bits / 8))
                .collect(),
        }
    }
}

/// Ranges of bytes, one after the other in C order.
#[derive(Clone, Debug)]
pub struct Runs {
    /// The index on each outer axis of the next run.
    at: Vec<u64>,
    /// The byte at which it begins; `None` behind the last.
    next: Option<u64>,
    len: u64,
    left: u64,
    /// How many indices, and how many bytes apart.
    outer: Vec<(u64, u64)>,
}

impl Iterator for Runs {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let begin = self.next?;
        self.left -= 1;
        // Count up the indices like an odometer, the last axis fastest.
        let mut after = Some(begin);
        for (at, &(count, apart)) in self.at.iter_mut().zip(&self.outer).rev() {
            *at += 1;
            if *at < count {
                after = after.map(|begin| begin + apart);
                break;
            }
            *at = 0;
            after = after.map(|begin| begin - (count - 1) * apart);
        }
        self.next = after.filter(|_| self.left > 0);
        Some(begin..begin + self.len)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = if self.next.is_some() { self.left as usize } else { 0 };
        (left, Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All selected elements by looking at every index: what the runs should cover, in order.
    fn by_looking(shape: &[u64], selects: &[Select]) -> Vec<u64> {
        let elements: u64 = shape.iter().product();
        let is_selected = |element: u64| {
            let mut rest = element;
            shape.iter().enumerate().rev().all(|(axis, dimension)| {
                let index = rest % dimension;
                rest /= dimension;
                match selects.get(axis).copied().unwrap_or(Select::all()) {
                    Select::Index(wanted) => index == wanted,
                    Select::Range { start, end, step } => {
                        let end = end.unwrap_or(*dimension);
                        (start..end).contains(&index) && (index - start) % step == 0
                    }
                }
            })
        };
        (0..elements).filter(|&element| is_selected(element)).collect()
    }

    fn by_runs(selection: &Selection) -> Vec<u64> {
        selection.runs().flat_map(|run| run.start..run.end).collect()
    }

    #[test]
    fn runs_cover_what_was_selected_in_order() {
        let ranges = |dimension: u64| {
            let mut all = vec![Select::all(), Select::Index(0), Select::Index(dimension - 1)];
            for start in 0..=dimension {
                for end in start..=dimension {
                    all.extend((1..=3).map(|step| Select::from(start..end).every(step)));
                }
            }
            all
        };
        for shape in [&[5][..], &[3, 4], &[2, 1, 3], &[2, 3, 2, 2]] {
            let mut cases: Vec<Vec<Select>> = vec![vec![]];
            for (axis, &dimension) in shape.iter().enumerate().take(3) {
                let shorter = cases.iter().filter(|case| case.len() == axis);
                let longer: Vec<Vec<Select>> = shorter
                    .flat_map(|case| {
                        ranges(dimension).into_iter().map(|s| [&case[..], &[s]].concat())
                    })
                    .collect();
                cases.extend(longer);
            }
            for selects in cases {
                let selection = select(shape, 8, &selects).unwrap();
                let expected = by_looking(shape, &selects);
                assert_eq!(by_runs(&selection), expected, "{shape:?} {selects:?}");
                assert_eq!(selection.elements(), expected.len() as u64);
                assert_eq!(selection.shape.iter().product::<u64>(), expected.len() as u64);
                assert_eq!(selection.runs().size_hint().0, selection.runs().count());
            }
        }
    }

    #[test]
    fn what_lies_together_is_one_run() {
        for (selects, runs) in [
            (&[][..], 1),
            (&[Select::Index(2)], 1),
            (&[Select::from(1..3)], 1),
            (&[Select::Index(2), Select::from(1..4)], 1),
            (&[Select::all(), Select::Index(2)], 4),
            (&[Select::all(), Select::all(), Select::from(0..2)], 20),
            (&[Select::all(), Select::all(), Select::all().every(2)], 60),
        ] {
            let selection = select(&[4, 5, 6], 16, selects).unwrap();
            assert_eq!(selection.runs().count(), runs, "{selects:?}");
        }
    }

    #[test]
    fn what_cannot_be_selected_is_refused() {
        let bad = |selects: &[Select]| select(&[2, 3], 8, selects).unwrap_err().to_string();
        assert!(bad(&[Select::Index(2)]).contains("below 2, found 2"));
        assert!(bad(&[Select::Index(u64::MAX)]).contains("out of range"));
        for selects in [
            [Select::from(0..3), Select::all()],
            [Select::Range { start: 2, end: Some(1), step: 1 }, Select::all()],
            [Select::from(3..), Select::all()],
            [Select::all(), Select::from(..=u64::MAX)],
            [Select::all(), Select::all().every(0)],
        ] {
            assert!(bad(&selects).contains("range"), "{selects:?}");
        }
        let too_many = [Select::all(), Select::all(), Select::all()];
        assert!(bad(&too_many).contains("axis"));
    }

    #[test]
    fn empty_selections_are_empty_wherever_they_stand() {
        for (shape, selects, left) in [
            (&[2, 3][..], &[Select::from(0..0), Select::from(0..1)][..], &[0, 1][..]),
            (&[2, 3], &[Select::from(2..2)], &[0, 3]),
            (&[2, 3], &[Select::all(), Select::from(3..3)], &[2, 0]),
            (&[0, 1 << 40, 3], &[Select::all(), Select::Index(7)], &[0, 3]),
            (&[1 << 62, 0], &[Select::from(5..9)], &[4, 0]),
        ] {
            let selection = select(shape, 16, selects).unwrap();
            assert_eq!(selection.shape, left);
            assert_eq!((selection.elements(), selection.runs().count()), (0, 0));
        }
    }

    #[test]
    fn a_byte_is_not_split() {
        // F4, two rows of three: one and a half bytes each.
        for selects in
            [&[Select::Index(0)][..], &[Select::from(0..1)], &[Select::all(), Select::Index(1)]]
        {
            assert!(matches!(select(&[2, 3], 4, selects), Err(ErrorKind::PartOfByte)));
        }
        assert_eq!(select(&[2, 3], 4, &[]).unwrap().byte_len(), 3);
        assert_eq!(select(&[2, 3], 4, &[Select::from(0..0)]).unwrap().byte_len(), 0);
        assert_eq!(select(&[2, 4], 4, &[Select::Index(1)]).unwrap().byte_len(), 2);
    }

    #[test]
    fn any_rank_will_do() {
        let shape = [1u64; 1000];
        assert_eq!(select(&shape, 8, &[Select::Index(0); 1000]).unwrap().elements(), 1);
        assert_eq!(select(&[], 8, &[]).unwrap().runs().next(), Some(0..1));
    }
}
