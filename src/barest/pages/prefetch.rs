//! How are pages in memory before they are needed, in the order in which they are?
//!
//! ```text
//!   parts ──▶ pieces of 4 MiB, in the order of use ──▶ a thread, later up to four, takes one after
//!             │                                         the other: is it there? else read it in, and
//!             │                                         map it
//!             └ a flag for each: whoever needs a tensor waits for its pieces, and not for all
//! ```
//!
//! Why the threads join one by one: pieces that are read at the same time share the disk, and each of
//! them comes later than it would alone. What is needed first is not to wait for what is needed last.
//! Why not one call for all: `WILLNEED` over a whole file reads one read-ahead window and forgets the
//! rest; `POPULATE_READ` over a whole file tells nothing until it is through. Why huge pages: a fault
//! then brings 2 MiB instead of what the device reads ahead. Why the consumer waits instead of
//! touching the page itself: two who read the same piece in small steps are slower than one who reads
//! it in a large one.

use super::super::error::{Error, ErrorKind, Result};
use super::super::sys::{self, Advice};
use super::super::tensor::TensorView;
use super::pieces::Pieces;
use super::{HUGE_PAGE, Pages, Run};
use std::fmt::{self, Debug, Formatter};
use std::io;
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
    pieces: Pieces,
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
    /// Pieces that helpers are through with.
    finished: usize,
    /// Helpers that have not gone,
    working: usize,
    /// and those of them who have not joined yet.
    idle: usize,
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

/// So many steps are asked of the disk at a time; they wait, and take no processor.
const HELPERS: usize = 4;

/// Of the piece in which the header ends, less than this is there by having read the header, and what
/// was read ahead of it: small pages, in whose place there can be no huge one, and from which the
/// kernel goes on in steps as small. They are read again with the rest of the piece.
const FEW: f64 = 1.0 / 2.0;

/// More runs than these are no long ones, and each advised by itself is an area of its own to the
/// kernel, of which a process may not have many.
const MOST_ADVISED: usize = 256;

