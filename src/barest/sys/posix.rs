//! How is the kernel called without a crate in between?
//!
//! By declaring the functions of the C library that the program is linked with anyway. Each
//! declaration is a promise about types and widths that no compiler checks across the border, so
//! a test below asks the C compiler for every constant, size and offset.
//!
//! What the system surprises with:
//! * `mmap` reports failure as address -1, never as null;
//! * a length of 0 is an error, a length that is no whole number of pages is not;
//! * advice and residency want an address on a page boundary: `mapping/` sees to it.

#[cfg(target_vendor = "apple")]
use super::apple as numbers;
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
use super::bsd as numbers;
#[cfg(any(target_os = "linux", target_os = "android"))]
use super::linux as numbers;
use super::{Advice, PageFaults};
use std::ffi::{c_int, c_long, c_ulong, c_ushort, c_void};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

// The same on every system of this file.
const PROT_NONE: c_int = 0;
const PROT_READ: c_int = 1;
const PROT_WRITE: c_int = 2;
const MAP_SHARED: c_int = 1;
const MAP_PRIVATE: c_int = 2;
const MAP_FAILED: usize = usize::MAX;
const MADV_NORMAL: c_int = 0;
const MADV_RANDOM: c_int = 1;
const MADV_SEQUENTIAL: c_int = 2;
const MADV_WILLNEED: c_int = 3;
const RUSAGE_SELF: c_int = 0;
const STDOUT: c_int = 1;

// POSIX.1-2024; madvise, mincore and getrusage's fault counts are common extensions. `off_t` has
// 64 bits on every 64-bit system, which is why this file is for those alone.
unsafe extern "C" {
    fn mmap(
        address: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        descriptor: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(address: *mut c_void, length: usize) -> c_int;
    fn mprotect(address: *mut c_void, length: usize, protection: c_int) -> c_int;
    fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    fn pread(descriptor: c_int, buffer: *mut c_void, count: usize, offset: i64) -> isize;
    fn sysconf(name: c_int) -> c_long;
    // Variadic, and declared so: on arm64 Apple passes variadic arguments on the stack.
    fn ioctl(descriptor: c_int, request: c_ulong, ...) -> c_int;
}

#[cfg(not(target_os = "openbsd"))]
unsafe extern "C" {
    fn mincore(address: *mut c_void, length: usize, pages: *mut u8) -> c_int;
}

// NetBSD and OpenBSD have this under versioned symbols or another layout.
#[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
unsafe extern "C" {
    fn getrusage(who: c_int, usage: *mut Rusage) -> c_int;
}

/// `struct rusage`: two `timeval`s of 16 bytes, then 14 `long`s.
#[repr(C)]
struct Rusage {
    times: [u64; 4],
    before_faults: [c_long; 4],
    minor_faults: c_long,
    major_faults: c_long,
    after_faults: [c_long; 8],
}

/// `struct winsize`.
#[repr(C)]
struct WindowSize {
    rows: c_ushort,
    columns: c_ushort,
    pixels: [c_ushort; 2],
}

/// Bytes of a page: 4 KiB on most x86, 16 KiB on Apple silicon, up to 64 KiB elsewhere, which is
/// why it is asked for and never assumed.
pub fn page_size() -> usize {
    static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);
    match PAGE_SIZE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: takes a number, returns a number, touches no memory of ours.
            let size = unsafe { sysconf(numbers::SC_PAGESIZE) };
            let size = usize::try_from(size).expect("POSIX requires a page size");
            assert!(size.is_power_of_two(), "a page of {size} bytes");
            PAGE_SIZE.store(size, Ordering::Relaxed);
            size
        }
        known => known,
    }
}

/// Opens for reading without ever blocking: a FIFO without a writer would make a plain `open` wait
/// for one. On a regular file the flag has no effect.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(numbers::O_NONBLOCK).open(path)
}

