//! How does a file become a proved header?
//!
//! 1. open the path, without blocking, and see that it is a file
//! 2. read 8 bytes, and as many more as they say: the private copy of the header
//! 3. prove the header against the length of the file, or of its part
//!
//! Headers of many shards are read by a few threads.

use super::super::bytes::read_exact_at;
use super::super::error::reserve::{no_memory, vector, zeros};
use super::super::error::{Error, ErrorKind, Result};
use super::super::escape::Shown;
use super::super::header::{self, Header, Metadata, PREFIX};
use super::super::looks_like;
use super::super::options::OpenOptions;
use super::super::progress::Progress;
use super::super::seen::Seen;
use super::super::sys;
use super::super::workers::share;
use std::fmt::{self, Debug, Formatter};
use std::fs::{File, Metadata as FileMetadata};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// One file of a model whose header was read and proved, and nothing else of it.
pub struct ShardFile {
    pub(in super::super) path: Option<PathBuf>,
    pub(in super::super) file: Option<File>,
    /// What the file looked like before anything of it was read.
    pub(in super::super) seen: Option<Seen>,
    pub(in super::super) header: Header,
}

impl ShardFile {
    /// The path it was opened by; `None` for bytes that came from no file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The open file; `None` for bytes that came from none. Later questions (is it still the same?
    /// drop its pages) are put to it, never to the path: that may lead to another file by now.
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

    /// The error in this file, if it is one.
    pub(in super::super) fn error(&self, error: Error) -> Error {
        match &self.path {
            Some(path) => error.in_file(path),
            None => error,
        }
    }
}

impl Debug for ShardFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let path = self.path.as_deref().unwrap_or(Path::new("")).to_string_lossy();
        write!(f, "ShardFile({}, {:?})", Shown(&path), self.header)
    }
}

/// What a path leads to.
pub enum Opened {
    /// A regular file, and what the system tells of it.
    File(File, FileMetadata),
    Directory,
}

/// Opens a path, without waiting for a FIFO's other end.
pub fn open(path: &Path) -> Result<Opened> {
    let file = match sys::open(path) {
        Ok(file) => file,
        Err(error) => {
            // A socket cannot even be opened, and on some systems a directory neither; say what it
            // is rather than ENXIO.
            return match std::fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() => Ok(Opened::Directory),
                Ok(metadata) if !metadata.is_file() => Err(not_a_file(&metadata)),
                _ => Err(open_error(path, error)),
            };
        }
    };
    let metadata = file.metadata().map_err(|error| Error::io("ask for the length", error))?;
    match () {
        _ if metadata.is_file() => Ok(Opened::File(file, metadata)),
        _ if metadata.is_dir() => Ok(Opened::Directory),
        _ => Err(not_a_file(&metadata)),
    }
}

/// Opens a regular file.
pub fn open_file(path: &Path) -> Result<(File, FileMetadata)> {
    match open(path)? {
        Opened::File(file, metadata) => Ok((file, metadata)),
        Opened::Directory => Err(Error::new(ErrorKind::NotAFile { found: "a directory" })),
    }
}

fn not_a_file(metadata: &FileMetadata) -> Error {
    let kind = metadata.file_type();
    #[cfg(unix)]
    let special = {
        use std::os::unix::fs::FileTypeExt;
        match () {
            _ if kind.is_fifo() => Some("a FIFO (named pipe)"),
            _ if kind.is_socket() => Some("a socket"),
            _ if kind.is_char_device() => Some("a character device"),
            _ if kind.is_block_device() => Some("a block device"),
            _ => None,
        }
    };
    #[cfg(not(unix))]
    let special = None;
    let found = match special {
        Some(special) => special,
        None if kind.is_dir() => "a directory",
        None => "something else",
    };
    Error::new(ErrorKind::NotAFile { found })
}

/// Says which limit was reached, or where a link was meant to lead.
fn open_error(path: &Path, error: io::Error) -> Error {
    if let Some(sys::Limit { what, limit, advice }) = sys::of_open_files(&error) {
        return Error::new(ErrorKind::Limit { action: "open", source: error, what, limit, advice });
    }
    match dangling(path, &error) {
        Some(target) => Error::new(ErrorKind::DanglingLink { target }),
        None => Error::io("open", error),
    }
}

/// Where the symbolic link at a path that cannot be found leads; `None` if there is no link.
pub fn dangling(path: &Path, error: &io::Error) -> Option<PathBuf> {
    match error.kind() {
        io::ErrorKind::NotFound => std::fs::read_link(path).ok(),
        _ => None,
    }
}

