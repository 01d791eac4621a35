//! Were a tensor's bytes those of its file, and will they be?
//!
//! Before a loop the kernel can be asked to bring the pages, and says which it cannot. After a loop
//! the guard's mark tells whether zeros were read. Neither reports what was cut off within the last
//! page that is left: that reads as zeros without a fault. Before a loop the length tells; after it
//! [`Model::still_whole`](super::super::Model::still_whole) does.

use super::super::bytes::Backing;
use super::super::error::{Error, ErrorKind, Result};
use super::super::mapping::Mapping;
use super::super::sys::Advice;
use super::TensorView;
use std::io;
use std::ops::Range;

/// How much is asked for at a time: one read-ahead of a quick disk.
const PIECE: usize = 8 << 20;

impl TensorView<'_> {
    /// Reads all of its pages in, and tells if one cannot be: a look before the leap, without a
    /// signal and with no guard installed. Copies nothing; waits for the disk; may take as much page
    /// cache as the tensor is long. Nothing is promised of the moment after. Of a model that was read
    /// there is nothing to verify.
    ///
    /// Fails with [`Truncated`](ErrorKind::Truncated), with the offset of the first byte that is
    /// missing, if the file is shorter by now, if a page cannot be read, or if the guard had to put
    /// zeros there. Where the system cannot be asked for pages (Linux before 5.14, other systems),
    /// only the file's length and the guard's mark are looked at: a disk that fails goes unnoticed.
    pub fn verify_present(&self) -> Result<()> {
        let shard = self.shard;
        if *shard.backing() != Backing::Mapped || self.is_empty() {
            return Ok(());
        }
        let range = self.file_range();
        let bytes = self.bytes();
        let start = bytes.as_ptr() as usize - shard.mapping().as_ptr() as usize;
        let present = populate(shard.mapping(), start..start + bytes.len());
        let io_error = |action, source| self.error(ErrorKind::Io { action, source });
        let page = present.map_err(|error| io_error("read the pages in", error))?;
        let page = page.map(|lost| range.start + lost.saturating_sub(start) as u64);
        let len = shard.file().map(|file| file.metadata().map(|metadata| metadata.len()));
        let len = len.transpose().map_err(|error| io_error("ask for the length", error))?;
        // A file ends within a page, and only what is behind that page cannot be read.
        let end = len.filter(|&len| len < range.end).map(|len| len.max(range.start));
        match page.into_iter().chain(end).min() {
            Some(lost) => Err(self.lost_at(lost)),
            None => self.check_read(|| std::iter::once(range)),
        }
    }

    /// For after a loop: whether all bytes of these ranges of the file were the file's.
    #[inline]
    pub(in super::super) fn check_read<R: Iterator<Item = Range<u64>>>(
        &self,
        read: impl FnOnce() -> R,
    ) -> Result<()> {
        match self.shard.lost_from() {
            None => Ok(()),
            Some(lost) => self.check_against(lost, read()),
        }
    }

    #[cold]
    #[inline(never)]
    fn check_against(&self, lost: u64, mut read: impl Iterator<Item = Range<u64>>) -> Result<()> {
        match read.find(|range| range.end > lost && !range.is_empty()) {
            None => Ok(()),
            Some(range) => Err(self.lost_at(range.start.max(lost))),
        }
    }

    fn lost_at(&self, offset: u64) -> Error {
        let error = Error::at_file(self.shard.truncated_at(offset), offset).in_tensor(self.name());
        match self.shard.path() {
            Some(path) => error.in_file(path),
            None => error,
        }
    }
}

/// Brings the pages of a range of a mapping. `Some` is the offset of the first page that is not
/// there; `None` also where the system cannot be asked.
fn populate(mapping: &Mapping, range: Range<usize>) -> io::Result<Option<usize>> {
    let bring = |start: usize, end: usize| match mapping.advise(start..end, Advice::PopulateRead) {
        Ok(()) => Ok(true),
        Err(error) if is_a_fault(&error) => Ok(false),
        Err(error) => Err(error),
    };
    for start in range.clone().step_by(PIECE) {
        let end = range.end.min(start.saturating_add(PIECE));
        match bring(start, end) {
            Ok(true) => {}
            Ok(false) => return first_missing(start..end, bring).map(Some),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Where the first missing page begins, by halves. It may lie before the range does.
fn first_missing(
    range: Range<usize>,
    bring: impl Fn(usize, usize) -> io::Result<bool>,
) -> io::Result<usize> {
    let page = Mapping::page_size();
    let (mut good, mut bad) = (range.start / page, range.end.div_ceil(page));
    // Pages before `good` are there; one before `bad` is not.
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match bring(good * page, middle * page)? {
            true => good = middle,
            false => bad = middle,
        }
    }
    Ok(good * page)
}

/// What the kernel says of a page that would be a SIGBUS.
fn is_a_fault(error: &io::Error) -> bool {
    const EFAULT: i32 = 14;
    error.raw_os_error() == Some(EFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs::File;

    #[test]
    fn the_first_missing_page_is_found_by_halves() {
        let page = Mapping::page_size();
        for pages in [1, 2, 3, 64, 100] {
            for missing in 0..pages {
                let asked = Cell::new(0);
                let bring = |start: usize, end: usize| {
                    asked.set(asked.get() + 1);
                    assert!(start < end);
                    Ok(end <= (7 + missing) * page)
                };
                let range = 7 * page + 5..(7 + pages) * page - (page - 6);
                assert_eq!(first_missing(range, bring).unwrap(), (7 + missing) * page);
                assert!(asked.get() <= 7, "{} questions", asked.get());
            }
        }
    }

    #[test]
    fn the_kernel_says_which_page_is_missing() {
        let page = Mapping::page_size();
        let path = std::env::temp_dir().join(format!("barest-present-{}", std::process::id()));
        std::fs::write(&path, vec![7; 9 * page]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let Ok(mapping) = Mapping::open(&file) else { return };
        let all = 100..9 * page;
        let before = populate(&mapping, all.clone()).unwrap();
        file.set_len(5 * page as u64 + 1).unwrap();
        let after = populate(&mapping, all).unwrap();
        let known = mapping.advise(0..page, Advice::PopulateRead).is_ok();
        assert_eq!((before, after), (None, known.then_some(6 * page)));
        assert_eq!(populate(&mapping, 100..6 * page).unwrap(), None);
    }
}
