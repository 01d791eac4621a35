//! Is this the same model, and if not, where is it another?

use super::End;
use super::arguments::{Arguments, usage};
use super::ls::name_cell;
use super::output::Output;
use super::progress::Progress;
use super::table::Table;
use barest::escape::{Shape, Shown};
use barest::{Dtype, Model, TensorView};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

pub const HELP: &str = "\
usage: barest diff A B

Compares two models tensor by tensor: names, dtypes, shapes, bytes. Of floats that
differ it tells how many elements do, by how much at most, and the index of the first
with that difference; also where the dtypes differ and the shapes do not. (None do if
only the dtypes, the signs of zeros, or the insides of NaNs differ.) NaN and NaN
are equal, NaN and a number differ by NaN. Places in the file, order and padding do not
count. Metadata that differs is told, and does not count either.

The files are mapped: nobody may change them meanwhile.

Exit status: 0 if all tensors are the same, 1 if any is not.
";

pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let positional = arguments.positional()?;
    let [one, other] = &positional[..] else {
        let found = positional.len();
        return Err(usage("diff", format!("expected two paths, found {found}")));
    };
    let (one, other) = (Path::new(one), Path::new(other));
    let models = (super::open(one)?, super::open(other)?);
    let differences = compare(&models.0, &models.1);
    // What was compared came byte by byte.
    models.0.still_whole()?;
    models.1.still_whole()?;
    let same = models.0.len() - differences.only_in_a.len() - differences.differing.len();
    write_only("A", &differences.only_in_a, output)?;
    write_only("B", &differences.only_in_b, output)?;
    write_differing(&differences.differing, output)?;
    write_metadata(&models.0, &models.1, output)?;
    let of_all = models.0.len().max(models.1.len());
    writeln!(output, "{same} of {of_all} tensor{} the same", if of_all == 1 { "" } else { "s" })?;
    match differences.is_none() {
        true => Ok(()),
        false => {
            let shown = |path: &Path| Shown(&path.to_string_lossy()).to_string();
            Err(End::Bad(format!("{} and {} differ", shown(one), shown(other))))
        }
    }
}

struct Differences<'a> {
    only_in_a: Vec<TensorView<'a>>,
    only_in_b: Vec<TensorView<'a>>,
    differing: Vec<(TensorView<'a>, TensorView<'a>, Differing)>,
}

impl Differences<'_> {
    fn is_none(&self) -> bool {
        self.only_in_a.is_empty() && self.only_in_b.is_empty() && self.differing.is_empty()
    }
}

/// How two tensors of one name differ.
enum Differing {
    /// They cannot be compared element by element.
    Form,
    /// No floats: the bytes that differ, and the first.
    Bytes { count: u64, first: usize },
    /// Floats: the elements that differ, the largest difference, and where that is first. Only the
    /// bytes differ if there are none (zeros of another sign, NaNs of another payload).
    Values { count: u64, largest: f64, at: usize },
}

fn compare<'a>(a: &'a Model, b: &'a Model) -> Differences<'a> {
    let all = a.tensors().map(|tensor| tensor.byte_len() as u64).sum();
    let mut progress = Progress::new("comparing", all);
    let only_in_b = b.tensors().filter(|tensor| a.get(tensor.name()).is_none()).collect();
    let mut differences = Differences { only_in_a: Vec::new(), only_in_b, differing: Vec::new() };
    for tensor in a.tensors() {
        match b.get(tensor.name()) {
            None => differences.only_in_a.push(tensor),
            Some(other) => {
                if let Some(how) = differ(&tensor, &other) {
                    differences.differing.push((tensor, other, how));
                }
            }
        }
        progress.advance(tensor.byte_len() as u64);
    }
    differences
}

fn differ(a: &TensorView<'_>, b: &TensorView<'_>) -> Option<Differing> {
    if a.shape() != b.shape() {
        return Some(Differing::Form);
    }
    let same_dtype = a.dtype() == b.dtype();
    if same_dtype && a.bytes() == b.bytes() {
        return None;
    }
    match (numbers(a), numbers(b)) {
        (Some(a), Some(b)) => Some(differing_values(a, b)),
        _ if !same_dtype => Some(Differing::Form),
        _ => {
            let unequal = |(one, other): (&u8, &u8)| one != other;
            let bytes = || a.bytes().iter().zip(b.bytes());
            Some(Differing::Bytes {
                count: bytes().filter(|&pair| unequal(pair)).count() as u64,
                first: bytes().position(unequal).unwrap_or_default(),
            })
        }
    }
}

/// The values of a float tensor, exactly.
fn numbers<'a>(tensor: &TensorView<'a>) -> Option<Box<dyn Iterator<Item = f64> + 'a>> {
    match tensor.dtype() {
        Dtype::F64 => Some(Box::new(tensor.elements::<f64>().ok()?.iter())),
        _ => Some(Box::new(tensor.floats().ok()?.iter().map(f64::from))),
    }
}

fn differing_values(a: impl Iterator<Item = f64>, b: impl Iterator<Item = f64>) -> Differing {
    let (mut count, mut largest, mut at) = (0, 0.0f64, 0);
    for (index, (one, other)) in a.zip(b).enumerate() {
        if one == other || one.is_nan() && other.is_nan() {
            continue;
        }
        count += 1;
        let difference = (one - other).abs();
        // The first NaN stays; else the first of the largest.
        if !largest.is_nan() && (difference > largest || difference.is_nan()) {
            (largest, at) = (difference, index);
        }
    }
    Differing::Values { count, largest, at }
}

