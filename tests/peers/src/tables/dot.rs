//! How fast is a matrix of BF16 times a vector, where it lies?
//!
//! barest by one `dot` for each row, on one thread. candle multiplies with a library of its own, on
//! as many threads as that likes; others widen all of the matrix first. And what none can do
//! without: reading each weight once.

use super::decode::{LARGE, SMALL, bytes_of, candle, converted, model, patterns, row};
use crate::Run;
use crate::bench::{Contender, race};
use crate::table::{Cell, Table};
use candle_core::{DType, Device, Tensor};
use half::bf16;
use half::slice::HalfFloatSliceExt;
use std::io;

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for (name, elements, columns) in [("in L2", SMALL, 1024), ("in memory", LARGE, 6912)] {
        if run.wants("dot", &name.replace(' ', "-")) {
            rows.extend(products(run, name, elements, columns));
        }
    }
    Ok(Table {
        title: "dot: all rows of a BF16 matrix times a vector".into(),
        columns: &["where", "beside", "beside takes", "barest", "barest is faster", "goal"],
        rows,
    })
}

fn products(run: &Run, name: &str, elements: usize, columns: usize) -> Vec<Vec<Cell>> {
    let rows = elements / columns;
    let bits = patterns(elements, 118 << 7, 5 << 7);
    let bytes = bytes_of(&bits);
    let numbers: Vec<bf16> = bits.iter().map(|&bits| bf16::from_bits(bits)).collect();
    let model = model("BF16", &[rows, columns], &bytes);
    let view = model.tensor("t").and_then(|tensor| tensor.bf16()).expect("BF16");
    let weights = model.tensor("t").expect("the tensor").bytes();
    let vector: Vec<f32> = (0..columns).map(|column| (column as f32).sin()).collect();
    let matrix = candle(DType::BF16, &bytes, &[rows, columns]);
    let factors = Tensor::from_slice(&vector, (columns, 1), &Device::Cpu).expect("a tensor");
    let narrow_factors = factors.to_dtype(DType::BF16).expect("a tensor");
    let (mut widened, mut by_half) = (vec![0.0; elements], vec![0.0; elements]);
    let (mut products, mut theirs) = (vec![0.0; rows], vec![0.0; rows]);
    let mut others = vec![0.0; rows];
    let [candle, narrow_candle, widen, half, once, dot] = race(
        [
            Contender::new(|watch| {
                watch.ready(&converted(&matrix).matmul(&factors).expect("products"));
            }),
            Contender::new(|watch| {
                watch.ready(&matrix.matmul(&narrow_factors).expect("products"));
            }),
            Contender::new(|watch| {
                view.read_f32(&mut widened).expect("as long");
                all_rows(&widened, &vector, &mut theirs);
                watch.ready(&theirs);
            }),
            Contender::new(|watch| {
                numbers.convert_to_f32_slice(&mut by_half);
                all_rows(&by_half, &vector, &mut others);
                watch.ready(&others);
            }),
            Contender::new(|watch| watch.ready(&read_once(weights))),
            Contender::new(|watch| {
                for (row, product) in products.iter_mut().enumerate() {
                    *product = view.row(row).and_then(|row| row.dot(&vector)).expect("as long");
                }
                watch.ready(&products);
            }),
        ],
        run.rounds,
    );
    let by_candle = converted(&matrix).matmul(&factors).and_then(|product| product.flatten_all());
    let by_candle: Vec<f32> = by_candle.and_then(|product| product.to_vec1()).expect("products");
    for (ours, theirs) in products.iter().zip(&by_candle) {
        assert!((ours - theirs).abs() <= 1e-3 * (1.0 + theirs.abs()), "{ours} {theirs}");
    }
    for (ours, theirs) in products.iter().zip(&theirs) {
        assert!((ours - theirs).abs() <= 1e-3 * (1.0 + theirs.abs()), "{ours} {theirs}");
    }
    let goal = |times| (elements == LARGE).then_some(times);
    vec![
        row(name, "candle: to_dtype(F32), then matmul", &candle, &dot, goal(8.0)),
        row(name, "candle: matmul of BF16", &narrow_candle, &dot, goal(8.0)),
        row(name, "barest: widen all, then dot", &widen, &dot, goal(4.0)),
        row(name, "half: widen all, then dot", &half, &dot, None),
        row(name, "reading once", &once, &dot, goal(0.6)),
    ]
}

/// What a careful program does with f32: sixteen sums that the compiler vectorises.
fn all_rows(matrix: &[f32], vector: &[f32], products: &mut [f32]) {
    for (row, product) in matrix.chunks_exact(vector.len()).zip(products) {
        let mut sums = [0.0f32; 16];
        for (values, factors) in row.chunks_exact(16).zip(vector.chunks_exact(16)) {
            for lane in 0..16 {
                sums[lane] += values[lane] * factors[lane];
            }
        }
        *product = sums.iter().sum();
    }
}

/// Each byte once, as fast as this processor reads.
fn read_once(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor was just asked.
        return unsafe { by_avx2(bytes) };
    }
    in_four_streams(bytes)
}

/// # Safety
///
/// The processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn by_avx2(bytes: &[u8]) -> u64 {
    in_four_streams(bytes)
}

/// Side by side, which the memory likes better than one.
#[inline(always)]
fn in_four_streams(bytes: &[u8]) -> u64 {
    let (first, last) = bytes.split_at(bytes.len() / 2);
    let ((one, two), (three, four)) =
        (first.split_at(first.len() / 2), last.split_at(last.len() / 2));
    let streams = [one, two, three, four].map(|stream| stream.chunks_exact(64));
    let [one, two, three, four] = streams;
    let mut sums = [0u64; 8];
    for (((one, two), three), four) in one.zip(two).zip(three).zip(four) {
        for lane in 0..8 {
            let word = |line: &[u8]| {
                u64::from_le_bytes(line[lane * 8..][..8].try_into().expect("eight bytes"))
            };
            sums[lane] ^= word(one) ^ word(two) ^ word(three) ^ word(four);
        }
    }
    sums.iter().fold(0, |all, sum| all ^ sum)
}
