//! What does it cost to open a model that this process has not opened before?
//!
//! Most programs open one model, once. Then the code is not in any cache yet and each page of the
//! heap is a fault: more than what parsing takes.

use barest::{PageFaults, page_faults};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

#[derive(Serialize, Deserialize)]
pub struct First {
    /// From just before the path is opened until tensors can be asked for.
    pub seconds: f64,
    /// Page faults meanwhile that no disk was asked for.
    pub faults: u64,
}

/// Opens the model that the program's argument names, and prints what that cost as a line of JSON.
pub fn tell<T>(open: impl FnOnce(&Path) -> T) {
    let path = std::env::args_os().nth(1).expect("the path of a model");
    let first = measured(|| open(Path::new(&path)));
    println!("{}", serde_json::to_string(&first).expect("figures are JSON"));
}

fn measured<T>(open: impl FnOnce() -> T) -> First {
    // Asked for twice: the first time costs faults of its own.
    let [_, before] = [faults(), faults()];
    let _ = black_box(Instant::now().elapsed());
    let started = Instant::now();
    let model = black_box(open());
    let seconds = started.elapsed().as_secs_f64();
    let faults = faults().minor - before.minor;
    drop(model);
    First { seconds, faults }
}

fn faults() -> PageFaults {
    page_faults().expect("a system that counts page faults")
}
