//! What belongs to one file of a model?
//!
//! Its header, proved; its bytes; and the open file itself, which later questions (is it still the
//! same? drop its pages) are put to, never to the path: that may lead to another file by now.

use super::bytes::{Backing, Bytes};
use super::escape::Shown;
use super::header::{Header, Metadata};
use super::mapping::Mapping;
use super::seen::Seen;
use std::fmt::{self, Debug, Formatter};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One file of a model. Tensors keep it alive; dropping the last of them, and the model, gives
/// memory and descriptor back.
pub struct Shard {
    pub(super) path: Option<PathBuf>,
    pub(super) file: Option<File>,
    /// What the file looked like before anything of it was read.
    pub(super) seen: Option<Seen>,
    pub(super) header: Header,
    pub(super) bytes: Bytes,
}

impl Shard {
    /// The path it was opened by; `None` for bytes that came from no file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The open file; `None` for bytes that came from none.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its `__metadata__`; `None` if it is absent or `null`.
    pub fn metadata(&self) -> Option<Metadata<'_>> {
        self.header.metadata()
    }

    /// Whether its bytes are the file's own pages or a copy.
    pub fn backing(&self) -> &Backing {
        self.bytes.backing()
    }

    /// The pages, for advice and for asking which are in memory. Offsets are those of the file.
    #[inline]
    pub fn mapping(&self) -> &Mapping {
        self.bytes.mapping()
    }

    /// Bytes of the file.
    pub fn file_len(&self) -> u64 {
        self.header.data_start() + self.header.data_len()
    }

    /// The bytes of a range of the file that the header's proof covers.
    pub(super) fn slice(&self, range: Range<u64>) -> &[u8] {
        &self.bytes.as_slice()[range.start as usize..range.end as usize]
    }
}

impl Debug for Shard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => {
                let path = path.to_string_lossy();
                write!(f, "Shard({}, {:?})", Shown(&path), self.header)
            }
            None => write!(f, "Shard({:?})", self.header),
        }
    }
}
