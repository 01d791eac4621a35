//! Does every tensor lie whole in a window of pages, whatever the model, the page and the limit?
//!
//! Models are shapes and dtypes alone: a header and the length of its file, no data. The oracle is
//! the way that is usual elsewhere, windows of one length which overlap by the largest tensor and a
//! page. Ours must succeed wherever that does, with no more windows and no more bytes.

use barest::gpu::{Limits, Place, Plan};
use barest::{Dtype, ErrorKind, Header};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Spaces behind a header.
#[derive(Clone, Copy, Debug)]
enum Padding {
    Bytes(usize),
    /// The data begin with a page.
    ToPage,
}

fn padding() -> impl Strategy<Value = Padding> {
    prop_oneof![(0usize..40).prop_map(Padding::Bytes), Just(Padding::ToPage)]
}

/// A header of tensors one behind the other.
fn header(tensors: &[(Dtype, u64)], padding: Padding) -> Header {
    let mut text = String::from("{\"__metadata__\":{}");
    let mut end = 0;
    for (number, (dtype, elements)) in tensors.iter().enumerate() {
        // Whole bytes, also below 8 bits.
        let elements = elements * 4;
        let begin = end;
        end += elements * dtype.bits() / 8;
        text += &format!(
            ",\"t{number}\":{{\"dtype\":\"{dtype}\",\"shape\":[{elements}],\"data_offsets\":[{begin},{end}]}}"
        );
    }
    text += "}";
    text += &" ".repeat(match padding {
        Padding::Bytes(bytes) => bytes,
        Padding::ToPage => (text.len() + 8).next_multiple_of(4096) - text.len() - 8,
    });
    let mut prefix = (text.len() as u64).to_le_bytes().to_vec();
    prefix.extend(text.bytes());
    Header::parse(&prefix, prefix.len() as u64 + end).unwrap()
}

fn tensors() -> impl Strategy<Value = Vec<(Dtype, u64)>> {
    let elements = prop_oneof![
        1 => Just(0u64),
        3 => 0u64..200,
        3 => 0u64..40_000,
        // On a boundary, and beside it.
        2 => (1u64..8, 0u64..3).prop_map(|(pages, more)| pages * 4096 + more - 1),
    ];
    let dtype = select(vec![
        Dtype::F4,
        Dtype::F6E2M3,
        Dtype::U8,
        Dtype::Bf16,
        Dtype::Bf16,
        Dtype::F32,
        Dtype::F64,
        Dtype::C64,
    ]);
    vec((dtype, elements), 0..24)
}

fn limits() -> impl Strategy<Value = Limits> {
    let page_size = select(vec![4096u64, 16_384, 65_536]);
    (page_size, 0u64..20, 0u64..3).prop_map(|(page_size, pages, more)| Limits {
        page_size,
        max_buffer_length: (pages * page_size + more).saturating_sub(1),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_tensor_lies_whole_in_one_window(
        tensors in tensors(), padding in padding(), lead in 0u64..3, limits in limits(),
    ) {
        let header = header(&tensors, padding);
        let Limits { page_size, max_buffer_length } = limits;
        let pages = |start: u64, end: u64| start / page_size * page_size..end.next_multiple_of(page_size);
        let plan = match Plan::new(&header, lead, limits) {
            Ok(plan) => plan,
            Err(error) => {
                // Only where the tensor's own pages, or its copy, are too many.
                let tensor = header.tensor(error.tensor().unwrap()).unwrap();
                let range = tensor.file_range();
                let pages = pages(lead + range.start, lead + range.end);
                let is_copied = (lead + range.start) % (tensor.dtype().bits() / 8).max(1) != 0;
                let needed = if is_copied { tensor.byte_len() } else { pages.end - pages.start };
                prop_assert!(needed > max_buffer_length);
                let told = matches!(
                    error.kind(),
                    &ErrorKind::BufferTooShort { expected, found }
                        if (expected, found) == (max_buffer_length, needed)
                );
                prop_assert!(told, "{}", error);
                return Ok(());
            }
        };
        // 1. Windows are whole pages, in order, within the mapping and the limit.
        let mapped = pages(0, lead + header.data_start() + header.data_len());
        for window in plan.windows() {
            prop_assert_eq!(window.start() % page_size, 0);
            prop_assert_eq!(window.len() % page_size, 0);
            prop_assert!((1..=max_buffer_length).contains(&window.len()));
            prop_assert!(window.end() <= mapped.end);
        }
        for two in plan.windows().windows(2) {
            prop_assert!(two[0].start() < two[1].start() && two[0].end() < two[1].end());
            prop_assert!(two[0].end().saturating_sub(two[1].start()) <= page_size);
        }
        // 2. Every tensor is where the plan says, whole, and where a kernel can read it.
        let mut used = vec![0; plan.windows().len()];
        let mut copied = 0;
        for tensor in header.tensors() {
            let element = (tensor.dtype().bits() / 8).max(1);
            let start = lead + tensor.file_range().start;
            match plan.place(&tensor) {
                Place::Empty => prop_assert_eq!(tensor.byte_len(), 0),
                Place::Copy => {
                    prop_assert!(start % element != 0 && tensor.byte_len() <= max_buffer_length);
                    copied += tensor.byte_len();
                }
                Place::Window { window, offset } => {
                    let of = plan.windows()[window];
                    used[window] += 1;
                    prop_assert_eq!(of.start() + offset, start);
                    prop_assert!(offset + tensor.byte_len() <= of.len());
                    prop_assert_eq!(offset % element, 0);
                }
            }
        }
        // 3. Nothing for nothing, and the sum is the sum.
        prop_assert!(used.iter().all(|&tensors| tensors > 0));
        prop_assert_eq!(plan.copied_bytes(), copied);
        let windows: u64 = plan.windows().iter().map(|window| window.len()).sum();
        prop_assert_eq!(plan.buffer_bytes(), windows + copied);
    }

    #[test]
    fn no_more_windows_and_bytes_than_with_a_fixed_overlap(
        tensors in tensors(), padding in padding(), limits in limits(),
    ) {
        let header = header(&tensors, padding);
        let file_len = header.data_start() + header.data_len();
        let largest = header.tensors().map(|tensor| tensor.byte_len()).max().unwrap_or(0);
        let Some(usual) = with_fixed_overlap(file_len, largest, limits) else { return Ok(()) };
        let plan = Plan::new(&header, 0, limits).unwrap();
        prop_assert!(plan.windows().len() <= usual.len(), "{:?} {:?}", plan, usual);
        let windows = plan.buffer_bytes() - plan.copied_bytes();
        prop_assert!(windows <= usual.iter().map(|(start, end)| end - start).sum(), "{:?} {:?}", plan, usual);
    }
}

/// Windows as llama.cpp has them, with its unchecked subtraction checked.
fn with_fixed_overlap(file_len: u64, largest: u64, limits: Limits) -> Option<Vec<(u64, u64)>> {
    let Limits { page_size, max_buffer_length } = limits;
    let end = file_len.next_multiple_of(page_size);
    let longest = max_buffer_length / page_size * page_size;
    if end <= longest {
        return Some(vec![(0, end)]);
    }
    let overlap = (largest.div_ceil(page_size) + 1) * page_size;
    let step = longest.checked_sub(overlap).filter(|&step| step > 0)?;
    let mut windows = vec![(0, longest)];
    while windows.last()?.1 < end {
        let start = windows.last()?.0 + step;
        windows.push((start, end.min(start + longest)));
    }
    Some(windows)
}
