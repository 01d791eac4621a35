//! How fast do elements become numbers, and how fast are they used where they lie?
//!
//! Into a buffer that is kept: fresh memory costs more than the conversion, for everyone. Once with
//! what fits the second-level cache, once with more than any cache holds.

use crate::Run;
use crate::bench::{Contender, Spread, race};
use crate::headers::Random;
use crate::table::{Cell, Goal, Table};
use barest::Model;
use float8::F8E4M3;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use std::io;

/// 128 Ki elements: 256 KiB of BF16 become 512 KiB.
const SMALL: usize = 128 << 10;

/// 56 Mi elements: 113 MB of BF16, a matrix of 8192 x 6912, become 226 MB.
const LARGE: usize = 8192 * 6912;

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for (size, elements) in [("in L2", SMALL), ("in memory", LARGE)] {
        for (dtype, make) in [
            ("BF16", bf16_rows as fn(&Run, &str, usize) -> Vec<Vec<Cell>>),
            ("F16", f16_rows),
            ("F8_E4M3", f8_rows),
            ("dot", dot_rows),
        ] {
            let name = format!("{dtype} {size}");
            if run.wants("decode", &name.replace(' ', "-")) {
                rows.extend(make(run, &name, elements));
            }
        }
    }
    Ok(Table {
        title: "decode: elements to f32 in a buffer that is kept, and rows times a vector",
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
    let [half, copy, barest] = race(
        [
            Contender::new(|watch| {
                numbers.convert_to_f32_slice(&mut theirs);
                watch.ready(&theirs);
            }),
            Contender::new(|watch| {
                to.copy_from_slice(&from);
                watch.ready(&to);
            }),
            Contender::new(|watch| {
                view.read_f32(&mut ours).expect("as long");
                watch.ready(&ours);
            }),
        ],
        run.rounds,
    );
    assert_eq!(theirs, ours);
    // Beside memcpy: at most 1.3 and 1.1 times its time.
    let (beside_half, beside_copy) = if elements == SMALL { (2.5, 0.77) } else { (2.0, 0.91) };
    vec![
        row(name, "half", &half, &barest, Some(beside_half)),
        row(name, "memcpy of as many bytes", &copy, &barest, Some(beside_copy)),
    ]
}

fn f16_rows(run: &Run, name: &str, elements: usize) -> Vec<Vec<Cell>> {
    let bits = patterns(elements, 6 << 10, 5 << 10);
    let numbers: Vec<f16> = bits.iter().map(|&bits| f16::from_bits(bits)).collect();
    let model = model("F16", &[elements], &bytes_of(&bits));
    let view = model.tensor("t").and_then(|tensor| tensor.f16()).expect("F16");
    let (mut theirs, mut ours) = (vec![0.0; elements], vec![0.0; elements]);
    let [half, barest] = race(
        [
            Contender::new(|watch| {
                numbers.convert_to_f32_slice(&mut theirs);
                watch.ready(&theirs);
            }),
            Contender::new(|watch| {
                view.read_f32(&mut ours).expect("as long");
                watch.ready(&ours);
            }),
        ],
        run.rounds,
    );
    assert_eq!(theirs, ours);
    vec![row(name, "half", &half, &barest, (elements == SMALL).then_some(2.8))]
}

/// `float8` is what candle converts with, one element after the other; candle itself allocates
/// besides.
fn f8_rows(run: &Run, name: &str, elements: usize) -> Vec<Vec<Cell>> {
    let mut random = Random(3);
    let finite = |bits: u8| if bits & 0x7f == 0x7f { 0x38 } else { bits };
    let bytes: Vec<u8> = (0..elements).map(|_| finite(random.below(256) as u8)).collect();
    let numbers: Vec<F8E4M3> = bytes.iter().map(|&bits| F8E4M3::from_bits(bits)).collect();
    let model = model("F8_E4M3", &[elements], &bytes);
    let view = model.tensor("t").and_then(|tensor| tensor.floats()).expect("floats");
    let (mut theirs, mut ours) = (vec![0.0; elements], vec![0.0; elements]);
    let [float8, barest] = race(
        [
            Contender::new(|watch| {
                for (value, number) in theirs.iter_mut().zip(&numbers) {
                    *value = number.to_f32();
                }
                watch.ready(&theirs);
            }),
            Contender::new(|watch| {
                view.read_f32(&mut ours).expect("as long");
                watch.ready(&ours);
            }),
        ],
        run.rounds,
    );
    assert_eq!(theirs, ours);
    let goal = if elements == SMALL { 25.0 } else { 11.0 };
    vec![row(name, "float8 (candle's)", &float8, &barest, Some(goal))]
}

/// All rows of a matrix times one vector.
fn dot_rows(run: &Run, name: &str, elements: usize) -> Vec<Vec<Cell>> {
    let columns = if elements == SMALL { 1024 } else { 6912 };
    let rows = elements / columns;
    let bits = patterns(elements, 118 << 7, 5 << 7);
    let numbers: Vec<bf16> = bits.iter().map(|&bits| bf16::from_bits(bits)).collect();
    let model = model("BF16", &[rows, columns], &bytes_of(&bits));
    let view = model.tensor("t").and_then(|tensor| tensor.bf16()).expect("BF16");
    let vector: Vec<f32> = (0..columns).map(|column| (column as f32).sin()).collect();
    let (mut widened, mut by_half) = (vec![0.0; elements], vec![0.0; elements]);
    let (mut products, mut theirs) = (vec![0.0; rows], vec![0.0; rows]);
    let mut others = vec![0.0; rows];
    let [widen, half, dot] = race(
        [
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
            Contender::new(|watch| {
                for (row, product) in products.iter_mut().enumerate() {
                    *product = view.row(row).and_then(|row| row.dot(&vector)).expect("as long");
                }
                watch.ready(&products);
            }),
        ],
        run.rounds,
    );
    for (ours, theirs) in products.iter().zip(&theirs) {
        assert!((ours - theirs).abs() <= 1e-3 * (1.0 + theirs.abs()), "{ours} {theirs}");
    }
    let goal = (elements == LARGE).then_some(4.0);
    vec![
        row(name, "barest: widen all, then dot", &widen, &dot, goal),
        row(name, "half: widen all, then dot", &half, &dot, None),
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

fn row(name: &str, peer: &str, theirs: &[f64], ours: &[f64], goal: Option<f64>) -> Vec<Cell> {
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

/// Bits of 16-bit floats like weights: of either sign, exponents in a small range.
fn patterns(elements: usize, from: usize, range: usize) -> Vec<u16> {
    let mut random = Random(7);
    let mut one = || (random.below(2) << 15 | (from + random.below(range))) as u16;
    (0..elements).map(|_| one()).collect()
}

fn bytes_of(bits: &[u16]) -> Vec<u8> {
    bits.iter().flat_map(|bits| bits.to_le_bytes()).collect()
}

/// A model of one tensor `t`, its data on a multiple of 64.
fn model(dtype: &str, shape: &[usize], data: &[u8]) -> Model {
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
