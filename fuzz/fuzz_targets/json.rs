//! Which text is another value to us than to `serde_json`?

#![no_main]

use barest_fuzz::json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    json::judge(text);
});
