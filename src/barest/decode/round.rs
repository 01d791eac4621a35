//! How is a number written with fewer bits?
//!
//! To the nearest number that the format has; from halfway, to the one whose last bit is 0. That is
//! done once, from all the bits there are: rounding an `f64` to `f32` and then to BF16 rounds twice,
//! and 1 + 2^-8 + 2^-40 would become 1 (the tie, to even) where 1 + 2^-7 is nearest.
//!
//! Like all floating-point code in Rust this expects the processor's default mode: one that flushes
//! subnormal numbers to zero flushes those of `f32` on their way in.

/// The bits of the nearest number with `E` exponent and `M` mantissa bits (an IEEE format of at most
/// 16 bits).
pub fn f64_to<const E: u32, const M: u32>(number: f64) -> u16 {
    const MANTISSA: u32 = 52;
    const HIDDEN: u64 = 1 << MANTISSA;
    let bits = number.to_bits();
    let sign = ((bits >> 63) as u16) << (E + M);
    let infinity = ((1 << E) - 1) << M;
    let mantissa = bits & (HIDDEN - 1);
    let exponent = (bits >> MANTISSA & 0x7ff) as i32 - 1023;
    if exponent == 1024 {
        return sign
            | if mantissa == 0 { infinity } else { quiet_nan::<E, M>(mantissa >> (MANTISSA - M)) };
    }
    // How many bits of the mantissa fall away: more, the further below the smallest normal number.
    let bias = (1 << (E - 1)) - 1;
    let lowest = 1 - bias;
    let dropped = (MANTISSA - M) as i32 + (lowest - exponent).max(0);
    if dropped > MANTISSA as i32 + 1 {
        return sign;
    }
    let kept = round_off(HIDDEN | mantissa, dropped as u32) as u16;
    // A mantissa that is rounded up to its end carries into the exponent: the next number, also
    // from the subnormal to the normal ones and from the largest to infinity.
    let below = ((exponent.max(lowest) + bias - 1) as u64) << M;
    let rounded = below + u64::from(kept);
    sign | if rounded >= u64::from(infinity) { infinity } else { rounded as u16 }
}

/// The same of an `f32`. All of them are numbers of `f64`, but a NaN would lose its signalling bit
/// on the way there on some machines.
pub fn f32_to<const E: u32, const M: u32>(number: f32) -> u16 {
    if number.is_nan() {
        let bits = number.to_bits();
        let sign = ((bits >> 31) as u16) << (E + M);
        return sign | quiet_nan::<E, M>(u64::from(bits & 0x7f_ffff) >> (23 - M));
    }
    f64_to::<E, M>(f64::from(number))
}

/// A NaN with the payload given, quiet.
fn quiet_nan<const E: u32, const M: u32>(payload: u64) -> u16 {
    ((1 << E) - 1) << M | 1 << (M - 1) | payload as u16
}

/// The value without its lowest bits, rounded to the nearest, ties to even.
fn round_off(value: u64, bits: u32) -> u64 {
    let (kept, rest, half) = (value >> bits, value & ((1 << bits) - 1), 1 << (bits - 1));
    kept + u64::from(rest > half || rest == half && kept & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::super::{Bf16, F16};

    /// The nearest by looking at all of them.
    fn nearest(number: f64, all: &[(u16, f64)]) -> u16 {
        let distance = |value: f64| (value - number).abs();
        let (bits, _) = all
            .iter()
            .min_by(|one, other| {
                let by_distance = distance(one.1).total_cmp(&distance(other.1));
                by_distance.then((one.0 & 1).cmp(&(other.0 & 1)))
            })
            .unwrap();
        *bits
    }

    /// Finite values by pattern, with 2^16 (or 2^128) for infinity: a number nearer to that than to
    /// the largest rounds to infinity.
    fn all(read: fn(u16) -> f32, infinity: u16, beyond: f64) -> Vec<(u16, f64)> {
        let finite = (0..infinity).map(|bits| (bits, f64::from(read(bits))));
        finite.chain([(infinity, beyond)]).collect()
    }

    #[test]
    fn numbers_between_two_go_to_the_nearer_and_ties_to_even() {
        let f16 = all(|bits| F16(bits).to_f32(), 0x7c00, 65536.0);
        let bf16 = all(|bits| Bf16(bits).to_f32(), 0x7f80, 2f64.powi(128));
        type Round = fn(f64) -> u16;
        let formats: [(&[(u16, f64)], Round); 2] =
            [(&f16, |n| F16::from_f64(n).0), (&bf16, |n| Bf16::from_f64(n).0)];
        for (all, round) in formats {
            for pair in all.windows(2).step_by(7).chain(all.windows(2).rev().take(5)) {
                let ((low_bits, low), (high_bits, high)) = (pair[0], pair[1]);
                let middle = (low + high) / 2.0;
                let above = f64::from_bits(middle.to_bits() + 1);
                let below = f64::from_bits(middle.to_bits() - 1);
                let even = if low_bits & 1 == 0 { low_bits } else { high_bits };
                for (number, bits) in [
                    (low, low_bits),
                    (below, low_bits),
                    (middle, even),
                    (above, high_bits),
                    (high, high_bits),
                ] {
                    assert_eq!(round(number), bits, "{number:e}");
                    let sign = 0x8000;
                    assert_eq!(round(-number), bits | sign, "-{number:e}");
                }
            }
        }
        for number in [0.1, 3.2, 1e-7, 5e-8, 2.9e-8, 65504.0, 65519.9, 65520.0, 6e-42] {
            assert_eq!(F16::from_f64(number).0, nearest(number, &f16), "{number}");
        }
    }

    #[test]
    fn an_f64_is_rounded_once() {
        let number = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
        assert_eq!(Bf16::from_f64(number).to_f32(), 1.0078125);
        assert_eq!(Bf16::from_f32(number as f32).to_f32(), 1.0, "by way of f32 it is a tie");
    }

    #[test]
    fn every_16_bit_number_comes_back_and_a_nan_stays_one() {
        for bits in 0..=u16::MAX {
            for (back, value, mantissa) in [
                (Bf16::from_f32(Bf16(bits).to_f32()).0, Bf16(bits).to_f32(), 7),
                (F16::from_f32(F16(bits).to_f32()).0, F16(bits).to_f32(), 10),
            ] {
                let quiet = if value.is_nan() { 1 << (mantissa - 1) } else { 0 };
                assert_eq!(back, bits | quiet, "{bits:04x}");
            }
        }
        assert_eq!(Bf16::from_f32(f32::from_bits(0xff80_0001)).0, 0xffc0);
        assert_eq!(F16::from_f64(f64::from_bits(0x7ff0_0000_0000_0001)).0, 0x7e00);
        assert_eq!((F16::from_f64(1e300).0, Bf16::from_f64(-1e300).0), (0x7c00, 0xff80));
        assert_eq!(Bf16::from_f64(f64::MIN_POSITIVE).0, 0);
        assert_eq!(Bf16::from_f64(-f64::from_bits(1)).0, 0x8000);
    }
}
