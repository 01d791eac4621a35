//! How are results shown: to a person, and to a program?

use crate::bench::Spread;
use barest::escape::Json;
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::iter;

pub struct Table {
    /// What it measures, as a sentence.
    pub title: Cow<'static, str>,
    pub columns: &'static [&'static str],
    /// A cell for each column; the first names the row.
    pub rows: Vec<Vec<Cell>>,
}

pub enum Cell {
    Text(String),
    Count(usize),
    Bytes(usize),
    /// A number of things for each tensor.
    Each(f64),
    /// Of something whole.
    Percent(f64),
    /// Of which the median is shown.
    Seconds(Spread),
    /// Of which all is shown.
    Times(Spread),
    /// What was aimed at, and whether it was reached.
    Goal {
        goal: Goal,
        reached: bool,
    },
    /// Not measured, or nothing to say.
    None,
}

#[derive(Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    pub fn met_by(self, found: f64) -> Cell {
        let reached = match self {
            Goal::AtLeast(least) => found >= least,
            Goal::AtMost(most) => found <= most,
        };
        Cell::Goal { goal: self, reached }
    }
}

impl Display for Cell {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Text(text) => f.write_str(text),
            Cell::Count(count) => write!(f, "{count}"),
            Cell::Bytes(bytes) => match *bytes as f64 {
                few if few < 1e4 => write!(f, "{few} B"),
                some if some < 1e7 => write!(f, "{:.1} KB", some / 1e3),
                many => write!(f, "{:.1} MB", many / 1e6),
            },
            Cell::Each(number) => write!(f, "{number:.1}"),
            Cell::Percent(number) => write!(f, "{number:.2} %"),
            Cell::Seconds(spread) => match spread.median {
                short if short < 1e-6 => write!(f, "{:.1} ns", short * 1e9),
                short if short < 1e-3 => write!(f, "{:.1} us", short * 1e6),
                long => write!(f, "{:.2} ms", long * 1e3),
            },
            Cell::Times(Spread { p10, median, p90 }) => {
                // Near 1, what stands behind the first digit is the question.
                let digits = if *median < 2.0 { 2 } else { 1 };
                write!(f, "{median:.digits$}x ({p10:.digits$}..{p90:.digits$})")
            }
            Cell::Goal { goal, reached } => {
                let (sign, Goal::AtLeast(number) | Goal::AtMost(number)) = match goal {
                    Goal::AtLeast(_) => (">=", goal),
                    Goal::AtMost(_) => ("<=", goal),
                };
                write!(f, "{sign} {}: ", (number * 100.0).round() / 100.0)?;
                f.write_str(if *reached { "yes" } else { "NO" })
            }
            Cell::None => f.write_str("-"),
        }
    }
}

impl Cell {
    /// As JSON: times in seconds, ratios with their spread.
    fn json(&self) -> String {
        match self {
            Cell::Text(text) => Json(text).to_string(),
            Cell::Count(count) | Cell::Bytes(count) => count.to_string(),
            Cell::Each(number) | Cell::Percent(number) => format!("{number:.3}"),
            Cell::Seconds(Spread { p10, median, p90 })
            | Cell::Times(Spread { p10, median, p90 }) => {
                format!("{{\"p10\": {p10:e}, \"median\": {median:e}, \"p90\": {p90:e}}}")
            }
            Cell::Goal { goal: Goal::AtLeast(least), reached } => {
                format!("{{\"at_least\": {least}, \"reached\": {reached}}}")
            }
            Cell::Goal { goal: Goal::AtMost(most), reached } => {
                format!("{{\"at_most\": {most}, \"reached\": {reached}}}")
            }
            Cell::None => "null".to_owned(),
        }
    }
}

impl Table {
    /// An object for each row, with the columns as keys.
    pub fn json(&self) -> String {
        let row = |row: &Vec<Cell>| {
            let cells = self.columns.iter().zip(row);
            let pairs: Vec<String> =
                cells.map(|(column, cell)| format!("{}: {}", Json(column), cell.json())).collect();
            format!("  {{{}}}", pairs.join(", "))
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        format!("[\n{}\n]", rows.join(",\n"))
    }
}

impl Display for Table {
    /// As Markdown, in columns that line up.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let heads = self.columns.iter().map(|&column| column.to_owned()).collect();
        let cells = self.rows.iter().map(|row| row.iter().map(Cell::to_string).collect());
        let lines: Vec<Vec<String>> = iter::once(heads).chain(cells).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let rule: String = (widths.iter().enumerate())
            .map(|(column, &width)| match column {
                0 => format!("| {} ", "-".repeat(width)),
                _ => format!("| {}: ", "-".repeat(width - 1)),
            })
            .collect();
        writeln!(f, "{}\n", self.title)?;
        for (number, line) in lines.iter().enumerate() {
            for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(f, "| {cell:<width$} ")?,
                    _ => write!(f, "| {cell:>width$} ")?,
                }
            }
            writeln!(f, "|")?;
            if number == 0 {
                writeln!(f, "{rule}|")?;
            }
        }
        Ok(())
    }
}
