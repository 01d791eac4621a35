//! What is measured of one run, and how does it come from the process that ran?
//!
//! As one line of `name=number` pairs. What the system does not tell is left out there, and `-` in a
//! table: no number is made up.

use barest::{PageFaults, page_faults};
use std::fs;
use std::time::{Duration, Instant};

/// Numbers of one run, or the medians of several.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Figures {
    values: [Option<u64>; Figure::ALL.len()],
}

/// Which number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Figure {
    /// Nanoseconds until a tensor can be asked for.
    Ready,
    /// Nanoseconds until the first tensor was touched.
    First,
    /// Nanoseconds until everything was touched that the strategy is about.
    All,
    /// Page faults of the whole process.
    Minor,
    Major,
    /// Bytes of the largest resident set: the pages of mapped files count.
    Peak,
    /// Bytes of the process's share of memory, at the end.
    Pss,
    /// Bytes that came from the disk.
    Read,
    /// Bytes of the tensors that were touched.
    Touched,
    /// The sum of the bytes that were touched, one in each page.
    Sum,
}

impl Figure {
    pub const ALL: [Figure; 10] = [
        Figure::Ready,
        Figure::First,
        Figure::All,
        Figure::Minor,
        Figure::Major,
        Figure::Peak,
        Figure::Pss,
        Figure::Read,
        Figure::Touched,
        Figure::Sum,
    ];

    /// The name in the line, and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Ready => "ready_ns",
            Figure::First => "first_tensor_ns",
            Figure::All => "all_ns",
            Figure::Minor => "minor_faults",
            Figure::Major => "major_faults",
            Figure::Peak => "peak_rss_bytes",
            Figure::Pss => "pss_bytes",
            Figure::Read => "disk_read_bytes",
            Figure::Touched => "tensor_bytes",
            Figure::Sum => "sum_of_touched",
        }
    }
}

impl Figures {
    pub fn get(&self, figure: Figure) -> Option<u64> {
        self.values[figure as usize]
    }

    pub fn set(&mut self, figure: Figure, value: Option<u64>) {
        self.values[figure as usize] = value;
    }

    pub fn line(&self) -> String {
        let known = Figure::ALL.into_iter().filter_map(|figure| Some((figure, self.get(figure)?)));
        let pairs: Vec<String> =
            known.map(|(figure, value)| format!("{}={value}", figure.name())).collect();
        pairs.join(" ")
    }

    /// `None` if the line is no such line.
    pub fn parse(line: &str) -> Option<Figures> {
        let mut figures = Figures::default();
        for pair in line.split_whitespace() {
            let (name, value) = pair.split_once('=')?;
            let figure = Figure::ALL.into_iter().find(|figure| figure.name() == name)?;
            figures.set(figure, Some(value.parse().ok()?));
        }
        Some(figures)
    }

    /// For each figure the median of the runs that have it; of an even number the lower one.
    pub fn median<'a>(runs: impl Iterator<Item = &'a Figures> + Clone) -> Figures {
        let mut median = Figures::default();
        for figure in Figure::ALL {
            let mut values: Vec<u64> = runs.clone().filter_map(|run| run.get(figure)).collect();
            values.sort_unstable();
            median.set(figure, values.get(values.len().saturating_sub(1) / 2).copied());
        }
        median
    }
}

/// A run's clock and its counters, started with it.
pub struct Meter {
    started: Instant,
    faults: Option<PageFaults>,
    read: Option<u64>,
    figures: Figures,
}

impl Meter {
    pub fn start() -> Meter {
        let (faults, read) = (page_faults(), bytes_read());
        Meter { started: Instant::now(), faults, read, figures: Figures::default() }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Notes that a moment has come; the first time counts.
    pub fn note(&mut self, moment: Figure) {
        self.note_at(moment, self.elapsed());
    }

    pub fn note_at(&mut self, moment: Figure, at: Duration) {
        if self.figures.get(moment).is_none() {
            self.figures.set(moment, u64::try_from(at.as_nanos()).ok());
        }
    }

    pub fn count(&mut self, figure: Figure, value: u64) {
        self.figures.set(figure, Some(value));
    }

    /// Stops the clock, reads the counters; the first time counts.
    pub fn stop(&mut self) {
        if self.figures.get(Figure::All).is_some() {
            return;
        }
        self.note(Figure::All);
        if let (Some(before), Some(after)) = (self.faults, page_faults()) {
            self.figures.set(Figure::Minor, Some(after.minor - before.minor));
            self.figures.set(Figure::Major, Some(after.major - before.major));
        }
        if let (Some(before), Some(after)) = (self.read, bytes_read()) {
            self.figures.set(Figure::Read, after.checked_sub(before));
        }
    }

    /// Asks what memory the process has, while it has it.
    pub fn weigh(&mut self) {
        self.figures.set(Figure::Peak, kib_behind("/proc/self/status", "VmHWM:"));
        self.figures.set(Figure::Pss, kib_behind("/proc/self/smaps_rollup", "Pss:"));
    }

    pub fn figures(&self) -> &Figures {
        &self.figures
    }
}

fn bytes_read() -> Option<u64> {
    number_behind("/proc/self/io", "read_bytes:")
}

fn kib_behind(path: &str, word: &str) -> Option<u64> {
    number_behind(path, word)?.checked_mul(1024)
}

/// The number in the line of a file that begins with a word.
pub fn number_behind(path: &str, word: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(word))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_and_what_is_unknown_stays_unknown() {
        let mut figures = Figures::default();
        figures.set(Figure::Ready, Some(17));
        figures.set(Figure::Sum, Some(u64::MAX));
        assert_eq!(figures.line(), format!("ready_ns=17 sum_of_touched={}", u64::MAX));
        assert_eq!(Figures::parse(&figures.line()), Some(figures));
        for broken in ["ready_ns", "ready_ns=x", "ready=1", "ready_ns=-1"] {
            assert_eq!(Figures::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_median_is_taken_for_each_figure_of_the_runs_that_have_it() {
        let runs = ["ready_ns=9 major_faults=1", "ready_ns=1", "ready_ns=5 major_faults=3"];
        let runs = runs.map(|line| Figures::parse(line).unwrap());
        let median = Figures::median(runs.iter());
        assert_eq!(median.line(), "ready_ns=5 major_faults=1");
        assert_eq!(Figures::median([].iter()), Figures::default());
    }
}
