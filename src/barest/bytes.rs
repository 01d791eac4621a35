//! Where do a model's bytes live: in the file's own pages, or in a copy of ours?
//!
//! Either way they begin on a page boundary and keep the file's offsets, so that nothing to the
//! right of this module needs to know. A copy is protected once it is complete.

use super::error::reserve::{vector, zeros};
use super::error::{Error, ErrorKind, Result};
use super::mapping::{Buffer, LONGEST, Mapping, Mmap};
use super::progress::Progress;
use super::sys::{self, Advice};
use super::workers::share;
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io;
use std::ops::Range;
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
    /// It lies on a file system of this name, from which files are better read.
    FileSystem(&'static str),
    /// The system, or the file system, refused to map; this is what it said.
    Refused(String),
}

impl Display for Backing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Backing::Mapped => f.write_str("mapped"),
            Backing::Read { why: ReadReason::Asked } => f.write_str("read into memory"),
            Backing::Read { why: ReadReason::FromBytes } => f.write_str("copied from memory"),
            Backing::Read { why: ReadReason::FileSystem(name) } => {
                write!(f, "read into memory (not mapped: it lies on {name})")
            }
            Backing::Read { why: ReadReason::Refused(message) } => {
                write!(f, "read into memory (not mapped: {message})")
            }
        }
    }
}

/// The bytes of one shard, from its first to its last.
#[derive(Debug)]
pub(super) struct Bytes {
    memory: Mmap,
    backing: Backing,
}

/// One request to the file: large enough for any disk, small enough to share among threads.
const PIECE: usize = 8 << 20;

/// From here on huge pages are worth asking for: the size of one on most machines.
const HUGE_PAGE: usize = 2 << 20;

impl Bytes {
    pub(super) fn mapped(memory: Mmap) -> Bytes {
        Bytes { memory, backing: Backing::Mapped }
    }

    /// Reads a range of the file by positional reads, in file order, into memory of our own. At most
    /// `threads` threads share the work.
    pub(super) fn read(
        file: &File,
        range: Range<u64>,
        threads: usize,
        progress: Option<&Progress>,
        why: ReadReason,
    ) -> Result<Bytes> {
        let len = range.end - range.start;
        if len > LONGEST {
            return Err(Error::new(ErrorKind::DoesNotFit { expected: LONGEST, found: len }));
        }
        let mut buffer = reserve(len as usize)?;
        fill(buffer.as_mut_slice(), file, range.start, threads, progress)?;
        Bytes::sealed(buffer, why)
    }

