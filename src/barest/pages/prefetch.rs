//! How are pages in memory before they are needed, in the order in which they are?
//!
//! ```text
//!   parts ──▶ pieces of 8 MiB, in the order of use ──▶ two threads take one after the other:
//!             │                                         is it there? else read it in, and map it
//!             └ a flag for each: whoever needs a tensor waits for its pieces, and not for all
//! ```
//!
//! Why not one call for all: `WILLNEED` over a whole file reads one read-ahead window and forgets the
//! rest; `POPULATE_READ` over a whole file tells nothing until it is through. Why huge pages: a fault
//! then brings 2 MiB instead of what the device reads ahead. Why the consumer waits instead of
//! touching the page itself: two who read the same piece in small steps are slower than one who reads
//! it in a large one.

use super::super::error::{Error, ErrorKind, Result};
use super::super::shard::Shard;
use super::super::sys::{self, Advice};
use super::super::tensor::TensorView;
use super::{Pages, Run};
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Brings pages in, on threads of its own. Dropping it cancels what is left and waits for the pieces
/// in work.
pub struct Prefetcher {
    work: Arc<Work>,
    helpers: Vec<JoinHandle<()>>,
}

/// What the helpers share with those who wait.
struct Work {
    /// At most [`PIECE`] bytes of one run each.
    pieces: Vec<Run>,
    /// The same, to be found by where they lie.
    places: Vec<Place>,
    next: AtomicUsize,
    bytes_done: AtomicU64,
    bytes_read: AtomicU64,
    cancelled: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// For each piece: is it done?
    ready: Vec<bool>,
    /// The first failure; it ends the work.
    failed: Option<Failure>,
    /// Helpers at work.
    working: usize,
}

/// Where a piece lies.
struct Place {
    /// The shard's address, and where in the file the piece begins.
    start: (usize, u64),
    /// Where the furthest piece ends of those in this shard that begin no later.
    reach: u64,
    piece: usize,
}

/// A failure, to be told to everyone who waits.
struct Failure {
    piece: usize,
    error: io::Error,
}

impl Failure {
    fn error(&self) -> io::Error {
        match self.error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => self.error.kind().into(),
        }
    }
}

/// A helper at work; whoever waits is told when the last of them goes, however it does.
struct AtWork(Arc<Work>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.lock().working -= 1;
        self.0.changed.notify_all();
    }
}

/// One step: large enough for any disk, small enough to wait for.
const PIECE: u64 = 8 << 20;

const HELPERS: usize = 2;

/// The size of a huge page on most machines; shorter runs have no use for one.
const HUGE_PAGE: u64 = 2 << 20;

/// More runs than these are no long ones, and each advised by itself is an area of its own to the
/// kernel, of which a process may not have many.
const MOST_ADVISED: usize = 256;

impl Pages {
    /// Starts to bring the pages in, in their order; returns at once. Parts that were read instead of
    /// mapped are there already, and pages in memory are left as they are.
    ///
    /// Fails with [`WouldNotFit`](ErrorKind::WouldNotFit) if the machine, or the control group of this
    /// process, has less memory left than the missing pages need: they would drive each other out.
    pub fn prefetch(&self) -> Result<Prefetcher> {
        if let Some(sys::Available { bytes: have, limit }) = sys::available_memory() {
            let need = self.missing()?;
            if need > have {
                return Err(Error::new(ErrorKind::WouldNotFit { need, have, limit }));
            }
        }
        self.prefetch_regardless()
    }

    /// Bytes of the pages of mapped files that are not in memory, or of which nobody tells.
    fn missing(&self) -> Result<u64> {
        let runs = self.joined(sys::page_size());
        let mapped = runs.iter().filter(|run| run.is_mapped());
        let count: super::PageCount = mapped.map(Run::count).sum::<Result<_>>()?;
        Ok((count.mapped - count.in_memory) as u64 * sys::page_size() as u64)
    }

