//! Does a part of a tensor hold the elements that were asked for, those alone, and in order?
//!
//! ```text
//!   shape, selects ──every index of every axis──▶ shape, elements ──▶ bytes, values, ranges
//!                  └──the view────────────────▶ the same, or an error with the same numbers
//! ```
//!
//! The oracle knows no strides and no runs: it lists the elements. Consecutive ones, joined as far
//! as that goes, are pieces of the file; elements below 8 bits may be cut where every piece begins
//! and ends with a byte, and nowhere else. What NumPy 2.4.6 answers was recorded, and the oracle
//! has to agree with it.
//!
//! This test binary counts what it allocates: each thread its own.

use barest::{
    Bf16, Bool, C64, Dtype, Element, Error, ErrorKind, F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz,
    F8E5M2, F8E5M2Fnuz, F8E8M0, F16, Model, Select, Sliced, TensorView,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{FileFailurePersistence, TestCaseResult, TestRunner};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

/// A fixed number of cases. One that fails is kept beside this file, to be committed with its cure.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        source_file: Some(file!()),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

// The oracle.

/// What was selected.
#[derive(Clone, PartialEq, Debug)]
struct Part {
    shape: Vec<u64>,
    /// By their numbers in the tensor, in C order.
    elements: Vec<u64>,
}

/// Why nothing was.
#[derive(Clone, PartialEq, Debug)]
enum Refused {
    Axis { axes: usize, axis: usize },
    Index { dimension: u64, index: u64 },
    Range { dimension: u64, start: u64, end: u64, step: u64 },
    Uneven { dimension: u64, world: u64 },
    Scalar,
    SplitsByte,
    Other(String),
}

impl Refused {
    fn of(error: &Error) -> Refused {
        match *error.kind() {
            ErrorKind::NoSuchAxis { expected: axes, found: axis } => Refused::Axis { axes, axis },
            ErrorKind::OutOfRange { expected: dimension, found: index } => {
                Refused::Index { dimension, index }
            }
            ErrorKind::BadRange { dimension, start, end, step } => {
                Refused::Range { dimension, start, end, step }
            }
            ErrorKind::Uneven { dimension, world } => Refused::Uneven { dimension, world },
            ErrorKind::NoRows => Refused::Scalar,
            ErrorKind::SplitsByte { .. } => Refused::SplitsByte,
            _ => Refused::Other(error.to_string()),
        }
    }
}

/// The part of a shape, by looking at each index of each axis; the first axis at fault is named.
fn part_of(shape: &[u64], selects: &[Select]) -> Result<Part, Refused> {
    if selects.len() > shape.len() {
        return Err(Refused::Axis { axes: shape.len(), axis: selects.len() - 1 });
    }
    let of_axis = |axis: usize| selects.get(axis).copied().unwrap_or(Select::all());
    let mut left = Vec::new();
    for (axis, &dimension) in shape.iter().enumerate() {
        match of_axis(axis) {
            Select::Index(index) if index >= dimension => {
                return Err(Refused::Index { dimension, index });
            }
            Select::Index(_) => {}
            Select::Range { start, end, step } => {
                let end = end.unwrap_or(dimension);
                if step == 0 || end < start || dimension < end {
                    return Err(Refused::Range { dimension, start, end, step });
                }
                // Not counted one by one: beside a 0 they may be more than can be.
                let (whole, rest) = ((end - start) / step, (end - start) % step);
                left.push(whole + rest.min(1));
            }
        }
    }
    if left.contains(&0) {
        return Ok(Part { shape: left, elements: Vec::new() });
    }
    let is_taken = |axis: usize, index: u64| match of_axis(axis) {
        Select::Index(taken) => index == taken,
        Select::Range { start, end, step } => {
            let is_before_end = end.is_none_or(|end| index < end);
            start <= index && is_before_end && (index - start) % step == 0
        }
    };
    let mut elements = vec![0];
    for (axis, &dimension) in shape.iter().enumerate() {
        let indices: Vec<u64> = (0..dimension).filter(|&index| is_taken(axis, index)).collect();
        let of_one = |before: u64| indices.iter().map(move |index| before * dimension + index);
        elements = elements.into_iter().flat_map(of_one).collect();
    }
    Ok(Part { shape: left, elements })
}

/// Consecutive elements joined.
fn joined(elements: &[u64]) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for &element in elements {
        match runs.last_mut() {
            Some(run) if run.end == element => run.end += 1,
            _ => runs.push(element..element + 1),
        }
    }
    runs
}

/// The same in bytes; `None` if a run begins or ends within one.
fn bytes_of(runs: &[Range<u64>], bits: u64) -> Option<Vec<Range<usize>>> {
    let place = |element: u64| (element * bits % 8 == 0).then_some((element * bits / 8) as usize);
    runs.iter().map(|run| Some(place(run.start)?..place(run.end)?)).collect()
}

// What is held against it.

/// A part, or the refusal to give it, is the one that the oracle has.
fn agrees(
    found: Result<Sliced<'_>, Error>,
    expected: Result<Part, Refused>,
    tensor: TensorView<'_>,
) -> TestCaseResult {
    let in_bytes =
        |part: &Part| bytes_of(&joined(&part.elements), tensor.dtype().bits()).map(|_| ());
    let expected = expected.and_then(|part| match in_bytes(&part) {
        Some(()) => Ok(part),
        None => Err(Refused::SplitsByte),
    });
    match (found, expected) {
        (Ok(sliced), Ok(part)) => holds(&sliced, &part, tensor),
        (Err(error), Err(refused)) => {
            prop_assert_eq!(Refused::of(&error), refused);
            prop_assert_eq!(error.tensor(), Some(tensor.name()));
            prop_assert!(!error.to_string().contains('\n'));
            Ok(())
        }
        (found, expected) => Err(TestCaseError::fail(format!("{found:?}, expected {expected:?}"))),
    }
}

