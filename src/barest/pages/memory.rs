//! What does the model cost this process?
//!
//! Linux keeps an account for each mapping, in `/proc/self/smaps`. Elsewhere nobody tells.

use super::super::error::{Error, Result};
use super::super::model::Model;
use super::super::sys;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;

/// Memory that the mappings of a model take, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Memory {
    /// Address space.
    pub mapped: u64,
    /// Pages that this process has touched and still has: its resident set.
    pub resident: u64,
    /// The same, where a page that N processes have counts 1/N: the sum over all processes is what the
    /// model costs the machine.
    pub proportional: u64,
    /// Pages that are locked into memory.
    pub locked: u64,
    /// Pages that are mapped as huge ones.
    pub huge: u64,
}

impl Model {
    /// What the model's mappings cost this process. Reads `/proc/self/smaps`, which takes the kernel
    /// milliseconds for each GiB that was touched.
    ///
    /// Fails with [`Io`](super::super::ErrorKind::Io) where there is no such file.
    pub fn memory(&self) -> Result<Memory> {
        let ranges: Vec<Range<usize>> = self
            .shards()
            .map(|shard| {
                let start = shard.mapping().as_ptr() as usize;
                start..start + shard.mapping().len().next_multiple_of(sys::page_size())
            })
            .collect();
        let read = || read(BufReader::new(File::open("/proc/self/smaps")?), &ranges);
        read().map_err(|error| Error::io("read /proc/self/smaps", error))
    }
}

/// Sums our share of the accounts of all mappings that lie in the ranges. The kernel joins neighbours
/// of private memory, two models that were read for instance, and then keeps one account for both.
fn read(smaps: impl BufRead, ranges: &[Range<usize>]) -> io::Result<Memory> {
    let mut memory = Memory::default();
    let (mut ours, mut all) = (0, 1);
    for line in smaps.lines() {
        let line = line?;
        if let Some(mapping) = addresses(&line) {
            ours = ranges.iter().map(|range| common(range, &mapping)).sum::<usize>() as u128;
            all = mapping.len().max(1) as u128;
            memory.mapped += ours as u64;
            continue;
        }
        let Some((name, value)) = line.split_once(':').filter(|_| ours > 0) else { continue };
        let kib = value.trim().strip_suffix(" kB").and_then(|kib| kib.trim().parse::<u64>().ok());
        let bytes = (u128::from(kib.unwrap_or(0)) * 1024 * ours / all) as u64;
        match name {
            "Rss" => memory.resident += bytes,
            "Pss" => memory.proportional += bytes,
            "Locked" => memory.locked += bytes,
            "FilePmdMapped" | "ShmemPmdMapped" | "AnonHugePages" => memory.huge += bytes,
            _ => {}
        }
    }
    Ok(memory)
}

/// How many addresses two ranges have in common.
fn common(one: &Range<usize>, other: &Range<usize>) -> usize {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

/// The range of a line that begins an account: `7f0c4000-7f0c5000 r--s 00000000 fe:00 12 /path`.
fn addresses(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_mappings_are_summed() {
        let smaps = "\
1000-3000 r--s 00000000 fe:00 12 /a-b c
Rss:                   8 kB
Pss:                   4 kB
Pss_Dirty:             4 kB
VmFlags: rd mr
3000-4000 r--s 00002000 fe:00 12 /a
Rss:                   4 kB
Locked:                4 kB
9000-a000 rw-p 00000000 00:00 0
Rss:                   4 kB
FilePmdMapped:         2 kB
";
        let within =
            |range: Range<usize>| read(smaps.as_bytes(), std::slice::from_ref(&range)).unwrap();
        let expected =
            Memory { mapped: 0x3000, resident: 12288, proportional: 4096, locked: 4096, huge: 0 };
        assert_eq!(within(0x1000..0x4000), expected);
        assert_eq!(read(smaps.as_bytes(), &[]).unwrap(), Memory::default());
        assert_eq!(within(0x9000..0xa000).huge, 2048);

        // Half of a mapping that the kernel has joined.
        let half =
            Memory { mapped: 0x1000, resident: 4096, proportional: 2048, ..Memory::default() };
        assert_eq!(within(0x2000..0x3000), half);
        assert_eq!(within(0x4000..0x9000), Memory::default());
    }
}
