//! Which files does it consist of, and what was left out?

use super::super::output::Output;
use super::super::table::Table;
use super::name_cell;
use barest::escape::Shown;
use barest::{Index, Mapping, ShardFile};
use std::io::{self, Write};
use std::path::Path;

/// The files, unless the only one is what was asked for.
pub fn write(path: &Path, index: &Index, output: &mut Output) -> io::Result<()> {
    if index.shards().len() > 1 || index.shards().first().and_then(ShardFile::path) != Some(path) {
        writeln!(output)?;
        let columns = ["FILE", ">SHARD", ">TENSORS", ">BYTES"];
        let rows = (0..).zip(index.shards()).map(|(number, file): (usize, &ShardFile)| {
            let (tensors, bytes) = (file.header().len(), file.header().model_len());
            let numbers = [number.to_string(), tensors.to_string(), bytes.to_string()];
            [&[name_cell(&file_name(file.path().unwrap_or(Path::new(""))))], &numbers[..]].concat()
        });
        Table::new(&columns).write(rows, output)?;
        writeln!(output)?;
    }
    for line in notes(index) {
        writeln!(output, "{line}")?;
    }
    Ok(())
}

/// What else there is to know of a set of files.
pub fn notes(index: &Index) -> Vec<String> {
    let mut notes = Vec::new();
    let summary = index.summary();
    if let Some(path) = &summary.index {
        notes.push(format!("index: {}", Shown(&file_name(path))));
    }
    if !summary.ignored.is_empty() {
        let names: Vec<String> = summary.ignored.iter().map(|path| file_name(path)).collect();
        notes.push(format!("ignored beside it: {}", Shown(&names.join(", "))));
    }
    if summary.unassigned > 0 {
        let (count, are) = match summary.unassigned {
            1 => ("1 tensor".to_owned(), "is"),
            count => (format!("{count} tensors"), "are"),
        };
        notes.push(format!(
            "{count} of the shards {are} not assigned to them by the index, and left out"
        ));
    }
    notes.extend(cannot_be_mapped(index));
    notes
}

/// What the file system says if its files cannot be mapped.
fn cannot_be_mapped(index: &Index) -> Option<String> {
    let file = index.shards().iter().find_map(|file| file.file())?;
    // Nothing is read by it, and it is given back at once.
    let refused = Mapping::open(file).err()?;
    // What has reached a limit, or is too long, is not read in its place.
    const ENODEV: i32 = 19;
    let reads =
        refused.kind() == io::ErrorKind::Unsupported || refused.raw_os_error() == Some(ENODEV);
    let instead = if reads { ": open reads it into memory" } else { "" };
    Some(format!("cannot be mapped here ({refused}){instead}"))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
