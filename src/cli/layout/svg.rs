//! How is the picture drawn for a browser?
//!
//! ```text
//!   the sum               8 + N + last end = file size, in the colours of the regions
//!   ┌──────────────────┐
//!   │ word and header  │  as large as they must be to be read, torn where text is left out
//!   └┐                ┌┘
//!    └┐ ┌─────────────┘
//!    [│ │  the file  ]    to scale
//!    ┌┘ └─────────────┐
//!   ┌┘                └┐
//!   │ tensors          │  to scale
//!   └──────────────────┘
//!   their names, and how many start where
//! ```
//!
//! No scripts, nothing from elsewhere. Light or dark is the reader's choice.

mod bars;
mod head;
pub mod page;
mod tables;
mod xml;

use super::picture::{Picture, plural};
use page::{Area, LEFT, Page, WIDTH};
use xml::{Tag, Xml};

/// What a picture of ours begins with.
pub const MARK: &str = "<svg class=\"barest-layout\"";

const STYLE: &str = include_str!("svg/style.css");

/// Draws files, one below the other.
pub fn draw(pictures: &[Picture<'_>]) -> String {
    // 1. The parts, from the top; each takes the height that it needs.
    let mut page = Page::new();
    for picture in pictures {
        title(picture, &mut page);
        sum(picture, &mut page);
        head::draw(picture, &mut page);
        bars::draw(picture, &mut page);
        tables::draw(picture, &mut page);
    }
    // 2. What stands around them.
    let heading = match pictures {
        [only] => format!("The layout of {}", only.name),
        several => format!("The layout of a model of {} files", several.len()),
    };
    sheet("barest-layout", &heading, &description(pictures), page)
}

/// What stands around any picture: its size, its title and description, its style, its paper. `class`
/// keeps its style from other pictures on the same page of a browser.
pub fn sheet(class: &str, heading: &str, description: &str, page: Page) -> String {
    let (body, height) = page.finish();
    let (title, desc) = (format!("{class}-title"), format!("{class}-desc"));
    let mut svg = Xml::new();
    svg.begin(
        Tag::new("svg")
            .with("class", class)
            .with("xmlns", "http://www.w3.org/2000/svg")
            .with("width", WIDTH)
            .with("height", height)
            .with("viewBox", format!("0 0 {WIDTH} {height}"))
            .with("role", "img")
            .with("aria-labelledby", format!("{title} {desc}")),
    );
    svg.words(Tag::new("title").with("id", title), heading);
    svg.words(Tag::new("desc").with("id", desc), description);
    svg.words(Tag::new("style"), &STYLE.replace("barest-layout", class));
    svg.leaf(Area::new(0.0, 0.0, WIDTH, height).tag("rect", "paper"));
    svg.append(&body);
    svg.end();
    svg.finish()
}

/// The picture for those who do not see it.
fn description(pictures: &[Picture<'_>]) -> String {
    pictures.iter().map(description_of_one).collect::<Vec<_>>().join(" ")
}

fn description_of_one(picture: &Picture<'_>) -> String {
    let (n, data_len) = (picture.header.header_len(), picture.header.data_len());
    let padding = match picture.padding().len() {
        1 => "1 is".to_owned(),
        bytes => format!("{bytes} are"),
    };
    let tensors = match picture.tensors.len() {
        1 => "1 tensor fills".to_owned(),
        tensors => format!("{tensors} tensors fill"),
    };
    format!(
        "{} has {}. The length word, 8 bytes, says that the header has {n}, of which {padding} \
         padding. {tensors} the other {data_len}. 8 + {n} + {data_len} = {}.",
        picture.name,
        plural(picture.file_len(), "byte"),
        picture.file_len()
    )
}

fn title(picture: &Picture<'_>, page: &mut Page) {
    page.down(42.0);
    page.text("name", LEFT, &picture.name);
    page.down(24.0);
    let line = "A safetensors file is three regions: a length word, a header in JSON, and the \
                bytes of the tensors.";
    page.text("", LEFT, line);
}

fn sum(picture: &Picture<'_>, page: &mut Page) {
    const HEIGHT: f64 = 58.0;
    let header = picture.header;
    page.down(20.0);
    let mut x = LEFT;
    for (class, number, what, sign) in [
        ("length", 8, "length word", "+"),
        ("header", header.header_len(), "N, the header", "+"),
        ("tensors", header.data_len(), "last end of a tensor", "="),
        ("whole", picture.file_len(), "bytes in the file", ""),
    ] {
        let number = number.to_string();
        let width = (number.len() as f64 * 12.5).max(what.len() as f64 * 7.6) + 24.0;
        page.rect(class, Area::new(x, page.y(), width, HEIGHT));
        page.text_at("number middle", x + width / 2.0, page.y() + 27.0, &number);
        page.text_at("middle", x + width / 2.0, page.y() + 47.0, what);
        x += width;
        page.text_at("number middle", x + 16.0, page.y() + 36.0, sign);
        x += 32.0;
    }
    page.down(HEIGHT);
}
