//! What is in this model?

mod groups;
mod json;
pub mod set;

use super::End;
use super::arguments::{Arguments, show, usage};
use super::output::Output;
use super::table::{Table, cut};
use barest::escape::{Shape, Shown};
use barest::{Dtype, Header, Index, Metadata, TensorInfo};
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::Path;

pub const HELP: &str = "\
usage: barest ls PATH [--by name|offset] [--depth N] [--json]

Lists the tensors of a model: name, dtype, shape, bytes, the number of the shard if
there are several, where in its file the data stands, and the largest power of two
that this place is a multiple of (marked ! if an element would like more). Only
headers are read. PATH may be -: standard input, up to the end of the header.

  --by offset   shard by shard in the order of the data (the default)
  --by name     in the order of the names, byte by byte
  --depth N     one line for all tensors whose names begin with the same N parts, which
                dots divide: --depth 3 joins model.layers.0.*
  --json        one object: {\"tensors\": [{\"name\", \"dtype\", \"shape\", \"file\",
                \"file_range\": [begin, end]}...], \"metadata\": {...} or null}; the
                offsets are those of the file. Of several files, in place of \"metadata\",
                \"shards\": [{\"file\", \"metadata\"}...]. With --depth, in place of
                \"tensors\", \"groups\": [{\"name\", \"tensors\", \"elements\", \"bytes\"}...]
";

/// What is listed, and in which order.
struct Listing<'a> {
    /// Of each shard the path, `-` for standard input, and the header.
    files: Vec<(String, &'a Header)>,
    /// Each tensor with the number of its shard.
    tensors: Vec<(usize, TensorInfo<'a>)>,
    /// What was asked for, and what it is; `None` for standard input.
    set: Option<(&'a Path, &'a Index)>,
}

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let json = arguments.flag("--json");
    let by_name = match arguments.option("--by")?.as_deref() {
        None | Some("offset") => false,
        Some("name") => true,
        Some(other) => {
            let other = show(other.as_ref());
            return Err(arguments.usage(format!("--by takes name or offset, not `{other}`")));
        }
    };
    let depth = match arguments.option("--depth")?.as_deref().map(str::parse::<NonZeroUsize>) {
        None => None,
        Some(Ok(depth)) => Some(depth.get()),
        Some(Err(_)) => {
            return Err(arguments.usage("--depth takes a number, 1 or more".to_owned()));
        }
    };
    let positional = arguments.positional()?;
    let [path] = &positional[..] else {
        let found = positional.len();
        return Err(usage("ls", format!("expected one path, found {found}")));
    };
    if path == "-" {
        let header = Header::read_from(&mut io::stdin().lock())?;
        let tensors = header.tensors().map(|tensor| (0, tensor)).collect();
        let files = vec![("-".to_owned(), &header)];
        return list(Listing { files, tensors, set: None }, by_name, depth, json, output);
    }
    let path = Path::new(path);
    let index = super::index(path)?;
    let name = |path: Option<&Path>| path.unwrap_or(Path::new("")).to_string_lossy().into_owned();
    let files = index.shards().iter().map(|file| (name(file.path()), file.header())).collect();
    let tensors = index.tensors().collect();
    list(Listing { files, tensors, set: Some((path, &index)) }, by_name, depth, json, output)
}

fn list(
    mut listing: Listing<'_>,
    by_name: bool,
    depth: Option<usize>,
    json: bool,
    output: &mut Output,
) -> Result<(), End> {
    if by_name {
        listing.tensors.sort_by_key(|(_, tensor)| tensor.name());
    }
    if json {
        return Ok(json::write(&listing, depth, output)?);
    }
    match depth {
        None => write_tensors(&listing, output)?,
        Some(depth) => groups::write(&listing, depth, output)?,
    }
    write_totals(&listing, output)?;
    if let Some((path, index)) = listing.set {
        set::write(path, index, output)?;
    }
    Ok(write_metadata(&listing, output)?)
}

impl Listing<'_> {
    fn is_set(&self) -> bool {
        self.files.len() > 1
    }
}

/// A row for each tensor.
fn write_tensors(listing: &Listing<'_>, output: &mut Output) -> io::Result<()> {
    const COLUMNS: [&str; 7] = ["NAME", "DTYPE", "SHAPE", ">BYTES", ">FROM", ">TO", ">ALIGN"];
    if listing.tensors.is_empty() {
        return Ok(());
    }
    let mut columns = COLUMNS.to_vec();
    if listing.is_set() {
        columns.insert(4, ">SHARD");
    }
    let table = Table::new(&columns).giving_way(&["TO", "ALIGN", "FROM", "BYTES", "SHARD"]);
    let rows = listing.tensors.iter().map(|(shard, tensor)| {
        let mut cells = cells(tensor);
        if listing.is_set() {
            cells.insert(4, shard.to_string());
        }
        cells
    });
    table.write(rows, output)?;
    writeln!(output)
}

fn cells(tensor: &TensorInfo<'_>) -> Vec<String> {
    let range = tensor.file_range();
    let alignment = alignment(range.start);
    let wants = tensor.dtype().natural_alignment();
    let mark = if alignment < wants && tensor.byte_len() > 0 { "!" } else { "" };
    vec![
        name_cell(tensor.name()),
        tensor.dtype().to_string(),
        Shape(tensor.shape()).to_string(),
        tensor.byte_len().to_string(),
        range.start.to_string(),
        range.end.to_string(),
        format!("{mark}{alignment}"),
    ]
}