/// Appends at most `most` bytes from a position of a file, for which the buffer has room, and gives
/// their number, 0 at the end of the file. std could only read over zeros that are written first. See
/// [pread](https://pubs.opengroup.org/onlinepubs/9799919799/functions/pread.html).
pub fn append_at(
    file: &File,
    buffer: &mut Vec<u8>,
    most: usize,
    offset: u64,
) -> io::Result<usize> {
    // macOS refuses more in one call.
    const MOST: usize = i32::MAX as usize;
    let offset = i64::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let room = buffer.spare_capacity_mut();
    let count = room.len().min(most).min(MOST);
    // SAFETY: pread writes at most `count` bytes to where the room begins, which has as many and is
    // borrowed for as long.
    let read = unsafe { pread(file.as_raw_fd(), room.as_mut_ptr().cast(), count, offset) };
    let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: pread gives no more than `count`, and has written the first `read` bytes of the room.
    unsafe { buffer.set_len(buffer.len() + read) };
    Ok(read)
}

/// Maps `len` bytes of the file, `len` above 0, from `offset`, a multiple of a page: read-only and
/// shared, at an address of the kernel's choosing. No page is read. The mapping outlives the
/// descriptor.
pub fn map_file(file: &File, offset: u64, len: usize) -> io::Result<NonNull<u8>> {
    let address = map(len, PROT_READ, MAP_SHARED, file.as_raw_fd(), offset)?;
    if cfg!(target_os = "linux") && len >= WORTH_HUGE_PAGES && !suits_huge_pages(address, offset) {
        if let Some(better) = map_for_huge_pages(file, offset, len) {
            // SAFETY: the first mapping, which nobody has seen.
            unsafe { release(address, len) };
            return Ok(better);
        }
    }
    Ok(address)
}

/// Bytes of a huge page on x86-64, and on arm64 with pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;

/// From here on an address is chosen with care.
const WORTH_HUGE_PAGES: usize = 64 << 20;

/// Whether a huge page of the file would lie on a huge page of addresses. Younger kernels see to it
/// themselves on some file systems.
fn suits_huge_pages(address: NonNull<u8>, offset: u64) -> bool {
    address.as_ptr() as usize % HUGE_PAGE == (offset % HUGE_PAGE as u64) as usize
}

/// The same mapping at an address that suits huge pages; `None` if there is no room to choose from.
fn map_for_huge_pages(file: &File, offset: u64, len: usize) -> Option<NonNull<u8>> {
    // 1. Addresses of our own, more than are needed.
    let reserved = len.checked_add(HUGE_PAGE)?.next_multiple_of(page_size());
    let flags = MAP_PRIVATE | numbers::MAP_ANONYMOUS | numbers::MAP_NORESERVE;
    let start = map(reserved, PROT_NONE, flags, -1, 0).ok()?;
    let phase = (offset % HUGE_PAGE as u64) as usize;
    let lead = (phase + HUGE_PAGE - start.as_ptr() as usize % HUGE_PAGE) % HUGE_PAGE;
    // SAFETY: `lead` is less than a huge page, by which the reservation is longer than the mapping.
    let address = unsafe { start.add(lead) };
    // 2. The mapping in place of a part of them.
    let flags = MAP_SHARED | numbers::MAP_FIXED;
    // SAFETY: with MAP_FIXED the kernel replaces what lies there: our own reservation, which reaches
    // from before `address` to behind its `len` bytes, and which nobody refers to.
    let mapped = unsafe {
        let (to, descriptor) = (address.as_ptr().cast(), file.as_raw_fd());
        mmap(to, len, PROT_READ, flags, descriptor, offset as i64)
    };
    if mapped as usize == MAP_FAILED {
        // SAFETY: the whole reservation, which nobody refers to. Where it was replaced, it is gone.
        unsafe { release(start, reserved) };
        return None;
    }
    // 3. What is left of them goes back: whole pages before and behind.
    let end = (lead + len).next_multiple_of(page_size());
    // SAFETY: both parts belong to the reservation and not to the mapping.
    unsafe {
        if lead > 0 {
            release(start, lead);
        }
        if end < reserved {
            release(start.add(end), reserved - end);
        }
    }
    Some(address)
}

