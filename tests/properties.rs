//! What holds for every header, every damaged file, every range and every shape, not only for the
//! examples of the other tests.
//!
//! ```text
//!   Plan ──Pen──▶ file ───────────▶ reads back as the plan says
//!                   └──Harm──▶ ?    refused in one line, or it tiles all the same
//! ```
//!
//! A plan says what a file shall hold; the pen spells it in one of the many ways that JSON has. All
//! its choices come from a few bytes of the plan: without them it writes the plainest header, and
//! that is where a failing case shrinks to.

use barest::{Advice, Bf16, Dtype, Element, Elements, ErrorKind, Header, Mapping, Model};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{FileFailurePersistence, TestCaseResult, TestError, TestRunner};
use std::cell::Cell;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

#[path = "../src/barest/skip.rs"]
mod skip;

/// A fixed number of cases. One that fails is kept beside this file, to be committed with its cure.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        source_file: Some(file!()),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

// What a file shall hold.

#[derive(Clone, Debug)]
struct Plan {
    /// In the order of their data.
    tensors: Vec<Planned>,
    metadata: PlannedMetadata,
    choices: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Planned {
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
enum PlannedMetadata {
    Absent,
    Null,
    Pairs(Vec<(String, String)>),
}

const METADATA_KEY: &str = "__metadata__";

fn plan() -> impl Strategy<Value = Plan> {
    let pairs = vec((text(), text()), 0..6).prop_map(|mut pairs| {
        let mut seen = HashSet::new();
        pairs.retain(|(key, _)| seen.insert(key.clone()));
        PlannedMetadata::Pairs(pairs)
    });
    let metadata = prop_oneof![
        1 => Just(PlannedMetadata::Absent),
        1 => Just(PlannedMetadata::Null),
        4 => pairs,
    ];
    let tensors = vec((text(), select(Dtype::ALL), shape(), any::<u8>()), 0..9);
    (tensors, metadata, vec(any::<u8>(), 0..97)).prop_map(|(tensors, metadata, choices)| {
        let mut seen = HashSet::from([METADATA_KEY.to_owned()]);
        let tensors = tensors
            .into_iter()
            .filter(|(name, ..)| seen.insert(name.clone()))
            .map(|(name, dtype, shape, salt)| Planned::new(name, dtype, shape, salt))
            .collect();
        Plan { tensors, metadata, choices }
    })
}

impl Planned {
    fn new(name: String, dtype: Dtype, mut shape: Vec<u64>, salt: u8) -> Planned {
        // Four elements of 4 or 6 bits fill whole bytes, whatever they are multiplied with.
        if dtype.bits() < 8 {
            shape.insert(0, 4);
        }
        let len = elements(&shape) * dtype.bits() / 8;
        Planned { name, dtype, shape, bytes: (0..len).map(|at| pattern(salt, at)).collect() }
    }

    fn byte_len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// The product of the dimensions, however large they are beside a 0.
fn elements(shape: &[u64]) -> u64 {
    match shape.contains(&0) {
        true => 0,
        false => shape.iter().product(),
    }
}

/// Bytes that differ from neighbour to neighbour, from page to page and from tensor to tensor.
fn pattern(salt: u8, at: u64) -> u8 {
    (at.wrapping_mul(167) ^ (at >> 8)) as u8 ^ salt
}

fn shape() -> impl Strategy<Value = Vec<u64>> {
    let dimension = prop_oneof![9 => 1..5u64, 1 => Just(0)];
    (vec(dimension, 0..=5), any::<[u64; 5]>()).prop_map(|(mut shape, wild)| {
        // Behind a 0, where the product stays 0, any number may stand; as the only one before it,
        // any number that elements can be counted by.
        if let Some(zero) = shape.iter().position(|&dimension| dimension == 0) {
            if zero == 1 {
                shape[0] = wild[4] >> 8;
            }
            for (dimension, wild) in shape[zero + 1..].iter_mut().zip(wild) {
                *dimension = wild;
            }
        }
        shape
    })
}

fn text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        6 => proptest::char::range('a', 'e'),
        3 => select(vec!['"', '\\', '/', '\'', '.', '{', '}', ',', ':', ' ', '\u{7f}', '\u{feff}']),
        1 => proptest::char::range('\0', '\u{1f}'),
        1 => any::<char>(),
        1 => proptest::char::range('\u{10000}', '\u{10ffff}'),
    ];
    let known = ["dtype", "shape", "data_offsets", METADATA_KEY, ""].map(str::to_owned);
    prop_oneof![
        9 => vec(character, 0..12).prop_map(String::from_iter),
        1 => select(known.to_vec()),
    ]
}

// How it is spelled.

struct Pen<'a> {
    choices: &'a [u8],
    used: usize,
}