impl Pages {
    /// Starts to bring the pages in, in their order; returns at once. Parts that were read instead of
    /// mapped are there already, and pages in memory are left as they are, but for a few that reading
    /// the header has brought: they are read again, in huge ones. Where all of a part is in
    /// the page cache at the start, pages that another process is still reading in count as there.
    ///
    /// Fails with [`WouldNotFit`](ErrorKind::WouldNotFit) if the machine, or the control group of this
    /// process, has less memory left than the missing pages need: they would drive each other out.
    pub fn prefetch(&self) -> Result<Prefetcher> {
        if let Some(sys::Available { bytes: have, limit }) = sys::available_memory() {
            // To ask for each page takes time; where all of them would fit it is not needed.
            let page_size = sys::page_size() as u64;
            let mapped = self.runs.iter().filter(|run| run.is_mapped());
            let most: u64 = mapped.map(|run| run.range.end - run.range.start + 2 * page_size).sum();
            if most > have {
                let need = self.missing()?;
                if need > have {
                    return Err(Error::new(ErrorKind::WouldNotFit { need, have, limit }));
                }
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
        let work = Arc::new(Work::new(Pieces::of(&self.runs)));
        let mut prefetcher = Prefetcher { work, helpers: Vec::new() };
        for _ in 0..HELPERS.min(prefetcher.work.pieces.missing()) {
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
}

impl Prefetcher {
    fn start_helper(&mut self) -> io::Result<()> {
        let (work, number) = (Arc::clone(&self.work), self.helpers.len());
        work.lock().working += 1;
        let at_work = AtWork(work);
        let helper = std::thread::Builder::new().name("barest-prefetch".to_owned());
        self.helpers.push(helper.spawn(move || at_work.0.run(number))?);
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
        self.work.wait_for(self.work.pieces.holding(tensor.shard, tensor.file_range()))
    }

    /// Waits until everything is in memory. Fails as [`Prefetcher::wait`] does.
    pub fn wait_all(&self) -> Result<()> {
        self.work.wait_for(0..self.work.pieces.len())
    }

    /// Bytes that are in memory now, and bytes of all parts.
    pub fn progress(&self) -> (u64, u64) {
        (self.work.bytes_done.load(Ordering::Relaxed), self.work.pieces.byte_len())
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

impl Work {
    fn new(pieces: Pieces) -> Work {
        let ready: Vec<bool> = (0..pieces.len()).map(|piece| pieces.is_there(piece)).collect();
        let there = (0..pieces.len()).filter(|&piece| ready[piece]);
        let done = there.filter_map(|piece| pieces.get(piece)).map(Run::byte_len).sum();
        Work {
            pieces,
            next: AtomicUsize::new(0),
            bytes_done: AtomicU64::new(done),
            bytes_read: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            state: Mutex::new(State { ready, ..State::default() }),
            changed: Condvar::new(),
        }
    }

    /// A helper: joins when it is its turn, and takes one piece after the other.
    fn run(&self, helper: usize) {
        let mut state = self.lock();
        state.idle += 1;
        while !self.may_join(helper, &state) {
            state = self.wait_for_change(state);
        }
        state.idle -= 1;
        drop(state);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let is_over = self.is_over(&self.lock());
            let Some(piece) = self.pieces.get(number).filter(|_| !is_over) else { break };
            if self.pieces.is_there(number) {
                continue;
            }
            let outcome = self.bring_in(piece);
            let mut state = self.lock();
            state.finished += 1;
            match outcome {
                Ok(()) => {
                    state.ready[number] = true;
                    self.bytes_done.fetch_add(piece.byte_len(), Ordering::Relaxed);
                }
                Err(error) => {
                    state.failed.get_or_insert(Failure { piece: number, error });
                }
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Another helper joins for each piece that is there; or when nobody else is left to work, or
    /// nothing to do.
    fn may_join(&self, helper: usize, state: &State) -> bool {
        state.finished >= helper || state.idle == state.working || self.is_over(state)
    }

    fn is_over(&self, state: &State) -> bool {
        self.cancelled.load(Ordering::Relaxed) || state.failed.is_some()
    }

    fn bring_in(&self, piece: &Run) -> io::Result<()> {
        let Some(file) = piece.shard.file() else { return Ok(()) };
        // To populate what is there costs what its faults cost, and its user may not need them all.
        let mapping = piece.shard.mapping();
        let residency = mapping.residency(piece.in_mapping());
        let told = residency.ok().filter(|_| sys::tells_residency(file));
        let part_there = told.map(|pages| pages.resident() as f64 / pages.pages() as f64);
        if part_there != Some(1.0) {
            self.bytes_read.fetch_add(piece.byte_len(), Ordering::Relaxed);
            if piece.holds_end_of_header() && part_there.is_some_and(|part| part < FEW) {
                let start = piece.range.start - piece.range.start % sys::page_size() as u64;
                sys::drop_unmapped(file, start, piece.range.end - start);
            }
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
                    let run = self.pieces.get(failure.piece).expect("it was taken from them");
                    return Err(run.cut_error("read pages in", failure.error()));
                }
                if self.cancelled.load(Ordering::Relaxed) || state.working == 0 {
                    return Err(Error::new(ErrorKind::Cancelled));
                }
                state = self.wait_for_change(state);
            }
        }
        Ok(())
    }

    // A poisoned lock would mean a panic between two assignments: the state is whole.

    fn wait_for_change<'w>(&self, state: MutexGuard<'w, State>) -> MutexGuard<'w, State> {
        self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::model::Model;
    use super::*;

    /// Work of so many pieces, which are in memory: to bring one in takes no time.
    fn work(pieces: usize) -> Work {
        let header = br#"{"t":{"dtype":"U8","shape":[300],"data_offsets":[0,300]}}"#;
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 300]].concat();
        let model = Model::from_bytes(&bytes).unwrap();
        let piece = |at: usize| Run {
            shard: Arc::clone(model.handles().first().unwrap()),
            range: at as u64..at as u64 + 1,
        };
        Work::new(Pieces::new((0..pieces).map(piece).collect(), vec![false; pieces]))
    }

    #[test]
    fn the_first_helper_is_alone_with_the_disk_and_each_piece_brings_another() {
        let work = work(0);
        let joined = |finished| {
            let state = State { finished, working: HELPERS, ..State::default() };
            (0..HELPERS).filter(|&helper| work.may_join(helper, &state)).count()
        };
        let all: Vec<usize> = (0..6).map(joined).collect();
        assert_eq!(all, [1, 2, 3, 4, 4, 4]);
    }

    #[test]
    fn nobody_waits_to_join_who_is_not_needed_or_is_the_last() {
        // The first does all of the work; the others, whose turn never comes, go with it.
        let few = work(3);
        few.lock().working = HELPERS;
        std::thread::scope(|scope| {
            for helper in 0..HELPERS {
                let few = &few;
                scope.spawn(move || {
                    few.run(helper);
                    few.lock().working -= 1;
                    few.changed.notify_all();
                });
            }
        });
        assert_eq!(few.lock().ready, [true; 3]);

        // The first is gone, as after a panic: the last does it.
        let left = work(3);
        left.lock().working = 1;
        left.run(HELPERS - 1);
        assert_eq!(left.lock().ready, [true; 3]);

        // Cancelled before its turn.
        let cancelled = work(3);
        cancelled.lock().working = 2;
        cancelled.cancelled.store(true, Ordering::Relaxed);
        cancelled.run(1);
        assert_eq!(cancelled.lock().ready, [false; 3]);
    }
}
