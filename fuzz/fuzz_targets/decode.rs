//! Which bits stand for another number than we say?

#![no_main]

use barest_fuzz::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|tape: &[u8]| {
    decode::judge(tape);
});
