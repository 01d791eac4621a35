//! What number is an F8, F6 or F4?
//!
//! So few bits have few values: a table, made by the compiler from the definition of the format.
//!
//! ```text
//!             s  e  m  bias   largest          exponent all ones
//!   F8_E5M2   1  5  2   15    57344            infinity, NaN (as IEEE has it)
//!   F8_E4M3   1  4  3    7    448              numbers, but for s.1111.111: NaN
//!   …FNUZ     1        16, 8                   numbers; the one NaN is where -0 would be
//!   F8_E8M0   -  8  0  127    2^127            numbers, but for 255: NaN; 0 is 2^-127, no zero
//!   F6_E2M3   1  2  3    1    7.5              numbers
//!   F6_E3M2   1  3  2    3    28               numbers
//!   F4        1  2  1    1    6                numbers
//! ```
//!
//! All are numbers of `f32`. Every NaN becomes the one quiet NaN with no sign.

use super::super::dtype::Dtype;
use super::{Element, Float, Plain, sealed, simd};

/// What the patterns are that are no numbers.
#[derive(Clone, Copy, PartialEq)]
enum Specials {
    /// Exponent all ones: infinity, or NaN.
    Ieee,
    /// All ones but the sign: NaN.
    AllOnes,
    /// The sign alone: NaN.
    MinusZero,
    /// None: every pattern is a number.
    None,
}

const NAN: u32 = 0x7fc0_0000;
const INFINITY: u32 = 0x7f80_0000;

/// The bits of the `f32` that a pattern stands for. The sign is the bit above exponent and
/// mantissa.
const fn value(
    pattern: u32,
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: u32,
    specials: Specials,
) -> u32 {
    let magnitude = pattern & ((1 << (exponent_bits + mantissa_bits)) - 1);
    let sign = pattern >> (exponent_bits + mantissa_bits) << 31;
    let exponent = magnitude >> mantissa_bits;
    let mantissa = magnitude & ((1 << mantissa_bits) - 1);
    let all_ones = (1 << exponent_bits) - 1;
    match specials {
        Specials::Ieee if exponent == all_ones && mantissa == 0 => return sign | INFINITY,
        Specials::Ieee if exponent == all_ones => return NAN,
        Specials::AllOnes if magnitude == (1 << (exponent_bits + mantissa_bits)) - 1 => return NAN,
        Specials::MinusZero if magnitude == 0 && sign != 0 => return NAN,
        _ => {}
    }
    if exponent > 0 {
        return sign | (exponent + 127 - bias) << 23 | mantissa << (23 - mantissa_bits);
    }
    if mantissa == 0 {
        return sign;
    }
    // Subnormal: mantissa * 2^(1 - bias - mantissa_bits). Its highest bit becomes the leading one.
    let highest = 31 - mantissa.leading_zeros();
    let exponent = 127 + 1 + highest - bias - mantissa_bits;
    sign | exponent << 23 | (mantissa << (23 - highest)) & 0x7f_ffff
}

/// All values of a format, in the order of their patterns.
const fn table<const N: usize>(
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: u32,
    specials: Specials,
) -> [f32; N] {
    let mut table = [0.0; N];
    let mut pattern = 0;
    while pattern < N {
        let bits = value(pattern as u32, exponent_bits, mantissa_bits, bias, specials);
        table[pattern] = f32::from_bits(bits);
        pattern += 1;
    }
    table
}

/// E8M0 has no sign and no mantissa: an exponent alone.
const fn scales() -> [f32; 256] {
    let mut table = [0.0; 256];
    let mut exponent = 0;
    while exponent < 256 {
        let bits = match exponent {
            // 2^-127 is below the normal numbers of f32: half of the smallest, without a leading one.
            0 => 1 << 22,
            255 => NAN,
            _ => (exponent as u32) << 23,
        };
        table[exponent] = f32::from_bits(bits);
        exponent += 1;
    }
    table
}

