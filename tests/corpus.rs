//! Does every property that the fuzzer asks for hold on the stable compiler too?
//!
//! 1. over the seeds in `fuzz/corpus`, so that what was once found stays found
//! 2. over some ten thousand changes of them, always the same ones
//!
//! This replaces no fuzzer: nothing here learns from what it reaches.

#[path = "../fuzz/properties.rs"]
mod properties;

use barest::Dtype;
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

const FUZZ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz");

/// Changed files for each seed.
const ROUNDS: usize = 100;

/// The longest changed file in bytes: what a debug build judges in a fraction of a millisecond.
const LONGEST: usize = 1024;

/// Names and bytes, in the order of the names.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds: Vec<_> = fs::read_dir(Path::new(FUZZ).join("corpus/header"))
        .expect("fuzz/corpus/header")
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
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
    let accepted = seeds
        .iter()
        .filter(|(name, seed)| judge(name, seed))
        .count();
    assert!(accepted >= 10, "{accepted} of {} accepted", seeds.len());
    assert!(
        accepted + 10 <= seeds.len(),
        "{accepted} of {} accepted",
        seeds.len()
    );
    assert!(seeds.iter().all(|(_, seed)| seed.len() < 1024));
    let total: usize = seeds.iter().map(|(_, seed)| seed.len()).sum();
    assert!(total < 64 * 1024, "{total} bytes of seeds");
}

#[test]
fn changed_seeds_break_no_property() {
    let (seeds, words) = (seeds(), dictionary());
    let mut random = Random(0x5eed_5eed_5eed_5eed);
    let (mut changes, mut accepted) = (0, 0);
    for (name, seed) in &seeds {
        for round in 0..ROUNDS {
            let mut file = seed.clone();
            for _ in 0..=random.below(2) {
                change(&mut file, &mut random, &words, &seeds);
            }
            file.truncate(LONGEST);
            let what = format!("{name} changed for the {round}th time");
            judge(&what, &file);
            let mended = properties::mended(&file);
            accepted += usize::from(judge(&format!("{what} and mended"), &mended));
            changes += 1;
        }
    }
    // Else the changes are so wild that nothing but the length is ever looked at.
    assert!(accepted > changes / 25, "{accepted} of {changes} accepted");
}

/// One change: what a bad transfer, a bad writer or a bad person would do.
fn change(file: &mut Vec<u8>, random: &mut Random, words: &[Vec<u8>], seeds: &[(String, Vec<u8>)]) {
    let place = random.below(file.len() + 1);
    let end = (place + 1 + random.below(16)).min(file.len());
    match random.below(8) {
        0 if place < end => file[place] ^= 1 << random.below(8),
        1 if place < end => file[place] = random.below(256) as u8,
        2 => file.truncate(place),
        3 => drop(file.drain(place..end)),
        4 => {
            let again = file[place..end].to_vec();
            file.splice(end..end, again);
        }
        5 => {
            let (_, other) = &seeds[random.below(seeds.len())];
            let tail = &other[random.below(other.len() + 1)..];
            file.splice(place.., tail.iter().copied());
        }
        6 => {
            let digits = |byte: &&u8| byte.is_ascii_digit();
            if let Some(digit) = file[place..].iter().position(|byte| digits(&byte)) {
                file[place + digit] = b'0' + random.below(10) as u8;
            }
        }
        _ => {
            let word = &words[random.below(words.len())];
            file.splice(place..place, word.iter().copied());
        }
    }
}

/// Marsaglia's xorshift: enough to be different every time, and the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// The words of the fuzzer's dictionary.
fn dictionary() -> Vec<Vec<u8>> {
    let path = Path::new(FUZZ).join("header.dict");
    let text = fs::read_to_string(path).expect("fuzz/header.dict");
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| word(line).unwrap_or_else(|| panic!("fuzz/header.dict: {line}")))
        .collect()
}

/// A quoted word with `\\`, `\"` and `\xNN`, as libFuzzer reads it.
fn word(line: &str) -> Option<Vec<u8>> {
    let mut characters = line.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut word = Vec::new();
    while let Some(character) = characters.next() {
        word.push(match character {
            '\\' => match characters.next()? {
                'x' => {
                    let mut digit = || characters.next()?.to_digit(16);
                    (digit()? * 16 + digit()?) as u8
                }
                escaped @ ('\\' | '"') => escaped as u8,
                _ => return None,
            },
            plain @ (' ' | '!' | '#'..='~') => plain as u8,
            _ => return None,
        });
    }
    Some(word)
}

#[test]
fn the_dictionary_knows_every_dtype() {
    let words = dictionary();
    for dtype in Dtype::ALL {
        let quoted = format!("\"{dtype}\"").into_bytes();
        assert!(words.contains(&quoted), "fuzz/header.dict lacks {dtype}");
    }
}

#[test]
fn a_word_is_read_as_the_fuzzer_reads_it() {
    assert_eq!(word(r#""a\\\"\x0d\xff""#).unwrap(), b"a\\\"\r\xff");
    for malformed in ["a", r#""a\n""#, r#""\x4""#, "\"é\"", "\"\\\""] {
        assert_eq!(word(malformed), None, "{malformed}");
    }
}
