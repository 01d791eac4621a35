//! How long until all of a model was in the processor's hands, the page cache being empty?
//!
//! Each way goes through the tensors in file order and reads a byte of each page.

use super::parts::{Part, of_safetensors};
use barest::Model;
use barest_peers::peers::{by_candle, by_safetensors, map};
use candle_core::Device;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::slice;
use std::time::Instant;

/// Seconds since just before the path was opened.
#[derive(Serialize, Deserialize, Default)]
pub struct Cold {
    /// Until the first hundredth of the bytes was read.
    pub first: f64,
    /// Until all were.
    pub all: f64,
    /// Of the bytes that were touched: those who read the same pages have the same.
    pub sum: u64,
}

pub fn barest(path: &Path) -> Cold {
    let started = Instant::now();
    // SAFETY: whoever starts this child leaves the file alone meanwhile.
    let model = unsafe { Model::map(path).expect("a model") };
    let prefetcher = model.pages().prefetch().expect("room in memory");
    let bytes = model.tensors().map(|tensor| tensor.byte_len()).sum();
    let mut walk = Walk::new(started, bytes);
    for tensor in model.tensors() {
        prefetcher.wait(&tensor).expect("its pages");
        walk.touch(&Part::of(&tensor));
    }
    walk.end()
}

pub fn memmap2(path: &Path) -> Cold {
    let started = Instant::now();
    let map = map(path);
    walk(started, &of_safetensors(&map, &by_safetensors(&map)))
}

/// Each tensor becomes one of candle's on the processor, and is kept.
pub fn candle(path: &Path) -> Cold {
    let started = Instant::now();
    let model = by_candle(slice::from_ref(&path.to_owned()));
    let mut tensors = model.tensors();
    tensors.sort_unstable_by_key(|(_, view)| view.data().as_ptr());
    let bytes = tensors.iter().map(|(_, view)| view.data().len()).sum();
    let mut walk = Walk::new(started, bytes);
    let mut kept = Vec::new();
    for (name, view) in &tensors {
        kept.push(model.load(name, &Device::Cpu).expect("a tensor"));
        // The mapping begins with a page.
        walk.touch(&Part { start: view.data().as_ptr().addr() as u64, bytes: view.data() });
    }
    walk.end()
}

pub fn read(path: &Path) -> Cold {
    let started = Instant::now();
    let file = fs::read(path).expect("the file");
    walk(started, &of_safetensors(&file, &by_safetensors(&file)))
}

fn walk(started: Instant, parts: &[Part<'_>]) -> Cold {
    let mut walk = Walk::new(started, parts.iter().map(|part| part.bytes.len()).sum());
    parts.iter().for_each(|part| walk.touch(part));
    walk.end()
}

struct Walk {
    started: Instant,
    /// Bytes to touch until the first hundredth is there.
    to_first: usize,
    touched: usize,
    cold: Cold,
}

impl Walk {
    fn new(started: Instant, bytes: usize) -> Walk {
        Walk { started, to_first: bytes / 100, touched: 0, cold: Cold::default() }
    }

    fn touch(&mut self, part: &Part<'_>) {
        // A tensor in which the hundredth ends is looked at in two steps.
        let rest = self.to_first.saturating_sub(self.touched).min(part.bytes.len());
        let (first, last) = part.bytes.split_at(rest);
        for (start, bytes) in [(part.start, first), (part.start + rest as u64, last)] {
            self.cold.sum += Part { start, bytes }.touch();
            self.touched += bytes.len();
            if self.cold.first == 0.0 && self.touched >= self.to_first {
                self.cold.first = self.started.elapsed().as_secs_f64();
            }
        }
    }

    fn end(self) -> Cold {
        Cold { all: self.started.elapsed().as_secs_f64(), ..self.cold }
    }
}
