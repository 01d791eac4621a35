//! How does a path become a model, and a name a tensor?
//!
//! 1. open the path, without blocking, and see that it is a file
//! 2. read 8 bytes, and as many more as they say: the private copy of the header
//! 3. prove the header against the file's length
//! 4. map the file, or read it
//!
//! Every failure names the path, and happens before step 4 if the file is to blame.

use super::bytes::{Backing, Bytes, ReadReason, read_exact_at};
use super::error::reserve::zeros;
use super::error::{Error, ErrorKind, Result};
use super::header::{self, Header, Metadata, PREFIX};
use super::looks_like;
use super::mapping::{LONGEST, Mmap};
use super::nearest::nearest;
use super::options::OpenOptions;
use super::shard::Shard;
use super::sys;
use super::tensor::TensorView;
use std::fmt::{self, Debug, Formatter};
use std::fs::{File, Metadata as FileMetadata};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A model: its shards, opened, proved and in memory or mapped. Cheap to clone, `Send` and `Sync`.
#[derive(Clone)]
pub struct Model {
    shards: Arc<[Arc<Shard>]>,
}

impl Model {
    /// Opens a file: maps it, or reads it where the system or the file system cannot map;
    /// [`Model::backing`] tells which. Otherwise as [`Model::map`].
    ///
    /// # Safety
    ///
    /// As for [`Model::map`].
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Model> {
        // SAFETY: the caller's promise, passed on.
        unsafe { OpenOptions::new().open(path) }
    }

    /// Maps a file: no byte of a tensor is copied or read before it is touched. The header alone is
    /// read, into a private copy, and proved.
    ///
    /// Fails if the file breaks a rule of the format, is something else altogether, or cannot be
    /// opened or mapped; a FIFO or a device is refused without waiting for it.
    ///
    /// # Safety
    ///
    /// The promise of [`Mmap::map`], for as long as the model or anything taken from it lives: no
    /// one modifies the file, truncates it or punches holes into it. Replacing it by `rename` is
    /// fine. If you cannot promise this, [`Model::read`] needs no promise.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Model> {
        // SAFETY: the caller's promise, passed on.
        unsafe { OpenOptions::new().map(path) }
    }

    /// Reads a whole file into private memory on a page boundary, which is then protected against
    /// writing. Costs the file's size in memory; nobody can change the bytes afterwards.
    ///
    /// Fails as [`Model::map`] does, and if there is no such memory.
    pub fn read(path: impl AsRef<Path>) -> Result<Model> {
        OpenOptions::new().read(path)
    }

    /// A model from bytes in memory, which are copied: for tests and `include_bytes!`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Model> {
        OpenOptions::new().from_bytes(bytes)
    }

    /// How many tensors there are.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.header.len()).sum()
    }

    /// Whether there are none: a valid file may hold nothing but metadata.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tensor of that name, compared byte for byte. Allocates nothing, faults no page.
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound), which suggests the nearest name; to find that
    /// takes time, so ask [`Model::get`] about a tensor that may well be absent.
    pub fn tensor(&self, name: &str) -> Result<TensorView<'_>> {
        self.get(name).ok_or_else(|| self.not_found(name))
    }

    /// The tensor of that name, if there is one. Allocates nothing, faults no page.
    pub fn get(&self, name: &str) -> Option<TensorView<'_>> {
        self.shards.iter().enumerate().find_map(|(shard_number, shard)| {
            let number = shard.header.find(name)?;
            Some(TensorView { shard, shard_number, number })
        })
    }

    /// All tensors in file order, shard by shard; empty ones at one place in the header's order.
    pub fn tensors(&self) -> impl Iterator<Item = TensorView<'_>> {
        self.shards.iter().enumerate().flat_map(|(shard_number, shard)| {
            (0..shard.header.len()).map(move |number| TensorView { shard, shard_number, number })
        })
    }

    /// The files it consists of.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = &Shard> {
        self.handles().iter().map(|shard| &**shard)
    }

    /// The same with what keeps their pages mapped.
    pub(super) fn handles(&self) -> &[Arc<Shard>] {
        &self.shards
    }

    /// The `__metadata__` of a shard; `None` if it is absent or `null`, or if there is no such
    /// shard.
    pub fn metadata(&self, shard: usize) -> Option<Metadata<'_>> {
        self.shards.get(shard)?.metadata()
    }

    /// Whether a shard is mapped, or was read and why; `None` if there is no such shard.
    pub fn backing(&self, shard: usize) -> Option<&Backing> {
        Some(self.shards.get(shard)?.backing())
    }

    fn of_one(shard: Shard) -> Model {
        Model { shards: Arc::new([Arc::new(shard)]) }
    }

    fn not_found(&self, name: &str) -> Error {
        let names = self.tensors().map(|tensor| tensor.name());
        let nearest = nearest(name, names).map(str::to_owned);
        let error = Error::new(ErrorKind::NotFound { nearest, among: self.len() }).in_tensor(name);
        match self.shards.first().and_then(|shard| shard.path()) {
            Some(path) => error.in_file(path),
            None => error,
        }
    }
}

