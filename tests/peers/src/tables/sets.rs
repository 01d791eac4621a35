//! How fast does a directory become a model, and what does that ask of the heap and the system?
//!
//! All pages that anyone touches are in memory. The peers are given the list of shards and read no
//! index; barest is given the directory and reads the index, where there is one.

use super::fresh::system_calls;
use crate::Run;
use crate::bench::{Contender, Spread, race};
use crate::count::{Heap, heap};
use crate::sets::{ModelFiles, SETS, Set};
use crate::table::{Cell, Goal, Table};
use barest::{Model, OpenOptions};
use barest_peers::peers::{by_candle, header_and_map, map_all, route};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

const MANY: usize = 163;
const GOAL: Goal = Goal::AtLeast(8.0);
const MOST_BESIDE: Goal = Goal::AtMost(150.0);

pub fn times(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for set in wanted(run, "sets") {
        let files = set.files(&run.folder)?;
        agree(&files);
        let (directory, paths) = (&files.directory, &files.paths[..]);
        let [reference, candle, barest, alone, bare] = race(
            [
                Contender::new(|watch| {
                    let maps = map_all(paths);
                    watch.ready(&route(&maps));
                }),
                Contender::new(|watch| watch.ready(&by_candle(paths))),
                Contender::new(|watch| watch.ready(&by_barest(directory))),
                Contender::new(|watch| watch.ready(&by_barest_alone(directory))),
                Contender::new(|watch| watch.ready(&system_calls_alone(paths))),
            ],
            run.rounds,
        );
        let one = |seconds: &[f64]| Cell::Seconds(Spread::of(seconds.iter().copied()));
        let ratio = Spread::of_ratios(&reference, &barest);
        rows.push(vec![
            Cell::Text(set.name.to_owned()),
            Cell::Count(files.names.len()),
            one(&reference),
            one(&candle),
            one(&barest),
            one(&alone),
            one(&bare),
            Cell::Times(ratio),
            Cell::Times(Spread::of_ratios(&candle, &barest)),
            Cell::Times(Spread::of_ratios(&reference, &alone)),
            Cell::Times(Spread::of_ratios(&barest, &bare)),
            if paths.len() == MANY { GOAL.met_by(ratio.median) } else { Cell::None },
        ]);
    }
    Ok(Table {
        title: "sets: from a directory to a model, warm (the last number of a name: its files)"
            .into(),
        columns: &[
            "model",
            "tensors",
            "memmap2 + safetensors + HashMap",
            "candle",
            "barest",
            "barest, one thread",
            "open, read headers, map",
            "barest is faster than the first",
            "than candle",
            "one thread than the first",
            "barest takes as long as system calls alone",
            "goal",
        ],
        rows,
    })
}

pub fn memory(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for set in wanted(run, "sets-memory") {
        let files = set.files(&run.folder)?;
        let (directory, paths) = (&files.directory, &files.paths[..]);
        let maps = map_all(paths);
        let reference = heap(|| route(&maps));
        drop(maps);
        let candle = heap(|| by_candle(paths));
        let barest = heap(|| by_barest(directory));
        for (opener, heap) in [("reference", reference), ("candle", candle), ("barest", barest)] {
            let tensors = files.names.len() as f64;
            let mut row = vec![
                Cell::Text(format!("{}, {opener}", set.name)),
                Cell::Count(heap.calls),
                Cell::Bytes(heap.asked),
                Cell::Bytes(heap.peak),
                Cell::Bytes(heap.kept),
                Cell::Each(heap.peak as f64 / tensors),
                Cell::Each(heap.kept as f64 / tensors),
            ];
            row.extend(match opener {
                "barest" => beside_the_texts(&files, &heap),
                _ => [Cell::None, Cell::None, Cell::None, Cell::None],
            });
            rows.push(row);
        }
    }
    Ok(Table {
        title: "sets-memory: what opening asks of the heap; for each tensor from `most` on".into(),
        columns: &[
            "model",
            "calls",
            "bytes asked for",
            "most at once",
            "kept",
            "most",
            "kept each",
            "most beside the headers",
            "beside the index too",
            "kept beside the headers",
            "goal",
        ],
        rows,
    })
}

/// barest holds the texts of the headers, and for a while that of the index; per tensor. (The peers
/// read the headers where they are mapped and copy the names.)
fn beside_the_texts(files: &ModelFiles, heap: &Heap) -> [Cell; 4] {
    let each = |bytes: usize, texts| bytes.saturating_sub(texts) as f64 / files.names.len() as f64;
    let (headers, index) = (files.header_bytes, files.index_bytes());
    let goal = match files.paths.len() {
        MANY => MOST_BESIDE.met_by(each(heap.peak, headers)),
        _ => Cell::None,
    };
    [
        Cell::Each(each(heap.peak, headers)),
        Cell::Each(each(heap.peak, headers + index)),
        Cell::Each(each(heap.kept, headers)),
        goal,
    ]
}

pub fn calls(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for set in wanted(run, "sets-calls") {
        let files = set.files(&run.folder)?;
        let mut row = vec![Cell::Text(set.name.to_owned())];
        for opener in ["map-safetensors", "map-candle", "map-barest"] {
            let calls = system_calls(opener, &files.directory);
            row.push(calls.map_or(Cell::None, |calls| Cell::Count(calls.values().sum())));
        }
        rows.push(row);
    }
    Ok(Table {
        title: "sets-calls: system calls of opening, without those that close (`-`: no strace)"
            .into(),
        columns: &["model", "memmap2 + safetensors + HashMap", "candle", "barest"],
        rows,
    })
}

fn wanted<'a>(run: &'a Run, table: &'a str) -> impl Iterator<Item = &'static Set> + 'a {
    SETS.iter().filter(move |set| run.wants(table, set.name))
}

fn by_barest(directory: &Path) -> Model {
    // SAFETY: nobody else knows of these files.
    unsafe { Model::map(directory).expect("a model") }
}

fn by_barest_alone(directory: &Path) -> Model {
    // SAFETY: nobody else knows of these files.
    unsafe { OpenOptions::new().read_threads(NonZeroUsize::MIN).map(directory).expect("a model") }
}

/// What nobody can do without who keeps a copy of the headers and maps the files: no parse.
fn system_calls_alone(paths: &[PathBuf]) -> Vec<(Vec<u8>, memmap2::Mmap)> {
    paths.iter().map(|path| header_and_map(path)).collect()
}

/// No number counts before all see the same tensors at the same places.
fn agree(files: &ModelFiles) {
    let (maps, candle, ours) =
        (map_all(&files.paths), by_candle(&files.paths), by_barest(&files.directory));
    let routed = route(&maps);
    assert_eq!((ours.len(), routed.tensor_count()), (files.names.len(), files.names.len()));
    for name in &files.names {
        let (our, their) =
            (ours.tensor(name).expect("a tensor"), routed.tensor(name).expect("one"));
        let begin = (their.data().as_ptr().addr() - maps[our.shard()].as_ptr().addr()) as u64;
        assert_eq!(our.file_range(), begin..begin + their.data().len() as u64, "{name}");
        assert_eq!(our.dtype().name(), their.dtype().to_string(), "{name}");
        assert_eq!(candle.get(name).expect("a tensor").shape(), their.shape(), "{name}");
        let shape = their.shape().iter().map(|&dimension| dimension as u64);
        assert!(shape.eq(our.shape().iter().copied()), "{name}");
    }
}
