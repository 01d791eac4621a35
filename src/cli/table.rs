//! How do columns line up, and what gives way when the terminal is narrow?
//!
//! The first column, which holds names: it is cut in the middle, since tensors of a model differ at
//! both ends.

use super::output::Output;
use std::io::{self, Write};

/// Rows of cells; in each column either all left or all right aligned.
pub struct Table {
    titles: Vec<String>,
    right_aligned: Vec<bool>,
    giving_way: Vec<usize>,
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GAP: &str = "  ";

/// For less than this, other columns give way to the names.
const NARROWEST_NAME: usize = 24;

/// More room is not kept for names where nothing is cut.
const WIDEST_NAME: usize = 72;

impl Table {
    /// Columns by their titles; one that begins with `>` is aligned to the right.
    pub fn new(titles: &[&str]) -> Table {
        Table {
            titles: titles.iter().map(|title| title.trim_start_matches('>').to_owned()).collect(),
            right_aligned: titles.iter().map(|title| title.starts_with('>')).collect(),
            giving_way: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Columns that are left out, one after the other, where a terminal is too narrow.
    pub fn giving_way(mut self, titles: &[&str]) -> Table {
        let column = |title: &&str| self.titles.iter().position(|known| known == title);
        self.giving_way = titles.iter().filter_map(column).collect();
        self
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Titles and rows.
    pub fn write(&self, output: &mut Output) -> io::Result<()> {
        self.write_lines(std::iter::once(&self.titles).chain(&self.rows), output)
    }

    /// Rows alone: more of a table whose beginning was written.
    pub fn write_rows(&self, output: &mut Output) -> io::Result<()> {
        self.write_lines(self.rows.iter(), output)
    }

    fn write_lines<'a>(
        &'a self,
        lines: impl Iterator<Item = &'a Vec<String>>,
        output: &mut Output,
    ) -> io::Result<()> {
        let widths = self.widths(output.columns());
        for cells in lines {
            let mut line = String::new();
            for (column, cell) in cells.iter().enumerate() {
                let Some(most) = widths[column] else { continue };
                let cell = match column {
                    0 if output.columns().is_some() => shorten(cell, most),
                    _ => cell.clone(),
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
    fn widths(&self, columns: Option<usize>) -> Vec<Option<usize>> {
        let mut widths: Vec<Option<usize>> = (0..self.titles.len())
            .map(|column| {
                let cells = std::iter::once(&self.titles).chain(&self.rows);
                cells.map(|cells| width(&cells[column])).max()
            })
            .collect();
        let names = widths[0].unwrap_or(0);
        let Some(columns) = columns else {
            // One name of a thousand characters should not push all other rows aside.
            widths[0] = Some(names.min(WIDEST_NAME));
            return widths;
        };
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
    fn on_a_narrow_terminal_columns_give_way_and_then_names_are_cut() {
        let mut table = Table::new(&["NAME", "SHAPE", ">FROM", ">TO"]).giving_way(&["TO", "FROM"]);
        table.row(vec!["n".repeat(40), "[1,2]".into(), "1000".into(), "2000".into()]);
        let widths = |columns| table.widths(columns);
        assert_eq!(widths(None), [Some(40), Some(5), Some(4), Some(4)]);
        assert_eq!(widths(Some(59)), [Some(40), Some(5), Some(4), Some(4)]);
        assert_eq!(widths(Some(45)), [Some(26), Some(5), Some(4), Some(4)]);
        assert_eq!(widths(Some(40)), [Some(27), Some(5), Some(4), None]);
        assert_eq!(widths(Some(33)), [Some(26), Some(5), None, None]);
        assert_eq!(widths(Some(20)), [Some(13), Some(5), None, None]);
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
