//! Is each element the number that its bits say?
//!
//! The tape says a dtype, and the bytes of a tensor. What they stand for is computed from single
//! bits: sign, exponent and mantissa as the definition of the dtype has them, as integers times
//! powers of two. So is the rounding to fewer bits. Which NaN a NaN becomes is not asked here.

use crate::slice::file;
use crate::tape::Tape;
use barest::{
    Bf16, Bool, C64, Dtype, Element, F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz,
    F8E8M0, F16, Model, TensorView,
};

/// Bytes of a tensor at most.
const LONGEST: usize = 96;

pub fn judge(tape: &[u8]) -> bool {
    rounding_is_to_the_nearest(&mut Tape(tape));
    let tape = &mut Tape(tape);
    let dtype = tape.pick(Dtype::ALL);
    let bits = dtype.bits() as usize;
    // Whole elements in whole bytes.
    let group = (1..).find(|count| count * bits % 8 == 0).unwrap_or(1) * bits / 8;
    let data = tape.bytes(tape.0.len().min(LONGEST) / group * group);
    let count = (data.len() * 8 / bits) as u64;
    let model = Model::from_bytes(&file(dtype, &[count], &data)).expect("a file of one tensor");
    let view = model.tensor("t").expect("its tensor");
    let patterns: Vec<u64> = (0..count as usize).map(|n| pattern(&data, n * bits, bits)).collect();
    match layout(dtype) {
        Some(layout) => floats_are(view, &patterns, layout),
        None => others_are(view, &patterns),
    }
    true
}

/// `len` bits from a bit on, the lowest first.
fn pattern(data: &[u8], from: usize, len: usize) -> u64 {
    let bit = |at: usize| u64::from(data[at / 8] >> (at % 8) & 1);
    (0..len).map(|at| bit(from + at) << at).sum()
}

/// How a float dtype uses its bits.
#[derive(Clone, Copy)]
struct Layout {
    exponent: u32,
    mantissa: u32,
    bias: i32,
    special: Special,
}

/// Which patterns are no number.
#[derive(Clone, Copy, PartialEq)]
enum Special {
    /// As IEEE 754: all ones in the exponent are infinity, or NaN with a mantissa.
    Ieee,
    /// All ones in exponent and mantissa are NaN.
    AllOnes,
    /// Minus zero is NaN.
    MinusZero,
    /// None.
    None,
}

fn layout(dtype: Dtype) -> Option<Layout> {
    let (exponent, mantissa, bias, special) = match dtype {
        Dtype::F64 => (11, 52, 1023, Special::Ieee),
        Dtype::F32 => (8, 23, 127, Special::Ieee),
        Dtype::F16 => (5, 10, 15, Special::Ieee),
        Dtype::Bf16 => (8, 7, 127, Special::Ieee),
        Dtype::F8E5M2 => (5, 2, 15, Special::Ieee),
        Dtype::F8E4M3 => (4, 3, 7, Special::AllOnes),
        Dtype::F8E5M2Fnuz => (5, 2, 16, Special::MinusZero),
        Dtype::F8E4M3Fnuz => (4, 3, 8, Special::MinusZero),
        Dtype::F6E2M3 => (2, 3, 1, Special::None),
        Dtype::F6E3M2 => (3, 2, 3, Special::None),
        Dtype::F4 => (2, 1, 1, Special::None),
        Dtype::F8E8M0 => (8, 0, 127, Special::AllOnes),
        _ => return None,
    };
    Some(Layout { exponent, mantissa, bias, special })
}

/// A number: `units` times two to the `power`.
#[derive(Clone, Copy, Debug)]
enum Number {
    Nan,
    Infinite { negative: bool },
    Finite { negative: bool, units: u64, power: i32 },
}

