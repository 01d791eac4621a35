//! Has this processor instructions for SHA-256?
//!
//! Asked at run time. Where it has, two rounds or four are one instruction; what comes out is the
//! same.
//!
//! ```text
//!   x86-64 with the SHA extensions   x86.rs       (Intel since 2016 to 2019, AMD since Zen)
//!   aarch64 with SHA2                aarch64.rs   (nearly all; Apple's all)
//!   anything else                    the plain rounds
//! ```

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::{State, rounds};

/// Mixes whole blocks into the state, one after the other.
pub fn mix(state: &mut State, blocks: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sha")
        && std::arch::is_x86_feature_detected!("sse4.1")
        && std::arch::is_x86_feature_detected!("ssse3")
    {
        // SAFETY: the processor was just asked.
        return unsafe { x86::mix(state, blocks) };
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("sha2") {
        // SAFETY: the processor was just asked.
        return unsafe { aarch64::mix(state, blocks) };
    }
    rounds::mix(state, blocks);
}

#[cfg(test)]
mod tests {
    use super::super::{BLOCK, START};
    use super::*;

    /// On a processor without such instructions this compares the plain rounds with themselves;
    /// the known answers hold there too.
    #[test]
    fn this_processor_mixes_as_the_plain_rounds_do() {
        let mut random = 1u32;
        let mut noise = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        };
        let bytes: Vec<u8> = (0..BLOCK * 50 + 7).map(|_| noise()).collect();
        for start in 0..7 {
            for blocks in 0..50 {
                let bytes = &bytes[start..start + blocks * BLOCK];
                let (mut plain, mut own) = (START, START);
                rounds::mix(&mut plain, bytes);
                mix(&mut own, bytes);
                assert_eq!(own, plain, "{blocks} blocks from {start}");
            }
        }
    }
}
