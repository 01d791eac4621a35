//! Which files does a model consist of, and which of them holds a tensor?
//!
//! ```text
//!   path ──source──▶ a file, files, or an index ──weight_map──▶ names of shards
//!                                 │                                  │
//!                                 └────────▶ files: headers, proved ◀┘
//!                                                    │ places: name ─▶ (shard, tensor)
//!                                                  Index ──▶ Model, once there are bytes
//! ```
//!
//! An [`Index`] has read headers and nothing else: no byte of a tensor was touched, nothing is
//! mapped. If anything is wrong with a set of files, all of it is told at once.

mod faults;
mod files;
mod places;
mod source;
mod weight_map;

use super::bytes::{read_exact_at, read_new};
use super::error::reserve::vector;
use super::error::{Error, ErrorKind, Result};
use super::header::{Header, TensorInfo};
use super::json::Text;
use super::looks_like;
use super::nearest::nearest;
use super::options::OpenOptions;
use faults::Faults;
pub use files::ShardFile;
use files::{Found, Opened};
pub(super) use places::Headers;
use places::Places;
use source::Source;
use std::fmt::{self, Debug, Formatter};
use std::fs::{File, Metadata};
use std::ops::Range;
use std::path::{Path, PathBuf};
use weight_map::WeightMap;

/// The headers of a model's files, proved, and one list of their tensors.
pub struct Index {
    pub(super) files: Vec<ShardFile>,
    pub(super) catalogue: Catalogue,
    pub(super) options: OpenOptions,
}

/// What is known of a model beyond its single files.
pub(super) struct Catalogue {
    pub(super) places: Places,
    /// What was opened: an index, a directory, the only file.
    pub(super) path: Option<PathBuf>,
    pub(super) summary: Summary,
}

/// How the files of a model were found, and what was left out.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// The index that assigns tensors to shards, if there is one.
    pub index: Option<PathBuf>,
    /// Files of the directory that end in `.safetensors` and do not belong to the model.
    pub ignored: Vec<PathBuf>,
    /// Tensors in the shards that the index does not assign to them. They are not exposed.
    pub unassigned: usize,
    /// `total_size` of the index, in bytes, if it is a plain number. Written by tools and checked by
    /// none: nothing here relies on it.
    pub total_size: Option<u64>,
}

impl Index {
    /// Reads and proves the headers of a model: a file; an index, whose name ends in `.json`; or a
    /// directory. Of a directory that is its one `*.safetensors.index.json` if there is one, else its
    /// one `.safetensors`, else all of them if no name is in two.
    ///
    /// Fails with what is wrong with a file, as [`Header::parse`] does; if several things are wrong
    /// with several files, with [`Faults`](ErrorKind::Faults), of which
    /// [`Error::faults`] gives each: shards that are missing or cut short, entries of the index for
    /// tensors that the shard does not hold, names in two shards, names of shards that lead out of
    /// the directory. Fails with [`Limit`](ErrorKind::Limit) if this process may not have so many
    /// open files: each shard keeps one.
    pub fn open(path: impl AsRef<Path>) -> Result<Index> {
        OpenOptions::new().index(path)
    }

    /// The same of these files, in this order, of which no two may hold tensors of one name.
    pub fn open_files(paths: &[impl AsRef<Path>]) -> Result<Index> {
        OpenOptions::new().index_files(paths)
    }

    /// The same of a model that is `range` of a larger file, in bytes: it may begin and end
    /// anywhere. All offsets are those of the file.
    ///
    /// Fails with [`RangeBeyondFile`](ErrorKind::RangeBeyondFile) if the file is shorter, or the
    /// range ends before it starts.
    pub fn open_range(path: impl AsRef<Path>, range: Range<u64>) -> Result<Index> {
        OpenOptions::new().index_range(path, range)
    }

    /// How many tensors there are.
    pub fn len(&self) -> usize {
        self.catalogue.places.len(&self.files[..])
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All tensors, each with the number of its shard: shard by shard, in file order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = (usize, TensorInfo<'_>)> {
        (0..self.len()).map(|position| self.at(position))
    }

    /// The tensor of that name, and the number of its shard. Allocates nothing, if it is found.
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound), which suggests the nearest name.
    pub fn tensor(&self, name: &str) -> Result<(usize, TensorInfo<'_>)> {
        match self.catalogue.places.find(name, &self.files[..]) {
            Some(position) => Ok(self.at(position)),
            None => {
                let names = self.tensors().map(|(_, tensor)| tensor.name());
                Err(self.catalogue.not_found(name, names, self.len()))
            }
        }
    }