struct Placed<'a> {
    tensor: &'a Planned,
    offsets: (u64, u64),
}

struct Written<'a> {
    file: Vec<u8>,
    data_start: u64,
    /// In file order.
    tensors: Vec<Placed<'a>>,
}

impl Plan {
    fn write(&self) -> Written<'_> {
        self.write_moved(&[])
    }

    /// The file with offsets that are wrong in the way that `moves` say, and as long as they ask for.
    fn write_moved(&self, moves: &[Move]) -> Written<'_> {
        let mut pen = Pen { choices: &self.choices, used: 0 };
        let mut end = 0;
        let place = |tensor| {
            let begin = end;
            end += Planned::byte_len(tensor);
            Placed { tensor, offsets: (begin, end) }
        };
        let mut tensors: Vec<Placed> = self.tensors.iter().map(place).collect();
        moves.iter().for_each(|each| each.apply(&mut tensors));
        let asked_for = tensors.iter().map(|placed| placed.offsets.1).max();
        pen.shuffle(&mut tensors);
        let mut members: Vec<String> = tensors.iter().map(|placed| pen.entry(placed)).collect();
        if let Some(metadata) = pen.metadata(&self.metadata) {
            members.insert(pen.below(members.len() + 1), metadata);
        }
        let header = pen.blanks() + &pen.list("{", &members, "}") + &pen.blanks();
        // The sort is stable: empty tensors at one place stay in the header's order.
        tensors.sort_by_key(|placed| placed.offsets);

        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.bytes());
        let data_start = file.len() as u64;
        for tensor in &self.tensors {
            file.extend(&tensor.bytes);
        }
        if !moves.is_empty() {
            file.resize((data_start + asked_for.unwrap_or(0)) as usize, 0);
        }
        Written { file, data_start, tensors }
    }
}

