//! Does every property that the fuzzer asks for hold on the stable compiler too?
//!
//! 1. over the seeds in `fuzz/corpus`, so that what was once found stays found
//! 2. over some thousand changes of them, always the same ones
//!
//! This replaces no fuzzer: nothing here learns from what it reaches.

#[path = "../fuzz/changes.rs"]
mod changes;
#[path = "../fuzz/properties.rs"]
mod properties;

use barest::Dtype;
use changes::{Random, change, dictionary, mended};
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/header");
const DICTIONARY: &str = include_str!("../fuzz/header.dict");

/// Changed files for each seed.
const ROUNDS: usize = 100;

/// The longest changed file in bytes: what a debug build judges in a fraction of a millisecond.
const LONGEST: usize = 1024;

/// Names and bytes, in the order of the names.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let seed = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read(path).unwrap())
    };
    let entries = fs::read_dir(SEEDS).unwrap_or_else(|error| panic!("{SEEDS}: {error}"));
    let mut seeds: Vec<_> = entries.map(|entry| seed(&entry.unwrap().path())).collect();
    seeds.sort();
    seeds
}

/// The verdict on a file; a property that does not hold is reported with the file itself.
fn judge(what: &str, file: &[u8]) -> bool {
    catch_unwind(|| properties::judge(file))
        .unwrap_or_else(|_| panic!("{what}, that is b\"{}\"", file.escape_ascii()))
}

#[test]
fn the_seeds_are_there_small_and_of_both_kinds() {
    let seeds = seeds();
    let accepted = seeds.iter().filter(|(name, seed)| judge(name, seed)).count();
    let refused = seeds.len() - accepted;
    assert!(accepted >= 10 && refused >= 10, "{accepted} accepted, {refused} refused");
    assert!(seeds.iter().all(|(_, seed)| seed.len() < 1024));
    let total: usize = seeds.iter().map(|(_, seed)| seed.len()).sum();
    assert!(total < 64 * 1024, "{total} bytes of seeds");
}

#[test]
fn changed_seeds_break_no_property() {
    let words = dictionary(DICTIONARY).unwrap();
    let mut random = Random::new(1);
    let (mut judged, mut accepted) = (0, 0);
    for (name, seed) in seeds() {
        for round in 0..ROUNDS {
            let mut file = seed.clone();
            for _ in 0..=random.below(2) {
                change(&mut file, &mut random, &words);
            }
            file.truncate(LONGEST);
            let what = format!("{name} changed for the {round}th time");
            judge(&what, &file);
            let mended = mended(&file);
            accepted += usize::from(judge(&format!("{what} and mended"), &mended));
            judged += 1;
        }
    }
    // Else the changes are so wild that nothing but the length is ever looked at.
    assert!(accepted > judged / 20, "{accepted} of {judged} accepted");
}

#[test]
fn the_dictionary_is_one_and_knows_every_dtype() {
    let words = dictionary(DICTIONARY).unwrap();
    for dtype in Dtype::ALL {
        let quoted = format!("\"{dtype}\"").into_bytes();
        assert!(words.contains(&quoted), "fuzz/header.dict lacks {dtype}");
    }
    assert_eq!(dictionary("# a\n\n\"a\\\\\\\"\\x0d\\xff\""), Ok(vec![b"a\\\"\r\xff".to_vec()]));
    for malformed in ["a", r#""a\n""#, r#""\x4""#, "\"é\"", "\"\\\""] {
        assert_eq!(dictionary(malformed), Err(malformed));
    }
}
