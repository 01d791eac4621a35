//! Where in the header is it?
//!
//! An error keeps a few bytes of the private copy around the place, and draws them with a caret.

use std::ops::Range;

/// How many bytes of the header an error keeps.
const EXCERPT_BYTES: usize = 96;

pub struct Excerpt {
    /// Absolute file offset of the first byte.
    offset: u64,
    bytes: Vec<u8>,
    /// Which of the bytes the caret stands under; their number, if it stands behind the last.
    mark: usize,
}

impl Excerpt {
    /// Around a place of a text that begins at `start_of_text`, in bytes from the start of the file.
    pub fn around(text: &[u8], start_of_text: u64, position: usize) -> Excerpt {
        let position = position.min(text.len());
        // Two thirds before the place: that is where the reader learns which field it is.
        let end = (position + EXCERPT_BYTES / 3).min(text.len());
        let start = position.saturating_sub(EXCERPT_BYTES * 2 / 3);
        Excerpt {
            offset: start_of_text + start as u64,
            bytes: text[start..end].to_vec(),
            mark: position - start,
        }
    }

    /// Counts from the start of a file in which this text's own begins so many bytes later.
    pub fn move_by(&mut self, bytes: u64) {
        self.offset = self.offset.saturating_add(bytes);
    }

    pub fn draw(&self, columns: usize) -> String {
        /// Columns before the bytes: an offset of 8 digits and a bar.
        const MARGIN: usize = 11;
        let escaped = |byte: &u8| match byte {
            b'"' | b'\'' => char::from(*byte).to_string(),
            _ => byte.escape_ascii().to_string(),
        };
        let bytes: Vec<String> = self.bytes.iter().map(escaped).collect();
        // What does not fit is left out: behind the mark first, as long as a third remains there.
        let width = |range: Range<usize>| bytes[range].iter().map(String::len).sum::<usize>();
        let room = columns.saturating_sub(MARGIN);
        let (mut start, mut end) = (0, bytes.len());
        while width(start..end) > room {
            let behind = width(self.mark..end);
            match behind > room / 3 && end > self.mark + 1 || start == self.mark {
                true => end -= 1,
                false => start += 1,
            }
        }
        let before = bytes[start..self.mark].concat();
        let behind = bytes[self.mark..end.max(self.mark)].concat();
        let offset = self.offset + start as u64;
        format!(
            "{offset:>8} | {before}{behind}\n         | {:>width$}",
            '^',
            width = before.len() + 1
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Error, ErrorKind};
    use super::*;

    #[test]
    fn the_caret_stands_under_the_byte_also_behind_escapes_and_at_the_end() {
        let header = b"{\"\xff\n\":4.0}";
        let shown = r#"       8 | {"\xff\n":4.0}"#;
        for (position, caret) in [
            (0, r#"         | ^"#),
            (4, r#"         |         ^"#),
            (7, r#"         |            ^"#),
            (10, r#"         |               ^"#),
        ] {
            let error = Error::at_header(ErrorKind::NumberOutOfRange, position);
            let drawn = error.with_excerpt_of(header).caret().unwrap();
            assert_eq!(drawn, format!("{shown}\n{caret}"), "{position}");
        }
    }

    #[test]
    fn a_narrow_terminal_gets_less_around_the_same_place() {
        let header = vec![b'x'; 1_000];
        let error = Error::at_header(ErrorKind::NumberOutOfRange, 500).with_excerpt_of(&header);
        for columns in 40..130 {
            let drawn = error.caret_within(columns).unwrap();
            let (excerpt, caret) = drawn.split_once('\n').unwrap();
            assert!(excerpt.len() <= columns, "{columns}: {drawn}");
            // The number is the offset of the first byte shown, so the caret's place is its own.
            let first: usize = excerpt[..8].trim().parse().unwrap();
            assert_eq!(first + caret.find('^').unwrap() - 11, 508, "{columns}: {drawn}");
        }
    }

    #[test]
    fn an_excerpt_keeps_96_bytes_of_a_long_header() {
        let header = vec![b'x'; 10_000];
        let excerpt = Excerpt::around(&header, 8, 5_000);
        assert_eq!(excerpt.bytes.len(), EXCERPT_BYTES);
        assert_eq!(excerpt.offset + excerpt.mark as u64, super::super::HEADER_START + 5_000);
    }
}
