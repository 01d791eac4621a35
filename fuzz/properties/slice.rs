//! Does a slice have exactly the elements that were asked for?
//!
//! The tape says a dtype, a shape and what is taken of each axis. What should come of it is found
//! by looking at every element of the tensor and asking whether each of its indices is wanted: no
//! strides, no runs, no arithmetic that could go wrong in the same way.

use crate::tape::Tape;
use barest::{Dtype, ErrorKind, Model, Select, Sliced, TensorView};

/// Longest axis, and most axes: all elements of a tensor are looked at.
const LONGEST: usize = 6;
const MOST_AXES: usize = 5;

/// Tries one slice, and tells whether it was given.
pub fn judge(tape: &[u8]) -> bool {
    let tape = &mut Tape(tape);
    let dtype = tape.pick(Dtype::ALL);
    let shape: Vec<u64> =
        (0..tape.below(MOST_AXES + 1)).map(|_| tape.below(LONGEST + 1) as u64).collect();
    let bits = shape.iter().product::<u64>() * dtype.bits();
    if bits % 8 != 0 || bits > 1 << 16 {
        return false;
    }
    let data = tape.noise(bits as usize / 8);
    let file = file(dtype, &shape, &data);
    let selects: Vec<Select> = (0..tape.below(shape.len() + 2)).map(|_| select(tape)).collect();
    let model = Model::from_bytes(&file).expect("a file of one tensor");
    let view = model.tensor("t").expect("its tensor");
    shortcuts_are_slices(view, tape);
    match (view.slice(&selects), wanted(&shape, &selects)) {
        (Ok(slice), Ok((shape, elements))) => {
            assert!(whole_bytes(&elements, dtype), "{selects:?} of {view:?} splits bytes");
            holds(&slice, &shape, &elements, &data);
            true
        }
        (Err(error), Ok((_, elements))) => {
            assert!(matches!(error.kind(), ErrorKind::SplitsByte { .. }), "{error}");
            assert!(!whole_bytes(&elements, dtype), "{error}: {selects:?}");
            false
        }
        (Err(error), Err(why)) => {
            let told = match error.kind() {
                ErrorKind::NoSuchAxis { .. } => Unwanted::Axis,
                ErrorKind::OutOfRange { .. } => Unwanted::Index,
                ErrorKind::BadRange { .. } => Unwanted::Range,
                _ => panic!("{error}"),
            };
            assert_eq!(told, why, "{error}");
            false
        }
        (Ok(slice), Err(why)) => panic!("{slice:?} by {selects:?}, which has a bad {why:?}"),
    }
}