impl Pen<'_> {
    /// A number below `count`; 0 if there is nothing to choose by.
    fn below(&mut self, count: usize) -> usize {
        let choice = match self.choices.len() {
            0 => 0,
            len => usize::from(self.choices[self.used % len]),
        };
        self.used += 1;
        choice % count
    }

    fn one_of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.below(texts.len())]
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in 1..items.len() {
            items.swap(at, at - self.below(at + 1));
        }
    }

    fn blanks(&mut self) -> String {
        let blanks = ["", "", "", "", " ", "\n", "\t\r", "   ", "\r\n  "];
        self.one_of(&blanks).to_owned()
    }

    fn list(&mut self, open: &str, items: &[String], close: &str) -> String {
        let mut list = open.to_owned() + &self.blanks();
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                list += ",";
                list += &self.blanks();
            }
            list += item;
            list += &self.blanks();
        }
        list + close
    }

    fn member(&mut self, key: &str, value: &str) -> String {
        [&self.string(key), &self.blanks(), ":", &self.blanks(), value].concat()
    }

    fn string(&mut self, text: &str) -> String {
        let mut string = String::from('"');
        for character in text.chars() {
            let short = match character {
                '"' | '\\' | '/' => Some(character),
                '\u{8}' => Some('b'),
                '\u{c}' => Some('f'),
                '\n' => Some('n'),
                '\r' => Some('r'),
                '\t' => Some('t'),
                _ => None,
            };
            let may_stand_raw = character >= ' ' && !matches!(character, '"' | '\\');
            match (self.below(4), short) {
                (0 | 1, _) if may_stand_raw => string.push(character),
                (0..=2, Some(short)) => string.extend(['\\', short]),
                _ => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        string += &match self.below(2) {
                            0 => format!("\\u{unit:04x}"),
                            _ => format!("\\u{unit:04X}"),
                        };
                    }
                }
            }
        }
        string + "\""
    }

    fn entry(&mut self, placed: &Placed) -> String {
        let numbers = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>();
        let dtype = self.string(placed.tensor.dtype.name());
        let shape = self.list("[", &numbers(&placed.tensor.shape), "]");
        let (begin, end) = placed.offsets;
        let offsets = self.list("[", &numbers(&[begin, end]), "]");
        let mut fields = vec![
            self.member("dtype", &dtype),
            self.member("shape", &shape),
            self.member("data_offsets", &offsets),
        ];
        for _ in 3..self.below(6) {
            let keys = ["strides", "", "Shape", "dtypes", "data_offsets ", METADATA_KEY];
            let key = self.one_of(&keys);
            let value = match self.below(8) {
                // With the header and the entry the deepest that is read.
                7 => "[".repeat(125) + &"]".repeat(125),
                _ => self.value(3),
            };
            fields.push(self.member(key, &value));
        }
        self.shuffle(&mut fields);
        let entry = self.list("{", &fields, "}");
        self.member(&placed.tensor.name, &entry)
    }

    /// Any JSON, as an ignored field may hold it.
    fn value(&mut self, levels: usize) -> String {
        const SCALARS: [&str; 12] = [
            "null",
            "true",
            "false",
            "0",
            "-0",
            "7",
            "18446744073709551616",
            "-1.5e-3",
            "1E+9",
            "0.0",
            "1.7e308",
            "1e-999",
        ];
        match self.below(4) {
            1 => self.string("a \"b\" \u{1f980}"),
            2 if levels > 0 => {
                let items: Vec<String> =
                    (0..self.below(4)).map(|_| self.value(levels - 1)).collect();
                self.list("[", &items, "]")
            }
            3 if levels > 0 => {
                let mut members = Vec::new();
                for _ in 0..self.below(4) {
                    let value = self.value(levels - 1);
                    members.push(self.member("dtype", &value));
                }
                self.list("{", &members, "}")
            }
            _ => self.one_of(&SCALARS).to_owned(),
        }
    }

    fn metadata(&mut self, metadata: &PlannedMetadata) -> Option<String> {
        let value = match metadata {
            PlannedMetadata::Absent => return None,
            PlannedMetadata::Null => "null".to_owned(),
            PlannedMetadata::Pairs(pairs) => {
                let mut members = Vec::new();
                for (key, value) in pairs {
                    let value = self.string(value);
                    members.push(self.member(key, &value));
                }
                self.list("{", &members, "}")
            }
        };
        Some(self.member(METADATA_KEY, &value))
    }
}

// What holds for every plan.

proptest! {
    #![proptest_config(config(384))]

    #[test]
    fn whatever_is_written_reads_back(plan in plan()) {
        let written = plan.write();
        let file_len = written.file.len() as u64;
        let header = Header::parse(&written.file, file_len);
        prop_assert!(header.is_ok(), "{header:?}: {}", shown(&written.file));
        let header = header.unwrap();
        let model = Model::from_bytes(&written.file).unwrap();

        // 1. The tensors in file order, and each by its name.
        prop_assert_eq!(header.len(), written.tensors.len());
        prop_assert_eq!(model.tensors().count(), written.tensors.len());
        prop_assert_eq!(header.data_start(), written.data_start);
        prop_assert_eq!(header.data_start() + header.data_len(), file_len);
        for (number, ((placed, info), view)) in
            written.tensors.iter().zip(header.tensors()).zip(model.tensors()).enumerate()
        {
            let Planned { name, dtype, shape, bytes } = placed.tensor;
            let range = written.data_start + placed.offsets.0..written.data_start + placed.offsets.1;
            prop_assert_eq!(info.name(), name);
            prop_assert_eq!(info.dtype(), *dtype);
            prop_assert_eq!(info.shape(), shape);
            prop_assert_eq!(info.data_offsets(), placed.offsets);
            prop_assert_eq!(info.file_range(), range);
            prop_assert_eq!(info.byte_len(), placed.tensor.byte_len());
            prop_assert_eq!(info.elements(), elements(shape));
            prop_assert_eq!(info.number(), number);
            prop_assert_eq!(header.tensor(name).map(|found| found.number()), Some(number));

            let by_name = model.get(name).unwrap();
            for view in [view, by_name] {
                prop_assert_eq!(view.name(), name);
                prop_assert_eq!((view.dtype(), view.shape()), (*dtype, &shape[..]));
                prop_assert_eq!(view.len() as u64, elements(shape));
                prop_assert_eq!(view.bytes(), bytes);
            }
        }

        // 2. The metadata in the header's order; absent and empty differ.
        let metadata = header.metadata().map(|metadata| {
            metadata.iter().map(|(key, value)| (key.to_owned(), value.into_owned())).collect()
        });
        let planned: Option<Vec<(String, String)>> = match &plan.metadata {
            PlannedMetadata::Absent | PlannedMetadata::Null => None,
            PlannedMetadata::Pairs(pairs) => Some(pairs.clone()),
        };
        prop_assert_eq!(metadata, planned);
    }

    /// Whichever way each of them is spelled, and wherever they stand.
    #[test]
    fn a_name_that_stands_twice_is_refused_at_its_second_place(
        plan in plan(), which in any::<Index>(), choices in vec(any::<u8>(), 0..9),
    ) {
        prop_assume!(!plan.tensors.is_empty());
        let mut plan = plan;
        let name = which.get(&plan.tensors).name.clone();
        plan.choices.extend(choices);
        plan.tensors.push(Planned::new(name.clone(), Dtype::U8, vec![0], 0));
        let written = plan.write();
        let error = Header::parse(&written.file, written.file.len() as u64).unwrap_err();
        let ErrorKind::DuplicateTensor { first } = *error.kind() else {
            return Err(TestCaseError::fail(error.to_string()));
        };
        prop_assert_eq!(error.tensor(), Some(&*name));
        let second = error.offset().unwrap();
        prop_assert!(first < second);
        for place in [first, second] {
            prop_assert_eq!(written.file[place as usize - 1], b'"', "{} {}", place, shown(&written.file));
        }
    }
}

