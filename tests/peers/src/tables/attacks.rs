//! What does a header of 100 MB cost that was made to cost much?
//!
//! The same files as in the root package's `tests/attacks.rs`, at their full length: what is held at
//! once, and the instructions for each byte, up to the verdict.

use super::instructions::count;
use crate::Run;
use crate::count::heap;
use crate::table::{Cell, Goal, Table};
use barest::{Header, OpenOptions};
use std::io;
use std::path::Path;

/// The default cap.
const LONGEST: usize = 100_000_000;

/// What a call may hold at once, in lengths of the text. A list that grows counts twice while it is
/// copied.
const MOST: Goal = Goal::AtMost(10.0);

/// What a header begins with, repeats, and ends with; and the bytes of data it asks for.
struct Attack {
    name: &'static str,
    before: &'static str,
    again: &'static str,
    after: &'static str,
    data_len: usize,
}

#[rustfmt::skip]
const ATTACKS: [Attack; 7] = [
    Attack { name: "brackets", before: "", again: "[", after: "", data_len: 0 },
    Attack { name: "brackets-ignored", before: r#"{"t":{"x":"#, again: "[", after: "", data_len: 0 },
    Attack { name: "zeros-ignored", before: r#"{"t":{"x":["#, again: "0,", after: r#"0],"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#, data_len: 1 },
    Attack { name: "one-name", before: "{\"", again: "n", after: r#"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#, data_len: 1 },
    Attack { name: "one-name-escaped", before: "{\"", again: "\\u0061", after: r#"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#, data_len: 1 },
    Attack { name: "one-shape", before: r#"{"t":{"dtype":"U8","data_offsets":[0,1],"shape":["#, again: "1,", after: "1]}}", data_len: 1 },
    Attack { name: "metadata-keys", before: r#"{"__metadata__":{"#, again: r#""":"","#, after: r#""":""}}"#, data_len: 0 },
];

impl Attack {
    fn file(&self) -> Vec<u8> {
        let Attack { before, again, after, data_len, .. } = self;
        let times = (LONGEST - before.len() - after.len()) / again.len();
        padded(
            [before.as_bytes(), &again.as_bytes().repeat(times), after.as_bytes()].concat(),
            *data_len,
        )
    }
}

fn padded(mut text: Vec<u8>, data_len: usize) -> Vec<u8> {
    text.resize(LONGEST, b' ');
    text.resize(LONGEST + data_len, 0);
    [&(LONGEST as u64).to_le_bytes(), &text[..]].concat()
}

/// As many tensors as fit: `{:06x}` of them without elements.
fn tensors() -> Vec<u8> {
    let entry = |number: usize| {
        format!(r#""{number:06x}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#)
    };
    let count = (LONGEST - 2) / (entry(0).len() + 1);
    let entries: Vec<String> = (0..count).map(entry).collect();
    padded(format!("{{{}}}", entries.join(",")).into_bytes(), 0)
}

pub fn table(run: &Run) -> io::Result<Table> {
    let path = run.folder.path().join("attack.safetensors");
    let mut rows = Vec::new();
    let makers =
        ATTACKS.iter().map(|attack| (attack.name, Some(attack))).chain([("tensors", None)]);
    for (name, attack) in makers.filter(|(name, _)| run.wants("attacks", name)) {
        let file = attack.map_or_else(tensors, Attack::file);
        std::fs::write(&path, &file)?;
        let mut accepted = false;
        let memory = heap(|| {
            let verdict = Header::parse(&file, file.len() as u64);
            accepted = verdict.is_ok();
            verdict
        });
        drop(file);
        rows.push(row(name, accepted, memory.peak, LONGEST, count("judge", &path, 1)));
    }
    if run.wants("attacks", "index-of-shards") {
        rows.push(index(run, &path)?);
    }
    Ok(Table {
        title: "attacks: texts of 100 MB (the index: 10 MB) that were made to cost much".into(),
        columns: &[
            "attack",
            "verdict",
            "most at once",
            "times the text",
            "goal",
            "instructions a byte",
        ],
        rows,
    })
}

/// An index of ten megabytes, each of whose entries names another shard that is not there.
fn index(run: &Run, path: &Path) -> io::Result<Vec<Cell>> {
    let path = path.with_file_name("model.safetensors.index.json");
    let entry = |number: usize| format!("\"{number:x}\":\"{number:x}\"");
    let entries: Vec<String> = (0..10_000_000 / entry(0xfffff).len()).map(entry).collect();
    let text = format!("{{\"weight_map\":{{{}}}}}", entries.join(","));
    std::fs::write(&path, &text)?;
    let mut options = OpenOptions::new();
    options.read_threads(std::num::NonZeroUsize::MIN);
    let mut accepted = true;
    let memory = heap(|| {
        let verdict = options.index(run.folder.path());
        accepted = verdict.is_ok();
        verdict
    });
    std::fs::remove_file(&path)?;
    Ok(row("index-of-shards", accepted, memory.peak, text.len(), None))
}

fn row(
    name: &str,
    accepted: bool,
    peak: usize,
    len: usize,
    instructions: Option<u64>,
) -> Vec<Cell> {
    let times = peak as f64 / len as f64;
    vec![
        Cell::Text(name.to_owned()),
        Cell::Text(if accepted { "accepted" } else { "refused" }.to_owned()),
        Cell::Bytes(peak),
        Cell::Each(times),
        MOST.met_by(times),
        instructions.map_or(Cell::None, |count| Cell::Each(count as f64 / len as f64)),
    ]
}
