//! What does a piece of work ask of the heap?
//!
//! A global allocator that passes everything on to the system's and, while it is told to, counts.
//! What it counts is the work's, with all threads of it: nothing else runs meanwhile.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

pub struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

static ON: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicUsize = AtomicUsize::new(0);
static ASKED: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// What one piece of work asked for.
pub struct Heap {
    /// Calls that gave memory: `alloc`, `alloc_zeroed`, `realloc`.
    pub calls: usize,
    /// Bytes of these calls together.
    pub asked: usize,
    /// The most bytes that were held at once.
    pub peak: usize,
    /// Bytes that the result holds.
    pub kept: usize,
}

/// Does the work once and counts up to where its result is there; the result is dropped after that.
pub fn heap<T>(work: impl FnOnce() -> T) -> Heap {
    for counter in [&CALLS, &ASKED, &LIVE, &PEAK] {
        counter.store(0, Relaxed);
    }
    ON.store(true, Relaxed);
    let result = black_box(work());
    ON.store(false, Relaxed);
    let heap = Heap {
        calls: CALLS.load(Relaxed),
        asked: ASKED.load(Relaxed),
        peak: PEAK.load(Relaxed),
        kept: LIVE.load(Relaxed),
    };
    drop(result);
    heap
}

fn gave(bytes: usize) {
    if ON.load(Relaxed) {
        CALLS.fetch_add(1, Relaxed);
        ASKED.fetch_add(bytes, Relaxed);
        let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
        PEAK.fetch_max(live, Relaxed);
    }
}

fn took(bytes: usize) {
    if ON.load(Relaxed) {
        // What was given before counting began may be taken back while it lasts.
        let _ = LIVE.fetch_update(Relaxed, Relaxed, |live| Some(live.saturating_sub(bytes)));
    }
}

// SAFETY: the system's allocator does all of it; counting touches none of the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        gave(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        gave(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may be held for a moment.
        gave(size);
        took(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        took(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(place, layout) }
    }
}
