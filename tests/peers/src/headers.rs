//! What do the headers of real models look like?
//!
//! The layout is the reference writer's: wide dtypes first, then by name, each tensor behind the
//! last. What the tensors are is told by `models.rs`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// A tensor, before it has a place.
pub struct Tensor {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
}

impl Tensor {
    pub fn new(name: impl Into<String>, dtype: Dtype, shape: &[u64]) -> Tensor {
        Tensor { name: name.into(), dtype, shape: shape.to_vec() }
    }

    pub fn byte_len(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.dtype.bytes()
    }
}

/// The dtypes used here, in the order in which the reference writer puts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dtype {
    F32,
    Bf16,
    F8E4M3,
}

impl Dtype {
    fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "F32",
            Dtype::Bf16 => "BF16",
            Dtype::F8E4M3 => "F8_E4M3",
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Dtype::F32 => 4,
            Dtype::Bf16 => 2,
            Dtype::F8E4M3 => 1,
        }
    }
}

/// Who wrote the JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The reference writer: no blanks.
    Compact,
    /// `json.dumps` of Python: a space behind each comma and colon.
    Spaced,
    /// MLX: no blanks, keys in alphabetical order.
    Alphabetical,
    /// No blanks, keys in an order that nobody uses.
    Backwards,
    /// No blanks, keys in another order from tensor to tensor, at random.
    AnyOrder,
}

/// A header's text, and the bytes that its tensors need.
pub struct Header {
    pub text: String,
    pub data_len: u64,
}

impl Header {
    /// Writes a file that begins with this header. Its data is a hole: a model of 600 GB takes a
    /// few blocks of the disk.
    pub fn create(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(&(self.text.len() as u64).to_le_bytes())?;
        file.write_all(self.text.as_bytes())?;
        file.set_len(8 + self.text.len() as u64 + self.data_len)
    }
}

/// Writes a header. The tensors lie in the file in the order in which they are given; `shuffled`
/// lists them in another.
pub fn write(
    tensors: &[Tensor],
    metadata: &[(&str, &str)],
    style: Style,
    shuffled: bool,
) -> Header {
    let (comma, colon) = if style == Style::Spaced { (", ", ": ") } else { (",", ":") };
    let (mut end, mut random) = (0, Random(11));
    let mut members: Vec<String> = tensors
        .iter()
        .map(|tensor| {
            let begin = end;
            end += tensor.byte_len();
            let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
            let dtype = format!("\"dtype\"{colon}\"{}\"", tensor.dtype.name());
            let shape = format!("\"shape\"{colon}[{}]", shape.join(comma));
            let offsets = format!("\"data_offsets\"{colon}[{begin}{comma}{end}]");
            let mut fields = match style {
                Style::Alphabetical => [offsets, dtype, shape],
                Style::Backwards => [offsets, shape, dtype],
                Style::Compact | Style::Spaced | Style::AnyOrder => [dtype, shape, offsets],
            };
            if style == Style::AnyOrder {
                random.shuffle(&mut fields);
            }
            format!("\"{}\"{colon}{{{}}}", tensor.name, fields.join(comma))
        })
        .collect();
    if shuffled {
        Random(7).shuffle(&mut members);
    }
    let pairs: Vec<String> =
        metadata.iter().map(|(key, value)| format!("\"{key}\"{colon}\"{value}\"")).collect();
    if !pairs.is_empty() {
        members.insert(0, format!("\"__metadata__\"{colon}{{{}}}", pairs.join(comma)));
    }
    let mut text = format!("{{{}}}", members.join(comma));
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    Header { text, data_len: end }
}

/// What nearly every writer puts in front.
pub const METADATA: [(&str, &str); 1] = [("format", "pt")];

/// The value of a long piece of metadata, as it stands between the quotes: prose, or JSON kept as
/// a string, in which each quote is escaped (what trainers of LoRAs write).
pub fn long_value(bytes: usize, is_json: bool) -> String {
    let mut random = Random(3);
    let mut value = String::with_capacity(bytes + 64);
    while value.len() < bytes {
        let number = random.below(100_000);
        let _ = match is_json {
            true => write!(value, "\\\"tag {number}\\\": {}, ", number % 900),
            false => write!(value, "in step {number} the loss fell again, "),
        };
    }
    value
}

/// The same numbers in every run (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::smollm2;

    #[test]
    fn smollm2_is_written_as_published() {
        let header = write(&smollm2(), &METADATA, Style::Compact, false);
        assert_eq!(
            (header.text.len(), 8 + header.text.len() as u64 + header.data_len),
            (30_528, 269_060_552)
        );
        assert!(header.text.starts_with(
            r#"{"__metadata__":{"format":"pt"},"model.embed_tokens.weight":{"dtype":"BF16","shape":[49152,576],"data_offsets":[0,56623104]},"model.layers.0.input_layernorm.weight""#
        ));
    }
}
