//! How does a file become a proved header?
//!
//! 1. open the path, without blocking, and see that it is a file
//! 2. read 8 bytes, and as many more as they say: the private copy of the header
//! 3. prove the header against the length of the file, or of its part
//!
//! Headers of many shards are read by a few threads, which begin while an index is still being read.

use super::super::bytes::{read_exact_at, read_new};
use super::super::error::reserve::{no_memory, vector};
use super::super::error::{Error, ErrorKind, Result};
use super::super::escape::Shown;
use super::super::header::{self, Header, Metadata, PREFIX};
use super::super::looks_like;
use super::super::options::OpenOptions;
use super::super::progress::Progress;
use super::super::seen::Seen;
use super::super::sys;
use super::super::workers::share;
use super::faults::MOST;
use std::fmt::{self, Debug, Formatter};
use std::fs::{File, Metadata as FileMetadata};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};

/// One file of a model whose header was read and proved, and nothing else of it: it has no bytes of
/// a tensor. In a [`Model`](super::super::Model) a [`Shard`](super::super::Shard) takes its place.
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

/// Neither a regular file nor a directory.
fn not_a_file(metadata: &FileMetadata) -> Error {
    #[cfg(unix)]
    let found = {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        match () {
            _ if kind.is_fifo() => "a FIFO (named pipe)",
            _ if kind.is_socket() => "a socket",
            _ if kind.is_char_device() => "a character device",
            _ if kind.is_block_device() => "a block device",
            _ => "something else",
        }
    };
    #[cfg(not(unix))]
    let found = {
        let _ = metadata;
        "something else"
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
    let copy = read_new(file, header_len, start + PREFIX as u64)?;
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

    /// Those that were opened, with their numbers.
    pub fn of(mut opened: Vec<(u32, ShardFile)>) -> Result<Found> {
        opened.sort_unstable_by_key(|&(number, _)| number);
        let (mut files, mut numbers) = (vector(opened.len())?, vector(opened.len())?);
        for (number, file) in opened {
            files.push(file);
            numbers.push(number);
        }
        Ok(Found { files, numbers })
    }
}

/// What became of many files, in no order.
#[derive(Default)]
pub struct Outcomes {
    pub opened: Vec<(u32, ShardFile)>,
    /// The first thousand faults; an index can name millions of files that are not there.
    pub failed: Vec<(u32, Error)>,
    /// How many more there were.
    pub more: usize,
}

impl Outcomes {
    fn push(&mut self, number: u32, outcome: Result<ShardFile>) -> Result<()> {
        match outcome {
            Ok(file) => {
                self.opened.try_reserve(1).map_err(|_| no_memory())?;
                self.opened.push((number, file));
            }
            Err(_) if self.failed.len() >= MOST => self.more += 1,
            Err(error) => self.failed.push((number, error)),
        }
        Ok(())
    }
}

/// How many files wait to be opened; who names more opens one first. An index can name millions, and
/// for want of the memory that a channel takes as it grows, the program would end.
const MOST_WAITING: usize = 256;

/// Opens files and proves their headers while `name` is still naming them, each by a number; `path`
/// makes a path of what it names. `threads` threads take part, the calling one once it has named all,
/// or more than may wait. Cancelling, and a limit of this process, which the rest would reach as well,
/// end it.
pub fn read_named<I: Send, T>(
    threads: usize,
    path: impl Fn(I) -> PathBuf + Sync,
    options: &OpenOptions,
    name: impl FnOnce(&mut dyn FnMut(u32, I)) -> Result<T>,
) -> Result<(T, Outcomes)> {
    let progress = options.progress.as_ref();
    let (send, receive) = sync_channel::<(u32, I)>(MOST_WAITING);
    let receive = Mutex::new(receive);
    let outcomes = Mutex::new(Outcomes::default());
    let ended = AtomicBool::new(false);
    let open = |(number, item): (u32, I)| -> Result<()> {
        if ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        let cancelled = progress.map_or(Ok(()), Progress::check);
        let outcome = cancelled.and_then(|()| read(&path(item), options));
        if outcome.as_ref().is_err_and(ends_all) {
            ended.store(true, Ordering::Relaxed);
            return outcome.map(drop);
        }
        if let Some(progress) = progress {
            progress.shard_done();
        }
        outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(number, outcome)
    };
    let work = || -> Result<()> {
        loop {
            // A poisoned lock would mean a panic in one of these lines: all is whole all the same.
            let next = receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(next) = next else { return Ok(()) };
            open(next)?;
        }
    };
    let (open, receive, ended) = (&open, &receive, &ended);
    let named = share(threads, work, move || {
        let mut opened = Ok(());
        let named = name(&mut |number, item| {
            if let Some(progress) = progress {
                progress.expect_shards(1);
            }
            let mut last = (number, item);
            // The receiver lives as long as this call, so all that can be in the way is too many.
            while let Err(TrySendError::Full(back)) = send.try_send(last) {
                last = back;
                // Never to wait: whoever has the lock makes room, or waits for what is named here.
                let first = receive.try_lock().ok().and_then(|receive| receive.try_recv().ok());
                if let (Ok(()), Some(first)) = (&opened, first) {
                    opened = open(first);
                }
            }
        });
        // For the files of what is no index nobody needs to wait.
        let named = named.inspect_err(|_| ended.store(true, Ordering::Relaxed))?;
        opened.map(|()| named)
    })?;
    Ok((named, outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

fn ends_all(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Limit { .. } | ErrorKind::Cancelled)
}
