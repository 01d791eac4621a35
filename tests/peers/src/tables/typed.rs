//! How does a parse compare with the best that a JSON library does, and with what no parse can
//! undercut?

use super::by_barest;
use crate::Run;
use crate::bench::{Contender, Spread, race};
use crate::cases::CASES;
use crate::table::{Cell, Goal, Table};
use crate::typed::{by_serde_json, by_sonic, header_of};
use std::io;

const GOAL: Goal = Goal::AtLeast(3.5);

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| run.wants("typed", case.name)) {
        let file = case.file(&run.folder)?;
        let bytes = &file.map[..];
        for typed in [by_serde_json(bytes), by_sonic(bytes)] {
            assert_eq!((typed.entries.len(), typed.names.len()), (file.tensors, file.tensors));
            let pairs = by_barest(bytes).metadata().map(|metadata| metadata.len());
            assert_eq!(typed.metadata.map(|pairs| pairs.len()), pairs);
        }
        let (header, _) = header_of(bytes);
        let [serde_json, sonic, barest, utf8, scan] = race(
            [
                Contender::new(|watch| watch.ready(&by_serde_json(bytes))),
                Contender::new(|watch| watch.ready(&by_sonic(bytes))),
                Contender::new(|watch| watch.ready(&by_barest(bytes))),
                Contender::new(|watch| watch.ready(&std::str::from_utf8(header))),
                Contender::new(|watch| watch.ready(&quotes(header))),
            ],
            run.rounds,
        );
        let one = |seconds: &[f64]| Cell::Seconds(Spread::of(seconds.iter().copied()));
        let than_serde_json = Spread::of_ratios(&serde_json, &barest);
        let than_sonic = Spread::of_ratios(&sonic, &barest);
        let least = f64::min(than_serde_json.median, than_sonic.median);
        // Of strings alone others have as much to say as of tensors.
        let is_about_tensors = file.header_len < 1000 * file.tensors;
        rows.push(vec![
            Cell::Text(case.name.to_owned()),
            one(&serde_json),
            one(&sonic),
            one(&barest),
            Cell::Times(than_serde_json),
            Cell::Times(than_sonic),
            if is_about_tensors { GOAL.met_by(least) } else { Cell::None },
            one(&utf8),
            one(&scan),
            Cell::Times(Spread::of_ratios(&barest, &utf8)),
            Cell::Times(Spread::of_ratios(&barest, &scan)),
        ]);
    }
    Ok(Table {
        title: "typed: the same, beside serde that knows the types and two passes over the bytes"
            .into(),
        columns: &[
            "header",
            "serde_json",
            "sonic-rs",
            "barest",
            "faster than serde_json",
            "than sonic-rs",
            "goal",
            "UTF-8 validation",
            "counting quotes",
            "barest takes as long as the first",
            "as the second",
        ],
        rows,
    })
}

/// A look at each byte, sixteen at a time.
fn quotes(header: &[u8]) -> usize {
    header.iter().filter(|&&byte| byte == b'"').count()
}
