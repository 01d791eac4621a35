//! Where do a model's bytes live: in the file's own pages, or in a copy of ours?
//!
//! Either way they begin on a page boundary and keep the file's offsets, so that nothing to the
//! right of this module needs to know. A copy is protected once it is complete.

use super::error::{Error, ErrorKind, Result};
use super::mapping::{Buffer, LONGEST, Mapping, Mmap};
use super::sys::{self, Advice};
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Mutex;

/// How the bytes of a shard came to be in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Backing {
    /// The file's pages, mapped: nothing was copied.
    Mapped,
    /// Private memory that the file was read into.
    Read {
        /// Why it was not mapped.
        why: ReadReason,
    },
}

/// Why a model was read instead of mapped.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReadReason {
    /// `read` was called.
    Asked,
    /// `from_bytes` was called: there is no file.
    FromBytes,
    /// The system, or the file system, refused to map; this is what it said.
    Refused(String),
}

impl Display for Backing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Backing::Mapped => f.write_str("mapped"),
            Backing::Read { why: ReadReason::Asked } => f.write_str("read into memory"),
            Backing::Read { why: ReadReason::FromBytes } => f.write_str("copied from memory"),
            Backing::Read { why: ReadReason::Refused(message) } => {
                write!(f, "read into memory (not mapped: {message})")
            }
        }
    }
}

/// The bytes of one shard, from the file's first to its last.
#[derive(Debug)]
pub(super) struct Bytes {
    memory: Mmap,
    backing: Backing,
}

/// One request to the file: large enough for any disk, small enough to share among threads.
const PIECE: usize = 8 << 20;

const MOST_THREADS: usize = 4;

/// From here on huge pages are worth asking for: the size of one on most machines.
const HUGE_PAGE: usize = 2 << 20;

impl Bytes {
    pub(super) fn mapped(memory: Mmap) -> Bytes {
        Bytes { memory, backing: Backing::Mapped }
    }

    /// Reads the first `len` bytes of the file by positional reads, in file order, into memory of
    /// our own.
    pub(super) fn read(
        file: &File,
        len: u64,
        threads: Option<NonZeroUsize>,
        why: ReadReason,
    ) -> Result<Bytes> {
        if len > LONGEST {
            return Err(Error::new(ErrorKind::DoesNotFit { expected: LONGEST, found: len }));
        }
        let mut buffer = reserve(len as usize)?;
        fill(buffer.as_mut_slice(), file, threads)?;
        Bytes::sealed(buffer, why)
    }

    pub(super) fn copied(bytes: &[u8]) -> Result<Bytes> {
        let mut buffer = reserve(bytes.len())?;
        buffer.as_mut_slice().copy_from_slice(bytes);
        Bytes::sealed(buffer, ReadReason::FromBytes)
    }

    fn sealed(buffer: Buffer, why: ReadReason) -> Result<Bytes> {
        let memory = buffer.seal().map_err(|error| Error::io("protect the memory", error))?;
        Ok(Bytes { memory, backing: Backing::Read { why } })
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        self.memory.as_slice()
    }

    #[inline]
    pub(super) fn mapping(&self) -> &Mapping {
        self.memory.mapping()
    }

    pub(super) fn backing(&self) -> &Backing {
        &self.backing
    }
}

fn reserve(len: usize) -> Result<Buffer> {
    let buffer =
        Buffer::zeroed(len).map_err(|error| Error::io("reserve memory for the file", error))?;
    // Fewer faults while it is filled and fewer misses while it is used; where the system has no
    // huge pages nothing is lost.
    if len >= HUGE_PAGE {
        let _ = buffer.mapping().advise(0..len, Advice::HugePage);
    }
    Ok(buffer)
}

/// Fills the buffer from the file's start. The calling thread reads too, so that a system that
/// gives no more threads only makes it slower.
fn fill(buffer: &mut [u8], file: &File, threads: Option<NonZeroUsize>) -> Result<()> {
    let useful = buffer.len().div_ceil(PIECE);
    let wanted = threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS),
        NonZeroUsize::get,
    );
    let pieces = Mutex::new(buffer.chunks_mut(PIECE).enumerate());
    let work = || -> Result<()> {
        loop {
            // A poisoned lock would mean a panic in `next`: the pieces are intact all the same.
            let next = pieces.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            match next {
                None => return Ok(()),
                Some((number, piece)) => read_exact_at(file, piece, (number * PIECE) as u64)?,
            }
        }
    };
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..wanted.min(useful))
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut outcome = work();
        for helper in helpers {
            let theirs = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and(theirs);
        }
        outcome
    })
}

/// Fills a buffer from one position of a file, retrying what was interrupted. A file that ends
/// before the buffer does became shorter since its length was asked.
pub(super) fn read_exact_at(file: &File, mut buffer: &mut [u8], offset: u64) -> Result<()> {
    let mut at = offset;
    while !buffer.is_empty() {
        match sys::read_at(file, buffer, at) {
            Ok(0) => {
                let expected = at + buffer.len() as u64;
                return Err(Error::at_file(ErrorKind::Shrank { expected, found: at }, at));
            }
            Ok(count) => {
                buffer = &mut buffer[count..];
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read", error)),
        }
    }
    Ok(())
}
