//! Do `pages`, `warm` and `evict` do what they say, and say what they did?
#![cfg(target_os = "linux")]

#[path = "layout/xml.rs"]
mod xml;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A directory that goes away with the test, with the sample model in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("barest-pages-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let scratch = Scratch(path);
        scratch.good(&["demo", "."]);
        scratch
    }

    fn run(&self, arguments: &[&str]) -> (String, String, i32) {
        let output = Command::new(env!("CARGO_BIN_EXE_barest"))
            .args(arguments)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
        (text(output.stdout), text(output.stderr), output.status.code().expect("no signal"))
    }

    fn good(&self, arguments: &[&str]) -> String {
        let (out, err, status) = self.run(arguments);
        assert_eq!((&*err, status), ("", 0), "{arguments:?}: {out}");
        out
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The numbers of `before: 12 of 490 pages …`.
fn pages_of(line: &str) -> (usize, usize) {
    let words: Vec<&str> = line.split_whitespace().collect();
    (words[1].parse().unwrap(), words[3].parse().unwrap())
}

#[test]
fn what_is_warm_is_all_in_memory_and_what_is_evicted_is_not() {
    let scratch = Scratch::new("cycle");
    for model in ["sample.safetensors", "sharded", "sharded/model.safetensors.index.json"] {
        let warm = scratch.good(&["warm", model]);
        let (after, all) = pages_of(warm.lines().nth(1).unwrap());
        assert_eq!(after, all, "{warm}");
        let told = scratch.good(&["pages", model, "model.norm"]);
        assert!(told.lines().any(|line| line.starts_with("model.norm.weight")), "{told}");
        assert!(told.contains("100 %"), "{told}");
        // Where nothing can be dropped (a RAM file system) it says that nothing was.
        let evicted = scratch.good(&["evict", model]);
        let (before, _) = pages_of(evicted.lines().next().unwrap());
        let (after, _) = pages_of(evicted.lines().nth(1).unwrap());
        assert!(after <= before && before <= all, "{evicted}");
    }
}

#[test]
fn a_prefix_takes_its_tensors_and_no_others() {
    let scratch = Scratch::new("prefix");
    let told = scratch.good(&["pages", "sample.safetensors", "model.layers.1"]);
    let names: Vec<&str> = told.lines().filter(|line| line.starts_with("model.")).collect();
    assert_eq!(names.len(), 9, "{told}");
    assert!(names.iter().all(|name| name.starts_with("model.layers.1.")), "{told}");
    let (_, of_layer) = pages_of(&scratch.good(&["warm", "sample.safetensors", "model.layers.1"]));
    let (_, of_all) = pages_of(&scratch.good(&["warm", "sample.safetensors"]));
    assert!(of_layer < of_all / 2, "{of_layer} of {of_all}");
    for verb in ["pages", "warm", "evict"] {
        let (out, err, status) = scratch.run(&[verb, "sample.safetensors", "model.layer"]);
        assert_eq!((&*out, status), ("", 1), "{verb}: {err}");
        assert!(
            err.contains("no tensor is named `model.layer`, nor any below it"),
            "{verb}: {err}"
        );
        assert_eq!(scratch.run(&[verb]).2, 2, "{verb} of nothing");
        assert_eq!(scratch.run(&[verb, "missing"]).2, 1, "{verb} of nothing there");
    }
}

#[test]
fn the_picture_is_xml_and_overwrites_nothing_else() {
    let scratch = Scratch::new("svg");
    let drawn = scratch.good(&["pages", "sharded", "model.layers", "--svg", "-"]);
    xml::whole(&drawn).unwrap_or_else(|fault| panic!("{fault}:\n{drawn}"));
    assert!(drawn.starts_with("<svg class=\"barest-pages\""), "{drawn}");
    scratch.good(&["pages", "sharded", "--svg", "p.svg"]);
    scratch.good(&["pages", "sample.safetensors", "--svg", "p.svg"]);
    let (_, err, status) = scratch.run(&["pages", "sharded", "--svg", "sample.safetensors"]);
    assert_eq!(status, 1, "{err}");
    assert!(fs::read(scratch.0.join("sample.safetensors")).unwrap().len() > 2_000_000);
}
