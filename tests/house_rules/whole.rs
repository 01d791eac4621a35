//! What may stand in this repository at all?

use std::collections::BTreeMap;

/// At the top stand the manifest, four folders, the README, and what convention wants beside them;
/// and, in a working copy, what `.gitignore` names.
pub fn top_level(entries: &[String], gitignore: &str) -> Vec<String> {
    const PLANNED: [&str; 8] =
        ["Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "src", "docs", "tests", "fuzz"];
    let ignored = |entry: &str| gitignore.lines().any(|line| line.trim_matches('/') == entry);
    let strange = entries.iter().filter(|entry| {
        !entry.starts_with('.') && !PLANNED.contains(&&entry[..]) && !ignored(entry)
    });
    strange.map(|entry| format!("{entry}:0: no planned top-level entry")).collect()
}

/// The keys of a manifest, each with the tables it stands in: `[a.b]` and `c.d = 1` are `a.b.c.d`.
/// Strings that span lines may hide a key or invent one; the manifest has none.
fn manifest_keys(manifest: &str) -> BTreeMap<String, usize> {
    let mut keys = BTreeMap::new();
    let mut table = String::new();
    for (number, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            table = name.trim_matches('[').trim().to_owned();
            keys.insert(table.clone(), number + 1);
        } else if let Some((key, _)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            keys.insert(format!("{table}.{}", key.trim()), number + 1);
        }
    }
    keys
}

/// No dependency at run time or while building, `proptest` alone for tests, no build script, no
/// feature.
pub fn manifest_rules(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (key, line) in manifest_keys(text) {
        let parts: Vec<&str> = key.split('.').map(|part| part.trim_matches(['"', '\''])).collect();
        let of_table = |name: &str| {
            let at = parts.iter().position(|&part| part == name)?;
            parts.get(at + 1).copied()
        };
        let unwanted = of_table("dependencies").is_some()
            || of_table("build-dependencies").is_some()
            || of_table("dev-dependencies").is_some_and(|name| name != "proptest")
            || parts[0] == "features"
            || parts[..] == ["package", "build"];
        if unwanted {
            faults.push(format!("{path}:{line}: {key}"));
        }
    }
    faults
}

/// Nothing is left for later: no ignored test, no stub, no note to do it.
pub fn left_for_later(path: &str, text: &str) -> Vec<String> {
    // In pieces, or this file would find itself.
    let words = [
        concat!("#[ig", "nore"),
        concat!("to", "do!"),
        concat!("un", "implemented!"),
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
    ];
    let in_a_word = |character: char| character.is_alphanumeric() || character == '_';
    let holds = |line: &str, word: &str| {
        line.match_indices(word).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + word.len()..]);
            !before.ends_with(in_a_word) && !after.starts_with(in_a_word)
        })
    };
    let mut faults = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let found = words.iter().filter(|word| holds(line, word));
        faults.extend(found.map(|word| format!("{path}:{}: {word}", number + 1)));
    }
    faults
}

/// A module opens with the question that it answers: the first paragraph of its `//!` ends with a
/// question mark. The crate's own two files open with what the crate is.
pub fn opening_question(path: &str, text: &str) -> Vec<String> {
    if ["src/lib.rs", "src/main.rs"].contains(&path) {
        return Vec::new();
    }
    let paragraph =
        text.lines().map_while(|line| line.strip_prefix("//!").filter(|rest| !rest.is_empty()));
    if paragraph.last().is_some_and(|line| line.ends_with('?')) {
        Vec::new()
    } else {
        vec![format!("{path}:1: opens without a question")]
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_strange_entry_at_the_top_is_found() {
        let entries =
            ["Cargo.toml", "src", ".ci", "target", "build.rs", "notes"].map(str::to_owned);
        let expected =
            ["build.rs:0: no planned top-level entry", "notes:0: no planned top-level entry"];
        assert_eq!(top_level(&entries, "/target\n*.orig\n"), expected);
    }

    #[test]
    fn a_dependency_is_found_in_every_spelling() {
        let clean = "[package]\nname = \"a\"\n# build = 1\n[dependencies]\n# x = \"1\"\n[dev-dependencies]\nproptest = \"1\"\n[workspace]\n";
        for (text, expected) in [
            (clean, ""),
            ("[dev-dependencies.proptest]\nversion = \"1\"", ""),
            ("[dependencies]\nlibc = \"0.2\"", "2: dependencies.libc"),
            ("[dependencies.libc]", "1: dependencies.libc"),
            ("dependencies.libc = \"0.2\"", "1: .dependencies.libc"),
            ("[build-dependencies]\ncc = \"1\"", "2: build-dependencies.cc"),
            (
                "[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"",
                "2: target.'cfg(unix)'.dependencies.libc",
            ),
            ("[dev-dependencies]\nserde = \"1\"", "2: dev-dependencies.serde"),
            ("[features]", "1: features"),
            ("[package]\nbuild = \"make.rs\"", "2: package.build"),
        ] {
            assert_eq!(planted(manifest_rules, "Cargo.toml", text), expected, "{text}");
        }
    }

    #[test]
    fn a_note_to_do_it_later_is_found() {
        let note = concat!("\n// TO", "DO: later");
        let test = concat!("#[test]\n#[ig", "nore = \"slow\"]");
        let stub = concat!("fn f() { to", "do!() }");
        let harmless = concat!("AUTO", "DO, `MASTO", "DON`, to do, mastodon!");
        for (text, expected) in [
            (note, concat!("2: TO", "DO")),
            (test, concat!("2: #[ig", "nore")),
            (stub, concat!("1: to", "do!")),
            (harmless, ""),
        ] {
            assert_eq!(planted(left_for_later, "a.rs", text), expected, "{text}");
        }
    }

    #[test]
    fn a_module_without_a_question_is_found() {
        let fault = "1: opens without a question";
        for (path, text, expected) in [
            ("src/a.rs", "//! What is it?\n//!\n//! A thing.", ""),
            ("src/a.rs", "//! What is it, and\n//! what for?\nuse std::fmt;", ""),
            ("src/a.rs", "//! A thing.\n//!\n//! Is it?", fault),
            ("src/a.rs", "use std::fmt;", fault),
            ("src/a.rs", "", fault),
            ("src/lib.rs", "//! A thing.", ""),
        ] {
            assert_eq!(planted(opening_question, path, text), expected, "{path}: {text}");
        }
    }
}