    /// Reads the data of a tensor into `buffer`, which must have exactly its bytes, by positional
    /// reads. Nothing is mapped; nobody can change the bytes afterwards.
    ///
    /// Fails with [`NotFound`](ErrorKind::NotFound), with
    /// [`WrongByteLength`](ErrorKind::WrongByteLength), with [`Io`](ErrorKind::Io), and with
    /// [`Shrank`](ErrorKind::Shrank) if the file ends before the tensor by now.
    pub fn read_into(&self, name: &str, buffer: &mut [u8]) -> Result<()> {
        let (shard, tensor) = self.tensor(name)?;
        let file = &self.files[shard];
        let range = tensor.file_range();
        let mut read = || {
            if buffer.len() as u64 != tensor.byte_len() {
                // A tensor beyond the address space has no buffer of its length.
                let expected = usize::try_from(tensor.byte_len()).unwrap_or(usize::MAX);
                let found = buffer.len();
                return Err(Error::new(ErrorKind::WrongByteLength { expected, found }));
            }
            match file.file() {
                Some(open) => read_exact_at(open, buffer, range.start),
                None => Ok(()),
            }
        };
        read().map_err(|error| file.error(error.in_tensor(name)))
    }

    /// The files, by number of shard.
    pub fn shards(&self) -> &[ShardFile] {
        &self.files
    }

    /// How the files were found, and what was left out.
    pub fn summary(&self) -> &Summary {
        &self.catalogue.summary
    }

    fn at(&self, position: usize) -> (usize, TensorInfo<'_>) {
        let (shard, number) = self.catalogue.places.at(position);
        (shard, self.files[shard].header.info(number))
    }
}

impl Catalogue {
    /// That of a model in one piece.
    pub(super) fn of_one(file: &ShardFile) -> Catalogue {
        let path = file.path.clone();
        Catalogue { places: Places::OfOneHeader, path, summary: Summary::default() }
    }

    /// The error that no tensor has this name, with the nearest of those that there are.
    pub(super) fn not_found<'a>(
        &self,
        name: &str,
        names: impl Iterator<Item = &'a str>,
        among: usize,
    ) -> Error {
        let nearest = nearest(name, names).map(str::to_owned);
        self.error(Error::new(ErrorKind::NotFound { nearest, among }).in_tensor(name))
    }

    /// The error of what was opened, if that has a path.
    pub(super) fn error(&self, error: Error) -> Error {
        match &self.path {
            Some(path) => error.in_file(path),
            None => error,
        }
    }
}

impl Debug for Index {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.files).finish()
    }
}

impl Header {
    /// Reads and proves the header of a file, and nothing else of it: no byte of a tensor is read,
    /// nothing is mapped. Fails as [`Index::open`] does.
    pub fn open(path: impl AsRef<Path>) -> Result<Header> {
        Ok(files::read(path.as_ref(), &OpenOptions::new())?.header)
    }
}

impl OpenOptions {
    /// [`Index::open`] with these options.
    pub fn index(&self, path: impl AsRef<Path>) -> Result<Index> {
        let path = path.as_ref();
        match files::open(path).map_err(|error| error.in_file(path))? {
            Opened::File(..) if source::is_index(path) => self.with_index(path, Vec::new()),
            Opened::File(file, metadata) => self.one_file(path, file, &metadata, 0..metadata.len()),
            Opened::Directory => match source::look_into(path)? {
                Source::Index { index, beside } => self.with_index(&index, beside),
                Source::Files(files) => self.files(&files, Some(path)),
            },
        }
    }

    /// [`Index::open_files`] with these options.
    pub fn index_files(&self, paths: &[impl AsRef<Path>]) -> Result<Index> {
        let mut files = vector(paths.len())?;
        files.extend(paths.iter().map(|path| path.as_ref().to_owned()));
        self.files(&files, None)
    }

    /// [`Index::open_range`] with these options.
    pub fn index_range(&self, path: impl AsRef<Path>, range: Range<u64>) -> Result<Index> {
        let path = path.as_ref();
        let (file, metadata) = files::open_file(path).map_err(|error| error.in_file(path))?;
        let len = metadata.len();
        if range.start > range.end || range.end > len {
            let kind = ErrorKind::RangeBeyondFile { expected: len, found: range.end };
            return Err(Error::at_file(kind, range.start).in_file(path));
        }
        self.one_file(path, file, &metadata, range)
    }

    fn one_file(
        &self,
        path: &Path,
        file: File,
        metadata: &Metadata,
        range: Range<u64>,
    ) -> Result<Index> {
        if let Some(progress) = &self.progress {
            progress.expect_shards(1);
            progress.check()?;
        }
        let outcome = files::read_part(path, file, metadata, range, self);
        if let Some(progress) = &self.progress {
            progress.shard_done();
        }
        let file = outcome.map_err(|error| error.in_file(path))?;
        let catalogue = Catalogue::of_one(&file);
        Ok(Index { files: vec![file], catalogue, options: self.clone() })
    }

