//! What does the crate ask of the operating system, and where is the one place to port?
//!
//! The whole contract stands here: the functions re-exported below, with one implementation for
//! systems that map files and one for those that do not. Foreign functions are declared in this
//! folder and nowhere else; nothing in it knows what a tensor is.
//!
//! ```text
//!   64-bit Linux, Android, Apple, BSDs   posix.rs + the numbers in linux.rs | apple.rs | bsd.rs
//!   everything else (Windows, 32-bit)    other.rs: no mapping, memory from the allocator
//!   SIGBUS, where a lost page is one     sigbus/, which says itself where that is
//!   macOS, iOS, and tests of others      objc/: the Objective-C runtime and Metal
//! ```

macro_rules! on_posix {
    ($($item:item)*) => {
        $(#[cfg(all(
            target_pointer_width = "64",
            any(
                target_os = "linux",
                target_os = "android",
                target_vendor = "apple",
                target_os = "freebsd",
                target_os = "dragonfly",
                target_os = "netbsd",
                target_os = "openbsd",
            ),
        ))]
        $item)*
    };
}

macro_rules! elsewhere {
    ($($item:item)*) => {
        $(#[cfg(not(all(
            target_pointer_width = "64",
            any(
                target_os = "linux",
                target_os = "android",
                target_vendor = "apple",
                target_os = "freebsd",
                target_os = "dragonfly",
                target_os = "netbsd",
                target_os = "openbsd",
            ),
        )))]
        $item)*
    };
}

on_posix! {
    #[cfg(target_vendor = "apple")]
    mod apple;
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    mod bsd;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    mod linux;
    mod file_system;
    mod limits;
    mod paging;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    mod vouch;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub use vouch::vouch;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub use elsewhere::vouch;
    mod posix;
    pub use file_system::better_read;
    pub use limits::{
        Available, Limit, available_memory, of_locked_memory, of_mappings, of_open_files,
    };
    pub use paging::{
        bring_in, cached_pages, drop_pages, drop_unmapped, lock, tells_residency, unlock,
    };
    mod saving;
    pub use posix::{
        advise, append_at, map_anonymous, map_file, open, page_faults, page_size, protect, release,
        residency, terminal_columns,
    };
    pub use saving::{copy_range, give_name, open_unnamed};
    // Built for the tests too, so that the fallback is not first tried where it is needed.
    #[cfg(test)]
    mod other;
}

elsewhere! {
    mod other;
    pub use elsewhere::vouch;
    pub use other::{
        Available, Limit, advise, append_at, available_memory, better_read, bring_in, cached_pages,
        copy_range, drop_pages, drop_unmapped, give_name, lock, map_anonymous, map_file,
        of_locked_memory, of_mappings, of_open_files, open, open_unnamed, page_faults, page_size,
        protect, release, residency, tells_residency, terminal_columns, unlock,
    };
}

pub mod sigbus;

// Only Linux vouches for a file.
#[cfg(not(all(target_pointer_width = "64", any(target_os = "linux", target_os = "android"))))]
mod elsewhere {
    /// [`Unsupported`](std::io::ErrorKind::Unsupported): nobody to ask.
    pub fn vouch(_: &std::fs::File) -> std::io::Result<Result<(), String>> {
        Err(super::unsupported("vouching for a file's bytes"))
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
pub mod advised;
#[cfg(test)]
mod ask_c;
// Apple's libraries, for `gpu/`. The folder says for itself where it is compiled.
pub mod objc;

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Advice to the kernel about a range of mapped pages. A closed list of what cannot change a
/// single byte: `MADV_DONTNEED` and `MADV_FREE`, which turn private pages into zeros, are not in
/// it. What a system does not know it reports as [`io::ErrorKind::Unsupported`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Advice {
    /// Forget earlier advice.
    Normal,
    /// Pages will be read in order: read ahead more, and drop soon.
    Sequential,
    /// Pages will be read in no order: do not read ahead. Ruinous before a whole cold file is read.
    Random,
    /// Start to read. On Linux one call reads one read-ahead window at most, however long the range.
    WillNeed,
    /// Reclaim these first (Linux 5.4).
    Cold,
    /// Back the range by huge pages where the file system can (Linux).
    HugePage,
    /// Read and map every page before returning (Linux 5.14). Pages beyond the end of the file are
    /// reported as an error instead of a signal.
    PopulateRead,
}

/// Page faults of this process so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageFaults {
    /// Faults that were served without waiting for a disk.
    pub minor: u64,
    /// Faults that waited for a disk.
    pub major: u64,
}

