//! How does a page stay in memory whatever else the machine does?

use super::super::error::{Error, ErrorKind, Result};
use super::super::sys;
use super::{Pages, Run};
use std::fmt::{self, Debug, Formatter};

/// Pages that are kept in memory until this is dropped. Locks do not nest: where two of them hold a
/// page, the first that is dropped lets it go.
pub struct Locked {
    runs: Vec<Run>,
}

impl Pages {
    /// Reads the pages in, which may take as long as reading the parts, and keeps them in memory until
    /// what is returned is dropped.
    ///
    /// Fails with [`Limit`](ErrorKind::Limit) if this process may not lock so much, with
    /// [`Shrank`](ErrorKind::Shrank) if the file has become shorter, and with [`Io`](ErrorKind::Io).
    /// Then nothing is locked.
    pub fn lock(&self) -> Result<Locked> {
        let mut locked = Locked { runs: Vec::new() };
        for run in self.joined(sys::page_size()) {
            if let Err(error) = run.shard.mapping().lock(run.in_mapping()) {
                return Err(lock_error(&run, error));
            }
            locked.runs.push(run);
        }
        if let Some(run) = locked.runs.iter().find(|run| run.is_cut()) {
            return Err(run.cut_error("lock pages", std::io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(locked)
    }
}

fn lock_error(run: &Run, error: std::io::Error) -> Error {
    // Pages behind the end of the file are refused like those behind the limit.
    let shrank = run.cut_error("lock pages", std::io::ErrorKind::UnexpectedEof.into());
    if matches!(shrank.kind(), ErrorKind::Shrank { .. }) {
        return shrank;
    }
    let action = "lock pages";
    let (range, page_size) = (run.in_mapping(), sys::page_size());
    let bytes = range.end.next_multiple_of(page_size) - range.start / page_size * page_size;
    run.error(match sys::of_locked_memory(&error, bytes as u64) {
        Some(sys::Limit { what, limit, advice }) => {
            Error::new(ErrorKind::Limit { action, source: error, what, limit, advice })
        }
        None => Error::io(action, error),
    })
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.runs.iter().for_each(|run| run.shard.mapping().unlock(run.in_mapping()));
    }
}

impl Debug for Locked {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let bytes: u64 = self.runs.iter().map(Run::byte_len).sum();
        write!(f, "Locked({bytes} bytes)")
    }
}
