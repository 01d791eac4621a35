//! How fast is a tensor found by its name, and how fast is it not found?
//!
//! Names that are drawn at random, as strings of their own, so that neither the text of the header
//! nor the place of the name is warm because of the question.

use super::{by_barest, by_safetensors};
use crate::Run;
use crate::bench::{Contender, Spread, race};
use crate::cases::CASES;
use crate::headers::Random;
use crate::table::{Cell, Goal, Table};
use barest::Model;
use std::collections::HashMap;
use std::hint::black_box;
use std::io;

const SHOWN: [&str; 3] = ["smollm2-272", "experts-10000", "experts-92000"];

/// Names that are asked for in one pass.
const ASKED: usize = 4096;

const GOAL: Goal = Goal::AtLeast(1.0);

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| SHOWN.contains(&case.name)) {
        if !run.wants("lookup", case.name) {
            continue;
        }
        let file = case.file(&run.folder)?;
        let names: Vec<String> = (case.tensors)().into_iter().map(|tensor| tensor.name).collect();
        let header = by_barest(&file.map);
        // SAFETY: nobody else knows of this file.
        let model = unsafe { Model::map(&file.path).expect("a model") };
        let theirs = by_safetensors(&file.map);
        let map: HashMap<String, usize> = names.iter().cloned().zip(0..).collect();
        let mut random = Random(5);
        let hits: Vec<String> =
            (0..ASKED).map(|_| names[random.below(names.len())].clone()).collect();
        // Each differs in its last byte from a name that is there.
        let misses: Vec<String> =
            hits.iter().map(|name| format!("{}x", &name[..name.len() - 1])).collect();
        for (kind, asked, found) in [("hits", &hits, ASKED), ("misses", &misses, 0)] {
            let [tensor, hash_map, of_model, of_header] = race(
                [
                    pass(asked, found, |name| theirs.tensor(name).ok()),
                    pass(asked, found, |name| map.get(name).copied()),
                    pass(asked, found, |name| model.get(name)),
                    pass(asked, found, |name| header.tensor(name)),
                ],
                run.rounds,
            );
            let one =
                |pass: &[f64]| Cell::Seconds(Spread::of(pass.iter().copied()).divided_by(ASKED));
            let ratios = [&tensor, &hash_map].map(|peer| Spread::of_ratios(peer, &of_model));
            let slower = f64::min(ratios[0].median, ratios[1].median);
            rows.push(vec![
                Cell::Text(format!("{}, {kind}", case.name)),
                one(&tensor),
                one(&hash_map),
                one(&of_model),
                one(&of_header),
                Cell::Times(ratios[0]),
                Cell::Times(ratios[1]),
                GOAL.met_by(slower),
            ]);
        }
    }
    Ok(Table {
        title: "lookup: one name among many, in random order",
        columns: &[
            "names",
            "SafeTensors::tensor",
            "HashMap<String, usize>",
            "Model::get",
            "Header::tensor",
            "Model::get is faster than the first",
            "than the second",
            "goal",
        ],
        rows,
    })
}

/// Asks for each name once.
fn pass<'a, T>(
    asked: &'a [String],
    expected: usize,
    mut find: impl FnMut(&str) -> Option<T> + 'a,
) -> Contender<'a> {
    Contender::new(move |watch| {
        let found = asked.iter().filter(|name| black_box(find(name)).is_some()).count();
        watch.ready(&found);
        assert_eq!(found, expected);
    })
}