/// Asks for huge pages behind memory of the caller's own, where the system has them (Linux) and as far
/// as the memory holds whole ones that were not touched yet: to fill it then takes a fault for 2 MiB
/// instead of 4 KiB. No byte changes. A hint, whose refusal costs nothing but time.
pub fn prefer_huge_pages(memory: &mut [u8]) {
    // SAFETY: bytes that may or may not be written are less of a promise, and none is written here.
    let room = unsafe { &mut *(std::ptr::from_mut(memory) as *mut [MaybeUninit<u8>]) };
    prefer_huge_pages_for(room);
}

/// The same for room that was reserved and holds nothing yet.
pub fn prefer_huge_pages_for<T>(room: &mut [MaybeUninit<T>]) {
    let (start, len) = (room.as_mut_ptr().cast::<u8>(), size_of_val(room));
    let page = page_size();
    let lead = start.align_offset(page);
    let pages = len.saturating_sub(lead) / page * page;
    let Some(address) = NonNull::new(start.wrapping_add(lead)).filter(|_| pages > 0) else {
        return;
    };
    // SAFETY: whole pages of memory that is borrowed, hence mapped, and this advice changes no byte.
    let _ = unsafe { advise(address, pages, Advice::HugePage) };
}

/// Reads at a position without moving the file's own: at most `buffer.len()` bytes, 0 at the end.
/// std caps one call where the system would refuse more than `i32::MAX` bytes (macOS).
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
    #[cfg(not(any(unix, windows)))]
    {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = file;
        file.seek(SeekFrom::Start(offset))?;
        file.read(buffer)
    }
}

fn unsupported(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{what} is not supported on this system"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[test]
    fn huge_pages_are_asked_for_behind_memory_as_far_as_it_has_whole_pages() {
        let page = page_size();
        let mut memory = vec![0; 64 * page];
        prefer_huge_pages(&mut []);
        let lead = memory.as_ptr().align_offset(page);
        prefer_huge_pages(&mut memory[lead + 1..][..page]);
        prefer_huge_pages(&mut memory[lead + 8 * page - 1..][..page * 2 + 2]);
        if !advised::has_huge_pages() {
            return;
        }
        let asked = advised::for_huge_pages();
        let start = memory.as_ptr().addr() + lead;
        let ours =
            |range: &&std::ops::Range<usize>| (start..start + 60 * page).contains(&range.start);
        let ours: Vec<_> =
            asked.iter().filter(ours).map(|range| (range.start, range.end)).collect();
        assert_eq!(ours, [(start + 8 * page, start + 10 * page)]);
    }

    #[test]
    fn a_fallback_allocation_is_zeroed_page_aligned_and_refuses_to_map() {
        let page = other::page_size();
        let memory = other::map_anonymous(page + 1).unwrap();
        assert_eq!(memory.as_ptr() as usize % page, 0);
        // SAFETY: `map_anonymous` gave page + 1 readable bytes, and nobody else has them.
        let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr(), page + 1) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        // SAFETY: the same range, which is not used after this.
        unsafe { other::release(memory, page + 1) };

        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(other::map_file(&file, 0, 1).unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert!(other::map_anonymous(usize::MAX).is_err());
    }

    #[test]
    fn what_is_appended_is_no_more_than_asked_and_stands_behind_what_was_there() {
        let path = std::env::current_exe().unwrap();
        let (file, whole) = (File::open(&path).unwrap(), std::fs::read(&path).unwrap());
        for append in [append_at, other::append_at] {
            let mut buffer = Vec::with_capacity(100);
            buffer.extend(b"here");
            assert_eq!(append(&file, &mut buffer, 10, 5).unwrap(), 10);
            assert_eq!(buffer, [b"here", &whole[5..15]].concat());
            // Nothing is asked for, nothing is left.
            assert_eq!(append(&file, &mut buffer, 0, 5).unwrap(), 0);
            assert_eq!(append(&file, &mut buffer, 1, whole.len() as u64).unwrap(), 0);
            // The room is the limit as well.
            let room = buffer.capacity() - buffer.len();
            assert_eq!(append(&file, &mut buffer, whole.len(), 0).unwrap(), room);
            assert_eq!(buffer[14..], whole[..room]);
        }
    }
}
