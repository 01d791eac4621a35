//! Which pages of a model are in memory, and who brings, keeps or drops them?
//!
//! ```text
//!   Pages      parts of a model's files, in the order in which they will be used
//!     │ count()      how many pages they are, how many of them are in memory
//!     │ prefetch()   brings them in, in that order, while somebody else works: Prefetcher
//!     │ lock()       brings them in and keeps them: Locked
//!     │ evict()      drops them; touched again, they are read again
//!     │ advise()     tells the kernel what to expect
//!   Model::memory()  what the model costs this process
//! ```
//!
//! Three numbers that are easily mixed up: the pages that are mapped (an address range, which costs
//! nothing), those in the page cache (read from the disk, shared by all processes), and those that
//! this process has touched (its resident set). A model may be mapped whole, cached by half, and cost
//! this process a page.

mod count;
mod evict;
mod lock;
mod memory;
mod pieces;
mod prefetch;

pub use count::PageCount;
pub use evict::Eviction;
pub use lock::Locked;
pub use memory::Memory;
pub use prefetch::Prefetcher;

use super::bytes::Backing;
use super::error::{Error, ErrorKind, Result};
use super::model::Model;
use super::scope::Scope;
use super::shard::Shard;
use super::sys::Advice;
use super::tensor::TensorView;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Parts of a model's files, in an order of use; keeps the files alive. Neighbours are joined.
#[derive(Clone, Default)]
pub struct Pages {
    runs: Vec<Run>,
}

/// A run of bytes of one file.
#[derive(Clone)]
struct Run {
    shard: Arc<Shard>,
    /// In bytes of the file.
    range: Range<u64>,
}

/// The size of a huge page on most machines.
const HUGE_PAGE: u64 = 2 << 20;

impl Model {
    /// All pages of the model, headers included, shard by shard in file order.
    pub fn pages(&self) -> Pages {
        let mut pages = Pages::default();
        for shard in self.handles() {
            let start = shard.header().model_start();
            pages.push(shard, start..start + shard.byte_len());
        }
        pages
    }

    /// The pages of these tensors, in the order in which they are given. Fails with
    /// [`NotFound`](ErrorKind::NotFound).
    pub fn pages_of<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Pages> {
        let mut pages = Pages::default();
        for name in names {
            pages.add(&self.tensor(name)?);
        }
        Ok(pages)
    }
}

impl Scope<'_> {
    /// The pages of all tensors below the prefix, shard by shard in file order.
    pub fn pages(&self) -> Pages {
        let mut pages = Pages::default();
        self.tensors().for_each(|tensor| pages.add(&tensor));
        pages
    }
}

impl TensorView<'_> {
    /// The pages that hold its data.
    pub fn pages(&self) -> Pages {
        let mut pages = Pages::default();
        pages.add(self);
        pages
    }
}

impl Pages {
    /// None yet.
    pub fn new() -> Pages {
        Pages::default()
    }

    /// Adds a tensor, to be used after what is there.
    pub fn add(&mut self, tensor: &TensorView<'_>) {
        self.push(tensor.shard, tensor.file_range());
    }

    /// Adds what other parts hold, to be used after what is there.
    pub fn extend(&mut self, others: Pages) {
        others.runs.into_iter().for_each(|run| self.push(&run.shard, run.range));
    }

    /// Bytes of all parts. What was added twice counts twice.
    pub fn byte_len(&self) -> u64 {
        self.runs.iter().map(Run::byte_len).sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Gives the kernel advice about all pages that the parts touch. No byte changes by it.
    ///
    /// Fails with [`Io`](ErrorKind::Io), of the kind [`io::ErrorKind::Unsupported`] if the system does
    /// not know the advice, or not for such pages ([`Advice::Cold`] for locked ones): nothing is lost
    /// but time.
    pub fn advise(&self, advice: Advice) -> Result<()> {
        self.runs.iter().try_for_each(|run| {
            let outcome = run.shard.mapping().advise(run.in_mapping(), advice);
            outcome.map_err(|error| run.error(Error::io("give advice", error)))
        })
    }

    /// The parts shard by shard in file order, each once: joined where they touch or overlap, once
    /// rounded outwards to `unit` bytes of memory. What is done in no order need not be done twice.
    fn joined(&self, unit: usize) -> Vec<Run> {
        let mut runs = self.runs.clone();
        runs.sort_unstable_by_key(|run| (Arc::as_ptr(&run.shard), run.range.start));
        let mut joined: Vec<Run> = Vec::new();
        for run in runs {
            match joined.last_mut() {
                Some(last) if last.reaches(&run, unit) => {
                    last.range.end = last.range.end.max(run.range.end);
                }
                _ => joined.push(run),
            }
        }
        joined
    }

    fn push(&mut self, shard: &Arc<Shard>, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some(last) = self.runs.last_mut() {
            if Arc::ptr_eq(&last.shard, shard) && last.range.end == range.start {
                last.range.end = range.end;
                return;
            }
        }
        self.runs.push(Run { shard: Arc::clone(shard), range });
    }
}

impl Debug for Pages {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Pages({} bytes in {} runs)", self.byte_len(), self.runs.len())
    }
}

impl Run {
    fn byte_len(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn in_mapping(&self) -> Range<usize> {
        self.shard.in_mapping(self.range.clone())
    }

    /// Whether a run that begins behind this one's start touches it, in whole units.
    fn reaches(&self, later: &Run, unit: usize) -> bool {
        let start = later.in_mapping().start;
        Arc::ptr_eq(&self.shard, &later.shard)
            && start - start % unit <= self.in_mapping().end.next_multiple_of(unit)
    }

    fn is_mapped(&self) -> bool {
        *self.shard.backing() == Backing::Mapped
    }

    /// Whether the last page of the header, which somebody has read, is one of its pages and there is
    /// room for a huge one.
    fn holds_end_of_header(&self) -> bool {
        let end = self.shard.header().data_start();
        self.byte_len() >= HUGE_PAGE && self.range.start <= end && end < self.range.end
    }

    /// Whether the file ends before the run does by now. Of a page that is lost in part the kernel says
    /// nothing: its end is zeros.
    fn is_cut(&self) -> bool {
        let file = self.shard.file().filter(|_| self.is_mapped());
        file.and_then(|file| file.metadata().ok()).is_some_and(|data| data.len() < self.range.end)
    }

    /// The error in this run's file.
    fn error(&self, error: Error) -> Error {
        self.shard.source.error(error)
    }

    /// The same, where the kernel met the end of the file before that of the run.
    fn cut_error(&self, action: &'static str, error: io::Error) -> Error {
        let len = self.shard.file().and_then(|file| file.metadata().ok()).map(|data| data.len());
        let end = self.shard.header().model_start() + self.shard.byte_len();
        self.error(match len {
            Some(found) if error.kind() == io::ErrorKind::UnexpectedEof && found < end => {
                Error::at_file(ErrorKind::Shrank { expected: end, found }, found)
            }
            _ => Error::io(action, error),
        })
    }
}
