//! Which bytes of a model lie where, and what do a few of them cost, drawn at random?
//!
//! Rows of an embedding, experts of a mixture: one page in a hundred, in no order.

use crate::headers::Random;
use barest::{Advice, Model, TensorView};
use barest_peers::peers::{by_safetensors, map};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// The smallest there are: where pages are larger, some are touched more than once.
pub const PAGE: u64 = 4096;

/// A tensor's bytes, and where in the file they begin.
pub struct Part<'a> {
    pub start: u64,
    pub bytes: &'a [u8],
}

/// All tensors, in file order.
pub fn of_barest(model: &Model) -> Vec<Part<'_>> {
    model.tensors().map(|tensor| Part::of(&tensor)).collect()
}

/// The same by the reference, of a file that is in memory or mapped.
pub fn of_safetensors<'a>(file: &'a [u8], tensors: &SafeTensors<'a>) -> Vec<Part<'a>> {
    let start = |bytes: &[u8]| (bytes.as_ptr().addr() - file.as_ptr().addr()) as u64;
    let part = |bytes: &'a [u8]| Part { start: start(bytes), bytes };
    let mut parts: Vec<Part<'a>> = tensors.iter().map(|(_, view)| part(view.data())).collect();
    parts.sort_unstable_by_key(|part| part.start);
    parts
}

impl<'a> Part<'a> {
    pub fn of(tensor: &TensorView<'a>) -> Part<'a> {
        Part { start: tensor.file_range().start, bytes: tensor.bytes() }
    }

    /// Reads a byte of each page, and adds them up. A page that two parts share is touched by both.
    pub fn touch(&self) -> u64 {
        let Some(&first) = self.bytes.first() else { return 0 };
        let to_next_page = (PAGE - self.start % PAGE) as usize;
        let others = self.bytes.get(to_next_page..).unwrap_or_default();
        let others = others.iter().step_by(PAGE as usize);
        u64::from(first) + others.map(|&byte| u64::from(byte)).sum::<u64>()
    }
}

/// What looking up rows cost.
#[derive(Serialize, Deserialize)]
pub struct Rows {
    pub seconds: f64,
    /// Bytes that came from the disk.
    pub read: u64,
    sum: u64,
}

pub fn barest(path: &Path) -> Rows {
    let meter = Meter::start();
    // SAFETY: whoever starts this child leaves the file alone meanwhile.
    let model = unsafe { Model::map(path).expect("a model") };
    model.pages().advise(Advice::Random).expect("advice");
    meter.rows(&of_barest(&model))
}

pub fn memmap2(path: &Path) -> Rows {
    let meter = Meter::start();
    let map = map(path);
    meter.rows(&of_safetensors(&map, &by_safetensors(&map)))
}

pub fn memmap2_advised(path: &Path) -> Rows {
    let meter = Meter::start();
    let map = map(path);
    #[cfg(unix)]
    map.advise(memmap2::Advice::Random).expect("advice");
    meter.rows(&of_safetensors(&map, &by_safetensors(&map)))
}

struct Meter {
    read: u64,
    started: Instant,
}

impl Meter {
    fn start() -> Meter {
        Meter { read: bytes_read(), started: Instant::now() }
    }

    fn rows(self, parts: &[Part<'_>]) -> Rows {
        let end = parts.last().map_or(0, |last| last.start + last.bytes.len() as u64);
        let mut sum = 0;
        for offset in one_page_in_a_hundred(parts[0].start, end) {
            let part = &parts[parts.partition_point(|part| part.start <= offset) - 1];
            sum += u64::from(part.bytes[(offset - part.start) as usize]);
        }
        Rows { seconds: self.started.elapsed().as_secs_f64(), read: bytes_read() - self.read, sum }
    }
}

/// Where one page in each hundred begins, in no order.
fn one_page_in_a_hundred(from: u64, to: u64) -> Vec<u64> {
    let mut random = Random(13);
    let hundreds = (to - from) / (100 * PAGE);
    let first = from.next_multiple_of(PAGE);
    let mut offsets: Vec<u64> = (0..hundreds)
        .map(|hundred| first + (hundred * 100 + random.below(99) as u64) * PAGE)
        .collect();
    random.shuffle(&mut offsets);
    offsets
}

/// Bytes that came from the disk for this process so far. The kernel counts for a process what it
/// asks for itself, and what is read ahead because of that.
fn bytes_read() -> u64 {
    let text = fs::read_to_string("/proc/self/io").expect("a system that counts what is read");
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|number| number.parse().ok()).expect("a number")
}
