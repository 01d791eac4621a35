//! What can this processor do many of at a time?
//!
//! Asked once, at run time, since a program is built for the processors of everyone. What is
//! chosen gives the same bits as the loop over single elements, NaN payloads included; a test
//! compares them on every pattern, alignment and length.
//!
//! ```text
//!   x86-64 with AVX2, FMA, F16C   x86.rs
//!   aarch64                       the plain loops: NEON is always there, and the compiler uses it
//!   anything else                 the plain loops
//! ```

#[cfg(target_arch = "x86_64")]
mod x86;

use super::dot::dot_each;
use super::{Bf16, F8E4M3, F8E5M2, F16, Float, widen_each};

macro_rules! many {
    ($($name:ident, $dot:ident of $element:ty as [u8; $bytes:literal];)*) => {
        $(
            /// As many values as there are elements.
            pub fn $name(raw: &[[u8; $bytes]], out: &mut [f32]) {
                #[cfg(target_arch = "x86_64")]
                if has_avx2() {
                    // SAFETY: the processor was just asked.
                    return unsafe { x86::$name(raw, out) };
                }
                widen_each::<$element>(raw, out);
            }

            /// As [`dot`].
            pub fn $dot(raw: &[[u8; $bytes]], factors: &[f32]) -> f32 {
                #[cfg(target_arch = "x86_64")]
                if has_avx2() {
                    // SAFETY: the processor was just asked.
                    return unsafe { x86::$dot(raw, factors) };
                }
                dot::<$element>(raw, factors)
            }
        )*
    };
}

many! {
    widen_bf16, dot_bf16 of Bf16 as [u8; 2];
    widen_f16, dot_f16 of F16 as [u8; 2];
    widen_f8e4m3, dot_f8e4m3 of F8E4M3 as [u8; 1];
    widen_f8e5m2, dot_f8e5m2 of F8E5M2 as [u8; 1];
}

/// The dot product in the order that `dot.rs` tells; fused where the processor can.
pub fn dot<E: Float>(raw: &[E::Raw], factors: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the processor was just asked.
        return unsafe { x86::dot::<E>(raw, factors) };
    }
    match cfg!(target_arch = "aarch64") {
        true => dot_each::<E, true>(raw, factors),
        false => dot_each::<E, false>(raw, factors),
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    // std keeps the answers: this is a load and three tests.
    std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("fma")
        && std::arch::is_x86_feature_detected!("f16c")
}

#[cfg(test)]
mod tests {
    use super::super::Element;
    use super::*;

    /// Compares with the plain loop, bit for bit: every pattern, from every place of the source and
    /// of the destination, with every number of elements left over.
    fn check<E: Float>(patterns: Vec<E::Raw>, widen: fn(&[E::Raw], &mut [f32])) {
        let same = |raw: &[E::Raw], offset: usize| {
            let mut expected = vec![0.0; raw.len()];
            widen_each::<E>(raw, &mut expected);
            // What stands around the destination must stay.
            let mut found = vec![7.0; offset + raw.len() + 3];
            widen(raw, &mut found[offset..offset + raw.len()]);
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found[offset..offset + raw.len()]), bits(&expected));
            assert!(found[..offset].iter().chain(&found[offset + raw.len()..]).all(|&v| v == 7.0));
        };
        for offset in 0..17 {
            same(&patterns, offset);
        }
        for start in 0..40 {
            for len in 0..100 {
                same(&patterns[start..start + len], start % 5);
            }
        }
        // The last pattern, a NaN, alone among zeros.
        for place in 0..64 {
            let mut raw = vec![patterns[0]; 64];
            raw[place] = patterns[patterns.len() - 1];
            same(&raw, 0);
        }
        // Large enough for the way that goes around the caches, by much and by just one, with
        // specials all over.
        let many: Vec<E::Raw> = patterns.iter().cycle().copied().take(1_000_003).collect();
        same(&many, 1);
        for offset in 0..17 {
            same(&many[..(1 << 18) + 16], offset);
        }
    }

    #[test]
    fn many_at_a_time_are_the_same_as_one_at_a_time() {
        let two: Vec<[u8; 2]> = (0..=u16::MAX).map(u16::to_le_bytes).collect();
        let one: Vec<[u8; 1]> = (0..=u8::MAX).map(|bits| [bits]).collect();
        check::<Bf16>(two.clone(), widen_bf16);
        check::<F16>(two, widen_f16);
        check::<F8E4M3>(one.clone(), widen_f8e4m3);
        check::<F8E5M2>(one, widen_f8e5m2);
        assert_eq!(Bf16::DTYPE.bits(), 16);
    }

    /// Compares with the plain loop, fused or not as this processor has it, with every number of
    /// elements left over. No NaN is lost on the way either.
    fn check_dot<E: Float>(numbers: impl Fn(usize) -> E::Raw, nan: E::Raw) {
        for len in (0..100).chain([999]) {
            let mut raw: Vec<E::Raw> = (0..len).map(&numbers).collect();
            let factors: Vec<f32> = (0..len).map(|i| (i as f32).cos()).collect();
            let expected = match cfg!(target_arch = "aarch64") {
                true => dot_each::<E, true>(&raw, &factors),
                #[cfg(target_arch = "x86_64")]
                false if has_avx2() => dot_each::<E, true>(&raw, &factors),
                false => dot_each::<E, false>(&raw, &factors),
            };
            assert_eq!(E::dot(&raw, &factors).to_bits(), expected.to_bits(), "{len}");
            if let Some(last) = raw.last_mut() {
                *last = nan;
                assert!(E::dot(&raw, &factors).is_nan(), "{len}");
            }
        }
    }

    #[test]
    fn the_dot_product_of_this_processor_is_the_fused_or_the_plain_one() {
        let bits = |i: usize, first: u16| (first + (i * 7 % 1000) as u16).to_le_bytes();
        check_dot::<Bf16>(|i| bits(i, 0x3c00), [0xff, 0x7f]);
        check_dot::<F16>(|i| bits(i, 0x3000), [0xff, 0x7f]);
        check_dot::<F8E4M3>(|i| [(i * 7 % 0x7f) as u8], [0x7f]);
        check_dot::<F8E5M2>(|i| [(i * 7 % 0x7c) as u8], [0xff]);
        check_dot::<f32>(|i| (i as f32).sin().to_le_bytes(), f32::NAN.to_le_bytes());
    }
}
