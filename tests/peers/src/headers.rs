//! What do the headers of real models look like?
//!
//! Names and shapes follow published models; the layout is the reference writer's: wide dtypes
//! first, then by name, each tensor behind the last. Nothing is downloaded.

use std::fmt::Write;

/// A tensor, before it has a place.
pub struct Tensor {
    pub name: String,
    dtype: Dtype,
    shape: Vec<u64>,
}

/// The dtypes used here, in the order in which the reference writer puts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Dtype {
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

fn tensor(name: impl Into<String>, dtype: Dtype, shape: &[u64]) -> Tensor {
    Tensor { name: name.into(), dtype, shape: shape.to_vec() }
}

/// SmolLM2-135M: 30 layers in BF16, the embedding tied to the output.
pub fn smollm2() -> Vec<Tensor> {
    const HIDDEN: u64 = 576;
    const INNER: u64 = 1536;
    const KEYS: u64 = 192;
    let mut tensors = vec![
        tensor("model.embed_tokens.weight", Dtype::Bf16, &[49152, HIDDEN]),
        tensor("model.norm.weight", Dtype::Bf16, &[HIDDEN]),
    ];
    for layer in 0..30 {
        for (part, shape) in [
            ("input_layernorm", &[HIDDEN][..]),
            ("mlp.down_proj", &[HIDDEN, INNER]),
            ("mlp.gate_proj", &[INNER, HIDDEN]),
            ("mlp.up_proj", &[INNER, HIDDEN]),
            ("post_attention_layernorm", &[HIDDEN]),
            ("self_attn.k_proj", &[KEYS, HIDDEN]),
            ("self_attn.o_proj", &[HIDDEN, HIDDEN]),
            ("self_attn.q_proj", &[HIDDEN, HIDDEN]),
            ("self_attn.v_proj", &[KEYS, HIDDEN]),
        ] {
            let name = format!("model.layers.{layer}.{part}.weight");
            tensors.push(tensor(name, Dtype::Bf16, shape));
        }
    }
    as_written(tensors)
}

/// The first `count` tensors of a mixture of experts in FP8 with block scales, as DeepSeek-V3 is,
/// if it went on for so many layers.
pub fn experts(count: usize) -> Vec<Tensor> {
    const HIDDEN: u64 = 7168;
    const INNER: u64 = 2048;
    const BLOCK: u64 = 128;
    let mut tensors = vec![tensor("model.embed_tokens.weight", Dtype::Bf16, &[129280, HIDDEN])];
    for layer in 0.. {
        let prefix = format!("model.layers.{layer}");
        for (part, dtype, shape) in [
            ("input_layernorm.weight", Dtype::Bf16, &[HIDDEN][..]),
            ("post_attention_layernorm.weight", Dtype::Bf16, &[HIDDEN]),
            ("mlp.gate.weight", Dtype::Bf16, &[256, HIDDEN]),
            ("mlp.gate.e_score_correction_bias", Dtype::F32, &[256]),
        ] {
            tensors.push(tensor(format!("{prefix}.{part}"), dtype, shape));
        }
        for expert in 0..256 {
            for (part, rows, columns) in [
                ("gate_proj", INNER, HIDDEN),
                ("up_proj", INNER, HIDDEN),
                ("down_proj", HIDDEN, INNER),
            ] {
                let name = format!("{prefix}.mlp.experts.{expert}.{part}.weight");
                let scales = [rows / BLOCK, columns / BLOCK];
                tensors.push(tensor(format!("{name}_scale_inv"), Dtype::F32, &scales));
                tensors.push(tensor(name, Dtype::F8E4M3, &[rows, columns]));
            }
        }
        if tensors.len() >= count {
            tensors.truncate(count);
            return as_written(tensors);
        }
    }
    unreachable!("layers without end")
}

fn as_written(mut tensors: Vec<Tensor>) -> Vec<Tensor> {
    tensors.sort_by(|one, other| (one.dtype, &one.name).cmp(&(other.dtype, &other.name)));
    tensors
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
}

/// A header's text, and the bytes that its tensors need.
pub struct Header {
    pub text: String,
    pub data_len: u64,
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
    let mut end = 0;
    let mut members: Vec<String> = tensors
        .iter()
        .map(|tensor| {
            let begin = end;
            end += tensor.shape.iter().product::<u64>() * tensor.dtype.bytes();
            let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
            let dtype = format!("\"dtype\"{colon}\"{}\"", tensor.dtype.name());
            let shape = format!("\"shape\"{colon}[{}]", shape.join(comma));
            let offsets = format!("\"data_offsets\"{colon}[{begin}{comma}{end}]");
            let fields = match style {
                Style::Alphabetical => [offsets, dtype, shape],
                Style::Compact | Style::Spaced => [dtype, shape, offsets],
            };
            format!("\"{}\"{colon}{{{}}}", tensor.name, fields.join(comma))
        })
        .collect();
    if shuffled {
        Random(7).shuffle(&mut members);
    }
    let pairs: Vec<String> =
        metadata.iter().map(|(key, value)| format!("\"{key}\"{colon}\"{value}\"")).collect();
    members.insert(0, format!("\"__metadata__\"{colon}{{{}}}", pairs.join(comma)));
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
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
