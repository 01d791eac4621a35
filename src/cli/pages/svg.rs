//! What does residency look like for a browser?
//!
//! A strip for each file, to scale: dark where pages are in memory. Below it a bar for each tensor, of
//! which the dark part is in memory.

use super::super::layout::svg::page::{Area, INNER, LEFT, Page, RIGHT};
use super::super::layout::svg::sheet;
use super::super::ls::name_cell;
use super::super::table::cut;
use super::{Tensor, share};
use barest::{Model, Shard};
use std::path::Path;

/// What a picture of ours begins with.
pub const MARK: &str = "<svg class=\"barest-pages\"";

/// A strip has so many parts at most: more could not be told apart.
const PARTS: usize = 480;

const ROW: f64 = 22.0;

/// Where the bars of tensors begin: behind their names.
const BARS: f64 = LEFT + 420.0;

/// Behind a bar, its numbers.
const NUMBERS: f64 = 150.0;

pub fn draw(model: &Model, tensors: &[Tensor<'_>]) -> String {
    let mut page = Page::new();
    let mut told = Vec::new();
    for shard in model.shards() {
        told.push(strip(shard, &mut page));
    }
    page.down(30.0);
    for tensor in tensors {
        bar(tensor, &mut page);
    }
    sheet("barest-pages", "The pages of a model that are in memory", &told.join(" "), page)
}

/// Draws a file, and says the same in words.
fn strip(shard: &Shard, page: &mut Page) -> String {
    const HEIGHT: f64 = 34.0;
    let path = shard.path().unwrap_or(Path::new(""));
    let name = name_cell(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy());
    page.down(40.0);
    page.text("name", LEFT, &cut(&name, 70));
    let mapping = shard.mapping();
    let Ok(residency) = mapping.residency(0..mapping.len()) else {
        page.down(24.0);
        page.text("", LEFT, "the system does not tell which pages are in memory");
        return String::new();
    };
    let (pages, resident) = (residency.pages(), residency.resident());
    let told = format!("{resident} of {pages} pages in memory, {}", share(resident, pages));
    page.down(24.0);
    page.text("", LEFT, &told);
    page.down(10.0);
    page.rect("k0", Area::new(LEFT, page.y(), INNER, HEIGHT));
    let is_there: Vec<bool> = residency.iter().collect();
    let parts = PARTS.min(is_there.len());
    for part in 0..parts {
        let pages = part * is_there.len() / parts..(part + 1) * is_there.len() / parts;
        let there = is_there[pages.clone()].iter().filter(|&&page| page).count();
        if there > 0 {
            let width = INNER / parts as f64;
            let height = HEIGHT * there as f64 / pages.len() as f64;
            let x = LEFT + width * part as f64;
            page.rect("off", Area::new(x, page.y() + HEIGHT - height, width, height));
        }
    }
    page.rect("frame", Area::new(LEFT, page.y(), INNER, HEIGHT));
    page.down(HEIGHT);
    format!("{name}: {told}.")
}

fn bar(tensor: &Tensor<'_>, page: &mut Page) {
    let Tensor { name, count, .. } = tensor;
    let y = page.y();
    let width = RIGHT - NUMBERS - BARS;
    page.text_at("data", LEFT, y + 15.0, &cut(&name_cell(name), 48));
    page.rect("k0", Area::new(BARS, y + 2.0, width, ROW - 6.0));
    let numbers = match (count.untold, count.mapped) {
        (0, 0) => "no pages".to_owned(),
        (0, mapped) => {
            let part = count.in_memory as f64 / mapped as f64;
            page.rect("off", Area::new(BARS, y + 2.0, width * part, ROW - 6.0));
            format!("{} of {mapped}", count.in_memory)
        }
        (_, mapped) => format!("? of {mapped}"),
    };
    page.text_at("data end", RIGHT, y + 15.0, &numbers);
    page.down(ROW);
}