fn shown(file: &[u8]) -> String {
    file[..file.len().min(4000)].escape_ascii().to_string()
}

// What holds for every damaged file.

/// Puts a tensor, or it and all behind it, elsewhere: each keeps its length, and so the proof that
/// they touch is the only one to find the hole or the overlap.
#[derive(Clone, Debug)]
struct Move {
    which: Index,
    with_all_behind: bool,
    by: i64,
}

fn movement() -> impl Strategy<Value = Move> {
    (any::<Index>(), any::<bool>(), -9..10i64).prop_map(|(which, with_all_behind, by)| Move {
        which,
        with_all_behind,
        by,
    })
}

impl Move {
    /// Moves tensors that stand in the order of their data.
    fn apply(&self, tensors: &mut [Placed]) {
        if tensors.is_empty() {
            return;
        }
        let first = self.which.index(tensors.len());
        let last = match self.with_all_behind {
            true => tensors.len() - 1,
            false => first,
        };
        for placed in &mut tensors[first..=last] {
            let (begin, end) = placed.offsets;
            let moved = begin.saturating_add_signed(self.by);
            placed.offsets = (moved, moved + (end - begin));
        }
    }
}

#[derive(Clone, Debug)]
enum Harm {
    Flip(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Truncate(Index),
    Extend(u8),
    /// White space in the header, which is then as long as it says.
    Blank(Index),
    /// One of the header's numbers becomes another; the length is kept right.
    Number(Index, Index),
    /// Two of the header's numbers change places.
    Swap(Index, Index),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        1 => any::<(Index, u8)>().prop_map(|(at, bits)| Harm::Flip(at, bits)),
        1 => any::<(Index, u8)>().prop_map(|(at, byte)| Harm::Insert(at, byte)),
        1 => any::<Index>().prop_map(Harm::Remove),
        1 => any::<Index>().prop_map(Harm::Truncate),
        1 => any::<u8>().prop_map(Harm::Extend),
        4 => any::<Index>().prop_map(Harm::Blank),
        2 => any::<(Index, Index)>().prop_map(|(which, edit)| Harm::Number(which, edit)),
        2 => any::<(Index, Index)>().prop_map(|(one, other)| Harm::Swap(one, other)),
    ]
}

