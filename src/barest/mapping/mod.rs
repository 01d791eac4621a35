//! Who owns the pages of a mapped file, and from when on may someone call them `&[u8]`?
//!
//! ```text
//!   Mapping   owns the address range; pointer only, so everything about it is safe
//!      ▲      page arithmetic, advice and residency are checked in one place: `touched`
//!   Mmap      the same range, and a promise that makes it a `&[u8]`: the one unsafe door
//!      ▲
//!   Buffer    private memory, writable until it is sealed: then an Mmap whose promise holds
//!             by itself, since no one else can reach it
//! ```
//!
//! Mapping reads nothing. A page is read when it is first touched, and then a file that became
//! shorter than the mapping answers with SIGBUS, which no return value can report: a mapped file is
//! entered with the guard, `sys/sigbus`, which does something about it if the program asked it to.

mod steer;

use super::sys::sigbus::{self, Watch};
use super::sys::{self, Advice};
use std::fmt::{self, Debug, Formatter};
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::ptr::NonNull;

/// The most bytes one mapping can have: what a slice may span.
pub(super) const LONGEST: u64 = isize::MAX as u64;

/// A range of mapped pages, given back when dropped. It never makes a reference to them, so
/// nothing it does depends on what others do to the file.
pub struct Mapping {
    /// On a page boundary. Dangling if `len` is 0: the kernel maps no empty range.
    address: NonNull<u8>,
    len: usize,
    /// Whether the pages are a file's, so that they can be dropped and read again.
    of_file: bool,
    /// The guard's entry, of a file's pages; given back before they are.
    watch: Option<Watch>,
}

