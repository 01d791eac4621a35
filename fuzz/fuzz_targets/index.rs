//! Which index leads out of its folder, or hides what is wrong with it?

#![no_main]

use barest_fuzz::{index, mutator};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|text: &[u8]| {
    index::judge(text);
});

fuzz_mutator!(|text: &mut [u8], len: usize, longest: usize, seed: u32| {
    mutator::mutate(text, len, longest, seed, index::skeleton, <[u8]>::to_vec)
});
