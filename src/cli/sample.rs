//! What does a small model look like on disk?
//!
//! The same bytes on every machine: a Llama of four layers with BF16 weights, its tensors named,
//! ordered and padded as the reference writer does it (the widest dtype first, then by name).

/// A file of the sample: its name, what is to be known of it, and its bytes.
pub struct SampleFile {
    pub name: String,
    pub about: &'static str,
    pub bytes: Vec<u8>,
}

pub const MODEL_NAME: &str = "sample.safetensors";

/// The directory of the same model in shards.
pub const SHARDED: &str = "sharded";

/// A matrix that is large enough to look at.
pub const FAMOUS_TENSOR: &str = "model.layers.2.mlp.up_proj.weight";

const LAYERS: usize = 4;
const HIDDEN: usize = 128;
const KEY_VALUE: usize = 64;
const INNER: usize = 352;
const VOCABULARY: usize = 2048;

struct Weight {
    name: String,
    dtype: &'static str,
    shape: Vec<usize>,
    data: Vec<u8>,
}

/// The sample model, and siblings of it that are broken in ways that are met in practice.
pub fn files() -> Vec<SampleFile> {
    let model = model();
    let cut = model[..model.len() * 3 / 5].to_vec();
    let file = |name: &str, about, bytes| SampleFile { name: name.to_owned(), about, bytes };
    let mut files = vec![
        file("broken-cut.safetensors", "a download that stopped at 60 %", cut),
        file("broken-overlap.safetensors", "one tensor lies over another", with_overlap(&model)),
        file(
            "broken-pointer.safetensors",
            "what is left where Git LFS was not installed",
            pointer(model.len()),
        ),
        file(MODEL_NAME, "a Llama of 4 layers in BF16", model),
    ];
    files.extend(sharded());
    files
}

/// The sample model.
pub fn model() -> Vec<u8> {
    file_of(&sorted_weights())
}

/// The same model in three shards, and the index that tells which holds what.
fn sharded() -> Vec<SampleFile> {
    const SHARDS: usize = 3;
    let weights = sorted_weights();
    let name = |shard: usize| format!("model-{:05}-of-{SHARDS:05}.safetensors", shard + 1);
    let total: usize = weights.iter().map(|weight| weight.data.len()).sum();
    // 1. Shards of about one size, cut between tensors.
    let mut rest = &weights[..];
    let mut files = Vec::new();
    let mut map = Vec::new();
    for shard in 0..SHARDS {
        let mut bytes = 0;
        let count = rest.iter().take_while(|weight| {
            let fits = bytes < total.div_ceil(SHARDS) || shard + 1 == SHARDS;
            bytes += weight.data.len();
            fits
        });
        let (part, others) = rest.split_at(count.count());
        map.extend(part.iter().map(|weight| (&weight.name, name(shard))));
        let name = format!("{SHARDED}/{}", name(shard));
        files.push(SampleFile { name, about: "a third of it", bytes: file_of(part) });
        rest = others;
    }
    // 2. The index, as the usual tools write it.
    map.sort();
    let entries: Vec<String> =
        map.iter().map(|(name, shard)| format!("    \"{name}\": \"{shard}\"")).collect();
    let index = format!(
        "{{\n  \"metadata\": {{\n    \"total_size\": {total}\n  }},\n  \"weight_map\": {{\n{}\n  }}\n}}\n",
        entries.join(",\n")
    );
    let name = format!("{SHARDED}/model.safetensors.index.json");
    files.push(SampleFile { name, about: "which shard holds which tensor", bytes: index.into() });
    files
}

/// All weights in the order of the file.
fn sorted_weights() -> Vec<Weight> {
    let mut weights = weights();
    weights.sort_by(|one, other| {
        let key = |weight: &Weight| (weight.dtype != "F32", weight.name.clone());
        key(one).cmp(&key(other))
    });
    weights
}

/// A file that holds these.
fn file_of(weights: &[Weight]) -> Vec<u8> {
    // 1. The header, its offsets counting up, padded with spaces to a multiple of 8.
    let mut header = String::from(
        "{\"__metadata__\":{\"format\":\"pt\",\"about\":\"the sample model of barest\"}",
    );
    let mut end = 0;
    for Weight { name, dtype, shape, data } in weights {
        let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
        let shape = shape.join(",");
        let begin = end;
        end += data.len();
        header += &format!(
            ",\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":[{shape}],\"data_offsets\":[{begin},{end}]}}"
        );
    }
    header.push('}');
    header += &" ".repeat(header.len().next_multiple_of(8) - header.len());
    // 2. Its length, itself, and the data.
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    for weight in weights {
        file.extend_from_slice(&weight.data);
    }
    file
}

