//! How does each strategy meet the same disk and the same cache?
//!
//! Each runs in a process of its own. Before a cold run the model's pages are dropped and counted;
//! before a warm one they are brought in. The strategies take turns, so that whatever else the machine
//! does meets all of them; of several rounds medians are shown.

use super::super::{End, map};
use super::child::TOUCHED;
use super::figures::{Figure, Figures, number_behind};
use super::strategy::Strategy;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// In which state the page cache is when a run begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cache {
    Cold,
    Warm,
}

impl Cache {
    pub fn name(self) -> &'static str {
        match self {
            Cache::Cold => "cold",
            Cache::Warm => "warm",
        }
    }
}

/// All runs of one strategy on one state of the cache.
pub struct Series {
    pub strategy: Strategy,
    pub cache: Cache,
    pub runs: Vec<Figures>,
    /// Why runs are missing, or are not what they should be; each once.
    pub notes: Vec<String>,
}

impl Series {
    pub fn median(&self) -> Figures {
        Figures::median(self.runs.iter())
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// What is run, and on what.
pub struct Bench {
    pub path: PathBuf,
    pub file_bytes: u64,
    pub rounds: usize,
    pub threads: usize,
}

impl Bench {
    /// All rounds of these strategies, cold and warm. `also_warm` run warm only.
    pub fn run(&self, strategies: &[Strategy], also_warm: &[Strategy]) -> Result<Vec<Series>, End> {
        let one = |cache| move |&strategy| Series { strategy, cache, runs: vec![], notes: vec![] };
        let mut cold: Vec<Series> = strategies.iter().map(one(Cache::Cold)).collect();
        let warm = strategies.iter().chain(also_warm);
        let warm = warm.filter(|strategy| !strategy.passes_the_cache_by());
        let mut warm: Vec<Series> = warm.map(one(Cache::Warm)).collect();
        for round in 0..self.rounds {
            // Each begins a round once, so that none always follows the same other.
            let turn = |all: usize| (0..all).map(move |number| (number + round) % all);
            for number in turn(cold.len()) {
                self.show(&cold[number], round);
                let state = self.drop_pages()?;
                self.run_once(&mut cold[number], state)?;
            }
            if !warm.is_empty() {
                // Dropped first, so that it is always the same reader whose pages are met.
                self.drop_pages()?;
            }
            for number in turn(warm.len()) {
                self.show(&warm[number], round);
                let state = self.bring_pages()?;
                self.run_once(&mut warm[number], state)?;
            }
        }
        clear_line();
        cold.extend(warm);
        Ok(cold)
    }

    fn run_once(&self, series: &mut Series, state: Option<String>) -> Result<(), End> {
        if series.strategy.copies() {
            if let Some(lack) = lack_of_memory(self.file_bytes) {
                series.note(lack);
                return Ok(());
            }
        }
        match self.in_fresh_process(series.strategy)? {
            Ok(figures) => {
                series.runs.push(figures);
                state.into_iter().for_each(|state| series.note(state));
            }
            Err(reason) => series.note(reason),
        }
        Ok(())
    }

    fn show(&self, series: &Series, round: usize) {
        let (cache, name) = (series.cache.name(), series.strategy.name());
        show(&format!("{cache}, round {} of {}: {name}", round + 1, self.rounds));
    }

    /// Drops the model's pages; gives what is wrong if some are left.
    pub fn drop_pages(&self) -> Result<Option<String>, End> {
        let model = map(&self.path)?;
        for file in model.shards().filter_map(|shard| shard.file()) {
            // What was written just now cannot be dropped. Where this is refused, nothing was.
            let _ = file.sync_all();
        }
        let after = model.pages().evict()?.after;
        Ok(match (after.in_memory, after.untold) {
            (0, 0) => None,
            (0, untold) => {
                Some(format!("maybe not cold: the kernel tells nothing of {untold} pages"))
            }
            (left, _) => {
                Some(format!("not cold: {left} of {} pages stayed in memory", after.mapped))
            }
        })
    }

    /// Brings the model's pages in; gives what is wrong if some are missing.
    pub fn bring_pages(&self) -> Result<Option<String>, End> {
        let pages = map(&self.path)?.pages();
        let before = pages.count()?;
        if before.in_memory == before.mapped {
            return Ok(None);
        }
        pages.prefetch_regardless()?.wait_all()?;
        let after = pages.count()?;
        Ok(match (after.mapped - after.in_memory - after.untold, after.untold) {
            (0, 0) => None,
            (0, untold) => {
                Some(format!("maybe not warm: the kernel tells nothing of {untold} pages"))
            }
            (missing, _) => {
                Some(format!("not warm: {missing} of {} pages were missing", after.mapped))
            }
        })
    }

    /// The figures of one run; or why there are none, if the strategy is to blame.
    fn in_fresh_process(&self, strategy: Strategy) -> Result<Result<Figures, String>, End> {
        let mut process = self.start(strategy)?;
        let line = process.line();
        Ok(line.as_deref().and_then(Figures::parse).ok_or_else(|| process.why()))
    }

    fn start(&self, strategy: Strategy) -> Result<Process, End> {
        let start = || {
            let arguments = ["time", "--child", strategy.name(), "--threads"];
            let mut command = Command::new(std::env::current_exe()?);
            command.args(arguments).arg(self.threads.to_string()).arg("--").arg(&self.path);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn()
        };
        let failed = |error: io::Error| End::Bad(format!("cannot start a process: {error}"));
        let mut child = start().map_err(failed)?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        Ok(Process { child, stdin, stdout })
    }

    /// The figures of so many processes that hold the model at the same time; or why there are none.
    pub fn sharing(
        &self,
        strategy: Strategy,
        processes: usize,
    ) -> Result<Result<Vec<Figures>, String>, End> {
        show(&format!("{processes} processes: {}", strategy.name()));
        let need = self.file_bytes.saturating_mul(processes as u64);
        if let Some(lack) = lack_of_memory(need).filter(|_| strategy.copies()) {
            return Ok(Err(lack));
        }
        let mut all = Vec::new();
        for _ in 0..processes {
            all.push(self.start(strategy)?);
        }
        // 1. Until each of them has touched everything.
        for process in &mut all {
            if process.line().as_deref() != Some(TOUCHED) {
                return Ok(Err(process.why()));
            }
        }
        // 2. Each is weighed while all are there.
        let mut figures = Vec::new();
        for process in &mut all {
            process.say("weigh");
            match process.line().as_deref().and_then(Figures::parse) {
                Some(of_one) => figures.push(of_one),
                None => return Ok(Err(process.why())),
            }
        }
        clear_line();
        Ok(Ok(figures))
    }
}

/// A process of ours. Dropped, it is ended and waited for, so that none outlives us; should we be
/// killed, it sees the end of its standard input.
struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Process {
    /// The next line that it prints, without its end; `None` if there is none.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stdout.as_mut()?.read_line(&mut line).ok()?;
        line.strip_suffix('\n').map(str::to_owned)
    }

    fn say(&mut self, word: &str) {
        if let Some(stdin) = &mut self.stdin {
            // If it is gone, its next line will be missing.
            let _ = writeln!(stdin, "{word}");
        }
    }

    /// Why it printed no figures: what it said, or how it ended.
    fn why(&mut self) -> String {
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.read_to_string(&mut said);
        }
        let ended = self.child.wait();
        let first = said.lines().next().unwrap_or_default();
        match (first.strip_prefix("barest: "), ended) {
            (Some(reason), _) => format!("not available: {reason}"),
            (None, Ok(status)) => format!("not available: the process ended with {}", how(status)),
            (None, Err(error)) => format!("not available: {error}"),
        }
    }
}

