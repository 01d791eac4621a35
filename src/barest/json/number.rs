//! Which numbers does the format take, and which are merely JSON?
//!
//! A dimension or an offset is digits, read exactly as a `u64`: `1.0` and `1e3` are whole numbers
//! to a mathematician and floating-point numbers to the reference reader, which refuses them. A
//! number in a field that is ignored may be anything that JSON allows and an `f64` can hold.

use super::super::error::{Error, ErrorKind, Result};
use super::super::escape::Shown;
use super::cursor::Cursor;

impl Cursor<'_> {
    /// Moves over an unsigned integer and gives its value. `field` names it in the error.
    pub fn unsigned(&mut self, field: &'static str) -> Result<u64> {
        let start = self.at;
        let mut value = Some(0u64);
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let digit = u64::from(digit - b'0');
            value = value.and_then(|value| value.checked_mul(10)?.checked_add(digit));
            self.at += 1;
        }
        let digits = self.at - start;
        let leads_with_zero = digits > 1 && self.text.as_bytes()[start] == b'0';
        let goes_on = self.peek().is_some_and(is_part_of_number);
        match value {
            Some(value) if digits > 0 && !leads_with_zero && !goes_on => Ok(value),
            _ => {
                self.at = start;
                Err(self.not_an_integer(field))
            }
        }
    }

    /// The error for whatever stands here in the place of an integer.
    fn not_an_integer(&self, field: &'static str) -> Error {
        const LONGEST_SHOWN: usize = 24;
        let rest = &self.text[self.at..];
        let end = rest.bytes().position(|byte| !is_part_of_number(byte)).unwrap_or(rest.len());
        let found = match &rest[..end] {
            "" | "null" | "true" | "false" => match self.kind() {
                Some(kind) => kind.to_owned(),
                None => return self.unexpected("an unsigned integer"),
            },
            // All of it is ASCII, so it may be cut anywhere.
            long if long.len() > LONGEST_SHOWN => {
                format!("`{}…` ({} characters)", Shown(&long[..LONGEST_SHOWN]), long.len())
            }
            token => format!("`{}`", Shown(token)),
        };
        Error::at_header(ErrorKind::NotAnInteger { field, found }, self.at)
    }

    /// Moves over a number of any form that JSON has.
    pub(super) fn skip_number(&mut self) -> Result<()> {
        let start = self.at;
        self.take(b'-');
        // 1. The whole part: no leading zero.
        if !self.take(b'0') {
            self.digits("a digit")?;
        }
        // 2. A fraction and an exponent, each with at least one digit.
        if self.take(b'.') {
            self.digits("a digit after the point")?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits("a digit of the exponent")?;
        }
        // 3. The range.
        if in_range(&self.text[start..self.at]) {
            return Ok(());
        }
        Err(Error::at_header(ErrorKind::NumberOutOfRange, start))
    }

    fn digits(&mut self, expected: &'static str) -> Result<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(self.unexpected(expected)) }
    }
}

/// The value of the digits that `text` begins with, and what is behind them: 1 to 15 digits, without
/// a leading zero. `None` if there are none or more, or if the text ends before the last word of
/// eight bytes does: a caller in a hurry then takes [`Cursor::unsigned`].
///
/// Eight digits at a time: with the zeros of ASCII taken off, a byte above 9 ends the number, and
/// three multiplications add neighbours, pairs of neighbours, and pairs of pairs, each times its
/// power of ten. An entry has some twenty digits, and one by one each would wait for the one before.
#[inline(always)]
pub fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let (high, count) = eight_digits(text)?;
    let leads_with_zero = text[0] == b'0';
    if count < 8 {
        let is_number = count == 1 || count > 1 && !leads_with_zero;
        return is_number.then(|| (high, &text[count..]));
    }
    let (low, more) = eight_digits(&text[8..])?;
    if more == 8 || leads_with_zero {
        return None;
    }
    const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    Some((high * POWERS[more] + low, &text[8 + more..]))
}

/// The value of up to eight digits that `text` begins with, and their number.
#[inline(always)]
fn eight_digits(text: &[u8]) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(*text.first_chunk()?) ^ 0x3030_3030_3030_3030;
    // A byte above 9 gets a bit of its upper half set, by itself or by adding 6.
    let others = (word | word.wrapping_add(0x0606_0606_0606_0606)) & 0xf0f0_f0f0_f0f0_f0f0;
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return Some((0, 0));
    }
    // The last digit moves to the last byte; zeros come in where the first ones were not.
    let word = word << (64 - 8 * count);
    let pairs = word.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    Some((fours.wrapping_mul(10_000 << 32 | 1) >> 32, count))
}

