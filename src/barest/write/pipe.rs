//! How do bytes get into a file without first filling memory?
//!
//! ```text
//!   &[u8]      ──────────────▶ buffer, or straight if large ──write──▶ file
//!   callback   ──────────────▶ buffer                       ──write──▶ file
//!   mapped     ──whole pages───────────────────────copy_file_range──▶ file      not through us
//!     else     ──pread──────▶ buffer                       ──write──▶ file
//! ```

use super::super::bytes::{Backing, read_exact_at};
use super::super::dtype::Dtype;
use super::super::error::reserve::zeros;
use super::super::error::{Error, ErrorKind, Result};
use super::super::sys;
use super::super::tensor::TensorView;
use super::plan::wrong_length;
use super::save::{Before, Step};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// Bytes that are collected before they are written.
pub const BUFFER: usize = 1 << 20;

/// From here on a range is copied by the kernel: below, the call costs more than the copy.
const WORTH_A_CALL: u64 = 256 << 10;

/// Bytes of one request to the kernel to copy or to write: so often progress is told.
const AT_ONCE: u64 = 16 << 20;

/// Where the bytes of a tensor come from.
pub enum Source<'a> {
    Bytes(&'a [u8]),
    Stream(Box<Give<'a>>),
    View(TensorView<'a>),
}

/// What is said to have failed when a write has.
const WRITE: &str = "write";

/// A callback that writes the bytes of a tensor.
type Give<'a> = dyn FnMut(&mut dyn Write) -> io::Result<()> + 'a;

/// Where bytes go.
pub enum To<'t> {
    File(&'t File),
    /// Nowhere: they should be what this file holds.
    Against(&'t File),
    Anything(&'t mut dyn Write),
}

/// Collects bytes and writes them.
pub struct Pipe<'p, 't> {
    to: To<'t>,
    /// Of these bytes the first `filled` wait to be written.
    buffer: Vec<u8>,
    filled: usize,
    /// Bytes that were written: the position in the file.
    done: u64,
    before: &'p mut Before,
    tell: &'p mut dyn FnMut(u64),
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
    /// The error, of the tensor if it is to blame. That a write failed is not its fault, nor need
    /// they be its bytes: those before it may have waited in the buffer.
    pub fn said_of(self, name: &str, dtype: Dtype, shape: &[u64]) -> Error {
        match self {
            Failed::Count { expected, found } => {
                Error::new(wrong_length(dtype, shape, expected, found)).in_tensor(name)
            }
            Failed::Otherwise(error) => match error.kind() {
                ErrorKind::Io { action: WRITE, .. } => error,
                _ => error.in_tensor(name),
            },
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
    pub fn pour(
        &mut self,
        expected: u64,
        pipe: &mut Pipe<'_, '_>,
    ) -> std::result::Result<(), Failed> {
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

impl<'p, 't> Pipe<'p, 't> {
    /// For `len` bytes. `tell` is told now and then how many of them went through.
    pub fn new(
        to: To<'t>,
        len: u64,
        before: &'p mut Before,
        tell: &'p mut dyn FnMut(u64),
    ) -> Result<Pipe<'p, 't>> {
        let buffer = zeros(len.clamp(1, BUFFER as u64) as usize)?;
        Ok(Pipe { to, buffer, filled: 0, done: 0, before, tell })
    }

    /// The next bytes. What is written at once is a whole buffer, or more of them: files like it if
    /// writes end where pages do.
    pub fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        if self.filled > 0 {
            let (head, tail) = bytes.split_at(bytes.len().min(self.buffer.len() - self.filled));
            self.keep(head);
            bytes = tail;
            if self.filled < self.buffer.len() {
                return Ok(());
            }
            self.flush()?;
        }
        let (whole, rest) = bytes.split_at(bytes.len() - bytes.len() % self.buffer.len());
        whole.chunks(AT_ONCE as usize).try_for_each(|piece| self.write(piece))?;
        self.keep(rest);
        self.settle()
    }

    /// What is compared is compared at once: an error names the tensor whose turn it is.
    fn settle(&mut self) -> Result<()> {
        if matches!(self.to, To::Against(_)) { self.flush() } else { Ok(()) }
    }

    /// Puts bytes for which there is room into the buffer.
    fn keep(&mut self, bytes: &[u8]) {
        self.buffer[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    /// What is still in the buffer.
    pub fn finish(&mut self) -> Result<()> {
        self.flush()?;
        match &mut self.to {
            To::File(_) | To::Against(_) => Ok(()),
            To::Anything(to) => to.flush().map_err(cannot_write),
        }
    }

    fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let filled = std::mem::take(&mut self.filled);
        let outcome = match filled {
            0 => Ok(()),
            _ => self.write(&buffer[..filled]),
        };
        self.buffer = buffer;
        outcome
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let To::Against(file) = self.to {
            compare(file, self.done, bytes)?;
        } else {
            let written = (self.before)(Step::Write).and_then(|()| match &mut self.to {
                To::File(file) | To::Against(file) => file.write_all(bytes),
                To::Anything(to) => to.write_all(bytes),
            });
            written.map_err(cannot_write)?;
        }
        self.advance(bytes.len() as u64);
        Ok(())
    }

    fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        (self.tell)(self.done);
    }

    /// The bytes of a tensor of a model.
    fn view(&mut self, view: &TensorView<'_>) -> Result<()> {
        let shard = view.shard;
        match (shard.file(), shard.backing()) {
            // Only of a mapped file are the file's bytes of today those that the view shows.
            (Some(file), Backing::Mapped) => self.range(file, view.file_range(), shard.path()),
            _ => self.put(view.bytes()),
        }
    }

    /// A range of a file; what cannot be read is said of `path`. The kernel copies whole pages, if they will be whole pages there too: where
    /// they would straddle, memory is the faster way, and no file system could share them.
    pub fn range(&mut self, file: &File, range: Range<u64>, path: Option<&Path>) -> Result<()> {
        let Range { start: mut at, end } = range;
        let page = sys::page_size() as u64;
        let position = self.done + self.filled as u64;
        if let To::File(to) = self.to {
            if end - at >= WORTH_A_CALL && position % page == at % page {
                let boundary = at.next_multiple_of(page);
                self.through_memory(file, at..boundary, path)?;
                self.flush()?;
                at = boundary;
                while end - at >= page {
                    (self.before)(Step::Write).map_err(cannot_write)?;
                    let len = (end - at).min(AT_ONCE);
                    match sys::copy_range(file, at, to, (len - len % page) as usize) {
                        // Neither says what is wrong; reading or writing will.
                        Ok(0) | Err(_) => break,
                        Ok(copied) => {
                            at += copied as u64;
                            self.advance(copied as u64);
                        }
                    }
                }
            }
        }
        self.through_memory(file, at..end, path)
    }

    fn through_memory(
        &mut self,
        file: &File,
        range: Range<u64>,
        path: Option<&Path>,
    ) -> Result<()> {
        let Range { start: mut at, end } = range;
        while at < end {
            let room = (self.buffer.len() - self.filled) as u64;
            let piece = (end - at).min(room) as usize;
            let room = &mut self.buffer[self.filled..self.filled + piece];
            read_exact_at(file, room, at).map_err(|error| match path {
                Some(path) => error.in_file(path),
                None => error,
            })?;
            self.filled += piece;
            at += piece as u64;
            if self.filled == self.buffer.len() {
                self.flush()?;
            }
        }
        self.settle()
    }
}

/// Fails if a file does not hold these bytes there.
fn compare(file: &File, mut at: u64, bytes: &[u8]) -> Result<()> {
    let mut found = zeros(bytes.len().min(BUFFER))?;
    for expected in bytes.chunks(BUFFER) {
        let found = &mut found[..expected.len()];
        read_exact_at(file, found, at)?;
        if let Some(place) = (0..expected.len()).find(|&place| found[place] != expected[place]) {
            let (expected, found) = (expected[place], found[place]);
            let kind = ErrorKind::NotAsWritten { expected, found };
            return Err(Error::at_file(kind, at + place as u64));
        }
        at += expected.len() as u64;
    }
    Ok(())
}

fn cannot_write(error: io::Error) -> Error {
    Error::io(WRITE, error)
}

/// What a callback writes into: lets through what there is room for, and counts the rest.
struct Counted<'c, 'p, 't> {
    pipe: &'c mut Pipe<'p, 't>,
    expected: u64,
    found: u64,
    failed: Option<Error>,
}

impl Write for Counted<'_, '_, '_> {
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
