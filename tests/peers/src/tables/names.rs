//! What does the index of names cost beyond the parse?
//!
//! It is built inside of the parse, which keeps a hash with each name. Here it is built alone, by the
//! same file of barest, from records like those of the parse.

use super::by_barest;
use crate::Run;
use crate::bench::{Contender, Spread, race};
use crate::cases::CASES;
use crate::inside::header::names::{NameTable, Named, hash};
use crate::table::{Cell, Goal, Table};
use std::io;

fn goal(case: &str) -> Option<Goal> {
    match case {
        "experts-10000" => Some(Goal::AtMost(5.0)),
        "experts-92000" => Some(Goal::AtMost(12.0)),
        _ => None,
    }
}

const SHOWN: [&str; 5] =
    ["smollm2-272", "experts-1000", "experts-10000", "experts-92000", "experts-200000"];

/// As many bytes as the record that a parse keeps.
struct Record {
    start: u32,
    len: u32,
    hash: u32,
    _others: [u32; 7],
}

struct Records<'a> {
    text: &'a str,
    records: Vec<Record>,
}

impl Named for Records<'_> {
    fn count(&self) -> usize {
        self.records.len()
    }

    fn name(&self, number: usize) -> &[u8] {
        let Record { start, len, .. } = self.records[number];
        &self.text.as_bytes()[start as usize..][..len as usize]
    }

    fn hash(&self, number: usize) -> u32 {
        self.records[number].hash
    }
}

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| SHOWN.contains(&case.name)) {
        if !run.wants("names", case.name) {
            continue;
        }
        let file = case.file(&run.folder)?;
        let bytes = &file.map[..];
        let header = by_barest(bytes);
        let text = header.text();
        let record = |name: &str| Record {
            start: (name.as_ptr().addr() - text.as_ptr().addr()) as u32,
            len: name.len() as u32,
            hash: hash(name.as_bytes()),
            _others: [0; 7],
        };
        let records = header.tensors().map(|tensor| record(tensor.name())).collect();
        let records = Records { text, records };
        let build = || NameTable::build(&records).expect("no name twice");
        let table = build();
        for (number, tensor) in header.tensors().enumerate() {
            assert_eq!(table.find(tensor.name(), &records), Some(number));
        }
        let [parse, names] = race(
            [
                Contender::new(|watch| watch.ready(&by_barest(bytes))),
                Contender::new(|watch| watch.ready(&build())),
            ],
            run.rounds,
        );
        let part = Spread::of_ratios(&names, &parse).median * 100.0;
        let names = Spread::of(names);
        rows.push(vec![
            Cell::Text(case.name.to_owned()),
            Cell::Seconds(Spread::of(parse)),
            Cell::Seconds(names),
            Cell::Seconds(names.divided_by(file.tensors)),
            Cell::Percent(part),
            goal(case.name).map_or(Cell::None, |goal| goal.met_by(part)),
        ]);
    }
    Ok(Table {
        title: "names: the index of names alone, beside the parse that it is a part of".into(),
        columns: &["header", "the parse", "its names", "a name", "of the parse", "goal"],
        rows,
    })
}
