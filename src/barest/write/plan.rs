//! What will be written, and can it be?
//!
//! Every tensor by itself, then all of them together; and at the end the header that came of it is
//! read by our own reader. A plan that exists is a file that opens.

use super::super::dtype::Dtype;
use super::super::error::reserve;
use super::super::error::{Error, ErrorKind, Result};
use super::super::escape::Shape;
use super::super::header::{Header, PREFIX};
use super::text::{METADATA, Text, last_of_each, padding};
use super::{Order, Planned, Writer};

/// What a [`Writer`] would write: the header, and where each tensor will lie.
#[derive(Debug)]
pub struct Plan {
    /// The length and the header, as they will stand in the file.
    head: Vec<u8>,
    header: Header,
    /// The writer's numbers of the tensors, in the order of their data.
    order: Vec<usize>,
}

impl Plan {
    pub(super) fn of(writer: &Writer<'_>) -> Result<Plan> {
        let alignment = writer.alignment;
        if !alignment.is_power_of_two() {
            return Err(Error::new(ErrorKind::BadAlignment { found: alignment }));
        }
        let tensors = &writer.tensors;
        names_differ(tensors)?;
        let mut order: Vec<usize> = reserve::vector(tensors.len())?;
        order.extend(0..tensors.len());
        if writer.order == Order::Reference {
            let rank = |&number: &usize| {
                let tensor: &Planned<'_> = &tensors[number];
                (std::cmp::Reverse(tensor.dtype), &*tensor.name)
            };
            order.sort_unstable_by(|one, other| rank(one).cmp(&rank(other)));
        }
        let mut text = Text::new();
        if let Some(pairs) = &writer.metadata {
            text.metadata(last_of_each(pairs, writer.order == Order::Reference).into_iter())?;
        }
        let mut end = 0u64;
        for tensor in order.iter().map(|&number| &tensors[number]) {
            let in_tensor = |kind| Error::new(kind).in_tensor(&tensor.name);
            let begin = end;
            let len = byte_len(tensor).map_err(in_tensor)?;
            end = begin.checked_add(len).ok_or_else(|| in_tensor(ErrorKind::TooMuchData))?;
            text.entry(&tensor.name, tensor.dtype, &tensor.shape, (begin, end))?;
            within_cap(text.len() as u64, writer.header_cap)?;
        }
        let text = text.end()?;
        let (head, header) = proved(text, alignment.max(8), end, writer.header_cap)?;
        Ok(Plan { head, header, order })
    }

    /// The header as a reader will see it: names, places, metadata.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The first bytes of the file: the header's length, and the header with its padding.
    pub fn header_bytes(&self) -> &[u8] {
        &self.head
    }

    /// Bytes of the whole file.
    pub fn file_len(&self) -> u64 {
        self.header.data_start() + self.header.data_len()
    }

    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }
}

/// Pads a header, puts its length before it, and reads it.
pub fn proved(text: String, alignment: u64, data_len: u64, cap: u32) -> Result<(Vec<u8>, Header)> {
    let padded = text.len() as u64 + padding(text.len(), alignment);
    within_cap(padded, cap)?;
    let head = head(&text, padded)?;
    let header = read_back(&head, data_len, cap)?;
    Ok((head, header))
}

/// The length, the header, and spaces up to the length, which is below 2^32.
pub fn head(text: &str, padded: u64) -> Result<Vec<u8>> {
    let mut head = reserve::vector(PREFIX + padded as usize)?;
    head.extend_from_slice(&padded.to_le_bytes());
    head.extend_from_slice(text.as_bytes());
    head.resize(PREFIX + padded as usize, b' ');
    Ok(head)
}

/// The header as a reader of the whole file sees it.
pub fn read_back(head: &[u8], data_len: u64, cap: u32) -> Result<Header> {
    let too_much = || Error::new(ErrorKind::TooMuchData);
    let file_len = (head.len() as u64).checked_add(data_len).ok_or_else(too_much)?;
    Header::parse_with_cap(head, file_len, cap)
}

fn within_cap(found: u64, cap: u32) -> Result<()> {
    let expected = u64::from(cap);
    match found > expected {
        true => Err(Error::new(ErrorKind::HeaderTooLong { expected, found })),
        false => Ok(()),
    }
}

fn names_differ(tensors: &[Planned<'_>]) -> Result<()> {
    let mut names: Vec<&str> = reserve::vector(tensors.len())?;
    names.extend(tensors.iter().map(|tensor| &*tensor.name));
    names.sort_unstable();
    let refused = |kind, name| Err(Error::new(kind).in_tensor(name));
    if names.binary_search(&METADATA).is_ok() {
        return refused(ErrorKind::ReservedName, METADATA);
    }
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => refused(ErrorKind::NameGivenTwice, pair[0]),
        None => Ok(()),
    }
}

/// Bytes by dtype and shape, if those at hand are as many. Multiplied from the left, as readers do.
fn byte_len(tensor: &Planned<'_>) -> std::result::Result<u64, ErrorKind> {
    let expected = bytes_of(tensor.dtype, &tensor.shape)?;
    match tensor.source.len() {
        Some(found) if found != expected => {
            Err(wrong_length(tensor.dtype, &tensor.shape, expected, found))
        }
        _ => Ok(expected),
    }
}

fn bytes_of(dtype: Dtype, shape: &[u64]) -> std::result::Result<u64, ErrorKind> {
    let elements = shape.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim));
    let shown = || Shape(shape).to_string();
    match elements.and_then(|elements| elements.checked_mul(dtype.bits())) {
        None => Err(ErrorKind::Overflow { dtype, shape: shown() }),
        Some(bits) if bits % 8 != 0 => {
            Err(ErrorKind::PartialByte { dtype, shape: shown(), found: bits })
        }
        Some(bits) => Ok(bits / 8),
    }
}

/// The error that other bytes were given than dtype and shape ask for.
pub fn wrong_length(dtype: Dtype, shape: &[u64], expected: u64, found: u64) -> ErrorKind {
    ErrorKind::WrongDataLength { dtype, shape: Shape(shape).to_string(), expected, found }
}
