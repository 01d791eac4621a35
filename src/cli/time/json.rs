//! What was found out, for another program?
//!
//! Times in nanoseconds, sizes in bytes; what the system does not tell is `null`.

use super::super::output::Output;
use super::figures::{Figure, Figures};
use super::rounds::Series;
use super::{Outcome, Sharing, ratios};
use barest::escape::Json;
use std::fmt::Display;
use std::io::{self, Write};

pub fn write(outcome: &Outcome, output: &mut Output) -> io::Result<()> {
    let machine = &outcome.machine;
    let path = outcome.path.to_string_lossy();
    writeln!(
        output,
        "{{\"model\": {{\"path\": {}, \"files\": {}, \"bytes\": {}}},",
        Json(&path),
        outcome.files,
        outcome.file_bytes
    )?;
    writeln!(
        output,
        "\"machine\": {{\"processor\": {}, \"cores\": {}, \"kernel\": {}, \"memory_bytes\": {}, \
         \"page_bytes\": {}, \"file_system\": {}, \"read_ahead_bytes\": {}}},",
        text(&machine.processor),
        value(machine.cores),
        text(&machine.kernel),
        value(machine.memory_bytes),
        machine.page_bytes,
        text(&machine.file_system),
        value(machine.read_ahead_bytes)
    )?;
    let threads = value(outcome.threads);
    writeln!(output, "\"rounds\": {}, \"threads\": {threads},", outcome.rounds)?;
    let shown = |series: &&Series| outcome.shown.contains(&series.strategy);
    let series = outcome.series.iter().filter(shown).map(of_series);
    writeln!(output, "\"ways\": {},", list(series))?;
    writeln!(output, "\"processes\": {},", list(outcome.sharing.iter().map(of_sharing)))?;
    let ratios = ratios::of(outcome);
    let ratios = ratios
        .iter()
        .map(|ratio| format!("{{\"what\": {}, \"value\": {:.6}}}", Json(&ratio.what), ratio.value));
    writeln!(output, "\"ratios\": {},", list(ratios))?;
    match ratios::start(outcome) {
        Some((read, map @ 1..)) => writeln!(
            output,
            "\"s\": {:.6}, \"read_ready_ns\": {read}, \"map_ready_ns\": {map}}}",
            read as f64 / map as f64
        ),
        _ => writeln!(output, "\"s\": null, \"read_ready_ns\": null, \"map_ready_ns\": null}}"),
    }
}

fn of_series(series: &Series) -> String {
    let median = match series.runs.is_empty() {
        true => "null".to_owned(),
        false => of_figures(&series.median()),
    };
    format!(
        "{{\"way\": \"{}\", \"cache\": \"{}\", \"median\": {median},\n   \"runs\": {}, \"notes\": {}}}",
        series.strategy.name(),
        series.cache.name(),
        list(series.runs.iter().map(of_figures)),
        list(series.notes.iter().map(|note| Json(note).to_string())),
    )
}

fn of_sharing(sharing: &Sharing) -> String {
    let (each, reason) = match &sharing.figures {
        Ok(figures) => (list(figures.iter().map(of_figures)), "null".to_owned()),
        Err(reason) => ("[]".to_owned(), Json(reason).to_string()),
    };
    format!(
        "{{\"way\": \"{}\", \"processes\": {}, \"each\": {each}, \"not_measured\": {reason}}}",
        sharing.strategy.name(),
        sharing.processes
    )
}

fn of_figures(figures: &Figures) -> String {
    let pairs = Figure::ALL
        .into_iter()
        .map(|figure| format!("\"{}\": {}", figure.name(), value(figures.get(figure))));
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match items.is_empty() {
        true => "[]".to_owned(),
        false => format!("[\n  {}]", items.join(",\n  ")),
    }
}

fn text(text: &Option<String>) -> String {
    text.as_ref().map_or("null".to_owned(), |text| Json(text).to_string())
}

fn value(value: Option<impl Display>) -> String {
    value.map_or("null".to_owned(), |value| value.to_string())
}
