//! What does it cost to look at a file that was made to cost much?
//!
//! Headers and indexes as long as they may be, of what a reader could be made to keep, to count or to
//! descend into. Each gets its verdict, and on the way there no more memory than stands here: what a
//! call holds at once, its own copy of the text included, as a multiple of the text's length. A
//! vector that grows counts as two. At their full length, and in instructions, `tests/peers` prints
//! what these take: `--only attacks`.
#![cfg(all(unix, target_pointer_width = "64"))]

// It is shared, and not all of it is needed here.
#[path = "common/counting.rs"]
#[allow(dead_code)]
mod counting;
#[path = "common/files.rs"]
#[allow(dead_code)]
mod files;

use barest::{Error, ErrorKind, Header, Index, OpenOptions};
use counting::peak_of;
use files::{Folder, INDEX};
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a header: the default cap, or a fifth of it where every byte takes long.
const LONGEST: usize = if cfg!(debug_assertions) { 20_000_000 } else { 100_000_000 };

/// What is held at once of any header, as a multiple of its length: the private copy, and the room
/// for tensors that is set aside before it is known how many there are.
const AT_FIRST: f64 = 1.9;

/// One after the other: together they would need gigabytes.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A header that begins and ends like this, and between them repeats something until it is as long
/// as it may be; blanks behind it.
fn repeated(before: &str, again: &str, after: &str) -> Vec<u8> {
    let times = (LONGEST - before.len() - after.len()) / again.len();
    let mut file = (LONGEST as u64).to_le_bytes().to_vec();
    file.reserve_exact(LONGEST);
    file.extend(before.as_bytes());
    file.extend(again.as_bytes().repeat(times));
    file.extend(after.as_bytes());
    file.resize(8 + LONGEST, b' ');
    file
}

/// A header of this text, and blanks behind it until it is as long as it may be.
fn filled_up(text: &str) -> Vec<u8> {
    let mut file = (LONGEST as u64).to_le_bytes().to_vec();
    file.extend(text.as_bytes());
    file.resize(8 + LONGEST, b' ');
    file
}

/// The verdict on a header of a file with so many bytes of data, which held at most so many times
/// its length.
fn judged(file: &[u8], data_len: u64, times: f64) -> Result<Header, Error> {
    let (verdict, peak) = peak_of(|| Header::parse(file, file.len() as u64 + data_len));
    let found = peak as f64 / LONGEST as f64;
    assert!(found <= times, "{found} times the header's length, not {times}");
    verdict
}

#[test]
fn brackets_without_end_are_no_header() {
    let _alone = alone();
    let error = judged(&repeated("", "[", ""), 0, AT_FIRST).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Syntax { found: Some(b'['), .. }), "{error}");
    let file = repeated(r#"{"t":{"x":"#, "[", "");
    let error = judged(&file, 0, AT_FIRST).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TooDeep { .. }), "{error}");
    assert_eq!(error.offset(), Some(8 + 10 + 125));
}

#[test]
fn an_ignored_list_of_zeros_is_ignored() {
    let _alone = alone();
    let tensor = r#"0],"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#;
    let header = judged(&repeated(r#"{"t":{"x":["#, "0,", tensor), 1, AT_FIRST).unwrap();
    assert_eq!((header.len(), header.remarks().is_empty()), (1, false));
}

#[test]
fn a_name_as_long_as_the_header_is_a_name() {
    let _alone = alone();
    let tensor = r#"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#;
    let file = repeated("{\"", "n", tensor);
    let header = judged(&file, 1, AT_FIRST).unwrap();
    let name = header.tensors().next().unwrap().name();
    assert_eq!(name.len(), LONGEST - 2 - tensor.len());
    assert!(header.tensor(name).is_some());
    drop(header);
    // In an error it is kept whole, and shown in part.
    let error = judged(&file, 0, 3.0).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Truncated { .. }), "{error}");
    assert!(error.to_string().len() < 1000);
    // In escapes it is shorter once resolved.
    let header = judged(&repeated("{\"", "\\u0061", tensor), 1, 3.2).unwrap();
    assert!(header.tensors().next().unwrap().name().starts_with("aaa"));
}

#[test]
fn as_many_tensors_as_fit_are_proved_and_named() {
    let _alone = alone();
    const COUNT: usize = LONGEST / 100 * 7 / 4;
    let mut text = String::with_capacity(LONGEST);
    for number in 0..COUNT {
        text.push(if number == 0 { '{' } else { ',' });
        text += &format!(r#""{number:06x}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#);
    }
    text.push('}');
    let mut file = filled_up(&text);
    let header = judged(&file, 0, 3.0).unwrap();
    assert_eq!(header.len(), COUNT);
    for number in [0, 1, COUNT / 2, COUNT - 1] {
        assert!(header.tensor(&format!("{number:06x}")).is_some());
    }
    drop(header);
    // The last name is made that of the first.
    let last = format!("\"{:06x}\"", COUNT - 1);
    let place = 8 + text.rfind(&last).unwrap();
    file[place..place + last.len()].copy_from_slice(b"\"000000\"");
    let error = judged(&file, 0, 3.2).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DuplicateTensor { first: 10 }), "{error}");
}

