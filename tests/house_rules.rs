//! Is the house built as its plan says?
//!
//! A rule is a function from a file's path and text to its faults; its doc comment says what it
//! asks for. In its own file it is tried on planted violations, here on the tree.

#[path = "../src/barest/skip.rs"]
mod skip;

#[path = "house_rules/source.rs"]
mod source;

#[path = "house_rules/one_way.rs"]
mod one_way;

#[path = "house_rules/copying.rs"]
mod copying;

#[path = "house_rules/safety.rs"]
mod safety;

#[path = "house_rules/whole.rs"]
mod whole;

use std::fs;
use std::path::Path;

/// The folder that is copied into other crates.
const VENDORED: &str = "src/barest/";

/// Path, with slashes, and text.
type File = (String, String);

#[test]
fn everything_flows_one_way() {
    let Some(files) = tree(&["src/barest"], &[".rs"]) else {
        return;
    };
    let is_mod_rs = |(path, _): &&File| path == "src/barest/mod.rs";
    let (_, mod_rs) = files.iter().find(is_mod_rs).expect("src/barest/mod.rs");
    let order = one_way::modules(mod_rs);
    assert!(order.len() > 10, "{order:?}");
    assert_none(faults(&files, |path, text| one_way::one_way(path, text, &order)));
}

#[test]
fn the_folder_can_be_copied() {
    if let Some(files) = tree(&["src/barest"], &[".rs"]) {
        assert_none(faults(&files, copying::own_paths));
        assert_none(faults(&files, copying::asks_nothing_of_its_host));
    }
}

#[test]
fn what_is_unsafe_has_its_place_and_its_reason() {
    if let Some(files) = tree(&["src"], &[".rs"]) {
        assert_none(safety::unsafe_files(&files));
        assert_none(faults(&files, safety::foreign_declarations));
    }
    if let Some(files) = tree(&["src", "tests", "fuzz"], &[".rs"]) {
        assert_none(faults(&files, safety::safety_comments));
    }
}

#[test]
fn every_module_opens_with_its_question() {
    if let Some(files) = tree(&["src"], &[".rs"]) {
        assert_none(faults(&files, whole::opening_question));
    }
}

#[test]
fn nothing_is_left_for_later() {
    if let Some(files) = tree(&["src", "tests", "fuzz"], &[".rs", ".toml", ".md"]) {
        assert_none(faults(&files, whole::left_for_later));
    }
}

#[test]
fn the_manifest_asks_for_nothing() {
    if let Some(top) = repository() {
        let manifest = fs::read_to_string(top.join("Cargo.toml")).unwrap();
        assert_none(whole::manifest_rules("Cargo.toml", &manifest));
    }
}

#[test]
fn the_top_level_is_as_planned() {
    if let Some(top) = repository() {
        let ignored = fs::read_to_string(top.join(".gitignore")).unwrap();
        assert_none(whole::top_level(&names_in(top), &ignored));
    }
}

/// The repository; `None`, and said so, in a packaged crate, which is less than the whole.
fn repository() -> Option<&'static Path> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let whole = top.join("fuzz/Cargo.toml").exists() && !top.join("Cargo.toml.orig").exists();
    if !whole {
        skip::skip("the whole repository", "this is a package");
    }
    whole.then_some(top)
}

/// The files below some folders.
fn tree(folders: &[&str], endings: &[&str]) -> Option<Vec<File>> {
    let top = repository()?;
    let mut files = Vec::new();
    for folder in folders {
        collect(top, folder, endings, &mut files);
    }
    assert!(!files.is_empty(), "no file in {folders:?}");
    Some(files)
}

fn collect(top: &Path, folder: &str, endings: &[&str], files: &mut Vec<File>) {
    const LEFT_BEHIND: [&str; 5] = ["target", "artifacts", "coverage", "corpus", "corpus-work"];
    for name in names_in(&top.join(folder)) {
        let path = format!("{folder}/{name}");
        let place = top.join(&path);
        if place.is_dir() && !LEFT_BEHIND.contains(&&name[..]) {
            collect(top, &path, endings, files);
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            files.push((path, fs::read_to_string(place).unwrap()));
        }
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn faults(files: &[File], rule: impl Fn(&str, &str) -> Vec<String>) -> Vec<String> {
    let of_one = |(path, text): &File| rule(path, text);
    files.iter().flat_map(of_one).collect()
}

fn assert_none(faults: Vec<String>) {
    let count = faults.len();
    assert!(faults.is_empty(), "{count} faults:\n{}", faults.join("\n"));
}

/// The faults that a rule finds in a planted file, without the path.
fn planted(rule: impl Fn(&str, &str) -> Vec<String>, path: &str, text: &str) -> String {
    let without_path = |fault: String| {
        let rest = fault.strip_prefix(path).and_then(|rest| rest.strip_prefix(':'));
        rest.unwrap_or_else(|| panic!("`{fault}` does not name {path}")).to_owned()
    };
    let faults: Vec<String> = rule(path, text).into_iter().map(without_path).collect();
    faults.join("; ")
}
