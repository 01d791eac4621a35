//! What other people's software wrote, tensor by tensor, against what was found in it when it was
//! collected.
//!
//! The files are not this project's to give away. `BAREST_FIXTURES` names the folder that has them
//! (`real/`, `written-by-mlx/`, `known-answers/` and the table `expected.tsv`), and `BAREST_REAL` one
//! with those of the table that come out of published packages. A file that is absent is skipped.

#[path = "../src/barest/skip.rs"]
mod skip;

use barest::{Bf16, Model, TensorView};
use skip::skip;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn fixtures() -> Option<PathBuf> {
    let named = env::var_os("BAREST_FIXTURES").map(PathBuf::from);
    let beside = || {
        let repository = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
        Some(repository.join("../shared/fixtures")).filter(|path| path.is_dir())
    };
    let folder = named.or_else(beside);
    if folder.is_none() {
        skip("BAREST_FIXTURES", "it should name the folder of real files and known answers");
    }
    folder
}

/// A row of `expected.tsv`.
#[derive(Clone, PartialEq, Debug)]
struct Expected {
    name: String,
    dtype: String,
    shape: String,
    start: u64,
    len: u64,
    sha256: String,
}

/// The rows of each file.
fn expected(table: &str) -> BTreeMap<String, Vec<Expected>> {
    let mut files: BTreeMap<String, Vec<Expected>> = BTreeMap::new();
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("file\tname_json\tdtype\tshape\tstart\tlength\tsha256"));
    for line in lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, name, dtype, shape, start, len, sha256] = cells[..] else {
            panic!("{line:?} has not seven cells");
        };
        files.entry(file.to_owned()).or_default().push(Expected {
            name: unquoted(name).unwrap_or_else(|| panic!("{name} is no name")),
            dtype: dtype.to_owned(),
            shape: shape.to_owned(),
            start: start.parse().unwrap(),
            len: len.parse().unwrap(),
            sha256: sha256.to_owned(),
        });
    }
    files
}

/// A JSON string with no other escapes than `\"` and `\\`: not read by what is under test.
fn unquoted(json: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = json.strip_prefix('"')?.strip_suffix('"')?.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => characters.next().filter(|next| matches!(next, '"' | '\\'))?,
            plain => plain,
        });
    }
    Some(text)
}

fn found(view: TensorView, sha256: Option<String>, unknown: &str) -> Expected {
    let range = view.file_range();
    Expected {
        name: view.name().to_owned(),
        dtype: view.dtype().name().to_owned(),
        shape: format!("{:?}", view.shape()).replace(' ', ""),
        start: range.start,
        len: range.end - range.start,
        sha256: sha256.unwrap_or_else(|| unknown.to_owned()),
    }
}

/// What the command of that name says of bytes on its standard input; `None` without it.
fn sha256(bytes: &[u8]) -> Option<String> {
    let command = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut command = match command {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        command => command.unwrap(),
    };
    // It prints nothing before it has read everything, so neither can wait for the other.
    command.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = command.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.split(' ').next().unwrap().to_owned())
}

fn map(path: &Path) -> Model {
    // SAFETY: nobody writes to collected files any more.
    match unsafe { Model::map(path) } {
        Err(error) if matches!(error.kind(), barest::ErrorKind::Unsupported { .. }) => {
            skip("mmap", "this system maps no files");
            Model::read(path).unwrap()
        }
        mapped => mapped.unwrap(),
    }
}