impl Harm {
    fn apply(&self, file: &mut Vec<u8>) {
        let place = |at: &Index, file: &[u8]| at.index(file.len() + 1);
        match self {
            Harm::Flip(at, bits) if !file.is_empty() => {
                let at = at.index(file.len());
                file[at] ^= bits;
            }
            Harm::Insert(at, byte) => file.insert(place(at, file), *byte),
            Harm::Remove(at) if !file.is_empty() => {
                file.remove(at.index(file.len()));
            }
            Harm::Truncate(at) => file.truncate(place(at, file)),
            Harm::Extend(by) => file.extend((0..*by).map(|at| pattern(1, u64::from(at)))),
            Harm::Blank(at) => edit_header(file, |header| header.insert(place(at, header), b' ')),
            Harm::Number(which, edit) => edit_header(file, |header| {
                let numbers = numbers_of(header);
                if !numbers.is_empty() {
                    let (start, end) = *which.get(&numbers);
                    let digits = String::from_utf8_lossy(&header[start..end]).into_owned();
                    header.splice(start..end, edited(&digits, edit).into_bytes());
                }
            }),
            Harm::Swap(one, other) => edit_header(file, |header| {
                let numbers = numbers_of(header);
                if !numbers.is_empty() {
                    let mut pair = [*one.get(&numbers), *other.get(&numbers)];
                    pair.sort();
                    let [first, second] = pair.map(|(start, end)| header[start..end].to_vec());
                    // The later first, so that the other keeps its place.
                    header.splice(pair[1].0..pair[1].1, first);
                    header.splice(pair[0].0..pair[0].1, second);
                }
            }),
            _ => {}
        }
    }
}

/// Changes the header, if the file has a whole one, and its length with it.
fn edit_header(file: &mut Vec<u8>, edit: impl FnOnce(&mut Vec<u8>)) {
    if let Some(end) = header_end(file) {
        let mut header = file[8..end].to_vec();
        edit(&mut header);
        let len = header.len() as u64;
        file.splice(8..end, header);
        file[..8].copy_from_slice(&len.to_le_bytes());
    }
}

fn header_end(file: &[u8]) -> Option<usize> {
    let len = u64::from_le_bytes(*file.first_chunk()?);
    let end = usize::try_from(len.checked_add(8)?).ok()?;
    (end <= file.len()).then_some(end)
}

/// Where the runs of digits begin and end.
fn numbers_of(header: &[u8]) -> Vec<(usize, usize)> {
    let is_digit = |at: usize| header.get(at).is_some_and(u8::is_ascii_digit);
    let begins = |&at: &usize| is_digit(at) && (at == 0 || !is_digit(at - 1));
    let run = |start: usize| (start, (start..).find(|&at| !is_digit(at)).unwrap_or(start));
    (0..header.len()).filter(begins).map(run).collect()
}

fn edited(digits: &str, edit: &Index) -> String {
    let number: u64 = digits.parse().unwrap_or(7);
    let edits = [
        number.wrapping_add(1).to_string(),
        number.wrapping_sub(1).to_string(),
        number.wrapping_mul(2).to_string(),
        (number / 2).to_string(),
        "0".to_owned(),
        "1".to_owned(),
        (1u64 << 32).to_string(),
        u64::MAX.to_string(),
        "18446744073709551616".to_owned(),
        format!("{number}.0"),
        format!("0{number}"),
        format!("-{number}"),
        String::new(),
    ];
    edit.get(&edits).clone()
}

#[test]
fn a_damaged_file_is_refused_in_one_line_or_tiles_all_the_same() {
    const CASES: u32 = 3000;
    let (accepted, refused) = (Cell::new(0), Cell::new(0));
    let cases = (plan(), vec(movement(), 0..2), vec(harm(), 0..3));
    let outcome = TestRunner::new(config(CASES)).run(&cases, |(plan, moves, harms)| {
        let mut file = plan.write_moved(&moves).file;
        harms.iter().for_each(|harm| harm.apply(&mut file));
        match Header::parse(&file, file.len() as u64) {
            Ok(header) => {
                accepted.set(accepted.get() + 1);
                it_tiles(&header, &file)
            }
            Err(error) => {
                refused.set(refused.get() + 1);
                it_is_one_line(&error, &file)
            }
        }
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, (plan, moves, harms))) => {
            let mut file = plan.write_moved(&moves).file;
            harms.iter().for_each(|harm| harm.apply(&mut file));
            panic!("{why}\n{moves:?} {harms:?}\n{plan:?}\n{}", shown(&file));
        }
        Err(other) => panic!("{other}"),
    }
    // Neither half may become a test of nothing.
    let (accepted, refused) = (accepted.get(), refused.get());
    assert!(accepted > CASES / 20 && refused > CASES / 4, "{accepted} accepted, {refused} refused");
}

