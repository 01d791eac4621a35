//! Which bytes stand there, and what do they mean?

use super::arguments::{Arguments, show, usage};
use super::output::Output;
use super::table::Table;
use super::{End, ls, values};
use barest::escape::{Json, Shape, Shown};
use barest::{Select, Shard, Sliced, TensorView};
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

pub const HELP: &str = "\
usage: barest dump PATH TENSOR [N] [--row I | --slice S] [--json]

Shows the first N elements of a tensor (16 if not said): index, file offset, the bytes
as they stand in the file, the value. Of elements below 8 bits, the bits are shown as
one number, and the low bits of a byte are the first element.

  --row I     all elements (or N of them) at index I of the first axis
  --slice S   all elements (or N) of a part: for each axis, separated by commas, an
              index, a range or a range with a step, as in '3,0:64,::2'
  --json      one object: {\"values\": [...], \"raw\": [\"hex\", ...]}; floats exactly,
              NaN and infinities as strings

The file is mapped: nobody may change it meanwhile. If somebody did, it is told at
the end, and what was shown is not to be trusted.
";

/// How many elements are shown if nobody says.
const FEW: usize = 16;

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let json = arguments.flag("--json");
    let row = arguments.option("--row")?;
    let slice = arguments.option("--slice")?;
    let is_row = row.is_some();
    let (part, selects) = match (row, slice) {
        (Some(_), Some(_)) => {
            return Err(arguments.usage("--row and --slice exclude each other".to_owned()));
        }
        (Some(row), None) => {
            let index = number(row.as_ref(), "--row")? as u64;
            (Some(format!("row {index}")), vec![Select::Index(index)])
        }
        (None, Some(slice)) => {
            let selects = parse(&slice).ok_or_else(|| {
                let slice = show(slice.as_ref());
                arguments.usage(format!("`{slice}` is no slice such as '3,0:64,::2'"))
            })?;
            (Some(format!("slice [{}]", show(slice.as_ref()))), selects)
        }
        (None, None) => (None, Vec::new()),
    };
    let positional = arguments.positional()?;
    let (path, name, most) = match &positional[..] {
        [path, name] => (path, name, None),
        [path, name, most] => (path, name, Some(number(most, "N")?)),
        other => {
            let found = other.len();
            let s = if found == 1 { "" } else { "s" };
            let line = format!("expected PATH TENSOR [N], found {found} argument{s}");
            return Err(usage("dump", line));
        }
    };
    let Some(name) = name.to_str() else {
        return Err(usage("dump", "a tensor's name is UTF-8".to_owned()));
    };
    let model = super::open(Path::new(path))?;
    let tensor = model.tensor(name)?;
    let sliced = match is_row {
        // Of a scalar there is no row, rather than one axis too few.
        true if tensor.shape().is_empty() => tensor.row(0)?,
        _ => tensor.slice(&selects)?,
    };
    // A part is meant whole; of a tensor a few elements are enough.
    let most = most.unwrap_or(if part.is_some() { usize::MAX } else { FEW });
    // Of one file, whoever asks knows which.
    let file = model.shards().nth(tensor.shard()).filter(|_| model.shards().len() > 1);
    let file = file.and_then(Shard::path);
    match json {
        true => write_json(&tensor, &sliced, most, output)?,
        false => write_table(&tensor, file, part, &sliced, most, output)?,
    }
    // What was shown came byte by byte.
    Ok(model.still_whole()?)
}

fn number(argument: &OsStr, what: &str) -> Result<usize, End> {
    argument.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
        usage("dump", format!("{what} must be a number, found `{}`", show(argument)))
    })
}

/// A slice as NumPy writes it, without negative numbers and `...`.
fn parse(slice: &str) -> Option<Vec<Select>> {
    let number = |text: &str| match text.trim() {
        "" => Some(None),
        // `parse` would take a sign.
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok().map(Some),
        _ => None,
    };
    let one = |text: &str| -> Option<Select> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            [index] => number(index)?.map(Select::Index),
            [start, end] => Some(Select::Range {
                start: number(start)?.unwrap_or(0),
                end: number(end)?,
                step: 1,
            }),
            [start, end, step] => Some(Select::Range {
                start: number(start)?.unwrap_or(0),
                end: number(end)?,
                step: number(step)?.unwrap_or(1),
            }),
            _ => None,
        }
    };
    slice.split(',').map(one).collect()
}

