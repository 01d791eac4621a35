//! How is a model split into files that belong together?
//!
//! ```text
//!   DST/model.safetensors.index.json        {"weight_map": {"a": "model-00001-of-00002.safetensors", …
//!   DST/model-00001-of-00002.safetensors
//!   DST/model-00002-of-00002.safetensors
//! ```
//!
//! The index comes first: a reader who finds it and not all of the files knows that they are not all.

use super::super::demo::write_new;
use super::super::output::Output;
use super::super::{End, ls::size_in_words};
use super::{Pairs, Piece, Wanted, report};
use barest::Saved;
use barest::escape::{Json, Shown};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

const INDEX: &str = "model.safetensors.index.json";

/// A number of bytes as people write it: `5000000000`, `5GB`, `5GiB`. At least 1.
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: u64 = match &text[digits.len()..].trim_start().to_lowercase()[..] {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}

/// Writes the files and their index into a directory that has none. If that fails, what was written
/// is taken away again.
pub fn save(
    directory: &Path,
    pieces: &[Piece<'_>],
    pairs: &Option<Pairs<'_>>,
    wanted: &Wanted,
    most: u64,
    output: &mut Output,
) -> Result<(), End> {
    let cannot = |action: &str, error: io::Error| {
        End::Bad(format!("cannot {action} {}: {error}", Shown(&directory.to_string_lossy())))
    };
    if directory.is_file() {
        let shown = directory.to_string_lossy().into_owned();
        let why = "is a file: with --shard DST is a directory";
        return Err(End::Bad(format!("{} {why}", Shown(&shown))));
    }
    let is_new = !directory.exists();
    fs::create_dir_all(directory).map_err(|error| cannot("make", error))?;
    if let Some(name) = a_model_in(directory).map_err(|error| cannot("read", error))? {
        let shown = directory.to_string_lossy().into_owned();
        return Err(End::Bad(format!("{} has a model in it: {}", Shown(&shown), Shown(&name))));
    }
    let files = split(pieces, most);
    let name = |number: usize| match files.len() {
        1 => "model.safetensors".to_owned(),
        all => format!("model-{:05}-of-{all:05}.safetensors", number + 1),
    };
    let mut written: Vec<PathBuf> = Vec::new();
    let mut steps = || -> Result<Vec<Saved>, End> {
        let mut all = Vec::new();
        if files.len() > 1 {
            let path = directory.join(INDEX);
            let index = index(pieces, &files, name);
            write_new(&path, index.as_bytes())
                .map_err(|error| cannot("write the index in", error))?;
            written.push(path.clone());
            // Before the first file is there for good.
            let index = OpenOptions::new().append(true).open(&path);
            let synced = index.and_then(|index| index.sync_all());
            synced.map_err(|error| cannot("flush the index in", error))?;
        }
        for (number, file) in files.iter().enumerate() {
            let path = directory.join(name(number));
            all.push(super::save(&path, &pieces[file.clone()], pairs, wanted)?);
            written.push(path);
        }
        Ok(all)
    };
    let saved = steps().inspect_err(|_| {
        written.iter().rev().for_each(|path| drop(fs::remove_file(path)));
        if is_new {
            let _ = fs::remove_dir(directory);
        }
    })?;
    for (saved, file) in saved.iter().zip(&files) {
        report(saved, &pieces[file.clone()], wanted, output)?;
    }
    if files.len() > 1 {
        let bytes = pieces.iter().map(Piece::byte_len).sum();
        writeln!(output, "{} files, {} of data in all", files.len(), size_in_words(bytes))?;
    }
    Ok(())
}

/// The name of a file that a reader of the directory would take for a model, or a part of one.
fn a_model_in(directory: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_model = [".safetensors", ".safetensors.index.json"];
        if !name.starts_with('.') && is_model.iter().any(|ending| name.ends_with(ending)) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// One file after the other, each as full as it may be.
fn split(pieces: &[Piece<'_>], most: u64) -> Vec<Range<usize>> {
    let mut files = Vec::new();
    let (mut start, mut bytes) = (0, 0u64);
    for (number, piece) in pieces.iter().enumerate() {
        let with_it = bytes.saturating_add(piece.byte_len());
        if with_it > most && number > start {
            files.push(start..number);
            (start, bytes) = (number, piece.byte_len());
        } else {
            bytes = with_it;
        }
    }
    files.push(start..pieces.len());
    files
}

fn index(pieces: &[Piece<'_>], files: &[Range<usize>], name: impl Fn(usize) -> String) -> String {
    let mut places = BTreeMap::new();
    for (number, file) in files.iter().enumerate() {
        places.extend(pieces[file.clone()].iter().map(|piece| (piece.view.name(), number)));
    }
    let total: u64 = pieces.iter().map(Piece::byte_len).sum();
    let mut text =
        format!("{{\n  \"metadata\": {{\"total_size\": {total}}},\n  \"weight_map\": {{");
    for (place, (tensor, number)) in places.iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        // Writing into a String cannot fail.
        let _ = write!(text, "{comma}\n    {}: \"{}\"", Json(tensor), name(*number));
    }
    text + "\n  }\n}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_as_people_write_them() {
        for (text, expected) in [
            ("5000000000", Some(5_000_000_000)),
            ("5GB", Some(5_000_000_000)),
            ("5 gib", Some(5 << 30)),
            ("2MiB", Some(2 << 20)),
            ("1k", Some(1000)),
            ("0", None),
            ("0GB", None),
            ("", None),
            ("GB", None),
            ("1.5GB", None),
            ("-1", None),
            ("5TB", None),
            ("99999999999GB", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