    /// [`Pages::prefetch`] without asking whether there is room.
    pub fn prefetch_regardless(&self) -> Result<Prefetcher> {
        // Huge pages, once. Where there are none nothing is lost.
        let is_long = |run: &Run| run.is_mapped() && run.range.end - run.range.start >= HUGE_PAGE;
        for run in self.joined(1).into_iter().filter(is_long).take(MOST_ADVISED) {
            let _ = run.shard.mapping().advise(run.in_mapping(), Advice::HugePage);
        }
        let work = Arc::new(Work::new(self.pieces()));
        let mut prefetcher = Prefetcher { work, helpers: Vec::new() };
        for _ in 0..HELPERS.min(prefetcher.work.pieces.len()) {
            match prefetcher.start_helper() {
                Err(error) if prefetcher.helpers.is_empty() => {
                    return Err(Error::io("start a thread", error));
                }
                // One is slower than two, and enough.
                _ => {}
            }
        }
        Ok(prefetcher)
    }

    /// Pieces in the order of use, cut at multiples of their size, so that none cuts a huge page.
    fn pieces(&self) -> Vec<Run> {
        let mut pieces = Vec::new();
        for run in self.runs.iter().filter(|run| run.is_mapped()) {
            let mut start = run.range.start;
            while start < run.range.end {
                let end = run.range.end.min((start / PIECE + 1) * PIECE);
                pieces.push(Run { shard: Arc::clone(&run.shard), range: start..end });
                start = end;
            }
        }
        pieces
    }
}

impl Prefetcher {
    fn start_helper(&mut self) -> io::Result<()> {
        let work = Arc::clone(&self.work);
        work.lock().working += 1;
        let at_work = AtWork(work);
        let helper = std::thread::Builder::new().name("barest-prefetch".to_owned());
        self.helpers.push(helper.spawn(move || at_work.0.run())?);
        Ok(())
    }

    /// [`Pages::prefetch`].
    pub fn start(pages: &Pages) -> Result<Prefetcher> {
        pages.prefetch()
    }

    /// Waits until the data of a tensor is in memory. At once, if it is none of the pages.
    ///
    /// Fails with [`Shrank`](ErrorKind::Shrank) if its file has become shorter, with
    /// [`Io`](ErrorKind::Io) if a page cannot be read, and with [`Cancelled`](ErrorKind::Cancelled):
    /// the first failure ends all work.
    pub fn wait(&self, tensor: &TensorView<'_>) -> Result<()> {
        self.work.wait_for(self.work.pieces_of(tensor.shard, tensor.file_range()))
    }

    /// Waits until everything is in memory. Fails as [`Prefetcher::wait`] does.
    pub fn wait_all(&self) -> Result<()> {
        self.work.wait_for(0..self.work.pieces.len())
    }

    /// Bytes that are in memory now, and bytes of all parts.
    pub fn progress(&self) -> (u64, u64) {
        let len = |piece: &Run| piece.range.end - piece.range.start;
        let all = self.work.pieces.iter().map(len).sum();
        (self.work.bytes_done.load(Ordering::Relaxed), all)
    }

    /// Bytes of the pieces that were not whole in memory when their turn came. What was there already
    /// costs one question a piece.
    pub fn bytes_brought(&self) -> u64 {
        self.work.bytes_read.load(Ordering::Relaxed)
    }

    /// Ends the work after the pieces that are being read. Those who wait for others get
    /// [`Cancelled`](ErrorKind::Cancelled).
    pub fn cancel(&self) {
        // Under the lock, so that nobody goes to sleep between having looked and being woken.
        let state = self.work.lock();
        self.work.cancelled.store(true, Ordering::Relaxed);
        drop(state);
        self.work.changed.notify_all();
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        self.cancel();
        for helper in self.helpers.drain(..) {
            // A helper that panicked has said so; a drop has nothing to add.
            let _ = helper.join();
        }
    }
}

impl Debug for Prefetcher {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (done, all) = self.progress();
        write!(f, "Prefetcher({done} of {all} bytes)")
    }
}

fn places(pieces: &[Run]) -> Vec<Place> {
    let place = |(number, piece): (usize, &Run)| {
        let start = (Arc::as_ptr(&piece.shard).addr(), piece.range.start);
        Place { start, reach: piece.range.end, piece: number }
    };
    let mut places: Vec<Place> = pieces.iter().enumerate().map(place).collect();
    places.sort_unstable_by_key(|place| place.start);
    for at in 1..places.len() {
        if places[at].start.0 == places[at - 1].start.0 {
            places[at].reach = places[at].reach.max(places[at - 1].reach);
        }
    }
    places
}

