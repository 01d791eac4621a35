//! What kinds of values does a tensor hold?
//!
//! Every value of a file is looked at, tensor by tensor, a few thousand at a time: nothing of the
//! file is copied as a whole, and a person who waits sees how far it is.

use super::End;
use super::ls::name_cell;
use super::output::Output;
use super::progress::Progress;
use super::table::Table;
use barest::{C64, Dtype, Element, Shard, TensorView};
use std::path::Path;

/// What was found among the values of one tensor.
#[derive(Default)]
struct Survey {
    nan: u64,
    infinite: u64,
    zero: u64,
    /// The least and the greatest finite value, as text; integers of 64 bits have no exact f64.
    range: Option<(String, String)>,
    /// The first element that is no finite number, or no truth value.
    first_bad: Option<usize>,
}

/// Looks at all values of a file and writes a table of what it found; or nothing, if the file changed
/// meanwhile.
pub fn write(path: &Path, output: &mut Output) -> Result<(), End> {
    let model = super::open(path)?;
    let mut progress = Progress::new(
        "looking at values",
        model.tensors().map(|tensor| tensor.byte_len() as u64).sum(),
    );
    let columns =
        ["NAME", "DTYPE", ">NAN", ">INFINITE", ">ZERO", ">LEAST", ">GREATEST", ">FIRST BAD"];
    let table = Table::new(&columns).giving_way(&["ZERO", "DTYPE"]);
    let shards: Vec<&Shard> = model.shards().collect();
    let mut rows = Vec::new();
    for tensor in model.tensors() {
        let survey = look(&tensor, &mut progress);
        shards[tensor.shard()].still_whole()?;
        let (least, greatest) = survey.range.unwrap_or(("-".to_owned(), "-".to_owned()));
        rows.push(vec![
            name_cell(tensor.name()),
            tensor.dtype().to_string(),
            survey.nan.to_string(),
            survey.infinite.to_string(),
            survey.zero.to_string(),
            least,
            greatest,
            survey.first_bad.map_or("-".to_owned(), |index| index.to_string()),
        ]);
    }
    drop(progress);
    Ok(table.write(rows.iter().cloned(), output)?)
}

fn look(tensor: &TensorView<'_>, progress: &mut Progress) -> Survey {
    match tensor.dtype() {
        Dtype::U8 => integers::<u8>(tensor, progress),
        Dtype::I8 => integers::<i8>(tensor, progress),
        Dtype::U16 => integers::<u16>(tensor, progress),
        Dtype::I16 => integers::<i16>(tensor, progress),
        Dtype::U32 => integers::<u32>(tensor, progress),
        Dtype::I32 => integers::<i32>(tensor, progress),
        Dtype::U64 => integers::<u64>(tensor, progress),
        Dtype::I64 => integers::<i64>(tensor, progress),
        Dtype::Bool => truth_values(tensor, progress),
        Dtype::F64 => match tensor.elements::<f64>() {
            Ok(elements) => floats(elements.iter(), 8.0, progress),
            Err(_) => Survey::default(),
        },
        Dtype::C64 => match tensor.elements::<C64>() {
            // A part that is not finite makes its number not finite: two parts an element.
            Ok(elements) => {
                let parts = elements.iter().flat_map(|(re, im)| [re.into(), im.into()]);
                let survey = floats(parts, 4.0, progress);
                Survey { first_bad: survey.first_bad.map(|part| part / 2), ..survey }
            }
            Err(_) => Survey::default(),
        },
        dtype => match tensor.floats() {
            Ok(values) => floats(values.iter().map(f64::from), dtype.bits() as f64 / 8.0, progress),
            Err(_) => Survey::default(),
        },
    }
}

/// How many values are looked at between two glances at the clock.
const AT_ONCE: usize = 1 << 16;

fn floats(values: impl Iterator<Item = f64>, bytes: f64, progress: &mut Progress) -> Survey {
    let mut survey = Survey::default();
    let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
    for (index, value) in values.enumerate() {
        if index % AT_ONCE == 0 {
            progress.advance((AT_ONCE as f64 * bytes) as u64);
        }
        survey.zero += u64::from(value == 0.0);
        if value.is_finite() {
            least = least.min(value);
            greatest = greatest.max(value);
            continue;
        }
        survey.nan += u64::from(value.is_nan());
        survey.infinite += u64::from(value.is_infinite());
        survey.first_bad.get_or_insert(index);
    }
    survey.range = (least <= greatest).then(|| (short(least), short(greatest)));
    survey
}

/// Enough to judge a range by.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        1e-3..1e6 => format!("{value:.5}"),
        _ => format!("{value:.4e}"),
    }
}

fn integers<E>(tensor: &TensorView<'_>, progress: &mut Progress) -> Survey
where
    E: Element,
    E::Value: Ord + ToString,
{
    let mut survey = Survey::default();
    let Ok(elements) = tensor.elements::<E>() else {
        return survey;
    };
    let mut range: Option<(E::Value, E::Value)> = None;
    for (index, value) in elements.iter().enumerate() {
        if index % AT_ONCE == 0 {
            progress.advance((AT_ONCE * size_of::<E::Raw>()) as u64);
        }
        survey.zero += u64::from(value == E::Value::default());
        let (least, greatest) = range.get_or_insert((value, value));
        *least = value.min(*least);
        *greatest = value.max(*greatest);
    }
    survey.range = range.map(|(least, greatest)| (least.to_string(), greatest.to_string()));
    survey
}

fn truth_values(tensor: &TensorView<'_>, progress: &mut Progress) -> Survey {
    let bytes = tensor.bytes();
    progress.advance(bytes.len() as u64);
    let word = |value: bool| value.to_string();
    let truths = bytes.iter().filter(|&&byte| byte == 1).count();
    let zero = bytes.iter().filter(|&&byte| byte == 0).count();
    Survey {
        zero: zero as u64,
        range: (truths + zero > 0).then(|| (word(zero == 0), word(truths > 0))),
        first_bad: bytes.iter().position(|&byte| byte > 1),
        ..Survey::default()
    }
}
