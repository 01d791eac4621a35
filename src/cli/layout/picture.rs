//! What is there to be drawn?
//!
//! ```text
//!   0           8                        8 + N                  8 + N + last end
//!   ├ length word ┼ header ──── padding ─┼ tensors ─────────────┤ the file ends
//! ```
//!
//! All of it is measured here, from the header that was proved; the terminal and the SVG show the
//! same numbers.

use super::excerpt;
use super::runs::{self, Joined, Run};
use barest::{Header, TensorInfo};
use std::ops::Range;
use std::path::Path;

pub struct Picture<'a> {
    /// The file's name, escaped, without its directory.
    pub name: String,
    pub header: &'a Header,
    pub tensors: Vec<TensorInfo<'a>>,
    /// How many of them have no bytes.
    pub empty: usize,
    pub runs: Vec<Run<'a>>,
    pub joined: Joined,
    pub misplaced: Vec<Misplaced>,
}

/// How many tensors with bytes start at no multiple of something.
pub struct Misplaced {
    pub of: &'static str,
    pub tensors: usize,
}

/// A part of the file.
pub struct Region {
    pub name: &'static str,
    pub range: Range<u64>,
}

impl<'a> Picture<'a> {
    pub fn new(path: &Path, header: &'a Header) -> Picture<'a> {
        const LONGEST_NAME: usize = 60;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let tensors: Vec<TensorInfo<'a>> = header.tensors().collect();
        let empty = tensors.iter().filter(|tensor| tensor.byte_len() == 0).count();
        let (runs, joined) = runs::join(&tensors);
        let misplaced = misplaced(&tensors);
        let name = excerpt::name(&name, LONGEST_NAME);
        Picture { name, header, tensors, empty, runs, joined, misplaced }
    }

    /// The first 8 bytes of the file. The header was read by them.
    pub fn word(&self) -> [u8; 8] {
        self.header.header_len().to_le_bytes()
    }

    /// The header's text without the padding at its end.
    pub fn text(&self) -> &'a str {
        self.header.text().trim_ascii_end()
    }

    /// The white space at the header's end, which N counts.
    pub fn padding(&self) -> &'a [u8] {
        &self.header.text().as_bytes()[self.text().len()..]
    }

    /// Bytes of white space before the brace.
    pub fn blanks_in_front(&self) -> usize {
        self.text().len() - self.text().trim_ascii_start().len()
    }

    /// Bytes of the file: that the last tensor ends there was proved.
    pub fn file_len(&self) -> u64 {
        self.header.data_start() + self.header.data_len()
    }

    /// The parts of the file, which touch.
    pub fn regions(&self) -> [Region; 4] {
        let text_end = self.word().len() as u64 + self.text().len() as u64;
        let data_start = self.header.data_start();
        [
            Region { name: "length word", range: 0..8 },
            Region { name: "header", range: 8..text_end },
            Region { name: "padding", range: text_end..data_start },
            Region { name: "tensors", range: data_start..self.file_len() },
        ]
    }

    /// Tensors that have bytes.
    pub fn full(&self) -> impl Iterator<Item = &TensorInfo<'a>> {
        self.tensors.iter().filter(|tensor| tensor.byte_len() > 0)
    }

    /// How the tensors of the picture were joined.
    pub fn how_joined(&self) -> String {
        let (tensors, runs) = (plural(self.tensors.len() as u64, "tensor"), self.runs.len());
        match self.joined {
            Joined::Not => format!("{tensors}, none joined"),
            Joined::ByName(1) => {
                format!("{tensors} in {runs} runs, joined by the first part of their names")
            }
            Joined::ByName(depth) => {
                format!(
                    "{tensors} in {runs} runs, joined by the first {depth} parts of their names"
                )
            }
            Joined::BySize => format!("{tensors} in {runs} runs of about one size"),
        }
    }

    /// The last tensor as the header has it, and as the file has it.
    pub fn last(&self) -> Option<[String; 2]> {
        let last = self.tensors.last()?;
        let ((begin, end), range) = (last.data_offsets(), last.file_range());
        let from = self.header.data_start();
        Some([
            format!("the last tensor has data_offsets [{begin},{end}],"),
            format!("counted from {from}: bytes {}..{} of the file", range.start, range.end),
        ])
    }

    /// Whether the tensors begin at a multiple of 8, as the padding is meant to make them.
    pub fn multiple_of_8(&self) -> String {
        let data_start = self.header.data_start();
        let is = if data_start % 8 == 0 { "a" } else { "no" };
        format!("8 + N = {data_start}, {is} multiple of 8")
    }
}

fn misplaced(tensors: &[TensorInfo<'_>]) -> Vec<Misplaced> {
    let count = |of, wanted: &dyn Fn(&TensorInfo<'_>) -> u64| {
        let off = |tensor: &&TensorInfo<'_>| {
            tensor.byte_len() > 0 && tensor.file_range().start % wanted(tensor) != 0
        };
        Misplaced { of, tensors: tensors.iter().filter(off).count() }
    };
    vec![
        count("their element", &|tensor| tensor.dtype().natural_alignment() as u64),
        count("4 bytes", &|_| 4),
        count("64 bytes, a cache line of x86-64", &|_| 64),
        count("4096 bytes, a page of most machines", &|_| 4096),
        count("16384 bytes, a page of Apple silicon", &|_| 16384),
    ]
}

/// The sign of a run in both pictures.
pub fn letter(run: usize) -> char {
    (b'a'..=b'z').chain(b'A'..=b'Z').nth(run).map_or('?', char::from)
}

/// A part of a whole, as `26.2 %`. Neither something nor all is said where it is only nearly so.
pub fn share(part: u64, whole: u64) -> String {
    let percent = part as f64 / whole as f64 * 100.0;
    match part {
        0 => "0 %".to_owned(),
        part if part == whole => "100 %".to_owned(),
        _ if percent < 0.05 => "< 0.1 %".to_owned(),
        _ if percent >= 99.95 => "> 99.9 %".to_owned(),
        _ => format!("{percent:.1} %"),
    }
}

/// `1 tensor`, `2 tensors`.
pub fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The padding as the bytes it is: the first of them.
pub fn hex(bytes: &[u8]) -> String {
    const MOST: usize = 8;
    let mut shown: Vec<String> =
        bytes.iter().take(MOST).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > MOST {
        shown.push("…".to_owned());
    }
    shown.join(" ")
}
