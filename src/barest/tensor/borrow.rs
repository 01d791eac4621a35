//! When may the file's bytes be called numbers?
//!
//! As arrays of bytes always: an array of `u8` fits any address. As wider numbers where the address
//! is a multiple of what the number wants, which the format does not promise, and where the machine
//! is little-endian, as the file is. To cast all the same would be undefined behaviour, also on
//! processors that do not mind.

use super::super::decode::Plain;
use super::super::decode::sealed::ByteArray;
use super::super::error::ErrorKind;
use super::super::mapping::Mapping;

/// Bytes as arrays of bytes; what does not fill an array is left out.
pub fn arrays<A: ByteArray>(bytes: &[u8]) -> &[A] {
    if size_of::<A>() == 0 {
        return &[];
    }
    // SAFETY: A is an array of u8 (the trait is sealed), so any address suits it and any bytes are
    // a value of it; the quotient keeps the slice within `bytes`, whose lifetime it takes over.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<A>()) }
}

/// Bytes as numbers, or why not.
pub fn typed<T: Plain>(bytes: &[u8]) -> Result<&[T], ErrorKind> {
    if bytes.is_empty() {
        return Ok(&[]);
    }
    if cfg!(target_endian = "big") && size_of::<T>() > 1 {
        return Err(ErrorKind::ForeignByteOrder);
    }
    let (expected, found) = (align_of::<T>(), alignment(bytes));
    if found < expected {
        return Err(ErrorKind::Misaligned { expected, found });
    }
    // SAFETY: the address was just found to suit T; T is Plain (sealed), so every bit pattern is a
    // value of it; the quotient keeps the slice within `bytes`, whose lifetime it takes over.
    Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) })
}

/// The largest power of two that the address is a multiple of; a page at most.
pub fn alignment(bytes: &[u8]) -> usize {
    let page = Mapping::page_size();
    1 << (bytes.as_ptr() as usize | page).trailing_zeros()
}