/// Zeroed memory of this process alone, `len` bytes, above 0, on a page boundary.
pub fn map_anonymous(len: usize) -> io::Result<NonNull<u8>> {
    map(len, PROT_READ | PROT_WRITE, MAP_PRIVATE | numbers::MAP_ANONYMOUS, -1, 0)
}

fn map(
    len: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: u64,
) -> io::Result<NonNull<u8>> {
    let offset = i64::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: a null address without MAP_FIXED asks for free addresses, so no existing memory is
    // touched; the kernel checks the descriptor, the offset and the length.
    let address = unsafe { mmap(std::ptr::null_mut(), len, protection, flags, descriptor, offset) };
    if address as usize == MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mmap gave the null page"))
}

/// Gives the pages back. An error here would mean that the range was not ours, and there is nobody
/// to report it to: drop calls this.
///
/// # Safety
///
/// `address` and `len` are those of one [`map_file`] or [`map_anonymous`] that was not released
/// yet, and nothing refers to the memory any more.
pub unsafe fn release(address: NonNull<u8>, len: usize) {
    // SAFETY: by this function's own contract.
    let status = unsafe { munmap(address.as_ptr().cast(), len) };
    debug_assert_eq!(status, 0, "munmap: {}", io::Error::last_os_error());
}

/// Makes the pages read-only, so that a stray write ends the program instead of changing a weight.
///
/// # Safety
///
/// `address` and `len` are those of a [`map_anonymous`] that is still mapped, and nobody writes to
/// the memory from here on.
pub unsafe fn protect(address: NonNull<u8>, len: usize) -> io::Result<()> {
    // SAFETY: by this function's own contract; reading stays allowed.
    check(unsafe { mprotect(address.as_ptr().cast(), len, PROT_READ) })
}

/// Tells the kernel what to expect of a range.
///
/// # Safety
///
/// The range lies in one mapping of ours and `address` is on a page boundary.
pub unsafe fn advise(address: NonNull<u8>, len: usize, advice: Advice) -> io::Result<()> {
    let number = match advice {
        Advice::Normal => Some(MADV_NORMAL),
        Advice::Random => Some(MADV_RANDOM),
        Advice::Sequential => Some(MADV_SEQUENTIAL),
        Advice::WillNeed => Some(MADV_WILLNEED),
        other => numbers::own_advice(other),
    };
    let Some(number) = number else {
        return Err(super::unsupported("this advice"));
    };
    // SAFETY: the range is ours by this function's contract, and no advice of the closed list
    // changes a byte of it.
    check(unsafe { madvise(address.as_ptr().cast(), len, number) }).map_err(|error| {
        // EINVAL on a range that was checked: an older kernel that does not know the number.
        match error.kind() {
            io::ErrorKind::InvalidInput => super::unsupported("this advice"),
            _ => error,
        }
    })
}

/// For each page of the range: is it in the page cache? One byte a page, 1 for yes.
///
/// # Safety
///
/// The range lies in one mapping of ours, `address` is on a page boundary, and `pages` has a byte
/// for each page that the range touches.
pub unsafe fn residency(address: NonNull<u8>, len: usize, pages: &mut [u8]) -> io::Result<()> {
    debug_assert!(pages.len() >= len.div_ceil(page_size()));
    #[cfg(not(target_os = "openbsd"))]
    {
        // SAFETY: by this function's own contract the kernel writes within `pages`.
        check(unsafe { mincore(address.as_ptr().cast(), len, pages.as_mut_ptr()) })?;
        // The other bits differ from system to system.
        pages.iter_mut().for_each(|page| *page &= 1);
        Ok(())
    }
    #[cfg(target_os = "openbsd")]
    {
        let _ = (address, len, pages);
        Err(super::unsupported("asking for residency"))
    }
}

