//! Does the GPU read what the processor reads?
//!
//! One kernel sums a BF16 tensor where it stands. Each thread adds every so many elements in F32,
//! and beside it a checksum of their bits and places in whole numbers, which no rounding, no order and no
//! fast mathematics can change: if that is the same, the GPU has seen the same bytes at the same
//! places.

#![cfg(all(
    target_pointer_width = "64",
    any(target_os = "macos", target_os = "ios", all(test, unix)),
))]

use super::super::error::Result;
use super::super::tensor::TensorView;
use super::device::MetalDevice;
use super::metal::MetalModel;
use std::ffi::CStr;

/// Metal's language has `bfloat` only since macOS 14; a BF16 is the upper half of an F32 everywhere.
const SOURCE: &CStr = c"
#include <metal_stdlib>
using namespace metal;

kernel void sum_bf16(device const ushort *elements [[buffer(0)]],
                     device float *sums [[buffer(1)]],
                     device uint *checks [[buffer(2)]],
                     constant ulong &count [[buffer(3)]],
                     uint thread_number [[thread_position_in_grid]],
                     uint threads [[threads_per_grid]])
{
    float sum = 0;
    uint check = 0;
    for (ulong i = thread_number; i < count; i += threads) {
        uint bits = elements[i];
        sum += as_type<float>(bits << 16);
        check += (bits + 1) * uint(2 * i + 1);
    }
    sums[thread_number] = sum;
    checks[thread_number] = check;
}
";

const GROUPS: usize = 64;
const THREADS: usize = 256;

/// The sum of a tensor, and what it is made of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sum {
    /// The sum of the elements.
    pub value: f64,
    /// The sum, modulo 2^32, of each element's bits and one, times twice its place and one.
    pub check: u32,
}

/// Sums a BF16 tensor on the GPU, from the buffer that it stands in. An empty one is 0.
///
/// Fails with [`NotFound`](super::super::ErrorKind::NotFound), with
/// [`WrongDtype`](super::super::ErrorKind::WrongDtype), and with
/// [`Metal`](super::super::ErrorKind::Metal) if the kernel cannot be compiled or run.
pub fn sum_bf16(device: &MetalDevice, model: &MetalModel, name: &str) -> Result<Sum> {
    let count = model.model().tensor(name)?.bf16()?.len();
    let Some(tensor) = model.tensor(name)? else {
        return Ok(Sum { value: 0.0, check: 0 });
    };
    let kernel = device.compile(SOURCE, c"sum_bf16")?;
    let threads = THREADS.min(kernel.most_threads()).max(1);
    let groups = GROUPS.min(count.div_ceil(threads));
    let places = groups * threads;
    let sums = device.zeros(places as u64 * 4)?;
    let checks = device.zeros(places as u64 * 4)?;
    let constant = (count as u64).to_ne_bytes();
    tensor.run(&kernel, &[&sums, &checks], &constant, groups, threads)?;
    let value = sums.words(places)?.into_iter().map(|bits| f64::from(f32::from_bits(bits))).sum();
    let check = checks.words(places)?.into_iter().fold(0, u32::wrapping_add);
    Ok(Sum { value, check })
}

/// The same by the processor, from the same pages.
pub fn sum_bf16_on_cpu(tensor: &TensorView<'_>) -> Result<Sum> {
    let value = tensor.bf16()?.iter().map(f64::from).sum();
    let check = tensor.chunks::<2>()?.iter().enumerate().fold(0u32, |check, (place, bytes)| {
        let bits = u32::from(u16::from_le_bytes(*bytes));
        check.wrapping_add((bits + 1).wrapping_mul((place as u32).wrapping_mul(2) | 1))
    });
    Ok(Sum { value, check })
}
