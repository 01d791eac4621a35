//! How is a model written anew: aligned, split, chosen from, converted?

mod convert;
mod place;
mod shards;

use super::End;
use super::arguments::{Arguments, show, usage};
use super::ls::size_in_words;
use super::meta::tell;
use super::output::Output;
use super::progress::Progress;
use barest::escape::{Brief, Shown};
use barest::{Dtype, Model, Order, Saved, Shard, TensorView, Writer};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

pub const HELP: &str = "\
usage: barest pack SRC DST [--align N] [--order file|reference] [--only PREFIX]
                           [--to bf16|f16|f32] [--shard BYTES] [--verify]

Writes the model SRC anew as the file DST, with its metadata. DST may be SRC, if that
is one file. Until all of it is on the disk DST is not there, or stays what it was.
Bytes that stay the same are copied by the kernel where it can. Tensors that an index
does not assign are left out.

Of several files DST has the metadata of all; of a key whose values differ, that of
the first file that has it, and a note says so. With --shard each file has all of it.

  --align N         data begins on a multiple of N bytes, a power of two: 64, 4096,
                    16384 for Metal (by default 8)
  --order file      tensors in the order of SRC (the default)
  --order reference widest dtypes first, then by name, as the reference writer does;
                    metadata by its keys
  --only PREFIX     only the tensor of this name, and those below it: `a.b` chooses
                    a.b and a.b.c, not a.bc; a PREFIX that ends with a dot is taken
                    as it is
  --to DTYPE        converts tensors of F64, F32, F16 and BF16, to the nearest, ties
                    to even; all others stay as they are
  --shard BYTES     DST is a directory without a model in it: splits into files of at
                    most so many bytes of data (as 5000000000, 5GB or 5GiB), a larger
                    tensor in one of its own, with model.safetensors.index.json
  --verify          reads what was written and compares every byte with its source
                    before the file gets its name

The files are mapped: nobody may change SRC meanwhile.
";

/// What shall be done.
struct Wanted {
    align: u64,
    order: Order,
    only: Option<String>,
    to: Option<Dtype>,
    shard: Option<u64>,
    verify: bool,
}

/// A tensor on its way.
struct Piece<'a> {
    view: TensorView<'a>,
    /// The file that holds it.
    shard: &'a Shard,
    dtype: Dtype,
    /// Finite values that the new dtype has only infinity for.
    overflowed: Cell<u64>,
}

impl Piece<'_> {
    /// Bytes that it will have.
    fn byte_len(&self) -> u64 {
        match self.dtype == self.view.dtype() {
            true => self.view.byte_len() as u64,
            false => self.view.len() as u64 * self.dtype.bits() / 8,
        }
    }
}

type Pairs<'a> = Vec<(&'a str, Cow<'a, str>)>;

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let wanted = Wanted::from(&mut arguments)?;
    let positional = arguments.positional()?;
    let [from, to] = &positional[..] else {
        let found = positional.len();
        return Err(usage("pack", format!("expected SRC and DST, found {found} paths")));
    };
    let (from, to) = (Path::new(from), Path::new(to));
    let model = super::open(from)?;
    place::suits(from, to, &model)?;
    let pieces = chosen(&model, &wanted)?;
    let (pairs, notes) = metadata(&model);
    match wanted.shard {
        None => {
            let saved = save(to, &pieces, &pairs, &wanted)?;
            report(&saved, &pieces, &wanted, output)?;
        }
        Some(most) => shards::save(to, &pieces, &pairs, &wanted, most, output)?,
    }
    tell_of_conversion(&pieces, &wanted, output)?;
    notes.iter().try_for_each(|note| writeln!(output, "note: {note}"))?;
    tell_of_unassigned(&model, output)?;
    Ok(())
}

/// That there is less in DST than in the files of SRC.
fn tell_of_unassigned(model: &Model, output: &mut Output) -> io::Result<()> {
    match model.summary().unassigned {
        0 => Ok(()),
        1 => writeln!(output, "note: 1 tensor that the index does not assign is left out"),
        count => {
            writeln!(output, "note: {count} tensors that the index does not assign are left out")
        }
    }
}

impl Wanted {
    fn from(arguments: &mut Arguments) -> Result<Wanted, End> {
        let verify = arguments.flag("--verify");
        let align = match arguments.option("--align")? {
            None => 8,
            Some(text) => match text.parse() {
                Ok(align) if u64::is_power_of_two(align) => align,
                _ => return Err(not(arguments, "--align takes a power of two", &text)),
            },
        };
        let order = match arguments.option("--order")?.as_deref() {
            None | Some("file") => Order::AsGiven,
            Some("reference") => Order::Reference,
            Some(other) => return Err(not(arguments, "--order takes file or reference", other)),
        };
        let to = match arguments.option("--to")? {
            None => None,
            Some(text) => match &text.to_lowercase()[..] {
                "bf16" => Some(Dtype::Bf16),
                "f16" => Some(Dtype::F16),
                "f32" => Some(Dtype::F32),
                _ => return Err(not(arguments, "--to takes bf16, f16 or f32", &text)),
            },
        };
        let shard = match arguments.option("--shard")? {
            None => None,
            Some(text) => match shards::bytes(&text) {
                Some(bytes) => Some(bytes),
                None => return Err(not(arguments, "--shard takes a number of bytes", &text)),
            },
        };
        let only = arguments.option("--only")?;
        Ok(Wanted { align, order, only, to, shard, verify })
    }
}

