//! How is memory given back for what is not used now?

use super::super::error::{Error, ErrorKind, Result};
use super::super::mapping::Mapping;
use super::super::sys::Advice;
use super::{PageCount, Pages, Run};
use std::io;

/// What dropping pages did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Eviction {
    /// The pages before.
    pub before: PageCount,
    /// The pages after. Those that are left belong to a neighbour as well, or another process has
    /// them mapped, or they are locked, or not on the disk yet.
    pub after: PageCount,
}

impl Pages {
    /// Drops the pages of mapped files: out of this process, and out of the page cache where nobody
    /// else holds them. No byte changes; touched again, a page is read again. A page that a part
    /// shares with a neighbour stays, and so does one that was written and is not on the disk yet:
    /// what a [`Writer`](super::super::Writer) has saved is.
    ///
    /// Fails with [`NotFileBacked`](ErrorKind::NotFileBacked) if any part was read instead of mapped:
    /// there is no file behind such pages, and dropping them would turn weights into zeros. Then
    /// nothing was dropped.
    pub fn evict(&self) -> Result<Eviction> {
        if let Some(run) = self.runs.iter().find(|run| !run.is_mapped()) {
            return Err(run.error(Error::new(ErrorKind::NotFileBacked)));
        }
        let before = self.count()?;
        for run in &self.runs {
            run.evict().map_err(|error| run.error(Error::io("drop pages", error)))?;
        }
        Ok(Eviction { before, after: self.count()? })
    }
}

impl Run {
    fn evict(&self) -> io::Result<()> {
        let Some(file) = self.shard.file() else { return Ok(()) };
        let (mapping, start, range) =
            (self.shard.mapping(), self.shard.mapping_start(), self.in_mapping());
        mapping.drop_pages(file, start, range.clone())?;
        // What is left may be part of a large folio, which Linux splits only for a process that has it
        // mapped. To map what is in memory costs no reading.
        let left = mapping.residency(range.clone())?;
        let page_size = Mapping::page_size();
        let mut mapped_again = false;
        for page in (0..).zip(left.iter()).filter_map(|(page, is_there)| is_there.then_some(page)) {
            let at = (left.first_page() + page) * page_size;
            let part = at.max(range.start)..(at + page_size).min(range.end);
            mapped_again |= mapping.advise(part, Advice::PopulateRead).is_ok();
        }
        match mapped_again {
            true => mapping.drop_pages(file, start, range),
            false => Ok(()),
        }
    }
}
