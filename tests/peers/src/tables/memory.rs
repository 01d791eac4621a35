//! What does a parse ask of the heap, and what does its result keep?

use super::by_barest;
use crate::Run;
use crate::cases::{CASES, ModelFile};
use crate::count::{Heap, heap};
use crate::table::{Cell, Goal, Table};
use barest_peers::peers::by_safetensors;
use std::io;

const MOST_CALLS: Goal = Goal::AtMost(4.0);
const MOST_KEPT: Goal = Goal::AtMost(80.0);

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| run.wants("memory", case.name)) {
        let file = case.file(&run.folder)?;
        let theirs = heap(|| by_safetensors(&file.map));
        let ours = heap(|| by_barest(&file.map));
        let of_theirs = [Cell::None, Cell::None, Cell::None, Cell::None];
        let of_ours = beside_the_text(&file, &ours);
        for (parser, heap, rest) in [("safetensors", theirs, of_theirs), ("barest", ours, of_ours)]
        {
            let mut row = vec![
                Cell::Text(format!("{}, {parser}", case.name)),
                Cell::Count(heap.calls),
                Cell::Bytes(heap.asked),
                Cell::Bytes(heap.peak),
                Cell::Bytes(heap.kept),
            ];
            row.extend(rest);
            rows.push(row);
        }
    }
    Ok(Table {
        title: "memory: what one parse asks of the heap".into(),
        columns: &[
            "header",
            "calls",
            "bytes asked for",
            "most at once",
            "kept",
            "beside the text",
            "a tensor",
            "goal: bytes a tensor",
            "goal: calls without metadata",
        ],
        rows,
    })
}

/// barest keeps the header's text, of which its names are ranges. (The peer copies the names.)
fn beside_the_text(file: &ModelFile, heap: &Heap) -> [Cell; 4] {
    let beside = heap.kept.saturating_sub(file.header_len);
    let (each, goal) = match file.tensors {
        0 => (Cell::None, Cell::None),
        tensors => {
            let each = beside as f64 / tensors as f64;
            (Cell::Each(each), MOST_KEPT.met_by(each))
        }
    };
    // The list of metadata is one more.
    let calls = match by_barest(&file.map).metadata() {
        Some(_) => Cell::None,
        None => MOST_CALLS.met_by(heap.calls as f64),
    };
    [Cell::Bytes(beside), each, goal, calls]
}
