//! What can be chosen when a model is opened?
//!
//! Little, on purpose. There is no lenient mode: a file that breaks the format breaks it for
//! everyone.

use super::header::DEFAULT_HEADER_CAP;
use std::num::NonZeroUsize;

/// Choices for opening a model, in the manner of `std::fs::OpenOptions`: make one, change it, and
/// end with `open`, `map`, `read` or `from_bytes`.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(super) header_cap: u32,
    pub(super) read_threads: Option<NonZeroUsize>,
}

impl OpenOptions {
    /// The defaults: [`DEFAULT_HEADER_CAP`], and as many reading threads as seem useful.
    pub fn new() -> OpenOptions {
        OpenOptions { header_cap: DEFAULT_HEADER_CAP, read_threads: None }
    }

    /// Accepts headers of up to `bytes` bytes. A hostile header may cost about ten times its
    /// length in memory, so raise the cap for files you know.
    pub fn header_cap(&mut self, bytes: u32) -> &mut OpenOptions {
        self.header_cap = bytes;
        self
    }

    /// Reads with this many threads where a file is read instead of mapped. By default 4, or fewer
    /// on a machine with fewer cores, and one for a small file.
    pub fn read_threads(&mut self, threads: NonZeroUsize) -> &mut OpenOptions {
        self.read_threads = Some(threads);
        self
    }
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}
