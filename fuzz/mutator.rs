//! In what proportion are blind changes, clever ones and new beginnings mixed?

use crate::changes::{Random, change, dictionary};
use libfuzzer_sys::fuzzer_mutate;
use std::sync::LazyLock;

static WORDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let words = dictionary(include_str!("words.dict"));
    words.unwrap_or_else(|line| panic!("words.dict: {line}"))
});

/// Changes the first `len` bytes, or begins anew with what `skeleton` makes, one time in sixteen;
/// `mend` has the last word in three of four. Gives the new length.
pub fn mutate(
    input: &mut [u8],
    len: usize,
    longest: usize,
    seed: u32,
    skeleton: fn(&mut Random) -> Vec<u8>,
    mend: fn(&[u8]) -> Vec<u8>,
) -> usize {
    let mut random = Random::new(seed.into());
    let mut changed = match random.below(16) {
        0 => skeleton(&mut random),
        // Blind changes and ours in turn.
        1..=7 => {
            let len = fuzzer_mutate(input, len, longest);
            input[..len].to_vec()
        }
        _ => {
            let mut changed = input[..len].to_vec();
            for _ in 0..=random.below(2) {
                change(&mut changed, &mut random, &WORDS);
            }
            changed
        }
    };
    if random.below(4) != 0 {
        changed = mend(&changed);
    }
    changed.truncate(longest);
    input[..changed.len()].copy_from_slice(&changed);
    changed.len()
}
