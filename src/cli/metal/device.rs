//! What becomes of the file's pages on this Mac's GPU?
//!
//! Type-checked and linked by its authors, not run: they had no Mac.

use super::super::End;
use super::super::ls::{name_cell, size_in_words};
use super::super::output::Output;
use super::super::tour::in_words;
use super::Ran;
use barest::escape::Shape;
use barest::gpu::{MetalDevice, MetalModel, sum_bf16, sum_bf16_on_cpu};
use barest::{Dtype, ErrorKind, Model, TensorView};
use std::io::{self, Write};
use std::time::Instant;

/// Lays buffers over the model and sums a tensor, the largest BF16 if none is named.
pub fn run(model: &Model, tensor: Option<&str>, output: &mut Output) -> Result<Ran, End> {
    let device = match MetalDevice::system_default() {
        Ok(device) => device,
        Err(error) if matches!(error.kind(), ErrorKind::NoMetalDevice) => {
            return Ok(Ran::NoDevice("there is no Metal device here"));
        }
        Err(error) => return Err(error.into()),
    };
    // 1. The device, and whether the model suits it.
    line(output, "device", &device.name())?;
    let limits = device.limits();
    let shared = if device.has_unified_memory() { "shared with" } else { "apart from" };
    line(output, "", &format!("its memory is {shared} the processor's"))?;
    line(
        output,
        "",
        &format!(
            "pages of {} bytes, buffers of {} at most",
            limits.page_size,
            size_in_words(limits.max_buffer_length)
        ),
    )?;
    let budget = device.budget(model)?;
    if let Some(recommended) = budget.recommended {
        line(output, "", &format!("at most {} are recommended", size_in_words(recommended)))?;
    }
    if budget.excess() > 0 {
        let excess = size_in_words(budget.excess());
        line(
            output,
            "warning",
            &format!("this model would pass that by {excess}: commands may fail"),
        )?;
    }
    // 2. The buffers.
    let before = Instant::now();
    let buffers = MetalModel::new(&device, model)?;
    let took = before.elapsed();
    let all = buffers.buffers().count();
    let copied = buffers.buffers().filter(|buffer| buffer.is_copy()).count();
    let without = all - copied;
    line(
        output,
        "buffers",
        &format!("{without} over mapped pages, {copied} with a copy, in {}", in_words(took)),
    )?;
    let (allocated, now) = (budget.allocated, device.current_allocated_size());
    line(output, "", &format!("allocated: {allocated} bytes before, {now} after"))?;
    // 3. The sum.
    let largest =
        || model.tensors().filter(|view| view.dtype() == Dtype::Bf16).max_by_key(|v| v.byte_len());
    let view = match tensor {
        Some(name) => Some(model.tensor(name)?),
        None => largest(),
    };
    match view {
        Some(view) => sum(&device, &buffers, &view, output)?,
        None => line(output, "a sum", "there is no BF16 tensor to sum")?,
    }
    Ok(Ran::Done)
}

/// Sums a tensor twice, and compares.
fn sum(
    device: &MetalDevice,
    buffers: &MetalModel,
    view: &TensorView<'_>,
    output: &mut Output,
) -> Result<(), End> {
    let name = view.name();
    line(output, "a sum", &format!("{}  BF16 {}", name_cell(name), Shape(view.shape())))?;
    let before = Instant::now();
    let on_gpu = sum_bf16(device, buffers, name)?;
    let took = in_words(before.elapsed());
    line(output, "", &format!("{:.6} by the GPU, in {took} with compiling", on_gpu.value))?;
    let before = Instant::now();
    let on_cpu = sum_bf16_on_cpu(view)?;
    let took = in_words(before.elapsed());
    line(output, "", &format!("{:.6} by the processor, in {took}", on_cpu.value))?;
    // Bits and places are whole numbers: they agree, or other bytes were read.
    if on_gpu.check != on_cpu.check {
        let (gpu, cpu) = (on_gpu.check, on_cpu.check);
        return Err(End::Bad(format!(
            "the GPU read other bytes: checksum {gpu:08x}, not {cpu:08x}"
        )));
    }
    line(output, "", &format!("the same bytes by both: checksum {:08x}", on_gpu.check))?;
    // The sums are rounded in another order: within what an F32 loses.
    let magnitude: f64 = view.bf16()?.iter().map(|value| f64::from(value.abs())).sum();
    let difference = (on_gpu.value - on_cpu.value).abs();
    if magnitude.is_finite() && difference > magnitude * 1e-4 + f64::from(f32::MIN_POSITIVE) {
        return Err(End::Bad(format!("the sums differ by {difference:e}")));
    }
    Ok(())
}

fn line(output: &mut Output, what: &str, text: &str) -> io::Result<()> {
    writeln!(output, "{what:>9}  {text}")
}