// SAFETY: a Mapping is the sole owner of its range and reaches it through the kernel alone, which
// takes such calls from any thread.
unsafe impl Send for Mapping {}
// SAFETY: its methods take `&self` and change nothing but the kernel's hints.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the whole file as it is long now: `PROT_READ`, `MAP_SHARED`, no page read. The file may
    /// be closed afterwards. An empty file costs no call and gives an empty mapping.
    ///
    /// Fails with what [`mmap`](https://pubs.opengroup.org/onlinepubs/9799919799/functions/mmap.html)
    /// says (`ENODEV` on some network mounts), with [`io::ErrorKind::InvalidInput`] for what is no
    /// regular file, with [`io::ErrorKind::FileTooLarge`] if an address cannot span the file, and with
    /// [`io::ErrorKind::Unsupported`] where files cannot be mapped.
    pub fn open(file: &File) -> io::Result<Mapping> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            // Most such things have no length and would pass for an empty file.
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Mapping::open_known(file, 0..metadata.len()).map(|(mapping, _)| mapping)
    }

    /// Maps the pages that a range of the file touches, which the file is known to have. Also gives
    /// how many bytes the mapping begins before the range.
    fn open_known(file: &File, range: Range<u64>) -> io::Result<(Mapping, usize)> {
        let lead = range.start % sys::page_size() as u64;
        let start = range.start - lead;
        if range.end - start > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // An empty range touches no page.
        let (lead, len) = match range.is_empty() {
            true => (0, 0),
            false => (lead as usize, (range.end - start) as usize),
        };
        let mut mapping = Mapping::obtain(len, |len| sys::map_file(file, start, len))?;
        mapping.of_file = true;
        if !mapping.is_empty() {
            mapping.watch = sigbus::watch(mapping.address, mapping.len);
        }
        Ok((mapping, lead))
    }

    fn obtain(
        len: usize,
        map: impl FnOnce(usize) -> io::Result<NonNull<u8>>,
    ) -> io::Result<Mapping> {
        let address = match len {
            0 => empty_address(),
            _ => map(len)?,
        };
        Ok(Mapping { address, len, of_file: false, watch: None })
    }

    /// Bytes mapped, from a page boundary of the file on; the end is not rounded.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first byte, on a page boundary. Reading through it is up to the caller.
    pub fn as_ptr(&self) -> *const u8 {
        self.address.as_ptr()
    }

    /// Bytes of a page on this machine, asked for at run time.
    pub fn page_size() -> usize {
        sys::page_size()
    }

    /// Whether a touch of a page that the file has lost reads zeros and is noted, instead of ending
    /// the process: [`sigbus::install`] was called, and the mapping is one of the 1,024 that are
    /// guarded. Private memory cannot be lost, needs no guard and has none.
    pub fn guarded(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::is_guarded)
    }

    /// The poison mark: the lowest offset, in bytes from the mapping's start and on a page boundary,
    /// at which the guard put zeros in the place of bytes that the file had lost. Nothing from there
    /// on is to be trusted, whenever it was read. `None` if none was touched. Ask after reading.
    #[inline]
    pub fn poisoned(&self) -> Option<usize> {
        self.watch.as_ref().and_then(Watch::poisoned)
    }

    /// Gives the kernel advice about the pages that a range of bytes touches (rounded outwards).
    /// Bytes never change by it. [`Advice::PopulateRead`] faults the pages in, [`Advice::WillNeed`]
    /// may; the others touch none.
    ///
    /// Fails with [`io::ErrorKind::InvalidInput`] if the range leaves the mapping and with
    /// [`io::ErrorKind::Unsupported`] if the system does not know the advice.
    pub fn advise(&self, range: Range<usize>, advice: Advice) -> io::Result<()> {
        let pages = self.touched(&range)?;
        if pages.is_empty() {
            return Ok(());
        }
        // SAFETY: `touched` gives whole pages inside this mapping, and `&self` keeps it mapped.
        unsafe { sys::advise(self.address.add(pages.start), pages.len(), advice) }
    }

    /// Which of the pages that a range of bytes touches are in memory: for a file, in the page
    /// cache, whoever brought them there. Faults no page. One byte is allocated for each page.
    ///
    /// Linux tells the truth only to the file's owner and to those who may write it; to others
    /// every page seems present. Fails as [`Mapping::advise`] does.
    pub fn residency(&self, range: Range<usize>) -> io::Result<Residency> {
        let touched = self.touched(&range)?;
        let page_size = sys::page_size();
        let count = touched.len() / page_size;
        let mut pages = Vec::new();
        pages.try_reserve_exact(count).map_err(|_| io::ErrorKind::OutOfMemory)?;
        pages.resize(count, 0);
        if !pages.is_empty() {
            // SAFETY: `touched` gives whole pages inside this mapping, `&self` keeps it mapped,
            // and `pages` has a byte for each.
            unsafe {
                sys::residency(self.address.add(touched.start), touched.len(), &mut pages)?;
            }
        }
        Ok(Residency { pages, first_page: touched.start / page_size })
    }

    /// Whether the pages are a file's.
    pub fn is_of_file(&self) -> bool {
        self.of_file
    }

    /// The whole pages that a range of bytes touches, counted from the mapping's start; no page for
    /// an empty range. The one place where ranges are checked.
    fn touched(&self, range: &Range<usize>) -> io::Result<Range<usize>> {
        whole_pages(range, self.len, sys::page_size()).ok_or_else(|| {
            let message = format!("bytes {range:?} are not within a mapping of {}", self.len);
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })
    }
}

/// Rounds a range of bytes of a mapping of `len` outwards to pages; `None` if it is reversed or
/// leaves the mapping. The end may lie behind `len`: the last page is mapped whole.
fn whole_pages(range: &Range<usize>, len: usize, page_size: usize) -> Option<Range<usize>> {
    if range.start > range.end || range.end > len {
        return None;
    }
    let start = range.start - range.start % page_size;
    if range.is_empty() {
        return Some(start..start);
    }
    Some(start..range.end.checked_next_multiple_of(page_size)?)
}

/// Where an empty mapping is said to be: an address that is not null, on a page boundary.
fn empty_address() -> NonNull<u8> {
    let page = std::ptr::without_provenance_mut(sys::page_size());
    NonNull::new(page).unwrap_or(NonNull::dangling())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Other pages may come to these addresses as soon as they are free.
        drop(self.watch.take());
        if self.len > 0 {
            // SAFETY: the range came from one successful map call of this length, `drop` runs once,
            // and whatever borrowed the pages borrowed from `self`.
            unsafe { sys::release(self.address, self.len) };
        }
    }
}

impl Debug for Mapping {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({:p}, {} bytes)", self.as_ptr(), self.len)
    }
}

/// Which pages of a range are in memory. A snapshot: the kernel may drop or bring any page
/// meanwhile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Residency {
    pages: Vec<u8>,
    first_page: usize,
}

