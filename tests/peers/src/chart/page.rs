//! How is it written, so that a browser shows it and others can read it out?

use quick_xml::Writer;
use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use std::io;

const WIDTH: f64 = 960.0;
pub const LEFT: f64 = 24.0;
pub const RIGHT: f64 = WIDTH - LEFT;

const STYLE: &str = include_str!("style.css");

/// What was drawn, and how far down it reaches.
pub struct Page {
    xml: Writer<Vec<u8>>,
    y: f64,
}

impl Page {
    pub fn new() -> Page {
        Page { xml: Writer::new_with_indent(Vec::new(), b' ', 0), y: 0.0 }
    }

    pub fn y(&self) -> f64 {
        self.y
    }

    pub fn down(&mut self, by: f64) {
        self.y += by;
    }

    /// A line of text at the height that was reached.
    pub fn text(&mut self, class: &str, x: f64, text: &str) {
        self.text_at(class, x, self.y, text);
    }

    pub fn text_at(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let mut tag = BytesStart::new("text");
        if !class.is_empty() {
            tag.push_attribute(("class", class));
        }
        tag.push_attribute(("x", &rounded(x)[..]));
        tag.push_attribute(("y", &rounded(y)[..]));
        self.words(tag, text);
    }

    /// A rectangle (x, y, width, height) that says what it is to who points at it.
    pub fn told_rect(&mut self, class: &str, area: [f64; 4], told: &str) {
        let mut tag = BytesStart::new("rect").with_attributes([("class", class)]);
        for (name, length) in ["x", "y", "width", "height"].into_iter().zip(area) {
            tag.push_attribute((name, &rounded(length)[..]));
        }
        tag.push_attribute(("rx", "2"));
        self.event(Event::Start(tag));
        self.words(BytesStart::new("title"), told);
        self.event(Event::End(BytesEnd::new("rect")));
    }

    pub fn path(&mut self, class: &str, path: &str) {
        let tag = BytesStart::new("path").with_attributes([("class", class), ("d", path)]);
        self.event(Event::Empty(tag));
    }

    /// The whole picture.
    pub fn finish(self, title: &str, description: &str) -> String {
        let height = rounded(self.y + 24.0);
        let body = self.xml.into_inner();
        let mut sheet = Page::new();
        let view = format!("0 0 {WIDTH} {height}");
        let width = rounded(WIDTH);
        sheet.event(Event::Start(BytesStart::new("svg").with_attributes([
            ("class", "barest-speed"),
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("width", &width[..]),
            ("height", &height[..]),
            ("viewBox", &view[..]),
            ("role", "img"),
            ("aria-labelledby", "barest-speed-title barest-speed-desc"),
        ])));
        let tag = |name, id| BytesStart::new(name).with_attributes([("id", id)]);
        sheet.words(tag("title", "barest-speed-title"), title);
        sheet.words(tag("desc", "barest-speed-desc"), description);
        // Nothing in it looks like a tag; its quotes are to stay quotes.
        sheet.event(Event::Start(BytesStart::new("style")));
        sheet.event(Event::Text(BytesText::from_escaped(STYLE)));
        sheet.event(Event::End(BytesEnd::new("style")));
        sheet.event(Event::Empty(BytesStart::new("rect").with_attributes([
            ("class", "paper"),
            ("width", &width[..]),
            ("height", &height[..]),
        ])));
        let mut text = String::from_utf8(sheet.xml.into_inner()).expect("text");
        text += &String::from_utf8(body).expect("text");
        text + "\n</svg>\n"
    }

    fn words(&mut self, tag: BytesStart<'_>, words: &str) {
        let end = tag.to_end().into_owned();
        self.event(Event::Start(tag));
        self.event(Event::Text(BytesText::new(words)));
        self.event(Event::End(end));
    }

    fn event(&mut self, event: Event<'_>) {
        let written: io::Result<()> = self.xml.write_event(event);
        written.expect("memory takes all that is written");
    }
}

/// A tenth of a pixel is seen by nobody.
fn rounded(length: f64) -> String {
    ((length * 10.0).round() / 10.0).to_string()
}