fn not(arguments: &Arguments, takes: &str, found: &str) -> End {
    arguments.usage(format!("{takes}, not `{}`", show(found.as_ref())))
}

/// The tensors that shall be written, and as what.
fn chosen<'a>(model: &'a Model, wanted: &Wanted) -> Result<Vec<Piece<'a>>, End> {
    let is_chosen = |view: &TensorView<'_>| match &wanted.only {
        None => true,
        Some(prefix) => is_below(view.name(), prefix),
    };
    let shards: Vec<&Shard> = model.shards().collect();
    let piece = |view: TensorView<'a>| {
        let dtype = match wanted.to {
            Some(dtype) if convert::is_convertible(view.dtype()) => dtype,
            _ => view.dtype(),
        };
        Piece { view, shard: shards[view.shard()], dtype, overflowed: Cell::new(0) }
    };
    let pieces: Vec<Piece<'a>> = model.tensors().filter(is_chosen).map(piece).collect();
    match &wanted.only {
        Some(prefix) if pieces.is_empty() => {
            Err(End::Bad(format!("no tensor is `{}` or below it", Brief(prefix))))
        }
        _ => Ok(pieces),
    }
}

/// Whether a name is the prefix, or goes on behind it with a dot.
fn is_below(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('.') || prefix.is_empty() || prefix.ends_with('.')
    })
}

/// The metadata of all shards; of a key that several have, the first value, and a note where another
/// is another.
fn metadata(model: &Model) -> (Option<Pairs<'_>>, Vec<String>) {
    let mut pairs: Option<Pairs<'_>> = None;
    let mut differ = BTreeSet::new();
    for metadata in model.shards().filter_map(|shard| shard.metadata()) {
        let known = pairs.get_or_insert_with(Vec::new);
        for (key, value) in metadata.iter() {
            match known.iter().find(|(known, _)| *known == key) {
                None => known.push((key, value)),
                Some((_, kept)) if *kept != value => drop(differ.insert(key)),
                Some(_) => {}
            }
        }
    }
    let note = |key| {
        format!("files differ in `{}` of their metadata; the first value is kept", Shown(key))
    };
    (pairs, differ.into_iter().map(note).collect())
}

/// Writes one file.
fn save(
    path: &Path,
    pieces: &[Piece<'_>],
    pairs: &Option<Pairs<'_>>,
    wanted: &Wanted,
) -> Result<Saved, End> {
    let mut progress = Progress::new("writing", 0);
    let lost = RefCell::new(None);
    let lost_in = |shard: &Shard| match shard.still_whole() {
        Ok(()) => Ok(()),
        Err(error) => {
            lost.replace(Some(error));
            Err(io::Error::other("the file changed"))
        }
    };
    let mut writer = Writer::new();
    writer.order(wanted.order).align(wanted.align).verify(wanted.verify);
    writer.progress(|done, all| progress.reach(done, all));
    if let Some(pairs) = pairs {
        writer.metadata_pairs(pairs.iter().map(|(key, value)| (*key, &**value)));
    }
    for piece in pieces {
        let Piece { view, shard, dtype, .. } = piece;
        match *dtype == view.dtype() {
            true => writer.copy(view.name(), *view),
            false => writer.stream(view.name(), *dtype, view.shape(), |to| {
                piece.overflowed.set(convert::pour(view, *dtype, to)?);
                // It read value by value, which can report no loss.
                lost_in(shard)
            }),
        };
    }
    let saved = writer.save(path);
    drop(writer);
    Ok(saved.map_err(|error| lost.take().unwrap_or(error))?)
}

fn report(
    saved: &Saved,
    pieces: &[Piece<'_>],
    wanted: &Wanted,
    output: &mut Output,
) -> io::Result<()> {
    let bytes = pieces.iter().map(Piece::byte_len).sum();
    writeln!(
        output,
        "{}: {} tensor{}, {} of data{}",
        Shown(&saved.path().to_string_lossy()),
        pieces.len(),
        if pieces.len() == 1 { "" } else { "s" },
        size_in_words(bytes),
        if wanted.verify { ", verified" } else { "" }
    )?;
    tell(saved, output)
}

fn tell_of_conversion(
    pieces: &[Piece<'_>],
    wanted: &Wanted,
    output: &mut Output,
) -> io::Result<()> {
    let Some(dtype) = wanted.to else { return Ok(()) };
    let converted = pieces.iter().filter(|piece| piece.dtype != piece.view.dtype()).count();
    let other = pieces.iter().filter(|piece| piece.dtype != dtype).count();
    write!(output, "{converted} of {} tensors converted to {dtype}", pieces.len())?;
    match other {
        0 => writeln!(output)?,
        other => writeln!(output, ", {other} stay what they are")?,
    }
    for piece in pieces.iter().filter(|piece| piece.overflowed.get() > 0) {
        writeln!(
            output,
            "note: `{}`: {} finite values are too large for {dtype} and became infinite",
            Brief(piece.view.name()),
            piece.overflowed.get()
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_a_name_has_a_dot() {
        for (name, prefix, below) in [
            ("a.b", "a", true),
            ("a.b", "a.b", true),
            ("a.b", "a.", true),
            ("a.bc", "a.b", false),
            ("ab", "a", false),
            ("a", "a.b", false),
            ("a", "", true),
        ] {
            assert_eq!(is_below(name, prefix), below, "{name} below {prefix}");
        }
    }
}
