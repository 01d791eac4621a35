//! What stands before the tensors?
//!
//! The length word and the header, large enough to be read: not to scale. Where text is left out,
//! the header is torn.

use super::super::excerpt::{Excerpt, excerpt};
use super::super::picture::{Picture, hex, plural};
use super::page::{Area, LEFT, Page, RIGHT};

/// Where the header's box begins.
const HEADER: f64 = LEFT + 264.0;

/// A line of the header.
const LINE: f64 = 21.0;

/// A column of the fixed-width fonts that the style names, at their size there.
const COLUMN: f64 = 8.45;

const INSET: f64 = 12.0;

pub fn draw(picture: &Picture<'_>, page: &mut Page) {
    let [word, header, _, _] = picture.regions();
    let n = picture.header.header_len();
    page.down(40.0);
    page.text("strong", LEFT, "length word");
    page.text("", LEFT + 92.0, &format!("offset {}, 8 bytes", word.range.start));
    page.text("strong", HEADER, "header");
    let in_front = match picture.blanks_in_front() {
        0 => String::new(),
        blanks => format!(", {} of white space in front", plural(blanks as u64, "byte")),
    };
    let line = format!("offset {}, N = {n} bytes{in_front} (not to scale)", header.range.start);
    page.text("", HEADER + 58.0, &line);
    page.down(10.0);
    let top = page.y();
    length_word(picture, page);
    let bottom = page.y();
    page.down(top - bottom);
    text(picture, page);
    padding(picture, page);
    page.down((bottom - page.y()).max(0.0));
}

fn length_word(picture: &Picture<'_>, page: &mut Page) {
    const CELL: f64 = 30.0;
    let n = picture.header.header_len();
    for (number, byte) in picture.word().iter().enumerate() {
        let x = LEFT + CELL * number as f64;
        page.rect("length", Area::new(x, page.y(), CELL - 2.0, 34.0));
        page.text_at(
            "data middle",
            x + (CELL - 2.0) / 2.0,
            page.y() + 22.0,
            &format!("{byte:02x}"),
        );
    }
    page.down(34.0 + 24.0);
    page.text("", LEFT, "little-endian, the lowest byte first:");
    page.down(22.0);
    page.text("data", LEFT, &format!("N = {n:#x} = {n}"));
    page.down(22.0);
    page.text("", LEFT, &picture.multiple_of_8());
    page.down(6.0);
}

/// The header's text, in one piece or in two.
fn text(picture: &Picture<'_>, page: &mut Page) {
    let columns = (RIGHT - HEADER - 2.0 * INSET) / COLUMN;
    let Excerpt { first, hidden, last } = excerpt(picture.text(), columns as usize);
    let height = |lines: &[String]| lines.len() as f64 * LINE + 14.0;
    let (top, torn) = (page.y(), hidden > 0);
    piece(page, height(&first), Edges { above: false, below: torn });
    lines(page, top + 7.0, &first);
    if torn {
        page.down(18.0);
        let bytes = plural(hidden as u64, "byte");
        page.text("middle", (HEADER + RIGHT) / 2.0, &format!("{bytes} more"));
        page.down(8.0);
        let top = page.y();
        piece(page, height(&last), Edges { above: true, below: false });
        lines(page, top + 7.0, &last);
    }
}

fn lines(page: &mut Page, top: f64, lines: &[String]) {
    for (number, line) in lines.iter().enumerate() {
        let y = top + LINE * number as f64;
        let area = Area::new(HEADER + INSET, y, RIGHT - HEADER - 2.0 * INSET, LINE);
        page.verbatim("data inorder", area, line);
    }
}

struct Edges {
    above: bool,
    below: bool,
}

/// A piece of the header's box, torn off where text is left out.
fn piece(page: &mut Page, height: f64, torn: Edges) {
    let (top, bottom) = (page.y(), page.y() + height);
    let path =
        format!("M{HEADER} {top}{}V{bottom}{}Z", edge(torn.above, 1.0), edge(torn.below, -1.0));
    page.path("header", &path);
    page.down(height);
}

/// The way along an edge, to the right (1) or back (-1).
fn edge(torn: bool, direction: f64) -> String {
    const TEETH: usize = 54;
    let step = (RIGHT - HEADER) / (2 * TEETH) as f64 * direction;
    match torn {
        true => format!("l{step} 5l{step} -5").repeat(TEETH),
        false => format!("h{}", (RIGHT - HEADER) * direction),
    }
}

fn padding(picture: &Picture<'_>, page: &mut Page) {
    const HEIGHT: f64 = 34.0;
    let bytes = picture.padding();
    if bytes.is_empty() {
        page.down(22.0);
        page.text("", HEADER, "no padding behind it");
        return;
    }
    let shown = hex(bytes);
    let width = shown.chars().count() as f64 * COLUMN + 2.0 * INSET;
    page.rect("padding", Area::new(HEADER, page.y(), width, HEIGHT));
    page.text_at("data", HEADER + INSET, page.y() + 22.0, &shown);
    page.text_at("strong", HEADER + width + 12.0, page.y() + 22.0, "padding");
    let blanks = plural(bytes.len() as u64, "byte");
    let told = format!("{blanks} of white space, counted in N");
    page.text_at("", HEADER + width + 78.0, page.y() + 22.0, &told);
    page.down(HEIGHT);
}