    /// The index of files that no index names, found in `directory` or given one by one.
    fn files(&self, paths: &[PathBuf], directory: Option<&Path>) -> Result<Index> {
        // A thread costs as much as many small headers.
        const WORTH_A_THREAD: usize = 32;
        let mut faults = Faults::default();
        let threads = self.header_threads(paths.len() / WORTH_A_THREAD);
        let path = |number: u32| paths[number as usize].clone();
        let name = |open: &mut dyn FnMut(u32, u32)| {
            (0..paths.len() as u32).for_each(|number| open(number, number));
            Ok(())
        };
        let ((), outcomes) = files::read_named(threads, path, self, name)?;
        let files::Outcomes { opened, mut failed, more } = outcomes;
        failed.sort_unstable_by_key(|&(number, _)| number);
        failed.into_iter().for_each(|(_, error)| faults.push(error));
        faults.count_all(more);
        let Found { files, .. } = Found::of(opened)?;
        let places = Places::of_all(&files, &mut faults)?;
        faults.into_result(directory, paths.len())?;
        let path = match paths {
            [only] => Some(only.clone()),
            _ => directory.map(Path::to_owned),
        };
        let catalogue = Catalogue { places, path, summary: Summary::default() };
        Ok(Index { files, catalogue, options: self.clone() })
    }

    /// The index of the files that an index names. Of those `beside` it, the others are ignored.
    fn with_index(&self, path: &Path, beside: Vec<PathBuf>) -> Result<Index> {
        // An index of this many bytes takes as long as a thread costs; one of many bytes has as many
        // shards or large ones.
        const WORTH_A_THREAD: usize = 256 << 10;
        let mut faults = Faults::default();
        let text = self.index_text(path).map_err(|error: Error| error.in_file(path))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        // 1. The files, each as soon as the index has named it.
        let threads = self.header_threads(text.len() / WORTH_A_THREAD);
        let shard_path = |name: Text| directory.join(&*name.resolve(&text));
        let (index, outcomes) = files::read_named(threads, shard_path, self, |open| {
            WeightMap::read(&text, &mut faults, open).map_err(|error| error.in_file(path))
        })?;
        // Numbered as they were met; from here on in the order of their names.
        let files::Outcomes { mut opened, mut failed, more } = outcomes;
        opened.iter_mut().for_each(|(number, _)| *number = index.rank(*number));
        failed.iter_mut().for_each(|(number, _)| *number = index.rank(*number));
        failed.sort_unstable_by_key(|&(number, _)| number);
        let tensors = if failed.is_empty() { Vec::new() } else { index.counts()? };
        for (number, error) in failed {
            faults.push(missing(error, tensors[number as usize] as usize));
        }
        faults.count_all(more);
        let found = Found::of(opened)?;
        // 2. The tensors.
        let (places, unassigned) = Places::assigned(&found, &index, &mut faults)?;
        faults.into_result(Some(path), index.shard_count())?;
        let files = found.files;
        // 3. What is beside them.
        let mut named: Vec<&Path> = vector(files.len())?;
        named.extend(files.iter().filter_map(ShardFile::path));
        named.sort_unstable();
        // As paths: `./a` is `a`.
        let is_ignored = |path: &PathBuf| named.binary_search(&&**path).is_err();
        let summary = Summary {
            index: Some(path.to_owned()),
            ignored: beside.into_iter().filter(is_ignored).collect(),
            unassigned,
            total_size: index.total_size,
        };
        let catalogue = Catalogue { places, path: Some(path.to_owned()), summary };
        Ok(Index { files, catalogue, options: self.clone() })
    }

    /// The text of an index.
    fn index_text(&self, path: &Path) -> Result<String> {
        let (file, metadata) = files::open_file(path)?;
        let len = metadata.len();
        if len > u64::from(self.header_cap) {
            let expected = u64::from(self.header_cap);
            return Err(Error::new(ErrorKind::IndexTooLong { expected, found: len }));
        }
        // At most the cap, which has 32 bits.
        let text = read_new(&file, len as usize, 0)?;
        let first = &text[..text.len().min(looks_like::ENOUGH)];
        // Of JSON, whatever mark stands before it, the reader says where it is none of an index.
        let json = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text).trim_ascii_start();
        if !matches!(json.first(), Some(b'{' | b'[')) {
            let index = "the index of a sharded model";
            looks_like::identify(first).map_or(Ok(()), |other| Err(other.instead_of(index)))?;
        }
        String::from_utf8(text).map_err(|error| {
            let (position, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
            Error::at_header(ErrorKind::NotUtf8 { what: "index", found: bytes[position] }, position)
                .in_whole_text(bytes)
        })
    }
}

/// The fault that a shard could not be opened; where it is not there, with what it takes along.
fn missing(error: Error, tensors: usize) -> Error {
    let link = match error.kind() {
        ErrorKind::DanglingLink { target } => Some(target.clone()),
        ErrorKind::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => None,
        _ => return error,
    };
    let missing = Error::new(ErrorKind::MissingShard { tensors, link });
    match error.path() {
        Some(path) => missing.in_file(path),
        None => missing,
    }
}
