//! How do columns line up, and what gives way when the terminal is narrow?
//!
//! The first column, which holds names: it is cut in the middle, since tensors of a model differ at
//! both ends.

use super::output::Output;
use std::io::{self, Write};

/// Columns with titles; in each of them either all cells left or all right aligned. It keeps no
/// rows: what it writes is made twice, once to be measured and once to be written, so that a table
/// of a million rows needs no memory.
pub struct Table {
    titles: Vec<String>,
    right_aligned: Vec<bool>,
    giving_way: Vec<usize>,
}

/// Between two columns.
const GAP: &str = "  ";

/// For less than this, other columns give way to the names.
const NARROWEST_NAME: usize = 24;

/// On a terminal no other cell is wider than this.
const WIDEST_CELL: usize = 24;

/// More room is not kept for names where nothing is cut.
const WIDEST_NAME: usize = 72;

impl Table {
    /// Columns by their titles; one that begins with `>` is aligned to the right.
    pub fn new(titles: &[&str]) -> Table {
        Table {
            titles: titles.iter().map(|title| title.trim_start_matches('>').to_owned()).collect(),
            right_aligned: titles.iter().map(|title| title.starts_with('>')).collect(),
            giving_way: Vec::new(),
        }
    }

    /// Columns that are left out, one after the other, where a terminal is too narrow.
    pub fn giving_way(mut self, titles: &[&str]) -> Table {
        let column = |title: &&str| self.titles.iter().position(|known| known == title);
        self.giving_way = titles.iter().filter_map(column).collect();
        self
    }

    /// Titles and rows.
    pub fn write(
        &self,
        rows: impl Iterator<Item = Vec<String>> + Clone,
        output: &mut Output,
    ) -> io::Result<()> {
        self.write_rows(std::iter::once(self.titles.clone()).chain(rows), output)
    }