macro_rules! one_byte {
    ($($name:ident $about:literal $table:ident = $values:expr $(, $widen:path, $dot:path)?;)*) => {
        $(
            static $table: [f32; 256] = $values;

            #[doc = $about]
            #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
            #[repr(transparent)]
            pub struct $name(pub u8);

            impl $name {
                /// The number, exactly.
                #[inline(always)]
                pub fn to_f32(self) -> f32 {
                    $table[self.0 as usize]
                }
            }

            impl sealed::Sealed for $name {}

            impl Element for $name {
                type Value = f32;
                type Raw = [u8; 1];
                const DTYPE: Dtype = Dtype::$name;

                #[inline(always)]
                fn read(raw: &[u8; 1], _: usize) -> f32 {
                    $name(raw[0]).to_f32()
                }
            }

            impl Float for $name {
                #[inline(always)]
                fn to_f32(value: f32) -> f32 {
                    value
                }

                $(
                    fn widen(raw: &[[u8; 1]], out: &mut [f32]) {
                        $widen(raw, out);
                    }

                    fn dot(raw: &[[u8; 1]], factors: &[f32]) -> f32 {
                        $dot(raw, factors)
                    }
                )?
            }

            impl Plain for $name {
                const DTYPES: &'static [Dtype] = &[Dtype::$name];
                const NAME: &'static str = stringify!($name);
            }
        )*
    };
}

one_byte! {
    F8E4M3 "The bits of an F8_E4M3 number." E4M3 = table(4, 3, 7, Specials::AllOnes), simd::widen_f8e4m3, simd::dot_f8e4m3;
    F8E5M2 "The bits of an F8_E5M2 number." E5M2 = table(5, 2, 15, Specials::Ieee), simd::widen_f8e5m2, simd::dot_f8e5m2;
    F8E8M0 "The bits of an F8_E8M0 number." E8M0 = scales();
    F8E4M3Fnuz "The bits of an F8_E4M3FNUZ number." E4M3FNUZ = table(4, 3, 8, Specials::MinusZero);
    F8E5M2Fnuz "The bits of an F8_E5M2FNUZ number." E5M2FNUZ = table(5, 2, 16, Specials::MinusZero);
}

macro_rules! packed {
    ($($name:ident $about:literal $table:ident: $patterns:literal = $values:expr, $per_group:literal in $bytes:literal;)*) => {
        $(
            static $table: [f32; $patterns] = $values;

            #[doc = $about]
            #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
            pub struct $name(u8);

            impl $name {
                /// The number of a pattern, exactly; bits above it do not count.
                #[inline(always)]
                pub fn value_of(pattern: u8) -> f32 {
                    $table[pattern as usize % $patterns]
                }
            }

            impl sealed::Sealed for $name {}

            impl Element for $name {
                type Value = f32;
                type Raw = [u8; $bytes];
                const DTYPE: Dtype = Dtype::$name;
                const PER_GROUP: usize = $per_group;

                #[inline(always)]
                fn read(raw: &[u8; $bytes], place: usize) -> f32 {
                    // The group as one number, its first element in the lowest bits.
                    let mut group = 0;
                    for (byte, &bits) in raw.iter().enumerate() {
                        group |= u32::from(bits) << (8 * byte);
                    }
                    let bits_of_one = 8 * $bytes / $per_group;
                    $name::value_of((group >> (bits_of_one * place)) as u8)
                }
            }

            impl Float for $name {
                #[inline(always)]
                fn to_f32(value: f32) -> f32 {
                    value
                }
            }
        )*
    };
}

