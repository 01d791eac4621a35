//! What does a header do to us that no one thought of?

#![no_main]

use barest_fuzz::{changes, header, mutator, skeleton};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|file: &[u8]| {
    header::judge(file);
});

fuzz_mutator!(|file: &mut [u8], len: usize, longest: usize, seed: u32| {
    mutator::mutate(file, len, longest, seed, skeleton::header, changes::mended)
});