fn weights() -> Vec<Weight> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut weights = vec![
        matrix("model.embed_tokens.weight", [VOCABULARY, HIDDEN], &mut random),
        norm("model.norm.weight", &mut random),
    ];
    for layer in 0..LAYERS {
        for (part, shape) in [
            ("self_attn.q_proj", [HIDDEN, HIDDEN]),
            ("self_attn.k_proj", [KEY_VALUE, HIDDEN]),
            ("self_attn.v_proj", [KEY_VALUE, HIDDEN]),
            ("self_attn.o_proj", [HIDDEN, HIDDEN]),
            ("mlp.gate_proj", [INNER, HIDDEN]),
            ("mlp.up_proj", [INNER, HIDDEN]),
            ("mlp.down_proj", [HIDDEN, INNER]),
        ] {
            weights.push(matrix(
                &format!("model.layers.{layer}.{part}.weight"),
                shape,
                &mut random,
            ));
        }
        for part in ["input_layernorm", "post_attention_layernorm"] {
            weights.push(norm(&format!("model.layers.{layer}.{part}.weight"), &mut random));
        }
    }
    // The rotary frequencies, in F32 as they are usually kept.
    let frequencies: Vec<u8> =
        (0..16).flat_map(|pair| 10_000f32.powf(-(pair as f32) / 16.0).to_le_bytes()).collect();
    weights.push(Weight {
        name: "model.rotary_emb.inv_freq".to_owned(),
        dtype: "F32",
        shape: vec![16],
        data: frequencies,
    });
    weights
}

/// Numbers spread about like trained weights: of either sign, from 2^-9 to 2^-4.
fn matrix(name: &str, shape: [usize; 2], random: &mut Random) -> Weight {
    let bits = |random: &mut Random| {
        let number = random.next();
        let (sign, mantissa) = (number >> 63, number >> 8 & 0x7f);
        let exponent = 127 - 9 + (number >> 32) % 5;
        (sign << 15 | exponent << 7 | mantissa) as u16
    };
    bf16(name, &shape, bits, random)
}

/// Numbers from 1 to 2.
fn norm(name: &str, random: &mut Random) -> Weight {
    bf16(name, &[HIDDEN], |random| 0x3f80 | (random.next() & 0x7f) as u16, random)
}

fn bf16(
    name: &str,
    shape: &[usize],
    bits: impl Fn(&mut Random) -> u16,
    random: &mut Random,
) -> Weight {
    let elements: usize = shape.iter().product();
    Weight {
        name: name.to_owned(),
        dtype: "BF16",
        shape: shape.to_vec(),
        data: (0..elements).flat_map(|_| bits(random).to_le_bytes()).collect(),
    }
}

/// Marsaglia's xorshift with Vigna's multiplier: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// The model with one tensor said to stand 1 KiB before its place.
fn with_overlap(model: &[u8]) -> Vec<u8> {
    let mut broken = model.to_vec();
    let find = |what: &[u8], from: usize| {
        let place = model[from..].windows(what.len()).position(|window| window == what);
        place.map_or(0, |place| from + place + what.len())
    };
    let entry = find(format!("\"{FAMOUS_TENSOR}\":").as_bytes(), 0);
    let start = find(b"\"data_offsets\":[", entry);
    let end = find(b"]", start) - 1;
    // Offsets of seven digits stay so, and the header its length.
    let text = String::from_utf8_lossy(&model[start..end]).into_owned();
    let shifted = text.split(',').filter_map(|offset| offset.parse::<u64>().ok());
    let shifted: Vec<String> = shifted.map(|offset| (offset - 1024).to_string()).collect();
    broken.splice(start..end, shifted.join(",").bytes());
    broken
}

/// The text that Git LFS keeps in the place of a large file.
fn pointer(size: usize) -> Vec<u8> {
    let digest = "0123456789abcdef".repeat(4);
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {size}\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use barest::{ErrorKind, Header};

    #[test]
    fn the_sample_is_a_valid_model_and_always_the_same() {
        let bytes = model();
        assert!(bytes == model(), "two runs differ");
        let header = Header::parse(&bytes, bytes.len() as u64).unwrap();
        assert_eq!(header.len(), 3 + LAYERS * 9);
        assert_eq!(header.remarks(), []);
        assert_eq!(header.tensor(FAMOUS_TENSOR).unwrap().shape(), [352, 128]);
    }

    #[test]
    fn each_sibling_is_broken_in_its_own_way() {
        for file in files() {
            let outcome = Header::parse(&file.bytes, file.bytes.len() as u64);
            match (&*file.name, outcome.as_ref().map_err(|error| error.kind())) {
                (name, outcome) if name.starts_with(SHARDED) => {
                    assert_eq!(outcome.is_ok(), name.ends_with(".safetensors"), "{name}");
                }
                (MODEL_NAME, Ok(_))
                | ("broken-cut.safetensors", Err(ErrorKind::Truncated { .. }))
                | ("broken-pointer.safetensors", Err(ErrorKind::Foreign { .. }))
                | ("broken-overlap.safetensors", Err(ErrorKind::Overlap { .. })) => {}
                (name, outcome) => panic!("{name}: {outcome:?}"),
            }
        }
    }
}