packed! {
    F4 "F4 (E2M1): two in a byte, the first in the low half." E2M1: 16 = table(2, 1, 1, Specials::None), 2 in 1;
    F6E2M3 "F6_E2M3: four in three bytes, the first in the lowest bits." E2M3: 64 = table(2, 3, 1, Specials::None), 4 in 3;
    F6E3M2 "F6_E3M2: four in three bytes, the first in the lowest bits." E3M2: 64 = table(3, 2, 3, Specials::None), 4 in 3;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition once more, in floating point.
    fn by_definition(pattern: u32, e: u32, m: u32, bias: i32) -> f64 {
        let (sign, magnitude) = (pattern >> (e + m), pattern & ((1 << (e + m)) - 1));
        let (exponent, mantissa) = ((magnitude >> m) as i32, f64::from(magnitude & ((1 << m) - 1)));
        let fraction = mantissa / f64::from(1 << m);
        let value = match exponent {
            0 => fraction * 2f64.powi(1 - bias),
            _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
        };
        if sign == 1 { -value } else { value }
    }

    fn check(name: &str, table: &[f32], e: u32, m: u32, bias: i32, specials: &[(u32, f32)]) {
        for (pattern, &value) in table.iter().enumerate() {
            let special = specials.iter().find(|(special, _)| *special == pattern as u32);
            let expected = match special {
                Some(&(_, special)) => f64::from(special),
                None => by_definition(pattern as u32, e, m, bias),
            };
            if expected.is_nan() {
                assert_eq!(value.to_bits(), NAN, "{name} {pattern:02x}");
            } else {
                assert_eq!(f64::from(value), expected, "{name} {pattern:02x}");
                let negative = expected.is_sign_negative();
                assert_eq!(value.is_sign_negative(), negative, "{name} {pattern:02x}");
            }
        }
    }

    #[test]
    fn every_pattern_of_every_narrow_float_is_exact() {
        let nan = f32::NAN;
        let infinite = f32::INFINITY;
        check("F8_E4M3", &E4M3, 4, 3, 7, &[(0x7f, nan), (0xff, nan)]);
        let e5m2: Vec<(u32, f32)> = [0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff].map(|p| (p, nan)).into();
        let e5m2 = [&e5m2[..], &[(0x7c, infinite), (0xfc, -infinite)]].concat();
        check("F8_E5M2", &E5M2, 5, 2, 15, &e5m2);
        check("F8_E4M3FNUZ", &E4M3FNUZ, 4, 3, 8, &[(0x80, nan)]);
        check("F8_E5M2FNUZ", &E5M2FNUZ, 5, 2, 16, &[(0x80, nan)]);
        check("F6_E2M3", &E2M3, 2, 3, 1, &[]);
        check("F6_E3M2", &E3M2, 3, 2, 3, &[]);
        check("F4", &E2M1, 2, 1, 1, &[]);
        for (exponent, &scale) in E8M0.iter().enumerate().take(255) {
            assert_eq!(f64::from(scale), 2f64.powi(exponent as i32 - 127));
        }
        assert_eq!(E8M0[255].to_bits(), NAN);
    }

    #[test]
    fn the_largest_are_what_the_table_above_says() {
        let largest =
            |table: &[f32]| table.iter().copied().filter(|v| v.is_finite()).fold(0f32, f32::max);
        assert_eq!(largest(&E4M3), 448.0);
        assert_eq!(largest(&E5M2), 57344.0);
        assert_eq!(largest(&E4M3FNUZ), 240.0);
        assert_eq!(largest(&E5M2FNUZ), 57344.0);
        assert_eq!(largest(&E2M3), 7.5);
        assert_eq!(largest(&E3M2), 28.0);
        assert_eq!(largest(&E2M1), 6.0);
    }

    #[test]
    fn packed_elements_begin_in_the_low_bits() {
        let [a, b] = [0, 1].map(|place| F4::read(&[0x31], place));
        assert_eq!([a, b], [0.5, 1.5]);
        // Patterns 0, 1, 2, 3 of six bits each: 0b000011_000010_000001_000000.
        let group = [0x40, 0x20, 0x0c];
        let read = [0, 1, 2, 3].map(|place| F6E2M3::read(&group, place));
        assert_eq!(read, [0.0, 0.125, 0.25, 0.375]);
        let read = [0, 1, 2, 3].map(|place| F6E3M2::read(&group, place));
        assert_eq!(read, [0.0, 0.0625, 0.125, 0.1875]);
    }
}
