//! How are truth values and complex numbers read?
//!
//! A BOOL is a byte that should be 0 or 1, and the format does not see to it: a byte of 2 taken for
//! a `bool` would be undefined behaviour. So a view of truth values looks at every byte first and
//! names the first that is none. A C64 is a pair of F32, the real part first.

use super::super::dtype::Dtype;
use super::{Element, Plain, sealed};

/// An element of BOOL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bool;

impl sealed::Sealed for Bool {}

impl Element for Bool {
    type Value = bool;
    type Raw = [u8; 1];
    const DTYPE: Dtype = Dtype::Bool;

    #[inline(always)]
    fn read(raw: &[u8; 1], _: usize) -> bool {
        raw[0] != 0
    }

    fn first_invalid(raw: &[[u8; 1]]) -> Option<usize> {
        raw.iter().position(|byte| byte[0] > 1)
    }
}

/// An element of C64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct C64;

impl sealed::Sealed for C64 {}

impl Element for C64 {
    /// Real and imaginary part.
    type Value = (f32, f32);
    type Raw = [u8; 8];
    const DTYPE: Dtype = Dtype::C64;

    #[inline(always)]
    fn read(raw: &[u8; 8], _: usize) -> (f32, f32) {
        let both = u64::from_le_bytes(*raw);
        (f32::from_bits(both as u32), f32::from_bits((both >> 32) as u32))
    }
}

impl sealed::Sealed for [f32; 2] {}

impl Plain for [f32; 2] {
    const DTYPES: &'static [Dtype] = &[Dtype::C64];
    const NAME: &'static str = "[f32; 2]";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_of_two_is_no_truth_value() {
        assert_eq!(Bool::first_invalid(&[[0], [1], [2], [255]]), Some(2));
        assert_eq!(Bool::first_invalid(&[[0], [1]]), None);
        assert!(Bool::read(&[1], 0) && !Bool::read(&[0], 0));
    }

    #[test]
    fn the_real_part_stands_first() {
        assert_eq!(C64::read(&[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0], 0), (1.0, -2.0));
    }
}
