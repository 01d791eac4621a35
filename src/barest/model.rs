//! How does a path become a model, and a name a tensor?
//!
//! 1. the files, their headers, one list of tensors: the index
//! 2. each file is mapped, or read
//!
//! Every failure names the path, and happens in step 1 if a file is to blame.

use super::bytes::{Backing, Bytes, ReadReason};
use super::error::reserve::vector;
use super::error::{Error, ErrorKind, Result};
use super::header::{Header, Metadata};
use super::index::{Catalogue, Headers, Index, ShardFile, Summary};
use super::mapping::{LONGEST, Mmap};
use super::options::OpenOptions;
use super::shard::Shard;
use super::sys;
use super::tensor::TensorView;
use std::fmt::{self, Debug, Formatter};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A model: its shards, opened, proved and in memory or mapped. Cheap to clone, `Send` and `Sync`.
#[derive(Clone)]
pub struct Model {
    parts: Arc<Parts>,
}

struct Parts {
    shards: Vec<Arc<Shard>>,
    catalogue: Catalogue,
}

impl Headers for [Arc<Shard>] {
    fn header(&self, shard: usize) -> &Header {
        self[shard].header()
    }
}

impl Model {
    /// Opens a file, an index or a directory (see [`Index::open`]): maps it, or reads it where the
    /// system or the file system cannot map, and where mapping is a bad idea: on NFS, SMB, FUSE, 9p,
    /// Lustre and their like a page that cannot be fetched is a signal and no error, and each fault
    /// waits for the network. [`Model::backing`] tells which. Otherwise as [`Model::map`].
    ///
    /// # Safety
    ///
    /// As for [`Model::map`].
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Model> {
        // SAFETY: the caller's promise, passed on.
        unsafe { OpenOptions::new().open(path) }
    }

