//! How is a short text compared with ten thousand places?
//!
//! As words under a mask: a few instructions without a branch, where `==` on slices would call
//! `memcmp`. And where the comparison succeeds, reading goes on at a place that the processor knew
//! before it had compared; to find the end of a number byte by byte, it would have to wait.

use std::array::from_fn;

/// A text of up to forty bytes: `], "dtype": "F8_E4M3", "data_offsets": [` are just that.
#[derive(Clone)]
pub struct Piece {
    words: [u64; WORDS],
    masks: [u64; WORDS],
    len: usize,
}

const WORDS: usize = 5;
const LONGEST: usize = WORDS * 8;

impl Piece {
    /// Keeps a copy of the text, unless it is longer.
    pub fn new(text: &[u8]) -> Option<Piece> {
        let mut bytes = [0; LONGEST];
        let mut masks = [0; LONGEST];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        masks[..text.len()].fill(0xff);
        Some(Piece { words: words(&bytes), masks: words(&masks), len: text.len() })
    }

    /// What is behind the piece, if the text begins with it and forty bytes can be looked at; eight,
    /// where that is enough.
    #[inline(always)]
    pub fn strip<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let mut different = 0;
        if self.len <= 8 {
            let there = u64::from_le_bytes(*text.first_chunk()?);
            different = (there ^ self.words[0]) & self.masks[0];
        } else {
            let there = words(text.first_chunk()?);
            for ((there, word), mask) in there.iter().zip(&self.words).zip(&self.masks) {
                different |= (there ^ word) & mask;
            }
        }
        if different == 0 { text.get(self.len..) } else { None }
    }
}

#[inline(always)]
fn words(bytes: &[u8; LONGEST]) -> [u64; WORDS] {
    from_fn(|word| u64::from_le_bytes(from_fn(|byte| bytes[word * 8 + byte])))
}

/// A text of up to fifteen bytes, which changes often: numbers as they are written.
#[derive(Clone, Copy, Default)]
pub struct Short {
    words: [u64; 2],
    len: usize,
}

impl Short {
    /// What `text` has in front of `rest`, which is what it ends with. `None` if that is longer, or
    /// there are no sixteen bytes to look at.
    #[inline(always)]
    pub fn before(rest: &[u8], text: &[u8]) -> Option<Short> {
        let len = text.len() - rest.len();
        if len < 16 { Some(Short { words: sixteen(text)?, len }) } else { None }
    }

    /// What is behind it, if the text begins with it and sixteen bytes can be looked at. The empty one
    /// stands nowhere.
    #[inline(always)]
    pub fn strip(self, text: &[u8]) -> Option<&[u8]> {
        let there = sixteen(text)?;
        let masks = FIRST_BYTES[self.len % 16];
        let different =
            (there[0] ^ self.words[0]) & masks[0] | (there[1] ^ self.words[1]) & masks[1];
        if self.len > 0 && different == 0 { text.get(self.len..) } else { None }
    }
}

#[inline(always)]
fn sixteen(text: &[u8]) -> Option<[u64; 2]> {
    let both = u128::from_le_bytes(*text.first_chunk()?);
    Some([both as u64, (both >> 64) as u64])
}

/// Masks for the first 0 to 15 bytes of two words.
const FIRST_BYTES: [[u64; 2]; 16] = {
    let mut masks = [[0; 2]; 16];
    let mut len = 1;
    while len < 16 {
        masks[len] = if len <= 8 { [!0 >> (64 - 8 * len), 0] } else { [!0, !0 >> (128 - 8 * len)] };
        len += 1;
    }
    masks
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with one byte changed, for each of its first `len` bytes.
    fn changed(text: &[u8], len: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
        (0..len).map(|place| {
            let mut other = text.to_vec();
            other[place] ^= 1;
            other
        })
    }

    #[test]
    fn a_piece_stands_only_where_all_of_it_does() {
        let bytes: Vec<u8> = (b' '..b' ' + 80).collect();
        for len in 0..=LONGEST {
            let piece = Piece::new(&bytes[..len]).unwrap();
            assert_eq!(piece.strip(&bytes), Some(&bytes[len..]));
            assert!(changed(&bytes, len).all(|other| piece.strip(&other).is_none()), "{len}");
            // So many must be there to be looked at.
            let enough = if len <= 8 { 8 } else { LONGEST };
            assert_eq!(piece.strip(&bytes[..enough]), Some(&bytes[len..enough]));
            assert_eq!(piece.strip(&bytes[..enough - 1]), None);
        }
        assert!(Piece::new(&bytes[..LONGEST + 1]).is_none());
    }

    #[test]
    fn a_short_text_stands_only_where_all_of_it_does() {
        let bytes = b"576,1024,0,3277],\"and so on";
        for len in 1..16 {
            let short = Short::before(&bytes[len..], bytes).unwrap();
            assert_eq!(short.strip(bytes), Some(&bytes[len..]));
            let mut behind = bytes.to_vec();
            behind[len..].fill(b'x');
            assert_eq!(short.strip(&behind), Some(&behind[len..]));
            for other in changed(bytes, len) {
                assert_eq!(short.strip(&other), None, "{len}");
                // Both words may differ in the same bits.
                assert!(changed(&other, len).all(|o| o == bytes || short.strip(&o).is_none()));
            }
            assert_eq!(short.strip(&bytes[..16]), Some(&bytes[len..16]));
            assert_eq!(short.strip(&bytes[..15]), None);
        }
        assert!(Short::before(&bytes[16..], bytes).is_none());
        assert!(Short::before(&bytes[2..15], &bytes[..15]).is_none());
        // Nothing at all stands nowhere.
        assert_eq!(Short::before(bytes, bytes).unwrap().strip(bytes), None);
        assert_eq!(Short::default().strip(bytes), None);
    }
}
