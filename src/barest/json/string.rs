//! Where does this string end, and what does it say once its escapes are resolved?
//!
//! A string without escapes is a range of the text and stays one. Escapes are checked when the
//! string is passed, and resolved only when somebody wants to compare or to read it.

use super::super::error::{Error, ErrorKind, Result};
use super::cursor::Cursor;
use super::escapes::pass_blocks;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

/// A string of the text: where its characters stand, without the quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    /// The first byte. Positions fit 32 bits since no header is longer.
    pub start: u32,
    /// Bytes as written.
    pub len: u32,
    /// Whether a backslash occurs, so that the string is not what is written.
    pub escaped: bool,
}

impl Text {
    /// Where it stands in the text.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }

    /// The string itself; a copy only if there are escapes to resolve.
    pub fn resolve(self, text: &str) -> Cow<'_, str> {
        match self.escaped {
            true => Cow::Owned(self.characters(text).collect()),
            false => Cow::Borrowed(&text[self.range()]),
        }
    }

    /// Whether the string is this one, compared after resolving and without a copy.
    pub fn is(self, text: &str, other: &str) -> bool {
        match self.escaped {
            true => self.characters(text).eq(other.chars()),
            false => &text[self.range()] == other,
        }
    }

    /// How it and another string of the same text are ordered: by their characters, which is the
    /// order of their UTF-8 bytes. Resolves nothing into memory.
    pub fn compare(self, other: Text, text: &str) -> Ordering {
        match self.escaped || other.escaped {
            true => self.characters(text).cmp(other.characters(text)),
            false => text[self.range()].cmp(&text[other.range()]),
        }
    }

    /// Its characters, escapes resolved. The escapes were checked when the cursor passed them;
    /// should one be wrong all the same, the string ends there.
    pub fn characters(self, text: &str) -> impl Iterator<Item = char> + '_ {
        let mut rest = &text[self.range()];
        std::iter::from_fn(move || {
            let (character, len) = match rest.as_bytes().first()? {
                b'\\' => resolve_escape(rest.as_bytes(), 0).ok()?,
                _ => {
                    let character = rest.chars().next()?;
                    (character, character.len_utf8())
                }
            };
            rest = &rest[len..];
            Some(character)
        })
    }
}

/// After so many escapes, more are expected.
const MANY: usize = 4;

impl Cursor<'_> {
    /// Moves over a string, from quote to quote. `what` names it in the error.
    pub fn string(&mut self, what: &'static str) -> Result<Text> {
        if !self.take(b'"') {
            return Err(self.unexpected(what));
        }
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut escapes = 0;
        loop {
            self.at = next_special(bytes, self.at);
            match bytes.get(self.at) {
                Some(b'"') => {
                    let len = (self.at - start) as u32;
                    self.at += 1;
                    return Ok(Text { start: start as u32, len, escaped: escapes > 0 });
                }
                Some(b'\\') => {
                    escapes += 1;
                    if escapes == MANY {
                        self.at = pass_blocks(bytes, self.at);
                        continue;
                    }
                    self.at += match bytes.get(self.at + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                        _ => resolve_escape(bytes, self.at)?.1,
                    };
                }
                Some(_) => {
                    return Err(self.unexpected("a character (control bytes must be escaped)"));
                }
                None => return Err(self.unexpected("`\"` to end the string")),
            }
        }
    }
}

impl Cursor<'_> {
    /// Moves over a string without escapes and over what stands `behind` its last character, if that
    /// is the text given, which begins with the quote; otherwise stays where it is.
    #[inline]
    pub fn string_before(&mut self, behind: &str) -> Option<Text> {
        let bytes = self.text.as_bytes();
        if behind.is_empty() || self.peek() != Some(b'"') {
            return None;
        }
        let start = self.at + 1;
        let end = next_special(bytes, start);
        if !bytes[end..].starts_with(behind.as_bytes()) {
            return None;
        }
        self.at = end + behind.len();
        Some(Text { start: start as u32, len: (end - start) as u32, escaped: false })
    }
}

/// Position, at or after `at`, of the first quote, backslash or control byte; the length if there
/// is none.
#[inline(always)]
pub fn next_special(bytes: &[u8], at: usize) -> usize {
    let mut rest = bytes.get(at..).unwrap_or_default();
    // Most names end within a few steps; what is longer is passed in larger ones.
    for _ in 0..STEPS_FIRST {
        match rest.split_first_chunk() {
            Some((sixteen, tail)) => match first_special(sixteen) {
                Some(place) => return bytes.len() - rest.len() + place,
                None => rest = tail,
            },
            None => break,
        }
    }
    next_special_further(bytes, bytes.len() - rest.len())
}