impl Residency {
    /// How many pages the range touches.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// How many of them are in memory.
    pub fn resident(&self) -> usize {
        self.pages.iter().filter(|&&page| page != 0).count()
    }

    /// The first page of the range, counted in pages from the mapping's start.
    pub fn first_page(&self) -> usize {
        self.first_page
    }

    /// For each page, in order: is it in memory?
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        self.pages.iter().map(|&page| page != 0)
    }
}

/// A mapping that hands out its bytes.
pub struct Mmap {
    mapping: Mapping,
    /// Bytes at its start that were mapped only because pages are mapped whole. At most its length.
    lead: usize,
}

impl Mmap {
    /// Maps the whole file as [`Mapping::open`] does, and fails as it does. Copies nothing, reads
    /// no page.
    ///
    /// # Safety
    ///
    /// The promise, while any slice of it lives: no one, in this process or another, modifies the
    /// file, truncates it or punches holes into it. Replacing it by `rename` is fine: the mapping
    /// keeps the old file. A private mapping would not help, since pages that were not written
    /// to follow the file there too. If you cannot promise this, read the file.
    pub unsafe fn map(file: &File) -> io::Result<Mmap> {
        Ok(Mmap { mapping: Mapping::open(file)?, lead: 0 })
    }

    /// Maps a range of the file, in bytes, which may begin anywhere: the pages that it touches.
    /// Copies nothing, reads no page. Fails as [`Mapping::open`] does, and with
    /// [`io::ErrorKind::InvalidInput`] if the range is reversed or ends behind the file.
    ///
    /// # Safety
    ///
    /// As for [`Mmap::map`].
    pub unsafe fn map_range(file: &File, range: Range<u64>) -> io::Result<Mmap> {
        let metadata = file.metadata()?;
        if !metadata.is_file() || range.start > range.end || range.end > metadata.len() {
            let message = format!("bytes {range:?} are not within a file of {}", metadata.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { Mmap::map_known(file, range) }
    }

    /// As [`Mmap::map_range`], for a caller who has asked for the file's length already.
    ///
    /// # Safety
    ///
    /// As for [`Mmap::map`]; and the file has had these bytes.
    pub(super) unsafe fn map_known(file: &File, range: Range<u64>) -> io::Result<Mmap> {
        let (mapping, lead) = Mapping::open_known(file, range)?;
        Ok(Mmap { mapping, lead })
    }

    /// How many bytes the pages begin before the first byte that was asked for: 0 unless a range was
    /// mapped.
    pub fn lead(&self) -> usize {
        self.lead
    }

    /// The bytes. Touching one for the first time faults its page in, which may wait for a disk. A
    /// slice can report no loss: ask [`Mapping::poisoned`] after use, if the guard is installed.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the range is mapped readable for as long as `self` lives, is not longer than a
        // slice may be (`open_known` and `Buffer::zeroed` see to it), and does not change: by the
        // promise made in `map`, or because a sealed Buffer has no other owner.
        let whole =
            unsafe { std::slice::from_raw_parts(self.mapping.as_ptr(), self.mapping.len()) };
        &whole[self.lead..]
    }

    /// The pages behind the bytes.
    #[inline]
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }
}

impl Deref for Mmap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for Mmap {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Debug for Mmap {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Mmap({:?})", self.mapping)
    }
}

/// Private, zeroed memory on a page boundary, writable until it is sealed.
pub(super) struct Buffer {
    mapping: Mapping,
}

