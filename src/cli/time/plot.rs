//! What do the times look like beside each other?
//!
//! A bar for each way, from the start until everything was touched; in it, where the model was ready
//! and where the first tensor was there. Cold and warm have scales of their own.

use super::super::layout::svg::page::{Area, INNER, LEFT, Page, RIGHT};
use super::super::layout::svg::sheet;
use super::super::ls::size_in_words;
use super::Outcome;
use super::figures::Figure;
use super::report::milliseconds;
use super::rounds::{Cache, Series};
use super::strategy::Part;

/// What a picture of ours begins with.
pub const MARK: &str = "<svg class=\"barest-time\"";

const ROW: f64 = 26.0;

/// Where bars begin: behind the names.
const BARS: f64 = LEFT + 190.0;

/// Behind the longest bar, its time.
const TIMES: f64 = 110.0;

pub fn draw(outcome: &Outcome) -> String {
    let mut page = Page::new();
    let name = name(outcome);
    page.down(42.0);
    page.text("name", LEFT, &name);
    page.down(24.0);
    page.text("", LEFT, &where_it_lies(outcome));
    page.down(22.0);
    page.text("", LEFT, &machine(outcome));
    for cache in [Cache::Cold, Cache::Warm] {
        let series: Vec<&Series> = outcome.shown(cache).collect();
        if !series.is_empty() {
            bars(&series, cache, &mut page);
        }
    }
    let title = format!("The time until {name} is in memory");
    let description = format!("{} {}", where_it_lies(outcome), times(outcome));
    sheet("barest-time", &title, &description, page)
}

fn name(outcome: &Outcome) -> String {
    let name = outcome.path.file_name().unwrap_or(outcome.path.as_os_str());
    barest::escape::Brief(&name.to_string_lossy()).to_string()
}

fn where_it_lies(outcome: &Outcome) -> String {
    let machine = &outcome.machine;
    let file_system = machine.file_system.as_deref().unwrap_or("an unknown file system");
    let ahead = machine.read_ahead_bytes.map_or("unknown".to_owned(), size_in_words);
    let size = size_in_words(outcome.file_bytes);
    format!("{size} on {file_system}, read-ahead of the device {ahead}.")
}

fn machine(outcome: &Outcome) -> String {
    let machine = &outcome.machine;
    let parts = [
        machine.processor.clone(),
        machine.cores.map(|cores| format!("cores: {cores}")),
        machine.kernel.clone(),
        Some(super::report::rounds(outcome)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The picture for those who do not see it.
fn times(outcome: &Outcome) -> String {
    let all = |series: &Series| {
        let time = milliseconds(series.median().get(Figure::All)?);
        Some(format!("{}, {}: {time}.", series.cache.name(), series.strategy.name()))
    };
    let shown = outcome.shown(Cache::Cold).chain(outcome.shown(Cache::Warm));
    shown.filter_map(all).collect::<Vec<_>>().join(" ")
}

fn bars(series: &[&Series], cache: Cache, page: &mut Page) {
    let all = |series: &Series| series.median().get(Figure::All);
    let longest = series.iter().filter_map(|series| all(series)).max().unwrap_or(0).max(1);
    let x = |time: u64| (INNER - (BARS - LEFT) - TIMES) * (time as f64 / longest as f64);
    page.down(40.0);
    page.text("strong", LEFT, cache.name());
    let told =
        "until every page was touched; dark: until the model was ready; line: the first tensor";
    page.text("", BARS, told);
    page.down(10.0);
    for series in series {
        let (y, median) = (page.y(), series.median());
        page.text_at("data", LEFT, y + 16.0, series.strategy.name());
        match median.get(Figure::All) {
            None => page.text_at("", BARS, y + 16.0, "not measured"),
            Some(time) => {
                let class = match series.strategy.part() {
                    Part::All => "k0",
                    Part::FirstLayers => "k3",
                    Part::Rows => "k5",
                };
                let told = format!("{}: {}", series.strategy.name(), milliseconds(time));
                page.told_rect(class, Area::new(BARS, y + 2.0, x(time), ROW - 8.0), &told);
                if let Some(ready) = median.get(Figure::Ready) {
                    page.rect("off", Area::new(BARS, y + 2.0, x(ready), ROW - 8.0));
                }
                if let Some(first) = median.get(Figure::First) {
                    page.path("frame", &format!("M{:.2} {:.2}v{}", BARS + x(first), y, ROW - 4.0));
                }
                let mark = if series.notes.is_empty() { "" } else { " *" };
                let told_time = format!("{}{mark}", milliseconds(time));
                page.text_at("data", BARS + x(time) + 8.0, y + 16.0, &told_time);
            }
        }
        page.down(ROW);
    }
    for series in series {
        for note in &series.notes {
            page.down(20.0);
            let line = format!("* {}: {note}", series.strategy.name());
            page.text("", LEFT, &super::super::table::cut(&line, 120));
        }
    }
    page.rect("frame", Area::new(BARS, page.y() + 2.0, RIGHT - BARS - TIMES, 0.5));
}