/// Backwards, each of a byte; and behind one so large that to any scale all others lie at one place.
#[test]
fn as_many_tensors_as_fit_are_put_into_order() {
    let _alone = alone();
    const COUNT: usize = LONGEST / 100;
    for last in [1, 1 << 60] {
        let mut text = String::with_capacity(LONGEST);
        for number in (0..COUNT).rev() {
            let len = if number == COUNT - 1 { last } else { 1 };
            let end = number + len;
            text.push(if text.is_empty() { '{' } else { ',' });
            text += &format!(
                r#""{number:07}":{{"dtype":"U8","shape":[{len}],"data_offsets":[{number},{end}]}}"#
            );
        }
        text.push('}');
        let file = filled_up(&text);
        let header = judged(&file, (COUNT - 1 + last) as u64, 2.4).unwrap();
        let names = header.tensors().map(|tensor| tensor.name().parse());
        assert!(names.eq((0..COUNT).map(Ok)));
    }
}

#[test]
fn a_shape_of_as_many_dimensions_as_fit_is_multiplied() {
    let _alone = alone();
    let file = repeated(r#"{"t":{"dtype":"U8","data_offsets":[0,1],"shape":["#, "1,", "1]}}");
    let header = judged(&file, 1, 9.2).unwrap();
    assert!(header.tensor("t").unwrap().shape().len() > LONGEST / 2 - 100);
    drop(header);
    // An error shows a few of them.
    let error = judged(&file, 2, 9.2).unwrap_err();
    assert!(error.to_string().len() < 1000, "{} bytes", error.to_string().len());
}

#[test]
fn metadata_of_keys_that_are_all_the_same_or_all_different() {
    let _alone = alone();
    let file = repeated(r#"{"__metadata__":{"#, r#""":"","#, r#""":""}}"#);
    let error = judged(&file, 0, 8.6).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DuplicateMetadataKey { .. }), "{error}");
    let mut text = String::with_capacity(LONGEST);
    text += r#"{"__metadata__":{"#;
    let mut keys = 0;
    while text.len() < LONGEST - 30 {
        text += &format!(r#""{keys:x}":"","#);
        keys += 1;
    }
    text += r#""":""}}"#;
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    file.extend(text.as_bytes());
    let header = judged(&file, 0, 8.6).unwrap();
    assert_eq!(header.metadata().unwrap().len(), keys + 1);
}

/// The fault or the faults of an index with these entries, which held at most so many times its
/// length.
fn faults_of(entry: impl Fn(usize) -> String, count: usize, times: f64) -> Error {
    let folder = Folder::new();
    folder.shard("s", &[("a", &[1])]);
    let mut text = "{\"weight_map\":{".to_owned();
    for number in 0..count {
        text += if number > 0 { "," } else { "" };
        text += &entry(number);
    }
    text += "}}";
    folder.file(INDEX, &text);
    let mut options = OpenOptions::new();
    options.read_threads(NonZeroUsize::MIN);
    let (outcome, peak) = peak_of(|| options.index(&folder.0));
    let found = peak as f64 / text.len() as f64;
    // Of a thousand faults each is kept in full, whatever the length of the text.
    let times = times + 1_000_000.0 / text.len() as f64;
    assert!(found <= times, "{found} times the index's length, not {times}");
    outcome.map(|index: Index| index.len()).unwrap_err()
}

fn count(error: &Error) -> usize {
    match error.kind() {
        ErrorKind::Faults { faults, more, .. } => faults.len() + more,
        _ => 1,
    }
}

#[test]
fn an_index_that_names_a_shard_in_each_entry_costs_little_more_than_one_that_names_few() {
    let _alone = alone();
    const COUNT: usize = 400_000;
    // 1. Shards that are not there.
    let error = faults_of(|number| format!("\"{number:x}\":\"{number:x}\""), COUNT, 6.0);
    assert_eq!(count(&error), COUNT);
    // 2. Shards that would lead out of the directory.
    let error = faults_of(|number| format!("\"\":\"/{number:x}\""), COUNT, 8.0);
    assert_eq!(count(&error), COUNT);
    // 3. One that is there, and does not hold them.
    let error = faults_of(|number| format!("\"{number:x}\":\"s\""), COUNT, 4.0);
    assert_eq!(count(&error), COUNT - 1, "one of them is `a`");
}
