//! Which tensors are drawn as one?
//!
//! A picture has room for a few dozen names, a file may hold a million tensors. Neighbours are
//! joined by the beginning of their names, as deep as there is room:
//!
//! ```text
//!   model.layers.0.mlp.down_proj.weight  ┐
//!   model.layers.0.mlp.up_proj.weight    ┴ model.layers.0.mlp  ┐
//!   model.layers.0.self_attn.k_proj.weight                     ┴ model.layers.0
//! ```

use barest::TensorInfo;
use std::ops::Range;

/// Neighbours in the file, drawn as one.
pub struct Run<'a> {
    /// Where they stand in the file.
    pub range: Range<u64>,
    pub tensors: usize,
    pub largest: TensorInfo<'a>,
}

impl Run<'_> {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// What the tensors of a run have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Joined {
    /// Each tensor is alone.
    Not,
    /// So many parts of their names, divided by dots.
    ByName(usize),
    /// That they begin in one slice of the data.
    BySize,
}

/// Runs of a picture at most.
const MOST: usize = 32;

/// Runs where names do not help.
const SLICES: usize = 16;

/// Names are taken apart no further.
const DEEPEST: usize = 8;

/// Joins tensors, given in file order.
pub fn join<'a>(tensors: &[TensorInfo<'a>]) -> (Vec<Run<'a>>, Joined) {
    if tensors.len() <= MOST {
        return (tensors.chunks(1).map(run).collect(), Joined::Not);
    }
    let bytes: u64 = tensors.iter().map(TensorInfo::byte_len).sum();
    let by_name = |depth| {
        move |one: &TensorInfo<'a>, other: &TensorInfo<'a>| {
            stem(one.name(), depth) == stem(other.name(), depth)
        }
    };
    let deepest =
        (1..=DEEPEST).rev().find(|&depth| tensors.chunk_by(by_name(depth)).nth(MOST).is_none());
    if let Some(depth) = deepest {
        let runs: Vec<Run<'a>> = tensors.chunk_by(by_name(depth)).map(run).collect();
        let is_most_of_it = |run: &Run<'_>| run.tensors > 1 && run.bytes() > bytes / 2;
        if !runs.iter().any(is_most_of_it) {
            return (runs, Joined::ByName(depth));
        }
    }
    let slice = |tensor: &TensorInfo<'a>| {
        u128::from(tensor.data_offsets().0) * SLICES as u128 / u128::from(bytes.max(1))
    };
    let runs = tensors.chunk_by(|one, other| slice(one) == slice(other)).map(run);
    (runs.collect(), Joined::BySize)
}

fn run<'a>(tensors: &[TensorInfo<'a>]) -> Run<'a> {
    let first = tensors[0];
    let largest = tensors.iter().fold(first, |largest, &tensor| {
        if tensor.byte_len() > largest.byte_len() { tensor } else { largest }
    });
    let end = tensors[tensors.len() - 1].file_range().end;
    Run { range: first.file_range().start..end, tensors: tensors.len(), largest }
}

/// The first `depth` parts of a name.
fn stem(name: &str, depth: usize) -> &str {
    match name.match_indices('.').nth(depth - 1) {
        Some((dot, _)) => &name[..dot],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barest::Header;

    /// Tensors of one byte each.
    fn model(names: impl Iterator<Item = String>) -> Header {
        let entries: Vec<String> = names
            .enumerate()
            .map(|(at, name)| {
                let end = at + 1;
                format!(
                    "\"{name}\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[{at},{end}]}}"
                )
            })
            .collect();
        let text = format!("{{{}}}", entries.join(","));
        let mut file = (text.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(text.as_bytes());
        Header::parse(&file, (file.len() + entries.len()) as u64).unwrap()
    }

    #[test]
    fn names_join_as_deep_as_there_is_room() {
        let layers = |layers: usize| {
            (0..layers).flat_map(|layer| {
                ["attn.k", "attn.q", "mlp.down", "mlp.up"]
                    .map(|part| format!("model.{layer}.{part}.weight"))
            })
        };
        let flat = |count: usize| (0..count).map(|number| format!("w{number}"));
        for (header, runs, joined) in [
            (model(layers(8)), 32, Joined::Not),
            (model(layers(9)), 18, Joined::ByName(3)),
            (model(layers(30)), 30, Joined::ByName(2)),
            (model(layers(60)), 16, Joined::BySize),
            (model(flat(0)), 0, Joined::Not),
            (model(flat(33)), 16, Joined::BySize),
            (model(flat(10_000)), 16, Joined::BySize),
        ] {
            let tensors: Vec<TensorInfo<'_>> = header.tensors().collect();
            let (found, how) = join(&tensors);
            assert_eq!((found.len(), how), (runs, joined), "{header:?}");
            assert_eq!(found.iter().map(|run| run.tensors).sum::<usize>(), tensors.len());
            let touching = found.windows(2).all(|pair| pair[0].range.end == pair[1].range.start);
            assert!(touching, "{header:?}");
        }
    }
}
