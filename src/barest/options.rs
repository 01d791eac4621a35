//! What can be chosen when a model is opened?
//!
//! Little, on purpose. There is no lenient mode: a file that breaks the format breaks it for
//! everyone.

use super::header::DEFAULT_HEADER_CAP;
use super::progress::Progress;
use std::num::NonZeroUsize;

/// Choices for opening a model, in the manner of `std::fs::OpenOptions`: make one, change it, and
/// end with `open`, `map`, `read`, `index` or `from_bytes`.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(super) header_cap: u32,
    pub(super) read_threads: Option<NonZeroUsize>,
    pub(super) progress: Option<Progress>,
}

impl OpenOptions {
    /// The defaults: [`DEFAULT_HEADER_CAP`], and as many reading threads as seem useful.
    pub fn new() -> OpenOptions {
        OpenOptions { header_cap: DEFAULT_HEADER_CAP, read_threads: None, progress: None }
    }

    /// Accepts headers, and an index, of up to `bytes` bytes. A hostile header may cost about ten
    /// times its length in memory, so raise the cap for files you know.
    pub fn header_cap(&mut self, bytes: u32) -> &mut OpenOptions {
        self.header_cap = bytes;
        self
    }

    /// Reads with this many threads, headers and what is read instead of mapped. By default 4, or
    /// fewer on a machine with fewer cores; half as many for headers; and one for little.
    pub fn read_threads(&mut self, threads: NonZeroUsize) -> &mut OpenOptions {
        self.read_threads = Some(threads);
        self
    }

    /// Counts what was done into a [`Progress`], which can also cancel the call.
    pub fn progress(&mut self, progress: &Progress) -> &mut OpenOptions {
        self.progress = Some(progress.clone());
        self
    }

    /// How many threads to use for opening files, which falls into so many equal pieces: half as many
    /// as for reading, since much of it waits for the same locks of the kernel.
    pub(super) fn header_threads(&self, pieces: usize) -> usize {
        match self.read_threads {
            Some(_) => self.threads_for(pieces),
            None => self.threads_for(pieces).div_ceil(2),
        }
    }

    /// How many threads to use for work that falls into so many equal pieces.
    pub(super) fn threads_for(&self, pieces: usize) -> usize {
        const MOST: usize = 4;
        if pieces <= 1 {
            // To ask for the processors takes twenty calls to the system.
            return 1;
        }
        let wanted = self.read_threads.map_or_else(
            || std::thread::available_parallelism().map_or(1, usize::from).min(MOST),
            NonZeroUsize::get,
        );
        wanted.min(pieces)
    }
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}
