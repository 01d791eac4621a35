//! Where in a header does `__metadata__` stand?
//!
//! A change of it leaves every other byte of the header as its writer spelled it.

use super::super::error::Result;
use super::super::json::Cursor;
use super::text::METADATA;
use std::ops::Range;

/// The place in the text of a header.
pub enum Place {
    /// Its value.
    Value(Range<usize>),
    /// It is not there: where it would stand, behind the opening brace.
    Absent(usize),
}

/// Looks for it in a header that was proved. Its first 13 bytes are at the front of most files;
/// members before it are passed over.
pub fn metadata(text: &str) -> Result<Place> {
    let mut cursor = Cursor::new(text);
    cursor.expect(b'{', "`{` to begin the header")?;
    let front = cursor.position();
    cursor.skip_blanks();
    let mut more = !cursor.take(b'}');
    while more {
        let key = cursor.string("a name in quotes")?;
        cursor.expect(b':', "`:` after the name")?;
        cursor.skip_blanks();
        let start = cursor.position();
        cursor.skip_value(1)?;
        if key.is(text, METADATA) {
            return Ok(Place::Value(start..cursor.position()));
        }
        more = cursor.another(b'}', "`,` or `}` in the header")?;
    }
    Ok(Place::Absent(front))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_found_in_every_spelling() {
        for (text, expected) in [
            (r#"{"__metadata__":{"a":"}"},"t":1}"#, Some(r#"{"a":"}"}"#)),
            (r#"  { "t" : {"x":[{}]} , "__metadata__" : null }  "#, Some("null")),
            (r#"{"\u005f_metadata__":{}}"#, Some("{}")),
            (r#"{"t":{"__metadata__":{}}}"#, None),
            ("{}", None),
        ] {
            match metadata(text).unwrap() {
                Place::Value(range) => assert_eq!(Some(&text[range]), expected),
                Place::Absent(at) => {
                    assert_eq!(expected, None, "{text}");
                    assert_eq!(&text[at - 1..at], "{");
                }
            }
        }
    }
}
