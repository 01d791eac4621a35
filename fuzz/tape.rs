//! How do a few bytes become a tensor, a slice or a model to write?
//!
//! As a tape of decisions, read from the front: whoever changes a byte changes one decision and
//! leaves the others. Behind its end stand zeros, so each tape means something.

pub struct Tape<'a>(pub &'a [u8]);

impl Tape<'_> {
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// A number below the limit, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }

    /// So many bytes of which no two neighbours look alike, whatever is left of the tape: too long
    /// to be decided one by one.
    pub fn noise(&mut self, len: usize) -> Vec<u8> {
        let seed = usize::from(self.byte());
        (0..len).map(|at| (((at + seed) * 0x9e37) >> 5) as u8).collect()
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}
