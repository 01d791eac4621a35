//! What does a file say it holds, and is it true?
//!
//! ```text
//!   first 8 bytes ──prefix──▶ N ──▶ private copy of N bytes ──entry, metadata──▶ records
//!                                                                                 │ order; tiling: the proof
//!                                   names: found, and found twice  ◀──────────────┘
//! ```
//!
//! A [`Header`] exists only if everything in it was checked; what was checked is the private copy,
//! so a file that changes later cannot make it wrong. It needs no mapping and no file: fuzzers,
//! streams and systems without `mmap` parse the bytes they have.
//!
//! Kept for each tensor: one record of 40 bytes, its dimensions in a common arena unless another has
//! the same, two to four slots of the name table. No allocation belongs to one tensor alone.

mod entry;
mod metadata;
mod names;
mod order;
mod piece;
mod prefix;
mod reader;
mod remarks;
mod shapes;
mod stream;
mod strings;
mod template;
mod tiling;

use super::dtype::Dtype;
use super::error::reserve;
use super::error::{Error, ErrorKind, Result};
pub use metadata::Metadata;
use metadata::Pair;
pub(super) use names::{NameTable, Named, Unnamed};
pub use prefix::{DEFAULT_HEADER_CAP, PREFIX, header_len, or_foreign};
use reader::{Departures, Parts};
pub use remarks::Remark;
use shapes::Dims;
use std::fmt::{self, Debug, Formatter};
use std::ops::Range;
use strings::{Name, Strings};

/// The header of one file, proved. See the format's text:
/// <https://github.com/huggingface/safetensors#format>.
pub struct Header {
    strings: Strings,
    /// In the order of their offsets.
    records: Vec<Record>,
    /// The dimensions of all tensors; a record says which are its own.
    dims: Vec<u64>,
    names: NameTable,
    metadata: Option<Vec<Pair>>,
    data_len: u64,
    /// Where in its file the model begins.
    model_start: u64,
    departures: Departures,
}

/// What is kept of one tensor: 40 bytes.
#[derive(Clone, Copy)]
struct Record {
    begin: u64,
    end: u64,
    name_start: u32,
    name_len: u32,
    dims: Dims,
    hash: u32,
    dtype: Dtype,
    name_is_resolved: bool,
}

const _: () = assert!(size_of::<Record>() == 40);

impl Record {
    fn name(&self) -> Name {
        Name { start: self.name_start, len: self.name_len, resolved: self.name_is_resolved }
    }
}

impl Header {
    /// Reads and proves the header of a file of `file_len` bytes from its first bytes: at least 8
    /// and the header's length of them. Copies the header once.
    ///
    /// Every rule is in `docs/FORMAT.md`; every failure says which was broken, where, by which
    /// tensor. Headers over [`DEFAULT_HEADER_CAP`] are refused; [`Header::parse_with_cap`] takes
    /// longer ones.
    pub fn parse(prefix: &[u8], file_len: u64) -> Result<Header> {
        Header::parse_with_cap(prefix, file_len, DEFAULT_HEADER_CAP)
    }

    /// As [`Header::parse`], for headers of up to `cap` bytes.
    pub fn parse_with_cap(prefix: &[u8], file_len: u64, cap: u32) -> Result<Header> {
        let len = header_len(prefix, file_len, cap).map_err(|error| or_foreign(error, prefix))?;
        match prefix[PREFIX..].get(..len) {
            Some(bytes) => match strings::copy_of_text(bytes)? {
                Some(text) => Header::from_text(text, Some(file_len)),
                // It is none: here is said where and why.
                None => Header::from_copy(reserve::copy(bytes)?, Some(file_len)),
            },
            None => {
                let expected = PREFIX as u64 + len as u64;
                let found = prefix.len() as u64;
                Err(Error::new(ErrorKind::PrefixTooShort { expected, found }))
            }
        }
    }

