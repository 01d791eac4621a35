//! What does it cost to open a model that this process has not opened before?
//!
//! Most programs open one model, once. Then the code is not in any cache yet and each page of the
//! heap is a fault: more than what parsing takes.

use crate::peers::{by_candle, by_safetensors, map};
use barest::{Model, PageFaults, page_faults};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::Path;
use std::slice;
use std::time::Instant;

#[derive(Serialize, Deserialize)]
pub struct First {
    /// From just before the path is opened until tensors can be asked for.
    pub seconds: f64,
    /// Page faults meanwhile that no disk was asked for.
    pub faults: u64,
}

pub fn barest(path: &Path) -> First {
    let meter = Meter::start();
    // SAFETY: whoever starts this child leaves the file alone meanwhile.
    let model = unsafe { Model::map(path).expect("a model") };
    meter.stop(&model)
}

pub fn safetensors(path: &Path) -> First {
    let meter = Meter::start();
    let map = map(path);
    let tensors = by_safetensors(&map);
    meter.stop(&tensors)
}

pub fn candle(path: &Path) -> First {
    let paths = [path.to_owned()];
    let meter = Meter::start();
    let model = by_candle(slice::from_ref(&paths[0]));
    meter.stop(&model)
}

struct Meter {
    faults: PageFaults,
    started: Instant,
}

impl Meter {
    fn start() -> Meter {
        // Asked for twice: the first time costs faults of its own.
        let [_, faults] = [counted(), counted()];
        let _ = black_box(Instant::now().elapsed());
        Meter { faults, started: Instant::now() }
    }

    fn stop<T>(self, result: &T) -> First {
        black_box(result);
        let seconds = self.started.elapsed().as_secs_f64();
        First { seconds, faults: counted().minor - self.faults.minor }
    }
}

fn counted() -> PageFaults {
    page_faults().expect("a system that counts page faults")
}