const STEPS_FIRST: usize = 8;

#[inline(never)]
fn next_special_further(bytes: &[u8], at: usize) -> usize {
    let mut rest = bytes.get(at..).unwrap_or_default();
    while let Some((chunk, tail)) = rest.split_first_chunk::<CHUNK>() {
        let lowest = chunk.iter().fold((0xff, 0xff), |(quotes, backslashes), &byte| {
            (quotes.min(byte ^ FOR_QUOTES), backslashes.min(byte ^ b'\\'))
        });
        if lowest.0 <= QUOTE || lowest.1 == 0 {
            break;
        }
        rest = tail;
    }
    while let Some((sixteen, tail)) = rest.split_first_chunk() {
        if let Some(place) = first_special(sixteen) {
            return bytes.len() - rest.len() + place;
        }
        rest = tail;
    }
    let place = rest.iter().position(|&byte| is_special(byte));
    bytes.len() - rest.len() + place.unwrap_or(rest.len())
}

const CHUNK: usize = 1024;

/// Makes of a quote the number behind the control bytes, and of those each other: one comparison finds
/// all.
const FOR_QUOTES: u8 = b'"' ^ QUOTE;
const QUOTE: u8 = b' ';

/// Without a branch, so that compilers compare many bytes at once, on every machine that can.
#[inline]
fn is_special(byte: u8) -> bool {
    (byte ^ FOR_QUOTES).saturating_sub(QUOTE).min(byte ^ b'\\') == 0
}

/// The place of the first quote, backslash or control byte among sixteen.
#[inline(always)]
fn first_special(sixteen: &[u8; 16]) -> Option<usize> {
    if !sixteen.iter().fold(false, |any, &byte| any | is_special(byte)) {
        return None;
    }
    // Which it is, is told by words: compilers make more of finding a place than it is.
    let both = u128::from_le_bytes(*sixteen);
    let (first, second) = (specials(both as u64), specials((both >> 64) as u64));
    let place = match first {
        0 => 64 + second.trailing_zeros(),
        _ => first.trailing_zeros(),
    };
    Some((place / 8) as usize)
}

/// The top bit of each byte that is special. Those above the first may be wrong: subtraction carries
/// upwards.
#[inline(always)]
fn specials(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x8080_8080_8080_8080;
    let quotes = (word ^ (EACH * FOR_QUOTES as u64)).wrapping_sub(EACH * (QUOTE + 1) as u64);
    let backslashes = (word ^ (EACH * b'\\' as u64)).wrapping_sub(EACH);
    (quotes | backslashes) & !word & TOP
}

/// The character that the escape at `at` (a backslash) stands for, and the bytes it takes.
pub(super) fn resolve_escape(bytes: &[u8], at: usize) -> Result<(char, usize)> {
    let fail = |at: usize, expected| {
        Err(Error::at_header(ErrorKind::Syntax { expected, found: bytes.get(at).copied() }, at))
    };
    let simple = match bytes.get(at + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let first = match four_hex_digits(bytes, at + 2) {
                Ok(unit) => unit,
                Err(at) => return fail(at, "four hexadecimal digits after `\\u`"),
            };
            if let Some(character) = char::from_u32(first) {
                return Ok((character, 6));
            }
            // A surrogate: only a high one with a low one behind it is a character.
            const LONE: &str = "the escape of a low surrogate after that of a high one";
            if first >= 0xdc00 {
                return fail(at, "a character, not a low surrogate alone");
            }
            if bytes.get(at + 6..at + 8) != Some(b"\\u") {
                return fail(at + 6, LONE);
            }
            return match four_hex_digits(bytes, at + 8) {
                Ok(second @ 0xdc00..=0xdfff) => {
                    let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                    Ok((char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12))
                }
                Ok(_) => fail(at + 6, LONE),
                Err(at) => fail(at, "four hexadecimal digits after `\\u`"),
            };
        }
        _ => return fail(at + 1, "one of `\"\\/bfnrtu` after the backslash"),
    };
    Ok((simple, 2))
}