fn holds(sliced: &Sliced<'_>, part: &Part, tensor: TensorView<'_>) -> TestCaseResult {
    let (whole, bits) = (tensor.bytes(), tensor.dtype().bits());
    let pieces = bytes_of(&joined(&part.elements), bits).expect("it was looked at before");
    let bytes: Vec<u8> = pieces.iter().flat_map(|piece| &whole[piece.clone()]).copied().collect();

    // 1. What it is.
    prop_assert_eq!(sliced.shape(), &part.shape);
    prop_assert_eq!(sliced.len(), part.elements.len());
    prop_assert_eq!(sliced.is_empty(), part.elements.is_empty());
    prop_assert_eq!(sliced.byte_len(), bytes.len());
    prop_assert_eq!(sliced.dtype(), tensor.dtype());
    prop_assert_eq!(sliced.tensor().name(), tensor.name());

    // 2. Its bytes, borrowed run by run, where the file has them; and in one piece if they are one.
    let runs: Vec<&[u8]> = sliced.runs().collect();
    let ranges: Vec<Range<u64>> = sliced.file_ranges().collect();
    prop_assert_eq!(runs.concat(), &bytes[..]);
    prop_assert_eq!(sliced.clone().runs().count(), runs.len());
    prop_assert_eq!(ranges.len(), runs.len());
    let start = tensor.file_range().start;
    for (run, range) in runs.iter().zip(&ranges) {
        prop_assert!(!run.is_empty());
        let place = run.as_ptr() as usize - whole.as_ptr() as usize;
        prop_assert_eq!(place as u64 + start..(place + run.len()) as u64 + start, range.clone());
    }
    let in_file = ranges.iter().flat_map(|range| range.start - start..range.end - start);
    prop_assert!(in_file.eq(pieces.iter().flat_map(|piece| piece.start as u64..piece.end as u64)));
    match sliced.bytes() {
        None => prop_assert!(pieces.len() > 1, "{:?} lie together", pieces),
        Some(together) => {
            prop_assert!(pieces.len() <= 1, "{:?} do not lie together", pieces);
            prop_assert_eq!(together, &bytes[..]);
            let first = pieces.first().map(|piece| whole[piece.start..].as_ptr());
            prop_assert!(first.is_none_or(|first| first == together.as_ptr()), "copied");
        }
    }

    // 3. Copied, into a buffer that fits and no other.
    let mut buffer = vec![0xa5; bytes.len()];
    prop_assert!(sliced.copy_to(&mut buffer).is_ok());
    prop_assert_eq!(buffer, &bytes[..]);
    for wrong in [bytes.len().wrapping_sub(1), bytes.len() + 1, bytes.len() * 2 + 7] {
        if wrong == usize::MAX {
            continue;
        }
        let mut buffer = vec![0xa5; wrong];
        let error = sliced.copy_to(&mut buffer).unwrap_err();
        prop_assert_eq!(wrong_length(&error), Some((bytes.len(), wrong)));
        prop_assert!(buffer.iter().all(|&byte| byte == 0xa5));
    }

    // 4. Its values.
    values_agree(sliced, &part.elements, tensor)?;
    as_f32_agree(sliced, &part.elements, tensor)
}

fn wrong_length(error: &Error) -> Option<(usize, usize)> {
    match *error.kind() {
        ErrorKind::WrongLength { expected, found }
        | ErrorKind::WrongByteLength { expected, found } => Some((expected, found)),
        _ => None,
    }
}

fn values_agree(sliced: &Sliced<'_>, elements: &[u64], tensor: TensorView<'_>) -> TestCaseResult {
    fn of<E: Element>(
        sliced: &Sliced<'_>,
        elements: &[u64],
        tensor: TensorView<'_>,
        bits: impl Fn(E::Value) -> u64,
    ) -> TestCaseResult {
        let whole = tensor.elements::<E>().unwrap();
        let expected: Vec<u64> =
            elements.iter().map(|&element| bits(whole.get(element as usize).unwrap())).collect();
        let found: Vec<u64> = sliced.values::<E>().unwrap().map(bits).collect();
        prop_assert_eq!(found, expected);
        Ok(())
    }
    macro_rules! by_dtype {
        ($($dtype:ident $element:ty: $bits:expr;)*) => {
            match tensor.dtype() {
                $(Dtype::$dtype => of::<$element>(sliced, elements, tensor, $bits)?,)*
                unknown => panic!("{unknown} is not in this table"),
            }
        };
    }
    let float = |value: f32| u64::from(value.to_bits());
    by_dtype! {
        Bool Bool: u64::from;
        U8 u8: u64::from;
        I8 i8: |value| value as u64;
        U16 u16: u64::from;
        I16 i16: |value| value as u64;
        U32 u32: u64::from;
        I32 i32: |value| value as u64;
        U64 u64: |value| value;
        I64 i64: |value| value as u64;
        F4 F4: float;
        F6E2M3 F6E2M3: float;
        F6E3M2 F6E3M2: float;
        F8E4M3 F8E4M3: float;
        F8E5M2 F8E5M2: float;
        F8E8M0 F8E8M0: float;
        F8E4M3Fnuz F8E4M3Fnuz: float;
        F8E5M2Fnuz F8E5M2Fnuz: float;
        F16 F16: float;
        Bf16 Bf16: float;
        F32 f32: float;
        F64 f64: f64::to_bits;
        C64 C64: |(re, im)| float(re) << 32 | float(im);
    }
    // A value of another dtype is none of these.
    let other = match tensor.dtype() {
        Dtype::U8 => sliced.values::<i8>().map(drop),
        _ => sliced.values::<u8>().map(drop),
    };
    let refused = matches!(other.unwrap_err().kind(), ErrorKind::WrongDtype { .. });
    prop_assert!(refused);
    Ok(())
}

