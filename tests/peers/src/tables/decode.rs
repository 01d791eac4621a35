//! How fast do elements become numbers?
//!
//! Into a buffer that is kept: fresh memory costs more than the conversion, for everyone. (candle
//! has no such buffer: it gives a new tensor each time.) Once with what fits the second-level
//! cache, once with more than any cache holds.

use crate::Run;
use crate::bench::{Contender, Spread, race};
use crate::headers::Random;
use crate::table::{Cell, Goal, Table};
use barest::Model;
use candle_core::{DType, Device, Tensor};
use float8::F8E4M3;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use std::io;

/// 64 Ki elements: 128 KiB of BF16 become 256 KiB, and both fit the smallest second-level caches of servers.
pub(super) const SMALL: usize = 64 << 10;

/// 56 Mi elements: 113 MB of BF16, a matrix of 8192 x 6912, become 226 MB.
pub(super) const LARGE: usize = 8192 * 6912;

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for (size, elements) in [("in L2", SMALL), ("in memory", LARGE)] {
        for (dtype, make) in [
            ("BF16", bf16_rows as fn(&Run, &str, usize) -> Vec<Vec<Cell>>),
            ("F16", f16_rows),
            ("F8_E4M3", f8_rows),
        ] {
            let name = format!("{dtype} {size}");
            if run.wants("decode", &name.replace(' ', "-")) {
                rows.extend(make(run, &name, elements));
            }
        }
    }
    Ok(Table {
        title: "decode: elements to f32, in a buffer that is kept (candle: in a new one)".into(),
        columns: &["what", "beside", "beside takes", "barest", "barest is faster", "goal"],
        rows,
    })
}

fn bf16_rows(run: &Run, name: &str, elements: usize) -> Vec<Vec<Cell>> {
    let bits = patterns(elements, 118 << 7, 5 << 7);
    let numbers: Vec<bf16> = bits.iter().map(|&bits| bf16::from_bits(bits)).collect();
    let model = model("BF16", &[elements], &bytes_of(&bits));
    let view = model.tensor("t").and_then(|tensor| tensor.bf16()).expect("BF16");
    let (mut theirs, mut ours) = (vec![0.0; elements], vec![0.0; elements]);
    // As many bytes in and out as the conversion has: 2 and 4 an element.
    let (from, mut to) = (vec![1u8; elements * 3], vec![0u8; elements * 3]);
    let tensor = candle(DType::BF16, &bytes_of(&bits), &[elements]);
    let mut filled = vec![0.0f32; elements];
    let [half, candle, copy, fill, barest] = race(
        [
            Contender::new(|watch| {
                numbers.convert_to_f32_slice(&mut theirs);
                watch.ready(&theirs);
            }),
            Contender::new(|watch| watch.ready(&converted(&tensor))),
            Contender::new(|watch| {
                to.copy_from_slice(&from);
                watch.ready(&to);
            }),
            Contender::new(|watch| {
                fill(&mut filled);
                watch.ready(&filled);
            }),
            Contender::new(|watch| {
                view.read_f32(&mut ours).expect("as long");
                watch.ready(&ours);
            }),
        ],
        run.rounds,
    );
    assert_eq!(theirs, ours);
    assert_eq!(values(&tensor), ours);
    // Beside memcpy: at most 1.3 and 1.1 times its time.
    let (beside_half, beside_candle, beside_copy) =
        if elements == SMALL { (2.5, None, 1.0 / 1.3) } else { (2.0, Some(6.0), 1.0 / 1.1) };
    vec![
        row(name, "half", &half, &barest, Some(beside_half)),
        row(name, "candle to_dtype", &candle, &barest, beside_candle),
        row(name, "memcpy of as many bytes", &copy, &barest, Some(beside_copy)),
        row(name, "filling the buffer alone", &fill, &barest, None),
    ]
}

/// What no conversion can do without: writing each value once. What is larger than the caches is
/// written past them, in two places at once, as barest does it.
fn fill(values: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if values.len() == LARGE && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the processor was just asked.
        return unsafe { fill_by_avx(values) };
    }
    values.fill(1.0);
}

/// All but a few at the ends.
///
/// # Safety
///
/// The processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn fill_by_avx(values: &mut [f32]) {
    use std::arch::x86_64::{_mm_sfence, _mm256_set1_ps, _mm256_stream_ps};
    let lead = values.as_ptr().align_offset(64);
    let (one, other) = values[lead..].split_at_mut(LARGE / 2 - 160);
    for (one, other) in one.chunks_exact_mut(32).zip(other.chunks_exact_mut(32)) {
        for part in [one, other] {
            for eight in 0..4 {
                // SAFETY: eight values of the 32, on a multiple of 32 bytes; ordered by the fence.
                unsafe { _mm256_stream_ps(part.as_mut_ptr().add(eight * 8), _mm256_set1_ps(1.0)) };
            }
        }
    }
    _mm_sfence();
}