    /// Reads and proves a private copy of a header, where 8 bytes and it fit into `file_len`; if that
    /// is not known, all but that the last tensor ends where the file does.
    pub(super) fn from_copy(copy: Vec<u8>, file_len: Option<u64>) -> Result<Header> {
        let text = String::from_utf8(copy).map_err(|error| {
            let (position, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
            let first = first_byte(bytes);
            let refused = match bytes[first] {
                b'{' => Error::at_header(
                    ErrorKind::NotUtf8 { what: "header", found: bytes[position] },
                    position,
                ),
                // No header at all: where its UTF-8 ends is of no interest.
                found => {
                    let found = Some(found);
                    Error::at_header(ErrorKind::Syntax { expected: BEGIN, found }, first)
                }
            };
            describe(refused, bytes)
        })?;
        Header::from_text(text, file_len)
    }

    fn from_text(text: String, file_len: Option<u64>) -> Result<Header> {
        // 1. One walk over the text.
        let parts = match reader::read(&text) {
            Ok(parts) => parts,
            Err(error) => return Err(describe(error, text.as_bytes())),
        };
        let Parts { mut records, shapes, metadata, mut resolved, mut departures, .. } = parts;
        let mut dims = shapes.dims;
        resolved.shrink();
        let strings = Strings { text, resolved };
        // 2. No name twice. Before the proof: tensors with one name often overlap as well, and
        //    then the name is the better answer.
        if departures.out_of_order {
            departures.out_of_order = !order::sort(&mut records)?;
        }
        let described = |error| describe(error, strings.text.as_bytes());
        if let Some(pairs) = &metadata {
            Metadata { strings: &strings, pairs }.check().map_err(described)?;
        }
        let named = Records { strings: &strings, records: &records };
        let names = NameTable::build(&named).map_err(|unnamed| match unnamed {
            Unnamed::Duplicate(one, other) => {
                described(duplicate_tensor(&strings, &records, (one, other)))
            }
            Unnamed::NoMemory => reserve::no_memory(),
        })?;
        // 3. The proof.
        let claim = tiling::Claim { strings: &strings, dims: &dims, file_len };
        let data_len = tiling::prove(&records, &claim).map_err(described)?;
        // 4. If much was reserved for entries that did not come, it goes back.
        give_back(&mut records);
        give_back(&mut dims);
        let model_start = 0;
        Ok(Header { strings, records, dims, names, metadata, data_len, model_start, departures })
    }

    /// The same header of a model that begins so many bytes into its file, where it also ends
    /// before 2^64.
    pub(super) fn moved_to(mut self, model_start: u64) -> Header {
        self.model_start = model_start;
        self
    }

    /// How many tensors there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none: a valid file may hold metadata alone, or nothing.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The tensors in file order: by `data_offsets`; empty ones at one place in the header's order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = TensorInfo<'_>> + DoubleEndedIterator {
        (0..self.records.len()).map(|number| self.info(number))
    }

