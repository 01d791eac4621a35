//! Which file do we judge in another way than the reference does?

#![no_main]

use barest_fuzz::{changes, differential, mutator, skeleton};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|file: &[u8]| {
    differential::judge(file);
});

fuzz_mutator!(|file: &mut [u8], len: usize, longest: usize, seed: u32| {
    mutator::mutate(file, len, longest, seed, skeleton::header, changes::mended)
});
