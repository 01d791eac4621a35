//! What does a header do to us that no one thought of?

#![no_main]

#[path = "../changes.rs"]
mod changes;
#[path = "../properties.rs"]
mod properties;

use changes::{Random, change, dictionary, mended};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::sync::LazyLock;

static WORDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let words = dictionary(include_str!("../header.dict"));
    words.unwrap_or_else(|line| panic!("header.dict: {line}"))
});

fuzz_target!(|file: &[u8]| {
    properties::judge(file);
});

// Blind changes and ours in turn; and one in four is left as it is.
fuzz_mutator!(|file: &mut [u8], len: usize, longest: usize, seed: u32| {
    let mut random = Random::new(seed.into());
    let mut changed = if random.below(2) == 0 {
        let len = fuzzer_mutate(file, len, longest);
        file[..len].to_vec()
    } else {
        let mut changed = file[..len].to_vec();
        for _ in 0..=random.below(2) {
            change(&mut changed, &mut random, &WORDS);
        }
        changed
    };
    if random.below(4) != 0 {
        changed = mended(&changed);
    }
    changed.truncate(longest);
    file[..changed.len()].copy_from_slice(&changed);
    changed.len()
});