impl Work {
    fn new(pieces: Vec<Run>) -> Work {
        let state = State { ready: vec![false; pieces.len()], ..State::default() };
        Work {
            places: places(&pieces),
            pieces,
            next: AtomicUsize::new(0),
            bytes_done: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// The pieces that a range of a shard overlaps: of those that begin before its end, the last ones.
    fn pieces_of(&self, shard: &Arc<Shard>, range: Range<u64>) -> impl Iterator<Item = usize> + '_ {
        let address = Arc::as_ptr(shard).addr();
        let begin = |place: &Place| !range.is_empty() && place.start < (address, range.end);
        let before = &self.places[..self.places.partition_point(begin)];
        let reaching = move |place: &&Place| place.start.0 == address && place.reach > range.start;
        let numbers = before.iter().rev().take_while(reaching).map(|place| place.piece);
        numbers.filter(move |&number| self.pieces[number].range.end > range.start)
    }

    /// A helper: takes one piece after the other.
    fn run(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let is_over = self.cancelled.load(Ordering::Relaxed) || self.lock().failed.is_some();
            let Some(piece) = self.pieces.get(number).filter(|_| !is_over) else { break };
            let outcome = self.bring_in(piece);
            let mut state = self.lock();
            match outcome {
                Ok(()) => {
                    state.ready[number] = true;
                    let bytes = piece.range.end - piece.range.start;
                    self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
                }
                Err(error) => {
                    state.failed.get_or_insert(Failure { piece: number, error });
                }
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    fn bring_in(&self, piece: &Run) -> io::Result<()> {
        let Some(file) = piece.shard.file() else { return Ok(()) };
        // To populate what is there costs what its faults cost, and its user may not need them all.
        let mapping = piece.shard.mapping();
        let residency = mapping.residency(piece.in_mapping());
        let is_told = sys::tells_residency(file);
        if !is_told || !residency.is_ok_and(|pages| pages.resident() == pages.pages()) {
            self.bytes_read.fetch_add(piece.range.end - piece.range.start, Ordering::Relaxed);
            mapping.bring_in(file, piece.shard.mapping_start(), piece.in_mapping())?;
        }
        match piece.is_cut() {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(()),
        }
    }

    fn wait_for(&self, pieces: impl Iterator<Item = usize>) -> Result<()> {
        let mut state = self.lock();
        for piece in pieces {
            while !state.ready[piece] {
                if let Some(failure) = &state.failed {
                    let run = &self.pieces[failure.piece];
                    return Err(run.cut_error("read pages in", failure.error()));
                }
                if self.cancelled.load(Ordering::Relaxed) || state.working == 0 {
                    return Err(Error::new(ErrorKind::Cancelled));
                }
                // A poisoned lock would mean a panic between two assignments: the state is whole.
                state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::model::Model;
    use super::*;

    #[test]
    fn the_pieces_of_a_range_are_those_that_overlap_it() {
        let header = br#"{"t":{"dtype":"U8","shape":[300],"data_offsets":[0,300]}}"#;
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 300]].concat();
        let models = [(); 3].map(|()| Model::from_bytes(&bytes).unwrap());
        let shards = models.each_ref().map(|model| &model.shared_shards()[0]);
        // Of two of the shards; some lie within others, and some are there twice.
        let mut pieces = Vec::new();
        for number in 0..60 {
            let (start, len) = (number * 37 % 101, 1 + number * number % 17);
            let end = if number % 20 == 0 { 300 } else { start + len };
            let shard = Arc::clone(shards[number as usize % 2]);
            pieces.push(Run { shard, range: start..end });
        }
        let work = Work::new(pieces);
        for (shard, start) in shards.iter().flat_map(|shard| (0..300).map(move |at| (shard, at))) {
            for end in [start, start + 1, start + 2, start + 40, 301] {
                let mut found: Vec<usize> = work.pieces_of(shard, start..end).collect();
                found.sort_unstable();
                let overlaps = |piece: &Run| {
                    Arc::ptr_eq(&piece.shard, shard)
                        && (start..end).any(|byte| piece.range.contains(&byte))
                };
                let all = work.pieces.iter().enumerate();
                let expected: Vec<usize> =
                    all.filter(|(_, piece)| overlaps(piece)).map(|(number, _)| number).collect();
                assert_eq!(found, expected, "{start}..{end}");
            }
        }
    }
}
