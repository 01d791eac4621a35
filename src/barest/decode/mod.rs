//! What number does an element stand for?
//!
//! One file for each family of dtypes, exact for every bit pattern, without `unsafe`: an element
//! is taken as bytes and put together, so any address and any byte order will do.

mod bf16;
mod plain;

pub use bf16::Bf16;

use super::dtype::Dtype;

/// A type of elements that can be read from bytes wherever they lie: [`Bf16`], `f32`, `f64` and the
/// integers. Sealed.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// What an element is read as: `f32` for BF16, the number itself for the others.
    type Value: Copy + Default + Send + Sync + 'static;
    /// The bytes of one element: an array of `u8`.
    type Raw: sealed::ByteArray;
    /// The dtype it is the element of.
    const DTYPE: Dtype;

    /// The value of one element, from its little-endian bytes.
    fn read(raw: &Self::Raw) -> Self::Value;
}

/// A type that can be borrowed from the file's bytes as it is: every bit pattern is a value of it.
/// Sealed.
pub trait Plain: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The dtypes whose elements it can stand for, as numbers or as their bits: `u16` also for
    /// BF16 and F16, `u8` also for BOOL and the F8 dtypes.
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
