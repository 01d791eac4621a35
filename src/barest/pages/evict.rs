//! How is memory given back for what is not used now?

use super::super::error::{Error, ErrorKind, Result};
use super::{PageCount, Pages};

/// What dropping pages did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Eviction {
    /// The pages before.
    pub before: PageCount,
    /// The pages after. Those that are left belong to a neighbour as well, or another process has
    /// them mapped, or they are locked or stand behind locked ones in the same part, or they are not on
    /// the disk yet.
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
        // Joined, so that a page in which two parts meet goes in whatever order they were given.
        for run in self.joined(1) {
            let Some(file) = run.shard.file() else { continue };
            let start = run.shard.mapping_start();
            let dropped = run.shard.mapping().drop_pages(file, start, run.in_mapping());
            dropped.map_err(|error| run.error(Error::io("drop pages", error)))?;
        }
        Ok(Eviction { before, after: self.count()? })
    }
}