    /// Maps a file, or the files of an index or a directory (see [`Index::open`]): no byte of a tensor
    /// is copied or read before it is touched. The headers alone are read, into private copies, and
    /// proved. One mapping for each file.
    ///
    /// Fails as [`Index::open`] does: a file breaks a rule of the format, is something else altogether,
    /// or cannot be opened (a FIFO or a device is refused without waiting for it). Fails with
    /// [`CannotBeMapped`](ErrorKind::CannotBeMapped) where the file system has no pages to give, and
    /// with [`Limit`](ErrorKind::Limit) if this process may not have so many mappings.
    ///
    /// # Safety
    ///
    /// The promise of [`Mmap::map`], for as long as the model or anything taken from it lives: no
    /// one modifies the files, truncates them or punches holes into them. Replacing one by `rename`
    /// is fine. If you cannot promise this, [`Model::read`] needs no promise. What becomes of a broken
    /// one can be contained, see [`sigbus::install`](super::sigbus::install), and often noticed, see
    /// [`Model::still_whole`]; neither makes it whole.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Model> {
        // SAFETY: the caller's promise, passed on.
        unsafe { OpenOptions::new().map(path) }
    }

    /// Maps a file as [`Model::map`] does, and without a promise, because the kernel makes it: for a
    /// memfd (by a path such as `/proc/self/fd/5`) that is sealed with `F_SEAL_WRITE` and
    /// `F_SEAL_SHRINK`, and for a file with fs-verity. Linux alone.
    ///
    /// Fails as [`Model::map`] does, with [`NotImmutable`](ErrorKind::NotImmutable) for another file,
    /// which says why, and with [`Unsupported`](ErrorKind::Unsupported) on another system. What root can
    /// undo, a read-only mount or an immutable flag, does not count. A failing disk can still end the
    /// process with SIGBUS, as any program that runs from it.
    ///
    /// Of fs-verity only the refusal was run: no kernel that has it was at hand.
    pub fn map_immutable(path: impl AsRef<Path>) -> Result<Model> {
        OpenOptions::new().map_immutable(path)
    }

    /// Reads a file, or the files of an index or a directory, into private memory on page boundaries,
    /// which is then protected against writing. Costs the files' size in memory; nobody can change
    /// the bytes afterwards.
    ///
    /// Fails as [`Index::open`] does, and if there is no such memory.
    pub fn read(path: impl AsRef<Path>) -> Result<Model> {
        OpenOptions::new().read(path)
    }

    /// A model from bytes in memory, which are copied: for tests and `include_bytes!`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Model> {
        OpenOptions::new().from_bytes(bytes)
    }

    /// How many tensors there are.
    pub fn len(&self) -> usize {
        self.parts.catalogue.places.len(&self.parts.shards[..])
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
        Some(self.at(self.position(name)?))
    }

    /// All tensors in file order, shard by shard; empty ones at one place in the header's order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = TensorView<'_>> {
        (0..self.len()).map(|position| self.at(position))
    }

    /// All tensors in the order of their names, byte by byte. Sorts a list of them first.
    pub fn tensors_by_name(&self) -> impl ExactSizeIterator<Item = TensorView<'_>> {
        let mut tensors: Vec<TensorView<'_>> = self.tensors().collect();
        tensors.sort_unstable_by_key(TensorView::name);
        tensors.into_iter()
    }

    /// The files it consists of, by number.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = &Shard> {
        self.handles().iter().map(|shard| &**shard)
    }

    /// The same with what keeps their pages mapped.
    pub(super) fn handles(&self) -> &[Arc<Shard>] {
        &self.parts.shards
    }

    /// The `__metadata__` of a shard; `None` if it is absent or `null`, or if there is no such
    /// shard.
    pub fn metadata(&self, shard: usize) -> Option<Metadata<'_>> {
        self.parts.shards.get(shard)?.metadata()
    }

    /// Whether a shard is mapped, or was read and why; `None` if there is no such shard.
    pub fn backing(&self, shard: usize) -> Option<&Backing> {
        Some(self.parts.shards.get(shard)?.backing())
    }

    /// How the files were found, and what was left out.
    pub fn summary(&self) -> &Summary {
        &self.parts.catalogue.summary
    }

    /// Whether the files are still what they were when they were opened: for after reading
    /// [`bytes`](TensorView::bytes), element by element or through an iterator, which can report
    /// nothing themselves. One call to the system for each file; reads no byte, faults no page.
    ///
    /// Asked is the descriptor that is held, never the path: length, time of modification, device and
    /// inode are compared, and the time of change if the number of links is the same (replacing the
    /// file by `rename` is fine; to rename *it* or to change its mode counts as a change). So whatever
    /// others truncate, `write` or punch is reported; a store through somebody's writable mapping, a
    /// time that was set back together with the link count, and a write within the clock's same tick
    /// as the one before the model was opened may not be. Of a model that was read, a difference matters only if it
    /// arose while it was read: the copy cannot change. From bytes without a file it is always `Ok`.
    ///
    /// Fails with [`Truncated`](ErrorKind::Truncated), with an offset and the first tensor behind it,
    /// if a mapped file is shorter now, or if the guard (see
    /// [`sigbus::install`](super::sigbus::install)) had to put zeros in the place of lost bytes; with
    /// [`Shrank`](ErrorKind::Shrank) for a file that was read and is shorter now, or of which a part is
    /// mapped and what stood behind it is gone; and with [`Changed`](ErrorKind::Changed) for another
    /// difference.
    pub fn still_whole(&self) -> Result<()> {
        self.parts.shards.iter().try_for_each(|shard| shard.still_whole())
    }

    /// The place of a tensor in the order of [`Model::tensors`].
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.parts.catalogue.places.find(name, &self.parts.shards[..])
    }

    pub(super) fn at(&self, position: usize) -> TensorView<'_> {
        let (shard_number, number) = self.parts.catalogue.places.at(position);
        TensorView { shard: &self.parts.shards[shard_number], shard_number, number }
    }

    /// The error of what was opened, if that has a path.
    pub(super) fn error(&self, error: Error) -> Error {
        self.parts.catalogue.error(error)
    }

    pub(super) fn not_found(&self, name: &str) -> Error {
        let names = self.tensors().map(|tensor| tensor.name());
        self.parts.catalogue.not_found(name, names, self.len())
    }
}

