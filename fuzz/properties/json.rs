//! Do we read JSON as `serde_json` does, wherever a header has a value?
//!
//! The same text is put where each kind of value stands: a field to be ignored, a name, a piece of
//! metadata, a dimension, an offset. Where `serde_json` sees one value in it, ours must see the same
//! or say why not; where it sees none, we may not either.

use barest::{ErrorKind, Header};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Tries a text in every place, and tells in how many it was a value.
pub fn judge(text: &[u8]) -> usize {
    let Ok(text) = std::str::from_utf8(text) else {
        let refusal = parse("{\"", text, "\":0}").expect_err("what is not UTF-8");
        assert!(matches!(refusal.kind(), ErrorKind::NotUtf8 { .. }), "{refusal}");
        return 0;
    };
    [ignored(text), name(text), metadata(text), dimension(text), offset(text)]
        .into_iter()
        .map(usize::from)
        .sum()
}

/// The header with a text between two others.
fn parse(before: &str, text: &[u8], after: &str) -> barest::Result<Header> {
    let header = [before.as_bytes(), text, after.as_bytes()].concat();
    let file = [&(header.len() as u64).to_le_bytes(), &header[..]].concat();
    Header::parse(&file, file.len() as u64)
}

/// What `serde_json` reads, if all of the text is one value of that type. (Its `IgnoredAny` would let
/// half a surrogate pair pass; what the reference ignores it has read as a value before.)
fn theirs<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// Arrays and objects within each other that a text seems to have, quotes or not: at least as many
/// as it has.
fn brackets(text: &str) -> usize {
    text.bytes().filter(|byte| b"[{".contains(byte)).count()
}

fn ignored(text: &str) -> bool {
    let ours = parse(
        r#"{"t":{"x":"#,
        text.as_bytes(),
        r#","dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#,
    );
    match (theirs::<Value>(text), ours) {
        (Some(_), Ok(header)) => {
            assert_eq!(header.len(), 1);
            true
        }
        (Some(_), Err(error)) => {
            match error.kind() {
                // Two levels are around it here.
                ErrorKind::TooDeep { .. } => assert!(brackets(text) > 125, "{error}"),
                ErrorKind::NumberOutOfRange => {
                    let rest = &text[error.offset().expect("a place") as usize - 18..];
                    let end =
                        rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
                    let number: f64 = rest[..end.unwrap_or(rest.len())].parse().expect("a number");
                    assert!(number.abs() > 1.797_693_134_862_31e308, "{error}");
                }
                _ => panic!("{error}: {text}"),
            }
            false
        }
        // It may end the field and begin another; but then all of it is JSON.
        (None, Ok(header)) => is_json(&header),
        (None, Err(_)) => false,
    }
}

fn is_json(header: &Header) -> bool {
    assert!(theirs::<Value>(header.text()).is_some(), "only we accept {}", header.text());
    false
}

fn name(text: &str) -> bool {
    let ours = parse("{", text.as_bytes(), r#":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#);
    match (theirs::<String>(text), ours) {
        (Some(name), Ok(header)) => {
            let names: Vec<&str> = header.tensors().map(|tensor| tensor.name()).collect();
            assert_eq!(names, [&name]);
            assert!(header.tensor(&name).is_some());
            true
        }
        (Some(name), Err(error)) => {
            assert_eq!(name, "__metadata__", "{error}: {text}");
            false
        }
        (None, Ok(header)) => is_json(&header),
        (None, Err(_)) => false,
    }
}

fn metadata(text: &str) -> bool {
    let ours = parse(r#"{"__metadata__":{"k":"#, text.as_bytes(), "}}");
    match (theirs::<String>(text), ours) {
        (Some(value), ours) => {
            let header = ours.unwrap_or_else(|error| panic!("{error}: {text}"));
            let metadata = header.metadata().expect("metadata");
            assert_eq!(metadata.get("k").as_deref(), Some(&*value));
            assert_eq!(metadata.len(), 1);
            true
        }
        (None, Ok(header)) => is_json(&header),
        (None, Err(_)) => false,
    }
}

fn dimension(text: &str) -> bool {
    let ours =
        parse(r#"{"t":{"dtype":"U8","shape":[0,"#, text.as_bytes(), r#"],"data_offsets":[0,0]}}"#);
    match (theirs::<u64>(text), ours) {
        (Some(dimension), ours) => {
            let header = ours.unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(header.tensor("t").expect("its tensor").shape(), [0, dimension]);
            true
        }
        (None, Ok(header)) => is_json(&header),
        (None, Err(_)) => false,
    }
}

/// An end that is no end of the data: the error gives the number that was read.
fn offset(text: &str) -> bool {
    let ours =
        parse(r#"{"t":{"dtype":"U8","shape":[0],"data_offsets":["#, text.as_bytes(), ",0]}}");
    match (theirs::<u64>(text), ours) {
        (Some(0), ours) => ours.is_ok() || panic!("{text}"),
        (Some(begin), ours) => {
            let error = ours.expect_err("a tensor that ends before it begins");
            assert!(error.to_string().contains(&begin.to_string()), "{error}: {begin}");
            true
        }
        (None, Ok(header)) => is_json(&header),
        (None, Err(_)) => false,
    }
}
