//! Into which steps is a prefetch cut, and which of them hold a tensor?

use super::super::shard::Shard;
use super::Run;
use std::ops::Range;
use std::sync::Arc;

/// One step: two huge pages. Longer ones were slower where the device reads little ahead; `barest time`
/// shows what these reach.
const PIECE: u64 = 4 << 20;

/// The steps, in the order of use.
pub(super) struct Pieces {
    /// At most [`PIECE`] bytes of one run each.
    pieces: Vec<Run>,
    /// Whether all of the run that a piece belongs to was in memory before anything was read.
    there: Vec<bool>,
    /// The same, to be found by where they lie: shard by shard, in the order of their beginnings.
    places: Vec<Place>,
}

/// Where a piece lies.
struct Place {
    /// The shard's address, and where in the file the piece begins.
    start: (usize, u64),
    /// Where the furthest piece ends of those in this shard that begin no later.
    reach: u64,
    piece: usize,
}

impl Pieces {
    /// The pieces of what is mapped, cut at multiples of their size, so that none cuts a huge page.
    pub(super) fn of(runs: &[Run]) -> Pieces {
        let (mut pieces, mut there) = (Vec::new(), Vec::new());
        for run in runs.iter().filter(|run| run.is_mapped()) {
            let is_there = run.is_cached() && !run.is_cut();
            let mut start = run.range.start;
            while start < run.range.end {
                let end = run.range.end.min((start / PIECE + 1) * PIECE);
                pieces.push(Run { shard: Arc::clone(&run.shard), range: start..end });
                there.push(is_there);
                start = end;
            }
        }
        Pieces::new(pieces, there)
    }

    pub(super) fn new(pieces: Vec<Run>, there: Vec<bool>) -> Pieces {
        let place = |(number, piece): (usize, &Run)| {
            let start = (Arc::as_ptr(&piece.shard).addr(), piece.range.start);
            Place { start, reach: piece.range.end, piece: number }
        };
        let mut places: Vec<Place> = pieces.iter().enumerate().map(place).collect();
        places.sort_unstable_by_key(|place| place.start);
        for at in 1..places.len() {
            if places[at].start.0 == places[at - 1].start.0 {
                places[at].reach = places[at].reach.max(places[at - 1].reach);
            }
        }
        Pieces { pieces, there, places }
    }

    /// Whether a piece was in memory from the beginning.
    pub(super) fn is_there(&self, number: usize) -> bool {
        self.there[number]
    }

    /// How many were not.
    pub(super) fn missing(&self) -> usize {
        self.there.iter().filter(|&&is_there| !is_there).count()
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn get(&self, number: usize) -> Option<&Run> {
        self.pieces.get(number)
    }

    /// Bytes of all of them.
    pub(super) fn byte_len(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.range.end - piece.range.start).sum()
    }

    /// The pieces that a range of a shard overlaps: of those that begin before its end, the last ones.
    pub(super) fn holding(
        &self,
        shard: &Arc<Shard>,
        range: Range<u64>,
    ) -> impl Iterator<Item = usize> + '_ {
        let address = Arc::as_ptr(shard).addr();
        let begin = |place: &Place| !range.is_empty() && place.start < (address, range.end);
        let before = &self.places[..self.places.partition_point(begin)];
        let reaching = move |place: &&Place| place.start.0 == address && place.reach > range.start;
        let numbers = before.iter().rev().take_while(reaching).map(|place| place.piece);
        numbers.filter(move |&number| self.pieces[number].range.end > range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::model::Model;
    use super::*;

    #[test]
    fn the_pieces_of_a_range_are_those_that_overlap_it() {
        let header = br#"{"t":{"dtype":"U8","shape":[300],"data_offsets":[0,300]}}"#;
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 300]].concat();
        let models = [(); 3].map(|()| Model::from_bytes(&bytes).unwrap());
        let shards = models.each_ref().map(|model| &model.handles()[0]);
        // Of two of the shards; some lie within others, and some are there twice.
        let mut pieces = Vec::new();
        for number in 0..60 {
            let (start, len) = (number * 37 % 101, 1 + number * number % 17);
            let end = if number % 20 == 0 { 300 } else { start + len };
            let shard = Arc::clone(shards[number as usize % 2]);
            pieces.push(Run { shard, range: start..end });
        }
        let there = vec![false; pieces.len()];
        let pieces = Pieces::new(pieces, there);
        for (shard, start) in shards.iter().flat_map(|shard| (0..300).map(move |at| (shard, at))) {
            for end in [start, start + 1, start + 2, start + 40, 301] {
                let mut found: Vec<usize> = pieces.holding(shard, start..end).collect();
                found.sort_unstable();
                let overlaps = |piece: &Run| {
                    Arc::ptr_eq(&piece.shard, shard)
                        && (start..end).any(|byte| piece.range.contains(&byte))
                };
                let all = pieces.pieces.iter().enumerate();
                let expected: Vec<usize> =
                    all.filter(|(_, piece)| overlaps(piece)).map(|(number, _)| number).collect();
                assert_eq!(found, expected, "{start}..{end}");
            }
        }
    }
}
