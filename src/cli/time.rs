//! How long does it take until a model can be used, and what is the fastest way there?

mod child;
mod direct;
mod figures;
mod json;
mod machine;
mod plot;
mod ratios;
mod report;
mod rounds;
mod strategy;
mod touch;

use super::End;
use super::arguments::{Arguments, show, usage};
use super::layout::{deliver, may_deliver, svg_option};
use super::output::Output;
use barest::Index;
use figures::Figures;
use machine::Machine;
use rounds::{Bench, Cache, Series};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use strategy::Strategy;

pub const HELP: &str = "\
usage: barest time PATH [--rounds N] [--only NAME,...] [--threads N] [--processes N]
                        [--json] [--svg FILE]

Measures ways to bring a model into memory. Each runs in a fresh process: cold, its
pages having been dropped and counted (no root is needed; a run that found pages in
memory is marked), and then warm. They take turns over 3 rounds; medians are shown.
The file is only read, but for the time being it is dropped from the page cache.

  read                 Model::read, into private memory
  std-read             std::fs::read of each file
  on-demand            mapped, each page faulted in as it is touched, in file order
  sequential           the same after MADV_SEQUENTIAL
  will-need            the same after one MADV_WILLNEED for all
  populate             the same after one MADV_POPULATE_READ for all
  prefetch             mapped; our prefetch is ahead, each tensor is waited for
  direct               O_DIRECT reads into memory (cold only)
  disk                 O_DIRECT reads of which nothing is kept: the limit (cold only)
  first-on-demand      the first layers, a tenth of the bytes, on demand
  first-prefetch       the same with our prefetch
  random-rows          one page in a hundred, in no order
  random-rows-advised  the same after MADV_RANDOM

READY is when a tensor can be asked for, FIRST when the first was touched, ALL when
all were: of each page a byte is read. MINOR and MAJOR are page faults. PEAK RSS counts
the pages of mapped files too; PSS counts shared pages in part, at the end; DISK is what
came from there. `-` is what the system does not tell. The last line is

  S = (parse + copy) / (header + mmap): Model::read against Model::map, both until ready,
      warm

  --rounds N     rounds, 1 to 1000
  --only NAMES   these ways alone, divided by commas
  --threads N    instead, N threads that take the tensors in turn: each page on demand,
                 and with our prefetch ahead of them while they wait
  --processes N  instead, N processes that have touched the whole model: mapped by all,
                 and read by each
  --json         one object: times in nanoseconds, sizes in bytes, each run
  --svg FILE     also a picture for a browser; `-` for standard output, and then alone
";

/// What was asked for.
struct Choice {
    path: PathBuf,
    rounds: usize,
    strategies: Vec<Strategy>,
    threads: Option<usize>,
    processes: Option<usize>,
    json: bool,
    svg: Option<String>,
}

/// What was found out.
struct Outcome {
    path: PathBuf,
    machine: Machine,
    files: usize,
    file_bytes: u64,
    rounds: usize,
    series: Vec<Series>,
    /// Of these, the strategies that are shown; the others were run for `S`.
    shown: Vec<Strategy>,
    threads: Option<usize>,
    sharing: Vec<Sharing>,
}

/// Processes that had the model at the same time.
struct Sharing {
    strategy: Strategy,
    processes: usize,
    /// Of each; or why there are none.
    figures: Result<Vec<Figures>, String>,
}

impl Outcome {
    /// The runs of a strategy that is shown.
    fn series(&self, strategy: Strategy, cache: Cache) -> Option<&Series> {
        let is_it = |series: &&Series| series.strategy == strategy && series.cache == cache;
        self.series.iter().filter(|_| self.shown.contains(&strategy)).find(is_it)
    }