/// What a reader takes for one word with the digits before it, right or wrong.
fn is_part_of_number(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
}

/// Whether the reference can hold the number as an `f64`. It multiplies rounded powers of ten, so
/// near the top of the range its last digit may differ from ours: we stop 15 digits up, and refuse
/// a little more than it does.
fn in_range(number: &str) -> bool {
    const TOP: f64 = 1.797_693_134_862_31e308;
    number.parse::<f64>().is_ok_and(|value| value.abs() <= TOP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsigned(text: &str) -> std::result::Result<(u64, usize), String> {
        let mut cursor = Cursor::new(text);
        match cursor.unsigned("shape") {
            Ok(value) => Ok((value, cursor.position())),
            Err(error) => {
                assert_eq!(error.header_position(), Some(0), "{text}");
                Err(error.kind().to_string())
            }
        }
    }

    #[test]
    fn integers_are_read_exactly_up_to_the_last() {
        for (text, value) in [
            ("0", 0),
            ("7]", 7),
            ("49152,", 49152),
            ("9007199254740993", 9_007_199_254_740_993),
            ("18446744073709551615", u64::MAX),
        ] {
            let digits = text.trim_end_matches([',', ']']).len();
            assert_eq!(unsigned(text), Ok((value, digits)), "{text}");
        }
    }

    #[test]
    fn everything_else_is_named() {
        for (text, named) in [
            ("4.0", "`4.0` is not"),
            ("1e3", "`1e3` is not"),
            ("1E3", "`1E3` is not"),
            ("-0", "`-0` is not"),
            ("-1", "`-1` is not"),
            ("+1", "`+1` is not"),
            ("00", "`00` is not"),
            ("01,", "`01` is not"),
            ("1_0", "`1_0` is not"),
            ("0x1", "`0x1` is not"),
            (".5", "`.5` is not"),
            ("1.", "`1.` is not"),
            ("NaN", "`NaN` is not"),
            ("Infinity", "`Infinity` is not"),
            ("18446744073709551616", "`18446744073709551616` is not"),
            ("\"4\"", "a string is not"),
            ("null", "null is not"),
            ("true", "a boolean is not"),
            ("[4]", "an array is not"),
            ("{}", "an object is not"),
            (",", "expected an unsigned integer, found `,`"),
            ("", "expected an unsigned integer, found the end of the text"),
        ] {
            let message = unsigned(text).unwrap_err();
            assert!(message.contains(named), "{text}: {message}");
        }
        let whole = unsigned(&"9".repeat(24)).unwrap_err();
        assert!(whole.contains("`999999999999999999999999`"), "{whole}");
        let long = unsigned(&"9".repeat(1000)).unwrap_err();
        assert!(long.contains("`999999999999999999999999…` (1000 characters)"), "{long}");
    }

    #[test]
    fn digits_in_a_hurry_are_the_same_number_or_none() {
        for value in (0..20_000).chain((1..=16).flat_map(|n| {
            let power = 10u64.pow(n);
            [power - 1, power, power / 9 * 8, power / 7]
        })) {
            let written = value.to_string();
            for tail in [",abcdefghijklmnop", "]\"/:;{}}~~~~~~~~~", " .e+-_         "] {
                let text = format!("{written}{tail}");
                let expected = (written.len() < 16).then_some((value, tail.as_bytes()));
                assert_eq!(digits(text.as_bytes()), expected, "{text}");
            }
            assert_eq!(digits(format!("0{written},       ,       ").as_bytes()), None);
        }
        for none in ["", ",       ", "1", "-1      ", "x1      ", "99999999", "123456789012345678"]
        {
            assert_eq!(digits(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn ignored_numbers_follow_the_grammar_and_the_range() {
        let skip = |text: &str| {
            let mut cursor = Cursor::new(text);
            cursor.skip_number().map(|()| cursor.position()).map_err(|e| e.header_position())
        };
        for text in ["0", "-0", "10", "0.5", "1e5", "1E+05", "-1.25e-400", "1.7e308", "0e999999"] {
            assert_eq!(skip(text), Ok(text.len()), "{text}");
        }
        assert_eq!(skip("01"), Ok(1), "the caller finds the 1");
        for (text, at) in [
            ("-", 1),
            ("1.", 2),
            (".5", 0),
            ("1e", 2),
            ("1e+", 3),
            ("-x", 1),
            ("1e309", 0),
            ("-1e999999999999", 0),
            ("1.7976931348623157e308", 0),
        ] {
            assert_eq!(skip(text), Err(Some(at)), "{text}");
        }
        assert_eq!(skip(&"9".repeat(1000)), Err(Some(0)));
    }
}