fn write_only(model: &str, tensors: &[TensorView<'_>], output: &mut Output) -> io::Result<()> {
    if tensors.is_empty() {
        return Ok(());
    }
    let title = format!("ONLY IN {model}");
    let rows = tensors.iter().map(|tensor| {
        let shape = Shape(tensor.shape()).to_string();
        vec![name_cell(tensor.name()), tensor.dtype().to_string(), shape]
    });
    Table::new(&[&title, "DTYPE", "SHAPE"]).giving_way(&["SHAPE"]).write(rows, output)?;
    writeln!(output)
}

fn write_differing(
    differing: &[(TensorView<'_>, TensorView<'_>, Differing)],
    output: &mut Output,
) -> io::Result<()> {
    if differing.is_empty() {
        return Ok(());
    }
    let rows = differing.iter().map(|(a, b, how)| {
        let dash = || "-".to_owned();
        let [count, largest, at] = match how {
            Differing::Form => [dash(), dash(), dash()],
            Differing::Bytes { count, first } => {
                [format!("{count} bytes"), dash(), format!("byte {first}")]
            }
            Differing::Values { count: 0, .. } => [format!("0 of {}", a.len()), dash(), dash()],
            Differing::Values { count, largest, at } => {
                [format!("{count} of {}", a.len()), format!("{largest:e}"), index(*at, a.shape())]
            }
        };
        let dtype = either(a.dtype().to_string(), b.dtype().to_string());
        let shape = either(Shape(a.shape()).to_string(), Shape(b.shape()).to_string());
        vec![name_cell(a.name()), dtype, shape, count, largest, at]
    });
    const COLUMNS: [&str; 6] = ["DIFFER", "DTYPE", "SHAPE", ">ELEMENTS", ">LARGEST", ">AT"];
    Table::new(&COLUMNS).giving_way(&["SHAPE", "AT", "DTYPE"]).write(rows, output)?;
    writeln!(output)
}

/// What both have, or what each has.
fn either(a: String, b: String) -> String {
    if a == b { a } else { format!("{a} | {b}") }
}

/// The index of an element along each axis, as `dump` has it.
fn index(mut element: usize, shape: &[u64]) -> String {
    let mut places: Vec<String> = shape
        .iter()
        .rev()
        .map(|&dimension| {
            let dimension = dimension.max(1) as usize;
            let place = element % dimension;
            element /= dimension;
            place.to_string()
        })
        .collect();
    places.reverse();
    format!("[{}]", places.join(","))
}

/// Keys that one of them lacks, or has with another value.
fn write_metadata(a: &Model, b: &Model, output: &mut Output) -> io::Result<()> {
    let (a, b) = (pairs(a), pairs(b));
    let differs = |key: &&String| a.get(*key) != b.get(*key);
    let mut keys: Vec<&String> = a.keys().chain(b.keys()).filter(differs).collect();
    keys.sort();
    keys.dedup();
    if keys.is_empty() {
        return Ok(());
    }
    let cell = |value: Option<&String>| match value {
        Some(value) => barest::escape::Brief(value).to_string(),
        None => "-".to_owned(),
    };
    let rows = keys.iter().map(|&key| vec![name_cell(key), cell(a.get(key)), cell(b.get(key))]);
    Table::new(&["METADATA", "A", "B"]).write(rows, output)?;
    writeln!(output)
}

/// The pairs of all shards; the first that has a key counts.
fn pairs(model: &Model) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    for metadata in model.shards().filter_map(|shard| shard.metadata()) {
        for (key, value) in metadata.iter() {
            pairs.entry(key.to_owned()).or_insert_with(|| value.into_owned());
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_difference_is_the_first_of_its_size_and_a_nan_beats_all() {
        let of = |a: &[f64], b: &[f64]| match differing_values(a.iter().copied(), b.iter().copied())
        {
            Differing::Values { count, largest, at } => (count, largest.to_string(), at),
            _ => panic!("no values"),
        };
        let (nan, infinite) = (f64::NAN, f64::INFINITY);
        for (a, b, expected) in [
            (&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.5, 2.5, 4.0], (2, "0.5", 1)),
            (&[0.0, nan, 1.0, 1.0], &[-0.0, nan, 1.0, 1.0], (0, "0", 0)),
            (&[nan, 1.0, nan, 9.0], &[nan, 3.0, 1.0, 0.0], (3, "NaN", 2)),
            (&[infinite, infinite, 0.0, 0.0], &[infinite, 1.0, 0.0, 0.0], (1, "inf", 1)),
            (&[infinite, 0.0, 0.0, 0.0], &[-infinite, 0.0, 0.0, 0.0], (1, "inf", 0)),
        ] {
            let expected = (expected.0, expected.1.to_owned(), expected.2);
            assert_eq!(of(a, b), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn an_element_has_an_index_on_each_axis() {
        assert_eq!(index(0, &[]), "[]");
        assert_eq!(index(7, &[3, 4]), "[1,3]");
        assert_eq!(index(23, &[2, 3, 4]), "[1,2,3]");
    }
}
