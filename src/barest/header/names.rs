//! Which item has this name, and does any name occur twice?
//!
//! An open-addressing table of item numbers: no name is copied into it, a look-up allocates
//! nothing, and building it finds every duplicate. The items stay with their owner, who says what
//! the name and the hash of number `n` are.
//!
//! ```text
//!   hash of name ──▶ slot ──▶ [ tag | item number + 1 ]   0 is an empty slot
//!                      │        └ the hash's upper bits, so that most misses read no item
//!                      └ taken? the next one
//! ```
//!
//! Names come from the file, and a file must not be able to make opening it quadratic: the hash is
//! seeded for each process, and if one probe grows improbably long all the same, the table gives
//! way to a sorted list.

use super::super::error::reserve::{vector, zeros};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

/// The owner of named items.
pub trait Named {
    /// How many items there are.
    fn count(&self) -> usize;
    /// The bytes of the name of item `number`.
    fn name(&self, number: usize) -> &[u8];
    /// The [`hash`] of that name, kept from when it was read.
    fn hash(&self, number: usize) -> u32;
}

/// Why items could not be named.
#[derive(Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// Two have one name; their numbers, the smaller first.
    Duplicate(usize, usize),
    /// There is no memory for the table.
    NoMemory,
}

/// Finds an item's number by its name.
#[derive(Debug, Default)]
pub struct NameTable {
    /// A power of two, at least twice the items; empty if `sorted` is in use or nothing is named.
    slots: Vec<u32>,
    /// Item numbers by name, for names that were chosen to collide.
    sorted: Vec<u32>,
}

/// With half of the slots empty, a probe of this length does not happen by chance.
const LONGEST_PROBE: usize = 128;

impl NameTable {
    /// Names all items. Fails with the first duplicate it meets. O(n), or O(n log n) for names
    /// chosen to collide.
    pub fn build(items: &impl Named) -> Result<NameTable, Unnamed> {
        let count = items.count();
        if count == 0 {
            return Ok(NameTable::default());
        }
        let slots = zeros((count * 2).next_power_of_two()).map_err(|_| Unnamed::NoMemory)?;
        let mut table = NameTable { slots, sorted: Vec::new() };
        let mask = table.slots.len() - 1;
        for number in 0..count {
            let hash = items.hash(number);
            let entry = table.entry(hash, number);
            let first = &mut table.slots[hash as usize & mask];
            if *first == 0 {
                // Most are: without this, naming takes half as long again.
                *first = entry;
                continue;
            }
            match table.probe(hash, items, |other| items.name(other) == items.name(number)) {
                Probe::Vacant(slot) => table.slots[slot] = entry,
                Probe::Found(other) => {
                    return Err(Unnamed::Duplicate(other, number));
                }
                Probe::TooLong => return NameTable::sort(items),
            }
        }
        Ok(table)
    }

    /// The number of the item with this name. Allocates nothing.
    pub fn find(&self, name: &str, items: &impl Named) -> Option<usize> {
        let name = name.as_bytes();
        if self.slots.is_empty() {
            return self.find_sorted(name, items);
        }
        match self.probe(hash(name), items, |number| items.name(number) == name) {
            Probe::Found(number) => Some(number),
            _ => None,
        }
    }

    /// Apart, so that [`NameTable::find`] is short.
    #[cold]
    fn find_sorted(&self, name: &[u8], items: &impl Named) -> Option<usize> {
        let place = self.sorted.binary_search_by(|&number| items.name(number as usize).cmp(name));
        place.ok().map(|place| self.sorted[place] as usize)
    }

    fn sort(items: &impl Named) -> Result<NameTable, Unnamed> {
        let mut sorted = vector(items.count()).map_err(|_| Unnamed::NoMemory)?;
        sorted.extend(0..items.count() as u32);
        sorted.sort_by_key(|&number| items.name(number as usize));
        for pair in sorted.windows(2) {
            let (one, other) = (pair[0] as usize, pair[1] as usize);
            if items.name(one) == items.name(other) {
                return Err(Unnamed::Duplicate(one.min(other), one.max(other)));
            }
        }
        Ok(NameTable { slots: Vec::new(), sorted })
    }

    /// Walks from the hash's slot to an item that `matches` or to an empty slot.
    fn probe(&self, hash: u32, items: &impl Named, matches: impl Fn(usize) -> bool) -> Probe {
        let mask = self.slots.len() - 1;
        let wanted = self.tag(hash);
        let mut slot = hash as usize & mask;
        for _ in 0..LONGEST_PROBE {
            let entry = self.slots[slot];
            if entry == 0 {
                return Probe::Vacant(slot);
            }
            let number = (entry & self.number_mask()) as usize - 1;
            if entry & !self.number_mask() == wanted
                && items.hash(number) == hash
                && matches(number)
            {
                return Probe::Found(number);
            }
            slot = (slot + 1) & mask;
        }
        Probe::TooLong
    }

    /// Bits of an entry that hold an item number plus one: as many as the slots have, which are
    /// more than the items.
    fn number_mask(&self) -> u32 {
        (self.slots.len() - 1) as u32
    }

    /// The rest of the hash: what its slot does not tell.
    fn tag(&self, hash: u32) -> u32 {
        hash & !self.number_mask()
    }

    fn entry(&self, hash: u32, number: usize) -> u32 {
        self.tag(hash) | (number as u32 + 1)
    }