    /// Rows alone: more of a table whose beginning was written.
    pub fn write_rows(
        &self,
        rows: impl Iterator<Item = Vec<String>> + Clone,
        output: &mut Output,
    ) -> io::Result<()> {
        let widths = self.widths(rows.clone(), output.columns());
        for cells in rows {
            let mut line = String::new();
            for (column, cell) in cells.into_iter().enumerate() {
                let Some(most) = widths[column] else { continue };
                let cell = match output.columns() {
                    Some(_) => shorten(&cell, most),
                    None => cell,
                };
                let padding = " ".repeat(most.saturating_sub(width(&cell)));
                line += if column > 0 { GAP } else { "" };
                match self.right_aligned[column] {
                    true => line += &(padding + &cell),
                    false => line += &(cell + &padding),
                }
            }
            writeln!(output, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// The width of each column; `None` for one that gave way.
    fn widths(
        &self,
        rows: impl Iterator<Item = Vec<String>>,
        columns: Option<usize>,
    ) -> Vec<Option<usize>> {
        let mut widest = vec![0; self.titles.len()];
        for cells in rows {
            for (widest, cell) in widest.iter_mut().zip(&cells) {
                *widest = width(cell).max(*widest);
            }
        }
        let names = widest[0];
        let mut widths: Vec<Option<usize>> = widest.into_iter().map(Some).collect();
        let Some(columns) = columns else {
            // One name of a thousand characters should not push all other rows aside.
            widths[0] = Some(names.min(WIDEST_NAME));
            return widths;
        };
        for width in widths[1..].iter_mut().flatten() {
            *width = WIDEST_CELL.min(*width);
        }
        let left_for_names = |widths: &[Option<usize>]| {
            let others: usize = widths[1..].iter().flatten().map(|width| width + GAP.len()).sum();
            columns.saturating_sub(others)
        };
        for &column in &self.giving_way {
            if left_for_names(&widths) >= names.min(NARROWEST_NAME) {
                break;
            }
            widths[column] = None;
        }
        widths[0] = Some(names.min(left_for_names(&widths).max(1)));
        widths
    }
}

/// Columns that a text takes on a terminal: two for the wide characters of East Asia and for
/// pictures. What would take none is escaped before it comes here.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// What Unicode (15) calls wide or full width, in blocks; the single pictures among narrow signs
/// one by one.
const WIDE: [(u32, u32); 45] = [
    (0x1100, 0x115f),
    (0x231a, 0x231b),
    (0x23e9, 0x23ec),
    (0x23f0, 0x23f0),
    (0x23f3, 0x23f3),
    (0x25fd, 0x25fe),
    (0x2614, 0x2615),
    (0x2648, 0x2653),
    (0x267f, 0x267f),
    (0x2693, 0x2693),
    (0x26a1, 0x26a1),
    (0x26aa, 0x26ab),
    (0x26bd, 0x26be),
    (0x26c4, 0x26c5),
    (0x26ce, 0x26ce),
    (0x26d4, 0x26d4),
    (0x26ea, 0x26ea),
    (0x26f2, 0x26f3),
    (0x26f5, 0x26f5),
    (0x26fa, 0x26fa),
    (0x26fd, 0x26fd),
    (0x2705, 0x2705),
    (0x270a, 0x270b),
    (0x2728, 0x2728),
    (0x274c, 0x274c),
    (0x274e, 0x274e),
    (0x2753, 0x2755),
    (0x2757, 0x2757),
    (0x2795, 0x2797),
    (0x27b0, 0x27b0),
    (0x27bf, 0x27bf),
    (0x2b1b, 0x2b1c),
    (0x2b50, 0x2b50),
    (0x2b55, 0x2b55),
    (0x2e80, 0x303e),
    (0x3041, 0xa4cf),
    (0xa960, 0xa97c),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xfe10, 0xfe6f),
    (0xff01, 0xff60),
    (0xffe0, 0xffe6),
    (0x16fe0, 0x1b2fb),
    (0x1f004, 0x1faff),
    (0x20000, 0x3fffd),
];

fn char_width(character: char) -> usize {
    let code = character as u32;
    let place = WIDE.partition_point(|&(_, last)| last < code);
    match WIDE.get(place) {
        Some(&(first, _)) if first <= code => 2,
        _ => 1,
    }
}

/// The text with its end left out, so that it takes `most` columns at most.
pub fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut left = most.saturating_sub(1);
    let fits = |character: &char| match left.checked_sub(char_width(*character)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// The text with its middle left out, so that it takes `most` columns at most.
fn shorten(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(1);
    let mut start = cut(text, room / 2 + 1);
    let reversed: String = text.chars().rev().collect();
    let end = cut(&reversed, room - room / 2 + 1);
    start.extend(end.chars().rev().skip(1));
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_narrow_terminal_columns_give_way_and_then_names_are_cut() {
        let table = Table::new(&["NAME", "SHAPE", ">FROM", ">TO"]).giving_way(&["TO", "FROM"]);
        let row = vec!["n".repeat(40), "[1,2]".into(), "1000".into(), "2000".into()];
        let widths = |columns| table.widths(std::iter::once(row.clone()), columns);
        assert_eq!(widths(None), [Some(40), Some(5), Some(4), Some(4)]);
        assert_eq!(widths(Some(59)), [Some(40), Some(5), Some(4), Some(4)]);
        assert_eq!(widths(Some(45)), [Some(26), Some(5), Some(4), Some(4)]);
        assert_eq!(widths(Some(40)), [Some(27), Some(5), Some(4), None]);
        assert_eq!(widths(Some(33)), [Some(26), Some(5), None, None]);
        assert_eq!(widths(Some(20)), [Some(13), Some(5), None, None]);
        let wide = vec!["n".into(), "[9]".repeat(60), "1".into(), "2".into()];
        assert_eq!(table.widths(std::iter::once(wide), Some(80))[1], Some(WIDEST_CELL));
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert!(WIDE.windows(2).all(|pair| pair[0].1 < pair[1].0), "in order");
        for (text, columns) in
            [("abc", 3), ("é→", 2), ("青い", 4), ("✅⭐", 4), ("🀄🆎🇩🇪", 8), ("", 0)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
    }

    #[test]
    fn a_long_name_loses_its_middle() {
        for (text, most, short) in [
            ("model.layers.0", 14, "model.layers.0"),
            ("model.layers.0", 9, "mode…rs.0"),
            ("青い目の少女", 7, "青…女"),
            ("ab", 1, "…"),
        ] {
            assert_eq!(shorten(text, most), short);
            assert!(width(short) <= most, "{short}");
        }
    }
}