fn it_tiles(header: &Header, file: &[u8]) -> TestCaseResult {
    let data_start = header_end(file).unwrap() as u64;
    prop_assert_eq!(header.data_start(), data_start);
    let model = Model::from_bytes(file).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(model.len(), header.len());
    let mut end = data_start;
    let mut names = HashSet::new();
    for (info, view) in header.tensors().zip(model.tensors()) {
        let range = info.file_range();
        prop_assert_eq!(range.start, end, "{:?}", info);
        prop_assert!(range.end >= range.start, "{:?}", info);
        let bits = u128::from(elements(info.shape())) * u128::from(info.dtype().bits());
        prop_assert_eq!(u128::from(range.end - range.start) * 8, bits, "{:?}", info);
        end = range.end;

        prop_assert!(names.insert(info.name()), "twice: {:?}", info);
        prop_assert_eq!(
            header.tensor(info.name()).map(|found| found.number()),
            Some(info.number())
        );
        let bytes = &file[range.start as usize..range.end as usize];
        prop_assert_eq!(view.bytes(), bytes);
        prop_assert_eq!(model.get(info.name()).map(|found| found.bytes()), Some(bytes));
    }
    prop_assert_eq!(end, file.len() as u64);
    Ok(())
}

fn it_is_one_line(error: &barest::Error, file: &[u8]) -> TestCaseResult {
    let text = error.to_string();
    let is_plain = |text: &str| !text.is_empty() && !text.chars().any(moves_the_cursor);
    prop_assert!(is_plain(&text), "{:?}", text);
    prop_assert!(text.len() < 2000, "{:?}", text);
    prop_assert!(error.offset().is_none_or(|offset| offset <= file.len() as u64), "{}", text);
    if let Some(caret) = error.caret() {
        let lines: Vec<&str> = caret.split('\n').collect();
        prop_assert_eq!(lines.len(), 2, "{:?}", caret);
        prop_assert!(lines.into_iter().all(is_plain), "{:?}", caret);
    }
    match Model::from_bytes(file) {
        Err(same) => prop_assert_eq!(same.to_string(), text),
        Ok(_) => return Err(TestCaseError::fail(format!("the model accepts it: {text}"))),
    }
    Ok(())
}