fn as_f32_agree(sliced: &Sliced<'_>, elements: &[u64], tensor: TensorView<'_>) -> TestCaseResult {
    let mut buffer = vec![-7.5f32; elements.len()];
    let Ok(floats) = tensor.floats() else {
        for error in [sliced.read_f32(&mut buffer).unwrap_err(), sliced.to_f32().unwrap_err()] {
            let found = match *error.kind() {
                ErrorKind::WrongDtype { found, .. } => Some(found),
                _ => None,
            };
            prop_assert_eq!(found, Some(tensor.dtype()), "{}", error);
        }
        prop_assert!(buffer.iter().all(|&value| value == -7.5));
        return Ok(());
    };
    // An F64 may become any NaN.
    let bits = |value: f32| match tensor.dtype() {
        Dtype::F64 if value.is_nan() => f32::NAN.to_bits(),
        _ => value.to_bits(),
    };
    let all_bits = |values: Vec<f32>| values.into_iter().map(bits).collect::<Vec<u32>>();
    let expected: Vec<u32> =
        elements.iter().map(|&element| bits(floats.get(element as usize).unwrap())).collect();
    prop_assert!(sliced.read_f32(&mut buffer).is_ok());
    prop_assert_eq!(all_bits(buffer), &expected[..]);
    prop_assert_eq!(all_bits(sliced.to_f32().unwrap()), &expected[..]);
    for wrong in [elements.len().wrapping_sub(1), elements.len() + 1] {
        if wrong == usize::MAX {
            continue;
        }
        let mut buffer = vec![-7.5f32; wrong];
        let error = sliced.read_f32(&mut buffer).unwrap_err();
        prop_assert_eq!(wrong_length(&error), Some((elements.len(), wrong)));
        prop_assert!(buffer.iter().all(|&value| value == -7.5));
    }
    Ok(())
}

// Tensors, and what may be asked of them.

