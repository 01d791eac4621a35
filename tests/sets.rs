//! Is a model of many files one model, by every way into it, and is all that is wrong with it told
//! at once?
//!
//! Each file of `sets/` asks one part of this.
#![cfg(all(unix, target_pointer_width = "64"))]

#[path = "common/counting.rs"]
#[allow(dead_code)]
mod counting;
#[path = "common/files.rs"]
mod files;
#[path = "../src/barest/skip.rs"]
mod skip;

#[path = "sets/agreement.rs"]
mod agreement;
#[path = "sets/children.rs"]
mod children;
#[path = "sets/faults.rs"]
mod faults;
#[path = "sets/hostile.rs"]
mod hostile;
#[path = "sets/large.rs"]
mod large;
#[path = "sets/progress.rs"]
mod progress;
#[path = "sets/range.rs"]
mod range;
#[path = "sets/reports.rs"]
mod reports;
#[path = "sets/scopes.rs"]
mod scopes;
#[path = "sets/streams.rs"]
mod streams;
#[path = "sets/underneath.rs"]
mod underneath;
#[path = "sets/ways.rs"]
mod ways;
