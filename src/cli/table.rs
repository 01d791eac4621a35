//! How do columns line up, and what gives way when the terminal is narrow?
//!
//! The first column, which holds names: it is cut in the middle, since tensors of a model differ at
//! both ends.

use super::output::Output;
use std::io::{self, Write};

/// Rows of cells; in each column either all left or all right aligned.
pub struct Table {
    head: Vec<&'static str>,
    right_aligned: Vec<bool>,
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GAP: &str = "  ";

/// A name is not cut to less.
const NARROWEST_NAME: usize = 16;

impl Table {
    /// Columns by their titles; one that begins with `>` is aligned to the right.
    pub fn new(titles: &[&'static str]) -> Table {
        Table {
            head: titles
                .iter()
                .map(|title| title.trim_start_matches('>'))
                .collect(),
            right_aligned: titles.iter().map(|title| title.starts_with('>')).collect(),
            rows: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub fn write(&self, output: &mut Output) -> io::Result<()> {
        let head: Vec<String> = self.head.iter().map(|&title| title.to_owned()).collect();
        let mut widths = vec![0; head.len()];
        for row in std::iter::once(&head).chain(&self.rows) {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(width(cell));
            }
        }
        if let Some(columns) = output.columns() {
            let others: usize = widths[1..].iter().map(|width| width + GAP.len()).sum();
            widths[0] = widths[0].min(columns.saturating_sub(others).max(NARROWEST_NAME));
        }
        for row in std::iter::once(&head).chain(&self.rows) {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let cell = if column == 0 {
                    shorten(cell, widths[0])
                } else {
                    cell.clone()
                };
                let padding = " ".repeat(widths[column].saturating_sub(width(&cell)));
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
}

/// Columns that a text takes on a terminal: two for the wide characters of East Asia and for
/// pictures. What would take none is escaped before it comes here.
fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(character: char) -> usize {
    match character as u32 {
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// The text with its middle left out, so that it takes `most` columns at most.
fn shorten(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let take = |characters: &mut dyn Iterator<Item = char>, most: usize| {
        let mut left = most;
        let mut taken = Vec::new();
        for character in characters {
            match left.checked_sub(char_width(character)) {
                Some(rest) => left = rest,
                None => break,
            }
            taken.push(character);
        }
        taken
    };
    let room = most.saturating_sub(1);
    let start = take(&mut text.chars(), room / 2);
    let mut end = take(&mut text.chars().rev(), room - room / 2);
    end.reverse();
    start.into_iter().chain(['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