fn f16_rows(run: &Run, name: &str, elements: usize) -> Vec<Vec<Cell>> {
    let bits = patterns(elements, 6 << 10, 5 << 10);
    let numbers: Vec<f16> = bits.iter().map(|&bits| f16::from_bits(bits)).collect();
    let model = model("F16", &[elements], &bytes_of(&bits));
    let view = model.tensor("t").and_then(|tensor| tensor.f16()).expect("F16");
    let (mut theirs, mut ours) = (vec![0.0; elements], vec![0.0; elements]);
    let tensor = candle(DType::F16, &bytes_of(&bits), &[elements]);
    let [half, candle, barest] = race(
        [
            Contender::new(|watch| {
                numbers.convert_to_f32_slice(&mut theirs);
                watch.ready(&theirs);
            }),
            Contender::new(|watch| watch.ready(&converted(&tensor))),
            Contender::new(|watch| {
                view.read_f32(&mut ours).expect("as long");
                watch.ready(&ours);
            }),
        ],
        run.rounds,
    );
    assert_eq!(theirs, ours);
    assert_eq!(values(&tensor), ours);
    vec![
        row(name, "half", &half, &barest, (elements == SMALL).then_some(2.8)),
        row(name, "candle to_dtype", &candle, &barest, None),
    ]
}

/// `float8` is what candle converts with, one element after the other.
fn f8_rows(run: &Run, name: &str, elements: usize) -> Vec<Vec<Cell>> {
    let mut random = Random(3);
    let finite = |bits: u8| if bits & 0x7f == 0x7f { 0x38 } else { bits };
    let bytes: Vec<u8> = (0..elements).map(|_| finite(random.below(256) as u8)).collect();
    let numbers: Vec<F8E4M3> = bytes.iter().map(|&bits| F8E4M3::from_bits(bits)).collect();
    let model = model("F8_E4M3", &[elements], &bytes);
    let view = model.tensor("t").and_then(|tensor| tensor.floats()).expect("floats");
    let (mut theirs, mut ours) = (vec![0.0; elements], vec![0.0; elements]);
    let tensor = candle(DType::F8E4M3, &bytes, &[elements]);
    let [float8, candle, barest] = race(
        [
            Contender::new(|watch| {
                for (value, number) in theirs.iter_mut().zip(&numbers) {
                    *value = number.to_f32();
                }
                watch.ready(&theirs);
            }),
            Contender::new(|watch| watch.ready(&converted(&tensor))),
            Contender::new(|watch| {
                view.read_f32(&mut ours).expect("as long");
                watch.ready(&ours);
            }),
        ],
        run.rounds,
    );
    assert_eq!(theirs, ours);
    assert_eq!(values(&tensor), ours);
    let goal = if elements == SMALL { 25.0 } else { 11.0 };
    vec![
        row(name, "float8", &float8, &barest, None),
        row(name, "candle to_dtype", &candle, &barest, Some(goal)),
    ]
}

pub(super) fn row(
    name: &str,
    peer: &str,
    theirs: &[f64],
    ours: &[f64],
    goal: Option<f64>,
) -> Vec<Cell> {
    let one = |seconds: &[f64]| Cell::Seconds(Spread::of(seconds.iter().copied()));
    let ratio = Spread::of_ratios(theirs, ours);
    vec![
        Cell::Text(name.to_owned()),
        Cell::Text(peer.to_owned()),
        one(theirs),
        one(ours),
        Cell::Times(ratio),
        goal.map_or(Cell::None, |goal| Goal::AtLeast(goal).met_by(ratio.median)),
    ]
}

/// A tensor of candle's on the processor: a copy of these bytes.
pub(super) fn candle(dtype: DType, bytes: &[u8], shape: &[usize]) -> Tensor {
    Tensor::from_raw_buffer(bytes, dtype, shape, &Device::Cpu).expect("a tensor")
}

pub(super) fn converted(tensor: &Tensor) -> Tensor {
    tensor.to_dtype(DType::F32).expect("a tensor")
}

fn values(tensor: &Tensor) -> Vec<f32> {
    converted(tensor).to_vec1().expect("numbers")
}

/// Bits of 16-bit floats like weights: of either sign, exponents in a small range.
pub(super) fn patterns(elements: usize, from: usize, range: usize) -> Vec<u16> {
    let mut random = Random(7);
    let mut one = || (random.below(2) << 15 | (from + random.below(range))) as u16;
    (0..elements).map(|_| one()).collect()
}

pub(super) fn bytes_of(bits: &[u16]) -> Vec<u8> {
    bits.iter().flat_map(|bits| bits.to_le_bytes()).collect()
}

/// A model of one tensor `t`, its data on a multiple of 64.
pub(super) fn model(dtype: &str, shape: &[usize], data: &[u8]) -> Model {
    let end = data.len();
    let mut header = format!(
        "{{\"t\":{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[0,{end}]}}}}"
    );
    header += &" ".repeat((8 + header.len()).next_multiple_of(64) - 8 - header.len());
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    Model::from_bytes(&file).expect("a model")
}