    /// The tensor of that name, compared byte for byte. Allocates nothing.
    pub fn tensor(&self, name: &str) -> Option<TensorInfo<'_>> {
        self.find(name).map(|number| self.info(number))
    }

    /// The place of a tensor in file order.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.find(name, &Records { strings: &self.strings, records: &self.records })
    }

    /// Whether there is a tensor at that place in file order and this is its name.
    pub(super) fn is_named(&self, number: usize, name: &str) -> bool {
        let is_it = |record: &Record| self.strings.bytes(record.name()) == name.as_bytes();
        self.records.get(number).is_some_and(is_it)
    }

    /// The bytes of a tensor's name.
    pub(super) fn name_bytes(&self, number: usize) -> &[u8] {
        self.strings.bytes(self.records[number].name())
    }

    /// The [`hash`] of a tensor's name.
    pub(super) fn name_hash(&self, number: usize) -> u32 {
        self.records[number].hash
    }

    /// Where a tensor's name stands, in bytes from the start of the file.
    pub(super) fn name_offset(&self, number: usize) -> u64 {
        let position = self.strings.position(self.records[number].name());
        self.model_start + Error::offset_of(position)
    }

    pub(super) fn info(&self, number: usize) -> TensorInfo<'_> {
        TensorInfo { header: self, record: &self.records[number], number }
    }

    /// `__metadata__`; `None` if it is absent or `null`.
    pub fn metadata(&self) -> Option<Metadata<'_>> {
        let pairs = self.metadata.as_deref()?;
        Some(Metadata { strings: &self.strings, pairs })
    }

    /// Bytes of the header itself: N.
    pub fn header_len(&self) -> u64 {
        self.strings.text.len() as u64
    }

    /// Where in its file the model begins, in bytes: 0 unless it was opened as a part of a larger one.
    pub fn model_start(&self) -> u64 {
        self.model_start
    }

    /// Bytes of the model: 8, the header, the data.
    pub fn model_len(&self) -> u64 {
        PREFIX as u64 + self.header_len() + self.data_len
    }

    /// Where the data section starts, in bytes from the start of the file: 8 + N behind the model's
    /// own start, never rounded.
    pub fn data_start(&self) -> u64 {
        self.model_start + PREFIX as u64 + self.header_len()
    }

    /// Bytes of the data section: the last tensor's end.
    pub fn data_len(&self) -> u64 {
        self.data_len
    }

    /// The header's text as it stands in the file, padding and all.
    pub fn text(&self) -> &str {
        &self.strings.text
    }

    /// Where this valid file departs from the written format, or from what readers are used to.
    pub fn remarks(&self) -> Vec<Remark> {
        remarks::find(self)
    }
}

impl Debug for Header {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Header({} tensors, {} bytes of data)", self.len(), self.data_len)
    }
}

/// Where less than two thirds of the reserved memory is in use, gives back the rest, if it is worth a
/// call.
fn give_back<T>(items: &mut Vec<T>) {
    const WORTH_IT: usize = 1024;
    let unused = items.capacity() - items.len();
    if unused > items.capacity() / 3 && unused * size_of::<T>() > WORTH_IT {
        items.shrink_to_fit();
    }
}

/// Adds the excerpt; and where the very first byte is wrong, says what the file is instead.
fn describe(error: Error, header: &[u8]) -> Error {
    let first = first_byte(header);
    let begins_as_json = header.get(first) == Some(&b'{');
    if error.header_position() == Some(first) && !begins_as_json {
        // The mark, if there is one, begins with the 8 bytes that were taken for a length.
        let mut whole = (header.len() as u64).to_le_bytes().to_vec();
        whole.extend(header.iter().take(super::looks_like::ENOUGH));
        return or_foreign(error.with_excerpt_of(header), &whole);
    }
    error.with_excerpt_of(header)
}

/// What a header begins with, in an error.
const BEGIN: &str = "`{` to begin the header";

/// Where the first byte stands that is no white space; 0 if there is none.
fn first_byte(header: &[u8]) -> usize {
    header.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0)
}

fn duplicate_tensor(strings: &Strings, records: &[Record], items: (usize, usize)) -> Error {
    let name = strings.get(records[items.0].name());
    let one = strings.position(records[items.0].name());
    let other = strings.position(records[items.1].name());
    let first = Error::offset_of(one.min(other));
    Error::at_header(ErrorKind::DuplicateTensor { first }, one.max(other)).in_tensor(name)
}

/// The tensors' names, as the name table sees them.
struct Records<'a> {
    strings: &'a Strings,
    records: &'a [Record],
}

impl Named for Records<'_> {
    fn count(&self) -> usize {
        self.records.len()
    }

    fn name(&self, number: usize) -> &[u8] {
        self.strings.bytes(self.records[number].name())
    }

    fn hash(&self, number: usize) -> u32 {
        self.records[number].hash
    }
}

/// What a header says of one tensor.
#[derive(Clone, Copy)]
pub struct TensorInfo<'a> {
    header: &'a Header,
    record: &'a Record,
    number: usize,
}

