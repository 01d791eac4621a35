//! Does every property that the fuzzer asks for hold on the stable compiler too?
//!
//! 1. over the seeds in `fuzz/corpus`, so that what was once found stays found
//! 2. over some thousand changes of them, always the same ones
//!
//! This replaces no fuzzer: nothing here learns from what it reaches. What is held against other
//! crates is not here either: `.ci/run fuzz` replays those seeds.

#[path = "../fuzz/changes.rs"]
mod changes;
#[path = "../fuzz/properties/decode.rs"]
mod decode;
#[path = "../fuzz/properties/header.rs"]
mod header;
#[path = "../fuzz/properties/roundtrip.rs"]
mod roundtrip;
#[path = "../fuzz/skeleton.rs"]
mod skeleton;
#[path = "../fuzz/properties/slice.rs"]
mod slice;
#[path = "../fuzz/tape.rs"]
mod tape;

use barest::Dtype;
use changes::{Random, change, dictionary, mended};
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

const DICTIONARY: &str = include_str!("../fuzz/words.dict");

/// Changed files for each seed.
const ROUNDS: usize = 100;

/// The longest changed file in bytes: what a debug build judges in a fraction of a millisecond.
const LONGEST: usize = 1024;

/// All seeds together, of one target.
const MOST_SEED_BYTES: usize = 64 * 1024;

/// Panics where something does not hold, and tells whether the input was accepted.
type Property = fn(&[u8]) -> bool;

/// Names and bytes, in the order of the names.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let seed = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read(path).unwrap())
    };
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{target}: {error}"));
    let mut seeds: Vec<_> = entries.map(|entry| seed(&entry.unwrap().path())).collect();
    seeds.sort();
    seeds
}

/// The verdict on an input; a property that does not hold is reported with the input itself.
fn judge(what: &str, input: &[u8], property: Property) -> bool {
    catch_unwind(|| property(input))
        .unwrap_or_else(|_| panic!("{what}, that is b\"{}\"", input.escape_ascii()))
}

#[test]
fn the_seeds_are_there_and_small() {
    for target in ["header", "json", "index", "roundtrip", "slice", "decode"] {
        let seeds = seeds(target);
        assert!(seeds.len() >= 10, "{target} has {} seeds", seeds.len());
        assert!(seeds.iter().all(|(_, seed)| seed.len() < 1024), "{target}");
        let total: usize = seeds.iter().map(|(_, seed)| seed.len()).sum();
        assert!(total < MOST_SEED_BYTES, "{total} bytes of seeds for {target}");
    }
}

#[test]
fn seeds_of_both_kinds_break_no_property() {
    let properties: [(&str, Property); 3] = [
        ("header", header::judge),
        ("slice", slice::judge),
        ("roundtrip", |tape| roundtrip::judge(tape).is_some()),
    ];
    for (target, property) in properties {
        let seeds = seeds(target);
        let accepted = seeds.iter().filter(|(name, seed)| judge(name, seed, property)).count();
        let refused = seeds.len() - accepted;
        assert!(accepted >= 3 && refused >= 3, "{target}: {accepted} accepted, {refused} refused");
    }
}

#[test]
fn changed_headers_break_no_property() {
    let words = dictionary(DICTIONARY).unwrap();
    let mut random = Random::new(1);
    let (mut judged, mut accepted) = (0, 0);
    for (name, seed) in seeds("header") {
        for round in 0..ROUNDS {
            let mut file = seed.clone();
            for _ in 0..=random.below(2) {
                change(&mut file, &mut random, &words);
            }
            file.truncate(LONGEST);
            let what = format!("{name} changed for the {round}th time");
            judge(&what, &file, header::judge);
            let mended = mended(&file);
            let what = format!("{what} and mended");
            accepted += usize::from(judge(&what, &mended, header::judge));
            judged += 1;
        }
    }
    // Else the changes are so wild that nothing but the length is ever looked at.
    assert!(accepted > judged / 20, "{accepted} of {judged} accepted");
}

#[test]
fn headers_of_one_form_break_no_property() {
    let mut random = Random::new(2);
    let accepted = (0..ROUNDS * 10).filter(|round| {
        let file = skeleton::header(&mut random);
        judge(&format!("the {round}th header"), &file, header::judge)
    });
    let accepted = accepted.count();
    // Half are as they should be, and of the others some are all the same.
    assert!((ROUNDS * 4..ROUNDS * 9).contains(&accepted), "{accepted} of {} accepted", ROUNDS * 10);
}

#[test]
fn changed_tapes_break_no_property() {
    let properties: [(&str, Property); 3] = [
        ("slice", slice::judge),
        ("decode", decode::judge),
        ("roundtrip", |tape| roundtrip::judge(tape).is_some()),
    ];
    let mut random = Random::new(3);
    for (target, property) in properties {
        let mut accepted = 0;
        for (name, seed) in seeds(target) {
            for round in 0..ROUNDS {
                let mut tape = seed.clone();
                for _ in 0..=random.below(4) {
                    let place = random.below(tape.len() + 1);
                    let byte = random.below(256) as u8;
                    match random.below(3) {
                        0 => tape.insert(place, byte),
                        _ if place < tape.len() => tape[place] = byte,
                        _ => tape.push(byte),
                    }
                }
                let what = format!("{target}/{name} changed for the {round}th time");
                accepted += usize::from(judge(&what, &tape, property));
            }
        }
        assert!(accepted > ROUNDS, "{target}: {accepted} accepted");
    }
}

#[test]
fn the_dictionary_is_one_and_knows_every_dtype() {
    let words = dictionary(DICTIONARY).unwrap();
    for dtype in Dtype::ALL {
        let quoted = format!("\"{dtype}\"").into_bytes();
        assert!(words.contains(&quoted), "fuzz/words.dict lacks {dtype}");
    }
    assert_eq!(dictionary("# a\n\n\"a\\\\\\\"\\x0d\\xff\""), Ok(vec![b"a\\\"\r\xff".to_vec()]));
    for malformed in ["a", r#""a\n""#, r#""\x4""#, "\"é\"", "\"\\\""] {
        assert_eq!(dictionary(malformed), Err(malformed));
    }
}
