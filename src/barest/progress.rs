//! How far is a call that takes long, and how is it ended early?
//!
//! Counters that the working threads write and anyone may read: no callback runs inside the work,
//! so whoever shows progress does so at their own pace, from a thread of their own.

use super::error::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Watches, and can cancel, a call that was given a clone of it. One for each call.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    shards: Counter,
    bytes: Counter,
    cancelled: AtomicBool,
}

#[derive(Debug, Default)]
struct Counter {
    done: AtomicU64,
    all: AtomicU64,
}

impl Counter {
    fn get(&self) -> (u64, u64) {
        let done = self.done.load(Ordering::Relaxed);
        (done, self.all.load(Ordering::Relaxed))
    }
}

impl Progress {
    /// Nothing done, nothing to do.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Shards whose headers were read, and all of them; 0 until that is known.
    pub fn shards(&self) -> (u64, u64) {
        self.0.shards.get()
    }

    /// Bytes that were read into memory, and all of them; 0 while nothing is read but headers.
    pub fn bytes(&self) -> (u64, u64) {
        self.0.bytes.get()
    }

    /// Ends the call soon, with [`Cancelled`](ErrorKind::Cancelled): before the next header, or
    /// within the piece that each thread is reading.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn expect_shards(&self, count: usize) {
        self.0.shards.all.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn expect_bytes(&self, count: u64) {
        self.0.bytes.all.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn shard_done(&self) {
        self.0.shards.done.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn bytes_done(&self, count: usize) {
        self.0.bytes.done.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Fails if it was cancelled.
    pub(super) fn check(&self) -> Result<()> {
        match self.is_cancelled() {
            true => Err(Error::new(ErrorKind::Cancelled)),
            false => Ok(()),
        }
    }
}