/// Page faults of this process so far; `None` where the system does not tell.
pub fn page_faults() -> Option<PageFaults> {
    #[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
    {
        let mut usage = Rusage {
            times: [0; 4],
            before_faults: [0; 4],
            minor_faults: 0,
            major_faults: 0,
            after_faults: [0; 8],
        };
        // SAFETY: `usage` is a writable `struct rusage`; a test holds its size against C's.
        check(unsafe { getrusage(RUSAGE_SELF, &mut usage) }).ok()?;
        Some(PageFaults {
            minor: usage.minor_faults as u64,
            major: usage.major_faults as u64,
        })
    }
    #[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
    None
}

/// How many characters a line of the terminal on standard output has; `None` if it is none.
pub fn terminal_columns() -> Option<usize> {
    let mut size = WindowSize { rows: 0, columns: 0, pixels: [0; 2] };
    // SAFETY: this request writes one `struct winsize`; a test holds its size against C's.
    let status = unsafe { ioctl(STDOUT, numbers::TIOCGWINSZ as c_ulong, &mut size) };
    (status == 0 && size.columns > 0).then_some(usize::from(size.columns))
}

fn check(status: c_int) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::super::super::skip::skip;
    use super::super::ask_c::assert_c_agrees;
    use super::super::{limits, paging};
    use super::*;
    use std::mem::offset_of;
    use std::process::Command;

    #[test]
    fn the_c_compiler_agrees_on_every_constant_size_and_offset() {
        #[rustfmt::skip]
        let ours: Vec<(&str, u64)> = vec![
            ("PROT_NONE", PROT_NONE as u64),
            ("PROT_READ", PROT_READ as u64),
            ("MAP_FIXED", numbers::MAP_FIXED as u64),
            ("MAP_NORESERVE", numbers::MAP_NORESERVE as u64),
            ("PROT_WRITE", PROT_WRITE as u64),
            ("MAP_SHARED", MAP_SHARED as u64),
            ("MAP_PRIVATE", MAP_PRIVATE as u64),
            ("MAP_ANONYMOUS", numbers::MAP_ANONYMOUS as u64),
            ("MAP_FAILED", MAP_FAILED as u64),
            ("MADV_NORMAL", MADV_NORMAL as u64),
            ("MADV_RANDOM", MADV_RANDOM as u64),
            ("MADV_SEQUENTIAL", MADV_SEQUENTIAL as u64),
            ("MADV_WILLNEED", MADV_WILLNEED as u64),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            ("MADV_HUGEPAGE", numbers::MADV_HUGEPAGE as u64),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            ("MADV_COLD", numbers::MADV_COLD as u64),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            ("MADV_PAGEOUT", numbers::MADV_PAGEOUT as u64),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            ("MADV_POPULATE_READ", numbers::MADV_POPULATE_READ as u64),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            ("O_TMPFILE", numbers::O_TMPFILE as u64),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            ("AT_FDCWD", numbers::AT_FDCWD as u64),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            ("AT_SYMLINK_FOLLOW", numbers::AT_SYMLINK_FOLLOW as u64),
            #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
            ("SYS_copy_file_range", numbers::COPY_FILE_RANGE.unwrap_or(0) as u64),
            ("_SC_PAGESIZE", numbers::SC_PAGESIZE as u64),
            ("O_NONBLOCK", numbers::O_NONBLOCK as u64),
            ("TIOCGWINSZ", numbers::TIOCGWINSZ),
            ("RUSAGE_SELF", RUSAGE_SELF as u64),
            ("STDOUT_FILENO", STDOUT as u64),
            ("RLIMIT_MEMLOCK", limits::RLIMIT_MEMLOCK as u64),
            ("MADV_DONTNEED", paging::MADV_DONTNEED as u64),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            ("SYS_cachestat", paging::SYS_CACHESTAT as u64),
            #[cfg(not(any(target_vendor = "apple", target_os = "openbsd")))]
            ("POSIX_FADV_DONTNEED", paging::POSIX_FADV_DONTNEED as u64),
            ("RLIMIT_NOFILE", limits::RLIMIT_NOFILE as u64),
            #[cfg(not(target_os = "openbsd"))]
            ("RLIMIT_AS", limits::RLIMIT_AS as u64),
            ("sizeof(struct rlimit)", size_of::<limits::Rlimit>() as u64),
            ("sizeof(off_t)", size_of::<i64>() as u64),
            ("sizeof(size_t)", size_of::<usize>() as u64),
            ("sizeof(long)", size_of::<c_long>() as u64),
            ("sizeof(struct rusage)", size_of::<Rusage>() as u64),
            ("offsetof(struct rusage, ru_minflt)", offset_of!(Rusage, minor_faults) as u64),
            ("offsetof(struct rusage, ru_majflt)", offset_of!(Rusage, major_faults) as u64),
            ("sizeof(struct winsize)", size_of::<WindowSize>() as u64),
            ("offsetof(struct winsize, ws_col)", offset_of!(WindowSize, columns) as u64),
        ];
        let headers =
            ["fcntl.h", "unistd.h", "sys/mman.h", "sys/ioctl.h", "sys/types.h", "sys/resource.h", "sys/syscall.h"];
        assert_c_agrees(&headers, &ours);
    }

    #[test]
    fn the_page_size_is_the_shell_s() {
        let Ok(answer) = Command::new("getconf").arg("PAGESIZE").output() else {
            return skip("getconf", "no getconf to ask for the page size");
        };
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), page_size().to_string());
    }

    /// Younger kernels choose well themselves, so this way is not always gone.
    #[test]
    fn an_address_for_huge_pages_suits_and_leaves_nothing_beside_it() {
        use std::os::unix::fs::FileExt;
        let path = std::env::temp_dir().join(format!("barest-huge-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let page = page_size();
        file.set_len(3 * HUGE_PAGE as u64).unwrap();
        for (offset, len) in [
            (page, HUGE_PAGE),
            (3 * page, 1),
            (HUGE_PAGE - page, HUGE_PAGE + 1),
            (HUGE_PAGE + 5 * page, page),
        ] {
            file.write_all_at(b"!", (offset + len - 1) as u64).unwrap();
            let address = map_for_huge_pages(&file, offset as u64, len).unwrap();
            assert!(suits_huge_pages(address, offset as u64), "{address:?} for {offset:#x}");
            // SAFETY: the last byte of the mapping, which lies within the file.
            assert_eq!(unsafe { address.add(len - 1).read() }, b'!');
            if cfg!(target_os = "linux") {
                let (start, end) = (address.as_ptr() as usize, len.next_multiple_of(page));
                assert_eq!(reserved_beside(start..start + end), 0, "{offset:#x}, {len:#x}");
            }
            // SAFETY: the whole mapping, last used above.
            unsafe { release(address, len) };
        }
    }

    /// Bytes next to a range that are reserved and no more; more than the guard page of a stack.
    fn reserved_beside(range: std::ops::Range<usize>) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let reserved = maps.lines().filter(|line| line.contains(" ---p ")).filter_map(|line| {
            let (start, end) = line.split(' ').next()?.split_once('-')?;
            let address = |text| usize::from_str_radix(text, 16).unwrap();
            let (start, end) = (address(start), address(end));
            let is_beside = end == range.start || start == range.end;
            (is_beside && end - start > page_size()).then_some(end - start)
        });
        reserved.sum()
    }

    #[test]
    fn touching_fresh_memory_is_counted_as_faults() {
        let Some(before) = page_faults() else { return };
        let pages = 64;
        let len = pages * page_size();
        let memory = map_anonymous(len).unwrap();
        for page in 0..pages {
            // SAFETY: the byte lies within the mapping, which is writable and ours alone.
            unsafe { memory.add(page * page_size()).write_volatile(1) };
        }
        let after = page_faults().unwrap();
        assert!(after.minor > before.minor, "{before:?} {after:?}");
        // SAFETY: the whole mapping, last used above.
        unsafe { release(memory, len) };
    }
}
