//! Which files does a path mean?
//!
//! ```text
//!   a file                          that file
//!   a file whose name ends in .json an index, and the shards it names in the same directory
//!   a directory                     its one *.safetensors.index.json; or, without one, its one
//!                                   .safetensors file; or all of them, if no name is in two
//! ```
//!
//! One source and never a union: a consolidated file beside the shards is ignored, and said so.

use super::super::error::reserve::no_memory;
use super::super::error::{Error, ErrorKind, Result};
use super::super::escape::Brief;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What a directory holds of a model.
pub enum Source {
    /// An index. Beside it there are these files, which it may name or not.
    Index { index: PathBuf, beside: Vec<PathBuf> },
    /// Files without an index.
    Files(Vec<PathBuf>),
}

/// Whether a file is taken for an index: by its name, as people do.
pub fn is_index(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Looks for a model in a directory. What begins with a dot is no part of one.
pub fn look_into(directory: &Path) -> Result<Source> {
    let entries = std::fs::read_dir(directory)
        .map_err(|error| Error::io("read the directory", error).in_file(directory))?;
    let (mut indexes, mut files, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let entry =
            entry.map_err(|error| Error::io("read the directory", error).in_file(directory))?;
        let name = entry.file_name();
        let ends_with = |end: &str| name.as_encoded_bytes().ends_with(end.as_bytes());
        let list = match () {
            _ if name.as_encoded_bytes().starts_with(b".") => &mut others,
            _ if ends_with(".safetensors.index.json") => &mut indexes,
            _ if ends_with(".safetensors") => &mut files,
            _ => &mut others,
        };
        list.try_reserve(1).map_err(|_| no_memory())?;
        list.push(entry.path());
    }
    files.sort_unstable();
    indexes.sort_unstable();
    match (indexes.len(), files.len()) {
        (1, _) => Ok(Source::Index { index: indexes.remove(0), beside: files }),
        (0, 1..) => Ok(Source::Files(files)),
        (0, 0) => {
            others.sort_unstable();
            let found = names(&others);
            Err(Error::new(ErrorKind::NoModel { found }).in_file(directory))
        }
        _ => {
            let found = names(&indexes);
            Err(Error::new(ErrorKind::SeveralIndexes { found }).in_file(directory))
        }
    }
}

/// A few of the names, for a message.
fn names(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 3;
    let name = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_else(|| OsStr::new(""));
        Brief(&name.to_string_lossy()).to_string()
    };
    let shown: Vec<String> = paths.iter().take(SHOWN).map(name).collect();
    match paths.len() {
        0 => "nothing".to_owned(),
        1..=SHOWN => shown.join(", "),
        all => format!("{} and {} more", shown.join(", "), all - SHOWN),
    }
}
