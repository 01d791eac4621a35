//! Which mapping does an address belong to, asked from within a signal handler?
//!
//! A handler may interrupt any line of the program, so it can wait for no lock and allocate
//! nothing. The registry is a table of atomics, and an entry is found by walking it: a fault is
//! rare and costs a system call anyway.
//!
//! ```text
//!   start   0: free   1: taken, not yet valid   else: the address of the first byte
//!   end     the address behind the last byte; valid while start is
//!   mark    the lowest poisoned offset, or none
//! ```
//!
//! Why no fault can be taken for that of another mapping: `end` is written between the two writes
//! of `start`, and read between two reads of it. If both reads agree, the two belong together. And
//! a fault in what came to the same addresses later cannot see an entry that is gone: it leaves
//! before its pages do, and they before others can come.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// How many mappings can be guarded at a time.
pub const PLACES: usize = 1024;

// No mapping begins at either address.
const FREE: usize = 0;
const TAKEN: usize = 1;

const UNHURT: usize = usize::MAX;

/// Zeros are mapped up to a multiple of this: one area for each lost page would soon be more areas
/// than a process may have (`vm.max_map_count`, 65,530 on most Linux machines).
const REACH: usize = 2 << 20;

/// How often one address may fault in a row, without a mapping that came in between: several threads
/// may touch one byte at a time. What faults for ever is not cured by zeros. (On Apple systems a store
/// into a read-only page is a SIGBUS too.)
const PATIENCE: usize = 10_000;

pub struct Registry {
    places: [Place; PLACES],
    last_fault: AtomicUsize,
    times: AtomicUsize,
}

/// A place in the registry, taken by one mapping at a time.
pub struct Place {
    start: AtomicUsize,
    end: AtomicUsize,
    mark: AtomicUsize,
}

impl Place {
    const fn free() -> Place {
        Place {
            start: AtomicUsize::new(FREE),
            end: AtomicUsize::new(0),
            mark: AtomicUsize::new(UNHURT),
        }
    }

    /// The lowest poisoned offset.
    #[inline]
    pub fn mark(&self) -> Option<usize> {
        let mark = self.mark.load(SeqCst);
        (mark != UNHURT).then_some(mark)
    }

    /// Gives the place back. The bytes must still be mapped.
    pub fn leave(&self) {
        self.start.store(FREE, SeqCst);
    }

    fn range(&self) -> Option<Range<usize>> {
        self.range_while(|| ())
    }

    /// The range that it holds, whatever is done meanwhile, by other threads or by a test.
    fn range_while(&self, meanwhile: impl FnOnce()) -> Option<Range<usize>> {
        let start = self.start.load(SeqCst);
        meanwhile();
        let end = self.end.load(SeqCst);
        let valid = start > TAKEN && self.start.load(SeqCst) == start;
        valid.then_some(start..end)
    }
}

impl Registry {
    pub const fn new() -> Registry {
        Registry {
            places: [const { Place::free() }; PLACES],
            last_fault: AtomicUsize::new(0),
            times: AtomicUsize::new(0),
        }
    }

    /// Enters `len` bytes at an address; `None` if there is no place left.
    pub fn enter(&self, start: usize, len: usize) -> Option<&Place> {
        let take =
            |place: &&Place| place.start.compare_exchange(FREE, TAKEN, SeqCst, SeqCst).is_ok();
        let place = self.places.iter().find(take)?;
        place.mark.store(UNHURT, SeqCst);
        place.end.store(start + len, SeqCst);
        place.start.store(start, SeqCst);
        self.times.store(0, SeqCst);
        Some(place)
    }

    /// If the address lies in a range: sets the mark, then has `map_zeros` replace the pages from
    /// the address on. Whether that was done. Called by the handler: no lock, no allocation, no
    /// panic.
    pub fn poison(
        &self,
        address: usize,
        page: usize,
        map_zeros: impl FnOnce(Range<usize>) -> bool,
    ) -> bool {
        for place in &self.places {
            if let Some(range) = place.range().filter(|range| range.contains(&address)) {
                if self.comes_back(address) {
                    return false;
                }
                let pages = lost(address, &range, page);
                // First the mark: who sees the zeros must see it.
                place.mark.fetch_min(pages.start - range.start, SeqCst);
                return map_zeros(pages);
            }
        }
        false
    }

    fn comes_back(&self, address: usize) -> bool {
        if self.last_fault.swap(address, SeqCst) != address {
            self.times.store(0, SeqCst);
        }
        self.times.fetch_add(1, SeqCst) >= PATIENCE
    }
}