/// Reads and proves the header of a model that is `range` of a file.
fn read_header(file: &File, range: &Range<u64>, cap: u32) -> Result<Header> {
    let (start, len) = (range.start, range.end - range.start);
    let mut prefix = [0; PREFIX];
    let prefix = &mut prefix[..len.min(PREFIX as u64) as usize];
    read_exact_at(file, prefix, start)?;
    let header_len = match header::header_len(prefix, len, cap) {
        Ok(header_len) => header_len,
        Err(refused) => {
            let mut first = vec![0; len.min(looks_like::ENOUGH as u64) as usize];
            read_exact_at(file, &mut first, start)?;
            return Err(header::or_foreign(refused, &first).moved_by(start));
        }
    };
    let mut copy = zeros(header_len)?;
    read_exact_at(file, &mut copy, start + PREFIX as u64)?;
    let header = Header::from_copy(copy, Some(len)).map_err(|error| error.moved_by(start))?;
    Ok(header.moved_to(start))
}

/// Proves the header of a model that is a part of an open file.
pub fn read_part(
    path: &Path,
    file: File,
    metadata: &FileMetadata,
    range: Range<u64>,
    options: &OpenOptions,
) -> Result<ShardFile> {
    let seen = Some(Seen::of(metadata));
    let header = read_header(&file, &range, options.header_cap)?;
    Ok(ShardFile { path: Some(path.to_owned()), file: Some(file), seen, header })
}

/// Opens a file and proves its header. Errors name the path.
pub fn read(path: &Path, options: &OpenOptions) -> Result<ShardFile> {
    let steps = || {
        let (file, metadata) = open_file(path)?;
        read_part(path, file, &metadata, 0..metadata.len(), options)
    };
    steps().map_err(|error: Error| error.in_file(path))
}

/// Those of a number of files that could be opened, in their order. What could not leaves nothing
/// behind: an index can name millions of files that are not there.
#[derive(Default)]
pub struct Found {
    pub files: Vec<ShardFile>,
    /// Of each, its number among all.
    pub numbers: Vec<u32>,
}

impl Found {
    /// The place in `files` of a file by its number.
    pub fn place(&self, number: u32) -> Option<usize> {
        // Mostly all are there.
        match self.numbers.get(number as usize) == Some(&number) {
            true => Some(number as usize),
            false => self.numbers.binary_search(&number).ok(),
        }
    }

    fn push(&mut self, number: usize, file: ShardFile) -> Result<()> {
        self.files.try_reserve(1).map_err(|_| no_memory())?;
        self.numbers.try_reserve(1).map_err(|_| no_memory())?;
        self.files.push(file);
        self.numbers.push(number as u32);
        Ok(())
    }
}

/// Opens so many files and proves their headers, by a few threads; hands what is wrong with the
/// others to `fault`, in the order of the files. Cancelling, and a limit of this process, which the
/// rest would reach as well, end it.
pub fn read_all(
    count: usize,
    path: impl Fn(usize) -> PathBuf + Sync,
    options: &OpenOptions,
    mut fault: impl FnMut(usize, Error) -> Result<()>,
) -> Result<Found> {
    // Few models have more files, and that many outcomes take no memory worth mentioning.
    const AT_ONCE: usize = 1024;
    if let Some(progress) = &options.progress {
        progress.expect_shards(count);
    }
    let mut found = Found::default();
    for start in (0..count).step_by(AT_ONCE) {
        let numbers = start..count.min(start + AT_ONCE);
        let outcomes = read_some(numbers.clone(), &path, options)?;
        for (number, outcome) in numbers.zip(outcomes) {
            match outcome {
                Ok(file) => found.push(number, file)?,
                Err(error) => fault(number, error)?,
            }
        }
    }
    Ok(found)
}

/// The outcomes for these files, in their order.
fn read_some(
    numbers: Range<usize>,
    path: &(impl Fn(usize) -> PathBuf + Sync),
    options: &OpenOptions,
) -> Result<Vec<Result<ShardFile>>> {
    // A thread costs as much as a few small headers.
    const WORTH_A_THREAD: usize = 4;
    let (progress, count) = (options.progress.as_ref(), numbers.len());
    let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut outcomes = vector(count)?;
    outcomes.resize_with(count, || None);
    let outcomes = Mutex::new(outcomes);
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count || ended.load(Ordering::Relaxed) {
                return Ok(());
            }
            let cancelled = progress.map_or(Ok(()), Progress::check);
            let outcome = cancelled.and_then(|()| read(&path(numbers.start + number), options));
            if outcome.as_ref().is_err_and(ends_all) {
                ended.store(true, Ordering::Relaxed);
                return outcome.map(drop);
            }
            if let Some(progress) = progress {
                progress.shard_done();
            }
            // A poisoned lock would mean a panic in this line: the outcomes are intact all the same.
            outcomes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[number] =
                Some(outcome);
        }
    };
    share(options.threads_for(count / WORTH_A_THREAD), work)?;
    let outcomes = outcomes.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Nothing ended early, so each has an outcome.
    Ok(outcomes.into_iter().flatten().collect())
}

fn ends_all(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Limit { .. } | ErrorKind::Cancelled)
}
