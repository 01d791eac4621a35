//! How does a path become a number?
//!
//! The story of one tensor, told with what was measured while it happened: addresses, offsets,
//! pages, faults, time. Nothing in it is made up for the occasion; another run gives other numbers.

use super::output::Output;
use super::{End, demo, sample, values};
use barest::escape::Shown;
use barest::{Backing, Mapping, PageFaults, page_faults};
use std::hint::black_box;
use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, io};

/// A directory of our own that goes away with the story.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, End> {
        let path = std::env::temp_dir().join(format!("barest-tour-{}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => Ok(Scratch(path)),
            Err(error) => {
                let shown = path.to_string_lossy().into_owned();
                Err(End::Bad(format!("cannot make {}: {error}", Shown(&shown))))
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn run(output: &mut Output) -> Result<(), End> {
    let scratch = Scratch::new()?;
    let path = scratch.0.join(sample::MODEL_NAME);
    let bytes = sample::model();
    demo::write_new(&path, &bytes).map_err(|error| {
        let shown = path.to_string_lossy().into_owned();
        End::Bad(format!("cannot write {}: {error}", Shown(&shown)))
    })?;
    let page = Mapping::page_size();
    writeln!(output, "barest: from a file on disk to a number, and nothing in between\n")?;

    // 1. A path.
    step(output, "a path", &Shown(&path.to_string_lossy()).to_string())?;
    note(output, &format!("{} bytes, written just now: a small Llama in BF16", bytes.len()))?;
    drop(bytes);

    // 2. A model: header read and proved, file mapped.
    let before = Instant::now();
    let model = super::open(&path)?;
    let opened = before.elapsed();
    let shard = model.shards().next().ok_or_else(|| End::Bad("no shard".to_owned()))?;
    let header = shard.header();
    step(output, "a header", &format!("8 bytes say that {} follow", header.header_len()))?;
    note(output, "those were read into a private copy, parsed without a tree, and proved:")?;
    note(
        output,
        &format!(
            "{} tensors tile bytes {}..{} of the file, no gap, no overlap",
            header.len(),
            header.data_start(),
            shard.byte_len()
        ),
    )?;
    let mapping = shard.mapping();
    step(output, "a mapping", &format!("{} bytes at {:p}", mapping.len(), mapping.as_ptr()))?;
    let pages = mapping.len().div_ceil(page);
    let touched = match shard.backing() {
        Backing::Mapped => ", none of them touched yet",
        _ => "",
    };
    note(output, &format!("{}: {pages} pages of {page} bytes{touched}", shard.backing()))?;
    note(output, &format!("header and mapping together took {}", in_words(opened)))?;

    // 3. A name.
    let (looked_up, tensor) = fastest(|| model.tensor(sample::FAMOUS_TENSOR));
    let tensor = tensor?;
    let range = tensor.file_range();
    step(output, "a name", sample::FAMOUS_TENSOR)?;
    note(
        output,
        &format!(
            "found in {}: {} {:?}, file bytes {}..{}",
            in_words(looked_up),
            tensor.dtype(),
            tensor.shape(),
            range.start,
            range.end
        ),
    )?;

    // 4. A touch. The row is one that lies on pages of its own.
    let weights = tensor.bf16()?;
    let row = weights.row(ROW)?;
    let offset = range.start as usize + ROW * row.len() * 2;
    step(output, "a touch", &format!("row {ROW}, at file byte {offset}"))?;
    let address = mapping.as_ptr() as usize + offset;
    note(
        output,
        &format!(
            "address {address:#x} = mapping + {offset}: page {}, byte {} of it",
            offset / page,
            offset % page
        ),
    )?;
    let first = touch(|| row.get(0));
    let second = touch(|| row.get(0));
    for (which, touched) in [("first", &first), ("second", &second)] {
        let faults = match touched.faults {
            Some(faults) => {
                format!("{} minor and {} major page faults", faults.minor, faults.major)
            }
            None => "page faults are not counted here".to_owned(),
        };
        note(output, &format!("the {which} touch: {faults}, {}", in_words(touched.time)))?;
    }

    // 5. A number.
    let element = ROW * row.len();
    let raw = values::show(&tensor, element).raw;
    let bits = tensor.chunks::<2>()?[element];
    let bits = u16::from_le_bytes(bits);
    let number = row.get(0).unwrap_or_default();
    step(output, "a number", &format!("bytes {raw}, so BF16 {bits:#06x}"))?;
    note(
        output,
        &format!(
            "sign {:b}, exponent {:08b}, mantissa {:07b}; sixteen zeros behind it make an f32:",
            bits >> 15,
            bits >> 7 & 0xff,
            bits & 0x7f
        ),
    )?;
    note(output, &format!("{:#010x} = {number:?}", number.to_bits()))?;
    let before = Instant::now();
    let sum: f64 = weights.iter().map(f64::from).sum();
    let summed = before.elapsed();
    note(
        output,
        &format!(
            "the sum of all {} is {sum:.6}, read in place in {}",
            weights.len(),
            in_words(summed)
        ),
    )?;

    // 6. The end.
    let addresses = mapping.as_ptr() as usize..mapping.as_ptr() as usize + mapping.len();
    let before = lines_of_the_map(&addresses);
    drop(model);
    let after = lines_of_the_map(&addresses);
    step(output, "the end", "the model is dropped")?;
    match (before, after) {
        (Ok(before), Ok(after)) => note(
            output,
            &format!("lines of /proc/self/maps at these addresses: {before} before, {after} after"),
        )?,
        _ => note(output, "the memory is given back (no /proc/self/maps here to show it)")?,
    }
    writeln!(output, "\nNext: barest demo DIR, barest ls PATH, barest --help")?;
    Ok(())
}

const ROW: usize = 300;

fn step(output: &mut Output, what: &str, line: &str) -> io::Result<()> {
    writeln!(output, "{what:>11}  {line}")
}

fn note(output: &mut Output, line: &str) -> io::Result<()> {
    writeln!(output, "{:>11}  {line}", "")
}

struct Touched {
    time: Duration,
    faults: Option<PageFaults>,
}

/// Time and faults of one look at a byte. The counter is asked once before, so that its own code is
/// in memory.
fn touch<T>(look: impl Fn() -> T) -> Touched {
    let _ = page_faults();
    let before = page_faults();
    let start = Instant::now();
    black_box(look());
    let time = start.elapsed();
    let faults = match (before, page_faults()) {
        (Some(before), Some(after)) => Some(PageFaults {
            minor: after.minor - before.minor,
            major: after.major - before.major,
        }),
        _ => None,
    };
    Touched { time, faults }
}

/// The fastest of a few runs, for what is shorter than a look at the clock: the time of one call.
fn fastest<T>(work: impl Fn() -> T) -> (Duration, T) {
    const CALLS: u32 = 1000;
    let best = (0..5).map(|_| {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(work());
        }
        start.elapsed() / CALLS
    });
    (best.min().unwrap_or_default(), work())
}

pub fn in_words(time: Duration) -> String {
    match time.as_nanos() {
        nanos @ 0..1_000 => format!("{nanos} ns"),
        nanos @ 1_000..1_000_000 => format!("{:.1} microseconds", nanos as f64 / 1e3),
        nanos => format!("{:.1} milliseconds", nanos as f64 / 1e6),
    }
}

/// How many areas of this process's memory overlap a range of addresses.
fn lines_of_the_map(addresses: &Range<usize>) -> io::Result<usize> {
    // A line begins with `begin-end` in hexadecimal; paths in it may be no UTF-8.
    let map = fs::read("/proc/self/maps")?;
    let overlaps = |line: &[u8]| {
        let text = String::from_utf8_lossy(line);
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        let (begin, end) = text.split_whitespace().next()?.split_once('-')?;
        Some(number(begin)? < addresses.end && number(end)? > addresses.start)
    };
    Ok(map.split(|&byte| byte == b'\n').filter(|line| overlaps(line) == Some(true)).count())
}
