//! Where do names live, so that none needs an allocation of its own?
//!
//! In the header's text, as ranges of it. A name with escapes is not what the text says: its
//! resolved form goes into one side text, together with where it came from.

use super::super::error::Result;
use super::super::error::reserve::no_memory;
use super::super::json::Text;
use std::ops::Range;
use std::str::from_utf8;

/// The private copy of the header, and the names that it does not hold as they are.
#[derive(Debug)]
pub struct Strings {
    pub text: String,
    pub resolved: Resolved,
}

/// A private copy of what should be text; `None` if it is not UTF-8.
///
/// Piece by piece, so that a piece is still in the nearest cache when it is checked. Small pieces,
/// since the C library copies more than two kilobytes with one instruction, `rep movsb`, which takes
/// many times as long on some processors when the two addresses are unlucky.
pub fn copy_of_text(bytes: &[u8]) -> Result<Option<String>> {
    const PIECE: usize = 2048;
    let mut copy = String::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| no_memory())?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let piece = &rest[..rest.len().min(PIECE)];
        // A character that is cut where the piece ends begins the next one.
        let valid = from_utf8(piece).or_else(|error| from_utf8(&piece[..error.valid_up_to()]));
        match valid {
            Ok(valid) if !valid.is_empty() => {
                copy.push_str(valid);
                rest = &rest[valid.len()..];
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(copy))
}

/// Names with their escapes resolved, one behind the other.
#[derive(Debug, Default)]
pub struct Resolved {
    text: String,
    /// Where each of them begins: here, and in the header. Ascending in both.
    origins: Vec<(u32, u32)>,
}

/// A name: a range of one of the two texts. Bytes fit 32 bits, as the header's length does and
/// resolving never lengthens.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    pub start: u32,
    pub len: u32,
    pub resolved: bool,
}

impl Name {
    /// A name that is what the header has there: `len` bytes from `start`.
    pub fn plain(start: usize, len: usize) -> Name {
        Name { start: start as u32, len: len as u32, resolved: false }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

impl Resolved {
    /// Makes a name of a string of the header; its escapes are resolved to the end of this text.
    pub fn keep(&mut self, string: Text, header: &str) -> Result<Name> {
        if !string.escaped {
            return Ok(Name::plain(string.start as usize, string.len as usize));
        }
        let start = self.text.len();
        // Resolving shortens.
        self.text.try_reserve(string.len as usize).map_err(|_| no_memory())?;
        self.text.extend(string.characters(header));
        self.origins.try_reserve(1).map_err(|_| no_memory())?;
        self.origins.push((start as u32, string.start));
        let len = (self.text.len() - start) as u32;
        Ok(Name { start: start as u32, len, resolved: true })
    }

    /// A name, which is a range of this text or of the header's.
    pub fn get<'a>(&'a self, name: Name, header: &'a str) -> &'a str {
        let text = if name.resolved { &self.text } else { header };
        &text[name.range()]
    }

    /// Gives back what was reserved and not needed.
    pub fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.origins.shrink_to_fit();
    }

    fn origin(&self, start: u32) -> usize {
        // Where one place has several origins, all but the last are those of empty names.
        let after = self.origins.partition_point(|&(place, _)| place <= start);
        after.checked_sub(1).map_or(0, |last| self.origins[last].1 as usize)
    }
}

impl Strings {
    pub fn get(&self, name: Name) -> &str {
        self.resolved.get(name, &self.text)
    }

    /// The same as bytes, which nobody needs to ask where a character begins: for comparing.
    #[inline]
    pub fn bytes(&self, name: Name) -> &[u8] {
        let text = if name.resolved { &self.resolved.text } else { &self.text };
        &text.as_bytes()[name.range()]
    }

    /// Where the name stands in the header: its first byte behind the quote.
    pub fn position(&self, name: Name) -> usize {
        if name.resolved { self.resolved.origin(name.start) } else { name.start as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters of one to four bytes, cut by the end of a piece at every place.
    #[test]
    fn text_is_copied_whole_and_nothing_else_is() {
        for offset in 0..8 {
            let text = "x".repeat(offset) + &"aé€🦀".repeat(300);
            assert_eq!(copy_of_text(text.as_bytes()).unwrap().as_deref(), Some(&text[..]));
            for place in [0, 2047, 2048, 2049, text.len() - 1] {
                let mut bytes = text.clone().into_bytes();
                bytes[place] = 0xff;
                assert_eq!(copy_of_text(&bytes).unwrap(), None, "{offset} {place}");
            }
            let cut = &text.as_bytes()[..text.len() - 1];
            assert_eq!(copy_of_text(cut).unwrap(), None);
        }
        assert_eq!(copy_of_text(b"").unwrap().as_deref(), Some(""));
    }
}
