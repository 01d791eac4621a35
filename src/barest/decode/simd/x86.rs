//! How are eight elements read at once on x86-64?
//!
//! AVX2 with F16C, which every server of the last ten years has. Each function first brings the
//! destination to a cache line, since stores across two lines cost more than the reading; then
//! takes 32 elements at a time; and leaves the rest to the plain loop.
//!
//! What is larger than the caches is written past them (streaming stores), in two places at once,
//! and fetched ahead by hand, since the processor's own prefetcher stops at each page. tests/peers
//! prints the time beside that of `half`, which does neither, of a plain copy, and of filling the
//! destination with nothing read, which takes nine tenths of it: that is the limit.

// Since 1.87 most intrinsics are safe where their features are on; before, none was.
#![allow(unused_unsafe)]

use super::super::dot::{LANES, add, total};
use super::super::{Bf16, F8E4M3, F8E5M2, F16, Float, widen_each};
use std::arch::x86_64::*;

/// Elements of one turn of a loop: four vectors, or two cache lines of the destination.
const BLOCK: usize = 32;

/// Destinations of more bytes than this go past the caches.
const LARGE: usize = 1 << 20;

/// How far ahead the source of a conversion is fetched, in bytes. From 640 on it is slower by a
/// twentieth where the memory is busy, and no faster where it is not (Zen 4, 113 MB of BF16).
const AHEAD: usize = 512;

/// How far ahead a dot product fetches, in elements: 8 KiB of BF16. With half of that all rows of
/// 113 MB take a fifth longer, with twice as much they take as long (Zen 4).
const DOT_AHEAD: usize = 4096;

/// The values of a block, on a cache line.
#[repr(align(64))]
struct Values([f32; BLOCK]);

macro_rules! many {
    ($name:ident, $dot:ident, $block:ident, $element:ty, [u8; $bytes:literal], $read:ident) => {
        /// # Safety
        ///
        /// The processor has AVX2, FMA and F16C.
        #[target_feature(enable = "avx2,fma,f16c")]
        pub unsafe fn $name(raw: &[[u8; $bytes]], out: &mut [f32]) {
            let len = raw.len().min(out.len());
            // 1. Up to a cache line of the destination.
            let lead = out.as_ptr().align_offset(64).min(len);
            widen_each::<$element>(&raw[..lead], &mut out[..lead]);
            let (mut raw, mut out) = (&raw[lead..len], &mut out[lead..len]);
            // 2. Two halves at once, if they are large. The second begins an odd number of lines
            //    into a page, so that the two do not fall on the same cache sets.
            if size_of_val(out) > LARGE {
                let half = out.len() / 2 / 2048 * 2048 - 5 * BLOCK;
                let (one, rest) = raw.split_at(half);
                let (other, raw_rest) = rest.split_at(half);
                let (one_out, rest) = out.split_at_mut(half);
                let (other_out, out_rest) = rest.split_at_mut(half);
                let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
                let outs = one_out.chunks_exact_mut(BLOCK).zip(other_out.chunks_exact_mut(BLOCK));
                for ((one, other), (one_out, other_out)) in blocks.zip(outs) {
                    // SAFETY: all have a block, the destinations on a cache line.
                    unsafe {
                        $block::<true>(one, one_out);
                        $block::<true>(other, other_out);
                    }
                }
                // SAFETY: every x86-64 has it. Streaming stores are not ordered with others until
                // then.
                unsafe { _mm_sfence() };
                (raw, out) = (raw_rest, out_rest);
            }
            // 3. Blocks, and what is left of them.
            let mut blocks = raw.chunks_exact(BLOCK);
            let mut outs = out.chunks_exact_mut(BLOCK);
            for (raw, out) in (&mut blocks).zip(&mut outs) {
                // SAFETY: both have a block, the destination on a cache line.
                unsafe { $block::<false>(raw, out) };
            }
            widen_each::<$element>(blocks.remainder(), outs.into_remainder());
        }

        /// As [`dot`], of values that were read many at a time.
        ///
        /// # Safety
        ///
        /// The processor has AVX2, FMA and F16C.
        #[target_feature(enable = "avx2,fma,f16c")]
        pub unsafe fn $dot(raw: &[[u8; $bytes]], factors: &[f32]) -> f32 {
            let add_block = |sums: [f32; LANES], raw: &[[u8; $bytes]], factors: &[f32]| {
                let mut values = Values([0.0; BLOCK]);
                // SAFETY: both have a block, the destination on a cache line.
                unsafe { $block::<false>(raw, &mut values.0) };
                add::<f32, true>(sums, &values.0.map(f32::to_le_bytes), factors)
            };
            // SAFETY: by this function's own contract.
            unsafe { dot_by::<$element>(raw, factors, add_block) }
        }

        /// # Safety
        ///
        /// Both slices have [`BLOCK`] elements, `out` is on a cache line, and the processor has AVX2,
        /// FMA and F16C.
        #[target_feature(enable = "avx2,fma,f16c")]
        #[inline]
        unsafe fn $block<const STREAM: bool>(raw: &[[u8; $bytes]], out: &mut [f32]) {
            let (from, to) = (raw.as_ptr().cast::<u8>(), out.as_mut_ptr());
            // SAFETY: `from` and `to` point at BLOCK elements each; `to` is on a cache line, as aligned
            // stores want it. What is streamed is not touched again before the fence. Fetching ahead
            // never faults, whatever the address.
            unsafe {
                if STREAM {
                    _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD).cast());
                }
                let (eights, special) = $read(from);
                // A block with a NaN one by one: hardware would change its bits.
                if special {
                    return widen_each::<$element>(raw, out);
                }
                for (eight, values) in eights.into_iter().enumerate() {
                    match STREAM {
                        true => _mm256_stream_ps(to.add(eight * 8), values),
                        false => _mm256_store_ps(to.add(eight * 8), values),
                    }
                }
            }
        }
    };
}

