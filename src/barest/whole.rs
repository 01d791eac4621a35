//! Are a shard's bytes still those that were opened?
//!
//! Two witnesses are asked: the descriptor that the shard holds, what the file looks like by now;
//! and the guard, whether zeros had to stand in for bytes of the mapping. Never the path: it may
//! lead to another file, and that is fine.

use super::bytes::Backing;
use super::error::{Error, ErrorKind, Result};
use super::seen::Seen;
use super::shard::Shard;

impl Shard {
    /// [`Model::still_whole`](super::Model::still_whole) of this file alone.
    pub fn still_whole(&self) -> Result<()> {
        match &self.source.seen {
            Some(seen) => self.still_looks(seen),
            None => Ok(()),
        }
    }

    /// The same since the file was seen so.
    pub(super) fn still_looks(&self, seen: &Seen) -> Result<()> {
        let looks = self.file().map_or(Ok(()), |file| seen.compare(file));
        let cut = match looks.as_ref().map_err(Error::kind) {
            // What stood behind a part of a larger file is none of the model's.
            Err(&ErrorKind::Shrank { found, .. })
                if *self.backing() == Backing::Mapped && found < self.model_end() =>
            {
                Some(found)
            }
            _ => None,
        };
        let lost = cut.into_iter().chain(self.lost_from()).min();
        lost.map_or(looks, |lost| Err(self.lost_at(lost))).map_err(|error| self.source.error(error))
    }

    /// The error for what was lost from an offset on, with the first tensor that it concerns.
    fn lost_at(&self, lost: u64) -> Error {
        let error = Error::at_file(self.truncated_at(lost), lost);
        let mut tensors = (0..self.header().len()).map(|number| self.header().info(number));
        match tensors.find(|tensor| tensor.file_range().end > lost) {
            Some(tensor) => error.in_tensor(tensor.name()),
            None => error,
        }
    }

    /// For after a loop over all bytes: whether they were the file's.
    pub(super) fn check_lost(&self) -> Result<()> {
        match self.lost_from() {
            None => Ok(()),
            Some(lost) => Err(self.source.error(self.lost_at(lost))),
        }
    }

    /// Where its last tensor ends, in bytes from the start of the file.
    fn model_end(&self) -> u64 {
        self.header().data_start() + self.header().data_len()
    }

    /// The poison mark, in bytes from the start of the file. Ask after reading.
    #[inline]
    pub(super) fn lost_from(&self) -> Option<u64> {
        self.mapping().poisoned().map(|lost| self.mapping_start() + lost as u64)
    }

    /// The kind of error for bytes of the file that were lost from an offset on.
    pub(super) fn truncated_at(&self, offset: u64) -> ErrorKind {
        let found = offset.saturating_sub(self.header().data_start());
        ErrorKind::Truncated { expected: self.header().data_len(), found, mapped: true }
    }
}
