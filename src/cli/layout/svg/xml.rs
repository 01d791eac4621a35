//! What keeps the picture well-formed, whatever a file's names hold?
//!
//! Tags are closed by the one who opened them, in order. XML 1.0 has no way at all to write most
//! control characters: none comes here, since names are escaped for people first, and one that did
//! would be replaced.

use std::fmt::{self, Display, Formatter, Write};

/// A tag's name and its attributes.
pub struct Tag {
    name: &'static str,
    text: String,
}

impl Tag {
    pub fn new(name: &'static str) -> Tag {
        Tag { name, text: format!("<{name}") }
    }

    pub fn with(mut self, attribute: &str, value: impl Display) -> Tag {
        let value = value.to_string();
        self.text += &format!(" {attribute}=\"{}\"", Escaped(&value));
        self
    }

    /// An attribute that is a length, to a hundredth.
    pub fn at(self, attribute: &str, length: f64) -> Tag {
        self.with(attribute, (length * 100.0).round() / 100.0)
    }
}

/// A document, one element a line.
pub struct Xml {
    text: String,
    open: Vec<&'static str>,
}

impl Xml {
    pub fn new() -> Xml {
        Xml { text: String::new(), open: Vec::new() }
    }

    pub fn begin(&mut self, tag: Tag) {
        self.text += &format!("{}>\n", tag.text);
        self.open.push(tag.name);
    }

    pub fn end(&mut self) {
        if let Some(name) = self.open.pop() {
            self.text += &format!("</{name}>\n");
        }
    }

    pub fn leaf(&mut self, tag: Tag) {
        self.text += &format!("{}/>\n", tag.text);
    }

    /// An element that holds text.
    pub fn words(&mut self, tag: Tag, words: &str) {
        let name = tag.name;
        self.text += &format!("{}>{}</{name}>\n", tag.text, Escaped(words));
    }

    /// Elements that were written elsewhere.
    pub fn append(&mut self, elements: &str) {
        self.text += elements;
    }

    pub fn finish(self) -> String {
        assert!(self.open.is_empty(), "{:?} is open", self.open);
        self.text
    }
}

/// Text between tags or quotes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\n' => f.write_char('\n'),
            '\u{fffe}' | '\u{ffff}' => f.write_char(char::REPLACEMENT_CHARACTER),
            other if other.is_control() => f.write_char(char::REPLACEMENT_CHARACTER),
            other => f.write_char(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_it_and_nothing_forbidden_is_in_it() {
        let mut xml = Xml::new();
        xml.begin(Tag::new("a").with("b", "\"<&>'").at("c", 1.0 / 3.0));
        xml.words(Tag::new("d"), "]]></d>&amp;\0\u{1b}\u{85}\u{ffff}\n");
        xml.leaf(Tag::new("e").at("f", 20.0));
        xml.end();
        let expected = "<a b=\"&quot;&lt;&amp;&gt;'\" c=\"0.33\">\n\
            <d>]]&gt;&lt;/d&gt;&amp;amp;\u{fffd}\u{fffd}\u{fffd}\u{fffd}\n</d>\n\
            <e f=\"20\"/>\n</a>\n";
        assert_eq!(xml.finish(), expected);
    }
}