impl Layout {
    fn number(self, pattern: u64) -> Number {
        let Layout { exponent: exponent_bits, mantissa: mantissa_bits, bias, special } = self;
        let mantissa = pattern & ((1 << mantissa_bits) - 1);
        let ones = (1 << exponent_bits) - 1;
        let exponent = pattern >> mantissa_bits & ones;
        let negative = pattern >> (mantissa_bits + exponent_bits) & 1 == 1;
        let power = |exponent: u64| exponent as i32 - bias - mantissa_bits as i32;
        match special {
            Special::Ieee if exponent == ones && mantissa == 0 => Number::Infinite { negative },
            Special::Ieee if exponent == ones => Number::Nan,
            Special::AllOnes if exponent == ones && mantissa + 1 == 1 << mantissa_bits => {
                Number::Nan
            }
            Special::MinusZero if negative && exponent == 0 && mantissa == 0 => Number::Nan,
            // E8M0 is a power of two and nothing else: no zero, no sign, no step below the others.
            _ if mantissa_bits == 0 => {
                Number::Finite { negative, units: 1, power: power(exponent) }
            }
            _ if exponent == 0 => Number::Finite { negative, units: mantissa, power: power(1) },
            _ => {
                let units = mantissa + (1 << mantissa_bits);
                Number::Finite { negative, units, power: power(exponent) }
            }
        }
    }

    /// The pattern nearest to a number, ties to the even one, in a format after IEEE 754; `None` for
    /// NaN, which has many.
    fn nearest(self, number: Number) -> Option<u64> {
        let infinity = ((1 << self.exponent) - 1) << self.mantissa;
        let sign = |negative: bool| u64::from(negative) << (self.exponent + self.mantissa);
        let (negative, units, power) = match number {
            Number::Nan => return None,
            Number::Infinite { negative } => return Some(sign(negative) | infinity),
            Number::Finite { negative, units: 0, .. } => return Some(sign(negative)),
            Number::Finite { negative, units, power } => (negative, units, power),
        };
        // The distance of two neighbours here, as a power of two: it ends at that of the smallest.
        let smallest = 1 - self.bias - self.mantissa as i32;
        let top = power + 63 - units.leading_zeros() as i32;
        let step = smallest.max(top - self.mantissa as i32);
        // How many such steps the number is, rounded.
        let steps = match step - power {
            finer @ ..=0 => units << -finer,
            coarser @ 1..=64 => {
                let (whole, rest) =
                    (u128::from(units) >> coarser, u128::from(units) % (1 << coarser));
                let half = 1 << (coarser - 1);
                let up = rest > half || rest == half && whole % 2 == 1;
                (whole + u128::from(up)) as u64
            }
            _ => 0,
        };
        // Neighbouring numbers have neighbouring patterns, over all of them: so it carries by itself.
        let exponents = (step - smallest) as u64;
        let pattern = (exponents << self.mantissa) + steps;
        Some(sign(negative) | pattern.min(infinity))
    }
}

fn same(pattern: Option<u64>, found: u64, of: Layout) -> bool {
    match pattern {
        Some(pattern) => pattern == found,
        None => matches!(of.number(found), Number::Nan),
    }
}

fn floats_are(view: TensorView<'_>, patterns: &[u64], of: Layout) {
    let f32_layout = layout(Dtype::F32).expect("a float dtype");
    let expected: Vec<Option<u64>> =
        patterns.iter().map(|&pattern| f32_layout.nearest(of.number(pattern))).collect();
    let floats = view.floats().expect("a float dtype");
    let at_once = view.to_f32().expect("a float dtype");
    let one_by_one: Vec<f32> = floats.iter().collect();
    for values in [at_once, one_by_one, floats.to_f32().expect("as above")] {
        assert_eq!(values.len(), patterns.len());
        for ((value, pattern), expected) in values.iter().zip(patterns).zip(&expected) {
            let found = u64::from(value.to_bits());
            assert!(same(*expected, found, f32_layout), "{view:?}: {pattern:#x} read as {value}");
        }
    }
    // Where nothing is rounded, a value has the element's own type.
    match view.dtype() {
        Dtype::F64 => are::<f64, _>(view, patterns, |value| Some(value.to_bits())),
        Dtype::F32 => are::<f32, _>(view, patterns, |value| Some(value.to_bits().into())),
        Dtype::F16 => of_values::<F16>(view, &expected),
        Dtype::Bf16 => of_values::<Bf16>(view, &expected),
        Dtype::F8E4M3 => of_values::<F8E4M3>(view, &expected),
        Dtype::F8E5M2 => of_values::<F8E5M2>(view, &expected),
        Dtype::F8E8M0 => of_values::<F8E8M0>(view, &expected),
        Dtype::F8E4M3Fnuz => of_values::<F8E4M3Fnuz>(view, &expected),
        Dtype::F8E5M2Fnuz => of_values::<F8E5M2Fnuz>(view, &expected),
        Dtype::F6E2M3 => of_values::<F6E2M3>(view, &expected),
        Dtype::F6E3M2 => of_values::<F6E3M2>(view, &expected),
        _ => of_values::<F4>(view, &expected),
    }
}

