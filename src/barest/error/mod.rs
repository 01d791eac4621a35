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

mod excerpt;
mod kind;
pub(super) mod reserve;
mod sentences;

pub use kind::ErrorKind;

use super::escape::{Brief, Shown};
use excerpt::Excerpt;
use std::fmt::{self, Display, Formatter};
use std::io;
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
    /// Bytes from the start of the header; and where that starts in the file: 8 bytes behind the
    /// start of the model, which mostly is the file's own.
    Header { start: u64, position: u64 },
}

/// A header starts behind its own length, a `u64`.
const HEADER_START: u64 = 8;

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
        error.0.place = Some(Place::Header { start: HEADER_START, position: position as u64 });
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
        if let Some(Place::Header { start, position }) = self.0.place {
            self.0.excerpt = Some(Excerpt::around(header, start, position as usize));
        }
        self
    }

    /// The same for a text that is no header but a file of its own: an index.
    pub(super) fn in_whole_text(mut self, text: &[u8]) -> Error {
        if let Some(Place::Header { position, .. }) = self.0.place {
            self.0.excerpt = Some(Excerpt::around(text, 0, position as usize));
            self.0.place = Some(Place::File(position));
        }
        self
    }

    /// The same failure of a model that begins so many bytes into its file: offsets count from the
    /// start of the file.
    pub(super) fn moved_by(mut self, bytes: u64) -> Error {
        let moved = |offset: u64| offset.saturating_add(bytes);
        self.0.kind.move_by(bytes);
        self.0.place = self.0.place.map(|place| match place {
            Place::File(offset) => Place::File(moved(offset)),
            Place::Header { start, position } => Place::Header { start: moved(start), position },
        });
        if let Some(excerpt) = &mut self.0.excerpt {
            excerpt.move_by(bytes);
        }
        self
    }

    pub(super) fn header_position(&self) -> Option<usize> {
        match self.0.place {
            Some(Place::Header { position, .. }) => Some(position as usize),
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
            Place::Header { start, position } => start + position,
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

    /// The failures that this one stands for, if it is [`Faults`](ErrorKind::Faults) of a set of
    /// files; otherwise itself alone.
    pub fn faults(&self) -> &[Error] {
        match self.kind() {
            ErrorKind::Faults { faults, .. } => faults,
            _ => std::slice::from_ref(self),
        }
    }

    /// The place in the header or index, drawn in two lines; `None` if the failure lies elsewhere.
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
            Some(Place::Header { start, position }) => {
                write!(f, ", at offset {} (header byte {position})", start + position)
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
            ErrorKind::Io { source, .. }
            | ErrorKind::Limit { source, .. }
            | ErrorKind::CannotBeMapped { source } => Some(source),
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
}
