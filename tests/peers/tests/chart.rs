//! Does the chart show what was run, and nothing else?
//!
//! The program runs each table that has a row in the chart, once; what it takes is of no interest.

use quick_xml::Reader;
use quick_xml::events::Event;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A picture of these rows.
fn drawn(name: &str, only: &[&str]) -> (Output, PathBuf) {
    let path = std::env::temp_dir().join(format!("{name}-{}.svg", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_barest-peers"));
    command.args(["--rounds", "1", "--size", "16", "--svg"]).arg(&path);
    for row in only {
        command.args(["--only", row]);
    }
    (command.output().unwrap(), path)
}

/// What stands between `<title>` and `</title>` of each bar, of a picture that is well-formed and
/// asks for nothing from elsewhere.
fn bars(path: &PathBuf) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    fs::remove_file(path).unwrap();
    for elsewhere in ["<script", "href", "url(", "@import"] {
        assert!(!text.contains(elsewhere), "{elsewhere}");
    }
    let (mut reader, mut open, mut bars) = (Reader::from_str(&text), Vec::new(), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) => open.push(tag.name().as_ref().to_owned()),
            Event::End(tag) => assert_eq!(open.pop().unwrap(), tag.name().as_ref()),
            Event::Text(words) if open.ends_with(&[b"rect".into(), b"title".into()]) => {
                bars.push(String::from_utf8(words.to_vec()).unwrap());
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?} is open");
    // The first is the legend's.
    bars.split_off(1)
}

#[test]
fn a_bar_stands_for_a_row_that_was_run_with_its_numbers() {
    let (output, path) = drawn("one", &["parse/smollm2-272", "parse/metadata-only"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let [bar] = &bars(&path)[..] else { panic!("one row of the chart was run") };
    let table = String::from_utf8(output.stdout).unwrap();
    let row = table.lines().find(|line| line.starts_with("| smollm2-272")).unwrap();
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let (ratio, _) = cells[8].split_once(' ').unwrap();
    assert!(
        bar.starts_with("Parse and prove a header, 272 tensors, beside safetensors: "),
        "{bar}"
    );
    assert!(bar.contains(&format!(": {ratio} (")), "{bar}, {row}");
    assert_eq!(bar.contains("goal 11x missed"), cells[9] == ">= 11: NO", "{bar}, {row}");
}

#[test]
fn no_picture_is_drawn_of_rows_that_it_does_not_show() {
    let (output, path) = drawn("none", &["parse/metadata-only"]);
    assert!(!output.status.success());
    assert!(!path.exists());
}

#[test]
fn each_bar_finds_its_row() {
    let rows = [
        "parse/smollm2-272",
        "parse/experts-10000",
        "parse/experts-92000",
        "open/smollm2-272",
        "open/experts-92000",
        "fresh/smollm2-272",
        "sets/deepseek-v3-163-index",
        "lookup/experts",
        "decode/",
        "dot/",
        "cold/",
    ];
    let (output, path) = drawn("all", &rows);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let bars = bars(&path);
    // Not each folder for temporary files lies on a disk.
    let without_cold = if said.contains("cold is left out") { 5 } else { 0 };
    assert_eq!(bars.len(), 26 - without_cold, "{bars:#?}");
}
