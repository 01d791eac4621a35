//! Which pages go into which GPU buffer?
//!
//! A buffer without a copy begins and ends with a page and has a longest length; a tensor begins
//! anywhere. So a shard's mapping is cut into windows of whole pages, each from its first tensor to
//! its last, and a new one begins with the tensor that would not lie whole in the one before. Here four
//! pages are the longest buffer, and at most one page is in two windows:
//!
//! ```text
//!   tensors   │  header │    a    │     b      │    c     │   d    │00│
//!   pages     ├───────┬───────┬───────┬───────┬───────┬───────┬───────┤
//!   windows           └────────────── 0 ──────────────┘
//!                                             └────────── 1 ──────────┘
//! ```
//!
//! Pure arithmetic: nothing here touches a page, or knows a graphics card, so it is tried on every
//! system and for every size of a page.

use super::super::error::reserve::no_memory;
use super::super::error::{Error, ErrorKind, Result};
use super::super::header::{Header, TensorInfo};
use super::super::shard::Shard;
use std::ops::Range;

/// What the system and the device ask of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a page: a power of two, at least 4096. 16384 on Apple silicon.
    pub page_size: u64,
    /// Bytes of the longest buffer, Metal's `maxBufferLength`. It need not be whole pages.
    pub max_buffer_length: u64,
}

/// A part of a shard's mapping that becomes one buffer: whole pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    start: u64,
    len: u64,
}

impl Window {
    /// Bytes from the start of the mapping; a multiple of the page size.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes; a multiple of the page size, above 0.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Never: what has no bytes gets no window.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Where it ends, in bytes from the start of the mapping. In the last page of a file that may
    /// be behind the file's end: there are zeros, mapped like the rest.
    pub fn end(&self) -> u64 {
        self.start + self.len
    }
}

/// Where a tensor's bytes are for the GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Nowhere: it has no bytes.
    Empty,
    /// Whole in a window, so many bytes from its start: a multiple of the element's bytes.
    Window {
        /// The window's number in the plan.
        window: usize,
        /// Bytes from the window's start.
        offset: u64,
    },
    /// In a buffer of its own, from its start: its place in the file suits no kernel.
    Copy,
}

/// The windows of one shard, and the tensors that have to be copied instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    windows: Vec<Window>,
    copied: u64,
    lead: u64,
}

impl Plan {
    /// Cuts a shard's mapping into windows; see [`Plan::new`]. Errors name its path.
    pub fn of(shard: &Shard, limits: Limits) -> Result<Plan> {
        Plan::new(shard.header(), lead(shard), limits).map_err(|error| match shard.path() {
            Some(path) => error.in_file(path),
            None => error,
        })
    }

    /// Cuts a mapping into windows by a header alone. `lead` is how many bytes of the mapping stand
    /// before the model's first; 0 where both begin together. Memory for two numbers a window.
    ///
    /// A tensor is copied instead if its place in the mapping is no multiple of its element's bytes
    /// (Metal demands that of an offset; the format promises it of none); below 8 bits any place
    /// will do. Empty tensors need nothing, and neither does a shard without others.
    ///
    /// Fails with [`BadPageSize`](ErrorKind::BadPageSize), and with
    /// [`BufferTooShort`](ErrorKind::BufferTooShort) for a tensor whose pages, or whose copy, are
    /// more than one buffer can be.
    pub fn new(header: &Header, lead: u64, limits: Limits) -> Result<Plan> {
        let Limits { page_size, max_buffer_length } = limits;
        if !page_size.is_power_of_two() || page_size < SMALLEST_PAGE {
            return Err(Error::new(ErrorKind::BadPageSize { found: page_size }));
        }
        let mut plan = Plan { windows: Vec::new(), copied: 0, lead };
        for tensor in header.tensors().filter(|tensor| tensor.byte_len() > 0) {
            let pages = plan.range(&tensor).and_then(|range| whole_pages(&range, page_size));
            // Above 2^64: no mapping is so long.
            let pages = pages.ok_or_else(|| too_short(&tensor, limits, u64::MAX))?;
            let copy = plan.must_be_copied(&tensor);
            let needed = if copy { tensor.byte_len() } else { pages.end - pages.start };
            if needed > max_buffer_length {
                return Err(too_short(&tensor, limits, needed));
            }
            match copy {
                true => plan.copied = plan.copied.saturating_add(needed),
                false => plan.cover(pages, max_buffer_length)?,
            }
        }
        Ok(plan)
    }

