//! What went wrong, where, and with which numbers?
//!
//! Each layer adds only what it knows: the JSON reader a position, the header the tensor and an
//! excerpt of itself, the model the path.
//!
//! ```text
//!   w.safetensors: tensor `a`: `data_offsets`: `4.0` is not an unsigned integer, at offset 61 (header byte 53)
//!   └── path ───┘  └─ tensor ┘ └──────── kind, expected, found ───────────────┘ └─ so `xxd -s 61` agrees ──┘
//! ```
//!
//! Displaying an error gives one line without control characters, whatever the file holds;
//! [`Error::caret`] draws the place below it.

use super::dtype::Dtype;
use super::escape::{Brief, Shown};
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file was refused or a request could not be met. One pointer wide, `Send + Sync + 'static`.
pub struct Error(Box<Parts>);

struct Parts {
    kind: ErrorKind,
    place: Option<Place>,
    tensor: Option<String>,
    path: Option<PathBuf>,
    excerpt: Option<Excerpt>,
}

#[derive(Clone, Copy)]
enum Place {
    /// Bytes from the start of the file.
    File(u64),
    /// Bytes from the start of the header, which stands 8 bytes into the file.
    Header(u64),
}

/// A header starts behind its own length, a `u64`.
const HEADER_START: u64 = 8;

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
    /// The first bytes belong to something else: a Git LFS pointer, a zip, a pickle, a web page …
    Foreign {
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
    /// The bytes given to [`Header::parse`](super::Header::parse) end inside the header, though the
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
    /// A byte of the header that is not UTF-8.
    NotUtf8 {
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
    /// The file ends before the last tensor does. [`Error::tensor`] is the first incomplete one.
    Truncated {
        /// Bytes that the tensors need.
        expected: u64,
        /// Bytes of data that the file holds.
        found: u64,
    },
    /// The file goes on behind the last tensor.
    TrailingBytes {
        /// Bytes that the tensors need.
        expected: u64,
        /// Bytes of data that the file holds.
        found: u64,
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

impl Error {
    pub(super) fn new(kind: ErrorKind) -> Error {
        Error(Box::new(Parts { kind, place: None, tensor: None, path: None, excerpt: None }))
    }

    pub(super) fn io(action: &'static str, source: io::Error) -> Error {
        Error::new(ErrorKind::Io { action, source })
    }

    /// At a byte of the header, counted from the header's own start.
    pub(super) fn at_header(kind: ErrorKind, position: usize) -> Error {
        let mut error = Error::new(kind);
        error.0.place = Some(Place::Header(position as u64));
        error
    }

    /// At a byte of the file.
    pub(super) fn at_file(kind: ErrorKind, offset: u64) -> Error {
        let mut error = Error::new(kind);
        error.0.place = Some(Place::File(offset));
        error
    }

    /// The absolute file offset of a byte of the header.
    pub(super) fn offset_of(position: usize) -> u64 {
        HEADER_START + position as u64
    }

    pub(super) fn in_tensor(mut self, name: &str) -> Error {
        self.0.tensor.get_or_insert_with(|| name.to_owned());
        self
    }

    pub(super) fn in_file(mut self, path: &Path) -> Error {
        self.0.path.get_or_insert_with(|| path.to_owned());
        self
    }

    /// Keeps the surroundings of the place, if it lies in the header, for the caret.
    pub(super) fn with_excerpt_of(mut self, header: &[u8]) -> Error {
        if let Some(Place::Header(position)) = self.0.place {
            self.0.excerpt = Some(Excerpt::around(header, position as usize));
        }
        self
    }

    pub(super) fn header_position(&self) -> Option<usize> {
        match self.0.place {
            Some(Place::Header(position)) => Some(position as usize),
            _ => None,
        }
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Where: bytes from the start of the file. `None` if the failure has no place.
    pub fn offset(&self) -> Option<u64> {
        self.0.place.map(|place| match place {
            Place::File(offset) => offset,
            Place::Header(position) => HEADER_START + position,
        })
    }

    /// The tensor concerned, unescaped: show it through [`Shown`].
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// The file concerned; `None` for bytes that came from no file.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The place in the header, drawn in two lines; `None` if the failure lies elsewhere.
    ///
    /// ```text
    ///      47 | "F32","shape":[1],"data_offsets":[0,4.0]}}
    ///         |                                     ^
    /// ```
    ///
    /// The number is the absolute file offset of the first byte shown. What does not print in
    /// ASCII is shown as an escape. The bytes are the private copy's, not the file's of today.
    pub fn caret(&self) -> Option<String> {
        self.caret_within(usize::MAX)
    }

    /// The same in lines of at most so many columns, but at least 40.
    pub fn caret_within(&self, columns: usize) -> Option<String> {
        self.0.excerpt.as_ref().map(|excerpt| excerpt.draw(columns.max(40)))
    }
}

/// How many bytes of the header an error keeps.
const EXCERPT_BYTES: usize = 96;

struct Excerpt {
    /// Absolute file offset of the first byte.
    offset: u64,
    bytes: Vec<u8>,
    /// Which of the bytes the caret stands under; their number, if it stands behind the last.
    mark: usize,
}

impl Excerpt {
    fn around(header: &[u8], position: usize) -> Excerpt {
        let position = position.min(header.len());
        // Two thirds before the place: that is where the reader learns which field it is.
        let end = (position + EXCERPT_BYTES / 3).min(header.len());
        let start = position.saturating_sub(EXCERPT_BYTES * 2 / 3);
        Excerpt {
            offset: HEADER_START + start as u64,
            bytes: header[start..end].to_vec(),
            mark: position - start,
        }
    }

    fn draw(&self, columns: usize) -> String {
        /// Columns before the bytes: an offset of 8 digits and a bar.
        const MARGIN: usize = 11;
        let escaped = |byte: &u8| match byte {
            b'"' | b'\'' => char::from(*byte).to_string(),
            _ => byte.escape_ascii().to_string(),
        };
        let bytes: Vec<String> = self.bytes.iter().map(escaped).collect();
        // What does not fit is left out: behind the mark first, as long as a third remains there.
        let width = |range: Range<usize>| bytes[range].iter().map(String::len).sum::<usize>();
        let room = columns.saturating_sub(MARGIN);
        let (mut start, mut end) = (0, bytes.len());
        while width(start..end) > room {
            let behind = width(self.mark..end);
            match behind > room / 3 && end > self.mark + 1 || start == self.mark {
                true => end -= 1,
                false => start += 1,
            }
        }
        let before = bytes[start..self.mark].concat();
        let behind = bytes[self.mark..end.max(self.mark)].concat();
        let offset = self.offset + start as u64;
        format!(
            "{offset:>8} | {before}{behind}\n         | {:>width$}",
            '^',
            width = before.len() + 1
        )
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
            Foreign { found, promised, advice } => {
                write!(f, "{found}, not a safetensors file")?;
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
            NotUtf8 { found } => write!(f, "the header is not UTF-8: {}", Byte(*found)),
            Syntax { expected, found: Some(byte) } => {
                write!(f, "expected {expected}, found {}", Byte(*byte))
            }
            Syntax { expected, found: None } => {
                write!(f, "expected {expected}, found the end of the header")
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
            Truncated { expected, found } => {
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

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.path() {
            write!(f, "{}: ", Shown(&path.to_string_lossy()))?;
        }
        if let Some(tensor) = self.tensor() {
            write!(f, "tensor `{}`: ", Brief(tensor))?;
        }
        write!(f, "{}", self.kind())?;
        match self.0.place {
            Some(Place::File(offset)) => write!(f, ", at offset {offset}"),
            Some(Place::Header(position)) => {
                write!(f, ", at offset {} (header byte {position})", HEADER_START + position)
            }
            None => Ok(()),
        }
    }
}

/// As [`Display`]: a failed `unwrap` should say what a person can use.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_can_cross_threads_and_costs_a_pointer() {
        fn needs<T: Send + Sync + 'static>() {}
        needs::<Error>();
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn the_line_names_path_tensor_and_both_offsets() {
        let error = Error::at_header(ErrorKind::MissingField { expected: "shape" }, 30)
            .in_tensor("a\u{1b}")
            .in_file(Path::new("w.safetensors"));
        assert_eq!(
            error.to_string(),
            "w.safetensors: tensor `a\\u{1b}`: lacks the field `shape`, at offset 38 (header byte 30)"
        );
        assert_eq!((error.offset(), error.tensor()), (Some(38), Some("a\u{1b}")));
    }

    #[test]
    fn the_caret_stands_under_the_byte_also_behind_escapes_and_at_the_end() {
        let header = b"{\"\xff\n\":4.0}";
        let shown = r#"       8 | {"\xff\n":4.0}"#;
        for (position, caret) in [
            (0, r#"         | ^"#),
            (4, r#"         |         ^"#),
            (7, r#"         |            ^"#),
            (10, r#"         |               ^"#),
        ] {
            let error = Error::at_header(ErrorKind::NumberOutOfRange, position);
            let drawn = error.with_excerpt_of(header).caret().unwrap();
            assert_eq!(drawn, format!("{shown}\n{caret}"), "{position}");
        }
    }

    #[test]
    fn a_narrow_terminal_gets_less_around_the_same_place() {
        let header = vec![b'x'; 1_000];
        let error = Error::at_header(ErrorKind::NumberOutOfRange, 500).with_excerpt_of(&header);
        for columns in 40..130 {
            let drawn = error.caret_within(columns).unwrap();
            let (excerpt, caret) = drawn.split_once('\n').unwrap();
            assert!(excerpt.len() <= columns, "{columns}: {drawn}");
            // The number is the offset of the first byte shown, so the caret's place is its own.
            let first: usize = excerpt[..8].trim().parse().unwrap();
            assert_eq!(first + caret.find('^').unwrap() - 11, 508, "{columns}: {drawn}");
        }
    }

    #[test]
    fn an_excerpt_keeps_96_bytes_of_a_long_header() {
        let header = vec![b'x'; 10_000];
        let excerpt = Excerpt::around(&header, 5_000);
        assert_eq!(excerpt.bytes.len(), EXCERPT_BYTES);
        assert_eq!(excerpt.offset + excerpt.mark as u64, HEADER_START + 5_000);
    }
}