/// Their value, or the position of the first byte that is none.
fn four_hex_digits(bytes: &[u8], at: usize) -> std::result::Result<u32, usize> {
    let mut value = 0;
    for position in at..at + 4 {
        let digit = bytes.get(position).and_then(|&byte| char::from(byte).to_digit(16));
        value = value << 4 | digit.ok_or(position)?;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> std::result::Result<String, usize> {
        let mut cursor = Cursor::new(text);
        match cursor.string("a string") {
            Ok(string) => {
                let resolved = string.resolve(text).into_owned();
                assert!(string.is(text, &resolved) && !string.is(text, "another"));
                Ok(resolved)
            }
            Err(error) => Err(error.header_position().unwrap()),
        }
    }

    #[test]
    fn escapes_resolve_to_their_characters() {
        for (text, string) in [
            (r#""""#, ""),
            (r#""plain""#, "plain"),
            (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r#""\u0041\u00e9\u00E9\u0000""#, "Aéé\0"),
            (r#""\ud83e\udd80 \uD83E\uDD80""#, "🦀 🦀"),
            (r#""\ud800\udc00\udbff\udfff""#, "\u{10000}\u{10ffff}"),
            ("\"é🦀\u{7f}\u{ffff}\"", "é🦀\u{7f}\u{ffff}"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(string), "{text}");
        }
    }

    #[test]
    fn strings_are_ordered_as_their_bytes_are() {
        let strings = [
            (r#""""#, ""),
            (r#""\u0000""#, "\0"),
            (r#""A""#, "A"),
            (r#""\u0061""#, "a"),
            (r#""a""#, "a"),
            (r#""ab""#, "ab"),
            (r#""\u00e9""#, "é"),
            ("\"\u{ffff}\"", "\u{ffff}"),
            (r#""\ud83e\udd80""#, "🦀"),
        ];
        for (one, resolved) in strings {
            for (other, other_resolved) in strings {
                let text = format!("{one}{other}");
                let mut cursor = Cursor::new(&text);
                let [first, second] = [(); 2].map(|()| cursor.string("a string").unwrap());
                let expected = resolved.as_bytes().cmp(other_resolved.as_bytes());
                assert_eq!(first.compare(second, &text), expected, "{one} {other}");
            }
        }
    }

    #[test]
    fn what_is_no_string_fails_at_its_byte() {
        for (text, at) in [
            ("x", 0),
            ("\"", 1),
            ("\"abc", 4),
            ("\"abcdefgh\n\"", 9),
            ("\"\0\"", 1),
            ("\"\u{1f}\"", 1),
            (r#""\x41""#, 2),
            (r#""\U0041""#, 2),
            (r#""\"#, 2),
            (r#""\u12"#, 5),
            (r#""\u12g4""#, 5),
            (r#""\u+123""#, 3),
            (r#""\ud83e""#, 7),
            (r#""\ud83e\n""#, 7),
            (r#""\ud83e\ud83e""#, 7),
            (r#""\ud83e\u0041""#, 7),
            (r#""\udd80""#, 1),
        ] {
            assert_eq!(read(text), Err(at), "{text}");
        }
    }

    /// Every special byte at every distance, with every byte before it: the eight-at-a-time scan
    /// against the one-at-a-time rule.
    #[test]
    fn the_scan_finds_what_the_rule_names() {
        let rule = |byte: u8| byte == b'"' || byte == b'\\' || byte < 0x20;
        for filler in 0..=255u8 {
            for special in 0..=255u8 {
                for at in 0..18 {
                    let mut bytes = [filler; 18];
                    bytes[at] = special;
                    let expected = bytes.iter().position(|&byte| rule(byte)).unwrap_or(18);
                    assert_eq!(next_special(&bytes, 0), expected, "{filler} {special} {at}");
                }
            }
        }
        assert_eq!(next_special(b"\"", 1), 1);
    }

    /// Far away, where larger steps are taken: one special byte, two beside each other, or none.
    #[test]
    fn the_scan_finds_what_is_far_away() {
        for len in [0, 1, 127, 128, 129, 1151, 1152, 1153, 2400] {
            for specials in ["\"", "\\", "\n", "\"\"", "\\\"", "\0\0", ""] {
                for tail in [0, 1, 15, 16, 255, 1023, 1024, 1100] {
                    let text = format!("\"{}{specials}{}", "x".repeat(len), "x".repeat(tail));
                    let end = if specials.is_empty() { text.len() } else { 1 + len };
                    assert_eq!(next_special(text.as_bytes(), 1), end, "{len} {specials:?} {tail}");
                }
            }
        }
    }
}
