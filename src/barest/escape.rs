//! How is a name that an attacker chose shown on a terminal, and written into JSON?
//!
//! A tensor's name is any Unicode text: it may hold `ESC [2J`, a newline, a NUL, or a mark that
//! makes the rest of the line run from right to left. Nothing of that reaches a terminal raw.
//!
//! ```text
//!   "blk.0\u001b[2J"   --Shown-->   blk.0\u{1b}[2J      what a person reads
//!                      --Json--->   "blk.0\u001b[2J"    what a program reads back, lossless
//! ```

use std::fmt::{self, Display, Formatter, Write};

/// Text for people: characters that do not print, or that would move the cursor or hide
/// themselves, appear as escapes (`\n`, `\u{1b}`), and a backslash as `\\`. No copy is made.
pub struct Shown<'a>(pub &'a str);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '\'' | '"' => f.write_char(character),
            // std's table of what prints leaves out control, format (bidi, zero width), private
            // and unassigned characters, and all blanks but the space.
            other => write!(f, "{}", other.escape_debug()),
        })
    }
}

/// As [`Shown`], but a text of more than [`LONGEST_SHOWN`] characters is cut and ends in `…`:
/// for messages, which a name of a megabyte must not flood.
pub struct Brief<'a>(pub &'a str);

/// How many characters of a name a message shows.
pub const LONGEST_SHOWN: usize = 80;

impl Display for Brief<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(LONGEST_SHOWN) {
            None => write!(f, "{}", Shown(self.0)),
            Some((end, _)) => write!(f, "{}…", Shown(&self.0[..end])),
        }
    }
}

/// A shape as the format writes it, `[576,1536]`; of more than 8 dimensions the first 8 and their
/// number, since a shape may have millions.
pub struct Shape<'a>(pub &'a [u64]);

impl Display for Shape<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const MOST: usize = 8;
        f.write_char('[')?;
        for (axis, dimension) in self.0.iter().take(MOST).enumerate() {
            let comma = if axis > 0 { "," } else { "" };
            write!(f, "{comma}{dimension}")?;
        }
        if self.0.len() > MOST {
            write!(f, ",… {} dimensions", self.0.len())?;
        }
        f.write_char(']')
    }
}

/// Text as a JSON string with its quotes, in ASCII where the character does not print: it reads
/// back to exactly the same text and is safe to show on a terminal.
pub struct Json<'a>(pub &'a str);

impl Display for Json<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\'' => f.write_char('\'')?,
                other if other.escape_debug().len() == 1 => f.write_char(other)?,
                other => {
                    for unit in other.encode_utf16(&mut [0; 2]) {
                        write!(f, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_an_escape() {
        for (raw, shown) in [
            ("model.norm.weight", "model.norm.weight"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("a\nb\tc\0", "a\\nb\\tc\\0"),
            ("\u{202e}evil", "\\u{202e}evil"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
            ("no-break\u{a0}space", "no-break\\u{a0}space"),
            ("c1 \u{9b}31m", "c1 \\u{9b}31m"),
            ("back\\slash", "back\\\\slash"),
            ("'quoted\"", "'quoted\""),
            ("é 青い目 🦀", "é 青い目 🦀"),
        ] {
            assert_eq!(Shown(raw).to_string(), shown);
        }
    }

    #[test]
    fn composed_and_decomposed_letters_do_not_look_the_same() {
        assert_ne!(Shown("\u{e9}").to_string(), Shown("e\u{301}").to_string());
        assert_eq!(Shown("e\u{301}").to_string(), "e\\u{301}");
    }

    #[test]
    fn json_strings_are_lossless_and_hold_no_raw_control() {
        for (raw, json) in [
            ("", r#""""#),
            ("a\"b\\c/", r#""a\"b\\c/""#),
            ("\n\r\t\0\u{1b}\u{7f}", r#""\n\r\t\u0000\u001b\u007f""#),
            ("\u{202e}\u{ffff}", r#""\u202e\uffff""#),
            ("\u{10ffff}", r#""\udbff\udfff""#),
            ("é🦀", r#""é🦀""#),
        ] {
            assert_eq!(Json(raw).to_string(), json);
        }
    }

    #[test]
    fn a_long_shape_is_shortened() {
        assert_eq!(Shape(&[]).to_string(), "[]");
        assert_eq!(Shape(&[2, 3]).to_string(), "[2,3]");
        assert_eq!(Shape(&[1; 9]).to_string(), "[1,1,1,1,1,1,1,1,… 9 dimensions]");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let name = "é".repeat(LONGEST_SHOWN + 1);
        assert_eq!(Brief(&name).to_string(), format!("{}…", "é".repeat(LONGEST_SHOWN)));
        assert_eq!(Brief(&name[..LONGEST_SHOWN * 2]).to_string(), "é".repeat(LONGEST_SHOWN));
    }
}
