//! What belongs to one file of a model, and where do its bytes lie in memory?
//!
//! Its header, proved; the open file; and its pages, mapped or read. Offsets are those of the file,
//! also where the model is a part of a larger one: where a byte lies in memory is known here alone.

use super::bytes::{Backing, Bytes};
use super::header::{Header, Metadata};
use super::index::ShardFile;
use super::mapping::Mapping;
use std::fmt::{self, Debug, Formatter};
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// One file of a model, with its bytes: what a [`ShardFile`] of an [`Index`](super::Index) is once it
/// is mapped or read. Tensors keep it alive; dropping the last of them, and the model, gives memory
/// and descriptor back.
pub struct Shard {
    pub(super) source: ShardFile,
    pub(super) bytes: Bytes,
}

impl Shard {
    /// The path it was opened by; `None` for bytes that came from no file.
    pub fn path(&self) -> Option<&Path> {
        self.source.path()
    }

    /// The open file, to which later questions are put; `None` for bytes that came from none.
    pub fn file(&self) -> Option<&File> {
        self.source.file()
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        self.source.header()
    }

    /// Its `__metadata__`; `None` if it is absent or `null`.
    pub fn metadata(&self) -> Option<Metadata<'_>> {
        self.source.metadata()
    }

    /// Whether its bytes are the file's own pages or a copy.
    pub fn backing(&self) -> &Backing {
        self.bytes.backing()
    }

    /// The pages, for advice and for asking which are in memory: [`Shard::in_mapping`] tells where in
    /// them a part of the file is.
    #[inline]
    pub fn mapping(&self) -> &Mapping {
        self.bytes.mapping()
    }

    /// Bytes of the shard, from the first of its header to the last of its data: those of the file,
    /// unless it is a part of a larger one.
    pub fn byte_len(&self) -> u64 {
        self.header().model_len()
    }

    /// Where in [`Shard::mapping`] a range of the file is, in bytes. The range must lie within the
    /// shard, as the ranges of its tensors do.
    pub fn in_mapping(&self, range: Range<u64>) -> Range<usize> {
        let lead = self.bytes.lead();
        let memory = self.in_memory(range);
        lead + memory.start..lead + memory.end
    }

    /// Where in the file the mapping begins: at a page boundary, or at the model's own start if it was
    /// read.
    pub(super) fn mapping_start(&self) -> u64 {
        self.header().model_start() - self.bytes.lead() as u64
    }

    /// The bytes of a range of the file that the header's proof covers.
    pub(super) fn slice(&self, range: Range<u64>) -> &[u8] {
        &self.bytes.as_slice()[self.in_memory(range)]
    }

    /// Where in its bytes a range of the file is.
    fn in_memory(&self, range: Range<u64>) -> Range<usize> {
        let start = self.header().model_start();
        (range.start - start) as usize..(range.end - start) as usize
    }
}

impl Debug for Shard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}