/// The elements of a part, by their index in the tensor.
fn indices(tensor: &TensorView<'_>, sliced: &Sliced<'_>) -> impl Iterator<Item = usize> {
    let (start, bits) = (tensor.file_range().start, tensor.dtype().bits());
    sliced.file_ranges().flat_map(move |range| {
        ((range.start - start) * 8 / bits) as usize..((range.end - start) * 8 / bits) as usize
    })
}

fn write_json(
    tensor: &TensorView<'_>,
    sliced: &Sliced<'_>,
    most: usize,
    output: &mut Output,
) -> Result<(), End> {
    write!(
        output,
        "{{\"name\": {}, \"dtype\": \"{}\", \"shape\": {},\n\"values\": [",
        Json(tensor.name()),
        tensor.dtype(),
        ls::AllDimensions(sliced.shape())
    )?;
    for (number, index) in indices(tensor, sliced).take(most).enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        write!(output, "{comma}{}", values::show(tensor, index).json)?;
    }
    write!(output, "],\n\"raw\": [")?;
    for (number, index) in indices(tensor, sliced).take(most).enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        write!(output, "{comma}\"{}\"", values::show(tensor, index).raw)?;
    }
    writeln!(output, "]}}")?;
    Ok(())
}

fn write_table(
    tensor: &TensorView<'_>,
    file: Option<&Path>,
    part: Option<String>,
    sliced: &Sliced<'_>,
    most: usize,
    output: &mut Output,
) -> Result<(), End> {
    let range = tensor.file_range();
    let of_file = file.map(|path| format!(" of {}", Shown(&path.to_string_lossy())));
    writeln!(
        output,
        "{}  {} {}  file bytes {}..{}{}",
        Shown(tensor.name()),
        tensor.dtype(),
        Shape(tensor.shape()),
        range.start,
        range.end,
        of_file.unwrap_or_default()
    )?;
    if let Some(part) = part {
        writeln!(output, "{part}: {}", Shape(sliced.shape()))?;
    }
    // Rows are written as they come, so that a large N needs no memory.
    const AT_ONCE: usize = 10_000;
    let mut elements = indices(tensor, sliced).take(most).peekable();
    let mut is_first = true;
    let table = Table::new(&["INDEX", ">OFFSET", ">RAW", ">VALUE"]);
    while elements.peek().is_some() {
        let numbers: Vec<usize> = elements.by_ref().take(AT_ONCE).collect();
        let rows = numbers.iter().map(|&number| {
            let shown = values::show(tensor, number);
            let offset = range.start + number as u64 * tensor.dtype().bits() / 8;
            vec![index(number, tensor.shape()), offset.to_string(), shown.raw, shown.text]
        });
        match std::mem::take(&mut is_first) {
            true => table.write(rows, output)?,
            false => table.write_rows(rows, output)?,
        }
    }
    match sliced.len() {
        0 => writeln!(output, "no elements")?,
        len if len > most => writeln!(output, "… {} more elements", len - most)?,
        _ => {}
    }
    Ok(())
}

/// The indices along each axis of element `number`, as `[row,column]`; of more than 8 axes the last
/// 8, behind `…`.
fn index(number: usize, shape: &[u64]) -> String {
    const MOST: usize = 8;
    let mut rest = number as u64;
    let mut indices: Vec<String> = shape
        .iter()
        .rev()
        .take(MOST)
        .map(|&dimension| {
            let index = rest % dimension;
            rest /= dimension;
            index.to_string()
        })
        .collect();
    indices.reverse();
    let left_out = if shape.len() > MOST { "…," } else { "" };
    format!("[{left_out}{}]", indices.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_has_a_number_for_each_axis() {
        assert_eq!(index(0, &[]), "[]");
        assert_eq!(index(7, &[10]), "[7]");
        assert_eq!(index(7, &[2, 2, 3]), "[1,0,1]");
        assert_eq!(index(1, &[2; 9]), "[…,0,0,0,0,0,0,0,1]");
    }

    #[test]
    fn slices_are_read_as_numpy_writes_them() {
        for (text, selects) in [
            ("3", Some(vec![Select::Index(3)])),
            (":", Some(vec![Select::all()])),
            ("::", Some(vec![Select::all()])),
            ("0:4, :, ::2", Some(vec![(0..4).into(), Select::all(), Select::all().every(2)])),
            ("1:,:5,1:5:2", Some(vec![(1..).into(), (..5).into(), Select::from(1..5).every(2)])),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1:2:3:4", None),
            ("a", None),
            ("1,,2", None),
            ("...", None),
        ] {
            assert_eq!(parse(text), selects, "{text}");
        }
    }
}
