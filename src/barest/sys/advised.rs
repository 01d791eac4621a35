//! For tests: for which memory of this process were huge pages asked?

use super::super::skip::skip;
use std::ops::Range;

/// Whether the kernel has any to ask for; says so where it has none.
pub fn has_huge_pages() -> bool {
    let has = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    if !has {
        skip("huge pages", "this kernel has no huge pages to ask for");
    }
    has
}

/// Ranges of addresses.
pub fn for_huge_pages() -> Vec<Range<usize>> {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut range, mut asked) = (0..0, Vec::new());
    for line in smaps.lines() {
        let address = |text| usize::from_str_radix(text, 16).ok();
        let first = line.split(' ').next().and_then(|first| first.split_once('-'));
        if let Some((Some(start), Some(end))) = first.map(|(a, b)| (address(a), address(b))) {
            range = start..end;
        } else if line.starts_with("VmFlags:") && line.split(' ').any(|flag| flag == "hg") {
            asked.push(range.clone());
        }
    }
    asked
}