impl Debug for Model {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.shards()).finish()
    }
}

/// From headers to a model: the same as opening it at once, for whoever wants to look first, or has
/// files that no directory holds together.
impl Index {
    /// Maps the files, as [`Model::map`] does.
    ///
    /// # Safety
    ///
    /// As for [`Model::map`].
    pub unsafe fn map(self) -> Result<Model> {
        self.with_bytes(|file, range, _| {
            // SAFETY: the caller's promise, passed on.
            unsafe { map(file, range.clone()) }.map_err(|error| map_error(error, &range))
        })
    }

    /// Maps each file, or reads it where it cannot or should not be mapped, as [`Model::open`] does.
    ///
    /// # Safety
    ///
    /// As for [`Model::map`].
    pub unsafe fn map_or_read(self) -> Result<Model> {
        self.with_bytes(|file, range, options| {
            if let Some(name) = sys::better_read(file) {
                return read_instead(file, range, options, ReadReason::FileSystem(name));
            }
            // SAFETY: the caller's promise, passed on.
            match unsafe { map(file, range.clone()) } {
                Ok(bytes) => Ok(bytes),
                Err(refused) if cannot_be_mapped(&refused) => {
                    read_instead(file, range, options, ReadReason::Refused(refused.to_string()))
                }
                Err(error) => Err(map_error(error, &range)),
            }
        })
    }

    /// Reads the files into private memory, as [`Model::read`] does.
    pub fn read(self) -> Result<Model> {
        if let Some(progress) = &self.options.progress {
            progress.expect_bytes(self.files.iter().map(|file| file.header.model_len()).sum());
        }
        self.with_bytes(|file, range, options| read(file, range, options, ReadReason::Asked))
    }

    fn with_bytes(
        self,
        bytes_of: impl Fn(&File, Range<u64>, &OpenOptions) -> Result<Bytes>,
    ) -> Result<Model> {
        let Index { files, catalogue, options } = self;
        let mut shards = vector(files.len())?;
        for source in files {
            let bytes = match &source.file {
                Some(file) => {
                    let start = source.header.model_start();
                    let range = start..start + source.header.model_len();
                    bytes_of(file, range, &options).map_err(|error| source.error(error))?
                }
                None => Bytes::copied(&[])?,
            };
            shards.push(Arc::new(Shard { source, bytes }));
        }
        Ok(Model { parts: Arc::new(Parts { shards, catalogue }) })
    }
}

impl OpenOptions {
    /// [`Model::open`] with these options.
    ///
    /// # Safety
    ///
    /// As for [`Model::map`].
    pub unsafe fn open(&self, path: impl AsRef<Path>) -> Result<Model> {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.index(path)?.map_or_read() }
    }

    /// [`Model::map`] with these options.
    ///
    /// # Safety
    ///
    /// As for [`Model::map`].
    pub unsafe fn map(&self, path: impl AsRef<Path>) -> Result<Model> {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.index(path)?.map() }
    }

    /// [`Model::map_immutable`] with these options.
    pub fn map_immutable(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.index(path)?.with_bytes(|file, range, _| {
            vouched(file)?;
            still_has(file, range.end)?;
            // SAFETY: the promise of `Mmap::map` is the kernel's: nobody can modify, truncate or
            // punch this file any more. `vouched` has asked it of the very descriptor that is
            // mapped, and what it vouches by cannot be undone.
            unsafe { map(file, range.clone()) }.map_err(|error| map_error(error, &range))
        })
    }

    /// [`Model::read`] with these options.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.index(path)?.read()
    }

    /// [`Model::from_bytes`] with these options.
    pub fn from_bytes(&self, bytes: &[u8]) -> Result<Model> {
        let header = Header::parse_with_cap(bytes, bytes.len() as u64, self.header_cap)?;
        let bytes = Bytes::copied(bytes)?;
        let source = ShardFile { path: None, file: None, seen: None, header };
        let catalogue = Catalogue::of_one(&source);
        let shards = vec![Arc::new(Shard { source, bytes })];
        Ok(Model { parts: Arc::new(Parts { shards, catalogue }) })
    }
}

