//! How much of the header is shown?
//!
//! Its first lines and its last ones, escaped. A header may have 100 MB: only what is shown is
//! looked at.

use barest::escape::Shown;

/// Lines of text, each of so many columns at most.
pub struct Excerpt {
    pub first: Vec<String>,
    /// Bytes that are left out between them.
    pub hidden: usize,
    pub last: Vec<String>,
}

/// Lines at either end.
const LINES: usize = 2;

/// What is shown of a text in lines of so many columns: both ends, or all of it if they meet.
pub fn excerpt(text: &str, columns: usize) -> Excerpt {
    let (first, from_front) = wrap(text.chars(), columns, LINES);
    let (mut last, from_back) = wrap(text.chars().rev(), columns, LINES);
    if from_front + from_back >= text.len() {
        let (first, _) = wrap(text.chars(), columns, usize::MAX);
        return Excerpt { first: join(first), hidden: 0, last: Vec::new() };
    }
    last.iter_mut().for_each(|line| line.reverse());
    last.reverse();
    Excerpt { first: join(first), hidden: text.len() - from_front - from_back, last: join(last) }
}

type Pieces = Vec<Vec<String>>;

fn join(lines: Pieces) -> Vec<String> {
    lines.into_iter().map(|pieces| pieces.concat()).collect()
}

/// Lines of escaped characters, and how many bytes of text went into them. No escape is torn.
fn wrap(characters: impl Iterator<Item = char>, columns: usize, most: usize) -> (Pieces, usize) {
    let (mut lines, mut line, mut left, mut bytes) = (Vec::new(), Vec::new(), columns, 0);
    for character in characters {
        let piece = shown(character);
        if width(&piece) > left {
            lines.push(std::mem::take(&mut line));
            left = columns;
        }
        if lines.len() == most {
            return (lines, bytes);
        }
        left = left.saturating_sub(width(&piece));
        bytes += character.len_utf8();
        line.push(piece);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    (lines, bytes)
}

fn shown(character: char) -> String {
    Shown(character.encode_utf8(&mut [0; 4])).to_string()
}

/// Columns that an escaped text takes, or less: what is not ASCII may be wide.
fn width(text: &str) -> usize {
    text.chars().map(|character| if character.is_ascii() { 1 } else { 2 }).sum()
}

/// A name, escaped, with its middle left out where it would take more columns; in quotes if its
/// ends could not be seen.
pub fn name(name: &str, columns: usize) -> String {
    if name.is_empty() || name.starts_with(' ') || name.ends_with(' ') {
        return format!("\"{}\"", middle_out(name, columns.saturating_sub(2)));
    }
    middle_out(name, columns)
}

fn middle_out(text: &str, columns: usize) -> String {
    let (all, bytes) = wrap(text.chars(), columns, 1);
    if bytes == text.len() {
        return all.concat().concat();
    }
    // Names of one model differ at their ends more than in front.
    let room = columns.saturating_sub(2);
    let (front, _) = wrap(text.chars(), room * 2 / 5, 1);
    let (mut back, _) = wrap(text.chars().rev(), room - room * 2 / 5, 1);
    back.iter_mut().for_each(|line| line.reverse());
    format!("{}…{}", front.concat().concat(), back.concat().concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_shown_or_all_of_it() {
        let Excerpt { first, hidden, last } = excerpt("abcdefghijkl", 2);
        assert_eq!((first.join("|"), hidden, last.join("|")), ("ab|cd".into(), 4, "ij|kl".into()));
        let Excerpt { first, hidden, last } = excerpt("abcdefg", 2);
        assert_eq!((first.join("|"), hidden, last.len()), ("ab|cd|ef|g".into(), 0, 0));
        let Excerpt { first, hidden, last } = excerpt("", 2);
        assert_eq!((first.len(), hidden, last.len()), (0, 0, 0));
    }

    #[test]
    fn no_escape_is_torn_and_none_is_left_raw() {
        let text = "a\u{1b}b\n\u{202e}".repeat(100);
        let Excerpt { first, hidden, last } = excerpt(&text, 9);
        assert_eq!(first, ["a\\u{1b}b", "\\n"]);
        assert_eq!(last, ["\\u{1b}b\\n", "\\u{202e}"]);
        assert_eq!(hidden, text.len() - "a\u{1b}b\n\u{1b}b\n\u{202e}".len());
    }

    #[test]
    fn a_long_name_loses_its_middle_and_blank_ends_are_quoted() {
        for (raw, shown) in [
            ("model.norm", "model.norm"),
            ("model.layers.0", "mode…yers.0"),
            ("", "\"\""),
            (" a", "\" a\""),
            ("e\u{301}", "e\\u{301}"),
        ] {
            assert_eq!(name(raw, 12), shown);
        }
    }
}
