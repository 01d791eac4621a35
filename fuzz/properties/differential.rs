//! Do we accept what the reference accepts, and see the same in it?
//!
//! What we accept, the `safetensors` crate accepts with the same tensors and metadata. What it
//! accepts and we refuse is a closed list. An error of ours must not only name an item of the list:
//! what it claims is looked up in the text.

use barest::{Error, ErrorKind, Header};
use safetensors::tensor::Metadata;
use serde_json::de::Deserializer;
use std::collections::BTreeMap;
use std::fmt;

/// How a file was judged.
#[derive(PartialEq, Debug)]
pub enum Verdict {
    BothAccept,
    BothRefuse,
    /// An item of the list.
    OnlyWeRefuse(&'static str),
}

pub fn judge(file: &[u8]) -> Verdict {
    let ours = Header::parse(file, file.len() as u64);
    match (ours, reference(file)) {
        (Ok(header), Some((start, theirs))) => {
            assert_eq!(header.header_len() as usize, start);
            same(&header, &theirs);
            Verdict::BothAccept
        }
        (Err(_), None) => Verdict::BothRefuse,
        (Ok(header), None) => panic!("only we accept {header:?}"),
        (Err(error), Some((start, _))) => {
            let text = std::str::from_utf8(&file[8..8 + start]).expect("the reference read it");
            Verdict::OnlyWeRefuse(on_the_list(&error, text))
        }
    }
}

/// What the reference makes of a file.
fn reference(file: &[u8]) -> Option<(usize, Metadata)> {
    // Built with debug assertions, as here, it adds the last end to 8 and N and panics where that
    // overflows; in release it wraps, and refuses all the same.
    if sums_wrap(file) {
        return None;
    }
    safetensors::SafeTensors::read_metadata(file).ok()
}

/// Whether the last end, 8 and N together pass 64 bits, as far as the header can be read at all.
fn sums_wrap(file: &[u8]) -> bool {
    // Less would not, and to read it twice takes time.
    if !file.windows(19).any(|window| window.iter().all(u8::is_ascii_digit)) {
        return false;
    }
    let Some((len, rest)) = file.split_first_chunk() else { return false };
    let len = u64::from_le_bytes(*len);
    let Some(text) = usize::try_from(len).ok().and_then(|len| rest.get(..len)) else {
        return false;
    };
    let Ok(metadata) = serde_json::from_slice::<Metadata>(text) else { return false };
    let ends = metadata.tensors().into_values().map(|info| info.data_offsets.1 as u64);
    ends.max().is_some_and(|end| end.checked_add(8 + len).is_none())
}

fn same(ours: &Header, theirs: &Metadata) {
    let tensors = theirs.tensors();
    assert_eq!(tensors.len(), ours.len());
    for tensor in ours.tensors() {
        let other = tensors.get(tensor.name()).unwrap_or_else(|| panic!("only we see {tensor:?}"));
        let (begin, end) = other.data_offsets;
        assert_eq!(tensor.data_offsets(), (begin as u64, end as u64), "{tensor:?}");
        assert_eq!(tensor.dtype().name(), other.dtype.to_string(), "{tensor:?}");
        let shape: Vec<u64> = other.shape.iter().map(|&dim| dim as u64).collect();
        assert_eq!(tensor.shape(), shape, "{tensor:?}");
    }
    let of_ours: Option<BTreeMap<String, String>> = ours.metadata().map(|pairs| {
        pairs.iter().map(|(key, value)| (key.to_string(), value.into_owned())).collect()
    });
    let of_theirs = theirs.metadata().clone().map(|pairs| pairs.into_iter().collect());
    assert_eq!(of_ours, of_theirs);
}

/// The item of the closed list that an error of ours is, if what it says is true.
fn on_the_list(error: &Error, text: &str) -> &'static str {
    let at = error.offset().and_then(|offset| offset.checked_sub(8)).map_or(0, |at| at as usize);
    let rest = &text[at..];
    let name = error.tensor();
    let (item, is_true) = match error.kind() {
        ErrorKind::DuplicateTensor { .. } => {
            let times = keys(text).into_iter().filter(|(key, _)| Some(&**key) == name).count();
            ("a name twice", times > 1)
        }
        ErrorKind::DuplicateMetadataKey { key, .. } => {
            let is_metadata = |(name, _): &(String, String)| name == "__metadata__";
            let metadata = keys(text).into_iter().find(is_metadata).map(|(_, value)| value);
            let pairs = metadata.map_or(Vec::new(), |value| keys(&value));
            ("a key twice", pairs.iter().filter(|(other, _)| other == key).count() > 1)
        }
        ErrorKind::WrongType { found: "an array", .. } => {
            let entries = keys(text);
            let is_entry = |(key, value): &(String, String)| {
                Some(&**key) == name && value.starts_with('[') && rest.starts_with(&**value)
            };
            ("an entry as an array", entries.iter().any(is_entry))
        }
        ErrorKind::WrongType { found: "an object", .. } => {
            let before = text[..at].trim_end().trim_end_matches(':').trim_end();
            let key = before.strip_suffix('"').and_then(|before| before.rsplit('"').next());
            let is_dtype = key.is_some_and(|key| {
                serde_json::from_str(&format!("\"{key}\"")).is_ok_and(|key: String| key == "dtype")
            });
            ("a dtype as an object", is_dtype && rest.starts_with('{'))
        }
        ErrorKind::NumberOutOfRange => {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
            let number = rest[..end.unwrap_or(rest.len())].parse::<f64>();
            let is_at_the_end = |number: f64| number.abs() > 1.797_693_134_862_31e308;
            ("a number at the end of the range", number.is_ok_and(is_at_the_end))
        }
        _ => panic!("only we refuse it: {error}"),
    };
    assert!(is_true, "{item}, says {error}, but it is not so: {text}");
    item
}

/// The members of an object with the text of their values, in order and with what stands twice.
fn keys(text: &str) -> Vec<(String, String)> {
    struct Members;
    impl<'de> serde::de::Visitor<'de> for Members {
        type Value = Vec<(String, String)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((key, value)) =
                map.next_entry::<String, &serde_json::value::RawValue>()?
            {
                members.push((key, value.get().to_owned()));
            }
            Ok(members)
        }
    }
    let mut reader = Deserializer::from_str(text);
    serde::Deserializer::deserialize_map(&mut reader, Members).unwrap_or_default()
}