    /// How many threads could share the reading of so many bytes.
    pub(super) fn pieces(len: u64) -> usize {
        usize::try_from(len.div_ceil(PIECE as u64)).unwrap_or(usize::MAX)
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

    /// The pages, which begin [`lead`](Bytes::lead) bytes before the shard does.
    #[inline]
    pub(super) fn mapping(&self) -> &Mapping {
        self.memory.mapping()
    }

    pub(super) fn lead(&self) -> usize {
        self.memory.lead()
    }

    pub(super) fn backing(&self) -> &Backing {
        &self.backing
    }
}

fn reserve(len: usize) -> Result<Buffer> {
    const ACTION: &str = "reserve memory for the file";
    let buffer = Buffer::zeroed(len).map_err(|error| match sys::of_mappings(&error) {
        Some(sys::Limit { what, limit, advice }) => {
            Error::new(ErrorKind::Limit { action: ACTION, source: error, what, limit, advice })
        }
        None => Error::io(ACTION, error),
    })?;
    // Fewer faults while it is filled and fewer misses while it is used; where the system has no
    // huge pages nothing is lost.
    if len >= HUGE_PAGE {
        let _ = buffer.mapping().advise(0..len, Advice::HugePage);
    }
    Ok(buffer)
}

/// Fills the buffer from `start` of the file on.
fn fill(
    buffer: &mut [u8],
    file: &File,
    start: u64,
    threads: usize,
    progress: Option<&Progress>,
) -> Result<()> {
    let pieces = Mutex::new(buffer.chunks_mut(PIECE).enumerate());
    let work = || -> Result<()> {
        loop {
            // A poisoned lock would mean a panic in `next`: the pieces are intact all the same.
            let next = pieces.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            let Some((number, piece)) = next else { return Ok(()) };
            progress.map_or(Ok(()), Progress::check)?;
            read_exact_at(file, piece, start + (number * PIECE) as u64)?;
            if let Some(progress) = progress {
                progress.bytes_done(piece.len());
            }
        }
    };
    share(threads, work, || Ok(()))
}

/// Fills a buffer from one position of a file. A file that ends before the buffer does became shorter
/// since its length was asked.
pub(super) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<()> {
    read_all(file, buffer.len(), offset, |done| {
        sys::read_at(file, &mut buffer[done..], offset + done as u64)
    })
}

/// The next `len` bytes from one position of a file, in memory of their own; otherwise the same.
pub(super) fn read_new(file: &File, len: usize, offset: u64) -> Result<Vec<u8>> {
    let mut bytes = vector::<u8>(len)?;
    // For a process that opens its first model, a fault for every 4 KiB of a large header was much of
    // what that took.
    if len >= HUGE_PAGE {
        sys::prefer_huge_pages_for(bytes.spare_capacity_mut());
    }
    let above = (bytes.as_ptr().addr() as u64).wrapping_sub(offset) % ALIKE as u64;
    if len >= LONG && UNLUCKY.contains(&above) {
        append_by_buffer(file, &mut bytes, len, offset)?;
    } else {
        read_all(file, len, offset, |done| {
            sys::append_at(file, &mut bytes, len - done, offset + done as u64)
        })?;
    }
    Ok(bytes)
}

/// From here on it matters how memory lies to what is copied into it.
///
/// Kernels and C libraries copy much with one instruction, `rep movsb`, which takes many times as long
/// on some processors where the one address is a few bytes above the other, but for whole pages. Such a
/// pair is a header, 8 bytes into its file, and the memory that malloc maps for so many bytes, which
/// begins 16 bytes into a page. See `docs/WHY.md`.
const LONG: usize = 128 << 10;

/// How many bytes above is a few.
const UNLUCKY: Range<u64> = 1..64;

/// The distance at which two addresses look alike to such a processor: a page.
const ALIKE: usize = 4096;

/// The next `len` bytes, by way of a small buffer that does not lie like this.
fn append_by_buffer(file: &File, bytes: &mut Vec<u8>, len: usize, offset: u64) -> Result<()> {
    const BUFFER: usize = 32 << 10;
    // What no C library copies with that instruction.
    const PIECE: usize = 2 << 10;
    let mut memory = zeros::<u8>(BUFFER + 2 * ALIKE)?;
    // In a page, the buffer begins where the file's part does.
    let lead = memory.as_ptr().align_offset(ALIKE).min(ALIKE) + (offset % ALIKE as u64) as usize;
    let buffer = &mut memory[lead..][..BUFFER];
    read_all(file, len, offset, |done| {
        let next = &mut buffer[..BUFFER.min(len - done)];
        let count = sys::read_at(file, next, offset + done as u64)?;
        next[..count].chunks(PIECE).for_each(|piece| bytes.extend_from_slice(piece));
        Ok(count)
    })
}

/// Reads on until `len` bytes are there, and again what was interrupted. `read` is told how many are
/// there and gives how many came.
fn read_all(
    file: &File,
    len: usize,
    offset: u64,
    mut read: impl FnMut(usize) -> io::Result<usize>,
) -> Result<()> {
    let mut done = 0;
    while done < len {
        match read(done) {
            Ok(0) => {
                let (at, expected) = (offset + done as u64, offset + len as u64);
                let found = file.metadata().map_or(at, |metadata| metadata.len().min(at));
                return Err(Error::at_file(ErrorKind::Shrank { expected, found }, at));
            }
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read", error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_by_way_of_a_buffer_is_the_same() {
        let path = std::env::current_exe().unwrap();
        let (file, whole) = (File::open(&path).unwrap(), std::fs::read(&path).unwrap());
        for (start, len) in [(0, 0), (8, 1), (4095, 40_000), (5000, 32 << 10), (7, 200_001)] {
            let expected = &whole[start..start + len];
            let mut bytes = vec![1, 2];
            append_by_buffer(&file, &mut bytes, len, start as u64).unwrap();
            assert_eq!((&bytes[..2], &bytes[2..]), (&[1, 2][..], expected), "{start} {len}");
            assert_eq!(read_new(&file, len, start as u64).unwrap(), expected);
        }
    }

    #[test]
    fn what_comes_in_parts_is_read_on_and_what_is_interrupted_again() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let interrupted = || Err(io::ErrorKind::Interrupted.into());
        let answers = [interrupted(), Ok(3), interrupted(), interrupted(), Ok(1), Ok(0)];
        let (mut answers, mut asked) = (answers.into_iter(), Vec::new());
        let mut read = |done| {
            asked.push(done);
            answers.next().unwrap()
        };
        read_all(&file, 4, 0, &mut read).unwrap();
        // A file may call itself longer than what it gives.
        let error = read_all(&file, 4, 0, read).unwrap_err();
        assert_eq!(asked, [0, 0, 3, 3, 3, 0]);
        let ErrorKind::Shrank { expected: 4, found: 0 } = error.kind() else { panic!("{error}") };
    }

    /// From a file of the kernel's own, which gives a page at most for each request.
    #[cfg(target_os = "linux")]
    #[test]
    fn less_than_was_asked_for_comes_by_way_of_a_buffer_too() {
        const PATH: &str = "/proc/kallsyms";
        const LEN: usize = 100_000;
        let whole = std::fs::read(PATH).unwrap_or_default();
        if whole.len() < 2 * LEN {
            return super::super::skip::skip(PATH, "this kernel does not list its symbols");
        }
        let mut bytes = Vec::new();
        append_by_buffer(&File::open(PATH).unwrap(), &mut bytes, LEN, 5).unwrap();
        assert!(bytes == whole[5..][..LEN]);
    }

    #[test]
    fn a_file_that_ends_early_shrank_whichever_way_it_is_read() {
        let path = std::env::current_exe().unwrap();
        let file = File::open(&path).unwrap();
        let whole = file.metadata().unwrap().len();
        let (start, len) = (whole - 50_000, 150_000);
        let by_buffer = append_by_buffer(&file, &mut Vec::new(), len, start).unwrap_err();
        for error in [by_buffer, read_new(&file, len, start).unwrap_err()] {
            assert_eq!(error.offset(), Some(whole));
            let ErrorKind::Shrank { expected, found } = error.kind() else { panic!("{error}") };
            assert_eq!((*expected, *found), (start + 150_000, whole));
        }
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[test]
    fn much_is_read_into_huge_pages_and_little_is_not() {
        use sys::advised;
        if !advised::has_huge_pages() {
            return;
        }
        let path = std::env::temp_dir().join(format!("barest-huge-{}", std::process::id()));
        let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(8 << 20).unwrap();
        let [much, little] = [8 << 20, 1 << 20].map(|len| read_new(&file, len, 0).unwrap());
        let asked = advised::for_huge_pages();
        let is_asked = |bytes: &[u8]| {
            let middle = bytes.as_ptr().addr() + bytes.len() / 2;
            asked.iter().any(|range| range.contains(&middle))
        };
        assert!(is_asked(&much) && !is_asked(&little));
    }
}
