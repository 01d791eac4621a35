//! Which buffers would lie over this file, and does the GPU read from them what the processor does?

#[cfg(target_os = "macos")]
mod device;

use super::End;
use super::arguments::{Arguments, show, usage};
use super::ls::{name_cell, size_in_words};
use super::output::Output;
use super::table::Table;
use barest::escape::Shown;
use barest::gpu::{Limits, Place, Plan};
use barest::{Shard, TensorInfo};
use std::io::Write;
use std::path::Path;

pub const HELP: &str = "\
usage: barest metal PATH [TENSOR]
       barest metal PATH [--page BYTES] [--max-buffer BYTES]

On a Mac: lays Metal buffers over the mapped pages of a file, without a copy, and tells
how many, how much memory the device counts before and after, and how long it took. Then
a kernel sums a BF16 tensor (TENSOR, or the largest) straight from these pages, and the
sum is compared with the processor's. The file is mapped: nobody may change it meanwhile.

Elsewhere, where there is no device, and with either option: the plan. Which windows of
the mapping become a buffer each (whole pages, in bytes from its start), and which
tensors have to be copied, since a kernel cannot read them where they stand.

  --page BYTES         bytes of a page: 16384 on Apple silicon (the default)
  --max-buffer BYTES   bytes of the longest buffer; 4GiB by default. KiB, MiB, GiB and TiB
                       are understood

Only run against a fake of Metal so far, on Linux: see docs/learnings/17.
";

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let page_size = arguments.option("--page")?;
    let max_buffer = arguments.option("--max-buffer")?;
    let asks_for_a_plan = page_size.is_some() || max_buffer.is_some();
    let page_size = bytes(&arguments, "--page", page_size.as_deref().unwrap_or("16384"))?;
    let max_buffer_length =
        bytes(&arguments, "--max-buffer", max_buffer.as_deref().unwrap_or("4GiB"))?;
    let positional = arguments.positional()?;
    let (path, tensor) = match &positional[..] {
        [path] => (Path::new(path), None),
        [path, tensor] if !asks_for_a_plan => (Path::new(path), Some(tensor.to_string_lossy())),
        found => return Err(usage("metal", format!("expected one path, found {}", found.len()))),
    };
    let model = super::open(path)?;
    if let Some(tensor) = &tensor {
        model.tensor(tensor)?;
    }
    let why = match asks_for_a_plan {
        true => HERE,
        false => match on_the_device(&model, tensor.as_deref(), output)? {
            Ran::Done => return Ok(()),
            Ran::NoDevice(why) => why,
        },
    };
    plan(&model, Limits { page_size, max_buffer_length }, output)?;
    Ok(writeln!(output, "{why}: this is a plan, and no buffer was made")?)
}

/// What came of the wish to use the device.
enum Ran {
    #[cfg_attr(not(target_os = "macos"), expect(dead_code))]
    Done,
    NoDevice(&'static str),
}

#[cfg(target_os = "macos")]
use device::run as on_the_device;

#[cfg(target_os = "macos")]
const HERE: &str = "as asked";

#[cfg(not(target_os = "macos"))]
fn on_the_device(_: &barest::Model, _: Option<&str>, _: &mut Output) -> Result<Ran, End> {
    Ok(Ran::NoDevice(HERE))
}

#[cfg(not(target_os = "macos"))]
const HERE: &str = "there is no Metal here";

/// The windows and the copies of each shard.
fn plan(model: &barest::Model, limits: Limits, output: &mut Output) -> Result<(), End> {
    let mut tensors: Vec<Vec<TensorInfo<'_>>> = model.shards().map(|_| Vec::new()).collect();
    for tensor in model.tensors() {
        tensors[tensor.shard()].push(tensor.info());
    }
    for (shard, tensors) in model.shards().zip(&tensors) {
        write_plan(shard, tensors, &Plan::of(shard, limits)?, output)?;
    }
    Ok(writeln!(
        output,
        "for pages of {} bytes and buffers of {} at most",
        limits.page_size,
        size_in_words(limits.max_buffer_length)
    )?)
}

/// The plan of a file of which the model has these tensors. Windows lie over all that is in it.
fn write_plan(
    shard: &Shard,
    tensors: &[TensorInfo<'_>],
    plan: &Plan,
    output: &mut Output,
) -> Result<(), End> {
    let header = shard.header();
    let path = shard.path().map(|path| path.to_string_lossy());
    let others = match header.len() - tensors.len() {
        0 => String::new(),
        others => format!(" and {others} that the index does not assign"),
    };
    writeln!(
        output,
        "{}: {} tensor{}{others}, {} bytes",
        Shown(path.as_deref().unwrap_or("memory")),
        tensors.len(),
        if tensors.len() == 1 { "" } else { "s" },
        shard.byte_len()
    )?;
    // 1. The windows.
    let mut counts = vec![0u64; plan.windows().len()];
    for tensor in tensors {
        if let Place::Window { window, .. } = plan.place(tensor) {
            counts[window] += 1;
        }
    }
    let rows = plan.windows().iter().zip(&counts).enumerate().map(|(number, (window, tensors))| {
        let numbers = [number as u64, window.start(), window.end(), window.len(), *tensors];
        numbers.iter().map(u64::to_string).collect()
    });
    if !plan.windows().is_empty() {
        Table::new(&["WINDOW", ">FROM", ">TO", ">BYTES", ">TENSORS"]).write(rows, output)?;
    }
    // 2. The copies.
    let copied = header.tensors().filter(|tensor| plan.must_be_copied(tensor));
    let copied: Vec<TensorInfo<'_>> = copied.collect();
    if !copied.is_empty() {
        let row = |tensor: &TensorInfo<'_>| {
            let from = tensor.file_range().start.to_string();
            vec![
                name_cell(tensor.name()),
                tensor.dtype().to_string(),
                from,
                tensor.byte_len().to_string(),
            ]
        };
        Table::new(&["COPIED", "DTYPE", ">FROM", ">BYTES"])
            .write(copied.iter().map(row), output)?;
    }
    let windows = plan.windows().len();
    Ok(writeln!(
        output,
        "{windows} window{}, {} of copies, {} in all\n",
        if windows == 1 { "" } else { "s" },
        size_in_words(plan.copied_bytes()),
        size_in_words(plan.buffer_bytes())
    )?)
}

/// `16384`, `16KiB`, `4GiB`.
fn bytes(arguments: &Arguments, option: &str, text: &str) -> Result<u64, End> {
    const UNITS: [(&str, u64); 4] =
        [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
    let unit = UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (digits, unit) = unit.unwrap_or((text, 1));
    let digits_alone = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| digits_alone);
    number.and_then(|number| number.checked_mul(unit)).ok_or_else(|| {
        let text = show(text.as_ref());
        arguments.usage(format!("{option} takes bytes such as 16384 or 4GiB, not `{text}`"))
    })
}