impl<'a> TensorInfo<'a> {
    /// The name, escapes resolved. It may hold any character: show it through
    /// [`Shown`](super::escape::Shown), and never use it as a path.
    pub fn name(&self) -> &'a str {
        self.header.strings.get(self.record.name())
    }

    /// The type of its elements.
    pub fn dtype(&self) -> Dtype {
        self.record.dtype
    }

    /// Its dimensions, the slowest first; none for a scalar, which has one element. Beside a 0 a
    /// dimension may be as large as a `u64`: multiply with care.
    pub fn shape(&self) -> &'a [u64] {
        &self.header.dims[self.record.dims.range()]
    }

    /// Elements: the product of the dimensions.
    pub fn elements(&self) -> u64 {
        // The proof counted these bits in 64 bits.
        self.byte_len() * 8 / self.record.dtype.bits()
    }

    /// Bytes of data.
    pub fn byte_len(&self) -> u64 {
        self.record.end - self.record.begin
    }

    /// Begin and end in bytes from the start of the data section, as the header has them.
    pub fn data_offsets(&self) -> (u64, u64) {
        (self.record.begin, self.record.end)
    }

    /// The same in bytes from the start of the file.
    pub fn file_range(&self) -> Range<u64> {
        let start = self.header.data_start();
        start + self.record.begin..start + self.record.end
    }

    /// Where its data stands, in bytes from the start of the model.
    pub(super) fn model_range(&self) -> Range<u64> {
        let start = PREFIX as u64 + self.header.header_len();
        start + self.record.begin..start + self.record.end
    }

    /// Its place in file order.
    pub fn number(&self) -> usize {
        self.number
    }
}

impl Debug for TensorInfo<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let shape = super::escape::Shape(self.shape());
        let name = super::escape::Brief(self.name());
        write!(f, "`{name}` {} {shape} at {:?}", self.dtype(), self.file_range())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name would be found all the same, slowly: the list of names that collide hides it.
    #[test]
    fn names_are_hashed_once_and_found_by_that() {
        let entry = |number: u32| {
            format!(r#""layer.{number}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#)
        };
        let entries: Vec<String> = (0..1000).map(entry).collect();
        let text = format!("{{{}}}", entries.join(","));
        let header = Header::from_copy(text.into_bytes(), None).unwrap();
        assert!(header.names.is_hashed());
        for tensor in header.tensors() {
            assert_eq!(header.name_hash(tensor.number()), names::hash(tensor.name().as_bytes()));
        }
    }

    fn parse(members: &[&str]) -> Result<Header> {
        Header::from_copy(format!("{{{}}}", members.join(",")).into_bytes(), None)
    }

    /// Nothing else is wrong with these files: who misses that the names are one accepts them.
    #[test]
    fn a_name_is_the_same_however_it_is_written() {
        let spellings = ["aé", r"\u0061é", r"a\u00e9", r"\u0061\u00e9"];
        for (one, other) in spellings.iter().flat_map(|one| spellings.map(|other| (*one, other))) {
            for offsets in [["0,4", "4,8"], ["4,8", "0,4"]] {
                let entry = |name: &str, offsets: &str| {
                    format!(r#""{name}":{{"dtype":"U8","shape":[4],"data_offsets":[{offsets}]}}"#)
                };
                let (first, second) = (entry(one, offsets[0]), entry(other, offsets[1]));
                let error = parse(&[&first, &second]).unwrap_err();
                // The second in the header is refused, wherever its data lie.
                assert_eq!(error.header_position(), Some(first.len() + 3), "{error}");
                let expected = ErrorKind::DuplicateTensor { first: Error::offset_of(2) };
                assert_eq!(format!("{:?}", error.kind()), format!("{expected:?}"));
            }
            let pairs = format!(r#""__metadata__":{{"{one}":"","{other}":""}}"#);
            let error = parse(&[&pairs]).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::DuplicateMetadataKey { .. }), "{error}");
        }
    }

    #[test]
    fn what_is_out_of_order_is_remarked_and_nothing_else() {
        let one = r#""one":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}"#;
        let other = r#""other":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}"#;
        for (members, expected) in [([one, other], false), ([other, one], true)] {
            let header = parse(&members).unwrap();
            assert_eq!(header.remarks().contains(&Remark::OutOfOrder), expected);
            assert_eq!(header.info(0).name(), "one");
        }
    }
}
