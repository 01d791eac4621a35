//! How many pages are that, and how many of them are in memory?

use super::super::error::{Error, Result};
use super::super::sys;
use super::{Pages, Run};

/// Pages, counted. A snapshot: the kernel may drop or bring any page meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PageCount {
    /// Pages that the parts touch.
    pub mapped: usize,
    /// Those of them that are in memory: of a mapped file in the page cache, whoever brought them
    /// there; of a file that was read, in this process.
    pub in_memory: usize,
    /// Those of which the kernel does not tell. Linux tells only the file's owner and those who may
    /// write it; of others' files it says that every page is there, so they are counted here instead.
    pub untold: usize,
}

impl Pages {
    /// Counts the pages that the parts touch, each once. Faults none of them in.
    ///
    /// Fails with [`Io`](super::super::ErrorKind::Io) where the system has no such question.
    pub fn count(&self) -> Result<PageCount> {
        self.joined(sys::page_size()).iter().map(Run::count).sum()
    }
}

impl Run {
    pub(super) fn count(&self) -> Result<PageCount> {
        let residency = self.shard.mapping().residency(self.in_mapping());
        let residency = residency
            .map_err(|error| self.error(Error::io("ask which pages are in memory", error)))?;
        let mapped = residency.pages();
        // Pages of our own are no secret.
        let tells = !self.is_mapped() || self.shard.file().is_some_and(sys::tells_residency);
        Ok(match tells {
            true => PageCount { mapped, in_memory: residency.resident(), untold: 0 },
            false => PageCount { mapped, in_memory: 0, untold: mapped },
        })
    }

    /// Whether all of its pages are in the page cache, or being read into it; false also if nobody
    /// tells. Quicker than to count them.
    pub(super) fn is_cached(&self) -> bool {
        let page_size = sys::page_size() as u64;
        let start = self.range.start - self.range.start % page_size;
        let pages = (self.range.end - start).div_ceil(page_size);
        let Some(file) = self.shard.file().filter(|file| sys::tells_residency(file)) else {
            return false;
        };
        let cached = sys::cached_pages(file, start, self.range.end - start);
        cached.is_some_and(|cached| cached >= pages)
    }
}

impl std::ops::Add for PageCount {
    type Output = PageCount;

    fn add(self, other: PageCount) -> PageCount {
        PageCount {
            mapped: self.mapped + other.mapped,
            in_memory: self.in_memory + other.in_memory,
            untold: self.untold + other.untold,
        }
    }
}

impl std::iter::Sum for PageCount {
    fn sum<I: Iterator<Item = PageCount>>(counts: I) -> PageCount {
        counts.fold(PageCount::default(), |sum, count| sum + count)
    }
}
