//! How much of the file is what?
//!
//! Two bars, both to scale: the file, and its tensors. Between what is large here and small there,
//! funnels.

use super::super::picture::{Picture, letter, plural, share};
use super::page::{Area, INNER, LEFT, Page, RIGHT};
use std::fmt::Write;

const FILE: f64 = 30.0;
const TENSORS: f64 = 60.0;

/// Lines that would stand closer are left out.
const CLOSEST: f64 = 2.5;

pub fn draw(picture: &Picture<'_>, page: &mut Page) {
    let data_start = picture.header.data_start();
    let scale = Scale { from: 0, to: picture.file_len() };
    let middle = scale.x(data_start);
    // 1. From the head down to its place in the file.
    page.down(10.0);
    let top = page.y();
    page.down(34.0);
    let y = page.y();
    page.path("funnel", &format!("M{LEFT} {top}H{RIGHT}L{} {y}H{LEFT}Z", px(middle)));
    // 2. The file.
    for (region, class) in picture.regions().iter().zip(["length", "header", "padding", "tensors"])
    {
        let (x, width) = scale.place(&region.range);
        let part = share(region.range.end - region.range.start, picture.file_len());
        let told = format!("{}: {}..{}, {part}", region.name, region.range.start, region.range.end);
        page.told_rect(class, Area::new(x, y, width, FILE), &told);
    }
    page.rect("frame", Area::new(LEFT, y, INNER, FILE));
    let line = format!(
        "the file to scale: {} before the tensors, {} tensors",
        share(data_start, picture.file_len()),
        share(picture.header.data_len(), picture.file_len())
    );
    page.text_at("middle", LEFT + INNER / 2.0, y + 20.0, &line);
    page.down(FILE);
    // 3. From there down to the tensors.
    let top = page.y();
    page.down(62.0);
    let y = page.y();
    if picture.header.data_len() > 0 {
        page.path("funnel", &format!("M{} {top}H{RIGHT}V{y}H{LEFT}Z", px(middle)));
    }
    tensors(picture, page);
}

fn tensors(picture: &Picture<'_>, page: &mut Page) {
    let header = picture.header;
    let (y, range) = (page.y(), header.data_start()..picture.file_len());
    page.text_at("strong", LEFT, y - 30.0, "tensors");
    let line = match picture.tensors.len() {
        0 => "none".to_owned(),
        all => format!("{all} in {}, to scale", plural(header.data_len(), "byte")),
    };
    page.text_at("", LEFT + 62.0, y - 30.0, &line);
    page.text_at("data", LEFT, y - 8.0, &format!("8 + N = {}", range.start));
    page.text_at("data end", RIGHT, y - 8.0, &range.end.to_string());
    if range.is_empty() {
        page.rect("frame nothing", Area::new(LEFT, y, INNER, TENSORS));
        page.text_at("middle", LEFT + INNER / 2.0, y + 35.0, "no bytes");
    } else {
        let scale = Scale { from: range.start, to: range.end };
        runs(picture, &scale, page);
        page.rect("frame", Area::new(LEFT, y, INNER, TENSORS));
    }
    page.down(TENSORS);
    if !picture.tensors.is_empty() {
        caption(picture, page);
    }
}

fn caption(picture: &Picture<'_>, page: &mut Page) {
    const LINE: f64 = 22.0;
    let mut lines = vec![picture.how_joined()];
    if picture.runs.len() < picture.tensors.len() && picture.header.data_len() > 0 {
        lines.push(
            "names that differ in numbers alone have one colour; short lines: tensors begin \
             (where there is room)"
                .to_owned(),
        );
    }
    lines.extend(picture.last().map(|last| last.join(" ")));
    for line in lines {
        page.down(LINE);
        page.text("", LEFT, &line);
    }
}

fn runs(picture: &Picture<'_>, scale: &Scale, page: &mut Page) {
    const ROOM_FOR_LETTER: f64 = 12.0;
    let y = page.y();
    let kinds = kinds(picture);
    // 1. The runs.
    for ((number, run), kind) in picture.runs.iter().enumerate().zip(&kinds) {
        let (x, width) = scale.place(&run.range);
        let name = super::super::excerpt::name(run.largest.name(), 80);
        let more = match run.tensors - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let letter = letter(number);
        let told = format!("{letter}: {name}{more}, {}..{}", run.range.start, run.range.end);
        page.told_rect(kind, Area::new(x, y, width, TENSORS), &told);
    }
    // 2. Where tensors begin, and, stronger, runs.
    let starts: Vec<u64> = picture.runs.iter().map(|run| run.range.start).collect();
    let begins = picture.full().map(|tensor| tensor.file_range().start);
    let begins = begins.filter(|start| starts.binary_search(start).is_err());
    page.path(
        "begin",
        &ticks(begins.map(|start| scale.x(start)), y + TENSORS * 0.62, TENSORS * 0.38),
    );
    page.path("begin run", &ticks(starts.iter().map(|&start| scale.x(start)), y, TENSORS));
    // 3. The signs, above both.
    for (number, run) in picture.runs.iter().enumerate() {
        let (x, width) = scale.place(&run.range);
        if width >= ROOM_FOR_LETTER {
            page.text_at("data middle", x + width / 2.0, y + 25.0, &letter(number).to_string());
        }
    }
}

/// The colour of each run: one for names that differ in their numbers alone.
pub fn kinds(picture: &Picture<'_>) -> Vec<&'static str> {
    const COLOURS: [&str; 6] = ["k0", "k1", "k2", "k3", "k4", "k5"];
    let mut known: Vec<String> = Vec::new();
    let mut kinds = Vec::new();
    for run in &picture.runs {
        let name = run.largest.name();
        let without_numbers: String =
            name.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        let place = known.iter().position(|known| *known == without_numbers);
        kinds.push(COLOURS[place.unwrap_or(known.len()) % COLOURS.len()]);
        if place.is_none() {
            known.push(without_numbers);
        }
    }
    kinds
}

/// A path of upright lines.
fn ticks(places: impl Iterator<Item = f64>, y: f64, height: f64) -> String {
    let mut path = String::new();
    let mut last = LEFT;
    for x in places {
        if x - last >= CLOSEST {
            // Writing to a string does not fail.
            let _ = write!(path, "M{} {}v{}", px(x), px(y), px(height));
            last = x;
        }
    }
    path
}

/// Bytes of the file along the page's width.
struct Scale {
    from: u64,
    to: u64,
}

impl Scale {
    fn x(&self, offset: u64) -> f64 {
        LEFT + INNER * ((offset - self.from) as f64 / (self.to - self.from) as f64)
    }

    /// Where a range begins, and its width.
    fn place(&self, range: &std::ops::Range<u64>) -> (f64, f64) {
        let x = self.x(range.start);
        (x, self.x(range.end) - x)
    }
}

fn px(length: f64) -> f64 {
    (length * 100.0).round() / 100.0
}