many!(widen_bf16, dot_bf16, block_bf16, Bf16, [u8; 2], read_bf16);
many!(widen_f16, dot_f16, block_f16, F16, [u8; 2], read_f16);
many!(widen_f8e4m3, dot_f8e4m3, block_f8e4m3, F8E4M3, [u8; 1], read_f8e4m3);
many!(widen_f8e5m2, dot_f8e5m2, block_f8e5m2, F8E5M2, [u8; 1], read_f8e5m2);

/// The values of a block, eight in each register, and whether the plain loop has to read them again.
type Read = ([__m256; BLOCK / 8], bool);

/// The upper half of each value is the element. Both halves of a register get the same eight elements,
/// and each moves four of them into their places: one shuffle, where widening and shifting are two
/// steps. On a Zen 1, whose registers have half the width, `tests/peers --only decode/BF16` went from
/// 1.5 to 2.1 times as fast as `half` in L2.
///
/// # Safety
///
/// [`BLOCK`] elements can be read at `from`; the processor has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn read_bf16(from: *const u8) -> Read {
    // SAFETY: by this function's own contract; four turns read 16 bytes each.
    unsafe {
        #[rustfmt::skip]
        let places = _mm256_setr_epi8(
            -1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7,
            -1, -1, 8, 9, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1, 14, 15,
        );
        let eight = |number: usize| {
            let bits =
                _mm256_broadcastsi128_si256(_mm_loadu_si128(from.cast::<__m128i>().add(number)));
            _mm256_castsi256_ps(_mm256_shuffle_epi8(bits, places))
        };
        (std::array::from_fn(eight), false)
    }
}

/// # Safety
///
/// As that of [`read_bf16`]; the processor has F16C too.
#[target_feature(enable = "avx2,f16c")]
#[inline]
unsafe fn read_f16(from: *const u8) -> Read {
    // SAFETY: by this function's own contract; four turns read 16 bytes each.
    unsafe {
        let eight =
            |number: usize| _mm256_cvtph_ps(_mm_loadu_si128(from.cast::<__m128i>().add(number)));
        let values: [__m256; BLOCK / 8] = std::array::from_fn(eight);
        (values, any_nan(values))
    }
}