fn moves_the_cursor(character: char) -> bool {
    let turns = ['\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{feff}'];
    let spans = ['\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    character.is_control()
        || turns.contains(&character)
        || spans.iter().any(|span| span.contains(&character))
}

// What holds for every range of a mapping.

struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(name: &str, bytes: &[u8]) -> TemporaryFile {
        let name = format!("barest-properties-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, bytes).unwrap();
        TemporaryFile(path)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A place in a mapping, or beside it.
#[derive(Clone, Copy, Debug)]
struct Place {
    from_the_end: bool,
    page: usize,
    by: isize,
    beyond: Option<usize>,
}

fn place() -> impl Strategy<Value = Place> {
    let by = prop_oneof![-2..3isize, -70_000..70_000isize];
    let beyond = prop_oneof![
        6 => Just(None),
        1 => select(vec![usize::MAX, usize::MAX - 1, usize::MAX / 2, usize::MAX - 4095]).prop_map(Some),
    ];
    (any::<bool>(), 0..6usize, by, beyond).prop_map(|(from_the_end, page, by, beyond)| Place {
        from_the_end,
        page,
        by,
        beyond,
    })
}

impl Place {
    fn of(self, len: usize) -> usize {
        let base = match self.from_the_end {
            true => len,
            false => self.page * Mapping::page_size(),
        };
        self.beyond.unwrap_or_else(|| base.saturating_add_signed(self.by))
    }
}

const ADVICE: [Advice; 7] = [
    Advice::Normal,
    Advice::Sequential,
    Advice::Random,
    Advice::WillNeed,
    Advice::Cold,
    Advice::HugePage,
    Advice::PopulateRead,
];

#[test]
fn a_range_of_a_mapping_is_answered_or_refused_and_never_wrong() {
    let page = Mapping::page_size();
    for len in [0, 1, page - 1, page, page + 1, 5 * page + 77] {
        let bytes: Vec<u8> = (0..len as u64).map(|at| pattern(3, at)).collect();
        let file = TemporaryFile::new(&format!("range-{len}"), &bytes);
        let mapping = match Mapping::open(&File::open(&file.0).unwrap()) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                return skip::skip("mmap", "this system maps no files");
            }
            mapping => mapping.unwrap(),
        };
        let answered = Cell::new(0);
        let cases = (place(), place(), select(&ADVICE[..]));
        let outcome = TestRunner::new(config(400)).run(&cases, |(start, end, advice)| {
            let range = start.of(len)..end.of(len);
            let pages = pages_touched(range.start, range.end, len, page);
            answered.set(answered.get() + usize::from(pages.is_some()));
            match (mapping.residency(range.clone()), pages) {
                (Ok(residency), Some((first, count))) => {
                    prop_assert_eq!(residency.pages(), count);
                    prop_assert_eq!(residency.iter().count(), count);
                    prop_assert_eq!(
                        residency.resident(),
                        residency.iter().filter(|&page| page).count()
                    );
                    prop_assert_eq!(residency.first_page(), first);
                }
                (Err(error), pages) => is_refused(error, pages)?,
                (Ok(residency), None) => {
                    return Err(TestCaseError::fail(format!("{range:?}: {residency:?}")));
                }
            }
            match (mapping.advise(range.clone(), advice), pages) {
                (Ok(()), Some(_)) => {}
                (Err(error), pages) => is_refused(error, pages)?,
                (Ok(()), None) => return Err(TestCaseError::fail(format!("{range:?} is taken"))),
            }
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{len} bytes: {error}"));
        assert!(answered.get() > 20, "{} answers of {len} bytes", answered.get());
        assert_eq!(fs::read(&file.0).unwrap(), bytes, "advice changed the file");
    }
}

/// Inside the mapping the system may not know the question; outside the caller is to blame.
fn is_refused(error: io::Error, pages: Option<(usize, usize)>) -> TestCaseResult {
    let expected = match pages {
        Some(_) => io::ErrorKind::Unsupported,
        None => io::ErrorKind::InvalidInput,
    };
    prop_assert_eq!(error.kind(), expected, "{}", error);
    Ok(())
}

/// The first page and the number of pages that a range touches: one page after the other is asked
/// whether it holds a byte of it. `None` if the range is none of the mapping's.
fn pages_touched(start: usize, end: usize, len: usize, page: usize) -> Option<(usize, usize)> {
    let holds_a_byte = |number: &usize| {
        let (first, last) = (number * page, number * page + page - 1);
        start < end && start <= last && first < end
    };
    let inside = start <= end && end <= len;
    inside.then(|| (start / page, (0..=len / page).filter(holds_a_byte).count()))
}

// What holds for the elements of every shape at every address.

/// A number read without shifting, rotating or borrowing anything.
trait Oracle: Element {
    /// The bits of a value, sign or payload and all.
    fn bits(value: Self::Value) -> u64;
    /// What these bits must be for an element's bytes.
    fn naive(bytes: &[u8]) -> u64 {
        let digits = bytes.iter().rev().map(|&byte| u64::from(byte));
        digits.fold(0, |number, byte| number * 256 + byte)
    }
    /// A value that no element happens to have.
    fn mark() -> Self::Value;
}

impl Oracle for Bf16 {
    fn bits(value: f32) -> u64 {
        u64::from(value.to_bits())
    }
    fn naive(bytes: &[u8]) -> u64 {
        (u64::from(bytes[1]) * 256 + u64::from(bytes[0])) * 65536
    }
    /// The upper half of a float can have no such lower half.
    fn mark() -> f32 {
        f32::from_bits(0x3f80_1234)
    }
}

impl Oracle for f32 {
    fn bits(value: f32) -> u64 {
        u64::from(value.to_bits())
    }
    fn mark() -> f32 {
        f32::from_bits(0x7f12_3456)
    }
}

impl Oracle for u8 {
    fn bits(value: u8) -> u64 {
        u64::from(value)
    }
    fn mark() -> u8 {
        0x5a
    }
}

impl Oracle for i64 {
    fn bits(value: i64) -> u64 {
        value as u64
    }
    fn mark() -> i64 {
        0x1234_5678_9abc_def0
    }
}

proptest! {
    #![proptest_config(config(192))]

    #[test]
    fn elements_are_what_a_naive_reader_finds(
        shape in shape(), salt in any::<u8>(), odd in 0..16usize,
    ) {
        elements_agree::<Bf16>(&shape, salt, odd)?;
        elements_agree::<f32>(&shape, salt, odd)?;
        elements_agree::<u8>(&shape, salt, odd)?;
        elements_agree::<i64>(&shape, salt, odd)?;
    }
}

fn elements_agree<E: Oracle>(shape: &[u64], salt: u8, odd: usize) -> TestCaseResult {
    let Planned { bytes, .. } = Planned::new(String::new(), E::DTYPE, shape.to_vec(), salt);
    let header = format!(
        "{{\"t\":{{\"dtype\":\"{}\",\"shape\":{shape:?},\"data_offsets\":[0,{}]}}}}{:odd$}",
        E::DTYPE,
        bytes.len(),
        ""
    );
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.extend(&bytes);
    let model = Model::from_bytes(&file).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let elements = model.tensor("t").unwrap().elements::<E>().unwrap();
    let size = E::DTYPE.element_bytes().unwrap();
    let expected: Vec<u64> = bytes.chunks(size).map(E::naive).collect();
    rows_agree(&elements, shape, &expected)
}

fn rows_agree<E: Oracle>(found: &Elements<E>, shape: &[u64], expected: &[u64]) -> TestCaseResult {
    // 1. Every element, from both ends, by its number, and into a buffer that fits.
    let bits = |values: Vec<E::Value>| values.into_iter().map(E::bits).collect::<Vec<_>>();
    prop_assert_eq!(found.shape(), shape);
    prop_assert_eq!((found.len(), found.is_empty()), (expected.len(), expected.is_empty()));
    prop_assert_eq!(found.iter().len(), expected.len());
    prop_assert_eq!(bits(found.iter().collect()), expected);
    prop_assert_eq!(bits(found.to_vec().unwrap()), expected);
    let mut backwards = bits(found.iter().rev().collect());
    backwards.reverse();
    prop_assert_eq!(backwards, expected);
    for (index, &bits) in expected.iter().enumerate() {
        prop_assert_eq!(found.get(index).map(E::bits), Some(bits));
    }
    for beyond in [expected.len(), expected.len() + 1, usize::MAX] {
        prop_assert!(found.get(beyond).is_none());
    }
    let mut values = vec![E::mark(); expected.len()];
    found.read_into(&mut values).unwrap();
    prop_assert_eq!(bits(values), expected);

    // 2. A buffer that does not fit stays as it was.
    for len in [expected.len().wrapping_sub(1), expected.len() + 1] {
        if len == usize::MAX {
            continue;
        }
        let mut values = vec![E::mark(); len];
        let error = found.read_into(&mut values).unwrap_err();
        let numbers = match *error.kind() {
            ErrorKind::WrongLength { expected, found } => (expected, found),
            _ => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert_eq!(numbers, (expected.len(), len));
        prop_assert!(values.into_iter().all(|value| E::bits(value) == E::bits(E::mark())));
    }

    // 3. Every row in turn, and none behind the last.
    let Some((&rows, of_row)) = shape.split_first() else {
        let error = found.row(0).unwrap_err();
        prop_assert!(matches!(error.kind(), ErrorKind::NoRows), "{}", error);
        return Ok(());
    };
    for beyond in [rows, rows.saturating_add(1), u64::MAX] {
        let Ok(index) = usize::try_from(beyond) else {
            continue;
        };
        let error = found.row(index).unwrap_err();
        let numbers = match *error.kind() {
            ErrorKind::OutOfRange { expected, found } => (expected, found),
            _ => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert_eq!(numbers, (rows, beyond));
    }
    let len = (expected.len() as u64).checked_div(rows).unwrap_or(0) as usize;
    // Only rows without elements can be too many to visit.
    for index in (0..rows.min(8)).chain(rows.checked_sub(1)) {
        let start = (index * len as u64) as usize;
        rows_agree(&found.row(index as usize).unwrap(), of_row, &expected[start..start + len])?;
    }
    Ok(())
}
