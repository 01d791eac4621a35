//! Does it matter who wrote a header?
//!
//! The same tensors, as other writers put them, against the reference writer's bytes; by barest
//! alone.

use super::by_barest;
use crate::Run;
use crate::bench::{Contender, Spread, race};
use crate::cases::{CASES, Case};
use crate::table::{Cell, Goal, Table};
use std::io;

const COMPACT: &str = "experts-10000";

/// Headers, and how many times as long they may take.
const SHOWN: [(&str, Option<Goal>); 5] = [
    ("spaced-10000", Some(Goal::AtMost(1.2))),
    ("mlx-10000", Some(Goal::AtMost(1.2))),
    ("backwards-10000", Some(Goal::AtMost(1.2))),
    // Orders that change from tensor to tensor are nobody's; they are a goal all the same.
    ("any-order-10000", Some(Goal::AtMost(1.2))),
    ("shuffled-10000", None),
];

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for (name, goal) in SHOWN.into_iter().filter(|(name, _)| run.wants("layouts", name)) {
        let (compact, other) = (named(COMPACT).file(&run.folder)?, named(name).file(&run.folder)?);
        let [of_compact, of_other] = race(
            [
                Contender::new(|watch| watch.ready(&by_barest(&compact.map))),
                Contender::new(|watch| watch.ready(&by_barest(&other.map))),
            ],
            run.rounds,
        );
        let ratio = Spread::of_ratios(&of_other, &of_compact);
        rows.push(vec![
            Cell::Text(name.to_owned()),
            Cell::Each(other.header_len as f64 / compact.header_len as f64),
            Cell::Seconds(Spread::of(of_compact)),
            Cell::Seconds(Spread::of(of_other)),
            Cell::Times(ratio),
            goal.map_or(Cell::None, |goal| goal.met_by(ratio.median)),
        ]);
    }
    Ok(Table {
        title: "layouts: what other writers' layouts cost barest, against the compact one".into(),
        columns: &["header", "times as long a text", "compact", "this", "takes", "goal"],
        rows,
    })
}

fn named(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).expect("a case of that name")
}
