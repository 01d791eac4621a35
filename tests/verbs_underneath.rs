//! What do the verbs say of a file that is cut while they read it, and of a run that was killed?
//!
//! A child runs the verb; when the kernel shows that it has mapped the file, the file is cut. A child
//! that was quicker is right about the whole file, and another tries.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

#[allow(dead_code)]
#[path = "common/files.rs"]
mod files;

use files::{Folder, INDEX, safetensors};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// Enough that nobody reads it all in the time that a cut takes.
const BYTES: u64 = 96 << 20;
/// The same for what is slow.
const FEW: u64 = 12 << 20;

/// Eight tensors of BF16 zeros, `t0` to `t7`, most of them holes of the file system.
fn zeros(folder: &Folder, name: &str, bytes: u64) -> (u64, u64) {
    let each = bytes / 8;
    let entry = |at: u64| {
        let (elements, begin, end) = (each / 2, each * at, each * (at + 1));
        format!(r#""t{at}":{{"dtype":"BF16","shape":[{elements}],"data_offsets":[{begin},{end}]}}"#)
    };
    let header = format!("{{{}}}", (0..8).map(entry).collect::<Vec<_>>().join(","));
    let path = folder.file(name, safetensors(&header, &[]));
    let start = 8 + header.len() as u64;
    File::options().write(true).open(path).unwrap().set_len(start + bytes).unwrap();
    (start, start + bytes)
}

fn spawn(folder: &Folder, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_barest"))
        .args(arguments)
        .current_dir(&folder.0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn told(output: Output) -> (String, String, Option<i32>) {
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// Waits until `is_time`, or the child has ended.
fn wait_until(child: &mut Child, is_time: impl Fn(u32) -> bool) {
    while child.try_wait().unwrap().is_none() && !is_time(child.id()) {
        std::thread::yield_now();
    }
}

fn is_mapped(process: u32, path: &Path) -> bool {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    maps.contains(path.to_str().unwrap())
}

/// Names in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs a verb over `m`, which is cut meanwhile, until it noticed: to a half; and by a few bytes, whose
/// page stays, so that zeros are read there and no signal is raised.
fn cut_under(arguments: &[&str], bytes: u64) {
    cut_by(arguments, bytes, bytes / 2 - 9);
    cut_by(arguments, bytes, 9);
}

fn cut_by(arguments: &[&str], bytes: u64, cut: u64) {
    const ATTEMPTS: usize = 20;
    let folder = Folder::new();
    zeros(&folder, "n", bytes);
    for _ in 0..ATTEMPTS {
        let (start, whole) = zeros(&folder, "m", bytes);
        let left = whole - cut;
        let path = folder.path("m");
        let mut child = spawn(&folder, arguments);
        wait_until(&mut child, |process| is_mapped(process, &path));
        File::options().write(true).open(&path).unwrap().set_len(left).unwrap();
        let (out, err, status) = told(child.wait_with_output().unwrap());
        if status == Some(0) {
            let made = folder.path("new");
            if made.is_file() {
                assert!(fs::metadata(&made).unwrap().len() >= whole, "{arguments:?}: {err}");
                fs::remove_file(made).unwrap();
            } else if made.is_dir() {
                fs::remove_dir_all(made).unwrap();
            }
            continue;
        }
        assert_eq!(status, Some(1), "{arguments:?} was ended by a signal: {out}{err}");
        let is_told = |line: &str| {
            let Some((_, rest)) = line.split_once("m: tensor `t") else { return false };
            let tensor = &rest[..1];
            // In the tensor that is named, and where something was missing.
            let (_, offset) = rest.rsplit_once("at offset ").expect("a place");
            let offset: u64 = offset.trim().parse().unwrap();
            let number = offset.saturating_sub(start) / (bytes / 8);
            offset >= left && tensor == number.to_string()
        };
        let mut lines = err.lines().chain(out.lines());
        assert!(lines.any(is_told), "{arguments:?}: {out}{err}");
        // Nothing that was computed from zeros that are none of the file's.
        let lines: Vec<&str> = out.lines().collect();
        match arguments[0] {
            "check" => {
                assert!(lines[0].starts_with("good  m: ") && !out.contains("FIRST BAD"), "{out}");
                assert!(lines.last().unwrap().starts_with("BAD   m: "), "{out}");
                assert_eq!(err, "barest: m is bad\n");
            }
            _ => assert_eq!(lines, [""; 0], "{arguments:?}"),
        }
        assert_eq!(names(&folder.0), ["m", "n"], "{arguments:?}");
        return;
    }
    panic!("{arguments:?} was never cut in {ATTEMPTS} attempts");
}

#[test]
fn no_hash_of_a_file_that_was_cut_is_printed() {
    cut_under(&["hash", "m"], FEW);
    cut_under(&["hash", "--check", "m"], FEW);
}

#[test]
fn no_difference_from_a_file_that_was_cut_is_told() {
    cut_under(&["diff", "m", "n"], BYTES);
    cut_under(&["diff", "n", "m"], BYTES);
}

#[test]
fn no_values_of_a_file_that_was_cut_are_shown() {
    cut_under(&["check", "--values", "m"], BYTES);
}

#[test]
fn nothing_is_made_of_a_file_that_was_cut() {
    // Copied by the kernel, read by us, compared; converted from the mapping; in parts.
    cut_under(&["pack", "m", "new"], BYTES);
    cut_under(&["pack", "m", "new", "--align", "4096", "--verify"], BYTES);
    cut_under(&["pack", "m", "new", "--to", "f16"], BYTES);
    cut_under(&["pack", "m", "new", "--shard", "20MiB"], BYTES);
}

/// Between two files of a split: the index that is there says what is missing.
#[test]
fn a_split_that_was_killed_is_no_model_and_says_so() {
    let folder = Folder::new();
    let (_, len) = zeros(&folder, "m", BYTES);
    let made = folder.path("new");
    for wanted in [1, 2, 4] {
        for attempt in 0.. {
            let mut child = spawn(&folder, &["pack", "m", "new", "--shard", "12MiB", "--verify"]);
            let finished = || names(&made).iter().filter(|name| name.ends_with("rs")).count();
            wait_until(&mut child, |_| made.exists() && finished() >= wanted);
            child.kill().unwrap();
            let (_, err, status) = told(child.wait_with_output().unwrap());
            if status.is_none() && finished() < 8 {
                break;
            }
            assert!(attempt < 20, "never killed in time: {err}");
            fs::remove_dir_all(&made).unwrap();
        }
        assert_eq!(fs::metadata(folder.path("m")).unwrap().len(), len);
        let found = names(&made);
        let shards: Vec<&String> = found.iter().filter(|name| name.starts_with("model-")).collect();
        assert!((wanted..8).contains(&shards.len()) && found.contains(&INDEX.to_owned()));
        let check = spawn(&folder, &["check", "new"]).wait_with_output().unwrap();
        let (out, err, status) = told(check);
        assert_eq!((&*err, status), ("barest: new is bad\n", Some(1)), "{out}");
        let missing = out.lines().filter(|line| line.contains("shard missing: the index assigns"));
        assert_eq!(missing.count(), 8 - shards.len(), "{out}");
        // What is there is whole, and nothing is beside it that is not told.
        for shard in shards {
            let path = format!("new/{shard}");
            let (out, err, status) =
                told(spawn(&folder, &["check", &path]).wait_with_output().unwrap());
            assert_eq!((&*err, status), ("", Some(0)), "{out}");
        }
        let hidden = found.iter().filter(|name| name.starts_with('.')).count();
        assert_eq!(out.matches("left behind: ").count(), hidden, "{found:?}");
        // Another attempt does not take it for a model that may be overwritten.
        let again = spawn(&folder, &["pack", "m", "new", "--shard", "12MiB"]);
        let (_, err, status) = told(again.wait_with_output().unwrap());
        assert!(status == Some(1) && err.contains("has a model in it"), "{err}");
        assert_eq!(names(&made), found);
        fs::remove_dir_all(&made).unwrap();
    }
}