fn how(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.to_string()
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended, or is not needed any more; either way this succeeds or nothing can be done.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is missing if so many bytes are to be copied into memory. Where nobody tells how much there
/// is, it is tried.
fn lack_of_memory(need: u64) -> Option<String> {
    let have = number_behind("/proc/meminfo", "MemAvailable:")?.checked_mul(1024)?;
    (need > have).then(|| format!("not run: copies need {need} bytes, and {have} are available"))
}

/// Says on a terminal what is being run.
fn show(line: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r{line:<60}");
    }
}

fn clear_line() {
    show("");
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r");
    }
}

/// Of the runs that touched everything: do they agree on what they saw?
pub fn differing_sums(series: &[Series]) -> Vec<&'static str> {
    use super::strategy::Part;
    let full =
        |series: &&Series| series.strategy.part() == Part::All && series.strategy != Strategy::Disk;
    let sums = series.iter().filter(full).flat_map(|series| {
        let of_run = |run: &Figures| Some((series.strategy.name(), run.get(Figure::Sum)?));
        series.runs.iter().filter_map(of_run)
    });
    let sums: Vec<(&str, u64)> = sums.collect();
    let Some(&(_, expected)) = sums.first() else { return Vec::new() };
    let mut differing: Vec<&str> =
        sums.into_iter().filter(|&(_, sum)| sum != expected).map(|(name, _)| name).collect();
    differing.dedup();
    differing
}
