//! What are the tensors of real models?
//!
//! Names, shapes and dtypes follow published models, in the order in which their programs hold
//! them. Nothing is downloaded.

use crate::headers::{Dtype, Tensor};

/// In the order in which the reference writer puts them into a file.
pub fn as_written(mut tensors: Vec<Tensor>) -> Vec<Tensor> {
    tensors.sort_by(|one, other| (one.dtype, &one.name).cmp(&(other.dtype, &other.name)));
    tensors
}

/// SmolLM2-135M: 30 layers in BF16, the embedding tied to the output. As written.
pub fn smollm2() -> Vec<Tensor> {
    let model = Llama { layers: 30, hidden: 576, inner: 1536, keys: 192, words: 49152, tied: true };
    as_written(model.tensors())
}

pub const LLAMA_3_8B: Llama =
    Llama { layers: 32, hidden: 4096, inner: 14336, keys: 1024, words: 128256, tied: false };

pub const LLAMA_3_70B: Llama =
    Llama { layers: 80, hidden: 8192, inner: 28672, keys: 1024, words: 128256, tied: false };

/// A model built as Llama is, in BF16.
pub struct Llama {
    layers: u64,
    hidden: u64,
    inner: u64,
    keys: u64,
    words: u64,
    /// Whether the embedding is the output as well.
    tied: bool,
}

impl Llama {
    pub fn tensors(&self) -> Vec<Tensor> {
        let &Llama { layers, hidden, inner, keys, words, tied } = self;
        let bf16 =
            |name: &str, shape: &[u64]| Tensor::new(format!("{name}.weight"), Dtype::Bf16, shape);
        let mut tensors = vec![bf16("model.embed_tokens", &[words, hidden])];
        for layer in 0..layers {
            for (part, shape) in [
                ("self_attn.q_proj", &[hidden, hidden][..]),
                ("self_attn.k_proj", &[keys, hidden]),
                ("self_attn.v_proj", &[keys, hidden]),
                ("self_attn.o_proj", &[hidden, hidden]),
                ("mlp.gate_proj", &[inner, hidden]),
                ("mlp.up_proj", &[inner, hidden]),
                ("mlp.down_proj", &[hidden, inner]),
                ("input_layernorm", &[hidden]),
                ("post_attention_layernorm", &[hidden]),
            ] {
                tensors.push(bf16(&format!("model.layers.{layer}.{part}"), shape));
            }
        }
        tensors.push(bf16("model.norm", &[hidden]));
        if !tied {
            tensors.push(bf16("lm_head", &[words, hidden]));
        }
        tensors
    }
}

/// Layers alone, of SmolLM2-360M's measures, that take at least so many bytes.
pub fn layers(bytes: u64) -> Vec<Tensor> {
    const OF_ONE: u64 = 19_668_480;
    let layers = bytes.div_ceil(OF_ONE);
    let model = Llama { layers, hidden: 960, inner: 2560, keys: 320, words: 49152, tied: true };
    let mut tensors = model.tensors();
    tensors.retain(|tensor| tensor.name.starts_with("model.layers."));
    tensors
}

/// The first `count` tensors of a mixture of experts in FP8 with block scales, as DeepSeek-V3 is,
/// if it went on for so many layers. As written.
pub fn experts(count: usize) -> Vec<Tensor> {
    const INNER: u64 = 2048;
    const BLOCK: u64 = 128;
    let mut tensors = vec![Tensor::new("model.embed_tokens.weight", Dtype::Bf16, &[WORDS, HIDDEN])];
    for layer in 0.. {
        let prefix = format!("model.layers.{layer}");
        for (part, dtype, shape) in [
            ("input_layernorm.weight", Dtype::Bf16, &[HIDDEN][..]),
            ("post_attention_layernorm.weight", Dtype::Bf16, &[HIDDEN]),
            ("mlp.gate.weight", Dtype::Bf16, &[EXPERTS, HIDDEN]),
            ("mlp.gate.e_score_correction_bias", Dtype::F32, &[EXPERTS]),
        ] {
            tensors.push(Tensor::new(format!("{prefix}.{part}"), dtype, shape));
        }
        for expert in 0..EXPERTS {
            for (part, rows, columns) in [
                ("gate_proj", INNER, HIDDEN),
                ("up_proj", INNER, HIDDEN),
                ("down_proj", HIDDEN, INNER),
            ] {
                let name = format!("{prefix}.mlp.experts.{expert}.{part}.weight");
                let scales = [rows / BLOCK, columns / BLOCK];
                tensors.push(Tensor::new(format!("{name}_scale_inv"), Dtype::F32, &scales));
                tensors.push(Tensor::new(name, Dtype::F8E4M3, &[rows, columns]));
            }
        }
        if tensors.len() >= count {
            tensors.truncate(count);
            return as_written(tensors);
        }
    }
    unreachable!("layers without end")
}

