//! How well does a JSON library do that is told what a header looks like?
//!
//! Better than the reference, which goes through serde's `flatten` and a name of its own for each
//! tensor. Here names are borrowed, entries are taken as they come, and the rules are checked after
//! that: dtypes and shapes against offsets, no gap, no name twice.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Formatter};

/// A header that was proved, ready for look-ups.
pub struct Typed<'a> {
    pub metadata: Option<HashMap<String, String>>,
    /// In file order.
    pub entries: Vec<Entry>,
    pub names: HashMap<Cow<'a, str>, usize>,
}

#[derive(Deserialize)]
pub struct Entry {
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    pub data_offsets: (u64, u64),
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "UPPERCASE")]
pub enum Dtype {
    F4,
    #[serde(rename = "F6_E2M3")]
    F6E2M3,
    #[serde(rename = "F6_E3M2")]
    F6E3M2,
    Bool,
    U8,
    I8,
    #[serde(rename = "F8_E5M2")]
    F8E5M2,
    #[serde(rename = "F8_E4M3")]
    F8E4M3,
    #[serde(rename = "F8_E8M0")]
    F8E8M0,
    #[serde(rename = "F8_E4M3FNUZ")]
    F8E4M3Fnuz,
    #[serde(rename = "F8_E5M2FNUZ")]
    F8E5M2Fnuz,
    I16,
    U16,
    F16,
    Bf16,
    I32,
    U32,
    F32,
    C64,
    F64,
    I64,
    U64,
}

impl Dtype {
    fn bits(self) -> u64 {
        match self {
            Dtype::F4 => 4,
            Dtype::F6E2M3 | Dtype::F6E3M2 => 6,
            Dtype::Bool | Dtype::U8 | Dtype::I8 => 8,
            Dtype::F8E5M2 | Dtype::F8E4M3 | Dtype::F8E8M0 => 8,
            Dtype::F8E4M3Fnuz | Dtype::F8E5M2Fnuz => 8,
            Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::Bf16 => 16,
            Dtype::I32 | Dtype::U32 | Dtype::F32 => 32,
            Dtype::C64 | Dtype::F64 | Dtype::I64 | Dtype::U64 => 64,
        }
    }
}

/// By serde_json: UTF-8 first, so that it need not look at each string again.
pub fn by_serde_json(file: &[u8]) -> Typed<'_> {
    let (header, data_len) = header_of(file);
    let text = std::str::from_utf8(header).expect("UTF-8");
    prove(serde_json::from_str(text).expect("a header"), data_len)
}

/// By sonic-rs, which finds the ends of strings by SIMD.
pub fn by_sonic(file: &[u8]) -> Typed<'_> {
    let (header, data_len) = header_of(file);
    prove(sonic_rs::from_slice(header).expect("a header"), data_len)
}

/// A file's header, and the length of its data.
pub fn header_of(file: &[u8]) -> (&[u8], u64) {
    let (len, rest) = file.split_first_chunk().expect("eight bytes");
    let (header, data) = rest.split_at(u64::from_le_bytes(*len) as usize);
    (header, data.len() as u64)
}

/// What stands there, of which nothing was checked.
struct Claims<'a> {
    metadata: Option<HashMap<String, String>>,
    entries: Vec<(Cow<'a, str>, Entry)>,
}

/// A key that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Claims<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Claims<'de>, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Claims<'de>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Claims<'de>, M::Error> {
        let mut claims = Claims { metadata: None, entries: Vec::new() };
        while let Some(Key(key)) = members.next_key()? {
            match &*key {
                "__metadata__" => claims.metadata = Some(members.next_value()?),
                _ => claims.entries.push((key, members.next_value()?)),
            }
        }
        Ok(claims)
    }
}

fn prove(claims: Claims<'_>, data_len: u64) -> Typed<'_> {
    let Claims { metadata, entries: mut claimed } = claims;
    claimed.sort_by_key(|(_, entry)| entry.data_offsets);
    let mut entries = Vec::with_capacity(claimed.len());
    let mut names = HashMap::with_capacity(claimed.len());
    let mut end = 0;
    for (name, entry) in claimed {
        let product = |bits: u64, &dimension: &u64| bits.checked_mul(dimension);
        let bits = entry.shape.iter().try_fold(entry.dtype.bits(), product).expect("64 bits");
        assert_eq!((entry.data_offsets.0, bits % 8), (end, 0));
        assert_eq!(entry.data_offsets.1.checked_sub(end), Some(bits / 8));
        end = entry.data_offsets.1;
        assert_eq!(names.insert(name, entries.len()), None);
        entries.push(entry);
    }
    assert_eq!(end, data_len);
    Typed { metadata, entries, names }
}
