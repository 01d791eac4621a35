//! What happens when there is no memory?
//!
//! `Vec` ends the program, and a file must not be able to make it: whatever is sized by a file is
//! reserved here, where failing is an error like any other.

use super::{Error, Result};
use std::io;

/// Makes room for one more item, where what is left of the text can hold `left / shortest` more at
/// most. Where doubling would pass that, exactly so much is taken: what a hostile header costs in
/// memory is then known beforehand.
#[inline]
pub fn room<T>(items: &mut Vec<T>, left: usize, shortest: usize) -> Result<()> {
    if items.len() < items.capacity() {
        return Ok(());
    }
    let most = left / shortest + 1;
    items.try_reserve_exact(most.min(items.capacity().max(16))).map_err(|_| no_memory())
}

/// An empty vector with room for so many items.
pub fn vector<T>(capacity: usize) -> Result<Vec<T>> {
    let mut items = Vec::new();
    items.try_reserve_exact(capacity).map_err(|_| no_memory())?;
    Ok(items)
}

/// So many zeros, or whatever the default is.
pub fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>> {
    let mut items = vector(len)?;
    items.resize(len, T::default());
    Ok(items)
}

/// A copy.
pub fn copy(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut copy = vector(bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// The error that memory which a file asks for cannot be had.
#[cold]
pub fn no_memory() -> Error {
    Error::io("reserve the memory this file needs", io::ErrorKind::OutOfMemory.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_an_error_and_not_the_end() {
        assert!(vector::<u64>(usize::MAX / 8).is_err());
        assert!(zeros::<u8>(usize::MAX).is_err());
        assert_eq!(zeros::<u32>(3).unwrap(), [0, 0, 0]);
    }

    #[test]
    fn room_is_made_by_doubling_but_never_for_more_than_can_come() {
        let mut items: Vec<u64> = Vec::new();
        for left in (0..1000).rev() {
            room(&mut items, left * 2, 2).unwrap();
            items.push(0);
            assert!(items.capacity() <= items.len() + left, "{left} left");
        }
        assert_eq!(items.capacity(), 1000);
    }
}
