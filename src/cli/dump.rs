//! Which bytes stand there, and what do they mean?

use super::arguments::{Arguments, show, usage};
use super::output::Output;
use super::table::Table;
use super::{End, ls, values};
use barest::TensorView;
use barest::escape::{Json, Shape, Shown};
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

pub const HELP: &str = "\
usage: barest dump PATH TENSOR [N] [--row I] [--json]

Shows the first N elements of a tensor (16 if not said): index, the bytes as they
stand in the file, the value. Of dtypes below 8 bits, bytes are shown. Values of F16,
F8, F6 and F4 are not decoded by this version.

  --row I    elements of row I: what stands at index I of the first axis
  --json     one object: {\"values\": [...], \"raw\": [\"hex\", ...]}; floats exactly,
             NaN and infinities as strings, null for what is not decoded

The file is mapped: nobody may change it meanwhile.
";

/// How many elements are shown if nobody says.
const FEW: usize = 16;

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let json = arguments.flag("--json");
    let row = match arguments.option("--row")? {
        Some(row) => Some(number(row.as_ref(), "--row")?),
        None => None,
    };
    let positional = arguments.positional()?;
    let (path, name, most) = match &positional[..] {
        [path, name] => (path, name, None),
        [path, name, most] => (path, name, Some(number(most, "N")?)),
        other => {
            let found = other.len();
            let line = format!("expected PATH TENSOR [N], found {found} arguments");
            return Err(usage("dump", line));
        }
    };
    let Some(name) = name.to_str() else {
        return Err(usage("dump", "a tensor's name is UTF-8".to_owned()));
    };
    let model = super::open(Path::new(path))?;
    let tensor = model.tensor(name)?;
    let Span { first, all } = span(&tensor, row)?;
    // A row is meant whole; of a tensor a few elements are enough.
    let most = most.unwrap_or(if row.is_some() { usize::MAX } else { FEW });
    let last = first + all.min(most);
    match json {
        true => write_json(&tensor, first, last, output),
        false => write_table(&tensor, row, Span { first, all }, last, output),
    }
}

fn number(argument: &OsStr, what: &str) -> Result<usize, End> {
    argument.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
        usage("dump", format!("{what} must be a number, found `{}`", show(argument)))
    })
}

/// Units (elements, or bytes below 8 bits) from `first` on.
#[derive(Clone, Copy)]
struct Span {
    first: usize,
    all: usize,
}

/// The units of a tensor, or of one of its rows.
fn span(tensor: &TensorView<'_>, row: Option<usize>) -> Result<Span, End> {
    let all = tensor.byte_len() / values::unit_bytes(tensor.dtype());
    let Some(row) = row else {
        return Ok(Span { first: 0, all });
    };
    let name = Shown(tensor.name());
    let Some(&rows) = tensor.shape().first() else {
        return Err(End::Bad(format!("tensor `{name}` is a scalar and has no rows")));
    };
    if row as u64 >= rows {
        let line =
            format!("tensor `{name}` has {rows} rows, counted from 0; there is no row {row}");
        return Err(End::Bad(line));
    }
    if tensor.dtype().element_bytes().is_none() {
        let line = format!("rows of {} need not begin at a byte", tensor.dtype());
        return Err(End::Bad(line));
    }
    let units = (all as u64 / rows) as usize;
    Ok(Span { first: row.saturating_mul(units), all: units })
}

fn write_json(
    tensor: &TensorView<'_>,
    first: usize,
    last: usize,
    output: &mut Output,
) -> Result<(), End> {
    write!(
        output,
        "{{\"name\": {}, \"dtype\": \"{}\", \"shape\": {}, \"first\": {first},\n\"values\": [",
        Json(tensor.name()),
        tensor.dtype(),
        ls::shape(tensor.shape())
    )?;
    for (number, shown) in values::show(tensor, first, last).enumerate() {
        write!(output, "{}{}", if number > 0 { ", " } else { "" }, shown.json)?;
    }
    write!(output, "],\n\"raw\": [")?;
    for (number, shown) in values::show(tensor, first, last).enumerate() {
        write!(output, "{}\"{}\"", if number > 0 { ", " } else { "" }, shown.raw)?;
    }
    writeln!(output, "]}}")?;
    Ok(())
}

fn write_table(
    tensor: &TensorView<'_>,
    row: Option<usize>,
    span: Span,
    last: usize,
    output: &mut Output,
) -> Result<(), End> {
    let range = tensor.file_range();
    let unit = values::unit_bytes(tensor.dtype());
    writeln!(
        output,
        "{}  {} {}  file bytes {}..{}",
        Shown(tensor.name()),
        tensor.dtype(),
        Shape(tensor.shape()),
        range.start,
        range.end
    )?;
    if let Some(row) = row {
        writeln!(output, "row {row}")?;
    }
    let is_whole = tensor.dtype().element_bytes().is_some();
    let what = if is_whole { "elements" } else { "bytes" };
    let shown = last - span.first;
    // Rows are written as they come, so that a large N needs no memory.
    const AT_ONCE: usize = 10_000;
    for start in (span.first..last).step_by(AT_ONCE) {
        let end = last.min(start + AT_ONCE);
        let mut table = Table::new(&["INDEX", ">OFFSET", ">RAW", ">VALUE"]);
        for (number, value) in (start..end).zip(values::show(tensor, start, end)) {
            let index = if is_whole { index(number, tensor.shape()) } else { number.to_string() };
            let offset = range.start + (number * unit) as u64;
            table.row(vec![index, offset.to_string(), value.raw, value.text]);
        }
        match start == span.first {
            true => table.write(output)?,
            false => table.write_rows(output)?,
        }
    }
    if shown < span.all {
        writeln!(output, "… {} more {what}", span.all - shown)?;
    }
    if span.all == 0 {
        writeln!(output, "no {what}")?;
    }
    if !values::has_values(tensor.dtype()) {
        writeln!(output, "values of {} are not decoded by this version", tensor.dtype())?;
    }
    Ok(())
}

/// The indices along each axis of element `number`, as `[row,column]`.
fn index(number: usize, shape: &[u64]) -> String {
    let mut rest = number as u64;
    let mut indices: Vec<String> = shape
        .iter()
        .rev()
        .map(|&dimension| {
            let index = rest % dimension;
            rest /= dimension;
            index.to_string()
        })
        .collect();
    indices.reverse();
    format!("[{}]", indices.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_has_a_number_for_each_axis() {
        assert_eq!(index(0, &[]), "[]");
        assert_eq!(index(7, &[10]), "[7]");
        assert_eq!(index(7, &[2, 2, 3]), "[1,0,1]");
    }
}
