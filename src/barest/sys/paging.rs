//! How are pages brought in, dropped and held, and will the kernel say which are there?
//!
//! What the system surprises with:
//! * dropping a page from the page cache does nothing while it is mapped anywhere: it has to leave
//!   the mapping first, and then the cache;
//! * `madvise(DONTNEED)` on private memory does not drop pages, it makes them zero: here it is only
//!   for mapped files, and `mapping/` sees to it;
//! * Linux answers questions about the page cache truly only to those who could write the file.

#[cfg(any(target_os = "linux", target_os = "android"))]
use std::ffi::c_long;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

// POSIX.1-2024; madvise is a common extension.
unsafe extern "C" {
    fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    fn mlock(address: *const c_void, length: usize) -> c_int;
    fn munlock(address: *const c_void, length: usize) -> c_int;
    // Variadic, as the C library has it: older ones have no function for younger calls.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn syscall(number: c_long, ...) -> c_long;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn geteuid() -> u32;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn faccessat(
        directory: c_int,
        path: *const std::ffi::c_char,
        mode: c_int,
        flags: c_int,
    ) -> c_int;
    // Gives the error's number and leaves errno alone.
    #[cfg(not(any(target_vendor = "apple", target_os = "openbsd")))]
    fn posix_fadvise(descriptor: c_int, offset: i64, length: i64, advice: c_int) -> c_int;
    #[cfg(target_vendor = "apple")]
    fn msync(address: *mut c_void, length: usize, flags: c_int) -> c_int;
    // Variadic, and declared so: on arm64 Apple passes variadic arguments on the stack.
    #[cfg(target_vendor = "apple")]
    fn fcntl(descriptor: c_int, command: c_int, ...) -> c_int;
}

pub const MADV_DONTNEED: c_int = 4;
#[cfg(not(target_arch = "s390x"))]
pub const POSIX_FADV_DONTNEED: c_int = 4;
#[cfg(target_arch = "s390x")]
pub const POSIX_FADV_DONTNEED: c_int = 6;
#[cfg(any(target_os = "linux", target_os = "android"))]
const EFAULT: i32 = 14;

/// Reads pages of a mapped file into memory before returning, and where the system can (Linux 5.14),
/// into the mapping as well: `len` bytes from `address`, which are those from `offset` of the file.
/// Pages that the file has lost are [`io::ErrorKind::UnexpectedEof`] and no signal.
///
/// # Safety
///
/// The range lies in one mapping of that file of ours, and `address` is on a page boundary.
pub unsafe fn bring_in(
    file: &File,
    offset: u64,
    address: NonNull<u8>,
    len: usize,
) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    loop {
        use super::linux::MADV_POPULATE_READ;
        // SAFETY: by this function's own contract; reading pages in changes no byte.
        let status = unsafe { madvise(address.as_ptr().cast(), len, MADV_POPULATE_READ) };
        if status == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match (error.raw_os_error(), error.kind()) {
            (_, io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            // A page is behind the end of the file, or the disk has failed: reading tells which.
            (Some(EFAULT), _) => break,
            // An older kernel.
            (_, io::ErrorKind::InvalidInput) => break,
            _ => return Err(error),
        }
    }
    #[cfg(target_vendor = "apple")]
    announce(file, offset, len);
    let _ = address;
    read_through(file, offset, len)
}

/// Tells Apple's kernel which part of the file will be read next: `F_RDADVISE`, which takes 32 bits
/// of length. Untested: no Mac was at hand.
#[cfg(target_vendor = "apple")]
fn announce(file: &File, offset: u64, len: usize) {
    /// `struct radvisory`.
    #[repr(C)]
    struct ReadAdvisory {
        offset: i64,
        count: c_int,
    }
    const F_RDADVISE: c_int = 44;
    let count = c_int::try_from(len).unwrap_or(c_int::MAX);
    let advisory = ReadAdvisory { offset: offset as i64, count };
    // SAFETY: this command reads one `struct radvisory`. A refusal costs nothing but time.
    let _ = unsafe { fcntl(file.as_raw_fd(), F_RDADVISE, &advisory) };
}

