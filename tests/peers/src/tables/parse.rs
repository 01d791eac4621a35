//! How fast does a header in memory become a proved list of tensors, with an index of their names?

use super::{agree, by_barest};
use crate::Run;
use crate::bench::{Contender, Spread, race};
use crate::cases::CASES;
use crate::table::{Cell, Goal, Table};
use barest_peers::peers::by_safetensors;
use std::io;

/// What the project set out to reach.
fn goal(case: &str) -> Option<Goal> {
    let times = match case {
        "smollm2-272" | "experts-1000" => 11.0,
        "experts-10000" => 13.0,
        "experts-92000" => 17.0,
        "experts-200000" => 18.0,
        "shuffled-10000" => 8.5,
        "shuffled-92000" => 9.5,
        "metadata-2MB" => 4.0,
        "metadata-2MB-escaped" => 5.0,
        _ => return None,
    };
    Some(Goal::AtLeast(times))
}

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| run.wants("parse", case.name)) {
        let file = case.file(&run.folder)?;
        agree(&file);
        let bytes = &file.map[..];
        let [theirs, ours] = race(
            [
                Contender::new(|watch| watch.ready(&by_safetensors(bytes))),
                Contender::new(|watch| watch.ready(&by_barest(bytes))),
            ],
            run.rounds,
        );
        let (ratio, time) = (Spread::of_ratios(&theirs, &ours), Spread::of(ours));
        rows.push(vec![
            Cell::Text(case.name.to_owned()),
            Cell::Count(file.tensors),
            Cell::Bytes(file.header_len),
            Cell::Seconds(Spread::of(theirs)),
            Cell::Seconds(time),
            match file.tensors {
                0 => Cell::None,
                tensors => Cell::Seconds(time.divided_by(tensors)),
            },
            Cell::Each(file.header_len as f64 / time.median / 1e9),
            Cell::Times(ratio),
            goal(case.name).map_or(Cell::None, |goal| goal.met_by(ratio.median)),
        ]);
    }
    Ok(Table {
        title: "parse: a header in memory, to proved tensors and an index of their names".into(),
        columns: &[
            "header",
            "tensors",
            "header bytes",
            "safetensors",
            "barest",
            "a tensor",
            "GB/s",
            "barest is faster",
            "goal",
        ],
        rows,
    })
}
