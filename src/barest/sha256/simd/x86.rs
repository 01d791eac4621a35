//! How does x86-64 mix a block?
//!
//! `sha256rnds2` does two rounds on eight words that lie in two registers as ABEF and CDGH, with two
//! words and their constants added up beforehand; `sha256msg1` and `sha256msg2` make four words
//! of the schedule at a time. Intel, "SHA Extensions", 2013.

// Since 1.87 most intrinsics are safe where their features are on; before, none was.
#![allow(unused_unsafe)]

use super::super::rounds::CONSTANTS;
use super::super::{BLOCK, State};
use std::arch::x86_64::*;

/// Mixes whole blocks into the state, one after the other.
///
/// # Safety
///
/// The processor has the SHA extensions, SSE4.1 and SSSE3.
#[target_feature(enable = "sha,sse4.1,ssse3")]
pub unsafe fn mix(state: &mut State, blocks: &[u8]) {
    // SAFETY: the processor can; loads and stores take any address, and stay within `state`, within
    // one block of 64 bytes and within the 64 constants.
    unsafe {
        // 1. ABCD, EFGH in memory; ABEF, CDGH in registers (highest word first).
        let low = _mm_loadu_si128(state.as_ptr().cast());
        let high = _mm_loadu_si128(state.as_ptr().add(4).cast());
        let badc = _mm_shuffle_epi32(low, 0xb1);
        let hgfe = _mm_shuffle_epi32(high, 0x1b);
        let mut abef = _mm_alignr_epi8(badc, hgfe, 8);
        let mut cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);

        // The bytes of each word turned around.
        let big_endian = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
        for block in blocks.chunks_exact(BLOCK) {
            let (before_abef, before_cdgh) = (abef, cdgh);
            let load = |at: usize| {
                let words = _mm_loadu_si128(block.as_ptr().add(at * 16).cast());
                _mm_shuffle_epi8(words, big_endian)
            };
            // 2. Sixteen words in four registers, of which the oldest four make room for the next.
            let mut words = [load(0), load(1), load(2), load(3)];
            for four in 0..16 {
                let constants = _mm_loadu_si128(CONSTANTS.as_ptr().add(four * 4).cast());
                let sum = _mm_add_epi32(words[0], constants);
                cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
                abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
                let [oldest, second, third, newest] = words;
                let seven_ago = _mm_alignr_epi8(newest, third, 4);
                let half = _mm_add_epi32(_mm_sha256msg1_epu32(oldest, second), seven_ago);
                words = [second, third, newest, _mm_sha256msg2_epu32(half, newest)];
            }
            abef = _mm_add_epi32(abef, before_abef);
            cdgh = _mm_add_epi32(cdgh, before_cdgh);
        }

        // 3. And back.
        let feba = _mm_shuffle_epi32(abef, 0x1b);
        let dchg = _mm_shuffle_epi32(cdgh, 0xb1);
        let low = _mm_blend_epi16(feba, dchg, 0xf0);
        let high = _mm_alignr_epi8(dchg, feba, 8);
        _mm_storeu_si128(state.as_mut_ptr().cast(), low);
        _mm_storeu_si128(state.as_mut_ptr().add(4).cast(), high);
    }
}
