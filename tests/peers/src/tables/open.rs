//! How fast does a path become a model that can be asked for tensors?
//!
//! The file's pages are in memory. Both map all of it, both close what they opened outside of the
//! time; barest reads the header into memory of its own first, the peer parses its mapping.

use crate::Run;
use crate::bench::{Contender, Spread, race};
use crate::cases::CASES;
use crate::table::{Cell, Goal, Table};
use barest::Model;
use barest_peers::peers::{by_safetensors, map};
use std::io;

/// What the project set out to reach.
fn goal(case: &str) -> Option<Goal> {
    match case {
        "smollm2-272" => Some(Goal::AtLeast(10.0)),
        "experts-92000" => Some(Goal::AtLeast(13.0)),
        _ => None,
    }
}

const SHOWN: [&str; 4] = ["smollm2-272", "experts-1000", "experts-10000", "experts-92000"];

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| SHOWN.contains(&case.name)) {
        if !run.wants("open", case.name) {
            continue;
        }
        let file = case.file(&run.folder)?;
        let path = &file.path;
        let [theirs, ours] = race(
            [
                Contender::new(|watch| {
                    let map = map(path);
                    watch.ready(&by_safetensors(&map));
                }),
                Contender::new(|watch| {
                    // SAFETY: nobody else knows of this file.
                    watch.ready(&unsafe { Model::map(path).expect("a model") });
                }),
            ],
            run.rounds,
        );
        let ratio = Spread::of_ratios(&theirs, &ours);
        rows.push(vec![
            Cell::Text(case.name.to_owned()),
            Cell::Seconds(Spread::of(theirs)),
            Cell::Seconds(Spread::of(ours)),
            Cell::Times(ratio),
            goal(case.name).map_or(Cell::None, |goal| goal.met_by(ratio.median)),
        ]);
    }
    Ok(Table {
        title: "open: from a path to a model, the file's pages being in memory".into(),
        columns: &["file", "memmap2 + safetensors", "barest", "barest is faster", "goal"],
        rows,
    })
}
