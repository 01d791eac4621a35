//! How fast are all tensors of a model gone through: names, dtypes, shapes, places?

use crate::Run;
use crate::bench::{Contender, Spread, race};
use crate::cases::CASES;
use crate::table::{Cell, Table};
use barest::Model;
use barest_peers::peers::by_safetensors;
use std::hint::black_box;
use std::io;

const SHOWN: [&str; 3] = ["smollm2-272", "experts-10000", "experts-92000"];

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| SHOWN.contains(&case.name)) {
        if !run.wants("iterate", case.name) {
            continue;
        }
        let file = case.file(&run.folder)?;
        let theirs = by_safetensors(&file.map);
        // SAFETY: nobody else knows of this file.
        let ours = unsafe { Model::map(&file.path).expect("a model") };
        let their_view = |name: &str, view: &safetensors::tensor::TensorView<'_>| {
            black_box(view.dtype());
            let data = black_box(view.data());
            seen(name, view.shape().iter().map(|&dimension| dimension as u64), data.len())
        };
        let by_iter = || theirs.iter().map(|(name, view)| their_view(name, &view)).sum::<u64>();
        let by_list = || theirs.tensors().iter().map(|(name, view)| their_view(name, view)).sum();
        let by_barest = || {
            let one = |tensor: barest::TensorView<'_>| {
                black_box(tensor.dtype());
                let data = black_box(tensor.bytes());
                seen(tensor.name(), tensor.shape().iter().copied(), data.len())
            };
            ours.tensors().map(one).sum::<u64>()
        };
        assert_eq!([by_iter(), by_list()], [by_barest(); 2]);
        let [iter, list, barest] = race(
            [
                Contender::new(|watch| watch.ready(&by_iter())),
                Contender::new(|watch| watch.ready(&by_list())),
                Contender::new(|watch| watch.ready(&by_barest())),
            ],
            run.rounds,
        );
        let one =
            |pass: &[f64]| Cell::Seconds(Spread::of(pass.iter().copied()).divided_by(file.tensors));
        rows.push(vec![
            Cell::Text(case.name.to_owned()),
            one(&iter),
            one(&list),
            one(&barest),
            Cell::Times(Spread::of_ratios(&iter, &barest)),
            Cell::Times(Spread::of_ratios(&list, &barest)),
        ]);
    }
    Ok(Table {
        title: "iterate: through all tensors, looking at name, dtype, shape and place of each"
            .into(),
        columns: &[
            "file",
            "SafeTensors::iter, a tensor",
            "SafeTensors::tensors",
            "Model::tensors",
            "barest is faster than the first",
            "than the second",
        ],
        rows,
    })
}

/// Something of each part, so that none is left out.
fn seen(name: &str, shape: impl Iterator<Item = u64>, bytes: usize) -> u64 {
    (black_box(name).len() as u64).wrapping_add(shape.sum::<u64>()).wrapping_add(bytes as u64)
}
