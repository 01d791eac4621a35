//! What does a file say about itself, and how is that changed?

use super::End;
use super::arguments::{Arguments, show, usage};
use super::ls::size_in_words;
use super::output::Output;
use barest::escape::{Json, Shown};
use barest::{EditMetadata, Header, Left, Saved, ShardFile};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub const HELP: &str = "\
usage: barest meta PATH [--json]
       barest meta PATH [--set KEY=VALUE]... [--unset KEY]... [--in-place]

Prints __metadata__, a pair on each line, in the order of the file; what does not
print, and the backslash, appears as an escape. Nothing is cut. Of a model of several
files PATH is one of them: each has metadata of its own.

  --json            one JSON object, or null if there is no __metadata__

Or changes it. All else in the header, and every byte of data, stays as it is.

  --set KEY=VALUE   gives a key a value; a new one goes to the end
  --unset KEY       removes a key, which must be there; done after all --set
  --in-place        overwrites the header instead of writing the file anew. Only if
                    the new header fits the old one's place with its padding. The
                    old header is kept in .NAME.header-backup beside the file until
                    that is done: if the computer fails meanwhile, it stays there,
                    and this program says how to restore it

Without --in-place the file is written anew beside the old one, data copied by the
kernel where it can, and takes the name when all of it is on the disk.
";

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let json = arguments.flag("--json");
    let in_place = arguments.flag("--in-place");
    let mut edit = EditMetadata::new();
    let mut changes = 0;
    for pair in arguments.options("--set")? {
        let Some((key, value)) = pair.split_once('=') else {
            let pair = show(pair.as_ref());
            return Err(arguments.usage(format!("--set takes KEY=VALUE, not `{pair}`")));
        };
        edit.set(key, value);
        changes += 1;
    }
    for key in arguments.options("--unset")? {
        edit.unset(key);
        changes += 1;
    }
    let positional = arguments.positional()?;
    let [path] = &positional[..] else {
        let found = positional.len();
        return Err(usage("meta", format!("expected one path, found {found}")));
    };
    let path = &one_file(Path::new(path))?;
    match changes {
        0 if in_place => Err(usage("meta", "--in-place changes nothing by itself".to_owned())),
        0 => print(path, json, output),
        _ if json => Err(usage("meta", "--json prints, it changes nothing".to_owned())),
        _ => change(path, &edit, in_place, output),
    }
}

/// The file itself; of a directory or an index, the only file that the model has.
fn one_file(path: &Path) -> Result<PathBuf, End> {
    let is_index = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if !path.is_dir() && !is_index {
        return Ok(path.to_owned());
    }
    let index = super::index(path)?;
    let mut files = index.shards().iter().filter_map(ShardFile::path);
    match (files.next(), files.count()) {
        (Some(only), 0) => Ok(only.to_owned()),
        (first, others) => Err(End::Bad(format!(
            "{} has {} files, and each has metadata of its own: name one of them, such as {}",
            Shown(&path.to_string_lossy()),
            others + 1,
            Shown(&first.unwrap_or(path).to_string_lossy())
        ))),
    }
}

fn print(path: &Path, json: bool, output: &mut Output) -> Result<(), End> {
    let header = Header::open(path)?;
    match (json, header.metadata()) {
        (true, _) => {
            write_json(&header, output)?;
            writeln!(output)?;
        }
        (false, None) => writeln!(output, "no __metadata__")?,
        (false, Some(metadata)) if metadata.is_empty() => {
            writeln!(output, "__metadata__ is empty")?;
        }
        (false, Some(metadata)) => {
            for (key, value) in metadata.iter() {
                writeln!(output, "{} = {}", Shown(key), Shown(&value))?;
            }
        }
    }
    Ok(())
}

/// The metadata as one JSON value.
fn write_json(header: &Header, output: &mut Output) -> io::Result<()> {
    let Some(metadata) = header.metadata() else {
        return write!(output, "null");
    };
    write!(output, "{{")?;
    for (number, (key, value)) in metadata.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(output, "{comma}\n  {}: {}", Json(key), Json(&value))?;
    }
    write!(output, "{}}}", if metadata.is_empty() { "" } else { "\n" })
}

fn change(
    path: &Path,
    edit: &EditMetadata,
    in_place: bool,
    output: &mut Output,
) -> Result<(), End> {
    let how = match in_place {
        true => {
            edit.save_in_place(path)?;
            "in place".to_owned()
        }
        false => {
            tell(&edit.save(path)?, output)?;
            let header = Header::open(path)?;
            let size = size_in_words(header.data_start() + header.data_len());
            format!("file written anew, {size}")
        }
    };
    let pairs = Header::open(path)?.metadata().map_or(0, |metadata| metadata.len());
    let plural = if pairs == 1 { "" } else { "s" };
    let path = path.to_string_lossy();
    writeln!(output, "{}: {pairs} pair{plural} now, {how}", Shown(&path))?;
    Ok(())
}

/// What somebody who saved a file should know besides.
pub fn tell(saved: &Saved, output: &mut Output) -> io::Result<()> {
    if let Some(error) = saved.unsynced() {
        writeln!(
            output,
            "note: the directory was not flushed to the disk ({error}): a power failure now may bring the old file back"
        )?;
    }
    saved.left().iter().try_for_each(|left: &Left| writeln!(output, "left behind: {left}"))
}