/// DeepSeek-V3, all of it: 61 layers and the one that predicts a second token, in FP8 with block
/// scales.
pub fn deepseek_v3() -> Vec<Tensor> {
    let mut model = DeepSeek { tensors: Vec::new() };
    model.bf16("model.embed_tokens", &[WORDS, HIDDEN]);
    (0..61).for_each(|layer| model.layer(layer));
    model.bf16("model.norm", &[HIDDEN]);
    model.bf16("lm_head", &[WORDS, HIDDEN]);
    for (part, shape) in [
        ("embed_tokens", &[WORDS, HIDDEN][..]),
        ("enorm", &[HIDDEN]),
        ("hnorm", &[HIDDEN]),
        ("eh_proj", &[HIDDEN, 2 * HIDDEN]),
    ] {
        model.bf16(&format!("model.layers.61.{part}"), shape);
    }
    model.layer(61);
    model.bf16("model.layers.61.shared_head.norm", &[HIDDEN]);
    model.bf16("model.layers.61.shared_head.head", &[WORDS, HIDDEN]);
    model.tensors
}

const HIDDEN: u64 = 7168;
const WORDS: u64 = 129_280;
const EXPERTS: u64 = 256;

struct DeepSeek {
    tensors: Vec<Tensor>,
}

impl DeepSeek {
    fn bf16(&mut self, name: &str, shape: &[u64]) {
        self.tensors.push(Tensor::new(format!("{name}.weight"), Dtype::Bf16, shape));
    }

    /// A matrix, and a scale for each of its blocks.
    fn fp8(&mut self, name: String, rows: u64, columns: u64) {
        const BLOCK: u64 = 128;
        let name = format!("{name}.weight");
        let scales = [rows.div_ceil(BLOCK), columns.div_ceil(BLOCK)];
        let scales = Tensor::new(format!("{name}_scale_inv"), Dtype::F32, &scales);
        self.tensors.extend([Tensor::new(name, Dtype::F8E4M3, &[rows, columns]), scales]);
    }

    fn layer(&mut self, layer: u64) {
        const DENSE: u64 = 3;
        let prefix = format!("model.layers.{layer}");
        self.bf16(&format!("{prefix}.input_layernorm"), &[HIDDEN]);
        self.fp8(format!("{prefix}.self_attn.q_a_proj"), 1536, HIDDEN);
        self.bf16(&format!("{prefix}.self_attn.q_a_layernorm"), &[1536]);
        self.fp8(format!("{prefix}.self_attn.q_b_proj"), 128 * 192, 1536);
        self.fp8(format!("{prefix}.self_attn.kv_a_proj_with_mqa"), 512 + 64, HIDDEN);
        self.bf16(&format!("{prefix}.self_attn.kv_a_layernorm"), &[512]);
        self.fp8(format!("{prefix}.self_attn.kv_b_proj"), 128 * 256, 512);
        self.fp8(format!("{prefix}.self_attn.o_proj"), HIDDEN, 128 * 128);
        self.bf16(&format!("{prefix}.post_attention_layernorm"), &[HIDDEN]);
        if layer < DENSE {
            return self.mlp(&format!("{prefix}.mlp"), 18432);
        }
        self.bf16(&format!("{prefix}.mlp.gate"), &[EXPERTS, HIDDEN]);
        let bias = format!("{prefix}.mlp.gate.e_score_correction_bias");
        self.tensors.push(Tensor::new(bias, Dtype::F32, &[EXPERTS]));
        self.mlp(&format!("{prefix}.mlp.shared_experts"), 2048);
        (0..EXPERTS).for_each(|expert| self.mlp(&format!("{prefix}.mlp.experts.{expert}"), 2048));
    }

    fn mlp(&mut self, prefix: &str, inner: u64) {
        self.fp8(format!("{prefix}.gate_proj"), inner, HIDDEN);
        self.fp8(format!("{prefix}.up_proj"), inner, HIDDEN);
        self.fp8(format!("{prefix}.down_proj"), HIDDEN, inner);
    }
}
