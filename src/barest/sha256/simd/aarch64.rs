//! How does aarch64 mix a block?
//!
//! `sha256h` and `sha256h2` do four rounds on the two halves of the state; `sha256su0` and
//! `sha256su1` make four words of the schedule. Arm Architecture Reference Manual, C7.2.

// Since 1.87 most intrinsics are safe where their features are on; before, none was.
#![allow(unused_unsafe)]

use super::super::rounds::CONSTANTS;
use super::super::{BLOCK, State};
use std::arch::aarch64::*;

/// Mixes whole blocks into the state, one after the other.
///
/// # Safety
///
/// The processor has SHA2.
#[target_feature(enable = "neon,sha2")]
pub unsafe fn mix(state: &mut State, blocks: &[u8]) {
    // SAFETY: the processor can; loads and stores take any address, and stay within `state`, within
    // one block of 64 bytes and within the 64 constants.
    unsafe {
        let mut abcd = vld1q_u32(state.as_ptr());
        let mut efgh = vld1q_u32(state.as_ptr().add(4));
        for block in blocks.chunks_exact(BLOCK) {
            let (before_abcd, before_efgh) = (abcd, efgh);
            // The bytes of each word turned around.
            let load = |at: usize| {
                let bytes = vld1q_u8(block.as_ptr().add(at * 16));
                vreinterpretq_u32_u8(vrev32q_u8(bytes))
            };
            // Sixteen words in four registers, of which the oldest four make room for the next.
            let mut words = [load(0), load(1), load(2), load(3)];
            for four in 0..16 {
                let sum = vaddq_u32(words[0], vld1q_u32(CONSTANTS.as_ptr().add(four * 4)));
                let was_abcd = abcd;
                abcd = vsha256hq_u32(abcd, efgh, sum);
                efgh = vsha256h2q_u32(efgh, was_abcd, sum);
                let [oldest, second, third, newest] = words;
                let half = vsha256su0q_u32(oldest, second);
                words = [second, third, newest, vsha256su1q_u32(half, third, newest)];
            }
            abcd = vaddq_u32(abcd, before_abcd);
            efgh = vaddq_u32(efgh, before_efgh);
        }
        vst1q_u32(state.as_mut_ptr(), abcd);
        vst1q_u32(state.as_mut_ptr().add(4), efgh);
    }
}
