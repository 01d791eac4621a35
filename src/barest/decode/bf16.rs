//! What number is a BF16?
//!
//! ```text
//!   f32   s eeeeeeee mmmmmmmmmmmmmmmmmmmmmmm      32 bits
//!   BF16  s eeeeeeee mmmmmmm                      its upper 16: the same sign, the same exponent
//! ```
//!
//! So reading one is a shift, exact for every pattern: zeros keep their sign, subnormals stay
//! subnormal, a NaN keeps its payload and stays signalling if it was. (Arithmetic on a signalling
//! NaN, and some hardware on a mere move, x87 for one, will quiet it. We only move.)

use super::super::dtype::Dtype;
use super::{Element, Float, Plain, round, sealed, simd};

/// The bits of a BF16 number.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(transparent)]
pub struct Bf16(pub u16);

impl Bf16 {
    /// The nearest BF16, ties to even; beyond the largest, infinity. A NaN stays one: quiet, with
    /// the upper bits of its payload.
    pub fn from_f32(number: f32) -> Bf16 {
        Bf16(round::f32_to::<8, 7>(number))
    }

    /// The same of an `f64`, rounded once: by way of `f32` a number just above a tie would become
    /// the tie, and fall.
    pub fn from_f64(number: f64) -> Bf16 {
        Bf16(round::f64_to::<8, 7>(number))
    }

    /// The number, exactly.
    #[inline(always)]
    pub const fn to_f32(self) -> f32 {
        f32::from_bits((self.0 as u32) << 16)
    }
}

impl From<Bf16> for f32 {
    fn from(number: Bf16) -> f32 {
        number.to_f32()
    }
}

impl sealed::Sealed for Bf16 {}

impl Element for Bf16 {
    type Value = f32;
    type Raw = [u8; 2];
    const DTYPE: Dtype = Dtype::Bf16;

    #[inline(always)]
    fn read(raw: &[u8; 2], _: usize) -> f32 {
        Bf16(u16::from_le_bytes(*raw)).to_f32()
    }
}

impl Float for Bf16 {
    #[inline(always)]
    fn to_f32(value: f32) -> f32 {
        value
    }

    fn widen(raw: &[[u8; 2]], out: &mut [f32]) {
        simd::widen_bf16(raw, out);
    }

    fn dot(raw: &[[u8; 2]], factors: &[f32]) -> f32 {
        simd::dot_bf16(raw, factors)
    }
}

impl Plain for Bf16 {
    const DTYPES: &'static [Dtype] = &[Dtype::Bf16];
    const NAME: &'static str = "Bf16";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number that the bits mean by the definition of the format, computed without shifting
    /// them into place; `None` for what is no number.
    fn by_definition(bits: u16) -> Option<f64> {
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        let exponent = i32::from(bits >> 7 & 0xff);
        let mantissa = f64::from(bits & 0x7f);
        match exponent {
            0xff if mantissa == 0.0 => Some(sign * f64::INFINITY),
            0xff => None,
            0 => Some(sign * mantissa / 128.0 * 2f64.powi(-126)),
            _ => Some(sign * (1.0 + mantissa / 128.0) * 2f64.powi(exponent - 127)),
        }
    }

    #[test]
    fn all_65536_patterns_are_exact() {
        for bits in 0..=u16::MAX {
            let read = Bf16::read(&bits.to_le_bytes(), 0);
            match by_definition(bits) {
                Some(number) => {
                    assert_eq!(f64::from(read), number, "{bits:04x}");
                    assert_eq!(read.is_sign_negative(), bits >> 15 == 1, "{bits:04x}");
                }
                None => assert!(read.is_nan(), "{bits:04x}"),
            }
            // Sign, payload and quietness of a NaN, and everything else, survive the way back.
            assert_eq!(read.to_bits(), u32::from(bits) * 65536, "{bits:04x}");
        }
    }

    #[test]
    fn known_numbers() {
        for (bits, number) in [
            (0x3f80, 1.0),
            (0xc000, -2.0),
            (0x4049, 3.140625),
            (0x0001, 9.18355e-41),
            (0x7f7f, 3.3895314e38),
            (0x7f80, f32::INFINITY),
        ] {
            assert_eq!(Bf16(bits).to_f32(), number, "{bits:04x}");
        }
        assert!(Bf16(0x8000).to_f32().is_sign_negative());
    }
}
