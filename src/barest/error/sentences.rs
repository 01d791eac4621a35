//! How is each kind of failure said?
//!
//! In one sentence without control characters, whatever a file holds: the cause first, then the
//! numbers, then what can be done if that is known.

use super::super::dtype::Dtype;
use super::super::escape::{Brief, Shown};
use super::ErrorKind;
use std::fmt::{self, Display, Formatter};

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
            BadPageSize { found } => write!(
                f,
                "a page has no {found} byte{}: expected a power of two from 4096 on",
                plural(*found)
            ),
            BufferTooShort { expected, found } => write!(
                f,
                "one GPU buffer can have {expected} bytes, and the pages of this tensor, or its copy, need {found}"
            ),
            NoMetalDevice => f.write_str(
                "there is no Metal device (over ssh, in a sandbox and in virtual machines there may be none)",
            ),
            NoBuffer { expected } => {
                write!(f, "Metal made no buffer of {expected} bytes (out of memory?)")
            }
            Metal { action, message } => {
                write!(f, "Metal cannot {action}: {}", Shown(message))
            }
            NameGivenTwice => f.write_str("another tensor of this name is to be written too"),
            ReservedName => f.write_str(
                "no tensor can have this name: a reader would take it for the metadata",
            ),
            WrongDataLength { dtype, shape, expected, found } => write!(
                f,
                "{dtype} {shape} needs {expected} byte{}, {found} were given",
                plural(*expected)
            ),
            TooMuchData => f.write_str("together the tensors have more bytes than 64 bits can count"),
            BadAlignment { found } => {
                write!(f, "data cannot be aligned to {found} bytes: expected a power of two")
            }
            NotAsWritten { expected, found } => write!(
                f,
                "the file does not hold what was written: expected byte 0x{expected:02x}, found 0x{found:02x}"
            ),
            NoSuchKey { key } => write!(f, "`__metadata__` has no key `{}`", Brief(key)),
            NoRoomInPlace { expected, found } => write!(
                f,
                "the new header does not fit in place: it needs {expected} bytes, the old one has {found} with its padding (without in-place the file is written anew)"
            ),
            LeftBackup { advice, .. } => write!(f, "a change of it did not end: {advice}"),
        }
    }
}
