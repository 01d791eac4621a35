//! What do the ratios look like?
//!
//! ```text
//!   Parse and prove a header      1x    2x     5x    10x
//!   272 tensors    safetensors    ███████████████████│──  12.4x   goal 11x
//! ```
//!
//! Drawn from the cells of the tables that this run has made, and from nothing else: what was not run
//! is not shown. No scripts, nothing from elsewhere; light or dark is the reader's choice.

mod bars;
mod page;

use crate::bench::Spread;
use crate::table::{Cell, Goal, Table};
use bars::{Bar, LIMITS, PEERS};
use page::{LEFT, Page, RIGHT};

const ROW: f64 = 24.0;
/// Where the peers' names begin, where bars do, and where the longest may end.
const PEER: f64 = LEFT + 172.0;
const BARS: f64 = LEFT + 352.0;
const END: f64 = RIGHT - 188.0;
/// Where numbers end.
const VALUES: f64 = END + 72.0;

/// Draws it; `None` if no row is there that it shows.
pub fn draw(day: &str, machine: &str, tables: &[(&str, Table)]) -> Option<String> {
    let (peers, limits) = (found(&PEERS, tables), found(&LIMITS, tables));
    if peers.is_empty() && limits.is_empty() {
        return None;
    }
    let mut page = Page::new();
    page.down(42.0);
    page.text("name", LEFT, "barest beside what others use");
    page.down(24.0);
    page.text("", LEFT, &format!("{day}, {machine}"));
    legend(&mut page);
    panel("Beside other crates: times as fast", &peers, Scale::of_times(&peers), &mut page);
    panel(
        "Beside the limits: percent of their speed",
        &limits,
        Scale::of_parts(&limits),
        &mut page,
    );
    let told = |shown: &Shown<'_>| shown.told();
    let told: Vec<String> = peers.iter().chain(&limits).map(told).collect();
    let description = format!("{day}, {machine}. {}", told.join(" "));
    Some(page.finish("How fast barest is beside other crates", &description))
}

/// What the chart would show and the tables do not have.
pub fn missing(tables: &[(&str, Table)]) -> Vec<String> {
    let all = PEERS.iter().chain(&LIMITS);
    let missing = all.filter(|bar| ratio_of(bar, tables).is_none());
    missing.map(|bar| format!("{}/{}", bar.table, bar.row.0)).collect()
}

/// A bar whose row is there.
struct Shown<'a> {
    bar: &'a Bar,
    ratio: Spread,
    goal: Option<(f64, bool)>,
    is_part: bool,
}

impl Shown<'_> {
    fn value(&self, ratio: f64) -> String {
        match (self.is_part, ratio) {
            (true, part) => format!("{:.0} %", part * 100.0),
            (false, few) if few < 2.0 => format!("{few:.2}x"),
            (false, many) => format!("{many:.1}x"),
        }
    }

    /// In words, for those who do not see it.
    fn told(&self) -> String {
        let Bar { group, label, peer, .. } = self.bar;
        let Spread { p10, median, p90 } = self.ratio;
        let goal = self.goal.map_or(String::new(), |goal| format!(", {}", self.goal_told(goal)));
        let [median, p10, p90] = [median, p10, p90].map(|ratio| self.value(ratio));
        format!("{group}, {label}, beside {peer}: {median} ({p10} to {p90}){goal}.")
    }

    fn goal_told(&self, (goal, reached): (f64, bool)) -> String {
        let goal = match self.is_part {
            true => format!("{:.0} %", goal * 100.0),
            false => format!("{goal}x"),
        };
        format!("goal {goal}{}", if reached { "" } else { " missed" })
    }
}

fn found<'a>(bars: &'a [Bar], tables: &[(&str, Table)]) -> Vec<Shown<'a>> {
    let is_part = std::ptr::eq(bars.as_ptr(), LIMITS.as_ptr());
    let shown = |bar: &'a Bar| {
        let ratio = ratio_of(bar, tables)?;
        let goal = bar.goal.and_then(|column| match cell(bar, column, tables)? {
            Cell::Goal { goal: Goal::AtLeast(least), reached } => Some((*least, *reached)),
            _ => None,
        });
        Some(Shown { bar, ratio, goal, is_part })
    };
    bars.iter().filter_map(shown).collect()
}

fn ratio_of(bar: &Bar, tables: &[(&str, Table)]) -> Option<Spread> {
    match cell(bar, bar.ratio, tables)? {
        Cell::Times(spread) => Some(*spread),
        _ => None,
    }
}

fn cell<'t>(bar: &Bar, column: &str, tables: &'t [(&str, Table)]) -> Option<&'t Cell> {
    let (_, table) = tables.iter().find(|(name, _)| *name == bar.table)?;
    let (first, second) = bar.row;
    let is = |cell: &Cell, wanted: &str| matches!(cell, Cell::Text(text) if text == wanted);
    let is_it =
        |row: &&Vec<Cell>| is(&row[0], first) && second.is_none_or(|second| is(&row[1], second));
    let row = table.rows.iter().find(is_it)?;
    row.get(table.columns.iter().position(|name| *name == column)?)
}

/// From a ratio to a place.
struct Scale {
    low: f64,
    high: f64,
    by_factors: bool,
}