    /// Lengthens the last window to these pages, or begins another. Tensors come in the order of
    /// their places.
    fn cover(&mut self, pages: Range<u64>, longest: u64) -> Result<()> {
        if let Some(last) = self.windows.last_mut() {
            if pages.end - last.start <= longest {
                last.len = pages.end - last.start;
                return Ok(());
            }
        }
        self.windows.try_reserve(1).map_err(|_| no_memory())?;
        self.windows.push(Window { start: pages.start, len: pages.end - pages.start });
        Ok(())
    }

    /// The windows, in the order of the mapping. Two neighbours share one page at most.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Bytes of all buffers together, those of copies included.
    pub fn buffer_bytes(&self) -> u64 {
        self.windows.iter().map(Window::len).fold(self.copied, u64::saturating_add)
    }

    /// Bytes of the tensors that have to be copied.
    pub fn copied_bytes(&self) -> u64 {
        self.copied
    }

    /// Bytes of the mapping before the model's first: 0 unless it is a part of a larger file.
    pub fn lead(&self) -> u64 {
        self.lead
    }

    /// Whether a tensor has bytes, but not where a kernel could read them.
    pub fn must_be_copied(&self, tensor: &TensorInfo<'_>) -> bool {
        let element = tensor.dtype().element_bytes().unwrap_or(1) as u64;
        let start = self.lead.wrapping_add(tensor.model_range().start);
        tensor.byte_len() > 0 && start % element != 0
    }

    /// Where a tensor of the shard is. Faults no page.
    pub fn place(&self, tensor: &TensorInfo<'_>) -> Place {
        if tensor.byte_len() == 0 {
            return Place::Empty;
        }
        if self.must_be_copied(tensor) {
            return Place::Copy;
        }
        // The last window that begins no later. It holds the tensor whole, also where its first
        // page is another window's last: that page is shared because a later tensor begins there.
        let start = self.lead.wrapping_add(tensor.model_range().start);
        let behind = self.windows.partition_point(|window| window.start <= start);
        match behind.checked_sub(1).map(|window| (window, self.windows[window])) {
            Some((window, found)) if start.saturating_add(tensor.byte_len()) <= found.end() => {
                Place::Window { window, offset: start - found.start }
            }
            // A tensor of another shard.
            _ => Place::Copy,
        }
    }

    /// The tensor's bytes, counted from the start of the mapping.
    fn range(&self, tensor: &TensorInfo<'_>) -> Option<Range<u64>> {
        let Range { start, end } = tensor.model_range();
        Some(self.lead.checked_add(start)?..self.lead.checked_add(end)?)
    }
}

/// How many bytes of a shard's mapping stand before its first.
fn lead(shard: &Shard) -> u64 {
    shard.header().model_start() - shard.mapping_start()
}

/// No system that maps files has smaller pages.
const SMALLEST_PAGE: u64 = 4096;

fn whole_pages(range: &Range<u64>, page_size: u64) -> Option<Range<u64>> {
    let start = range.start - range.start % page_size;
    Some(start..range.end.checked_next_multiple_of(page_size)?)
}

fn too_short(tensor: &TensorInfo<'_>, limits: Limits, found: u64) -> Error {
    let expected = limits.max_buffer_length;
    Error::new(ErrorKind::BufferTooShort { expected, found }).in_tensor(tensor.name())
}

#[cfg(test)]
mod tests {
    use super::super::super::dtype::Dtype;
    use super::*;

    const KIB: u64 = 1024;

    /// A header of tensors, one behind the other; the first begins at file byte 4096.
    fn header(tensors: &[(&str, &str, u64)]) -> Header {
        let mut text = String::from("{");
        let mut end = 0;
        for (name, dtype, bytes) in tensors {
            let bits = Dtype::from_name(dtype).unwrap().bits();
            let (begin, elements) = (end, bytes * 8 / bits);
            end += bytes;
            let comma = if begin == 0 && text.len() == 1 { "" } else { "," };
            text += &format!(
                "{comma}\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":[{elements}],\"data_offsets\":[{begin},{end}]}}"
            );
        }
        text.push('}');
        let mut prefix = 4088u64.to_le_bytes().to_vec();
        prefix.extend(format!("{text:<4088}").bytes());
        Header::parse(&prefix, 4096 + end).unwrap()
    }