/// Shifted into place, the bits are those of an F16 that is 2^-8 of the number, subnormal or not. Widened
/// as a signed number, the sign already stands in the topmost bit, and in the one below it, which has to be
/// cleared. NaN is the one magnitude that would become a number.
///
/// # Safety
///
/// As that of [`read_f16`].
#[target_feature(enable = "avx2,f16c")]
#[inline]
unsafe fn read_f8e4m3(from: *const u8) -> Read {
    // SAFETY: by this function's own contract; four turns read eight bytes each.
    unsafe {
        let eight = |number: usize| {
            let bits = _mm_cvtepi8_epi16(_mm_loadl_epi64(from.add(number * 8).cast()));
            let half = _mm_and_si128(_mm_slli_epi16::<7>(bits), _mm_set1_epi16(!(1 << 14)));
            _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0))
        };
        let magnitudes = _mm256_or_si256(_mm256_loadu_si256(from.cast()), _mm256_set1_epi8(-0x80));
        let nans = _mm256_cmpeq_epi8(magnitudes, _mm256_set1_epi8(-1));
        (std::array::from_fn(eight), _mm256_movemask_epi8(nans) != 0)
    }
}

/// The bits are the upper byte of an F16.
///
/// # Safety
///
/// As that of [`read_f16`].
#[target_feature(enable = "avx2,f16c")]
#[inline]
unsafe fn read_f8e5m2(from: *const u8) -> Read {
    // SAFETY: by this function's own contract; four turns read eight bytes each.
    unsafe {
        let eight = |number: usize| {
            let bits = _mm_cvtepu8_epi16(_mm_loadl_epi64(from.add(number * 8).cast()));
            _mm256_cvtph_ps(_mm_slli_epi16::<8>(bits))
        };
        let values: [__m256; BLOCK / 8] = std::array::from_fn(eight);
        (values, any_nan(values))
    }
}

/// # Safety
///
/// The processor has AVX.
#[target_feature(enable = "avx")]
#[inline]
unsafe fn any_nan([a, b, c, d]: [__m256; BLOCK / 8]) -> bool {
    // SAFETY: by this function's own contract.
    unsafe {
        // A comparison is unordered if either of the two is NaN.
        let nans =
            _mm256_or_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(a, b), _mm256_cmp_ps::<_CMP_UNORD_Q>(c, d));
        _mm256_movemask_ps(nans) != 0
    }
}

/// The plain loop, compiled once more with wide registers and fused additions.
///
/// # Safety
///
/// The processor has AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn dot<E: Float>(raw: &[E::Raw], factors: &[f32]) -> f32 {
    // SAFETY: by this function's own contract.
    unsafe { dot_by::<E>(raw, factors, add::<E, true>) }
}

/// The dot product, by a way to add the products of a block. The source is fetched ahead: beyond
/// the end of a row too, since the next one begins there.
///
/// It is fetched into the second-level cache. In the first, which it would fill before it is
/// needed, are the factors: with 6912 of them, all rows of 113 MB of BF16 take twice as long.
///
/// # Safety
///
/// The processor has AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
unsafe fn dot_by<E: Float>(
    raw: &[E::Raw],
    factors: &[f32],
    add_block: impl Fn([f32; LANES], &[E::Raw], &[f32]) -> [f32; LANES],
) -> f32 {
    let factors = &factors[..factors.len().min(raw.len() * E::PER_GROUP)];
    let whole = factors.len() / BLOCK * BLOCK;
    let (blocks, rest) = factors.split_at(whole);
    let (raw, raw_rest) = raw.split_at(whole / E::PER_GROUP);
    let mut sums = [0.0; LANES];
    for (raw, factors) in raw.chunks_exact(BLOCK / E::PER_GROUP).zip(blocks.chunks_exact(BLOCK)) {
        let ahead = raw.as_ptr().wrapping_add(DOT_AHEAD / E::PER_GROUP).cast::<u8>();
        for line in (0..size_of_val(raw)).step_by(64) {
            // SAFETY: fetching ahead never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(ahead.wrapping_add(line).cast()) };
        }
        sums = add_block(sums, raw, factors);
    }
    total(add::<E, true>(sums, raw_rest, rest))
}
