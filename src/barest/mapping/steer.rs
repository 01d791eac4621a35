//! How are the pages of a mapping brought, dropped and kept?
//!
//! By the whole page, and never so that a byte changes: what is dropped is a file's and can be read
//! again. Bringing and keeping round a range outwards, dropping rounds it inwards, so that a neighbour
//! keeps its own.

use super::super::sys::{self, Advice};
use super::Mapping;
use std::fs::File;
use std::io;
use std::ops::Range;

impl Mapping {
    /// Reads the pages that a range of bytes touches into memory before returning; where the system
    /// can, into the mapping as well. `file` is what was mapped, from `start` of it on.
    ///
    /// Fails with [`io::ErrorKind::UnexpectedEof`] where the file has become shorter, and otherwise as
    /// [`Mapping::advise`] does.
    pub(in super::super) fn bring_in(
        &self,
        file: &File,
        start: u64,
        range: Range<usize>,
    ) -> io::Result<()> {
        let pages = self.touched(&range)?;
        if pages.is_empty() || !self.of_file {
            return Ok(());
        }
        let offset = start + pages.start as u64;
        // SAFETY: from a page boundary inside this mapping to a byte of it, and `&self` keeps it
        // mapped.
        unsafe {
            let address = self.address.add(pages.start);
            sys::bring_in(file, offset, address, range.end - pages.start)
        }
    }

    /// Drops the pages that lie whole within a range of bytes, so that a neighbour keeps its own; the
    /// last page of all, if the range ends where the file does. `file` is what was mapped, from
    /// `start` of it on. No byte changes: touched again, a page is read again.
    ///
    /// Fails with [`io::ErrorKind::InvalidInput`] if the range leaves the mapping or the pages are no
    /// file's: those would be lost.
    pub(in super::super) fn drop_pages(
        &self,
        file: &File,
        start: u64,
        range: Range<usize>,
    ) -> io::Result<()> {
        self.touched(&range)?;
        let ends_the_file =
            || file.metadata().is_ok_and(|data| data.len() <= start + range.end as u64);
        let with_the_last = range.end == self.len && ends_the_file();
        let pages = pages_within(&range, with_the_last, sys::page_size());
        if !self.of_file {
            let message = "the pages are no file's and would be lost";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let drop_whole = |pages: &Range<usize>| {
            if pages.is_empty() {
                return Ok(());
            }
            let offset = start + pages.start as u64;
            // SAFETY: whole pages inside this mapping, which `of_file` says is shared and read-only,
            // and `&self` keeps it mapped.
            unsafe { sys::drop_pages(file, offset, self.address.add(pages.start), pages.len()) }
        };
        drop_whole(&pages)?;
        // What the page cache holds in one piece with a neighbour's pages is split where it is mapped
        // here, and only there.
        if sys::tells_residency(file) {
            for backwards in [false, true] {
                let left = self.left_at_the_end(&pages, backwards);
                let in_mapping = left.start..left.end.min(self.len);
                if self.advise(in_mapping, Advice::PopulateRead).is_ok() {
                    drop_whole(&left)?;
                }
            }
        }
        Ok(())
    }

    /// The pages at the beginning of whole pages, or at their end, that are in memory; no more than one
    /// piece of the page cache may hold.
    fn left_at_the_end(&self, pages: &Range<usize>, backwards: bool) -> Range<usize> {
        const MOST: usize = 2 << 20;
        let page_size = sys::page_size();
        let end = match backwards {
            false => pages.start..pages.end.min(pages.start.saturating_add(MOST)),
            true => pages.start.max(pages.end.saturating_sub(MOST))..pages.end,
        };
        let residency = self.residency(end.start..end.end.min(self.len));
        let residency = residency.map_or(Vec::new(), |residency| residency.pages);
        let resident = |page: &&u8| **page != 0;
        match backwards {
            false => {
                let count = residency.iter().take_while(resident).count();
                end.start..end.start + count * page_size
            }
            true => {
                let count = residency.iter().rev().take_while(resident).count();
                end.end - count * page_size..end.end
            }
        }
    }

    /// Keeps the pages that a range of bytes touches in memory until [`Mapping::unlock`]; reads them in
    /// first.
    pub(in super::super) fn lock(&self, range: Range<usize>) -> io::Result<()> {
        let pages = self.touched(&range)?;
        if pages.is_empty() {
            return Ok(());
        }
        // SAFETY: `touched` gives whole pages inside this mapping, and `&self` keeps it mapped.
        unsafe { sys::lock(self.address.add(pages.start), range.end - pages.start) }
    }

    /// Lets go what was locked.
    pub(in super::super) fn unlock(&self, range: Range<usize>) {
        if let Ok(pages) = self.touched(&range) {
            if !pages.is_empty() {
                // SAFETY: as in `lock`.
                unsafe { sys::unlock(self.address.add(pages.start), range.end - pages.start) };
            }
        }
    }
}

/// The whole pages within a range of bytes of a mapping; with the last page of all, which counts as
/// whole, though the file ends inside it.
fn pages_within(range: &Range<usize>, with_the_last: bool, page_size: usize) -> Range<usize> {
    let start = range.start.next_multiple_of(page_size);
    let end = match with_the_last {
        true => range.end.next_multiple_of(page_size),
        false => range.end - range.end % page_size,
    };
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::super::Buffer;
    use super::*;

    const PAGE: usize = 4096;

    #[test]
    fn pages_to_drop_round_inwards_but_for_the_last() {
        for (range, with_the_last, pages) in [
            (0..PAGE, false, 0..PAGE),
            (1..PAGE * 2, false, PAGE..PAGE * 2),
            (1..PAGE, false, PAGE..PAGE),
            (5..9, false, PAGE..PAGE),
            (PAGE..PAGE + 7, false, PAGE..PAGE),
            (PAGE..PAGE + 7, true, PAGE..PAGE * 2),
            (PAGE + 1..PAGE + 7, true, PAGE * 2..PAGE * 2),
            (PAGE..PAGE * 2, true, PAGE..PAGE * 2),
            (0..0, true, 0..0),
        ] {
            assert_eq!(pages_within(&range, with_the_last, PAGE), pages, "{range:?}");
        }
    }

    #[test]
    #[cfg(all(unix, target_pointer_width = "64"))]
    fn pages_that_the_file_has_lost_are_looked_for_at_their_place_in_it() {
        let page = sys::page_size();
        let path = std::env::temp_dir().join(format!("barest-steer-{}", std::process::id()));
        for start in [0, page as u64] {
            std::fs::write(&path, vec![7; 4 * page]).unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            let (mapping, _) = Mapping::open_known(&file, start..4 * page as u64).unwrap();
            mapping.bring_in(&file, start, page..3 * page).unwrap();
            file.set_len(start + page as u64).unwrap();
            let lost = mapping.bring_in(&file, start, page..2 * page).unwrap_err();
            assert_eq!(lost.kind(), io::ErrorKind::UnexpectedEof, "from {start}");
            mapping.bring_in(&file, start, 0..page).unwrap();
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn private_pages_are_never_dropped() {
        let mut buffer = Buffer::zeroed(PAGE * 2).unwrap();
        buffer.as_mut_slice().fill(7);
        let sealed = buffer.seal().unwrap();
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let refused = sealed.mapping().drop_pages(&file, 0, 0..PAGE * 2).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert!(sealed.iter().all(|&byte| byte == 7));
    }
}
