//! In which order are the products of a dot product added?
//!
//! Floating-point addition is not associative, so the order is part of the result. Ours is fixed,
//! whatever the dtype, the length and the machine:
//!
//! ```text
//!   product i goes to partial sum i mod 16          16 sums, in the order of i
//!   sum k takes up sum k+8, then k+4, k+2, k+1      a tree of four steps
//! ```
//!
//! Sixteen sums fill two or four vector registers and hide the time an addition takes. One thing
//! does depend on the machine: where it can multiply and add in one step, rounding once, it does
//! (`FUSED`), and the result is then as if every step were `f32::mul_add`. Otherwise product and sum
//! are rounded each. All machines of one of the two kinds give the same bits.

use super::Float;

/// How many partial sums a dot product has.
pub const LANES: usize = 16;

/// The dot product of as many elements as factors.
#[inline(always)]
pub fn dot_each<E: Float, const FUSED: bool>(raw: &[E::Raw], factors: &[f32]) -> f32 {
    total(add::<E, FUSED>([0.0; LANES], raw, factors))
}

/// The partial sums with the products of as many elements as factors added. All but the last call
/// bring a multiple of [`LANES`].
#[inline(always)]
pub fn add<E: Float, const FUSED: bool>(
    mut sums: [f32; LANES],
    raw: &[E::Raw],
    factors: &[f32],
) -> [f32; LANES] {
    let add = |sum: f32, value: f32, factor: f32| match FUSED {
        true => value.mul_add(factor, sum),
        false => sum + value * factor,
    };
    let mut groups = raw.chunks_exact(LANES / E::PER_GROUP);
    let mut rows = factors.chunks_exact(LANES);
    for (groups, factors) in (&mut groups).zip(&mut rows) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let value = E::read(&groups[lane / E::PER_GROUP], lane % E::PER_GROUP);
            *sum = add(*sum, E::to_f32(value), factors[lane]);
        }
    }
    for (lane, &factor) in rows.remainder().iter().enumerate() {
        if let Some(group) = groups.remainder().get(lane / E::PER_GROUP) {
            let value = E::to_f32(E::read(group, lane % E::PER_GROUP));
            sums[lane] = add(sums[lane], value, factor);
        }
    }
    sums
}

/// The sum of the sums.
#[inline(always)]
pub fn total(mut sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::super::{Bf16, Element, F4, F16};
    use super::*;

    /// The order as the text above has it, without chunks.
    fn by_the_text<E: Float>(raw: &[E::Raw], factors: &[f32], fused: bool) -> f32 {
        let mut sums = [0f32; LANES];
        for (i, factor) in factors.iter().enumerate() {
            let value = E::to_f32(E::read(&raw[i / E::PER_GROUP], i % E::PER_GROUP));
            let sum = &mut sums[i % LANES];
            *sum = if fused { value.mul_add(*factor, *sum) } else { *sum + value * factor };
        }
        for step in [8, 4, 2, 1] {
            for k in 0..step {
                sums[k] += sums[k + step];
            }
        }
        sums[0]
    }

    fn check<E: Float>(make: impl Fn(usize) -> E::Raw) {
        for len in (0..70).chain([1000]).map(|groups| groups * E::PER_GROUP) {
            let raw: Vec<E::Raw> = (0..len / E::PER_GROUP).map(&make).collect();
            let factors: Vec<f32> = (0..len).map(|i| (i as f32 * 0.37).sin()).collect();
            let (plain, fused) =
                (dot_each::<E, false>(&raw, &factors), dot_each::<E, true>(&raw, &factors));
            assert_eq!(plain.to_bits(), by_the_text::<E>(&raw, &factors, false).to_bits());
            assert_eq!(fused.to_bits(), by_the_text::<E>(&raw, &factors, true).to_bits());
            // Whichever the machine takes: one of the two.
            let taken = E::dot(&raw, &factors).to_bits();
            assert!(taken == plain.to_bits() || taken == fused.to_bits(), "{len}");
            // Each of at most len/16 + 4 roundings errs by at most 2^-24 of the sum of magnitudes;
            // the plain form rounds each product besides.
            let magnitudes: f64 = factors
                .iter()
                .enumerate()
                .map(|(i, factor)| {
                    let value = E::to_f32(E::read(&raw[i / E::PER_GROUP], i % E::PER_GROUP));
                    f64::from(value.abs()) * f64::from(factor.abs())
                })
                .sum();
            let bound = magnitudes * 2.0 * (len as f64 / 16.0 + 6.0) * 2f64.powi(-24);
            assert!(f64::from((plain - fused).abs()) <= bound, "{len}: {plain} {fused}");
        }
    }

    #[test]
    fn the_order_is_the_one_in_the_text() {
        check::<Bf16>(|i| (0x3c00 + (i * 37 % 900) as u16).to_le_bytes());
        check::<F16>(|i| (0x2c00 + (i * 53 % 3000) as u16).to_le_bytes());
        check::<f32>(|i| (i as f32 * 0.11).cos().to_le_bytes());
        check::<F4>(|i| [(i * 29 % 256) as u8]);
    }

    #[test]
    fn a_dot_product_with_nothing_is_nothing() {
        assert_eq!(Bf16::dot(&[], &[]), 0.0);
        assert_eq!(<Bf16 as Element>::PER_GROUP, 1);
    }
}
