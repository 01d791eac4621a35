//! What does opening a model cost a process that has opened none before?
//!
//! The file's pages are in memory, and so is the program, which does nothing else; its code and its heap
//! are not mapped yet.

use crate::Run;
use crate::bench::Spread;
use crate::cases::CASES;
use crate::child::{Way, programs, take_turns};
use crate::table::{Cell, Goal, Table};
use crate::work;
use barest_peers::first::First;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const SMALL: &str = "smollm2-272";

const SHOWN: [&str; 3] = [SMALL, "experts-10000", "experts-92000"];

/// Processes for each round of other tables: one piece of work in each is little.
const MORE: usize = 8;

const PROGRAMS: [&str; 4] = ["first-safetensors", "first-candle", "first-calls", "first-barest"];

pub fn times(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| SHOWN.contains(&case.name)) {
        if !run.wants("fresh", case.name) {
            continue;
        }
        let file = case.file(&run.folder)?;
        let ways = programs(PROGRAMS)?.map(Way::Small);
        let all = take_turns::<First, 4>(ways, &file.path, run.rounds.times(MORE), || Ok(()))?;
        let seconds = all.each_ref().map(|runs| runs.iter().map(|first| first.seconds).collect());
        let [theirs, candle, calls, ours]: [Vec<f64>; 4] = seconds;
        let faults = all.map(|runs| Spread::of(runs.iter().map(|first| first.faults as f64)));
        let ratio = Spread::of_ratios(&theirs, &ours);
        let is_small = case.name == SMALL;
        let mut row = vec![Cell::Text(case.name.to_owned()), Cell::Count(ours.len())];
        row.extend([&theirs, &candle, &calls, &ours].map(|times| seconds_of(times)));
        row.push(Cell::Times(ratio));
        row.push(Cell::Times(Spread::of_ratios(&candle, &ours)));
        row.push(Cell::Times(Spread::of_ratios(&ours, &calls)));
        row.push(if is_small { Goal::AtLeast(6.0).met_by(ratio.median) } else { Cell::None });
        row.extend(faults.map(|faults| Cell::Count(faults.median as usize)));
        let most = Goal::AtMost(16.0).met_by(faults[3].median);
        row.push(if is_small { most } else { Cell::None });
        rows.push(row);
    }
    Ok(Table {
        title: "fresh: from a path to a model, the first time in a process".into(),
        columns: &[
            "file",
            "processes of each",
            "memmap2 + safetensors",
            "candle",
            "open, read the header, map",
            "barest",
            "barest is faster",
            "than candle",
            "barest takes as long as system calls alone",
            "goal",
            "faults, memmap2 + safetensors",
            "candle's faults",
            "those of system calls alone",
            "barest's faults",
            "goal: faults",
        ],
        rows,
    })
}

fn seconds_of(times: &[f64]) -> Cell {
    Cell::Seconds(Spread::of(times.iter().copied()))
}

pub fn calls(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| SHOWN.contains(&case.name)) {
        if !run.wants("fresh-calls", case.name) {
            continue;
        }
        let file = case.file(&run.folder)?;
        for (opener, what) in [
            ("memmap2 + safetensors", "open-safetensors"),
            ("candle", "map-candle"),
            ("barest", "map-barest"),
        ] {
            let found = system_calls(what, &file.path);
            let count = found.as_ref().map(|calls| calls.values().sum::<usize>());
            let is_ours = opener == "barest" && case.name == SMALL;
            let goal = count.filter(|_| is_ours);
            rows.push(vec![
                Cell::Text(format!("{}, {opener}", case.name)),
                count.map_or(Cell::None, Cell::Count),
                goal.map_or(Cell::None, |count| Goal::AtMost(6.0).met_by(count as f64)),
                found.map_or(Cell::None, |calls| Cell::Text(named(&calls))),
            ]);
        }
    }
    Ok(Table {
        title: "fresh-calls: system calls of opening, without those that close (`-`: no strace)"
            .into(),
        columns: &["file", "calls", "goal", "which"],
        rows,
    })
}

type Calls = BTreeMap<String, usize>;

fn named(calls: &Calls) -> String {
    let one = |(name, &count): (&String, &usize)| match count {
        1 => name.clone(),
        count => format!("{count} {name}"),
    };
    calls.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Those that a process makes for one model, which are those of a process that opens it without those
/// of one that does not; `None` where strace is not.
pub(super) fn system_calls(opener: &str, path: &Path) -> Option<Calls> {
    let (without, mut with) = (traced(opener, path, 0)?, traced(opener, path, 1)?);
    for (name, count) in &mut with {
        *count = count.saturating_sub(*without.get(name).unwrap_or(&0));
    }
    with.retain(|_, count| *count > 0);
    Some(with)
}

/// System calls of a process that opens a model so many times.
fn traced(opener: &str, path: &Path, times: u32) -> Option<Calls> {
    let strace = ["strace", "-f", "-c", "-e", "trace=!close,munmap"];
    let said = work::under(&strace, opener, path, times)?;
    // % time, seconds, microseconds a call, calls, errors where there are any, name.
    let call = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let count = words.get(3)?.parse().ok()?;
        Some(((*words.last()?).to_owned(), count))
    };
    Some(said.lines().filter_map(call).filter(|(name, _)| name != "total").collect())
}
