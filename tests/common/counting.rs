//! How much memory does a call take at once? Counted for each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: both functions pass on to the system's allocator what they were given; counting neither
// allocates nor panics. What grows is allocated anew and copied (the trait's own way), so that the
// peak counts both copies: the worst that an allocator can do.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE.set(LIVE.get() + layout.size() as isize);
        PEAK.set(PEAK.get().max(LIVE.get()));
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Debug)]
pub struct Cost {
    pub allocations: usize,
    /// Bytes on the heap at the worst moment, above those at the start.
    pub peak: usize,
}

/// What `work` cost on this thread.
pub fn cost<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let (allocations, live) = (ALLOCATIONS.get(), LIVE.get());
    PEAK.set(live);
    let outcome = work();
    let cost =
        Cost { allocations: ALLOCATIONS.get() - allocations, peak: (PEAK.get() - live) as usize };
    (outcome, cost)
}

/// The most bytes that `work` held at once beyond what was held before.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let (outcome, cost) = cost(work);
    (outcome, cost.peak)
}

/// How often `work` asked for memory.
pub fn allocations_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let (outcome, cost) = cost(work);
    (outcome, cost.allocations)
}
