//! What can go wrong, and how is it said?
//!
//! Each kind has the numbers that a person needs, and one sentence without control characters.

use super::super::dtype::Dtype;
use super::super::escape::{Brief, Shown};
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
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

/// A byte as a message shows it.
struct Byte(u8);

impl Display for Byte {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            printable @ b'!'..=b'~' => write!(f, "`{}`", printable as char),
            b' ' => f.write_str("a space"),
            other => write!(f, "byte 0x{other:02x}"),
        }
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

impl Display for ErrorKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        use ErrorKind::*;
        match self {
            Io { action, source } => write!(f, "cannot {action}: {source}"),
            Limit { action, source, what, limit, advice } => write!(
                f,
                "cannot {action}: {source}: this process may have {limit} {what} ({advice})"
            ),
            CannotBeMapped { source } => write!(
                f,
                "files of this file system cannot be mapped ({source}): read it instead, as open does"
            ),
            WouldNotFit { need, have, limit } => write!(
                f,
                "does not fit: {need} bytes are not in memory yet, {have} bytes are the {limit}"
            ),
            NotFileBacked => f.write_str(
                "its pages were read, not mapped: no file is behind them, and dropped they would be lost",
            ),
            Cancelled => f.write_str("cancelled"),
            NotAFile { found } => write!(f, "not a regular file but {found}"),
            Unsupported { action } => write!(f, "this system cannot {action}"),
            DoesNotFit { expected, found } => write!(
                f,
                "{found} bytes do not fit the address space: this machine takes {expected} at most"
            ),
            Shrank { expected, found } => write!(
                f,
                "the file ended early, as if it had been cut meanwhile: expected {expected} bytes, found {found}"
            ),
            Changed { what, expected, found } => write!(
                f,
                "the file changed since it was opened: {what}, expected {expected}, found {found}"
            ),
            NotImmutable { found } => write!(
                f,
                "the kernel does not vouch for its bytes: {found} (a read-only mount or an immutable flag does not count: root can undo it)"
            ),
            DanglingLink { target } => write!(
                f,
                "a symbolic link to {}, which is not there",
                Shown(&target.to_string_lossy())
            ),
            RangeBeyondFile { expected, found } => write!(
                f,
                "the part asked for is none of the file: expected an end between its own start and {expected}, found {found}"
            ),
            Foreign { expected, found, promised, advice } => {
                write!(f, "{found}, not {expected}")?;
                if let Some(size) = promised {
                    write!(f, " (it stands for one of {size} bytes)")?;
                }
                write!(f, ": {advice}")
            }
            TooShort { expected, found } => write!(
                f,
                "too small: expected at least {expected} bytes (8 of header length and `{{}}`), found {found}"
            ),
            PrefixTooShort { expected, found } => write!(
                f,
                "the first bytes of the file do not reach the end of its header: expected {expected}, found {found}"
            ),
            NoHeader => f.write_str(
                "header length is 0: the file begins with zero bytes (preallocated and never filled, or damaged)",
            ),
            HeaderTooLong { expected, found } => write!(
                f,
                "header length too large: {found} bytes, the cap is {expected} (OpenOptions::header_cap raises it)"
            ),
            HeaderCut { expected, found } => write!(
                f,
                "header cut short: its length is {expected} bytes, {found} follow (an incomplete download?)"
            ),
            NotUtf8 { what, found } => write!(f, "the {what} is not UTF-8: {}", Byte(*found)),
            Syntax { expected, found: Some(byte) } => {
                write!(f, "expected {expected}, found {}", Byte(*byte))
            }
            Syntax { expected, found: None } => {
                write!(f, "expected {expected}, found the end of the text")
            }
            WrongType { what, expected, found } => {
                write!(f, "{what} must be {expected}, found {found}")
            }
            NotAnInteger { field, found } => write!(
                f,
                "`{field}`: {found} is not an unsigned integer (digits only, below 2^64)"
            ),
            NotTwoOffsets { found } => {
                let more = if *found > 2 { " or more" } else { "" };
                write!(f, "`data_offsets` must be exactly two numbers, found {found}{more}")
            }
            UnknownDtype { found } => {
                write!(f, "unknown dtype `{}`; known are", Brief(found))?;
                Dtype::ALL.iter().try_for_each(|dtype| write!(f, " {dtype}"))
            }
            MissingField { expected } => write!(f, "lacks the field `{expected}`"),
            DuplicateField { field, first } => {
                write!(f, "duplicate field `{field}`, first at {first}, again")
            }
            DuplicateTensor { first } => {
                write!(f, "duplicate tensor name, first at {first}, again")
            }
            DuplicateMetadata { first } => {
                write!(f, "duplicate `__metadata__`, first at {first}, again")
            }
            DuplicateMetadataKey { key, first } => write!(
                f,
                "duplicate key `{}` in `__metadata__`, first at {first}, again",
                Brief(key)
            ),
            TooDeep { expected } => {
                write!(f, "nested too deep: more than {expected} arrays and objects")
            }
            NumberOutOfRange => f.write_str("a number beyond the range of f64"),
            Overflow { dtype, shape } => {
                write!(f, "the bits of {dtype} {shape} are more than 64 bits can count")
            }
            PartialByte { dtype, shape, found } => {
                write!(f, "{dtype} {shape} has {found} bits, not a whole number of bytes")
            }
            SizeMismatch { dtype, shape, expected, found, range: (begin, end) } => write!(
                f,
                "{dtype} {shape} needs {expected} byte{}, data_offsets [{begin},{end}] give {found}",
                plural(*expected)
            ),
            Reversed { begin, end } => {
                write!(f, "data_offsets [{begin},{end}]: begin {begin} is after end {end}")
            }
            Overlap { other, other_range: (begin, end), found, empty: true, .. } => write!(
                f,
                "empty tensor at data offset {found} lies inside `{}` ({begin}..{end})",
                Brief(other)
            ),
            Overlap { other, other_range: (begin, end), expected, found, .. } => write!(
                f,
                "tensors overlap: expected to begin at data offset {expected}, found {found}, inside `{}` ({begin}..{end})",
                Brief(other)
            ),
            Hole { previous, expected, found, end } => {
                write!(
                    f,
                    "expected to begin at data offset {expected}, found data_offsets [{found},{end}]: "
                )?;
                let unused = found.saturating_sub(*expected);
                write!(f, "{unused} unused byte{} ", plural(unused))?;
                match previous {
                    Some(name) => write!(f, "after `{}`", Brief(name)),
                    None => f.write_str("before it"),
                }
            }
            Truncated { expected, found, mapped: true } => write!(
                f,
                "the file lost bytes while it was mapped (cut short, or unreadable): expected {expected} bytes of data, found {found}"
            ),
            Truncated { expected, found, mapped: false } => {
                let missing = expected.saturating_sub(*found);
                write!(
                    f,
                    "file cut short, this is the first incomplete tensor: expected {expected} bytes of data, found {found}, {missing} byte{} missing",
                    plural(missing)
                )
            }
            TrailingBytes { expected, found } => {
                let extra = found.saturating_sub(*expected);
                write!(
                    f,
                    "{extra} byte{} after the last tensor: expected {expected} bytes of data, found {found}",
                    plural(extra)
                )
            }
            NoModel { found } => write!(
                f,
                "no .safetensors file and no index in this directory, which holds {found}"
            ),
            SeveralIndexes { found } => {
                write!(f, "several indexes in this directory, open one of them: {found}")
            }
            IndexTooLong { expected, found } => write!(
                f,
                "index too large: {found} bytes, the cap is {expected} (OpenOptions::header_cap raises it)"
            ),
            DuplicateEntry { first } => {
                write!(f, "duplicate entry in `weight_map`, first at {first}, again")
            }
            BadShardName { found, why } => {
                write!(f, "`weight_map` names the shard `{}`, {why}", Brief(found))
            }
            MissingShard { tensors, link } => {
                write!(f, "shard missing")?;
                if let Some(target) = link {
                    let target = target.to_string_lossy();
                    write!(f, " (a symbolic link to {}, which is not there)", Shown(&target))?;
                }
                let count = *tensors as u64;
                write!(f, ": the index assigns {count} tensor{} to it", plural(count))
            }
            StaleEntry { expected, found } => {
                write!(f, "the index assigns it to {}, which does not hold it", Brief(expected))?;
                match found {
                    Some(holder) => write!(f, "; {} does", Brief(holder)),
                    None => f.write_str("; no shard does"),
                }
            }
            DuplicateInShards { other, first } => write!(
                f,
                "duplicate tensor name, in {} at {first} and here",
                Shown(&other.to_string_lossy())
            ),
            Faults { faults, more, .. } => {
                const SHOWN: usize = 3;
                write!(f, "{} faults", faults.len() + more)?;
                for (number, fault) in faults.iter().take(SHOWN).enumerate() {
                    write!(f, "{}{fault}", if number == 0 { ": " } else { "; " })?;
                }
                match (faults.len() + more).saturating_sub(SHOWN) {
                    0 => Ok(()),
                    rest => write!(f, "; and {rest} more"),
                }
            }
            NotAsExpected { expected, found } => write!(f, "expected {expected}, found {found}"),
            NeverAskedFor { tensors, names } => {
                let count = *tensors as u64;
                write!(f, "{count} tensor{} never asked for: {names}", plural(count))
            }
            NotFound { nearest, among } => {
                write!(f, "no such tensor among {among}")?;
                match nearest {
                    Some(name) => write!(f, "; the nearest name is `{}`", Brief(name)),
                    None => Ok(()),
                }
            }
            WrongDtype { expected, found } => {
                write!(f, "expected elements of {expected}, found {found}")
            }
            Misaligned { expected, found } => write!(
                f,
                "misaligned: a typed borrow needs an address that is a multiple of {expected}, found one of {found} (chunks and element views take any)"
            ),
            ForeignByteOrder => f.write_str(
                "elements are little-endian and this machine is not: read them with chunks or an element view",
            ),
            WrongLength { expected, found } => {
                write!(f, "expected a buffer of {expected} elements, found {found}")
            }
            WrongByteLength { expected, found } => {
                write!(f, "expected a buffer of {expected} bytes, found {found}")
            }
            OutOfRange { expected, found } => {
                write!(f, "index out of range: expected one below {expected}, found {found}")
            }
            NoRows => f.write_str("it has no rows: it is a scalar, of shape []"),
            NoSuchAxis { expected, found } => {
                write!(f, "there is no axis {found}: the tensor has {expected}, counted from 0")
            }
            BadRange { dimension, start, end, step } => write!(
                f,
                "the range {start}..{end} in steps of {step} is none of an axis of {dimension}"
            ),
            Uneven { dimension, world } => {
                write!(f, "an axis of {dimension} cannot be dealt out evenly among {world}")
            }
            SplitsByte { dtype } => write!(
                f,
                "elements of {dtype} share bytes, and this part would begin or end within one"
            ),
            PartOfByte => f.write_str("this part would begin or end within a byte"),
            NotABool { index, found } => {
                write!(f, "element {index} is no truth value: expected 0 or 1, found {found}")
            }
        }
    }
}