/// Totals, by dtype and in all.
fn write_totals(listing: &Listing<'_>, output: &mut Output) -> io::Result<()> {
    let mut by_dtype = [Sum::default(); Dtype::ALL.len()];
    let mut all = Sum::default();
    for (_, tensor) in &listing.tensors {
        by_dtype[tensor.dtype() as usize].add(tensor);
        all.add(tensor);
    }
    let named = Dtype::ALL.iter().map(|&dtype| (dtype.name(), by_dtype[dtype as usize]));
    let rows = named.filter(|(_, sum)| sum.tensors > 0).chain([("all", all)]).map(|(name, sum)| {
        let numbers = [sum.tensors, sum.elements, sum.bytes].map(|number| number.to_string());
        [&[name.to_owned()], &numbers[..]].concat()
    });
    Table::new(&["TOTAL", ">TENSORS", ">ELEMENTS", ">BYTES"]).write(rows, output)?;
    let header_len: u64 = listing.files.iter().map(|(_, header)| header.header_len()).sum();
    let headers = match listing.files.len() {
        1 => "a header".to_owned(),
        shards => format!("the headers of {shards} shards,"),
    };
    writeln!(
        output,
        "\n{} parameter{} in {} of data, behind {headers} of {header_len} bytes",
        count_in_words(all.elements),
        if all.elements == 1 { "" } else { "s" },
        size_in_words(all.bytes),
    )
}

#[derive(Clone, Copy, Default)]
struct Sum {
    tensors: u64,
    elements: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, tensor: &TensorInfo<'_>) {
        self.tensors += 1;
        // Sparse files claim what they like.
        self.elements = self.elements.saturating_add(tensor.elements());
        self.bytes = self.bytes.saturating_add(tensor.byte_len());
    }
}

/// What stands beside the tensors, once where all shards say the same.
fn write_metadata(listing: &Listing<'_>, output: &mut Output) -> io::Result<()> {
    let told: Vec<Option<Metadata<'_>>> =
        listing.files.iter().map(|(_, header)| header.metadata()).collect();
    let Some(&first) = told.first() else { return Ok(()) };
    let same = |other: &Option<Metadata<'_>>| match (other, first) {
        (Some(one), Some(other)) => one.iter().eq(other.iter()),
        (one, other) => one.is_none() && other.is_none(),
    };
    if told.iter().all(same) {
        let of_each = if listing.is_set() { " in each shard" } else { "" };
        return write_pairs(first, of_each, output);
    }
    for (shard, metadata) in told.into_iter().enumerate() {
        write_pairs(metadata, &format!(" in shard {shard}"), output)?;
    }
    Ok(())
}

fn write_pairs(metadata: Option<Metadata<'_>>, of: &str, output: &mut Output) -> io::Result<()> {
    let Some(metadata) = metadata else {
        return writeln!(output, "no __metadata__{of}");
    };
    let pairs = metadata.len();
    writeln!(output, "__metadata__{of}, {pairs} pair{}", if pairs == 1 { "" } else { "s" })?;
    for (key, value) in metadata.iter() {
        let line = format!("  {} = {}", Shown(key), Shown(&value));
        match output.columns() {
            Some(columns) => writeln!(output, "{}", cut(&line, columns))?,
            None => writeln!(output, "{line}")?,
        }
    }
    Ok(())
}

/// A name as a cell of the table: in quotes if its ends could not be seen.
pub fn name_cell(name: &str) -> String {
    let shown = Shown(name);
    match name.is_empty() || name.starts_with(' ') || name.ends_with(' ') {
        true => format!("\"{shown}\""),
        false => shown.to_string(),
    }
}

/// A shape as JSON, all of it, which may be millions of numbers.
pub struct AllDimensions<'a>(pub &'a [u64]);

impl Display for AllDimensions<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (axis, dimension) in self.0.iter().enumerate() {
            write!(f, "{}{dimension}", if axis == 0 { "[" } else { "," })?;
        }
        f.write_str(if self.0.is_empty() { "[]" } else { "]" })
    }
}

/// The largest power of two that an offset is a multiple of; a page at most.
fn alignment(offset: u64) -> usize {
    let page = barest::Mapping::page_size() as u64;
    1 << (offset | page).trailing_zeros()
}

/// 134515008 as `134.5 million`.
fn count_in_words(count: u64) -> String {
    match count {
        0..1_000_000 => count.to_string(),
        1_000_000..1_000_000_000 => format!("{:.1} million", count as f64 / 1e6),
        _ => format!("{:.1} billion", count as f64 / 1e9),
    }
}

/// 269030016 as `256.6 MiB`.
pub fn size_in_words(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} byte{}", if bytes == 1 { "" } else { "s" });
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words() {
        assert_eq!(size_in_words(0), "0 bytes");
        assert_eq!(size_in_words(1023), "1023 bytes");
        assert_eq!(size_in_words(269_030_016), "256.6 MiB");
        assert_eq!(size_in_words(u64::MAX), "16384.0 PiB");
        assert_eq!(count_in_words(999_999), "999999");
        assert_eq!(count_in_words(134_515_008), "134.5 million");
        assert_eq!(count_in_words(70_553_706_496), "70.6 billion");
    }

    #[test]
    fn alignment_is_a_power_of_two_and_a_page_at_most() {
        let page = barest::Mapping::page_size();
        for (offset, expected) in [(0, page), (1, 1), (30_536, 8), (page as u64 * 4, page)] {
            assert_eq!(alignment(offset), expected, "{offset}");
        }
    }
}