/// A model of one tensor, `t`.
pub fn file(dtype: Dtype, shape: &[u64], data: &[u8]) -> Vec<u8> {
    let end = data.len();
    let header =
        format!(r#"{{"t":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[0,{end}]}}}}"#);
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn select(tape: &mut Tape) -> Select {
    let mut place = || match tape.byte() {
        255 => u64::MAX,
        254 => u64::MAX / 2 + 1,
        small => u64::from(small) % (LONGEST as u64 + 2),
    };
    let (start, end, step) = (place(), place(), place());
    match tape.below(6) {
        0 => Select::Index(start),
        1 => Select::all().every(step),
        2 => Select::from(start..),
        3 => Select::from(..=end),
        4 => Select::from(start..end),
        _ => Select::from(start..end).every(step),
    }
}

#[derive(PartialEq, Debug)]
enum Unwanted {
    Axis,
    Index,
    Range,
}

/// The shape that is left, and the numbers of the elements, in C order.
fn wanted(shape: &[u64], selects: &[Select]) -> Result<(Vec<u64>, Vec<u64>), Unwanted> {
    if selects.len() > shape.len() {
        return Err(Unwanted::Axis);
    }
    // 1. The indices of each axis, by trying each.
    let (mut axes, mut left) = (Vec::new(), Vec::new());
    for (axis, &dimension) in shape.iter().enumerate() {
        let indices: Vec<u64> = match selects.get(axis) {
            Some(&Select::Index(index)) if index >= dimension => return Err(Unwanted::Index),
            Some(&Select::Index(index)) => vec![index],
            Some(&Select::Range { start, end, step }) => {
                let end = end.unwrap_or(dimension);
                if step == 0 || start > end || end > dimension {
                    return Err(Unwanted::Range);
                }
                (start..end).filter(|index| (index - start) % step == 0).collect()
            }
            None => (0..dimension).collect(),
        };
        if !matches!(selects.get(axis), Some(Select::Index(_))) {
            left.push(indices.len() as u64);
        }
        axes.push(indices);
    }
    // 2. The elements, by trying each.
    let is_wanted = |&element: &u64| {
        let mut rest = element;
        axes.iter().zip(shape).rev().all(|(indices, dimension)| {
            let index = rest % dimension;
            rest /= dimension;
            indices.contains(&index)
        })
    };
    Ok((left, (0..shape.iter().product()).filter(is_wanted).collect()))
}

/// Whether each stretch of neighbours begins and ends with a byte.
fn whole_bytes(elements: &[u64], dtype: Dtype) -> bool {
    let begins = |at: &usize| *at == 0 || elements[at - 1] + 1 != elements[*at];
    let edges = (0..elements.len()).filter(begins).flat_map(|at| {
        let before = at.checked_sub(1).map(|before| elements[before] + 1);
        [Some(elements[at]), before]
    });
    let last = elements.last().map(|last| last + 1);
    edges.chain([last]).flatten().all(|element| element * dtype.bits() % 8 == 0)
}

fn holds(slice: &Sliced<'_>, shape: &[u64], elements: &[u64], data: &[u8]) {
    assert_eq!((slice.shape(), slice.len()), (shape, elements.len()), "{slice:?}");
    // Bit by bit.
    let bits = slice.dtype().bits();
    let bit = |at: u64| data[at as usize / 8] >> (at % 8) & 1;
    let places = elements.iter().flat_map(|element| element * bits..(element + 1) * bits);
    let mut expected = vec![0u8; elements.len() * bits as usize / 8];
    for (to, from) in places.enumerate() {
        expected[to / 8] |= bit(from) << (to % 8);
    }
    let runs: Vec<&[u8]> = slice.runs().collect();
    assert_eq!(runs.concat(), expected, "{slice:?}");
    assert_eq!(slice.byte_len(), expected.len(), "{slice:?}");
    let mut copy = vec![0x5a; expected.len()];
    slice.copy_to(&mut copy).expect("a buffer of its length");
    assert_eq!(copy, expected, "{slice:?}");
    assert!(slice.bytes().is_none_or(|bytes| bytes == expected), "{slice:?}");
    assert_eq!(slice.bytes().is_some(), runs.len() < 2, "{slice:?}");
    // Where they stand in the file, as long as their own bytes.
    let start = slice.tensor().file_range().start;
    let ranges = slice.file_ranges().map(|range| range.start - start..range.end - start);
    let by_range = ranges.map(|range| &data[range.start as usize..range.end as usize]);
    assert!(by_range.eq(runs), "{slice:?}");
    // Values are those of the whole tensor, which `decode` asks about.
    if let Ok(all) = slice.tensor().to_f32() {
        let few = slice.to_f32().expect("the whole has values").into_iter().map(f32::to_bits);
        let expected = elements.iter().map(|&element| all[element as usize].to_bits());
        assert!(few.eq(expected), "{slice:?}");
    }
}

/// `row` and `narrow` say the same as the slices they stand for.
fn shortcuts_are_slices(view: TensorView<'_>, tape: &mut Tape) {
    let [axis, start, end] = [(); 3].map(|()| tape.below(LONGEST + 2));
    let range = start as u64..end as u64;
    let mut selects = vec![Select::all(); axis];
    selects.push(Select::from(range.clone()));
    told_alike(view.narrow(axis, range), view.slice(&selects));
    // Of a scalar it says that there are no rows.
    if !view.shape().is_empty() {
        told_alike(view.row(start), view.slice(&[Select::Index(start as u64)]));
    }
}

fn told_alike(one: barest::Result<Sliced<'_>>, other: barest::Result<Sliced<'_>>) {
    let told = |outcome: barest::Result<Sliced<'_>>| match outcome {
        Ok(slice) => Ok((slice.shape().to_vec(), slice.runs().collect::<Vec<_>>().concat())),
        Err(error) => Err(error.to_string()),
    };
    assert_eq!(told(one), told(other));
}
