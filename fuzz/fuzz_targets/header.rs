//! What does a header do to us that no one thought of?

#![no_main]

#[path = "../properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    properties::judge(file);
    properties::judge(&properties::mended(file));
});
