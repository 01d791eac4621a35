//! Where on the page does something stand?

use super::xml::{Tag, Xml};

pub const WIDTH: f64 = 960.0;
pub const LEFT: f64 = 24.0;
pub const INNER: f64 = WIDTH - 2.0 * LEFT;
pub const RIGHT: f64 = WIDTH - LEFT;

/// What was drawn, and how far down it reaches.
pub struct Page {
    xml: Xml,
    y: f64,
}

impl Page {
    pub fn new() -> Page {
        Page { xml: Xml::new(), y: 0.0 }
    }

    pub fn y(&self) -> f64 {
        self.y
    }

    pub fn down(&mut self, by: f64) {
        self.y += by;
    }

    /// The elements, and the height of the page that holds them.
    pub fn finish(self) -> (String, f64) {
        (self.xml.finish(), (self.y + 24.0).ceil())
    }

    /// A line of text at the height that was reached.
    pub fn text(&mut self, class: &str, x: f64, text: &str) {
        self.text_at(class, x, self.y, text);
    }

    pub fn text_at(&mut self, class: &str, x: f64, y: f64, text: &str) {
        if !text.is_empty() {
            self.xml.words(classed(Tag::new("text"), class).at("x", x).at("y", y), text);
        }
    }

    pub fn rect(&mut self, class: &str, area: Area) {
        self.xml.leaf(area.tag("rect", class));
    }

    /// A rectangle that says what it is to who points at it.
    pub fn told_rect(&mut self, class: &str, area: Area, told: &str) {
        self.xml.begin(area.tag("rect", class));
        self.xml.words(Tag::new("title"), told);
        self.xml.end();
    }

    pub fn path(&mut self, class: &str, path: &str) {
        if !path.is_empty() {
            self.xml.leaf(classed(Tag::new("path"), class).with("d", path));
        }
    }

    /// A line of text as it stands in the file. What would reach out of its area is cut: no font
    /// is as wide as some letters are.
    pub fn verbatim(&mut self, class: &str, area: Area, text: &str) {
        self.xml.begin(area.tag("svg", ""));
        let tag = classed(Tag::new("text"), class).with("x", 0).at("y", area.height * 0.74);
        // Blanks count.
        self.xml.words(tag.with("xml:space", "preserve"), text);
        self.xml.end();
    }
}

/// A rectangle.
#[derive(Clone, Copy)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    pub fn new(x: f64, y: f64, width: f64, height: f64) -> Area {
        Area { x, y, width, height }
    }

    pub fn tag(&self, name: &'static str, class: &str) -> Tag {
        let tag = classed(Tag::new(name), class).at("x", self.x).at("y", self.y);
        tag.at("width", self.width).at("height", self.height)
    }
}

fn classed(tag: Tag, class: &str) -> Tag {
    match class {
        "" => tag,
        class => tag.with("class", class),
    }
}
