//! In which shard is the tensor of that name, and at which place?
//!
//! Of one file, its header knows. Of several, one table over all of them: a look-up asks no shard
//! after the other.
//!
//! ```text
//!   name ──table──▶ position ──places──▶ (shard, place in the file order of the shard)
//! ```
//!
//! Without an index each name may occur once. With one, the index decides: what a shard holds beyond
//! that is not exposed, and counted.

use super::super::error::reserve::{no_memory, vector, zeros};
use super::super::error::{Error, ErrorKind, Result};
use super::super::header::{Header, NameTable, Named, Unnamed};
use super::faults::Faults;
use super::files::{Found, ShardFile};
use super::weight_map::{Entry, WeightMap};

/// The tensors of a model: all of one header, or a list.
pub enum Places {
    /// Every tensor of the only shard.
    OfOneHeader,
    /// By shard, then in file order; and their names.
    Listed { places: Vec<Place>, names: NameTable },
}

/// Where one tensor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub shard: u32,
    pub number: u32,
}

/// Whoever has the headers of all shards.
pub trait Headers {
    /// The header of a shard.
    fn header(&self, shard: usize) -> &Header;
}

impl Headers for [ShardFile] {
    fn header(&self, shard: usize) -> &Header {
        &self[shard].header
    }
}

impl Places {
    pub fn len(&self, headers: &(impl Headers + ?Sized)) -> usize {
        match self {
            Places::OfOneHeader => headers.header(0).len(),
            Places::Listed { places, .. } => places.len(),
        }
    }

    /// The shard of the tensor at a position, and its place there.
    pub fn at(&self, position: usize) -> (usize, usize) {
        match self {
            Places::OfOneHeader => (0, position),
            Places::Listed { places, .. } => {
                let place = places[position];
                (place.shard as usize, place.number as usize)
            }
        }
    }

    /// The position of the tensor of that name. Allocates nothing.
    pub fn find(&self, name: &str, headers: &(impl Headers + ?Sized)) -> Option<usize> {
        match self {
            Places::OfOneHeader => headers.header(0).find(name),
            Places::Listed { places, names } => names.find(name, &Listed { places, headers }),
        }
    }

    /// All tensors of all files, no name twice.
    pub fn of_all(files: &[ShardFile], faults: &mut Faults) -> Result<Places> {
        if files.len() == 1 {
            return Ok(Places::OfOneHeader);
        }
        let mut places = vector(files.iter().map(|file| file.header.len()).sum())?;
        for (shard, file) in (0..).zip(files) {
            places.extend((0..file.header.len() as u32).map(|number| Place { shard, number }));
        }
        named(places, files, |one, other| {
            if faults.are_many() {
                return faults.count();
            }
            // Places are in the order of the shards.
            let (first, second) = (&files[one.shard as usize], &files[other.shard as usize]);
            let number = other.number as usize;
            let kind = ErrorKind::DuplicateInShards {
                other: first.path.clone().unwrap_or_default(),
                first: first.header.name_offset(one.number as usize),
            };
            let error = Error::at_file(kind, second.header.name_offset(number));
            faults.push(second.error(error.in_tensor(second.header.info(number).name())));
        })
    }

    /// The tensors that the index assigns to the shards that could be opened, and how many these hold
    /// beside them.
    pub fn assigned(
        opened: &Found,
        index: &WeightMap<'_>,
        faults: &mut Faults,
    ) -> Result<(Places, usize)> {
        let files = &opened.files;
        // 1. Which tensors of which shard: a mark for each, shard behind shard.
        let mut starts = vector(files.len())?;
        let mut all = 0;
        for file in files {
            starts.push(all);
            all += file.header.len();
        }
        let mut marks: Vec<bool> = zeros(all)?;
        let mut guesses: Vec<Guesses> = zeros(files.len())?;
        for entry in &index.entries {
            let Some(shard) = opened.place(entry.shard) else { continue };
            let header = &files[shard].header;
            let name = index.tensor(entry);
            let Some(number) = guesses[shard].find(&name, header) else {
                stale(index, entry, opened, faults);
                continue;
            };
            let mark = &mut marks[starts[shard] + number];
            if *mark {
                duplicate(index, entry, faults);
            }
            *mark = true;
        }
        // 2. The marked ones, in shard and file order.
        let assigned = marks.iter().filter(|&&mark| mark).count();
        let mut places = vector(assigned)?;
        for (shard, (file, start)) in (0..).zip(files.iter().zip(starts)) {
            let numbered = (0..).zip(&marks[start..start + file.header.len()]);
            let marked = numbered.filter(|(_, mark)| **mark);
            places.extend(marked.map(|(number, _)| Place { shard, number }));
        }
        // 3. What is marked in two shards stands in the index twice.
        let named = named(places, files, |_, other| {
            if faults.are_many() {
                return faults.count();
            }
            let Place { shard, number } = other;
            let name = files[shard as usize].header.info(number as usize).name();
            let again = index.entries.iter().rfind(|entry| index.tensor(entry) == name);
            if let Some(entry) = again {
                duplicate(index, entry, faults);
            }
        })?;
        Ok((named, all - assigned))
    }
}