impl Header {
    /// Reads and proves the header of a file, and nothing else of it: no byte of a tensor is read,
    /// nothing is mapped. Fails as [`Model::map`] does.
    pub fn open(path: impl AsRef<Path>) -> Result<Header> {
        let path = path.as_ref();
        let steps = || {
            let (file, len) = open_file(path)?;
            read_header(&file, len, OpenOptions::new().header_cap)
        };
        steps().map_err(|error| error.in_file(path))
    }
}

impl Debug for Model {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.shards()).finish()
    }
}

impl OpenOptions {
    /// [`Model::open`] with these options.
    ///
    /// # Safety
    ///
    /// As for [`Model::map`].
    pub unsafe fn open(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.shard(path.as_ref(), |file, len| {
            // SAFETY: the caller's promise, passed on.
            match unsafe { map(file, len) } {
                Ok(bytes) => Ok(bytes),
                Err(refused) if cannot_be_mapped(&refused) => {
                    let why = ReadReason::Refused(refused.to_string());
                    Bytes::read(file, len, self.read_threads, why)
                }
                Err(error) => Err(map_error(error, len)),
            }
        })
    }

    /// [`Model::map`] with these options.
    ///
    /// # Safety
    ///
    /// As for [`Model::map`].
    pub unsafe fn map(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.shard(path.as_ref(), |file, len| {
            // SAFETY: the caller's promise, passed on.
            unsafe { map(file, len) }.map_err(|error| map_error(error, len))
        })
    }

    /// [`Model::read`] with these options.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.shard(path.as_ref(), |file, len| {
            Bytes::read(file, len, self.read_threads, ReadReason::Asked)
        })
    }

    /// [`Model::from_bytes`] with these options.
    pub fn from_bytes(&self, bytes: &[u8]) -> Result<Model> {
        let header = Header::parse_with_cap(bytes, bytes.len() as u64, self.header_cap)?;
        let bytes = Bytes::copied(bytes)?;
        Ok(Model::of_one(Shard { path: None, file: None, header, bytes }))
    }

    /// Steps 1 to 4 of the module's text.
    fn shard(&self, path: &Path, bytes: impl FnOnce(&File, u64) -> Result<Bytes>) -> Result<Model> {
        let steps = || {
            let (file, len) = open_file(path)?;
            let header = read_header(&file, len, self.header_cap)?;
            let bytes = bytes(&file, len)?;
            Ok(Shard { path: Some(path.to_owned()), file: Some(file), header, bytes })
        };
        steps().map(Model::of_one).map_err(|error: Error| error.in_file(path))
    }
}

/// Opens a regular file and gives its length.
fn open_file(path: &Path) -> Result<(File, u64)> {
    let file = sys::open(path).map_err(|error| {
        // A socket cannot even be opened; say what it is rather than ENXIO.
        match std::fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => not_a_file(&metadata),
            _ => Error::io("open", error),
        }
    })?;
    let metadata = file.metadata().map_err(|error| Error::io("ask for the length", error))?;
    if !metadata.is_file() {
        return Err(not_a_file(&metadata));
    }
    Ok((file, metadata.len()))
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

/// Reads the header of a file of `len` bytes into a private copy, and proves it.
fn read_header(file: &File, len: u64, cap: u32) -> Result<Header> {
    let mut prefix = [0; PREFIX];
    let prefix = &mut prefix[..len.min(PREFIX as u64) as usize];
    read_exact_at(file, prefix, 0)?;
    let header_len = match header::header_len(prefix, len, cap) {
        Ok(header_len) => header_len,
        Err(refused) => {
            let mut first = vec![0; len.min(looks_like::ENOUGH as u64) as usize];
            read_exact_at(file, &mut first, 0)?;
            return Err(header::or_foreign(refused, &first));
        }
    };
    let mut copy = zeros(header_len)?;
    read_exact_at(file, &mut copy, PREFIX as u64)?;
    Header::from_copy(copy, len)
}

/// Maps a file that was found to have `len` bytes.
///
/// # Safety
///
/// As for [`Mmap::map`].
unsafe fn map(file: &File, len: u64) -> io::Result<Bytes> {
    // SAFETY: the caller's promise, passed on.
    unsafe { Mmap::map_len(file, len) }.map(Bytes::mapped)
}

/// Whether another file would have been mapped by the same call: the system maps none, or this file
/// system (some network and FUSE mounts) has no pages to give.
fn cannot_be_mapped(error: &io::Error) -> bool {
    const ENODEV: i32 = 19;
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(ENODEV)
}

fn map_error(error: io::Error, len: u64) -> Error {
    match error.kind() {
        io::ErrorKind::Unsupported => Error::new(ErrorKind::Unsupported { action: "map a file" }),
        io::ErrorKind::FileTooLarge => {
            Error::new(ErrorKind::DoesNotFit { expected: LONGEST, found: len })
        }
        _ => Error::io("map", error),
    }
}