/// The pages to replace: from the one that was touched, up to the next multiple of [`REACH`] or
/// behind the last page of the range. The page size is a power of two.
fn lost(address: usize, range: &Range<usize>, page: usize) -> Range<usize> {
    let round_down = |at: usize, unit: usize| at & !(unit - 1);
    let reach = round_down(address, REACH.max(page)).saturating_add(REACH.max(page));
    let behind = round_down(range.end.saturating_add(page - 1), page);
    round_down(address, page)..reach.min(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    fn poison(registry: &Registry, address: usize) -> Option<Range<usize>> {
        let mut replaced = None;
        let done = registry.poison(address, PAGE, |pages| {
            replaced = Some(pages);
            true
        });
        assert_eq!(done, replaced.is_some());
        replaced
    }

    #[test]
    fn zeros_reach_the_next_boundary_and_stay_within_the_range() {
        for (address, range, expected) in [
            (0x40_0000, 0x40_0000..0x90_0000, 0x40_0000..0x60_0000),
            (0x5f_ffff, 0x40_0000..0x90_0000, 0x5f_f000..0x60_0000),
            (0x60_0001, 0x40_1000..0x60_0002, 0x60_0000..0x60_1000),
            (0x40_2abc, 0x40_1000..0x40_5000, 0x40_2000..0x40_5000),
            (0x40_4fff, 0x40_1000..0x40_5000, 0x40_4000..0x40_5000),
        ] {
            assert_eq!(lost(address, &range, PAGE), expected, "{address:x} in {range:x?}");
        }
        let last = usize::MAX - 10;
        assert!(lost(last, &(last - PAGE..usize::MAX), PAGE).start <= last);
        assert_eq!(lost(0x40_0000, &(0..1 << 30), 4 << 20), 0x40_0000..0x80_0000);
    }

    #[test]
    fn a_fault_is_noted_for_the_range_it_lies_in() {
        let registry = Registry::new();
        let low = registry.enter(0x40_0000, 0x3000).unwrap();
        let high = registry.enter(0x40_3000, 10).unwrap();
        for outside in [0, 1, 0x3f_ffff, 0x40_300a, usize::MAX] {
            assert_eq!(poison(&registry, outside), None, "{outside:x}");
        }
        assert_eq!((low.mark(), high.mark()), (None, None));
        assert_eq!(poison(&registry, 0x40_3009), Some(0x40_3000..0x40_4000));
        assert_eq!((low.mark(), high.mark()), (None, Some(0)));
        // The lowest page counts, whatever the order.
        for (address, mark) in [(0x40_2fff, 0x2000), (0x40_1001, 0x1000), (0x40_2000, 0x1000)] {
            assert!(poison(&registry, address).is_some());
            assert_eq!(low.mark(), Some(mark), "{address:x}");
        }
        assert!(!registry.poison(0x40_0000, PAGE, |_| false), "zeros that could not be mapped");
    }

    #[test]
    fn a_place_is_used_again_and_remembers_nothing() {
        let registry = Registry::new();
        let places: Vec<&Place> =
            (0..PLACES).map(|number| registry.enter((number + 1) << 20, 1).unwrap()).collect();
        assert!(registry.enter(2 << 30, 1).is_none());
        assert!(poison(&registry, 8 << 20).is_some());
        places[7].leave();
        assert_eq!(poison(&registry, 8 << 20), None);
        let again = registry.enter(2 << 30, 1).unwrap();
        assert!(std::ptr::eq(again, places[7]));
        assert_eq!(again.mark(), None);
        assert!(registry.enter(3 << 30, 1).is_none());
    }

    #[test]
    fn what_faults_for_ever_is_handed_on_in_the_end() {
        let registry = Registry::new();
        registry.enter(0x40_0000, PAGE).unwrap();
        let cured = (0..=PATIENCE).take_while(|_| poison(&registry, 0x40_0001).is_some()).count();
        assert_eq!(cured, PATIENCE);
        assert!(poison(&registry, 0x40_0002).is_some(), "another address");
        assert!(poison(&registry, 0x40_0001).is_some(), "the same, but not in a row");
    }

    #[test]
    fn an_entry_that_changes_while_it_is_read_is_none() {
        let registry = Registry::new();
        let place = registry.enter(0x1000_0000, PAGE).unwrap();
        assert_eq!(place.range(), Some(0x1000_0000..0x1000_1000));
        assert_eq!(place.range_while(|| place.leave()), None);
        registry.enter(0x1000_0000, PAGE).unwrap();
        let replaced = place.range_while(|| {
            place.leave();
            registry.enter(0x3000_0000, PAGE).unwrap();
        });
        // What begins with the one and ends with the other would hold all between them.
        assert_eq!(replaced, None);
        // The same address again, and longer: the end must be of the one that is there.
        let longer = place.range_while(|| {
            place.leave();
            registry.enter(0x3000_0000, 3 * PAGE).unwrap();
        });
        assert_eq!(longer, Some(0x3000_0000..0x3000_3000));
    }
}
