//! How many instructions does a tensor take?
//!
//! A number that a busy machine does not move. This program runs itself under callgrind, once with
//! few repetitions and once with more: what start-up takes falls out of the difference.

use crate::Run;
use crate::cases::CASES;
use crate::table::{Cell, Goal, Table};
use crate::work;
use std::io;
use std::path::Path;
use std::thread;

/// Headers, and how many repetitions the second run has more than the first.
const SHOWN: [(&str, u32); 5] = [
    ("smollm2-272", 20),
    ("experts-1000", 5),
    ("experts-10000", 1),
    ("shuffled-10000", 1),
    ("spaced-10000", 1),
];

const MOST: Goal = Goal::AtMost(700.0);

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for (name, more) in SHOWN.into_iter().filter(|(name, _)| run.wants("instructions", name)) {
        let case = CASES.iter().find(|case| case.name == name).expect("a case of that name");
        let file = case.file(&run.folder)?;
        let each = ["safetensors", "barest"].map(|parser| {
            let counted = counts(parser, &file.path, [1, 1 + more]);
            counted.map(|[few, many]| {
                (many.saturating_sub(few)) as f64 / f64::from(more) / file.tensors as f64
            })
        });
        let [theirs, ours] = each;
        rows.push(vec![
            Cell::Text(case.name.to_owned()),
            theirs.map_or(Cell::None, Cell::Each),
            ours.map_or(Cell::None, Cell::Each),
            match theirs.zip(ours) {
                Some((theirs, ours)) => Cell::Each(theirs / ours),
                None => Cell::None,
            },
            ours.map_or(Cell::None, |ours| MOST.met_by(ours)),
        ]);
    }
    Ok(Table {
        title: "instructions: for one tensor, dropping the result included (`-`: no valgrind)"
            .into(),
        columns: &["header", "safetensors", "barest", "safetensors / barest", "goal"],
        rows,
    })
}

/// Instructions of two runs of this program, side by side; `None` where callgrind is not.
fn counts(parser: &str, path: &Path, times: [u32; 2]) -> Option<[u64; 2]> {
    let [few, many] = times.map(|times| {
        let (parser, path) = (parser.to_owned(), path.to_owned());
        thread::spawn(move || count(&parser, &path, times))
    });
    let join = |run: thread::JoinHandle<Option<u64>>| run.join().expect("a run of callgrind");
    let [few, many] = [few, many].map(join);
    Some([few?, many?])
}

/// Instructions of `work PARSER PATH TIMES`; `None` where callgrind is not.
pub fn count(parser: &str, path: &Path, times: u32) -> Option<u64> {
    let callgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let said = work::under(&callgrind, parser, path, times)?;
    let after = said.split("Collected : ").nth(1)?;
    after.split_whitespace().next()?.parse().ok()
}