/// Whether a file has as many bytes as a moment ago.
fn still_has(file: &File, expected: u64) -> Result<()> {
    let metadata = file.metadata().map_err(|error| Error::io("ask for the length", error))?;
    match metadata.len() {
        found if found < expected => {
            Err(Error::at_file(ErrorKind::Shrank { expected, found }, found))
        }
        _ => Ok(()),
    }
}

/// Whether the kernel guarantees that the bytes of a file stay as they are.
fn vouched(file: &File) -> Result<()> {
    match sys::vouch(file) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(found)) => Err(Error::new(ErrorKind::NotImmutable { found })),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            Err(Error::new(ErrorKind::Unsupported { action: "vouch for a file's bytes" }))
        }
        Err(error) => Err(Error::io("ask who vouches for the file", error)),
    }
}

/// Maps a part of a file which the file was found to have.
///
/// # Safety
///
/// As for [`Mmap::map`].
unsafe fn map(file: &File, range: Range<u64>) -> io::Result<Bytes> {
    // SAFETY: the caller's promise, passed on.
    unsafe { Mmap::map_known(file, range) }.map(Bytes::mapped)
}

fn read(file: &File, range: Range<u64>, options: &OpenOptions, why: ReadReason) -> Result<Bytes> {
    let threads = options.threads_for(Bytes::pieces(range.end - range.start));
    Bytes::read(file, range, threads, options.progress.as_ref(), why)
}

/// Reads a file that could or should not be mapped, which nobody has counted on.
fn read_instead(
    file: &File,
    range: Range<u64>,
    options: &OpenOptions,
    why: ReadReason,
) -> Result<Bytes> {
    if let Some(progress) = &options.progress {
        progress.expect_bytes(range.end - range.start);
    }
    read(file, range, options, why)
}

/// Whether another file would have been mapped by the same call: the system maps none, or this file
/// system (some network and FUSE mounts) has no pages to give.
fn cannot_be_mapped(error: &io::Error) -> bool {
    const ENODEV: i32 = 19;
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(ENODEV)
}

fn map_error(error: io::Error, range: &Range<u64>) -> Error {
    if let Some(sys::Limit { what, limit, advice }) = sys::of_mappings(&error) {
        return Error::new(ErrorKind::Limit { action: "map", source: error, what, limit, advice });
    }
    match error.kind() {
        io::ErrorKind::Unsupported => Error::new(ErrorKind::Unsupported { action: "map a file" }),
        io::ErrorKind::FileTooLarge => {
            let found = range.end - range.start;
            Error::new(ErrorKind::DoesNotFit { expected: LONGEST, found })
        }
        _ if cannot_be_mapped(&error) => Error::new(ErrorKind::CannotBeMapped { source: error }),
        _ => Error::io("map", error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::progress::Progress;
    use super::*;

    /// Such a file system is not at hand everywhere.
    #[test]
    fn what_is_read_instead_of_mapped_counts_as_progress() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let mut options = OpenOptions::new();
        let progress = Progress::new();
        options.progress(&progress);
        for why in [ReadReason::FileSystem("NFS"), ReadReason::Refused(String::new())] {
            let bytes = read_instead(&file, 1..5000, &options, why.clone()).unwrap();
            assert_eq!((bytes.as_slice().len(), bytes.backing()), (4999, &Backing::Read { why }));
        }
        assert_eq!(progress.bytes(), (2 * 4999, 2 * 4999));
    }
}
