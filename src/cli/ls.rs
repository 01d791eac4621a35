//! What is in this file?

use super::End;
use super::arguments::{Arguments, show, usage};
use super::output::Output;
use super::table::{Table, cut};
use barest::escape::{Json, Shape, Shown};
use barest::{Dtype, Header, TensorInfo};
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use std::path::Path;

pub const HELP: &str = "\
usage: barest ls PATH [--by name|offset] [--json]

Lists the tensors of a safetensors file: name, dtype, shape, bytes, where the data
stands in the file, and the largest power of two that this place is a multiple of
(marked ! if an element would like more). Only the header is read.

  --by offset   in the order of the data (the default)
  --by name     in the order of the names, byte by byte
  --json        one object: {\"tensors\": [{\"name\", \"dtype\", \"shape\", \"file\",
                \"file_range\": [begin, end]}...], \"metadata\": {...} or null}; the
                offsets are those of the file
";

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
    let positional = arguments.positional()?;
    let [path] = &positional[..] else {
        let found = positional.len();
        return Err(usage("ls", format!("expected one path, found {found}")));
    };
    let path = Path::new(path);
    let header = Header::open(path)?;
    let mut tensors: Vec<TensorInfo<'_>> = header.tensors().collect();
    if by_name {
        tensors.sort_by_key(TensorInfo::name);
    }
    match json {
        true => write_json(path, &header, &tensors, output)?,
        false => write_table(&header, &tensors, output)?,
    }
    Ok(())
}

fn write_table(header: &Header, tensors: &[TensorInfo<'_>], output: &mut Output) -> io::Result<()> {
    // 1. A row for each tensor.
    if !tensors.is_empty() {
        const COLUMNS: [&str; 7] = ["NAME", "DTYPE", "SHAPE", ">BYTES", ">FROM", ">TO", ">ALIGN"];
        let table = Table::new(&COLUMNS).giving_way(&["TO", "ALIGN", "FROM", "BYTES"]);
        table.write(tensors.iter().map(cells), output)?;
        writeln!(output)?;
    }
    // 2. Totals, by dtype and in all.
    let of_dtype = |dtype| tensors.iter().filter(move |tensor| tensor.dtype() == dtype);
    let mut totals: Vec<(String, Sum)> = Dtype::ALL
        .iter()
        .map(|&dtype| (dtype.to_string(), sum(of_dtype(dtype))))
        .filter(|(_, sum)| sum.tensors > 0)
        .collect();
    let all = sum(tensors.iter());
    totals.push(("all".to_owned(), all));
    let cells = totals.iter().map(|(dtype, sum)| {
        let numbers = [sum.tensors, sum.elements, sum.bytes].map(|number| number.to_string());
        [std::slice::from_ref(dtype), &numbers[..]].concat()
    });
    Table::new(&["TOTAL", ">TENSORS", ">ELEMENTS", ">BYTES"]).write(cells, output)?;
    // 3. What stands around them.
    writeln!(
        output,
        "\n{} parameters in {} of data, behind a header of {} bytes",
        count_in_words(all.elements),
        size_in_words(all.bytes),
        header.header_len()
    )?;
    match header.metadata() {
        None => writeln!(output, "no __metadata__")?,
        Some(metadata) => {
            let pairs = metadata.len();
            writeln!(output, "__metadata__, {pairs} pair{}", if pairs == 1 { "" } else { "s" })?;
            for (key, value) in metadata.iter() {
                let line = format!("  {} = {}", Shown(key), Shown(&value));
                match output.columns() {
                    Some(columns) => writeln!(output, "{}", cut(&line, columns))?,
                    None => writeln!(output, "{line}")?,
                }
            }
        }
    }
    Ok(())
}

/// One row of the table.
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

#[derive(Clone, Copy, Default)]
struct Sum {
    tensors: u64,
    elements: u64,
    bytes: u64,
}

fn sum<'a>(tensors: impl Iterator<Item = &'a TensorInfo<'a>>) -> Sum {
    tensors.fold(Sum::default(), |sum, tensor| Sum {
        tensors: sum.tensors + 1,
        // Tensors tile the file, so their bytes fit a u64; of F4 there are two elements a byte.
        elements: sum.elements.saturating_add(tensor.elements()),
        bytes: sum.bytes + tensor.byte_len(),
    })
}

fn write_json(
    path: &Path,
    header: &Header,
    tensors: &[TensorInfo<'_>],
    output: &mut Output,
) -> io::Result<()> {
    let file = path.to_string_lossy();
    write!(output, "{{\"tensors\": [")?;
    for (number, tensor) in tensors.iter().enumerate() {
        let range = tensor.file_range();
        write!(
            output,
            "{}\n  {{\"name\": {}, \"dtype\": \"{}\", \"shape\": {}, \"file\": {}, \"file_range\": [{}, {}]}}",
            if number > 0 { "," } else { "" },
            Json(tensor.name()),
            tensor.dtype(),
            AllDimensions(tensor.shape()),
            Json(&file),
            range.start,
            range.end
        )?;
    }
    write!(output, "\n],\n\"metadata\": ")?;
    match header.metadata() {
        None => write!(output, "null")?,
        Some(metadata) => {
            write!(output, "{{")?;
            for (number, (key, value)) in metadata.iter().enumerate() {
                let comma = if number > 0 { "," } else { "" };
                write!(output, "{comma}\n  {}: {}", Json(key), Json(&value))?;
            }
            write!(output, "}}")?;
        }
    }
    writeln!(output, "}}")
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