impl Buffer {
    pub(super) fn zeroed(len: usize) -> io::Result<Buffer> {
        if len as u64 > LONGEST {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(Buffer { mapping: Mapping::obtain(len, sys::map_anonymous)? })
    }

    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the range is mapped readable and writable, initialised with zeros, and `&mut
        // self` is the only way to it; its length was checked in `zeroed`.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.address.as_ptr(), self.mapping.len()) }
    }

    /// Makes the memory read-only and lets it be shared.
    pub(super) fn seal(self) -> io::Result<Mmap> {
        if !self.mapping.is_empty() {
            // SAFETY: the range is that of one `map_anonymous`, and `self`, which alone could
            // write to it, is consumed.
            unsafe { sys::protect(self.mapping.address, self.mapping.len())? };
        }
        Ok(Mmap { mapping: self.mapping, lead: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    #[test]
    fn ranges_round_outwards_to_whole_pages() {
        for (range, len, pages) in [
            (0..0, 0, Some(0..0)),
            (0..1, 1, Some(0..PAGE)),
            (1..PAGE, PAGE, Some(0..PAGE)),
            (PAGE - 1..PAGE + 1, PAGE * 2, Some(0..PAGE * 2)),
            (PAGE..PAGE, PAGE * 2, Some(PAGE..PAGE)),
            (PAGE + 5..PAGE + 5, PAGE * 2, Some(PAGE..PAGE)),
            (PAGE * 2 - 1..PAGE * 2, PAGE * 2, Some(PAGE..PAGE * 2)),
            (PAGE..PAGE + 3, PAGE + 3, Some(PAGE..PAGE * 2)),
            (0..2, 1, None),
            (2..2, 1, None),
            (usize::MAX..usize::MAX, 1, None),
            (0..usize::MAX, usize::MAX, None),
            #[allow(clippy::reversed_empty_ranges)]
            (1..0, PAGE, None),
        ] {
            assert_eq!(whole_pages(&range, len, PAGE), pages, "{range:?} of {len}");
        }
    }

    #[test]
    fn an_empty_mapping_is_not_null_is_aligned_and_answers() {
        let empty = Buffer::zeroed(0).unwrap().seal().unwrap();
        assert_eq!(empty.as_slice(), b"");
        assert!(!empty.mapping().as_ptr().is_null());
        assert_eq!(empty.mapping().as_ptr() as usize % Mapping::page_size(), 0);
        assert_eq!(empty.mapping().residency(0..0).unwrap().pages(), 0);
        empty.mapping().advise(0..0, Advice::WillNeed).unwrap();
    }

    #[test]
    fn a_sealed_buffer_keeps_its_bytes_and_shares_them() {
        let mut buffer = Buffer::zeroed(10_000).unwrap();
        buffer.as_mut_slice()[9_999] = 7;
        let sealed = buffer.seal().unwrap();
        assert_eq!((sealed[0], sealed[9_999], sealed.len()), (0, 7, 10_000));
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(sealed[9_999], 7));
        });
    }

    #[test]
    fn more_than_an_address_can_span_is_refused() {
        assert!(Buffer::zeroed(usize::MAX).is_err());
        assert!(Buffer::zeroed(isize::MAX as usize).is_err());
    }

    #[test]
    fn what_is_refused_for_its_length_is_refused_before_the_kernel_sees_it() {
        let none = File::open(std::env::current_exe().unwrap()).unwrap();
        let page = Mapping::page_size() as u64;
        for start in [0, page] {
            let kind_of = |len| Mapping::open_known(&none, start..start + len).unwrap_err().kind();
            assert_eq!(kind_of(LONGEST + 1), io::ErrorKind::FileTooLarge, "from {start}");
            // That much a slice may span, if no file and no memory.
            assert_ne!(kind_of(LONGEST), io::ErrorKind::FileTooLarge, "from {start}");
        }
        let number_of = |len: u64| {
            let refused = Buffer::zeroed(usize::try_from(len).unwrap()).err().unwrap();
            assert_eq!(refused.kind(), io::ErrorKind::OutOfMemory, "{len} bytes");
            refused.raw_os_error()
        };
        assert_eq!(number_of(LONGEST + 1), None);
        let asks_a_kernel = cfg!(all(unix, target_pointer_width = "64"));
        assert_eq!(number_of(LONGEST).is_some(), asks_a_kernel);
    }

    #[test]
    fn private_pages_are_no_file_s() {
        assert!(!Buffer::zeroed(1).unwrap().seal().unwrap().mapping().is_of_file());
    }

    #[test]
    fn advice_beyond_the_mapping_is_refused_before_the_kernel_sees_it() {
        let sealed = Buffer::zeroed(Mapping::page_size()).unwrap().seal().unwrap();
        let end = sealed.len();
        for range in [0..end + 1, end + 1..end + 2, end..usize::MAX] {
            let refused = sealed.mapping().advise(range.clone(), Advice::Normal).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{range:?}");
            assert!(sealed.mapping().residency(range).is_err());
        }
        sealed.mapping().advise(end..end, Advice::Normal).unwrap();
    }
}
