//! Do the tensors tile the data section, each with the bytes its shape promises?
//!
//! ```text
//!   data offset   0        8    8        20             32
//!                 ├── a ───┼ e ┼── b ────┼───── c ──────┤   8 + N + 32 = length of the file
//!                 F32 [2]   [0] U8 [12]   F32 [3]
//! ```
//!
//! In the order of their offsets, each begins where the one before it ended, the first at 0; the
//! last ends where the file does. So no byte belongs to two tensors and none to no tensor: there is
//! no room to hide anything in, and a view that was proved here can never leave the file. An empty
//! tensor begins where it ends: it stands between two others, or at either end.

use super::super::error::{Error, ErrorKind, Result};
use super::super::escape::Shape;
use super::strings::Strings;
use super::{PREFIX, Record};

/// What the proof is about.
pub struct Claim<'a> {
    pub strings: &'a Strings,
    pub dims: &'a [u64],
    /// Bytes of the file; `None` if its end is not known, and then not part of the claim.
    pub file_len: Option<u64>,
}

/// Proves the claim for sorted records, and gives the length of the data section.
pub fn prove(records: &[Record], claim: &Claim<'_>) -> Result<u64> {
    // 1. Each tensor by itself: the bytes that shape and dtype ask for.
    // 2. Each tensor behind the one before it.
    let mut end = 0;
    for (number, record) in records.iter().enumerate() {
        let shape = claim.shape(record);
        let expected = byte_len(record, shape).map_err(|kind| claim.error(kind, record))?;
        let (begin, after) = (record.begin, record.end);
        if after < begin {
            return Err(claim.error(ErrorKind::Reversed { begin, end: after }, record));
        }
        if after - begin != expected {
            let kind = ErrorKind::SizeMismatch {
                dtype: record.dtype,
                shape: Shape(shape).to_string(),
                expected,
                found: after - begin,
                range: (begin, after),
            };
            return Err(claim.error(kind, record));
        }
        if begin != end {
            let previous = number.checked_sub(1).map(|previous| &records[previous]);
            return Err(claim.out_of_place(record, previous, end));
        }
        end = after;
    }
    // 3. The last tensor at the end of the file.
    let Some(file_len) = claim.file_len else {
        return Ok(end);
    };
    let data_start = PREFIX as u64 + claim.strings.text.len() as u64;
    let found = file_len - data_start;
    let expected = end;
    if found < expected {
        let cut = records.iter().find(|record| record.end > found);
        let error =
            Error::at_file(ErrorKind::Truncated { expected, found, mapped: false }, file_len);
        return Err(match cut {
            Some(record) => error.in_tensor(claim.strings.get(record.name())),
            None => error,
        });
    }
    if found > expected {
        let kind = ErrorKind::TrailingBytes { expected, found };
        return Err(Error::at_file(kind, data_start + expected));
    }
    Ok(end)
}

/// Bytes by shape and dtype. Dimensions are multiplied from the left, as the reference does it: a 0
/// saves a product from what follows it, not from what stands before.
fn byte_len(record: &Record, shape: &[u64]) -> std::result::Result<u64, ErrorKind> {
    let dtype = record.dtype;
    let elements = shape.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim));
    let bits = elements.and_then(|elements| elements.checked_mul(dtype.bits()));
    match bits {
        None => Err(ErrorKind::Overflow { dtype, shape: Shape(shape).to_string() }),
        Some(bits) if bits % 8 != 0 => {
            Err(ErrorKind::PartialByte { dtype, shape: Shape(shape).to_string(), found: bits })
        }
        Some(bits) => Ok(bits / 8),
    }
}

impl<'a> Claim<'a> {
    fn shape(&self, record: &Record) -> &'a [u64] {
        &self.dims[record.dims.range()]
    }

    /// The error at the tensor's name.
    fn error(&self, kind: ErrorKind, record: &Record) -> Error {
        let position = self.strings.position(record.name());
        Error::at_header(kind, position).in_tensor(self.strings.get(record.name()))
    }

    /// The error that a tensor begins elsewhere than at `expected`.
    fn out_of_place(&self, record: &Record, previous: Option<&Record>, expected: u64) -> Error {
        let name = |record: &Record| self.strings.get(record.name()).to_owned();
        let found = record.begin;
        let kind = match previous {
            Some(other) if found < expected => ErrorKind::Overlap {
                other: name(other),
                other_range: (other.begin, other.end),
                expected,
                found,
                empty: record.begin == record.end,
            },
            _ => ErrorKind::Hole { previous: previous.map(name), expected, found, end: record.end },
        };
        self.error(kind, record)
    }
}
