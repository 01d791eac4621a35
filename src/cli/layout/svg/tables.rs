//! What are the tensors called, and how many start where a reader would not like it?

use super::super::excerpt;
use super::super::picture::{Picture, letter, share};
use super::bars::kinds;
use super::page::{Area, INNER, LEFT, Page, RIGHT};

const ROW: f64 = 23.0;

pub fn draw(picture: &Picture<'_>, page: &mut Page) {
    if !picture.tensors.is_empty() {
        runs(picture, page);
    }
    if picture.full().next().is_some() {
        misplaced(picture, page);
    }
}

fn runs(picture: &Picture<'_>, page: &mut Page) {
    const NAME: f64 = LEFT + 30.0;
    const NAME_COLUMNS: usize = 48;
    const MORE: f64 = LEFT + 452.0;
    const FROM: f64 = RIGHT - 222.0;
    const BYTES: f64 = RIGHT - 82.0;
    page.down(34.0);
    let joined = picture.runs.len() < picture.tensors.len();
    let title = if joined { "largest tensor" } else { "tensor" };
    page.text("strong", NAME, title);
    for (x, title) in [(FROM, "offset"), (BYTES, "bytes"), (RIGHT, "share")] {
        page.text("strong end", x, title);
    }
    page.down(8.0);
    for ((number, run), kind) in picture.runs.iter().enumerate().zip(kinds(picture)) {
        let (y, bytes) = (page.y(), run.range.end - run.range.start);
        page.rect(kind, Area::new(LEFT, y + 1.0, 20.0, 20.0));
        page.text_at("data middle", LEFT + 10.0, y + 16.0, &letter(number).to_string());
        let name = excerpt::name(run.largest.name(), NAME_COLUMNS);
        page.verbatim("data", Area::new(NAME, y, MORE - NAME - 8.0, ROW - 1.0), &name);
        if run.tensors > 1 {
            page.text_at("", MORE, y + 16.0, &format!("and {} more", run.tensors - 1));
        }
        page.text_at("data end", FROM, y + 16.0, &run.range.start.to_string());
        page.text_at("data end", BYTES, y + 16.0, &bytes.to_string());
        let share = share(bytes, picture.header.data_len().max(1));
        page.text_at("data end", RIGHT, y + 16.0, &share);
        page.down(ROW);
    }
}

fn misplaced(picture: &Picture<'_>, page: &mut Page) {
    const BAR: f64 = 240.0;
    let all = picture.tensors.len() - picture.empty;
    page.down(44.0);
    page.text("strong", LEFT, "Tensors that start at a file offset that is not a multiple of");
    page.down(8.0);
    for row in &picture.misplaced {
        let y = page.y();
        let part = row.tensors as f64 / all as f64;
        page.text_at("", LEFT, y + 16.0, row.of);
        page.rect("frame", Area::new(RIGHT - BAR, y + 4.0, BAR, 14.0));
        page.rect("off", Area::new(RIGHT - BAR, y + 4.0, BAR * part, 14.0));
        let count = format!("{} of {all}", row.tensors);
        page.text_at("data end", LEFT + INNER - BAR - 16.0, y + 16.0, &count);
        page.down(ROW);
    }
}