    /// Whether it is the table and not the list.
    #[cfg(test)]
    pub fn is_hashed(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Bytes of memory held.
    #[cfg(test)]
    fn heap_bytes(&self) -> usize {
        (self.slots.capacity() + self.sorted.capacity()) * size_of::<u32>()
    }
}

enum Probe {
    Vacant(usize),
    Found(usize),
    TooLong,
}

/// The hash of a name, the same for the life of this process only.
#[inline]
pub fn hash(name: &[u8]) -> u32 {
    hash_with(seed(), name)
}

/// What makes hashes differ from process to process.
pub fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().build_hasher().finish())
}

/// Multiplies 16 bytes at a time to 128 bits and folds them: fast on names of 20 to 60 bytes, which
/// is what tensors have. Two odd constants without a pattern (of the golden ratio and of pi) keep
/// a zero word from wiping out the rest.
#[inline]
pub fn hash_with(seed: u64, bytes: &[u8]) -> u32 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    const PI: u64 = 0x2438_6a08_85a3_08d3 | 1;
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut state = (bytes.len() as u64).wrapping_mul(PI) ^ seed;
    let mut mix = |low: u64, high: u64| state = fold(low ^ GOLDEN ^ state, high ^ PI ^ seed);
    if let Some(&last) = bytes.last_chunk::<16>() {
        // Sixteen bytes at a time while there are more; then the last sixteen, some of them again.
        let mut rest = bytes;
        while let Some((&head, tail)) = rest.split_first_chunk::<16>().filter(|_| rest.len() > 16) {
            mix(low_half(head), high_half(head));
            rest = tail;
        }
        mix(low_half(last), high_half(last));
    } else if let (Some(&first), Some(&last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        mix(u64::from_le_bytes(first), u64::from_le_bytes(last));
    } else {
        mix(bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0);
    }
    (state >> 32) as u32 ^ state as u32
}

fn low_half(bytes: [u8; 16]) -> u64 {
    u128::from_le_bytes(bytes) as u64
}

fn high_half(bytes: [u8; 16]) -> u64 {
    (u128::from_le_bytes(bytes) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Names {
        names: Vec<String>,
        hash: fn(&[u8]) -> u32,
    }

    impl Named for Names {
        fn count(&self) -> usize {
            self.names.len()
        }
        fn name(&self, number: usize) -> &[u8] {
            self.names[number].as_bytes()
        }
        fn hash(&self, number: usize) -> u32 {
            (self.hash)(self.names[number].as_bytes())
        }
    }

    fn many(count: usize, hash: fn(&[u8]) -> u32) -> Names {
        let names = (0..count).map(|n| format!("model.layers.{}.part.{n}", n / 9)).collect();
        Names { names, hash }
    }

    #[test]
    fn every_name_is_found_and_no_other() {
        for count in [0, 1, 2, 3, 9, 1_000] {
            let items = many(count, hash);
            let table = NameTable::build(&items).unwrap();
            for number in 0..count {
                assert_eq!(table.find(&items.names[number], &items), Some(number));
                assert_eq!(table.find(&format!("{}.", items.names[number]), &items), None);
            }
            assert_eq!(table.find("", &items), None);
            assert!(table.heap_bytes() <= count * 4 * size_of::<u32>());
            assert_eq!(table.is_hashed(), count > 0, "names that nobody chose do not collide");
        }
    }

    #[test]
    fn a_duplicate_is_found_wherever_it_stands() {
        for (first, second) in [(0, 1), (0, 99), (42, 77), (98, 99)] {
            for hash in [hash, |_: &[u8]| 7] {
                let mut items = many(100, hash);
                items.names[second] = items.names[first].clone();
                let found = NameTable::build(&items).unwrap_err();
                assert_eq!(found, Unnamed::Duplicate(first, second));
            }
        }
    }

    /// Names that all collide: quadratic probing would take 50 million comparisons of names here
    /// and hours at a million; sorting takes 130,000.
    #[test]
    fn names_chosen_to_collide_are_sorted_instead() {
        let mut items = many(10_000, |_| 0xdead_beef);
        let table = NameTable::build(&items).unwrap();
        assert!(table.slots.is_empty(), "the table should have given way");
        for number in 0..items.names.len() {
            assert_eq!(table.find(&items.names[number], &items), Some(number));
        }
        assert_eq!(table.find("model.layers", &items), None);
        items.names[9_999] = items.names[5].clone();
        assert_eq!(NameTable::build(&items).unwrap_err(), Unnamed::Duplicate(5, 9_999));
    }

    /// Names with one hash and one length, few enough to stay in the table.
    #[test]
    fn a_hash_alone_is_no_name() {
        let mut items = many(2, |_| hash(b"wanted"));
        items.names = vec!["nobody".to_owned(), "unlike".to_owned()];
        let table = NameTable::build(&items).unwrap();
        assert!(table.is_hashed());
        assert_eq!(table.find("wanted", &items), None);
        items.names[1] = "wanted".to_owned();
        let table = NameTable::build(&items).unwrap();
        assert_eq!(table.find("wanted", &items), Some(1));
    }

    #[test]
    fn every_byte_and_the_length_and_the_seed_change_the_hash() {
        let base = vec![b'a'; 40];
        let of = |seed, bytes: &[u8]| hash_with(seed, bytes);
        for len in 0..base.len() {
            assert_ne!(of(1, &base[..len]), of(1, &base[..len + 1]), "length {len}");
            let mut other = base.clone();
            other[len] ^= 1;
            assert_ne!(of(1, &base), of(1, &other), "byte {len}");
        }
        assert_ne!(of(1, &base), of(2, &base));
        assert_ne!(of(1, b""), of(1, b"\0"));
    }
}