    fn limits(max_buffer_length: u64) -> Limits {
        Limits { page_size: 4 * KIB, max_buffer_length }
    }

    fn in_kib(plan: &Plan) -> Vec<(u64, u64)> {
        plan.windows().iter().map(|window| (window.start() / KIB, window.end() / KIB)).collect()
    }

    #[test]
    fn windows_are_cut_where_a_tensor_would_not_lie_whole() {
        let header = header(&[("a", "U8", 6 * KIB), ("b", "U8", 3 * KIB), ("c", "U8", 5 * KIB)]);
        // a 4..10, b 10..13, c 13..18 KiB of the file.
        for (longest, expected) in [
            (u64::MAX, vec![(4, 20)]),
            (16 * KIB, vec![(4, 20)]),
            (16 * KIB - 1, vec![(4, 16), (12, 20)]),
            (12 * KIB, vec![(4, 16), (12, 20)]),
            (8 * KIB, vec![(4, 12), (8, 16), (12, 20)]),
        ] {
            assert_eq!(
                in_kib(&Plan::new(&header, 0, limits(longest)).unwrap()),
                expected,
                "{longest}"
            );
        }
        let refused = Plan::new(&header, 0, limits(8 * KIB - 1)).unwrap_err();
        assert!(
            matches!(refused.kind(), ErrorKind::BufferTooShort { expected: 8191, found: 8192 }),
            "{refused}"
        );
        assert_eq!(refused.tensor(), Some("a"));
        // With a lead, places are those of the mapping.
        let behind = Plan::new(&header, KIB, limits(8 * KIB)).unwrap();
        assert_eq!(in_kib(&behind), [(4, 12), (8, 16), (12, 20)]);
        let b = header.tensor("b").unwrap();
        assert_eq!(behind.place(&b), Place::Window { window: 1, offset: 3 * KIB });
    }

    #[test]
    fn odd_places_are_copied_and_empty_tensors_need_nothing() {
        let header =
            header(&[("e", "BF16", 0), ("odd", "U8", 1), ("w", "BF16", 6), ("n", "F4", 3)]);
        let plan = Plan::new(&header, 0, limits(4 * KIB)).unwrap();
        let place = |plan: &Plan, name: &str| plan.place(&header.tensor(name).unwrap());
        assert_eq!(place(&plan, "e"), Place::Empty);
        assert_eq!(place(&plan, "odd"), Place::Window { window: 0, offset: 0 });
        assert_eq!(place(&plan, "w"), Place::Copy);
        assert_eq!(place(&plan, "n"), Place::Window { window: 0, offset: 7 });
        assert_eq!((plan.copied_bytes(), plan.buffer_bytes()), (6, 6 + 4 * KIB));
        // A lead of one byte makes the other half odd.
        let shifted = Plan::new(&header, 1, limits(4 * KIB)).unwrap();
        assert_eq!(place(&shifted, "w"), Place::Window { window: 0, offset: 2 });
    }

    #[test]
    fn nothing_needs_nothing_and_bad_numbers_are_refused() {
        let empty = header(&[("e", "BF16", 0)]);
        let plan = Plan::new(&empty, 0, limits(0)).unwrap();
        assert_eq!((plan.windows(), plan.buffer_bytes()), (&[][..], 0));
        for page_size in [0, 1, 2048, 5000, 12288] {
            let refused = Plan::new(&empty, 0, Limits { page_size, max_buffer_length: 1 << 30 });
            let kind = refused.unwrap_err();
            assert!(matches!(kind.kind(), ErrorKind::BadPageSize { .. }), "{page_size}");
        }
        let one = header(&[("a", "U8", 1)]);
        for lead in [u64::MAX, u64::MAX - 4096, u64::MAX - 4097] {
            let refused = Plan::new(&one, lead, limits(u64::MAX)).unwrap_err();
            assert!(matches!(refused.kind(), ErrorKind::BufferTooShort { .. }), "{refused}");
        }
    }
}
