//! What number is an F16?
//!
//! ```text
//!   s eeeee mmmmmmmmmm     exponent 1..=30:  ±2^(e-15) * (1 + m/1024)
//!                          exponent 0:       ±2^-14 * m/1024       zero and the subnormals
//!                          exponent 31:      infinity (m = 0) or NaN
//! ```
//!
//! All of them are numbers of `f32`, so nothing is rounded. A NaN keeps its payload and stays
//! signalling if it was; the conversion instruction of x86 would quiet it, so blocks that hold a NaN
//! do not go that way.

use super::super::dtype::Dtype;
use super::{Element, Float, Plain, round, sealed, simd};

/// The bits of an F16 number.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(transparent)]
pub struct F16(pub u16);

impl F16 {
    /// The nearest F16, ties to even; beyond the largest, infinity. A NaN stays one: quiet, with
    /// the upper bits of its payload.
    pub fn from_f32(number: f32) -> F16 {
        F16(round::f32_to::<5, 10>(number))
    }

    /// The same of an `f64`, rounded once.
    pub fn from_f64(number: f64) -> F16 {
        F16(round::f64_to::<5, 10>(number))
    }

    /// The number, exactly.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        // Exponent and mantissa where f32 has them; what is missing is the difference of the biases.
        let magnitude = u32::from(self.0 & 0x7fff) << 13;
        let rebiased = magnitude + ((127 - 15) << 23);
        // A subnormal has no leading one: with exponent 1 it gets one, which is subtracted again.
        let smallest = f32::from_bits((127 - 14) << 23);
        let subnormal = f32::from_bits(rebiased + (1 << 23)) - smallest;
        let bits = match self.0 & 0x7c00 {
            0 => subnormal.to_bits(),
            0x7c00 => magnitude | 0xff << 23,
            _ => rebiased,
        };
        f32::from_bits(sign | bits)
    }
}

impl From<F16> for f32 {
    fn from(number: F16) -> f32 {
        number.to_f32()
    }
}

impl sealed::Sealed for F16 {}

impl Element for F16 {
    type Value = f32;
    type Raw = [u8; 2];
    const DTYPE: Dtype = Dtype::F16;

    #[inline(always)]
    fn read(raw: &[u8; 2], _: usize) -> f32 {
        F16(u16::from_le_bytes(*raw)).to_f32()
    }
}

impl Float for F16 {
    #[inline(always)]
    fn to_f32(value: f32) -> f32 {
        value
    }

    fn widen(raw: &[[u8; 2]], out: &mut [f32]) {
        simd::widen_f16(raw, out);
    }

    fn dot(raw: &[[u8; 2]], factors: &[f32]) -> f32 {
        simd::dot_f16(raw, factors)
    }
}

impl Plain for F16 {
    const DTYPES: &'static [Dtype] = &[Dtype::F16];
    const NAME: &'static str = "F16";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_65536_patterns_are_exact() {
        for bits in 0..=u16::MAX {
            let read = F16(bits).to_f32();
            let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
            let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
            let number = match exponent {
                31 if mantissa == 0.0 => sign * f64::INFINITY,
                31 => {
                    // The payload, in the upper bits of the mantissa, and the sign.
                    let payload = u32::from(bits & 0x3ff) << 13 | 0x7f80_0000;
                    assert_eq!(read.to_bits(), payload | u32::from(bits >> 15) << 31, "{bits:04x}");
                    continue;
                }
                0 => sign * mantissa * 2f64.powi(-24),
                _ => sign * (1024.0 + mantissa) * 2f64.powi(exponent - 25),
            };
            assert_eq!(f64::from(read), number, "{bits:04x}");
            assert_eq!(read.is_sign_negative(), bits >> 15 == 1, "{bits:04x}");
        }
    }
}