impl Scale {
    /// By factors: from where both take as long, or from the slowest, to the fastest.
    fn of_times(shown: &[Shown<'_>]) -> Scale {
        let (low, high) = reach(shown);
        Scale { low: low.min(1.0), high: high.max(2.0), by_factors: true }
    }

    fn of_parts(shown: &[Shown<'_>]) -> Scale {
        Scale { low: 0.0, high: reach(shown).1.max(1.1), by_factors: false }
    }

    fn x(&self, ratio: f64) -> f64 {
        let part = match self.by_factors {
            true => (ratio / self.low).ln() / (self.high / self.low).ln(),
            false => (ratio - self.low) / (self.high - self.low),
        };
        BARS + (END - BARS) * part.clamp(0.0, 1.0)
    }

    /// Ratios at which a line stands, with what is written above it.
    fn lines(&self) -> Vec<(f64, String)> {
        let lines: &[f64] = match self.by_factors {
            true => &[0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0],
            false if self.high < 1.6 => &[0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5],
            false => &[0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0],
        };
        let inside = lines.iter().filter(|line| (self.low..=self.high).contains(line));
        let written = |&line: &f64| match self.by_factors {
            true => (line, format!("{line}x")),
            false => (line, format!("{:.0} %", line * 100.0)),
        };
        inside.map(written).collect()
    }
}

/// The smallest and the greatest number that is shown. On a busy machine a percentile may be so far away
/// that everything else would be small: such a line ends in an arrow.
fn reach(shown: &[Shown<'_>]) -> (f64, f64) {
    const BEYOND: f64 = 1.5;
    let over = |number: fn(&Shown<'_>) -> f64, least: fn(f64, f64) -> f64| {
        shown.iter().map(number).reduce(least).unwrap_or(1.0)
    };
    let goal = |shown: &Shown<'_>| shown.goal.map_or(shown.ratio.median, |(goal, _)| goal);
    let low = over(|shown| shown.ratio.median, f64::min).min(over(goal, f64::min));
    let high = over(|shown| shown.ratio.median, f64::max).max(over(goal, f64::max));
    (
        low.min(over(|shown| shown.ratio.p10, f64::min).max(low / BEYOND)),
        high.max(over(|shown| shown.ratio.p90, f64::max).min(high * BEYOND)),
    )
}

fn panel(title: &str, shown: &[Shown<'_>], scale: Scale, page: &mut Page) {
    if shown.is_empty() {
        return;
    }
    // 1. The title, and the scale's numbers on one line with it.
    page.down(44.0);
    page.text("strong", LEFT, title);
    for (line, written) in scale.lines() {
        page.text("small middle", scale.x(line), &written);
    }
    page.down(8.0);
    // 2. The lines of the scale, behind the bars.
    let groups = shown.chunk_by(|one, next| one.bar.group == next.bar.group);
    let height = shown.len() as f64 * ROW + groups.clone().count() as f64 * (ROW + 6.0);
    for (line, _) in scale.lines() {
        let class = if line == 1.0 { "one" } else { "line" };
        page.path(class, &format!("M{:.1} {:.1}v{height:.1}", scale.x(line), page.y()));
    }
    // 3. The bars.
    for group in groups {
        page.down(ROW);
        page.text("soft", LEFT, group[0].bar.group);
        page.down(6.0);
        for shown in group {
            row(shown, &scale, page);
        }
    }
}

fn row(shown: &Shown<'_>, scale: &Scale, page: &mut Page) {
    let (y, Spread { p10, median, p90 }) = (page.y(), shown.ratio);
    let middle = y + ROW / 2.0;
    page.text_at("", LEFT + 12.0, y + 17.0, shown.bar.label);
    page.text_at("soft", PEER, y + 17.0, shown.bar.peer);
    // From where both take as long; of a part, from nothing.
    let from = scale.x(if shown.is_part { 0.0 } else { 1.0 });
    let to = scale.x(median);
    let class = match () {
        _ if shown.is_part => "near",
        _ if median < 1.0 => "slower",
        _ => "faster",
    };
    page.told_rect(class, [from.min(to), y + 3.0, (to - from).abs(), ROW - 6.0], &shown.told());
    page.path("spread", &format!("M{:.1} {middle}H{:.1}", scale.x(p10), scale.x(p90)));
    if p10 < scale.low {
        page.path("spread", &format!("M{:.1} {:.1}l-5 4l5 4", BARS + 5.0, middle - 4.0));
    }
    if p90 > scale.high {
        page.path("spread", &format!("M{:.1} {:.1}l5 4l-5 4", END - 5.0, middle - 4.0));
    }
    if let Some((goal, _)) = shown.goal {
        page.path("goal", &format!("M{:.1} {:.1}v{:.1}", scale.x(goal), y + 2.0, ROW - 4.0));
    }
    page.text_at("data end", VALUES, y + 17.0, &shown.value(median));
    if let Some(goal) = shown.goal {
        let class = if goal.1 { "small end" } else { "missed end" };
        page.text_at(class, RIGHT, y + 17.0, &shown.goal_told(goal));
    }
    page.down(ROW);
}

fn legend(page: &mut Page) {
    page.down(26.0);
    let (y, middle) = (page.y(), page.y() - 5.0);
    page.told_rect("faster", [LEFT, y - 13.0, 40.0, 16.0], "median");
    page.text("small", LEFT + 48.0, "median of the ratios, each taken inside one round");
    page.path("spread", &format!("M{:.1} {middle}h40", LEFT + 350.0));
    page.text("small", LEFT + 398.0, "tenth to ninetieth percentile");
    page.path("goal", &format!("M{:.1} {:.1}v18", LEFT + 590.0, y - 14.0));
    page.text("small", LEFT + 600.0, "what the project set out to reach");
}
