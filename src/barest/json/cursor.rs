//! What stands at this position, and is it what the format wants there?

use super::super::error::{Error, ErrorKind, Result};
use std::borrow::Cow;

/// A position in a text. Methods move it forward over what they accept and leave it at the
/// offending byte when they fail.
#[derive(Clone)]
pub struct Cursor<'a> {
    pub(super) text: &'a str,
    /// INVARIANT: at most `text.len()`.
    pub(super) at: usize,
}

/// Arrays and objects within each other that the reference follows, the outermost included.
const DEEPEST: usize = 127;

impl<'a> Cursor<'a> {
    /// At the start of a text.
    pub fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    /// Moves to a position that another reader of the same text has reached.
    pub fn move_to(&mut self, position: usize) {
        self.at = position.min(self.text.len());
    }

    /// Bytes from the start of the text.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The byte at the position; `None` at the end.
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Moves over JSON's white space: space, tab, line feed, carriage return.
    pub fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Moves over one byte if it is the one given.
    pub fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Moves over white space and then over one byte, which must be the one given. `what` names it
    /// in the error.
    pub fn expect(&mut self, byte: u8, what: &'static str) -> Result<()> {
        self.skip_blanks();
        if self.take(byte) { Ok(()) } else { Err(self.unexpected(what)) }
    }

    /// Moves over what separates members: true after a comma, false after the closing bracket.
    pub fn another(&mut self, close: u8, what: &'static str) -> Result<bool> {
        self.skip_blanks();
        if self.take(b',') {
            self.skip_blanks();
            return Ok(true);
        }
        if self.take(close) { Ok(false) } else { Err(self.unexpected(what)) }
    }

    /// The error that something else stands here than `expected`.
    pub fn unexpected(&self, expected: &'static str) -> Error {
        Error::at_header(ErrorKind::Syntax { expected, found: self.peek() }, self.at)
    }

    /// The error that the value here is of another type than `what` should have; or that there is
    /// no value here at all.
    pub fn wrong_type(&self, what: impl Into<Cow<'static, str>>, expected: &'static str) -> Error {
        let Some(found) = self.kind() else {
            return self.unexpected(expected);
        };
        let kind = ErrorKind::WrongType { what: what.into(), expected, found };
        Error::at_header(kind, self.at)
    }

    /// The type of the value that begins here, with its article, told by its first byte; `None` if
    /// none can begin so.
    pub fn kind(&self) -> Option<&'static str> {
        Some(match self.peek()? {
            b'{' => "an object",
            b'[' => "an array",
            b'"' => "a string",
            b't' | b'f' => "a boolean",
            b'n' => "null",
            b'-' | b'0'..=b'9' => "a number",
            _ => return None,
        })
    }

    /// Moves over one of the words of JSON if it stands here.
    pub fn take_word(&mut self, word: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Moves over one value of any type, checking it, where `outside` arrays and objects are
    /// already open around it.
    ///
    /// Nesting costs a bit, not a stack frame: bit 0 of `objects` says whether the innermost open
    /// container is an object, bit 1 the one around it, and so on.
    pub fn skip_value(&mut self, outside: usize) -> Result<()> {
        let mut objects = 0u128;
        let mut depth = 0;
        loop {
            // 1. A value begins here.
            self.skip_blanks();
            match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    if outside + depth == DEEPEST {
                        return Err(Error::at_header(
                            ErrorKind::TooDeep { expected: DEEPEST },
                            self.at,
                        ));
                    }
                    self.at += 1;
                    self.skip_blanks();
                    let is_object = open == b'{';
                    if !self.take(if is_object { b'}' } else { b']' }) {
                        objects = objects << 1 | u128::from(is_object);
                        depth += 1;
                        if is_object {
                            self.skip_key()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => {
                    self.string("a string")?;
                }
                Some(b'-' | b'0'..=b'9') => self.skip_number()?,
                _ if self.take_word("true") || self.take_word("false") => {}
                _ if self.take_word("null") => {}
                _ => return Err(self.unexpected("a JSON value")),
            }
            // 2. A value has ended here, and perhaps what encloses it.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let in_object = objects & 1 == 1;
                let more = match in_object {
                    true => self.another(b'}', "`,` or `}`")?,
                    false => self.another(b']', "`,` or `]`")?,
                };
                if more {
                    if in_object {
                        self.skip_key()?;
                    }
                    break;
                }
                objects >>= 1;
                depth -= 1;
            }
        }
    }

    fn skip_key(&mut self) -> Result<()> {
        self.string("`\"` to begin a key")?;
        self.expect(b':', "`:` after the key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(text: &str) -> std::result::Result<usize, (String, usize)> {
        let mut cursor = Cursor::new(text);
        match cursor.skip_value(0) {
            Ok(()) => Ok(cursor.position()),
            Err(error) => Err((error.kind().to_string(), error.header_position().unwrap())),
        }
    }

    #[test]
    fn values_of_every_type_are_skipped_to_their_end() {
        for text in [
            "0",
            "-0.5e+10",
            "\"a\\\"b\"",
            "true",
            "false",
            "null",
            "[]",
            "{}",
            "[ 1 , [ ] , { } ]",
            "{ \"a\" : [ { \"b\" : { } } , 2 ] , \"\" : null }",
        ] {
            assert_eq!(skip(text), Ok(text.len()), "{text}");
            assert_eq!(skip(&format!(" {text},")), Ok(text.len() + 1), "{text}");
        }
    }

    #[test]
    fn what_is_no_value_fails_at_its_byte() {
        for (text, at) in [
            ("", 0),
            ("tru", 0),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("[1", 2),
            ("{1:2}", 1),
            ("{\"a\" 2}", 5),
            ("{\"a\":2,}", 7),
            ("{\"a\":}", 5),
            ("[}", 1),
            ("{\"a\":1]", 6),
            ("nul", 0),
            ("+1", 0),
            ("\u{feff}1", 0),
        ] {
            assert_eq!(skip(text).unwrap_err().1, at, "{text}");
        }
    }

    #[test]
    fn the_deepest_level_is_the_reference_s_and_depth_costs_no_stack() {
        for (open, close) in [("[", "]"), ("{\"\":", "}")] {
            let nested = |levels| open.repeat(levels) + "0" + &close.repeat(levels);
            assert!(skip(&nested(DEEPEST)).is_ok());
            assert_eq!(
                skip(&nested(DEEPEST + 1)).unwrap_err().0,
                "nested too deep: more than 127 arrays and objects"
            );
            assert!(skip(&open.repeat(100_000)).is_err());
        }
        let mut cursor = Cursor::new("[[]]");
        assert!(cursor.clone().skip_value(DEEPEST - 2).is_ok());
        assert!(cursor.skip_value(DEEPEST - 1).is_err());
    }
}