/// A model of one tensor, `t`, whose data begins `odd` bytes behind a multiple of 16.
fn model(dtype: Dtype, shape: &[u64], salt: u8, odd: usize) -> Model {
    let elements = if shape.contains(&0) { 0 } else { shape.iter().product::<u64>() };
    let end = elements * dtype.bits() / 8;
    assert_eq!(elements * dtype.bits() % 8, 0, "{dtype} {shape:?} is no tensor");
    let mut header =
        format!(r#"{{"t":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[0,{end}]}}}}"#);
    while (8 + header.len()) % 16 != odd {
        header.push(' ');
    }
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    // No byte is like its neighbours; of truth values there are only two.
    let mask = if dtype == Dtype::Bool { 1 } else { 0xff };
    file.extend((0..end).map(|at| (((at * 167) ^ (at >> 8)) as u8 ^ salt) & mask));
    Model::from_bytes(&file).unwrap()
}

#[derive(Clone, Debug)]
struct Tensor {
    dtype: Dtype,
    shape: Vec<u64>,
    salt: u8,
    odd: usize,
}

impl Tensor {
    fn model(&self) -> Model {
        model(self.dtype, &self.shape, self.salt, self.odd)
    }
}

fn tensor() -> impl Strategy<Value = Tensor> {
    let narrow = select(vec![Dtype::F4, Dtype::F6E2M3, Dtype::F6E3M2]);
    let dtype = prop_oneof![3 => select(Dtype::ALL), 2 => narrow];
    let dimension = prop_oneof![1 => Just(1), 6 => 2..5u64, 2 => 5..9u64];
    let far = select(vec![1, 3, 1 << 40, (1 << 62) - 1, 1 << 62, u64::MAX]);
    // In one of eight a 0 somewhere, and dimensions that only a 0 can stand beside.
    let zero = prop_oneof![7 => Just(None), 1 => (any::<Index>(), vec(far, 7)).prop_map(Some)];
    let whole = prop_oneof![2 => Just(None), 1 => any::<Index>().prop_map(Some)];
    let parts = (dtype, vec(dimension, 0..=6), whole, zero, any::<u8>(), 0..16usize);
    parts.prop_map(|(dtype, mut shape, whole, zero, salt, odd)| {
        // Few enough elements to list them for each question.
        let mut elements = 1;
        for dimension in &mut shape {
            *dimension = if elements * *dimension > 300 { 1 } else { *dimension };
            elements *= *dimension;
        }
        // Elements below 8 bits fill whole bytes: by their last axis, or by another.
        let per_bytes = [2, 4][usize::from(dtype.bits() == 6)];
        match shape.len() {
            _ if dtype.bits() >= 8 => {}
            0 => shape.push(per_bytes),
            rank => shape[whole.map_or(rank - 1, |whole| whole.index(rank))] *= per_bytes,
        }
        if let Some((place, far)) = zero {
            let place = place.index(shape.len() + 1);
            shape.insert(place, 0);
            for (dimension, far) in shape[place + 1..].iter_mut().zip(&far) {
                *dimension = *far;
            }
            // Before it their product has to fit.
            if place == 1 {
                shape[0] = far[6];
            }
        }
        Tensor { dtype, shape, salt, odd }
    })
}

/// What shall be taken of an axis, whatever its length.
#[derive(Clone, Debug)]
struct Wish {
    kind: u8,
    one: u64,
    other: u64,
    step: u64,
}

fn wish() -> impl Strategy<Value = Wish> {
    (0..40u8, any::<u64>(), any::<u64>(), 2..5u64).prop_map(|(kind, one, other, step)| Wish {
        kind,
        one,
        other,
        step,
    })
}

impl Wish {
    /// Two indices of an axis, its end included, the smaller first, and only now and then the same.
    fn pair(&self, dimension: u64) -> (u64, u64) {
        let [one, other] = [self.one, self.other]
            .map(|number| (u128::from(number) % (u128::from(dimension) + 1)) as u64);
        match one == other && self.step != 2 {
            true => (0, dimension),
            false => (one.min(other), one.max(other)),
        }
    }

    fn select(&self, dimension: u64) -> Select {
        let (start, end) = self.pair(dimension);
        match self.kind {
            0..=7 => Select::all(),
            8..=13 if dimension > 0 => Select::Index(self.one % dimension),
            14..=19 => Select::from(start..end),
            20..=24 => Select::from(start..end).every(self.step),
            25 => Select::from(start..end).every(self.one.max(1)),
            26..=28 => Select::all().every(self.step),
            29..=30 => Select::from(start..),
            31..=32 => Select::from(..end),
            33 if end > 0 => Select::from(start.min(end - 1)..=end - 1),
            34 if end > 0 => Select::from(..=end - 1),
            35 => Select::from(start..end.max(1).min(dimension)),
            // Wrong, each in its own way.
            36 => match self.other % 3 {
                0 => Select::Index(dimension),
                1 => Select::Index(u64::MAX),
                _ => Select::Range { start, end: Some(end), step: 0 },
            },
            37 if start < end => Select::from(end..start),
            38 => match self.other % 4 {
                0 => Select::from(start..dimension.saturating_add(1)),
                1 => Select::from(start..=u64::MAX),
                2 => Select::from(dimension.saturating_add(1)..),
                _ => Select::from(u64::MAX..u64::MAX),
            },
            _ => Select::all(),
        }
    }
}

// What holds for every tensor and every question.

thread_local! {
    static SEEN: RefCell<BTreeMap<&'static str, u32>> = const { RefCell::new(BTreeMap::new()) };
}

/// Counts what kinds of answers there were, so that no kind may become a test of nothing.
fn count(dtype: Dtype, expected: &Result<Part, Refused>) {
    let narrow = dtype.bits() < 8;
    let kind = match expected {
        Err(_) => "refused",
        Ok(part) => {
            let runs = joined(&part.elements);
            match (bytes_of(&runs, dtype.bits()), runs.len()) {
                (None, _) => "splits a byte",
                (_, 0) => "empty",
                (_, 1) if narrow => "narrow, together",
                (_, 1) => "together",
                _ if narrow => "narrow, apart",
                _ => "apart",
            }
        }
    };
    SEEN.with_borrow_mut(|seen| *seen.entry(kind).or_default() += 1);
}

#[test]
fn a_slice_is_what_stands_at_its_indices() {
    const CASES: u32 = 3000;
    let questions = (tensor(), vec(wish(), 0..7), 0..30usize);
    let outcome = TestRunner::new(config(CASES)).run(&questions, |(tensor, wishes, more)| {
        let mut selects: Vec<Select> =
            wishes.iter().zip(&tensor.shape).map(|(wish, &of)| wish.select(of)).collect();
        // An axis too many; or the last whole, so that there are parts apart that split no byte.
        match more {
            0 => selects.resize(tensor.shape.len() + 1, Select::Index(0)),
            1..=15 => selects.truncate(tensor.shape.len().saturating_sub(1)),
            _ => {}
        }
        let model = tensor.model();
        let view = model.tensor("t").unwrap();
        let expected = part_of(&tensor.shape, &selects);
        count(tensor.dtype, &expected);
        let found = view.slice(&selects);
        agrees(found, expected, view)
            .map_err(|error| TestCaseError::fail(format!("{selects:?}: {error}")))
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let seen = SEEN.take();
    let kinds = [
        "refused",
        "splits a byte",
        "empty",
        "together",
        "apart",
        "narrow, together",
        "narrow, apart",
    ];
    for kind in kinds {
        assert!(seen.get(kind).is_some_and(|&count| count > CASES / 60), "{kind}: {seen:?}");
    }
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn a_row_is_the_index_of_the_first_axis(
        tensor in tensor(), index in any::<u64>(), far in 0..9u8,
    ) {
        let model = tensor.model();
        let view = model.tensor("t").unwrap();
        let rows = tensor.shape.first().copied().unwrap_or(1);
        let index = match far {
            0 => u64::MAX,
            1 => rows,
            _ => index % rows.max(1),
        };
        prop_assume!(usize::try_from(index).is_ok());
        let expected = match tensor.shape.is_empty() {
            true => Err(Refused::Scalar),
            false => part_of(&tensor.shape, &[Select::Index(index)]),
        };
        agrees(view.row(index as usize), expected.clone(), view)?;

        // The same of values and of floats: these are in one piece, or refused alike.
        let bits = tensor.dtype.bits();
        let bytes = expected.and_then(|part| match bytes_of(&joined(&part.elements), bits) {
            Some(pieces) => Ok((part.shape, pieces.into_iter().next().unwrap_or(0..0))),
            None => Err(Refused::SplitsByte),
        });
        macro_rules! row_of {
            ($elements:expr) => {
                match $elements.row(index as usize) {
                    Ok(row) => Ok((row.shape().to_vec(), row.len() as u64 * bits / 8)),
                    Err(error) => Err(Refused::of(&error)),
                }
            };
        }
        let expected = bytes.map(|(shape, bytes)| (shape, bytes.len() as u64));
        if let Ok(floats) = view.floats() {
            prop_assert_eq!(row_of!(floats), expected.clone());
        }
        match tensor.dtype {
            Dtype::F4 => prop_assert_eq!(row_of!(view.elements::<F4>().unwrap()), expected),
            Dtype::F6E2M3 => prop_assert_eq!(row_of!(view.elements::<F6E2M3>().unwrap()), expected),
            Dtype::Bool => prop_assert_eq!(row_of!(view.bools().unwrap()), expected),
            Dtype::I64 => prop_assert_eq!(row_of!(view.elements::<i64>().unwrap()), expected),
            _ => {}
        }
    }

    #[test]
    fn narrowing_takes_a_range_of_one_axis(
        tensor in tensor(), axis in 0..7usize, wish in wish(), wrong in 0..12u8,
    ) {
        let model = tensor.model();
        let view = model.tensor("t").unwrap();
        let dimension = tensor.shape.get(axis).copied().unwrap_or(1);
        let (start, end) = wish.pair(dimension);
        let range = match wrong {
            0 => end..start,
            1 => start..dimension.saturating_add(1),
            2 => dimension.saturating_add(1)..u64::MAX,
            _ => start..end,
        };
        let expected = match axis < tensor.shape.len() {
            false => Err(Refused::Axis { axes: tensor.shape.len(), axis }),
            true => {
                let mut selects = vec![Select::all(); axis];
                selects.push(Select::Range { start: range.start, end: Some(range.end), step: 1 });
                part_of(&tensor.shape, &selects)
            }
        };
        agrees(view.narrow(axis, range), expected, view)?;
    }

    #[test]
    fn workers_have_equal_parts_that_together_are_the_whole(
        tensor in tensor(),
        axis in 0..7usize,
        worlds in (1..8u64, any::<u64>(), 0..9u8),
        rank in any::<u64>(),
    ) {
        let model = tensor.model();
        let view = model.tensor("t").unwrap();
        let axes = tensor.shape.len();
        let dimension = tensor.shape.get(axis).copied();
        let world = match worlds {
            (_, _, 0) => 0,
            (_, wild, 1) => wild,
            (few, ..) => few,
        };
        let rank = if worlds.2 == 2 { rank } else { rank % world.max(1) };
        let of_rank = |rank: u64| match dimension {
            None => Err(Refused::Axis { axes, axis }),
            Some(_) if rank >= world => Err(Refused::Index { dimension: world, index: rank }),
            Some(dimension) if dimension % world != 0 => Err(Refused::Uneven { dimension, world }),
            Some(dimension) => {
                let share = u128::from(dimension) / u128::from(world);
                let border = |rank: u64| (u128::from(rank) * share) as u64;
                let mut selects = vec![Select::all(); axis];
                selects.push((border(rank)..border(rank + 1)).into());
                part_of(&tensor.shape, &selects)
            }
        };
        let expected = of_rank(rank);
        agrees(view.tensor_parallel(axis, rank, world), expected.clone(), view)?;
        if expected.is_ok() && world < 8 {
            let all = (0..world).flat_map(|rank| of_rank(rank).unwrap().elements);
            let mut all: Vec<u64> = all.collect();
            all.sort();
            prop_assert!(all.into_iter().eq(0..view.len() as u64));
        }
    }
}

// What NumPy answers.

/// A shape; a slice of it; the shape that NumPy gives it; and of the elements, in C order, each
/// progression as first+count*step.
const NUMPY: &str = "\
|  |  | 0
1 | : | 1 | 0
5 | 3 |  | 3
5 | 0 |  | 0
5 | 4 |  | 4
5 | 1:4 | 3 | 1+3*1
5 | ::2 | 3 | 0+3*2
5 | 1::2 | 2 | 1+2*2
5 | ::5 | 1 | 0
5 | 4::3 | 1 | 4
5 | 5: | 0 |
5 | 0:0 | 0 |
5 | 2:2:3 | 0 |
5 | ::7 | 1 | 0
7 | 1:7:3 | 2 | 1+2*3
0 | : | 0 |
0 | 0:0:2 | 0 |
0,3 | :,1 | 0 |
0,3 | :,::2 | 0,2 |
3,0 | 1 | 0 |
3,0 | ::2,: | 2,0 |
2,0,3 | 1,:,2 | 0 |
2,3 |  | 2,3 | 0+6*1
2,3 | 1 | 3 | 3+3*1
2,3 | :,1 | 2 | 1+2*3
2,3 | 0:0,0:1 | 0,1 |
2,3 | 2: | 0,3 |
2,3 | :,3: | 2,0 |
2,3 | ::2,::2 | 1,2 | 0+2*2
2,3 | :,::2 | 2,2 | 0+2*2 3+2*2
2,3 | 1,2 |  | 5
4,6 | 1:3,2:4 | 2,2 | 8+2*1 14+2*1
4,6 | ::3,1::4 | 2,2 | 1+2*4 19+2*4
4,6 | 1:4:2 | 2,6 | 6+6*1 18+6*1
6,4 | 5::1,::3 | 1,2 | 20+2*3
1,1 | 0,0 |  | 0
1,5 | :,1:4 | 1,3 | 1+3*1
5,1 | 1:4,: | 3,1 | 1+3*1
5,1 | ::2,0 | 3 | 0+3*2
3,1,4 | :,0,::3 | 3,2 | 0+2*3 4+2*3 8+2*3
2,3,4 | 1 | 3,4 | 12+12*1
2,3,4 | 1,2 | 4 | 20+4*1
2,3,4 | 1,2,3 |  | 23
2,3,4 | :,1 | 2,4 | 4+4*1 16+4*1
2,3,4 | :,:,3 | 2,3 | 3+6*4
2,3,4 | 0:2,:,::2 | 2,3,2 | 0+12*2
2,3,4 | 1:,1:,1: | 1,2,3 | 17+3*1 21+3*1
2,3,4 | ::2,::2,::2 | 1,2,2 | 0+2*2 8+2*2
2,3,4 | :,3:3,0 | 2,0 |
4,2,3 | 1:4:2,1 | 2,3 | 9+3*1 21+3*1
3,4,5 | 2:3,1:4:2,1:5:3 | 1,2,2 | 46+2*3 56+2*3
2,1,3,1 | 1,0,1:,0 | 2 | 4+2*1
2,3,2,2 | :,::2,1,: | 2,2,2 | 2+2*1 10+2*1 14+2*1 22+2*1
2,3,2,2 | 1,1:,:,::2 | 2,2,1 | 16+4*2
3,2,2,3 | ::2,:,0 | 2,2,3 | 0+3*1 6+3*1 24+3*1 30+3*1
2,2,2,2,2 | 1,0,1,0,1 |  | 21
2,2,2,2,2 | :,1,:,0 | 2,2,2 | 8+2*1 12+2*1 24+2*1 28+2*1
2,2,2,2,2 | ::2,:,1:,:,::2 | 1,2,1,2,1 | 4+2*2 12+2*2
1,2,3,2,1 | 0,:,1:3,:,0 | 2,2,2 | 2+4*1 8+4*1
3,1,2,1,4 | ::2,:,1,:,1::2 | 2,1,1,2 | 5+2*2 21+2*2
100,7 | 3:97:11,2:5 | 9,3 | 23+3*1 100+3*1 177+3*1 254+3*1 331+3*1 408+3*1 485+3*1 562+3*1 639+3*1
3,5,9 | :,::4,1:8:2 | 3,2,4 | 1+4*2 37+4*2 46+4*2 82+4*2 91+4*2 127+4*2
1000 | 1:999:37 | 27 | 1+27*37
31,33 | ::,32 | 31 | 32+31*33
2,3,4,5 | : | 2,3,4,5 | 0+120*1
2,4,6 | : | 2,4,6 | 0+48*1
1,2,3,1,3 | :,: | 1,2,3,1,3 | 0+18*1
2,1,1,1 | :,:1,0,0:1:3 | 2,1,1 | 0+2*1
5,6,2 | 4:5:1 | 1,6,2 | 48+12*1
3,1,3,1,3 | 2::3,:1:1 | 1,1,3,1,3 | 18+9*1
2,3,2,2,3 | :2,1:3:3,:,1::2 | 2,1,2,1,3 | 15+3*1 21+3*1 51+3*1 57+3*1
2,3,2,1,1 | ::2,2:3:2,0:1 | 1,1,1,1,1 | 4
3,2 | 0:3:3 | 1,2 | 0+2*1
4,5 | 2:3:1,0 | 1 | 10
2,2 | : | 2,2 | 0+4*1
3,1,2,2 | 1 | 1,2,2 | 4+4*1
2,3,3,2,1 | ::3,0:3,0,1,0 | 1,3 | 1+3*6
5,1,1 | 1:4 | 3,1,1 | 1+3*1
5,1,1 | 1:3:2 | 1,1,1 | 1
5,3,4 | : | 5,3,4 | 0+60*1
";

fn numbers(text: &str) -> Vec<u64> {
    let numbers = text.split(',').map(str::trim).filter(|number| !number.is_empty());
    numbers.map(|number| number.parse().unwrap()).collect()
}

fn progressions(text: &str) -> Vec<u64> {
    let of_one = |text: &str| {
        let (first, rest) = text.split_once('+').unwrap_or((text, "1*1"));
        let (count, step) = rest.split_once('*').unwrap();
        let [first, count, step] =
            [first, count, step].map(|digits| digits.parse::<u64>().unwrap());
        (0..count).map(move |at| first + at * step)
    };
    text.split_whitespace().flat_map(of_one).collect()
}

fn selects(text: &str) -> Vec<Select> {
    let number = |text: &str| (!text.is_empty()).then(|| text.parse::<u64>().unwrap());
    let one = |text: &str| {
        let parts: Vec<Option<u64>> = text.split(':').map(number).collect();
        match parts[..] {
            [Some(index)] => index.into(),
            [start, end] => Select::Range { start: start.unwrap_or(0), end, step: 1 },
            [start, end, step] => {
                Select::Range { start: start.unwrap_or(0), end, step: step.unwrap_or(1) }
            }
            _ => panic!("{text:?} is no slice"),
        }
    };
    text.split(',').filter(|text| !text.is_empty()).map(one).collect()
}

#[test]
fn slices_are_what_numpy_makes_of_them() {
    let mut rows = 0;
    for line in NUMPY.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [shape, slice, left, elements] = cells[..] else { panic!("{line:?}") };
        let (shape, selects) = (numbers(shape), selects(slice));
        let part = Part { shape: numbers(left), elements: progressions(elements) };
        assert_eq!(part_of(&shape, &selects), Ok(part.clone()), "the oracle, of {line}");
        for dtype in [Dtype::U8, Dtype::Bf16, Dtype::F32, Dtype::C64] {
            let model = model(dtype, &shape, 3, rows % 16);
            let view = model.tensor("t").unwrap();
            agrees(view.slice(&selects), Ok(part.clone()), view)
                .unwrap_or_else(|error| panic!("{dtype} {line}: {error}"));
        }
        rows += 1;
    }
    assert_eq!(rows, 80);
}

// Where the reference is wrong.

/// What the reference crate (`safetensors` 0.8.0) was seen to do with a slice: built for debugging,
/// and for release where that differs; the number of the issue or request, if there is one; and
/// what is right: a shape and elements, or the words of an error.
#[test]
fn what_the_reference_gets_wrong_is_right() {
    const FAR: u64 = 1 << 62;
    type Right = Result<(&'static [u64], &'static [u64]), &'static str>;
    type Row = (&'static str, &'static str, &'static [u64], Vec<Select>, Right);
    let nothing = |left: &'static [u64]| Ok((left, &[][..]));
    let rows: [Row; 23] = [
        // A range that ends before it begins has 2^64-1 indices or so.
        ("panics", "#843", &[4], selects("3:1"), Err("range 3..1")),
        ("panics", "#844", &[5, 2], selects("4:0"), Err("range 4..0")),
        ("panics", "#815", &[2, 3], selects(":,2:1"), Err("range 2..1")),
        ("panics", "#815", &[2, 3], selects("1:0,:"), Err("range 1..0")),
        ("panics; all of it", "#815", &[6], selects("5:2:2"), Err("range 5..2 in steps of 2")),
        // Nothing of one axis becomes everything.
        ("all of it", "#855", &[8], selects("0:0:2"), nothing(&[0])),
        ("all of it", "#855", &[2, 3], selects("0:0,0:1"), nothing(&[0, 1])),
        ("all of it", "#815", &[3, 2, 2], selects("1:1,:,1"), nothing(&[0, 2])),
        ("all of it", "#815", &[3, 4], selects("2:2,::3"), nothing(&[0, 2])),
        // An index that has no successor.
        ("panics", "#809", &[10], selects("18446744073709551615"), Err("below 10, found 1844674")),
        ("panics; empty", "#809", &[10], vec![(0..=u64::MAX).into()], Err("range 0..1844674")),
        ("panics; empty", "#809", &[10], vec![(..=u64::MAX).into()], Err("range 0..1844674")),
        // The end of an axis is a place to begin, if nothing is taken from there.
        ("refuses", "none", &[2], selects("2:2"), nothing(&[0])),
        ("refuses", "none", &[2, 3], selects(":,3:"), nothing(&[2, 0])),
        ("refuses", "none", &[0], selects(":"), nothing(&[0])),
        ("refuses", "none", &[2, 0, 3], selects(":,::2,1"), nothing(&[2, 0])),
        // Dimensions beside a 0 are multiplied all the same.
        ("panics", "#766", &[0, FAR, 8], selects(""), nothing(&[0, FAR, 8])),
        ("panics; refuses", "#766", &[0, FAR, FAR], selects(":,9"), nothing(&[0, FAR])),
        // What older ones did, as their issues tell.
        ("panics", "#560", &[3, 5], selects("0,0:6"), Err("range 0..6")),
        ("panics", "#565", &[3, 5], selects("3"), Err("below 3, found 3")),
        ("refuses", "#439", &[3, 5], selects("1,:"), Ok((&[5], &[5, 6, 7, 8, 9]))),
        ("empty", "#495", &[3], selects(""), Ok((&[3], &[0, 1, 2]))),
        ("empty", "#495", &[], selects(""), Ok((&[], &[0]))),
    ];
    for (theirs, issue, shape, selects, right) in rows {
        let case = format!("{shape:?} {selects:?}, where the reference: {theirs} ({issue})");
        let model = model(Dtype::U16, shape, 1, 3);
        let view = model.tensor("t").unwrap();
        match (view.slice(&selects), right) {
            (Ok(sliced), Ok((left, elements))) => {
                let part = Part { shape: left.to_vec(), elements: elements.to_vec() };
                holds(&sliced, &part, view).unwrap_or_else(|error| panic!("{case}: {error}"));
            }
            (Err(error), Err(words)) => {
                assert!(error.to_string().contains(words), "{case}: {error}");
            }
            (found, _) => panic!("{case}: {found:?}"),
        }
    }
}

/// A view of more elements than can be counted is not made in the first place (#765).
#[test]
fn a_shape_whose_product_wraps_is_no_tensor() {
    for shape in ["[9223372036854775808,2]", "[18446744073709551615,2]", "[2305843009213693952]"] {
        let header = format!(r#"{{"t":{{"dtype":"U8","shape":{shape},"data_offsets":[0,0]}}}}"#);
        let len = (header.len() as u64).to_le_bytes();
        let error = Model::from_bytes(&[&len, header.as_bytes()].concat()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Overflow { .. }), "{error}");
    }
}

/// The bytes live as long as the model, not as long as the view or the slice of it.
#[test]
fn runs_outlive_the_view_that_they_were_asked_of() {
    let model = model(Dtype::U8, &[2, 3], 0, 0);
    let runs = model.tensor("t").unwrap().slice(&[Select::all(), 1.into()]).unwrap().runs();
    let values = model.tensor("t").unwrap().narrow(0, 1..2).unwrap().values::<u8>().unwrap();
    let bytes = model.tensor("t").unwrap().row(1).unwrap().bytes().unwrap();
    let whole = model.tensor("t").unwrap().bytes();
    assert_eq!(runs.collect::<Vec<_>>(), [&whole[1..2], &whole[4..5]]);
    assert!(values.eq(whole[3..].iter().copied()));
    assert_eq!(bytes, &whole[3..]);
}

// Any rank.

#[test]
fn a_thousand_axes_are_as_good_as_two() {
    let shape = |rank: usize, dimensions: &[(usize, u64)]| {
        let mut shape = vec![1; rank];
        dimensions.iter().for_each(|&(axis, dimension)| shape[axis] = dimension);
        shape
    };
    let selects = |rank: usize, wanted: &[(usize, Select)]| {
        let mut selects = vec![Select::all(); rank];
        wanted.iter().for_each(|&(axis, select)| selects[axis] = select);
        selects
    };
    let all = Select::all();
    for rank in [64, 1000] {
        let last = rank - 1;
        let cases = [
            shape(rank, &[]),
            shape(rank, &[(0, 3), (rank / 2, 4), (last, 5)]),
            shape(rank, &[(1, 2), (20, 2), (40, 2), (last, 2)]),
            shape(rank, &[(last, 0), (3, 7)]),
        ];
        for shape in cases {
            let of = |axis: usize| shape[axis];
            let questions = [
                vec![],
                vec![0.into()],
                vec![0.into(); rank + 1],
                vec![Select::from(0..1); rank],
                vec![Select::from(0..0); 9],
                selects(rank, &[(last, 0.into())]),
                selects(rank, &[(last, Select::from(1..of(last).max(1)))]),
                selects(rank, &[(0, all.every(2)), (last, all.every(2))]),
                selects(rank, &[(20, Select::from(of(20) - 1..)), (last, all.every(3))]),
                selects(rank, &[(rank / 2, Select::from(of(rank / 2) - 1..))]),
                selects(rank, &[(rank / 2, Select::Index(of(rank / 2)))]),
                selects(rank, &[(last, Select::from(0..of(last) + 1))]),
            ];
            for dtype in [Dtype::U8, Dtype::F16] {
                let model = model(dtype, &shape, 9, 1);
                let view = model.tensor("t").unwrap();
                for selects in &questions {
                    agrees(view.slice(selects), part_of(&shape, selects), view).unwrap();
                }
                for axis in [0, rank / 2, last] {
                    let expected = part_of(&shape, &selects(rank, &[(axis, Select::from(0..1))]));
                    agrees(view.narrow(axis, 0..1), expected.clone(), view).unwrap();
                    if shape[axis] == 1 {
                        agrees(view.tensor_parallel(axis, 0, 1), expected, view).unwrap();
                    }
                }
            }
        }
    }
}

/// A byte holds two F4, three bytes hold four F6: where a part may be cut, and where not.
#[test]
fn elements_below_8_bits_are_cut_where_bytes_meet() {
    let f4 = Dtype::F4;
    let rows: [(Dtype, &[u64], &str, bool); 28] = [
        (f4, &[2, 4], "1", true),
        (f4, &[4], "2:4", true),
        (f4, &[4], "1:3", false),
        (f4, &[4], "0:1", false),
        (f4, &[4], "2", false),
        (f4, &[4], "::2", false),
        (f4, &[2, 3], "", true),
        (f4, &[2, 3], ":,:", true),
        (f4, &[2, 3], "0:2", true),
        (f4, &[2, 3], "1", false),
        (f4, &[2, 3], "0:1", false),
        (f4, &[2, 3], "1:1", true),
        (f4, &[2, 3], "1,3:", true),
        (f4, &[4, 3], "2:4", true),
        (f4, &[4, 3], "::2", false),
        // The second row of three begins within a byte, the third does not.
        (f4, &[4, 3], "::2,0:2", true),
        (f4, &[4, 3], ":,0:2", false),
        (f4, &[4, 3], "::2,1:3", false),
        (f4, &[2, 3, 2], ":,::2,:", true),
        (f4, &[2, 3, 2], ":,:,1", false),
        (f4, &[1, 2], "0,0:2", true),
        (Dtype::F6E2M3, &[3, 4], "1", true),
        (Dtype::F6E2M3, &[3, 4], ":,0:2", false),
        (Dtype::F6E3M2, &[4, 2], "2:4", true),
        (Dtype::F6E3M2, &[4, 2], "1:3", false),
        (Dtype::F6E3M2, &[4, 6], "::2,0:4", true),
        (Dtype::F6E3M2, &[4, 6], "1::2,2:6", true),
        (Dtype::F6E3M2, &[4, 6], ":,0:4", false),
    ];
    for (dtype, shape, slice, is_cut) in rows {
        let model = model(dtype, shape, 77, 5);
        let view = model.tensor("t").unwrap();
        let found = view.slice(&selects(slice));
        assert_eq!(found.is_ok(), is_cut, "{dtype} {shape:?} [{slice}]");
        agrees(found, part_of(shape, &selects(slice)), view).unwrap();
    }
}

// What it costs.

struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: both functions pass on to the system's allocator what they were given; counting neither
// allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get().wrapping_add(layout.size()));
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The reference lists a million ranges before it yields the first.
#[test]
fn a_million_runs_cost_as_much_memory_as_two() {
    let cost = |rows: u64| {
        let model = model(Dtype::U8, &[rows, 2], 0, 0);
        let view = model.tensor("t").unwrap();
        let mut copy = vec![0; rows as usize];
        let before = ALLOCATED.get();
        let sliced = view.slice(&[Select::all(), 1.into()]).unwrap();
        assert_eq!(sliced.runs().count(), rows as usize);
        sliced.copy_to(&mut copy).unwrap();
        assert!(sliced.values::<u8>().unwrap().eq(copy.iter().copied()));
        ALLOCATED.get() - before
    };
    let (few, many) = (cost(2), cost(1_000_000));
    assert!(few > 0 && few < 1000, "{few} bytes for two runs");
    assert_eq!(many, few);
}
