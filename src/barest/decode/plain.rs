//! How are numbers read that Rust has itself?
//!
//! By putting their little-endian bytes together. A float keeps every bit, the payload of a NaN
//! included.

use super::super::dtype::Dtype;
use super::{Element, Float, Plain, sealed};

macro_rules! plain {
    ($($number:ty, $dtype:ident $(, bits of $($other:ident)*)?;)*) => {
        $(
            impl sealed::Sealed for $number {}

            impl Element for $number {
                type Value = $number;
                type Raw = [u8; size_of::<$number>()];
                const DTYPE: Dtype = Dtype::$dtype;

                #[inline(always)]
                fn read(raw: &Self::Raw, _: usize) -> $number {
                    <$number>::from_le_bytes(*raw)
                }
            }

            impl Plain for $number {
                const DTYPES: &'static [Dtype] = &[Dtype::$dtype $($(, Dtype::$other)*)?];
                const NAME: &'static str = stringify!($number);
            }
        )*
    };
}

plain! {
    u8, U8, bits of Bool F8E5M2 F8E4M3 F8E8M0 F8E4M3Fnuz F8E5M2Fnuz;
    i8, I8;
    u16, U16, bits of Bf16 F16;
    i16, I16;
    u32, U32;
    i32, I32;
    f32, F32;
    u64, U64;
    i64, I64;
    f64, F64;
}

impl Float for f32 {
    #[inline(always)]
    fn to_f32(value: f32) -> f32 {
        value
    }
}

impl Float for f64 {
    #[inline(always)]
    fn to_f32(value: f64) -> f32 {
        value as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_little_endian_whatever_the_machine() {
        assert_eq!(u8::read(&[0x81], 0), 0x81);
        assert_eq!(i8::read(&[0x81], 0), -127);
        assert_eq!(i16::read(&[0x01, 0x82], 0), 0x8201_u16 as i16);
        assert_eq!(u32::read(&[1, 2, 3, 4], 0), 0x0403_0201);
        assert_eq!(u64::read(&[1, 2, 3, 4, 5, 6, 7, 0x88], 0), 0x8807_0605_0403_0201);
        assert_eq!(i64::read(&[0xfe, 255, 255, 255, 255, 255, 255, 255], 0), -2);
        assert_eq!(f32::read(&[0, 0, 0x80, 0x3f], 0), 1.0);
        assert_eq!(f64::read(&[0, 0, 0, 0, 0, 0, 0xf0, 0xbf], 0), -1.0);
    }

    #[test]
    fn a_float_keeps_the_payload_of_its_nan() {
        let bits = 0x7fa0_1234u32;
        assert_eq!(f32::read(&bits.to_le_bytes(), 0).to_bits(), bits);
    }

    #[test]
    fn a_number_stands_only_for_elements_of_its_own_width() {
        fn check<T: Plain>() {
            for dtype in T::DTYPES {
                assert_eq!(dtype.element_bytes(), Some(size_of::<T>()), "{} {dtype}", T::NAME);
            }
        }
        check::<u8>();
        check::<i8>();
        check::<u16>();
        check::<i16>();
        check::<u32>();
        check::<i32>();
        check::<f32>();
        check::<u64>();
        check::<i64>();
        check::<f64>();
        check::<super::super::Bf16>();
    }
}
