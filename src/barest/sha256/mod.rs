//! Are these the same bytes as those?
//!
//! SHA-256 (FIPS 180-4), by hand: 64 rounds over blocks of 64 bytes, chained.
//!
//! ```text
//!   bytes ──▶ 64 │ 64 │ 64 │ rest 0x80 0…0 length in bits
//!              │    │    │    │
//!   start ──▶ mix─▶mix─▶mix─▶mix ──▶ 32 bytes
//! ```
//!
//! Of a model two things are hashed: the data section, which stays the same whatever the metadata
//! says, and each tensor, which stays the same in whatever file it lies.

mod rounds;
mod simd;

use super::error::Result;
use super::shard::Shard;
use super::tensor::TensorView;
use std::fmt::{self, Debug, Display, Formatter};

/// Bytes that are mixed in at once.
const BLOCK: usize = 64;

/// The words that the blocks are mixed into.
type State = [u32; 8];

/// The first 32 bits of the fractional parts of the square roots of the first 8 primes.
const START: State = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// SHA-256 of bytes that come piece by piece.
#[derive(Clone)]
pub struct Sha256 {
    state: State,
    /// The beginning of a block.
    rest: [u8; BLOCK],
    /// Bytes taken so far.
    len: u64,
}

/// What SHA-256 gives: 32 bytes. Displayed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256Digest(pub [u8; 32]);

impl Sha256 {
    /// Nothing hashed yet.
    pub fn new() -> Sha256 {
        Sha256 { state: START, rest: [0; BLOCK], len: 0 }
    }

    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Sha256Digest {
        let mut hash = Sha256::new();
        hash.update(bytes);
        hash.finish()
    }

    /// Takes the next bytes. How they are cut into pieces makes no difference.
    pub fn update(&mut self, mut bytes: &[u8]) {
        let filled = self.filled();
        self.len = self.len.wrapping_add(bytes.len() as u64);
        if filled > 0 {
            let (head, tail) = bytes.split_at(bytes.len().min(BLOCK - filled));
            self.rest[filled..filled + head.len()].copy_from_slice(head);
            if filled + head.len() < BLOCK {
                return;
            }
            simd::mix(&mut self.state, &self.rest);
            bytes = tail;
        }
        let whole = bytes.len() - bytes.len() % BLOCK;
        simd::mix(&mut self.state, &bytes[..whole]);
        let rest = &bytes[whole..];
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    /// The digest of all that was taken.
    pub fn finish(mut self) -> Sha256Digest {
        let bits = self.len.wrapping_mul(8);
        // A one, zeros up to 8 bytes before the end of a block, and the length.
        let zeros = (BLOCK * 2 - 1 - 8 - self.filled()) % BLOCK;
        self.update(&[0x80]);
        self.update(&[0; BLOCK][..zeros]);
        self.update(&bits.to_be_bytes());
        let mut digest = [0; 32];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        Sha256Digest(digest)
    }

    fn filled(&self) -> usize {
        (self.len % BLOCK as u64) as usize
    }
}

impl Default for Sha256 {
    fn default() -> Sha256 {
        Sha256::new()
    }
}

impl Debug for Sha256 {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({} bytes so far)", self.len)
    }
}

impl Display for Sha256Digest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Debug for Sha256Digest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl TensorView<'_> {
    /// SHA-256 of its bytes: the same in whatever file, at whatever place and under whatever name
    /// they lie. Touches all of them.
    ///
    /// Fails with [`Truncated`](super::ErrorKind::Truncated) if the guard had to put zeros in the place
    /// of some.
    pub fn sha256(&self) -> Result<Sha256Digest> {
        let digest = Sha256::of(self.bytes());
        self.check_read(|| std::iter::once(self.file_range()))?;
        Ok(digest)
    }
}

impl Shard {
    /// SHA-256 of its data section, that is of the file without its header: the same whatever
    /// `__metadata__` says. Model cards call it `modelspec.hash_sha256` or `sshs_model_hash`.
    /// Touches all of it. Fails as [`TensorView::sha256`] does.
    pub fn data_sha256(&self) -> Result<Sha256Digest> {
        let start = self.header().data_start();
        let digest = Sha256::of(self.slice(start..start + self.header().data_len()));
        self.check_lost()?;
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From FIPS 180-4's examples and NIST's test vectors (SHA256ShortMsg).
    const KNOWN: [(&[u8], &str); 5] = [
        (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (
            b"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
        ),
        (&[0xbd], "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b"),
    ];

    #[test]
    fn known_answers() {
        for (bytes, expected) in KNOWN {
            assert_eq!(Sha256::of(bytes).to_string(), expected);
        }
        let million = Sha256::of(&vec![b'a'; 1_000_000]).to_string();
        let expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        assert_eq!(million, expected);
    }

    #[test]
    fn pieces_make_no_difference() {
        let bytes: Vec<u8> = (0..1000u32).map(|i| (i * 7 % 251) as u8).collect();
        for len in 0..300 {
            let whole = Sha256::of(&bytes[..len]);
            for piece in [1, 3, 55, 56, 63, 64, 65, 128, 200] {
                let mut hash = Sha256::new();
                bytes[..len].chunks(piece).for_each(|piece| hash.update(piece));
                assert_eq!(hash.finish(), whole, "{len} bytes in pieces of {piece}");
            }
        }
    }
}
