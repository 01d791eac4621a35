//! How is a header read from something that has no length: a pipe, a download?
//!
//! As far as it goes and not a byte further. Memory grows with what came, not with what the first
//! 8 bytes claim.

use super::super::error::reserve::no_memory;
use super::super::error::{Error, ErrorKind, Result};
use super::super::looks_like;
use super::{DEFAULT_HEADER_CAP, Header, PREFIX, header_len, or_foreign};
use std::io::{self, Read};

/// How much is asked for at a time.
const PIECE: usize = 64 << 10;

impl Header {
    /// Reads and proves a header from a stream, and leaves the stream where the data begins. What
    /// cannot be known here is not proved: that the stream goes on for as long as the tensors say,
    /// and ends there.
    ///
    /// Fails as [`Header::parse`] does, with [`HeaderCut`](ErrorKind::HeaderCut) if the stream ends
    /// inside the header, and with [`Io`](ErrorKind::Io). A stream that is refused may have been
    /// read up to 4096 bytes further, to see what it is instead.
    pub fn read_from(stream: &mut impl Read) -> Result<Header> {
        let mut first = Vec::new();
        take(stream, &mut first, PREFIX)?;
        let known = if first.len() < PREFIX { first.len() as u64 } else { u64::MAX };
        let len = match header_len(&first, known, DEFAULT_HEADER_CAP) {
            Ok(len) => len,
            Err(refused) => {
                take(stream, &mut first, looks_like::ENOUGH - PREFIX)?;
                return Err(or_foreign(refused, &first));
            }
        };
        let mut copy = Vec::new();
        take(stream, &mut copy, len)?;
        if copy.len() < len {
            let (expected, found) = (len as u64, copy.len() as u64);
            return Err(Error::at_file(ErrorKind::HeaderCut { expected, found }, 0));
        }
        Header::from_copy(copy, None)
    }
}

/// Appends the next `len` bytes of a stream, or all that come.
fn take(stream: &mut impl Read, bytes: &mut Vec<u8>, len: usize) -> Result<()> {
    let mut filled = bytes.len();
    let end = filled + len;
    while filled < end {
        // A piece is made once, in however many bits it comes.
        if filled == bytes.len() {
            let piece = PIECE.min(end - filled);
            bytes.try_reserve(piece).map_err(|_| no_memory())?;
            bytes.resize(filled + piece, 0);
        }
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled = bytes.len().min(filled + count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read", error)),
        }
    }
    bytes.truncate(filled);
    Ok(())
}
