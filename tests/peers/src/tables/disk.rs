//! How does a model come from the disk, and who pays for it how often?
//!
//! A file with data in all of it. Before each run its pages are dropped and counted; each run is a
//! process of its own.

use super::decode::row;
use crate::Run;
use crate::bench::{Rounds, Spread};
use crate::child::{Cold, Rows, Way, direct_reads, take_turns, weigh};
use crate::filled::{bring_pages, drop_pages, read_ahead};
use crate::table::{Cell, Goal, Table};
use std::fs;
use std::io;
use std::path::Path;

/// Processes that have the model at the same time.
const PROCESSES: usize = 4;

/// What most devices come with; on such ones who only maps waits often.
const USUAL_READ_AHEAD: u64 = 128 << 10;

const WAYS: [&str; 8] = [
    "cold-memmap2",
    "cold-candle",
    "cold-read",
    "direct-2",
    "direct-8",
    "disk-2",
    "disk-8",
    "cold-barest",
];

pub fn cold(run: &Run) -> io::Result<Table> {
    let (rows, file) = match on_disk(run, "cold") {
        Some(path) => (cold_rows(run, path)?, told(path)?),
        None => (Vec::new(), String::new()),
    };
    Ok(Table {
        title: format!("cold: from a path to each page read by a processor; {file}").into(),
        columns: &["what", "beside", "beside takes", "barest", "barest is faster", "goal"],
        rows,
    })
}

/// The file, and what the device makes of who reads it in order.
fn told(path: &Path) -> io::Result<String> {
    let megabytes = fs::metadata(path)?.len() / 1_000_000;
    let ahead =
        read_ahead(path).map_or("unknown".to_owned(), |ahead| format!("{} KiB", ahead >> 10));
    Ok(format!("{megabytes} MB, of which no page is in memory, read-ahead of the device {ahead}"))
}

fn cold_rows(run: &Run, path: &Path) -> io::Result<Vec<Vec<Cell>>> {
    if !direct_reads(path) {
        left_out("cold", "the file system has no direct reads");
        return Ok(Vec::new());
    }
    let all = take_turns::<Cold, 8>(WAYS.map(Way::Itself), path, few(run), || drop_pages(path))?;
    let way = |name: &str| &all[WAYS.iter().position(|way| *way == name).expect("a way")];
    let touch = ["cold-memmap2", "cold-candle", "cold-read", "cold-barest"].map(way);
    let sums = || touch.iter().flat_map(|runs| runs.iter().map(|cold| cold.sum));
    assert!(sums().zip(sums().skip(1)).all(|(one, next)| one == next), "other bytes were seen");
    let until_all = |name| way(name).iter().map(|cold| cold.all).collect::<Vec<f64>>();
    let until_first = |name| way(name).iter().map(|cold| cold.first).collect::<Vec<f64>>();
    let ours = until_all("cold-barest");
    let beside_map = (read_ahead(path) == Some(USUAL_READ_AHEAD)).then_some(1.6);
    let kept = best(["direct-2", "direct-8"].map(until_all));
    let disk = best(["disk-2", "disk-8"].map(until_all));
    let mut rows = vec![
        row("all", "memmap2 + safetensors", &until_all("cold-memmap2"), &ours, beside_map),
        row("all", "candle: load each tensor", &until_all("cold-candle"), &ours, None),
        row("all", "fs::read + safetensors", &until_all("cold-read"), &ours, Some(1.6)),
        row("all", "O_DIRECT into memory", &kept, &ours, None),
        // At most 1.2 times its time.
        row("all", "the disk: O_DIRECT, nothing kept", &disk, &ours, Some(1.0 / 1.2)),
    ];
    let (first, ours) = ("the first 1 %", until_first("cold-barest"));
    let direct = best(["direct-2", "direct-8", "disk-2", "disk-8"].map(until_first));
    rows.extend([
        row(first, "memmap2 + safetensors", &until_first("cold-memmap2"), &ours, None),
        row(first, "fs::read + safetensors", &until_first("cold-read"), &ours, None),
        // At most 1.5 times their time.
        row(first, "the best of O_DIRECT", &direct, &ours, Some(1.0 / 1.5)),
    ]);
    Ok(rows)
}

/// The shortest time of each round.
fn best<const N: usize>(ways: [Vec<f64>; N]) -> Vec<f64> {
    let of_round = |round: usize| ways.iter().map(|way| way[round]).fold(f64::MAX, f64::min);
    (0..ways[0].len()).map(of_round).collect()
}

pub fn rows(run: &Run) -> io::Result<Table> {
    let rows = match on_disk(run, "rows") {
        Some(path) => rows_rows(run, path)?,
        None => Vec::new(),
    };
    Ok(Table {
        title: "rows: one page in a hundred, in no order, the page cache being empty".into(),
        columns: &["way", "takes", "read from the disk", "% of the file", "goal"],
        rows,
    })
}

fn rows_rows(run: &Run, path: &Path) -> io::Result<Vec<Vec<Cell>>> {
    let bytes = fs::metadata(path)?.len() as f64;
    let ways = ["rows-memmap2", "rows-memmap2-advised", "rows-barest"];
    let all = take_turns::<Rows, 3>(ways.map(Way::Itself), path, few(run), || drop_pages(path))?;
    let names = ["memmap2 + safetensors", "the same, MADV_RANDOM", "barest, Advice::Random"];
    let row = |(name, runs): (&str, Vec<Rows>)| {
        let read = Spread::of(runs.iter().map(|rows| rows.read as f64));
        let part = read.median / bytes * 100.0;
        vec![
            Cell::Text(name.to_owned()),
            Cell::Seconds(Spread::of(runs.iter().map(|rows| rows.seconds))),
            Cell::Bytes(read.median as usize),
            Cell::Percent(part),
            match name.starts_with("barest") {
                true => Goal::AtMost(1.1).met_by(part),
                false => Cell::None,
            },
        ]
    };
    Ok(names.into_iter().zip(all).map(row).collect())
}

pub fn share(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    if let Some(path) = on_disk(run, "share") {
        let bytes = fs::metadata(path)?.len() as f64;
        for (name, what) in [
            ("memmap2 + safetensors", "share-memmap2"),
            ("fs::read + safetensors", "share-read"),
            ("barest", "share-barest"),
        ] {
            bring_pages(path)?;
            let sum = weigh(what, path, PROCESSES)?;
            let part = sum as f64 / bytes * 100.0;
            rows.push(vec![
                Cell::Text(name.to_owned()),
                Cell::Count(PROCESSES),
                Cell::Bytes(sum as usize),
                Cell::Percent(part),
                if name == "barest" { Goal::AtMost(103.0).met_by(part) } else { Cell::None },
            ]);
        }
    }
    Ok(Table {
        title: "share: memory (PSS) of processes together that have each touched all of a model"
            .into(),
        columns: &["way", "processes", "memory of all", "% of the file", "goal"],
        rows,
    })
}

/// The file, if the table is wanted and the file can be there.
fn on_disk<'a>(run: &'a Run, table: &str) -> Option<&'a Path> {
    if !run.wants(table, "disk") {
        return None;
    }
    match run.filled() {
        Ok(path) => Some(path),
        Err(reason) => {
            left_out(table, reason);
            None
        }
    }
}

fn left_out(table: &str, reason: &str) {
    eprintln!("barest-peers: {table} is left out: {reason}");
}

/// A run here takes long, and not by what the processor does.
fn few(run: &Run) -> Rounds {
    match run.rounds {
        Rounds::AtMost(_, time) => Rounds::AtMost(7, time),
        exactly => exactly,
    }
}
