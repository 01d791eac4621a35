//! How do bytes get into a file without first filling memory?
//!
//! ```text
//!   &[u8]      ──────────────▶ buffer, or straight if large ──write──▶ file
//!   callback   ──────────────▶ buffer                       ──write──▶ file
//!   mapped     ─────────────────────────────────copy_file_range──▶ file      nothing passes through
//!     or pread ──▶ buffer ──▶ buffer                        ──write──▶ file      this process
//! ```

use super::super::bytes::{Backing, read_exact_at};
use super::super::dtype::Dtype;
use super::super::error::reserve::{vector, zeros};
use super::super::error::{Error, ErrorKind, Result};
use super::super::sys;
use super::super::tensor::TensorView;
use super::plan::wrong_length;
use super::save::{Before, Step};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;

/// Bytes that are collected before they are written.
pub const BUFFER: usize = 1 << 20;

/// From here on a range is copied by the kernel: below, the call costs more than the copy.
const WORTH_A_CALL: u64 = 64 << 10;

/// Bytes of one request to the kernel to copy.
const AT_ONCE: u64 = 64 << 20;

/// Where the bytes of a tensor come from.
pub enum Source<'a> {
    Bytes(&'a [u8]),
    Stream(Box<Give<'a>>),
    View(TensorView<'a>),
}

/// A callback that writes the bytes of a tensor.
type Give<'a> = dyn FnMut(&mut dyn Write) -> io::Result<()> + 'a;

/// Where bytes go.
pub enum To<'p> {
    File(&'p File),
    Anything(&'p mut dyn Write),
}

/// Collects bytes and writes them.
pub struct Pipe<'p> {
    to: To<'p>,
    buffer: Vec<u8>,
    before: &'p mut Before,
}

/// Why the bytes of a tensor could not be written.
pub enum Failed {
    /// There were more or fewer than there should be.
    Count {
        expected: u64,
        found: u64,
    },
    Otherwise(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Otherwise(error)
    }
}

impl Failed {
    pub fn said_of(self, dtype: Dtype, shape: &[u64]) -> Error {
        match self {
            Failed::Otherwise(error) => error,
            Failed::Count { expected, found } => {
                Error::new(wrong_length(dtype, shape, expected, found))
            }
        }
    }
}

impl Source<'_> {
    /// Bytes that there will be, if that is known.
    pub fn len(&self) -> Option<u64> {
        match self {
            Source::Bytes(bytes) => Some(bytes.len() as u64),
            Source::View(view) => Some(view.byte_len() as u64),
            Source::Stream(_) => None,
        }
    }

    /// Writes exactly `expected` bytes.
    pub fn pour(&mut self, expected: u64, pipe: &mut Pipe<'_>) -> std::result::Result<(), Failed> {
        match self {
            Source::Bytes(bytes) => Ok(pipe.put(bytes)?),
            Source::View(view) => Ok(pipe.view(view)?),
            Source::Stream(give) => {
                let mut counted = Counted { pipe, expected, found: 0, failed: None };
                let given = give(&mut counted);
                let Counted { found, failed, .. } = counted;
                match (failed, given) {
                    // What we could not write, whatever the callback made of it.
                    (Some(error), _) => Err(error.into()),
                    _ if found > expected => Err(Failed::Count { expected, found }),
                    (None, Err(error)) => {
                        Err(Error::io("get the bytes of the tensor", error).into())
                    }
                    (None, Ok(())) if found < expected => Err(Failed::Count { expected, found }),
                    (None, Ok(())) => Ok(()),
                }
            }
        }
    }
}

impl<'p> Pipe<'p> {
    pub fn new(to: To<'p>, before: &'p mut Before) -> Result<Pipe<'p>> {
        Ok(Pipe { to, buffer: vector(BUFFER)?, before })
    }

    /// The next bytes.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > BUFFER - self.buffer.len() {
            self.flush()?;
        }
        if bytes.len() < BUFFER {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.write(bytes)
    }

    /// What is still in the buffer.
    pub fn finish(&mut self) -> Result<()> {
        self.flush()?;
        match &mut self.to {
            To::File(_) => Ok(()),
            To::Anything(to) => to.flush().map_err(cannot_write),
        }
    }

    fn flush(&mut self) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let outcome = match buffer.is_empty() {
            true => Ok(()),
            false => self.write(&buffer),
        };
        buffer.clear();
        self.buffer = buffer;
        outcome
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut steps = || {
            (self.before)(Step::Write)?;
            match &mut self.to {
                To::File(file) => file.write_all(bytes),
                To::Anything(to) => to.write_all(bytes),
            }
        };
        steps().map_err(cannot_write)
    }

    /// The bytes of a tensor of a model.
    fn view(&mut self, view: &TensorView<'_>) -> Result<()> {
        let shard = view.shard;
        match (shard.file(), shard.backing()) {
            // Only of a mapped file are the file's bytes of today those that the view shows.
            (Some(file), Backing::Mapped) if view.byte_len() as u64 >= WORTH_A_CALL => {
                self.range(file, view.file_range())
            }
            _ => self.put(view.bytes()),
        }
    }

    /// A range of a file.
    pub fn range(&mut self, file: &File, range: Range<u64>) -> Result<()> {
        let mut at = range.start;
        if let To::File(to) = self.to {
            self.flush()?;
            while at < range.end {
                (self.before)(Step::Write).map_err(cannot_write)?;
                let len = (range.end - at).min(AT_ONCE) as usize;
                match sys::copy_range(file, at, to, len) {
                    // Neither says what is wrong; reading or writing will.
                    Ok(0) | Err(_) => break,
                    Ok(copied) => at += copied as u64,
                }
            }
        }
        let mut buffer: Vec<u8> = zeros((range.end - at).min(BUFFER as u64) as usize)?;
        while at < range.end {
            let piece = (range.end - at).min(BUFFER as u64) as usize;
            read_exact_at(file, &mut buffer[..piece], at)?;
            self.put(&buffer[..piece])?;
            at += piece as u64;
        }
        Ok(())
    }
}

fn cannot_write(error: io::Error) -> Error {
    Error::new(ErrorKind::Io { action: "write", source: error })
}

/// What a callback writes into: lets through what there is room for, and counts the rest.
struct Counted<'c, 'p> {
    pipe: &'c mut Pipe<'p>,
    expected: u64,
    found: u64,
    failed: Option<Error>,
}

impl Write for Counted<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed.is_some() {
            return Err(io::Error::other("an earlier write failed"));
        }
        self.found = self.found.saturating_add(bytes.len() as u64);
        if self.found > self.expected {
            return Err(io::Error::other("more bytes than dtype and shape ask for"));
        }
        match self.pipe.put(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                let told = io::Error::other(error.to_string());
                self.failed = Some(error);
                Err(told)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
