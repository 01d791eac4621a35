//! Do `pages`, `warm` and `evict` do what they say, and say what they did?
#![cfg(target_os = "linux")]

#[allow(dead_code)]
#[path = "common/files.rs"]
mod files;
#[path = "common/program.rs"]
mod program;
#[path = "layout/xml.rs"]
mod xml;

use files::Folder;
use program::{good_in, run_in};
use std::fs;

/// A folder with the sample model in it.
struct Sample(Folder);

impl Sample {
    fn new() -> Sample {
        let sample = Sample(Folder::new());
        sample.good(&["demo", "."]);
        sample
    }

    fn run(&self, arguments: &[&str]) -> (String, String, i32) {
        run_in(&self.0.0, arguments)
    }

    fn good(&self, arguments: &[&str]) -> String {
        good_in(&self.0.0, arguments)
    }
}

/// The numbers of `before: 12 of 490 pages …`.
fn pages_of(line: &str) -> (usize, usize) {
    let words: Vec<&str> = line.split_whitespace().collect();
    (words[1].parse().unwrap(), words[3].parse().unwrap())
}

#[test]
fn what_is_warm_is_all_in_memory_and_what_is_evicted_is_not() {
    let sample = Sample::new();
    for model in ["sample.safetensors", "sharded", "sharded/model.safetensors.index.json"] {
        let warm = sample.good(&["warm", model]);
        let (after, all) = pages_of(warm.lines().nth(1).unwrap());
        assert_eq!(after, all, "{warm}");
        let told = sample.good(&["pages", model, "model.norm"]);
        assert!(told.lines().any(|line| line.starts_with("model.norm.weight")), "{told}");
        assert!(told.contains("100 %"), "{told}");
        // Where nothing can be dropped (a RAM file system) it says that nothing was.
        let evicted = sample.good(&["evict", model]);
        let (before, _) = pages_of(evicted.lines().next().unwrap());
        let (after, _) = pages_of(evicted.lines().nth(1).unwrap());
        assert!(after <= before && before <= all, "{evicted}");
    }
}

#[test]
fn a_prefix_takes_its_tensors_and_no_others() {
    let sample = Sample::new();
    let told = sample.good(&["pages", "sample.safetensors", "model.layers.1"]);
    let names: Vec<&str> = told.lines().filter(|line| line.starts_with("model.")).collect();
    assert_eq!(names.len(), 9, "{told}");
    assert!(names.iter().all(|name| name.starts_with("model.layers.1.")), "{told}");
    let (_, of_layer) = pages_of(&sample.good(&["warm", "sample.safetensors", "model.layers.1"]));
    let (_, of_all) = pages_of(&sample.good(&["warm", "sample.safetensors"]));
    assert!(of_layer < of_all / 2, "{of_layer} of {of_all}");
    for verb in ["pages", "warm", "evict"] {
        let (out, err, status) = sample.run(&[verb, "sample.safetensors", "model.layer"]);
        assert_eq!((&*out, status), ("", 1), "{verb}: {err}");
        assert!(
            err.contains("no tensor is named `model.layer`, nor any below it"),
            "{verb}: {err}"
        );
        assert_eq!(sample.run(&[verb]).2, 2, "{verb} of nothing");
        assert_eq!(sample.run(&[verb, "missing"]).2, 1, "{verb} of nothing there");
    }
}

#[test]
fn the_picture_is_xml_and_overwrites_nothing_else() {
    let sample = Sample::new();
    let drawn = sample.good(&["pages", "sharded", "model.layers", "--svg", "-"]);
    xml::whole(&drawn).unwrap_or_else(|fault| panic!("{fault}:\n{drawn}"));
    assert!(drawn.starts_with("<svg class=\"barest-pages\""), "{drawn}");
    sample.good(&["pages", "sharded", "--svg", "p.svg"]);
    sample.good(&["pages", "sample.safetensors", "--svg", "p.svg"]);
    let (_, err, status) = sample.run(&["pages", "sharded", "--svg", "sample.safetensors"]);
    assert_eq!(status, 1, "{err}");
    assert!(fs::read(sample.0.path("sample.safetensors")).unwrap().len() > 2_000_000);
}
