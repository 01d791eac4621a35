//! What is there where files cannot be mapped: Windows, 32-bit, everything unknown?
//!
//! Memory from the allocator on a boundary that is a page nearly everywhere, and `Unsupported` for
//! what needs a kernel we know. A model is then read, not mapped; nothing else changes for its user.

use super::{Advice, PageFaults, unsupported};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fs::File;
use std::io;
use std::path::Path;
use std::ptr::NonNull;

const PAGE_SIZE: usize = 4096;

/// The boundary on which memory begins; the true page size is not asked for here.
pub fn page_size() -> usize {
    PAGE_SIZE
}

/// Opens for reading. What blocks elsewhere does not exist here, or cannot be told beforehand.
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Appends at most `most` bytes from a position of a file, for which the buffer has room, and gives
/// their number, 0 at the end of the file.
pub fn append_at(
    file: &File,
    buffer: &mut Vec<u8>,
    most: usize,
    offset: u64,
) -> io::Result<usize> {
    let filled = buffer.len();
    buffer.resize(buffer.capacity().min(filled + most), 0);
    let read = super::read_at(file, &mut buffer[filled..], offset);
    buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
    read
}

/// [`io::ErrorKind::Unsupported`].
pub fn map_file(_: &File, _: u64, _: usize) -> io::Result<NonNull<u8>> {
    Err(unsupported("mapping a file"))
}

/// Zeroed memory from the allocator, on [`PAGE_SIZE`].
pub fn map_anonymous(len: usize) -> io::Result<NonNull<u8>> {
    let layout = Layout::from_size_align(len, PAGE_SIZE)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    assert!(len > 0, "the allocator takes no empty layout");
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc_zeroed(layout) };
    NonNull::new(memory).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

/// # Safety
///
/// `address` and `len` are those of one [`map_anonymous`] that was not released yet, and nothing
/// refers to the memory any more.
pub unsafe fn release(address: NonNull<u8>, len: usize) {
    // SAFETY: `map_anonymous` accepted the same length and alignment, so they are a layout; the
    // rest is this function's own contract.
    unsafe { dealloc(address.as_ptr(), Layout::from_size_align_unchecked(len, PAGE_SIZE)) };
}

/// Nothing: the allocator's memory stays writable, and `&[u8]` is all that is handed out.
///
/// # Safety
///
/// None is needed here; the signature is that of the systems which can.
pub unsafe fn protect(_: NonNull<u8>, _: usize) -> io::Result<()> {
    Ok(())
}

/// # Safety
///
/// None is needed here; the signature is that of the systems which can.
pub unsafe fn advise(_: NonNull<u8>, _: usize, _: Advice) -> io::Result<()> {
    Err(unsupported("advice"))
}

/// # Safety
///
/// None is needed here; the signature is that of the systems which can.
pub unsafe fn residency(_: NonNull<u8>, _: usize, _: &mut [u8]) -> io::Result<()> {
    Err(unsupported("asking for residency"))
}

/// A limit that this process has reached.
pub struct Limit {
    pub what: &'static str,
    pub limit: u64,
    pub advice: &'static str,
}

/// `None`: nobody to ask.
pub fn of_open_files(_: &io::Error) -> Option<Limit> {
    None
}

/// `None`: nobody to ask.
pub fn of_mappings(_: &io::Error) -> Option<Limit> {
    None
}

/// `None`: nobody to ask.
pub fn of_locked_memory(_: &io::Error, _: u64) -> Option<Limit> {
    None
}

/// Memory that could be had.
pub struct Available {
    pub bytes: u64,
    pub limit: &'static str,
}

/// `None`: nobody to ask.
pub fn available_memory() -> Option<Available> {
    None
}

/// `None`: files are read here wherever they lie.
pub fn better_read(_: &File) -> Option<&'static str> {
    None
}

/// # Safety
///
/// None is needed here; the signature is that of the systems which can.
pub unsafe fn bring_in(_: &File, _: u64, _: NonNull<u8>, _: usize) -> io::Result<()> {
    Err(unsupported("bringing pages in"))
}

/// # Safety
///
/// None is needed here; the signature is that of the systems which can.
pub unsafe fn drop_pages(_: &File, _: u64, _: NonNull<u8>, _: usize) -> io::Result<()> {
    Err(unsupported("dropping pages"))
}

/// # Safety
///
/// None is needed here; the signature is that of the systems which can.
pub unsafe fn lock(_: NonNull<u8>, _: usize) -> io::Result<()> {
    Err(unsupported("locking pages"))
}

/// # Safety
///
/// None is needed here; nothing was locked.
pub unsafe fn unlock(_: NonNull<u8>, _: usize) {}

/// `None`: nobody to ask.
pub fn cached_pages(_: &File, _: u64, _: u64) -> Option<u64> {
    None
}

/// There is no mapping to make room for.
pub fn drop_unmapped(_: &File, _: u64, _: u64) {}

/// Nobody tells anything.
pub fn tells_residency(_: &File) -> bool {
    false
}

/// [`io::ErrorKind::Unsupported`].
pub fn open_unnamed(_: &Path, _: u32) -> io::Result<File> {
    Err(unsupported("a file without a name"))
}

/// [`io::ErrorKind::Unsupported`].
pub fn give_name(_: &File, _: &Path) -> io::Result<()> {
    Err(unsupported("a file without a name"))
}

/// [`io::ErrorKind::Unsupported`].
pub fn copy_range(_: &File, _: u64, _: &File, _: usize) -> io::Result<usize> {
    Err(unsupported("copying within the kernel"))
}

/// `None`: nobody to ask.
pub fn page_faults() -> Option<PageFaults> {
    None
}

/// `None`: nobody to ask.
pub fn terminal_columns() -> Option<usize> {
    None
}
