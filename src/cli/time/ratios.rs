//! What do the numbers say when they are set against each other?

use super::Outcome;
use super::figures::Figure;
use super::rounds::Cache;
use super::strategy::Strategy;

/// One number over another of the same table.
pub struct Ratio {
    pub what: String,
    pub value: f64,
}

/// The other ways to have all bytes, to which the prefetch is compared.
const OTHERS: [Strategy; 6] = [
    Strategy::Read,
    Strategy::StdRead,
    Strategy::OnDemand,
    Strategy::Sequential,
    Strategy::WillNeed,
    Strategy::Populate,
];

/// All that can be told from what was measured.
pub fn of(outcome: &Outcome) -> Vec<Ratio> {
    let of = |strategy, figure| cold(outcome, strategy, figure);
    let all = |strategy| of(strategy, Figure::All);
    let mut ratios = Vec::new();
    let mut tell = |what: &str, one: Option<u64>, other: Option<u64>| {
        if let (Some(one), Some(other @ 1..)) = (one, other) {
            ratios.push(Ratio { what: what.to_owned(), value: one as f64 / other as f64 });
        }
    };
    // 1. All bytes.
    let prefetch = all(Strategy::Prefetch);
    let best =
        OTHERS.into_iter().filter_map(|other| Some((all(other)?, other))).min_by_key(|best| best.0);
    if let Some((best, other)) = best {
        tell(&format!("prefetch / the best other ({})", other.name()), prefetch, Some(best));
    }
    tell("prefetch / on-demand", prefetch, all(Strategy::OnDemand));
    tell("prefetch / direct", prefetch, all(Strategy::Direct));
    tell("prefetch / disk", prefetch, all(Strategy::Disk));
    tell(
        "faults: prefetch / on-demand",
        faults(outcome, Strategy::Prefetch),
        faults(outcome, Strategy::OnDemand),
    );
    // 2. Parts.
    let (first, on_demand) = (all(Strategy::FirstPrefetch), all(Strategy::FirstOnDemand));
    tell("first-prefetch / first-on-demand", first, on_demand);
    let file = Some(outcome.file_bytes);
    let read = of(Strategy::RandomRows, Figure::Read);
    tell("random-rows: read from the disk / file", read, file);
    let read = of(Strategy::RandomRowsAdvised, Figure::Read);
    tell("random-rows-advised: read from the disk / file", read, file);
    // 3. Threads.
    let (ahead, on_demand) = (all(Strategy::WorkersPrefetch), all(Strategy::WorkersOnDemand));
    tell("workers-prefetch / workers-on-demand", ahead, on_demand);
    // 4. Warm.
    let warm = |strategy| {
        outcome.series(strategy, Cache::Warm).and_then(|series| series.median().get(Figure::All))
    };
    tell("warm: prefetch / on-demand", warm(Strategy::Prefetch), warm(Strategy::OnDemand));
    ratios
}

fn cold(outcome: &Outcome, strategy: Strategy, figure: Figure) -> Option<u64> {
    outcome.series(strategy, Cache::Cold)?.median().get(figure)
}

fn faults(outcome: &Outcome, strategy: Strategy) -> Option<u64> {
    let of = |figure| cold(outcome, strategy, figure);
    Some(of(Figure::Minor)? + of(Figure::Major)?)
}

/// Nanoseconds until a copy and until a mapping were ready, warm: parse and copy, header and mmap.
pub fn start(outcome: &Outcome) -> Option<(u64, u64)> {
    let ready = |strategy| {
        let is_it =
            |series: &&super::Series| series.strategy == strategy && series.cache == Cache::Warm;
        outcome.series.iter().find(is_it)?.median().get(Figure::Ready)
    };
    Some((ready(Strategy::Read)?, ready(Strategy::OnDemand)?))
}

/// The sum of a figure over processes, if each has it.
pub fn sum(figures: &[super::Figures], figure: Figure) -> Option<u64> {
    figures.iter().map(|of_one| of_one.get(figure)).sum()
}
