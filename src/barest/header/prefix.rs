//! How long is the header, and can it be that long?
//!
//! The first 8 bytes say so, little-endian, and nothing is allocated before the number was held
//! against the cap and the file. The data section starts at 8 + N exactly; a header that wants to
//! be padded is padded inside N.

use super::super::error::{Error, ErrorKind, Result};
use super::super::looks_like;

/// Header length in bytes up to which a file is accepted by default: the reference's, decimal,
/// inclusive.
pub const DEFAULT_HEADER_CAP: u32 = 100_000_000;

/// Bytes of the header length: where the header starts.
pub const PREFIX: usize = 8;

/// Bytes of the smallest model: a length and `{}`.
const SMALLEST: u64 = 10;

/// The header's length in bytes, from the first bytes of a file of `file_len` bytes.
pub fn header_len(first: &[u8], file_len: u64, cap: u32) -> Result<usize> {
    if file_len < PREFIX as u64 {
        return Err(Error::new(ErrorKind::TooShort { expected: SMALLEST, found: file_len }));
    }
    let Some(&prefix) = first.first_chunk::<PREFIX>() else {
        let (expected, found) = (PREFIX as u64, first.len() as u64);
        return Err(Error::new(ErrorKind::PrefixTooShort { expected, found }));
    };
    let len = u64::from_le_bytes(prefix);
    let follow = file_len - PREFIX as u64;
    let refused = if len == 0 {
        ErrorKind::NoHeader
    } else if len > u64::from(cap) {
        ErrorKind::HeaderTooLong { expected: u64::from(cap), found: len }
    } else if len > follow {
        ErrorKind::HeaderCut { expected: len, found: follow }
    } else {
        // At most the cap, which has 32 bits.
        return Ok(len as usize);
    };
    Err(Error::at_file(refused, 0))
}

/// The same error, or a better one if the file's first bytes belong to something else. For
/// failures at the very beginning alone: there a mark tells more than the number it makes.
pub fn or_foreign(error: Error, first: &[u8]) -> Error {
    match looks_like::identify(first) {
        None => error,
        Some(foreign) => foreign.instead_of("a safetensors file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_held_against_the_cap_and_the_file() {
        let cap = 100_000_000;
        for (len, file_len, message) in [
            (0, 64, Some("header length is 0")),
            (2, 10, None),
            (2, 9, Some("its length is 2 bytes, 1 follow")),
            (100_000_000, 100_000_008, None),
            (100_000_000, 100_000_007, Some("header cut short")),
            (100_000_001, u64::MAX, Some("the cap is 100000000")),
            (u64::MAX, u64::MAX, Some("header length too large")),
            (u64::MAX - 7, 64, Some("header length too large")),
            // In 32 bits it would be 2.
            ((1 << 32) + 2, 10, Some("4294967298")),
        ] {
            let outcome = header_len(&u64::to_le_bytes(len), file_len, cap);
            match (outcome, message) {
                (Ok(found), None) => assert_eq!(found as u64, len),
                (Err(error), Some(message)) => {
                    assert!(error.to_string().contains(message), "{error}");
                }
                (outcome, _) => panic!("{len} in {file_len}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn fewer_than_8_bytes_are_too_small() {
        for len in 0..8 {
            let error = header_len(&[b'x'; 7][..len], len as u64, 100).unwrap_err();
            assert!(error.to_string().contains(&format!("found {len}")), "{error}");
        }
    }

    #[test]
    fn a_raised_cap_is_inclusive_up_to_32_bits() {
        let longest = u64::from(u32::MAX);
        let first = longest.to_le_bytes();
        assert!(header_len(&first, u64::MAX, u32::MAX).is_ok());
        assert!(header_len(&(longest + 1).to_le_bytes(), u64::MAX, u32::MAX).is_err());
    }
}
