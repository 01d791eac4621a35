//! Which slice has other elements than those that were asked for?

#![no_main]

use barest_fuzz::slice;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|tape: &[u8]| {
    slice::judge(tape);
});
