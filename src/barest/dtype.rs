//! Which element types does the format know, and how many bits has each?
//!
//! One table; everything else that needs a dtype's name or width asks it. The names are those of
//! the reference crate (`safetensors` 0.8), compared byte for byte: `bf16` is not `BF16`.

use std::fmt::{self, Display, Formatter};

macro_rules! dtypes {
    ($($variant:ident $name:literal $bits:literal $what:literal;)*) => {
        /// The type of a tensor's elements. Elements are little-endian and, below 8 bits, packed
        /// without gaps; the format does not say in which order they fill a byte.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Dtype {
            $(#[doc = $what] $variant,)*
        }

        impl Dtype {
            /// All dtypes, narrow to wide: the order in which the reference writer ranks them.
            pub const ALL: &'static [Dtype] = &[$(Dtype::$variant,)*];

            /// The name as it stands in a header, for instance `BF16`.
            pub const fn name(self) -> &'static str {
                match self { $(Dtype::$variant => $name,)* }
            }

            /// Bits of one element: 4, 6, 8, 16, 32 or 64.
            pub const fn bits(self) -> u64 {
                match self { $(Dtype::$variant => $bits,)* }
            }

            /// The dtype of that name; `None` if the format has none such.
            pub fn from_name(name: &str) -> Option<Dtype> {
                match name { $($name => Some(Dtype::$variant),)* _ => None }
            }
        }
    };
}

dtypes! {
    Bool "BOOL" 8 "A byte that should be 0 or 1. The format does not check it, so it is no `bool` yet.";
    F4 "F4" 4 "4-bit float (E2M1), two in a byte.";
    F6E2M3 "F6_E2M3" 6 "6-bit float, 2 exponent and 3 mantissa bits: four in three bytes.";
    F6E3M2 "F6_E3M2" 6 "6-bit float, 3 exponent and 2 mantissa bits: four in three bytes.";
    U8 "U8" 8 "Unsigned integer, 8 bits.";
    I8 "I8" 8 "Signed integer, 8 bits.";
    F8E5M2 "F8_E5M2" 8 "8-bit float with infinities, 5 exponent and 2 mantissa bits.";
    F8E4M3 "F8_E4M3" 8 "8-bit float without infinities (often called E4M3FN), 4 exponent and 3 mantissa bits.";
    F8E8M0 "F8_E8M0" 8 "A power of two from 2^-127 to 2^127: the scale of a block.";
    F8E4M3Fnuz "F8_E4M3FNUZ" 8 "As F8_E4M3, but finite, with one NaN and no negative zero.";
    F8E5M2Fnuz "F8_E5M2FNUZ" 8 "As F8_E5M2, but finite, with one NaN and no negative zero.";
    I16 "I16" 16 "Signed integer, 16 bits.";
    U16 "U16" 16 "Unsigned integer, 16 bits.";
    F16 "F16" 16 "IEEE half precision.";
    Bf16 "BF16" 16 "The upper half of an IEEE single.";
    I32 "I32" 32 "Signed integer, 32 bits.";
    U32 "U32" 32 "Unsigned integer, 32 bits.";
    F32 "F32" 32 "IEEE single precision.";
    C64 "C64" 64 "Complex number: two F32, real part first.";
    F64 "F64" 64 "IEEE double precision.";
    I64 "I64" 64 "Signed integer, 64 bits.";
    U64 "U64" 64 "Unsigned integer, 64 bits.";
}

impl Dtype {
    /// Bytes of one element, or `None` for the dtypes below 8 bits, whose elements have no
    /// address of their own.
    pub const fn element_bytes(self) -> Option<usize> {
        match self.bits() {
            bits if bits % 8 == 0 => Some((bits / 8) as usize),
            _ => None,
        }
    }

    /// The address a CPU would like an element to have a multiple of, in bytes: the width of the
    /// number it is made of (4 for C64, two F32), 1 below 8 bits.
    pub const fn natural_alignment(self) -> usize {
        match self {
            Dtype::C64 => 4,
            other => match other.element_bytes() {
                Some(bytes) => bytes,
                None => 1,
            },
        }
    }
}

impl Display for Dtype {
    /// The name, honouring width and alignment.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_22_rows_and_every_name_leads_back_to_its_row() {
        assert_eq!(Dtype::ALL.len(), 22);
        for &dtype in Dtype::ALL {
            assert_eq!(Dtype::from_name(dtype.name()), Some(dtype));
            assert!([4, 6, 8, 16, 32, 64].contains(&dtype.bits()), "{dtype}");
        }
    }

    #[test]
    fn names_are_exact() {
        for name in ["", "bf16", "BF16 ", "F8_E4M3FN", "F8_E3M4", "I4", "C32", "BFLOAT16", "F6"] {
            assert_eq!(Dtype::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn widths_that_are_easy_to_get_wrong() {
        for (dtype, bits, bytes, alignment) in [
            (Dtype::F4, 4, None, 1),
            (Dtype::F6E2M3, 6, None, 1),
            (Dtype::F8E8M0, 8, Some(1), 1),
            (Dtype::Bf16, 16, Some(2), 2),
            (Dtype::C64, 64, Some(8), 4),
            (Dtype::F64, 64, Some(8), 8),
        ] {
            assert_eq!(dtype.bits(), bits, "{dtype}");
            assert_eq!(dtype.element_bytes(), bytes, "{dtype}");
            assert_eq!(dtype.natural_alignment(), alignment, "{dtype}");
        }
    }
}