#[test]
fn every_tensor_is_where_and_what_it_was_when_it_was_collected() {
    let Some(fixtures) = fixtures() else { return };
    let folders: Vec<PathBuf> = ["real", "written-by-mlx", "known-answers"]
        .map(|folder| fixtures.join(folder))
        .into_iter()
        .chain(env::var_os("BAREST_REAL").map(PathBuf::from))
        .collect();
    let can_hash = sha256(b"").is_some();
    if !can_hash {
        skip("sha256sum", "the hashes of tensors in real files");
    }
    let table = fs::read_to_string(fixtures.join("expected.tsv")).unwrap();
    let mut absent = BTreeSet::new();
    let mut checked = 0;
    for (name, mut rows) in expected(&table) {
        let path = folders.iter().map(|folder| folder.join(&name)).find(|path| path.is_file());
        let Some(path) = path else {
            absent.insert(name);
            continue;
        };
        // 1. Mapped: all of the table's tensors and no other, in the file's order.
        rows.sort_by_key(|row| (row.start, row.len));
        let mapped = map(&path);
        assert_eq!(mapped.len(), rows.len(), "{name}");
        for (row, view) in rows.iter().zip(mapped.tensors()) {
            let hash = can_hash.then(|| sha256(view.bytes()).unwrap());
            assert_eq!(&found(view, hash, &row.sha256), row, "{name}");
            checked += 1;
        }
        // 2. Read and copied: the same again, without asking for the same hash.
        let copied = Model::from_bytes(&fs::read(&path).unwrap()).unwrap();
        for (model, way) in [(Model::read(&path).unwrap(), "read"), (copied, "copied")] {
            assert_eq!(model.len(), rows.len(), "{name}, {way}");
            for (row, other) in rows.iter().zip(model.tensors()) {
                assert_eq!(&found(other, None, &row.sha256), row, "{name}, {way}");
                let same = mapped.tensor(&row.name).unwrap();
                assert!(other.bytes() == same.bytes(), "{name}, {way}: {other:?}");
                assert!(model.tensor(&row.name).unwrap().bytes() == same.bytes(), "{other:?}");
            }
        }
    }
    assert!(checked > 0, "no file of the table is in {folders:?}");
    if !absent.is_empty() {
        skip("BAREST_REAL", &format!("it should name a folder with {absent:?}"));
    }
}

/// In the order of the patterns, little-endian: what a reference made of all 65536.
#[test]
fn every_bf16_is_the_number_that_is_known() {
    let Some(fixtures) = fixtures() else { return };
    let table = fs::read(fixtures.join("known-answers/tables/bf16_to_f32.u32le")).unwrap();
    let known: Vec<u32> =
        table.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!(known.len(), 1 << 16);
    for (bits, known) in (0..=u16::MAX).zip(&known) {
        assert_eq!(Bf16(bits).to_f32().to_bits(), *known, "{bits:04x}");
    }

    // The same out of a model, at an even and at an odd address.
    let header = r#"{"t":{"dtype":"BF16","shape":[256,256],"data_offsets":[0,131072]}}"#;
    let data: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for padding in ["", " "] {
        let header = header.to_owned() + padding;
        let len = (header.len() as u64).to_le_bytes();
        let file = [&len, header.as_bytes(), &data].concat();
        let model = Model::from_bytes(&file).unwrap();
        let view = model.tensor("t").unwrap();
        let elements = view.elements::<Bf16>().unwrap();
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert!(bits(elements.iter().collect()) == known);
        assert!(bits(view.to_f32().unwrap()) == known);
        for (row, known) in known.chunks(256).enumerate() {
            assert_eq!(bits(elements.row(row).unwrap().to_vec().unwrap()), known, "row {row}");
        }
    }
}

/// The table is no better than its reader.
#[test]
fn the_reader_of_the_table_sees_what_differs() {
    assert_eq!(unquoted(r#""a\"\\b""#).as_deref(), Some("a\"\\b"));
    for wrong in ["a", "\"", r#""\n""#, r#""a\""#] {
        assert_eq!(unquoted(wrong), None, "{wrong}");
    }
    let table = "file\tname_json\tdtype\tshape\tstart\tlength\tsha256\n\
                 x\t\"t\"\tU8\t[1,2]\t70\t2\t00\n";
    let rows = expected(table);
    let row = &rows["x"][0];
    assert_eq!((rows.len(), row.start, row.len, &*row.shape), (1, 70, 2, "[1,2]"));
    if let Some(hash) = sha256(b"abc") {
        assert!(hash.starts_with("ba7816bf8f01cfea") && hash.len() == 64, "{hash}");
    }
}
