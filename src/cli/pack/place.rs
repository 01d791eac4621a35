//! May DST be written, or would SRC then be another model?
//!
//! Over the only file of SRC it may: that is replaced when all of the new one is on the disk. One of
//! several it may not be, nor one more of the files that SRC is by lying in one directory.

use super::super::End;
use barest::Model;
use barest::escape::Shown;
use std::io;
use std::path::{Path, PathBuf};

/// Fails if DST has a name that stands for something else.
pub fn suits(from: &Path, to: &Path, model: &Model) -> Result<(), End> {
    let refused = |why: String| {
        let to = to.to_string_lossy();
        Err(End::Bad(format!("{}: {why}", Shown(&to))))
    };
    if to.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        return refused("a name that ends in .json is that of an index: choose another".to_owned());
    }
    let Ok(place) = place_of(to) else { return Ok(()) };
    let is_there = |path: &Path| path.canonicalize().is_ok_and(|path| path == place);
    let shards = model.shards().filter_map(|shard| shard.path());
    let (count, is_shard) = (model.shards().len(), shards.into_iter().any(is_there));
    let source = from.to_string_lossy();
    match is_shard {
        true if count > 1 => refused(format!(
            "it is one of the {count} files of {}: choose another name",
            Shown(&source)
        )),
        false if model.summary().index.is_none() && lies_in(&place, from) => refused(format!(
            "{} has no index, and would have each tensor twice: choose another directory",
            Shown(&source)
        )),
        _ => Ok(()),
    }
}

/// Where a path leads, also if nothing is there yet.
fn place_of(path: &Path) -> io::Result<PathBuf> {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Err(_), Some(parent), Some(name)) => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            Ok(parent.canonicalize()?.join(name))
        }
        (place, ..) => place,
    }
}

/// Whether a file would be a part of the model that this directory is.
fn lies_in(place: &Path, directory: &Path) -> bool {
    let name = place.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let directory = directory.canonicalize().ok();
    name.ends_with(".safetensors")
        && place.parent().is_some()
        && place.parent() == directory.as_deref()
}
