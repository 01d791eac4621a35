//! How fast is a tensor found by its name, and how fast is it not found?
//!
//! Names that are drawn at random, as strings of their own, so that neither the text of the header
//! nor the place of the name is warm because of the question.

use super::by_barest;
use crate::Run;
use crate::bench::{Contender, Spread, race};
use crate::cases::CASES;
use crate::headers::Random;
use crate::sets::SETS;
use crate::table::{Cell, Goal, Table};
use barest::Model;
use barest_peers::peers::{by_candle, by_safetensors, map_all, route};
use std::collections::HashMap;
use std::hint::black_box;
use std::io;
use std::path::Path;
use std::slice;

/// Files, and how many times as fast as the reference a name should be found.
const FILES: [(&str, f64); 3] =
    [("smollm2-272", 3.0), ("experts-10000", 3.0), ("experts-92000", 1.9)];

const SET: &str = "deepseek-v3-163-index";

/// Names that are asked for in one pass.
const ASKED: usize = 4096;

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for (name, goal) in FILES.into_iter().filter(|(name, _)| run.wants("lookup", name)) {
        let case = CASES.iter().find(|case| case.name == name).expect("a case of that name");
        let file = case.file(&run.folder)?;
        let names: Vec<String> = (case.tensors)().into_iter().map(|tensor| tensor.name).collect();
        let (model, header) = (map(&file.path), by_barest(&file.map));
        let theirs = by_safetensors(&file.map);
        let candle = by_candle(slice::from_ref(&file.path));
        let map: HashMap<String, usize> = names.iter().cloned().zip(0..).collect();
        for Question { kind, asked, found } in &questions(&names) {
            let [peers @ .., of_header] = race(
                [
                    pass(asked, *found, |name| theirs.tensor(name).ok()),
                    pass(asked, *found, |name| candle.get(name).ok()),
                    pass(asked, *found, |name| map.get(name).copied()),
                    pass(asked, *found, |name| model.get(name)),
                    pass(asked, *found, |name| header.tensor(name)),
                ],
                run.rounds,
            );
            let goal = (*found > 0).then_some(goal);
            rows.push(row(format!("{name}, {kind}"), &peers, one_name(&of_header), goal));
        }
    }
    for set in SETS.iter().filter(|set| set.name == SET && run.wants("lookup", set.name)) {
        let files = set.files(&run.folder)?;
        let model = map(&files.directory);
        let maps = map_all(&files.paths);
        let (theirs, candle) = (route(&maps), by_candle(&files.paths));
        let map: HashMap<String, usize> = files.names.iter().cloned().zip(0..).collect();
        for Question { kind, asked, found } in &questions(&files.names) {
            let passes = race(
                [
                    pass(asked, *found, |name| theirs.tensor(name)),
                    pass(asked, *found, |name| candle.get(name).ok()),
                    pass(asked, *found, |name| map.get(name).copied()),
                    pass(asked, *found, |name| model.get(name)),
                ],
                run.rounds,
            );
            rows.push(row(format!("{SET}, {kind}"), &passes, Cell::None, None));
        }
    }
    Ok(Table {
        title: "lookup: one name among many, in random order".into(),
        columns: &[
            "names",
            "SafeTensors::tensor",
            "candle",
            "HashMap<String, usize>",
            "Model::get",
            "Header::tensor",
            "Model::get is faster than the first",
            "than candle",
            "than the HashMap",
            "goal",
        ],
        rows,
    })
}

fn map(path: &Path) -> Model {
    // SAFETY: nobody else knows of these files.
    unsafe { Model::map(path).expect("a model") }
}

/// Names to ask for, and how many of them there are.
struct Question {
    kind: &'static str,
    asked: Vec<String>,
    found: usize,
}

fn questions(names: &[String]) -> [Question; 2] {
    let mut random = Random(5);
    let hits: Vec<String> = (0..ASKED).map(|_| names[random.below(names.len())].clone()).collect();
    // Each differs in its last byte from a name that is there.
    let misses = hits.iter().map(|name| format!("{}x", &name[..name.len() - 1])).collect();
    [
        Question { kind: "hits", asked: hits, found: ASKED },
        Question { kind: "misses", asked: misses, found: 0 },
    ]
}

/// `passes`: the reference, candle, a map of the names, the model.
fn row(name: String, passes: &[Vec<f64>; 4], of_header: Cell, goal: Option<f64>) -> Vec<Cell> {
    let [tensor, candle, hash_map, of_model] = passes;
    let ratios = [tensor, candle, hash_map].map(|peer| Spread::of_ratios(peer, of_model));
    let [first, ..] = ratios;
    let mut row = vec![Cell::Text(name)];
    row.extend(passes.iter().map(|pass| one_name(pass)));
    row.push(of_header);
    row.extend(ratios.map(Cell::Times));
    row.push(goal.map_or(Cell::None, |goal| Goal::AtLeast(goal).met_by(first.median)));
    row
}

fn one_name(pass: &[f64]) -> Cell {
    Cell::Seconds(Spread::of(pass.iter().copied()).divided_by(ASKED))
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
