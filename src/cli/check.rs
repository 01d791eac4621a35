//! Are these files what they claim to be?

use super::arguments::{Arguments, usage};
use super::ls::{set, size_in_words};
use super::output::Output;
use super::{End, survey};
use barest::escape::Shown;
use barest::{Error, Index, Left, Remark, ShardFile, left_in};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub const HELP: &str = "\
usage: barest check [--values] PATH...

Validates models in full: every byte of each header, and that the tensors tile the
data section up to the last byte of the file; of an index, that each shard is there
and holds what the index assigns to it. A good model has one line, and below it
remarks, where it departs from the written format or surprises some readers. A bad
one has a line for each fault, and below it the place, drawn. Goes on after a bad
model. What an interrupted write has left beside it is named, with what to do.

  --values   looks at the values too, of which the format allows any: for each tensor
             how many are NaN, infinite, zero, the least and the greatest of the
             others, and the index of the first that is no finite number (of BOOL:
             neither 0 nor 1). Of C64 both parts are counted. The file is mapped: nobody may
             change it meanwhile, and if somebody did it is reported as bad.

Exit status: 0 if all are good, 1 if any is bad. A NaN makes no file bad.
";

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let values = arguments.flag("--values");
    let paths = arguments.positional()?;
    if paths.is_empty() {
        return Err(usage("check", "expected at least one path".to_owned()));
    }
    let mut bad = 0;
    for path in &paths {
        let path = Path::new(path);
        let index = super::index(path);
        match &index {
            Ok(index) => {
                good(path, index, output)?;
                if values {
                    match survey::write(path, output) {
                        Err(End::Failed(error)) => {
                            bad += 1;
                            writeln!(output, "BAD   {error}")?;
                        }
                        ended => ended?,
                    }
                }
            }
            Err(error) => {
                bad += 1;
                tell_faults(error, output)?;
            }
        }
        let files = index.iter().flat_map(|index| index.shards()).filter_map(ShardFile::path);
        tell_what_was_left(path, &files.collect::<Vec<_>>(), output)?;
    }
    match (bad, paths.len()) {
        (0, _) => Ok(()),
        (_, 1) => Err(End::Bad(format!("{} is bad", Shown(&paths[0].to_string_lossy())))),
        (bad, all) => Err(End::Bad(format!("{bad} of {all} models are bad"))),
    }
}

fn good(path: &Path, index: &Index, output: &mut Output) -> io::Result<()> {
    let plural = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let shards = index.shards().len();
    let in_shards = match shards {
        1 => String::new(),
        shards => format!(" in {shards} shards"),
    };
    let bytes: u64 = index.tensors().map(|(_, tensor)| tensor.byte_len()).sum();
    writeln!(
        output,
        "good  {}: {}{in_shards}, {} of data",
        Shown(&path.to_string_lossy()),
        plural(index.len(), "tensor"),
        size_in_words(bytes)
    )?;
    // What is true of many shards is said once.
    let mut remarks: Vec<(Remark, usize)> = Vec::new();
    for remark in index.shards().iter().flat_map(|file| file.header().remarks()) {
        match remarks.iter_mut().find_map(|(known, count)| joins(known, &remark).then_some(count)) {
            Some(count) => *count += 1,
            None => remarks.push((remark, 1)),
        }
    }
    for (remark, count) in remarks {
        let where_ = match shards {
            1 => String::new(),
            _ => format!(" (in {})", plural(count, "shard")),
        };
        writeln!(output, "      remark: {remark}{where_}")?;
    }
    let total_size = index.summary().total_size.filter(|&total| total != bytes);
    if let Some(total) = total_size {
        let line = format!("the index says total_size {total}, the tensors have {bytes} bytes");
        writeln!(output, "      remark: {line}")?;
    }
    set::notes(index).iter().try_for_each(|note| writeln!(output, "      {note}"))
}

/// Whether a remark about another shard is the same, or was added to this one.
fn joins(known: &mut Remark, other: &Remark) -> bool {
    match (known, other) {
        (Remark::ExtraFields { entries: all }, Remark::ExtraFields { entries: more })
        | (Remark::Misaligned { tensors: all, .. }, Remark::Misaligned { tensors: more, .. })
        | (Remark::Empty { tensors: all }, Remark::Empty { tensors: more }) => {
            *all += more;
            true
        }
        (known, other) => known == other,
    }
}

/// What interrupted writes have left beside a model: of a directory all that is in it, else what
/// belongs to these files. Where a symbolic link leads is where a file is written.
fn tell_what_was_left(path: &Path, files: &[&Path], output: &mut Output) -> io::Result<()> {
    // 1. Which names in which directories.
    let mut names: BTreeMap<PathBuf, BTreeSet<OsString>> = BTreeMap::new();
    for &file in [path].iter().chain(files).filter(|file| !file.is_dir()) {
        let link = file.is_symlink().then(|| file.canonicalize().ok()).flatten();
        let file = link.as_deref().unwrap_or(file);
        let directory = match file.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        };
        names.entry(directory.to_owned()).or_default().extend(file.file_name().map(Into::into));
    }
    if path.is_dir() {
        names.entry(path.to_owned()).or_default();
    }
    // 2. What is there of them. A directory that cannot be read was told of before.
    for (directory, names) in names {
        let left = left_in(&directory).unwrap_or_default();
        let belongs = |left: &&Left| left.of().file_name().is_some_and(|of| names.contains(of));
        for left in left.iter().filter(|left| directory == path || belongs(left)) {
            writeln!(output, "      left behind: {left}")?;
        }
    }
    Ok(())
}

/// All that is wrong with a model, and where.
fn tell_faults(error: &Error, output: &mut Output) -> io::Result<()> {
    let columns = output.columns().unwrap_or(usize::MAX);
    for fault in error.faults() {
        writeln!(output, "BAD   {fault}")?;
        if let Some(caret) = fault.caret_within(columns) {
            writeln!(output, "{caret}")?;
        }
    }
    if let barest::ErrorKind::Faults { more, shards, faults } = error.kind() {
        if *more > 0 {
            return writeln!(output, "      and {more} more");
        }
        let paths = faults.iter().filter_map(Error::path);
        let bad: BTreeSet<&Path> = paths.filter(|&path| Some(path) != error.path()).collect();
        writeln!(output, "      {} of {shards} shards are good", shards - bad.len())?;
    }
    Ok(())
}