/// Which tensor of a shard comes next? Index and shard are mostly in one order, but a shard has its
/// dtypes one behind the other: so several places are kept, each behind one that was found.
#[derive(Clone, Default)]
struct Guesses {
    next: [u32; 4],
    /// The one that was made first is the next to be given up.
    oldest: usize,
}

impl Guesses {
    /// The place of the tensor of that name. A guess is compared before it is believed.
    fn find(&mut self, name: &str, header: &Header) -> Option<usize> {
        let is_it = |number: &u32| header.is_named(*number as usize, name);
        if let Some(guess) = self.next.iter_mut().find(|guess| is_it(guess)) {
            *guess += 1;
            return Some(*guess as usize - 1);
        }
        let number = header.find(name)?;
        self.next[self.oldest] = number as u32 + 1;
        self.oldest = (self.oldest + 1) % self.next.len();
        Some(number)
    }
}

/// Names places, or calls `duplicate` for each pair with one name, the earlier first.
fn named(
    places: Vec<Place>,
    files: &[ShardFile],
    mut duplicate: impl FnMut(Place, Place),
) -> Result<Places> {
    let listed = Listed { places: &places, headers: files };
    match NameTable::build(&listed) {
        Ok(names) => return Ok(Places::Listed { places, names }),
        Err(Unnamed::NoMemory) => return Err(no_memory()),
        Err(Unnamed::Duplicate(..)) => {}
    }
    // The table stops at the first; sorted by name they all stand side by side.
    let mut sorted: Vec<u32> = vector(places.len())?;
    sorted.extend(0..places.len() as u32);
    sorted.sort_by_key(|&position| listed.name(position as usize));
    for pair in sorted.windows(2) {
        let (one, other) = (pair[0] as usize, pair[1] as usize);
        if listed.name(one) == listed.name(other) {
            duplicate(places[one], places[other]);
        }
    }
    Ok(Places::Listed { places, names: NameTable::default() })
}

/// The fault that a shard does not hold what the index assigns to it.
fn stale(index: &WeightMap<'_>, entry: &Entry, opened: &Found, faults: &mut Faults) {
    if faults.are_many() {
        return faults.count();
    }
    let name = index.tensor(entry);
    let holder = opened.files.iter().position(|file| file.header.find(&name).is_some());
    let holder = holder.map(|place| opened.numbers[place] as usize);
    let kind = ErrorKind::StaleEntry {
        expected: index.shard(entry.shard as usize).into_owned(),
        found: holder.map(|shard| index.shard(shard).into_owned()),
    };
    faults.push(Error::at_file(kind, index.offset(entry)).in_tensor(&name));
}

/// The fault that a name stands in the index twice.
fn duplicate(index: &WeightMap<'_>, entry: &Entry, faults: &mut Faults) {
    if faults.are_many() {
        return faults.count();
    }
    let name = index.tensor(entry);
    let first = index.entries.iter().find(|other| index.tensor(other) == name).unwrap_or(entry);
    let kind = ErrorKind::DuplicateEntry { first: index.offset(first) };
    faults.push(Error::at_file(kind, index.offset(entry)).in_tensor(&name));
}

/// The names of places, as the name table sees them.
struct Listed<'a, H: ?Sized> {
    places: &'a [Place],
    headers: &'a H,
}

impl<H: Headers + ?Sized> Named for Listed<'_, H> {
    fn count(&self) -> usize {
        self.places.len()
    }

    fn name(&self, position: usize) -> &[u8] {
        let Place { shard, number } = self.places[position];
        self.headers.header(shard as usize).name_bytes(number as usize)
    }

    fn hash(&self, position: usize) -> u32 {
        let Place { shard, number } = self.places[position];
        self.headers.header(shard as usize).name_hash(number as usize)
    }
}
