//! What was found out, for people?

use super::super::ls::size_in_words;
use super::super::output::Output;
use super::super::table::Table;
use super::figures::{Figure, Figures};
use super::rounds::{Cache, differing_sums};
use super::{Outcome, Sharing, ratios};
use barest::escape::Shown;
use std::io::{self, Write};

/// What is measured, and where.
pub fn head(outcome: &Outcome, output: &mut Output) -> io::Result<()> {
    let machine = &outcome.machine;
    let known = |text: &Option<String>| text.clone().unwrap_or("unknown".to_owned());
    let size = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), size_in_words);
    let path = outcome.path.to_string_lossy();
    let files = match outcome.files {
        1 => String::new(),
        files => format!(" in {files} files"),
    };
    writeln!(
        output,
        "model        {}, {} bytes ({}){files}",
        Shown(&path),
        outcome.file_bytes,
        size_in_words(outcome.file_bytes)
    )?;
    writeln!(
        output,
        "it lies on   {}, read-ahead of the device {}",
        Shown(&known(&machine.file_system)),
        size(machine.read_ahead_bytes)
    )?;
    let cores = machine.cores.map_or("unknown".to_owned(), |cores| cores.to_string());
    writeln!(output, "processor    {}, cores: {cores}", Shown(&known(&machine.processor)))?;
    writeln!(
        output,
        "machine      {}, memory {}, pages of {}",
        Shown(&known(&machine.kernel)),
        size(machine.memory_bytes),
        size_in_words(machine.page_bytes as u64)
    )
}

pub fn write(outcome: &Outcome, output: &mut Output) -> io::Result<()> {
    let rounds = rounds(outcome);
    if let Some(threads) = outcome.threads {
        writeln!(output, "\nworkers: {threads} threads take the tensors in file order")?;
    }
    if outcome.shown(Cache::Cold).next().is_some() {
        let said = "dropped before each run, and counted";
        writeln!(output, "\ncold: {said}; {rounds}")?;
        series(outcome, Cache::Cold, output)?;
        writeln!(output, "\nwarm: brought in by our prefetch; {rounds}")?;
        series(outcome, Cache::Warm, output)?;
        for name in differing_sums(&outcome.series) {
            writeln!(output, "\n{name} did not touch the same bytes as the others")?;
        }
    }
    sharing(outcome, output)?;
    let ratios = ratios::of(outcome);
    if !ratios.is_empty() {
        writeln!(output, "\nratios of ALL, cold, where nothing else is said")?;
    }
    let widest = ratios.iter().map(|ratio| ratio.what.len()).max().unwrap_or(0);
    for ratio in ratios {
        writeln!(output, "{:widest$}  {:.3}", ratio.what, ratio.value)?;
    }
    start(outcome, output)
}

/// `medians of 3 rounds`
pub fn rounds(outcome: &Outcome) -> String {
    match outcome.rounds {
        1 => "1 round".to_owned(),
        rounds => format!("medians of {rounds} rounds"),
    }
}

fn series(outcome: &Outcome, cache: Cache, output: &mut Output) -> io::Result<()> {
    const COLUMNS: [&str; 9] =
        ["WAY", ">READY", ">FIRST", ">ALL", ">MINOR", ">MAJOR", ">PEAK RSS", ">PSS", ">DISK"];
    let table = Table::new(&COLUMNS).giving_way(&["PSS", "PEAK RSS", "DISK", "MAJOR", "MINOR"]);
    let rows = outcome.shown(cache).map(|series| {
        let mut cells = vec![series.strategy.name().to_owned()];
        cells.extend(cells_of(&series.median()));
        cells
    });
    table.write(rows, output)?;
    for series in outcome.shown(cache) {
        for note in &series.notes {
            writeln!(output, "{}: {}", series.strategy.name(), Shown(note))?;
        }
    }
    Ok(())
}

fn cells_of(figures: &Figures) -> Vec<String> {
    let cell = |figure, told: fn(u64) -> String| figures.get(figure).map_or("-".to_owned(), told);
    let count = |count: u64| count.to_string();
    vec![
        cell(Figure::Ready, milliseconds),
        cell(Figure::First, milliseconds),
        cell(Figure::All, milliseconds),
        cell(Figure::Minor, count),
        cell(Figure::Major, count),
        cell(Figure::Peak, size_in_words),
        cell(Figure::Pss, size_in_words),
        cell(Figure::Read, size_in_words),
    ]
}

/// `1234.5 ms`; what is short with more digits.
pub fn milliseconds(nanoseconds: u64) -> String {
    let digits = match nanoseconds {
        0..1_000_000 => 3,
        1_000_000..10_000_000 => 2,
        _ => 1,
    };
    format!("{:.digits$} ms", nanoseconds as f64 / 1e6)
}

fn sharing(outcome: &Outcome, output: &mut Output) -> io::Result<()> {
    let Some(Sharing { processes, .. }) = outcome.sharing.first() else { return Ok(()) };
    writeln!(output, "\n{processes} processes, each of which has touched every page")?;
    let rows = outcome.sharing.iter().map(|sharing| {
        let sum = |figure| sharing.figures.as_ref().ok().and_then(|all| ratios::sum(all, figure));
        let size = |figure| sum(figure).map_or("-".to_owned(), size_in_words);
        let slowest = sharing
            .figures
            .as_ref()
            .ok()
            .and_then(|all| all.iter().filter_map(|figures| figures.get(Figure::All)).max());
        vec![
            sharing.strategy.name().to_owned(),
            slowest.map_or("-".to_owned(), milliseconds),
            size(Figure::Peak),
            size(Figure::Pss),
            sum(Figure::Pss).map_or("-".to_owned(), |pss| {
                format!("{:.1} %", pss as f64 / outcome.file_bytes.max(1) as f64 * 100.0)
            }),
        ]
    });
    let columns = ["WAY", ">ALL, THE LAST", ">SUM OF RSS", ">SUM OF PSS", ">PSS / FILE"];
    Table::new(&columns).write(rows, output)?;
    for sharing in &outcome.sharing {
        if let Err(reason) = &sharing.figures {
            writeln!(output, "{}: {}", sharing.strategy.name(), Shown(reason))?;
        }
    }
    Ok(())
}

fn start(outcome: &Outcome, output: &mut Output) -> io::Result<()> {
    let formula = "S = (parse + copy) / (header + mmap)";
    match ratios::start(outcome) {
        Some((read, map @ 1..)) => {
            let s = read as f64 / map as f64;
            let (read, map) = (milliseconds(read), milliseconds(map));
            writeln!(output, "\n{formula} = {read} / {map} = {s:.1}")
        }
        _ => writeln!(output, "\n{formula} = -"),
    }
}