    /// All runs that are shown, on one state of the cache.
    fn shown(&self, cache: Cache) -> impl Iterator<Item = &Series> + Clone {
        self.series
            .iter()
            .filter(move |series| series.cache == cache && self.shown.contains(&series.strategy))
    }
}

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    // 1. The process that is timed: for ourselves.
    if let Some(name) = arguments.option("--child")? {
        let threads = number(&mut arguments, "--threads", 256)?.unwrap_or(1);
        let strategy = Strategy::from_name(&name);
        return match (strategy, &arguments.positional()?[..]) {
            (Some(strategy), [path]) => child::run(strategy, Path::new(path), threads, output),
            _ => Err(usage("time", "--child is not for people".to_owned())),
        };
    }
    // 2. The one that times.
    let choice = choice(arguments)?;
    let index = super::index(&choice.path)?;
    if let Some(file) = &choice.svg {
        may_deliver(file, plot::MARK)?;
    }
    let outcome = measure(&choice, &index, output)?;
    let drawn = choice.svg.as_deref().map(|file| (file, plot::draw(&outcome)));
    match drawn {
        Some(("-", drawn)) => return Ok(output.write_all(drawn.as_bytes())?),
        _ if choice.json => json::write(&outcome, output)?,
        _ => report::write(&outcome, output)?,
    }
    match drawn {
        Some((file, drawn)) => deliver(file, &drawn, plot::MARK, !choice.json, output),
        None => Ok(()),
    }
}

fn choice(mut arguments: Arguments) -> Result<Choice, End> {
    let json = arguments.flag("--json");
    let svg = svg_option(&mut arguments)?;
    if json && svg.as_deref() == Some("-") {
        return Err(arguments.usage("--json and --svg - exclude each other".to_owned()));
    }
    let rounds = number(&mut arguments, "--rounds", 1000)?.unwrap_or(3);
    let threads = number(&mut arguments, "--threads", 256)?;
    let processes = number(&mut arguments, "--processes", 256)?;
    let only = arguments.option("--only")?;
    let strategies = match &only {
        Some(names) => names
            .split(',')
            .map(|name| {
                let of_table = |strategy: &Strategy| Strategy::TABLE.contains(strategy);
                Strategy::from_name(name).filter(of_table).ok_or_else(|| {
                    arguments.usage(format!("there is no way `{}`", show(name.as_ref())))
                })
            })
            .collect::<Result<Vec<_>, End>>()?,
        None if threads.or(processes).is_some() => Vec::new(),
        None => Strategy::TABLE.to_vec(),
    };
    // In the table's order, each once.
    let mut strategies: Vec<Strategy> =
        Strategy::TABLE.into_iter().filter(|strategy| strategies.contains(strategy)).collect();
    if threads.is_some() {
        strategies.extend(Strategy::WORKERS);
    }
    let positional = arguments.positional()?;
    let [path] = &positional[..] else {
        let found = positional.len();
        return Err(usage("time", format!("expected one path, found {found}")));
    };
    Ok(Choice { path: PathBuf::from(path), rounds, strategies, threads, processes, json, svg })
}

/// A number from 1 to `most`.
fn number(arguments: &mut Arguments, name: &str, most: usize) -> Result<Option<usize>, End> {
    match arguments.option(name)?.as_deref().map(usize::from_str) {
        None => Ok(None),
        Some(Ok(number)) if (1..=most).contains(&number) => Ok(Some(number)),
        Some(_) => Err(arguments.usage(format!("{name} takes a number, 1 to {most}"))),
    }
}

fn measure(choice: &Choice, index: &Index, output: &mut Output) -> Result<Outcome, End> {
    let files = index.shards();
    let file_bytes = files.iter().map(|file| file.header().model_len()).sum();
    let first = files.first().and_then(|file| file.path()).unwrap_or(&choice.path);
    let mut outcome = Outcome {
        path: choice.path.clone(),
        machine: Machine::of(first),
        files: files.len(),
        file_bytes,
        rounds: choice.rounds,
        series: Vec::new(),
        shown: choice.strategies.clone(),
        threads: choice.threads,
        sharing: Vec::new(),
    };
    if !choice.json && choice.svg.as_deref() != Some("-") {
        report::head(&outcome, output)?;
        // Whoever reads this sees it at once; whoever went away spares the machine the work.
        output.flush()?;
    }
    let bench = Bench {
        path: choice.path.clone(),
        file_bytes,
        rounds: choice.rounds,
        threads: choice.threads.unwrap_or(1),
    };
    let of_s = [Strategy::Read, Strategy::OnDemand];
    let also: Vec<Strategy> =
        of_s.into_iter().filter(|strategy| !choice.strategies.contains(strategy)).collect();
    outcome.series = bench.run(&choice.strategies, &also)?;
    if let Some(processes) = choice.processes {
        bench.bring_pages()?;
        for strategy in Strategy::SHARING {
            let figures = bench.sharing(strategy, processes)?;
            outcome.sharing.push(Sharing { strategy, processes, figures });
        }
    }
    Ok(outcome)
}
