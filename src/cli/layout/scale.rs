//! Which column of a bar does a byte fall into?

use std::ops::Range;

/// A bar that stands for so many bytes.
pub struct Scale {
    pub bytes: u64,
    pub columns: usize,
}

impl Scale {
    /// For each column, which piece covers most of it. The pieces lie one behind the other.
    pub fn fill(&self, pieces: impl IntoIterator<Item = Range<u64>>) -> Vec<Option<usize>> {
        // In units of which a byte has `columns` and a column `bytes`: whole numbers throughout.
        let (columns, unit) = (self.columns as u128, u128::from(self.bytes));
        let mut best = vec![(0, None); self.columns];
        for (number, piece) in pieces.into_iter().enumerate() {
            let begin = u128::from(piece.start) * columns;
            let end = u128::from(piece.end) * columns;
            if begin == end {
                continue;
            }
            for column in begin / unit..end.div_ceil(unit) {
                let covered = end.min((column + 1) * unit) - begin.max(column * unit);
                let (most, of) = &mut best[column as usize];
                if covered > *most {
                    (*most, *of) = (covered, Some(number));
                }
            }
        }
        best.into_iter().map(|(_, piece)| piece).collect()
    }

    /// How many of these places fall into each column.
    pub fn count(&self, places: impl Iterator<Item = u64>) -> Vec<usize> {
        let mut counts = vec![0; self.columns];
        for place in places {
            let column = u128::from(place) * self.columns as u128 / u128::from(self.bytes);
            counts[column as usize] += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_belongs_to_what_covers_most_of_it() {
        let fill = |bytes, columns, pieces: &[Range<u64>]| -> String {
            let filled = Scale { bytes, columns }.fill(pieces.iter().cloned());
            filled
                .iter()
                .map(|piece| piece.map_or('-', |piece| (b'a' + piece as u8) as char))
                .collect()
        };
        assert_eq!(fill(10, 5, &[0..2, 2..10]), "abbbb");
        assert_eq!(fill(10, 5, &[0..1, 1..10]), "abbbb", "the first of two halves");
        assert_eq!(fill(100, 5, &[0..9, 9..9, 9..100]), "ccccc");
        assert_eq!(fill(2, 6, &[0..1, 1..2]), "aaabbb");
        assert_eq!(fill(2, 3, &[0..1, 1..2]), "aab");
        assert_eq!(fill(u64::MAX, 4, &[0..u64::MAX / 2, u64::MAX / 2..u64::MAX]), "aabb");
    }

    #[test]
    fn places_are_counted_in_their_column() {
        let scale = Scale { bytes: 10, columns: 5 };
        assert_eq!(scale.count([0, 1, 2, 9].into_iter()), [2, 1, 0, 0, 1]);
    }
}