/// Brings a part of a file into the page cache by reading it and keeping nothing.
fn read_through(file: &File, offset: u64, len: usize) -> io::Result<()> {
    let mut scratch = vec![0; len.min(256 << 10)];
    let (mut at, end) = (offset, offset + len as u64);
    while at < end {
        let most = scratch.len().min((end - at) as usize);
        match super::read_at(file, &mut scratch[..most], at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => at += count as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Drops pages of a mapped file, out of the mapping and then out of the page cache, where nobody else
/// holds them. Touched again, they are read again. Locked pages stay, and those behind them may.
///
/// # Safety
///
/// The range lies in one mapping of ours, which is that file's, shared and read-only: of private
/// memory the bytes would be lost. `address` is on a page boundary.
pub unsafe fn drop_pages(
    file: &File,
    offset: u64,
    address: NonNull<u8>,
    len: usize,
) -> io::Result<()> {
    // A large folio that reaches out of the range is dropped by neither of the two below; this splits
    // it. A kernel or a file for which it does not work loses nothing.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: clean pages of a file can be read again.
    let _ = unsafe { madvise(address.as_ptr().cast(), len, super::linux::MADV_PAGEOUT) };
    // SAFETY: the pages are the file's by this function's contract, so nothing is lost.
    if unsafe { madvise(address.as_ptr().cast(), len, MADV_DONTNEED) } != 0 {
        let error = io::Error::last_os_error();
        // EINVAL on a range that was checked: locked pages, which are to stay.
        if error.kind() != io::ErrorKind::InvalidInput {
            return Err(error);
        }
    }
    #[cfg(target_vendor = "apple")]
    {
        const MS_INVALIDATE: c_int = 2;
        let _ = (file, offset);
        // SAFETY: as above. Untested: no Mac was at hand.
        if unsafe { msync(address.as_ptr().cast(), len, MS_INVALIDATE) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    #[cfg(target_os = "openbsd")]
    let _ = (file, offset);
    #[cfg(not(any(target_vendor = "apple", target_os = "openbsd")))]
    {
        let (offset, len) = (offset as i64, len as i64);
        // SAFETY: takes numbers, touches no memory of ours.
        let number =
            unsafe { posix_fadvise(file.as_raw_fd(), offset, len, POSIX_FADV_DONTNEED) };
        if number != 0 {
            return Err(io::Error::from_raw_os_error(number));
        }
    }
    Ok(())
}

/// Drops pages of a part of a file out of the page cache, whole ones that nobody has mapped or is to
/// write to the disk: where huge pages of files are (Linux), they can then take their place. A hint.
pub fn drop_unmapped(file: &File, offset: u64, len: u64) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let (offset, len) = (offset as i64, len as i64);
        // SAFETY: takes numbers, touches no memory of ours.
        let _ = unsafe { posix_fadvise(file.as_raw_fd(), offset, len, POSIX_FADV_DONTNEED) };
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (file, offset, len);
}

/// Reads pages in and keeps them in memory until [`unlock`].
///
/// # Safety
///
/// The range lies in one mapping of ours and `address` is on a page boundary.
pub unsafe fn lock(address: NonNull<u8>, len: usize) -> io::Result<()> {
    // SAFETY: by this function's own contract; no byte changes.
    if unsafe { mlock(address.as_ptr().cast(), len) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // Linux marks the range before it reads it, and leaves it marked if it cannot.
    // SAFETY: the same range. That this fails as well is no news.
    let _ = unsafe { munlock(address.as_ptr().cast(), len) };
    Err(error)
}

/// Lets pages go again. An error would mean that the range is not ours, and there is nobody to report
/// it to: drop calls this.
///
/// # Safety
///
/// As for [`lock`].
pub unsafe fn unlock(address: NonNull<u8>, len: usize) {
    // SAFETY: by this function's own contract.
    let status = unsafe { munlock(address.as_ptr().cast(), len) };
    debug_assert_eq!(status, 0, "munlock: {}", io::Error::last_os_error());
}

/// How many pages of a part of a file are in the page cache, those that are being read in included:
/// one call, whose time grows with the pieces in which the cache holds them, which may be large.
/// `None` where the system (Linux 6.5) does not tell.
pub fn cached_pages(file: &File, offset: u64, len: u64) -> Option<u64> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let (range, mut stat) = (CacheRange { offset, len }, CacheStat::default());
        // SAFETY: the call reads one `struct cachestat_range` and writes one `struct cachestat`; a test
        // holds the number and both sizes against C's, where its headers know them.
        let status = unsafe { syscall(SYS_CACHESTAT, file.as_raw_fd(), &range, &mut stat, 0) };
        (status == 0).then_some(stat.cached)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (file, offset, len);
        None
    }
}

/// The same number on every architecture, as of all calls that are younger than Linux 5.1.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub const SYS_CACHESTAT: c_long = 451;

/// `struct cachestat_range`.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[repr(C)]
pub struct CacheRange {
    offset: u64,
    len: u64,
}

/// `struct cachestat`.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[repr(C)]
#[derive(Default)]
pub struct CacheStat {
    cached: u64,
    dirty: u64,
    written_back: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Whether the kernel tells this process truly which pages of a file are in the page cache. To others
/// than those who own the file or may write it, Linux (5.2) says that all are.
pub fn tells_residency(file: &File) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use std::os::unix::fs::MetadataExt;
        const AT_FDCWD: c_int = -100;
        const AT_EACCESS: c_int = 0x200;
        const W_OK: c_int = 2;
        // SAFETY: takes nothing, returns a number.
        let user = unsafe { geteuid() };
        if user == 0 || file.metadata().is_ok_and(|metadata| metadata.uid() == user) {
            return true;
        }
        let path = format!("/proc/self/fd/{}\0", file.as_raw_fd());
        // SAFETY: the path ends with a NUL and outlives the call.
        unsafe { faccessat(AT_FDCWD, path.as_ptr().cast(), W_OK, AT_EACCESS) == 0 }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = file;
        true
    }
}
