//! What can go wrong, and which numbers does a person need then?

use super::super::dtype::Dtype;
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

/// The kinds of failure. Where two values disagree, `expected` stands before `found`.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused `action` (a verb: open, read, map …).
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The operating system refused `action` because this process has reached a limit.
    Limit {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
        /// What there may not be more of.
        what: &'static str,
        /// How many there may be.
        limit: u64,
        /// How the limit is shown or raised.
        advice: &'static str,
    },
    /// Files of this file system cannot be mapped.
    CannotBeMapped {
        /// What the system said.
        source: io::Error,
    },
    /// There is less memory left than pages would need.
    WouldNotFit {
        /// Bytes of the pages that are not in memory.
        need: u64,
        /// Bytes that are left.
        have: u64,
        /// Who says so.
        limit: &'static str,
    },
    /// Pages that have no file behind them: dropped, their bytes would be lost.
    NotFileBacked,
    /// The call was cancelled, see [`Progress::cancel`](super::super::Progress::cancel).
    Cancelled,
    /// The path leads to something that is no regular file.
    NotAFile {
        /// What it is, with its article.
        found: &'static str,
    },
    /// The platform cannot do this.
    Unsupported {
        /// What was asked for.
        action: &'static str,
    },
    /// The file is longer than an address can be on this machine.
    DoesNotFit {
        /// Bytes that one allocation or mapping can have at most.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The file became shorter between two looks at it.
    Shrank {
        /// Bytes that were there.
        expected: u64,
        /// Bytes that are left.
        found: u64,
    },
    /// The file is no longer what it was when it was opened.
    Changed {
        /// What differs.
        what: &'static str,
        /// What it was; times in seconds since 1970.
        expected: String,
        /// What it is.
        found: String,
    },
    /// Nobody guarantees that the file's bytes stay as they are.
    NotImmutable {
        /// Why not.
        found: String,
    },
    /// The path is a symbolic link to something that is not there.
    DanglingLink {
        /// What the link says.
        target: PathBuf,
    },
    /// A part of a file was asked for that the file does not have.
    RangeBeyondFile {
        /// Bytes of the file.
        expected: u64,
        /// Where the range ends.
        found: u64,
    },
    /// The first bytes belong to something else: a Git LFS pointer, a zip, a pickle, a web page …
    Foreign {
        /// What was opened: a safetensors file, the index of a sharded model.
        expected: &'static str,
        /// What it is, with its article.
        found: &'static str,
        /// The size in bytes that a Git LFS pointer promises.
        promised: Option<u64>,
        /// What to do about it.
        advice: &'static str,
    },
    /// Fewer than the 8 bytes of the header length.
    TooShort {
        /// Bytes of the smallest model: a length and `{}`.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The bytes given to [`Header::parse`](super::super::Header::parse) end inside the header, though the
    /// file does not.
    PrefixTooShort {
        /// Bytes that are needed.
        expected: u64,
        /// Bytes that were given.
        found: u64,
    },
    /// The header length is 0.
    NoHeader,
    /// The header length is over the cap.
    HeaderTooLong {
        /// The cap in bytes.
        expected: u64,
        /// The header length in bytes.
        found: u64,
    },
    /// The file ends inside the header.
    HeaderCut {
        /// The header length in bytes.
        expected: u64,
        /// Bytes that follow the length.
        found: u64,
    },
    /// A byte of the header, or of an index, that is not UTF-8.
    NotUtf8 {
        /// Which of the two.
        what: &'static str,
        /// The first such byte.
        found: u8,
    },
    /// The header is not JSON.
    Syntax {
        /// What could have stood here.
        expected: &'static str,
        /// The byte that does, or `None` at the header's end.
        found: Option<u8>,
    },
    /// JSON, but of another type than the format has here.
    WrongType {
        /// What the value is for.
        what: Cow<'static, str>,
        /// The type it should have, with its article.
        expected: &'static str,
        /// The type it has, with its article.
        found: &'static str,
    },
    /// A dimension or offset that is no plain unsigned integer below 2^64.
    NotAnInteger {
        /// `shape` or `data_offsets`.
        field: &'static str,
        /// The text, or the type, that stands there.
        found: String,
    },
    /// `data_offsets` has not two numbers.
    NotTwoOffsets {
        /// How many it has; at most 3 are counted.
        found: usize,
    },
    /// A dtype that is not in the table.
    UnknownDtype {
        /// The name that stands there.
        found: String,
    },
    /// An entry without `dtype`, `shape` or `data_offsets`.
    MissingField {
        /// The field.
        expected: &'static str,
    },
    /// A field of an entry stands there twice.
    DuplicateField {
        /// The field.
        field: &'static str,
        /// Absolute file offset of the first.
        first: u64,
    },
    /// Two tensors with one name, compared after unescaping.
    DuplicateTensor {
        /// Absolute file offset of the first.
        first: u64,
    },
    /// Two `__metadata__` members.
    DuplicateMetadata {
        /// Absolute file offset of the first.
        first: u64,
    },
    /// A key of `__metadata__` stands there twice, compared after unescaping.
    DuplicateMetadataKey {
        /// The key.
        key: String,
        /// Absolute file offset of the first.
        first: u64,
    },
    /// Arrays and objects within each other, deeper than the reference follows.
    TooDeep {
        /// The deepest level that is read.
        expected: usize,
    },
    /// A number in an ignored field that an `f64` cannot hold.
    NumberOutOfRange,
    /// Dimensions times bits of an element are more than a `u64` holds, multiplied from the left.
    Overflow {
        /// The dtype.
        dtype: Dtype,
        /// The shape, shortened.
        shape: String,
    },
    /// Elements below 8 bits that do not fill their last byte.
    PartialByte {
        /// The dtype.
        dtype: Dtype,
        /// The shape, shortened.
        shape: String,
        /// Bits that the elements have together.
        found: u64,
    },
    /// Shape and dtype ask for another number of bytes than `data_offsets` gives.
    SizeMismatch {
        /// The dtype.
        dtype: Dtype,
        /// The shape, shortened.
        shape: String,
        /// Bytes by shape and dtype.
        expected: u64,
        /// Bytes by `data_offsets`.
        found: u64,
        /// `data_offsets`.
        range: (u64, u64),
    },
    /// `data_offsets` ends before it begins.
    Reversed {
        /// The first number.
        begin: u64,
        /// The second, smaller.
        end: u64,
    },
    /// A tensor begins before the one in front of it has ended.
    Overlap {
        /// The tensor in front.
        other: String,
        /// That tensor's `data_offsets`.
        other_range: (u64, u64),
        /// Where this tensor should begin: data offset.
        expected: u64,
        /// Where it begins.
        found: u64,
        /// Whether this tensor has no bytes, so that it lies inside the other.
        empty: bool,
    },
    /// Bytes of the data section in front of a tensor that belong to none.
    Hole {
        /// The tensor before the hole, if there is one.
        previous: Option<String>,
        /// Where this tensor should begin: data offset.
        expected: u64,
        /// Where it begins.
        found: u64,
        /// Where it ends.
        end: u64,
    },
    /// The file ends before the last tensor does. [`Error::tensor`](super::Error::tensor) is the first incomplete one.
    Truncated {
        /// Bytes that the tensors need.
        expected: u64,
        /// Bytes of data that the file holds.
        found: u64,
        /// Whether the file was whole when it was opened, and lost bytes while it was mapped: it was
        /// cut, or cannot be read. Zeros may have been read instead.
        /// [`Error::tensor`](super::Error::tensor) is then the one that was asked for,
        /// [`Error::offset`](super::Error::offset) its first byte not to be trusted.
        mapped: bool,
    },
    /// The file goes on behind the last tensor.
    TrailingBytes {
        /// Bytes that the tensors need.
        expected: u64,
        /// Bytes of data that the file holds.
        found: u64,
    },
    /// A directory without a model.
    NoModel {
        /// What is in it instead, shortened.
        found: String,
    },
    /// A directory with several indexes, of which none is the model's more than another.
    SeveralIndexes {
        /// Their names, shortened.
        found: String,
    },
    /// An index over the cap.
    IndexTooLong {
        /// The cap in bytes.
        expected: u64,
        /// The index's length in bytes.
        found: u64,
    },
    /// A key of `weight_map` stands there twice, compared after unescaping.
    DuplicateEntry {
        /// File offset of the first.
        first: u64,
    },
    /// The name of a shard that could lead out of the model's directory, or nowhere.
    BadShardName {
        /// The name.
        found: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A shard that the index names is not there.
    MissingShard {
        /// How many tensors the index assigns to it.
        tensors: usize,
        /// Where a symbolic link in its place leads to.
        link: Option<PathBuf>,
    },
    /// The index assigns a tensor to a shard that does not hold it.
    StaleEntry {
        /// The shard by the index.
        expected: String,
        /// A shard that does hold it.
        found: Option<String>,
    },
    /// Two shards hold a tensor of one name, and no index says which counts.
    DuplicateInShards {
        /// The other shard; [`Error::path`](super::Error::path) is the later one.
        other: PathBuf,
        /// File offset of the name in the other.
        first: u64,
    },
    /// Several things are wrong with a set of files: [`Error::faults`](super::Error::faults).
    Faults {
        /// Each by itself, in the order of the shards.
        faults: Vec<super::Error>,
        /// How many more there are, which were only counted.
        more: usize,
        /// How many files there should be.
        shards: usize,
    },
    /// A tensor is there, but with another dtype or shape.
    NotAsExpected {
        /// What was asked for.
        expected: String,
        /// What the tensor has.
        found: String,
    },
    /// A checklist holds tensors that nobody asked for.
    NeverAskedFor {
        /// How many.
        tensors: usize,
        /// The first of them, shortened.
        names: String,
    },
    /// No tensor has this name.
    NotFound {
        /// The nearest name there is.
        nearest: Option<String>,
        /// How many tensors there are.
        among: usize,
    },
    /// The tensor's elements are of another type than was asked for.
    WrongDtype {
        /// What was asked for.
        expected: Cow<'static, str>,
        /// What the tensor has.
        found: Dtype,
    },
    /// The address of the tensor is no multiple of what the borrowed type needs.
    Misaligned {
        /// Bytes the address must be a multiple of.
        expected: usize,
        /// The largest power of two it is a multiple of.
        found: usize,
    },
    /// A typed borrow on a big-endian machine: the file's elements are little-endian.
    ForeignByteOrder,
    /// A buffer that does not hold exactly the elements asked for.
    WrongLength {
        /// Elements of the tensor.
        expected: usize,
        /// Elements of the buffer.
        found: usize,
    },
    /// The same of a buffer of bytes.
    WrongByteLength {
        /// Bytes of the part.
        expected: usize,
        /// Bytes of the buffer.
        found: usize,
    },
    /// An index that is not below the length of its axis.
    OutOfRange {
        /// The length.
        expected: u64,
        /// The index.
        found: u64,
    },
    /// A row was asked of a scalar.
    NoRows,
    /// An axis that the tensor does not have.
    NoSuchAxis {
        /// How many it has.
        expected: usize,
        /// Which was asked for, counted from 0.
        found: usize,
    },
    /// A range of an axis that ends behind it or before its own start, or goes in steps of 0.
    BadRange {
        /// The axis's length.
        dimension: u64,
        /// The first index.
        start: u64,
        /// The index behind the last.
        end: u64,
        /// The step.
        step: u64,
    },
    /// An axis that cannot be dealt out evenly.
    Uneven {
        /// Its length.
        dimension: u64,
        /// Among how many.
        world: u64,
    },
    /// A part of a tensor whose elements below 8 bits do not begin and end with a byte.
    SplitsByte {
        /// The dtype.
        dtype: Dtype,
    },
    /// The same, where the dtype is not known.
    PartOfByte,
    /// A byte of a BOOL tensor that is neither 0 nor 1.
    NotABool {
        /// The element.
        index: usize,
        /// The byte.
        found: u8,
    },
    /// What was said to be the size of a page is none.
    BadPageSize {
        /// The bytes.
        found: u64,
    },
    /// The pages of a tensor, or its copy, are more than one GPU buffer can be.
    BufferTooShort {
        /// Bytes of the longest buffer.
        expected: u64,
        /// Bytes that the tensor needs.
        found: u64,
    },
    /// The system has Metal, but no device for it.
    NoMetalDevice,
    /// Metal made no buffer: neither over the pages, nor with a copy of them.
    NoBuffer {
        /// Bytes of the buffer.
        expected: u64,
    },
    /// Metal refused `action` (a verb: compile, run …).
    Metal {
        /// What was tried.
        action: &'static str,
        /// What Metal said.
        message: String,
    },
    /// A tensor to be written has the name of another one.
    NameGivenTwice,
    /// A tensor to be written is called `__metadata__`.
    ReservedName,
    /// A tensor to be written was given other than the bytes that dtype and shape ask for.
    WrongDataLength {
        /// The dtype.
        dtype: Dtype,
        /// The shape, shortened.
        shape: String,
        /// Bytes by shape and dtype.
        expected: u64,
        /// Bytes that were given; where a callback gives too many, those up to its last word.
        found: u64,
    },
    /// The tensors to be written have more bytes than a `u64` counts.
    TooMuchData,
    /// Data cannot begin on a multiple of this.
    BadAlignment {
        /// What was asked for.
        found: u64,
    },
    /// A file does not hold what was written into it.
    NotAsWritten {
        /// The byte that was written.
        expected: u8,
        /// The byte that the file has.
        found: u8,
    },
    /// A key of `__metadata__` was to be removed that is not there.
    NoSuchKey {
        /// The key.
        key: String,
    },
    /// A changed header does not fit into the place of the old one.
    NoRoomInPlace {
        /// Bytes of the new header.
        expected: u64,
        /// Bytes of the old one, padding and all.
        found: u64,
    },
    /// A change in place did not end, and what it kept of the header is still there.
    LeftBackup {
        /// Where it is.
        backup: PathBuf,
        /// What it is, and how it is restored.
        advice: String,
    },
}

impl ErrorKind {
    /// Moves the offsets of a model that begins so many bytes into its file.
    pub(super) fn move_by(&mut self, bytes: u64) {
        use ErrorKind::*;
        if let DuplicateField { first, .. }
        | DuplicateTensor { first }
        | DuplicateMetadata { first }
        | DuplicateMetadataKey { first, .. } = self
        {
            *first = first.saturating_add(bytes);
        }
    }
}
