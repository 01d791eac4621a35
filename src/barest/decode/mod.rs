//! What number does an element stand for?
//!
//! One file for each family of dtypes, exact for every bit pattern, without `unsafe`: an element
//! is taken as bytes and put together, so any address and any byte order will do. `simd/` compiles
//! the same loops once more for what the processor at hand can do.
//!
//! ```text
//!   Element   bytes of one group of elements ──read──▶ a value: f32, f64, i64, bool, (re, im) …
//!   Float     the same, and many at once: widen into a slice of f32, dot with one
//! ```
//!
//! A group is the fewest elements that fill whole bytes: one for most dtypes, two F4, four F6. The
//! format does not say in which order elements below 8 bits fill their bytes; we read the low bits
//! first, as PyTorch does.

mod bf16;
mod dot;
mod f16;
mod minifloat;
mod odd;
mod plain;
mod round;
mod simd;

pub use bf16::Bf16;
pub use dot::LANES;
pub use f16::F16;
pub use minifloat::{F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0};
pub use odd::{Bool, C64};

use super::dtype::Dtype;

/// A type of elements that can be read from bytes wherever they lie. Sealed; there is one for each
/// dtype.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// What an element is read as: `f32` for the narrow floats, `bool` for BOOL, a pair for C64,
    /// the number itself for the others.
    type Value: Copy + Default + PartialEq + Send + Sync + 'static;
    /// The bytes of one group: an array of `u8`.
    type Raw: sealed::ByteArray;
    /// The dtype it is the element of.
    const DTYPE: Dtype;
    /// Elements of a group.
    const PER_GROUP: usize = 1;

    /// The value of the element at `place` of a group, below [`Element::PER_GROUP`].
    fn read(raw: &Self::Raw, place: usize) -> Self::Value;

    /// The place of the first element whose bytes are no value of the type; `None` if all are.
    fn first_invalid(raw: &[Self::Raw]) -> Option<usize> {
        let _ = raw;
        None
    }
}

/// A type of elements that are real numbers, read as `f32`: exactly, but for F64, which is rounded
/// to the nearest, ties to even.
pub trait Float: Element {
    /// One value as `f32`.
    fn to_f32(value: Self::Value) -> f32;

    /// As many values as `out` has places, which are as many as the groups hold.
    fn widen(raw: &[Self::Raw], out: &mut [f32]) {
        widen_each::<Self>(raw, out);
    }

    /// The sum of the products of as many values and factors, in the order that [`LANES`] tells.
    fn dot(raw: &[Self::Raw], factors: &[f32]) -> f32 {
        simd::dot::<Self>(raw, factors)
    }
}

/// One element after the other: what every faster way is held against.
#[inline(always)]
fn widen_each<E: Float>(raw: &[E::Raw], out: &mut [f32]) {
    for (values, group) in out.chunks_exact_mut(E::PER_GROUP).zip(raw) {
        for (place, value) in values.iter_mut().enumerate() {
            *value = E::to_f32(E::read(group, place));
        }
    }
}

/// A type that can be borrowed from the file's bytes as it is: every bit pattern is a value of it.
/// Sealed.
pub trait Plain: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The dtypes whose elements it can stand for, as numbers or as their bits: `u16` also for
    /// BF16 and F16, `u8` also for BOOL and the F8 dtypes, `[f32; 2]` for C64.
    const DTYPES: &'static [Dtype];
    /// Its name, for messages.
    const NAME: &'static str;
}

pub(super) mod sealed {
    pub trait Sealed {}

    /// Only arrays of `u8` are this: alignment 1, every pattern valid, no padding. Typed borrows in
    /// `tensor.rs` rely on it.
    pub trait ByteArray: Copy + Send + Sync + 'static {}
    impl<const N: usize> ByteArray for [u8; N] {}
}