fn of_values<E: Element<Value = f32>>(view: TensorView<'_>, expected: &[Option<u64>]) {
    let elements = view.elements::<E>().expect("its dtype");
    for (at, expected) in expected.iter().enumerate() {
        let value = elements.get(at).expect("an element of its own");
        assert!(
            expected.is_none_or(|bits| bits == u64::from(value.to_bits())),
            "{view:?}[{at}] {value}"
        );
        assert_eq!(expected.is_none(), value.is_nan(), "{view:?}[{at}] {value}");
    }
}

fn others_are(view: TensorView<'_>, patterns: &[u64]) {
    assert!(view.to_f32().is_err() && view.floats().is_err(), "{view:?} is no float");
    match view.dtype() {
        Dtype::U8 => are::<u8, _>(view, patterns, |value| Some(value.into())),
        Dtype::U16 => are::<u16, _>(view, patterns, |value| Some(value.into())),
        Dtype::U32 => are::<u32, _>(view, patterns, |value| Some(value.into())),
        Dtype::U64 => are::<u64, _>(view, patterns, Some),
        Dtype::I8 => are::<i8, _>(view, patterns, |value| Some(value as u8 as u64)),
        Dtype::I16 => are::<i16, _>(view, patterns, |value| Some(value as u16 as u64)),
        Dtype::I32 => are::<i32, _>(view, patterns, |value| Some(value as u32 as u64)),
        Dtype::I64 => are::<i64, _>(view, patterns, |value| Some(value as u64)),
        Dtype::C64 => are::<C64, _>(view, patterns, |(real, imaginary)| {
            Some(u64::from(real.to_bits()) | u64::from(imaginary.to_bits()) << 32)
        }),
        _ => match patterns.iter().all(|&pattern| pattern < 2) {
            true => are::<Bool, _>(view, patterns, |value| Some(value.into())),
            false => assert!(view.bools().is_err(), "{view:?}: {patterns:?}"),
        },
    }
}

/// Element by element, from both ends, and many at once.
fn are<E: Element, B>(view: TensorView<'_>, patterns: &[u64], bits: B)
where
    B: Fn(E::Value) -> Option<u64>,
{
    let elements = view.elements::<E>().expect("its dtype");
    let mut backwards: Vec<E::Value> = elements.iter().rev().collect();
    backwards.reverse();
    for values in [elements.to_vec().expect("memory for a few"), backwards] {
        let found: Vec<u64> = values.into_iter().filter_map(&bits).collect();
        assert_eq!(found, patterns, "{view:?}");
    }
    assert!(elements.get(patterns.len()).is_none());
}

/// What an `f32` or `f64` becomes that is written with 16 bits.
fn rounding_is_to_the_nearest(tape: &mut Tape) {
    let [double, single, half, brain] = [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::Bf16]
        .map(|dtype| layout(dtype).expect("a float dtype"));
    let bits = tape.u64();
    let (wide, narrow) = (f64::from_bits(bits), f32::from_bits(bits as u32));
    let (of_wide, of_narrow) = (double.number(bits), single.number(u64::from(bits as u32)));
    for (found, layout, number) in [
        (F16::from_f64(wide).0, half, of_wide),
        (Bf16::from_f64(wide).0, brain, of_wide),
        (F16::from_f32(narrow).0, half, of_narrow),
        (Bf16::from_f32(narrow).0, brain, of_narrow),
    ] {
        let expected = layout.nearest(number);
        assert!(same(expected, found.into(), layout), "{number:?}: {found:#x}, not {expected:#x?}");
    }
}
