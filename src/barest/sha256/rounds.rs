//! What does SHA-256 do with 64 bytes?
//!
//! It spreads their 16 words over 64, each of the later ones made of four earlier ones, and stirs
//! one after the other into eight words, by rotations, choices and additions that a few bits of
//! difference soon reach all of. FIPS 180-4, section 6.2; the names in the comments are its.

use super::{BLOCK, State};

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
#[rustfmt::skip]
pub const CONSTANTS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// Mixes whole blocks into the state, one after the other.
pub fn mix(state: &mut State, blocks: &[u8]) {
    for block in blocks.chunks_exact(BLOCK) {
        mix_one(state, &spread(block));
    }
}

/// The message schedule: 64 words out of 16 (sigma 0 and sigma 1).
fn spread(block: &[u8]) -> [u32; 64] {
    let mut words = [0; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for t in 16..64 {
        let (far, near) = (words[t - 15], words[t - 2]);
        let far = far.rotate_right(7) ^ far.rotate_right(18) ^ (far >> 3);
        let near = near.rotate_right(17) ^ near.rotate_right(19) ^ (near >> 10);
        words[t] = words[t - 16].wrapping_add(far).wrapping_add(words[t - 7]).wrapping_add(near);
    }
    words
}

/// The 64 rounds (Sigma 0, Sigma 1, Ch, Maj), and the addition of what was there before.
fn mix_one(state: &mut State, words: &[u32; 64]) {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (constant, word) in CONSTANTS.iter().zip(words) {
        let turned = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let one =
            h.wrapping_add(turned).wrapping_add(choice).wrapping_add(*constant).wrapping_add(*word);
        let turned = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let two = turned.wrapping_add(majority);
        (h, g, f, e) = (g, f, e, d.wrapping_add(one));
        (d, c, b, a) = (c, b, a, one.wrapping_add(two));
    }
    for (word, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(new);
    }
}
