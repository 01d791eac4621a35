//! Does `barest time` run every way there is, tell what it measured and nothing else, and leave
//! nothing behind?
//!
//! No time is held against another: a test machine may be busy. What must hold anyway is which ways
//! are there, that all of them touched the same bytes, and the order of the moments of one run.

#[path = "../src/barest/skip.rs"]
mod skip;

#[path = "layout/xml.rs"]
mod xml;

#[path = "time/json.rs"]
mod json;

#[path = "common/program.rs"]
mod program;

use json::Value;
use program::{barest, good, run};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

const MAPPED: [&str; 9] = [
    "on-demand",
    "sequential",
    "will-need",
    "populate",
    "prefetch",
    "first-on-demand",
    "first-prefetch",
    "random-rows",
    "random-rows-advised",
];

const READ: [&str; 2] = ["read", "std-read"];

const COLD_ONLY: [&str; 2] = ["direct", "disk"];

/// A directory with the sample model that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("barest-time-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let scratch = Scratch(path);
        assert_eq!(run(&["demo", &scratch.path("models")]).2, 0);
        scratch
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn sample(&self) -> String {
        self.path("models/sample.safetensors")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn measured(arguments: &[&str]) -> Value {
    let out = good(arguments);
    json::parse(&out).unwrap_or_else(|place| panic!("no JSON at {place}: {out}"))
}

/// Whether this system maps files; said, if not.
fn maps_files() -> bool {
    let maps = cfg!(all(target_os = "linux", target_pointer_width = "64"));
    if !maps {
        skip::skip("64-bit Linux", "what is measured elsewhere was not tried");
    }
    maps
}

/// The sum of one byte of each page that a tensor touches, as the format says where they are.
fn expected_sum(path: &str) -> u64 {
    let file = fs::read(path).unwrap();
    let index = barest::Index::open(path).unwrap();
    let page = barest::Mapping::page_size();
    let of_tensor = |range: std::ops::Range<u64>| -> u64 {
        let places = range.start as usize..range.end as usize;
        let is_first = |place: &usize| *place == places.start || place % page == 0;
        places.clone().filter(is_first).map(|place| u64::from(file[place])).sum()
    };
    index.tensors().map(|(_, tensor)| of_tensor(tensor.file_range())).sum()
}

/// Of each way on one state of the cache its only run; `None` if there was none, and a note why.
fn runs(measured: &Value, cache: &str) -> Vec<(String, Option<Value>)> {
    let ways = measured["ways"].list().iter().filter(|way| way["cache"].text() == cache);
    ways.map(|way| {
        let runs = way["runs"].list();
        assert!(runs.len() == 1 || !way["notes"].list().is_empty(), "{way:?}");
        let run = runs.first().cloned();
        assert_eq!(way["median"].is_null(), run.is_none());
        (way["way"].text().to_owned(), run)
    })
    .collect()
}

#[test]
fn every_way_is_run_and_all_touch_the_same_bytes() {
    if !maps_files() {
        return;
    }
    let scratch = Scratch::new("json");
    let sample = scratch.sample();
    let measured = measured(&["time", &sample, "--rounds", "1", "--json"]);
    let bytes = fs::metadata(&sample).unwrap().len();
    assert_eq!(measured["model"]["bytes"].number(), bytes);
    assert_eq!(measured["model"]["files"].number(), 1);
    let page = barest::Mapping::page_size() as u64;
    assert_eq!(measured["machine"]["page_bytes"].number(), page);
    assert!(measured["machine"]["cores"].number() > 0);
    let kernel = measured["machine"]["kernel"].text();
    assert!(kernel.starts_with("Linux "), "{kernel}");

    let sum = expected_sum(&sample);
    let data: u64 =
        barest::Index::open(&sample).unwrap().tensors().map(|(_, info)| info.byte_len()).sum();
    for cache in ["cold", "warm"] {
        let mut expected: Vec<&str> = MAPPED.into_iter().chain(READ).collect();
        if cache == "cold" {
            expected.extend(COLD_ONLY);
        }
        expected.sort_unstable();
        let runs = runs(&measured, cache);
        let mut names: Vec<&str> = runs.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{cache}");
        for (name, run) in &runs {
            // Some file systems refuse direct reads.
            let Some(run) = run else {
                assert!(COLD_ONLY.contains(&&**name), "{name}");
                continue;
            };
            let number = |figure: &str| run[figure].number();
            assert!(number("all_ns") > 0 && number("minor_faults") > 0, "{name}: {run:?}");
            assert!(number("pss_bytes") <= number("peak_rss_bytes"), "{name}: {run:?}");
            if name == "disk" {
                assert!(run["ready_ns"].is_null() && run["first_tensor_ns"].is_null());
                continue;
            }
            assert!(number("ready_ns") <= number("first_tensor_ns"), "{name}: {run:?}");
            assert!(number("first_tensor_ns") <= number("all_ns"), "{name}: {run:?}");
            let touched = number("tensor_bytes");
            match &**name {
                "first-on-demand" | "first-prefetch" => {
                    assert!(touched > 0 && touched < data / 2, "{name}: {touched}");
                }
                "random-rows" | "random-rows-advised" => {
                    assert!((1..=data / page / 100 + 1).contains(&touched), "{name}: {touched}");
                }
                _ => {
                    assert_eq!((touched, number("sum_of_touched")), (data, sum), "{name}");
                    // What was touched is in this process, copied or mapped.
                    assert!(number("peak_rss_bytes") >= data, "{name}");
                }
            }
        }
        let of = |name: &str| runs.iter().find(|(way, _)| way == name).unwrap().1.clone().unwrap();
        let sum_of = |name: &str| of(name)["sum_of_touched"].number();
        assert_eq!(sum_of("first-on-demand"), sum_of("first-prefetch"));
        assert_eq!(sum_of("random-rows"), sum_of("random-rows-advised"));
    }
    // Only if it was cold: on a file system in memory nothing comes from a disk.
    let on_demand = |cache: &str| {
        let is_it = |way: &&Value| way["way"].text() == "on-demand" && way["cache"].text() == cache;
        measured["ways"].list().iter().find(is_it).unwrap()
    };
    let read = |cache: &str| &on_demand(cache)["median"]["disk_read_bytes"];
    match on_demand("cold")["notes"].list().is_empty() && !read("cold").is_null() {
        true => {
            assert!(read("cold").number() >= data / 2, "{:?}", on_demand("cold"));
            assert!(read("warm").number() < data / 2, "{:?}", on_demand("warm"));
        }
        false => skip::skip("a disk that pages can be dropped to", "nothing was read from it"),
    }
    let (read, map) = (&measured["read_ready_ns"], &measured["map_ready_ns"]);
    assert!(read.number() > 0 && map.number() > 0);
}

#[test]
fn the_table_has_a_row_for_each_way_and_ends_with_s() {
    if !maps_files() {
        return;
    }
    let scratch = Scratch::new("table");
    let out = good(&["time", &scratch.sample(), "--rounds", "1"]);
    assert!(out.starts_with("model  "), "{out}");
    let mut tables = out.split("\ncold: ").nth(1).unwrap().split("\nwarm: ");
    let (cold, warm) = (tables.next().unwrap(), tables.next().unwrap());
    let row = |table: &str, name: &str| -> Option<Vec<String>> {
        let line = table.lines().find(|line| line.split(' ').next() == Some(name))?;
        let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        Some(cells.map(str::to_owned).collect())
    };
    for name in MAPPED.into_iter().chain(READ) {
        for table in [cold, warm] {
            let cells = row(table, name).unwrap_or_else(|| panic!("{name} is missing:\n{out}"));
            assert_eq!(cells.len(), 9, "{cells:?}");
            for time in &cells[1..4] {
                let number = time.strip_suffix(" ms").unwrap().parse::<f64>().unwrap();
                assert!(number > 0.0, "{cells:?}");
            }
            assert!(cells[4..6].iter().all(|count| count.parse::<u64>().is_ok()), "{cells:?}");
        }
    }
    for name in COLD_ONLY {
        assert!(row(cold, name).is_some(), "{out}");
        assert_eq!(row(warm, name), None, "{out}");
    }
    let last = out.lines().last().unwrap();
    let rest = last.strip_prefix("S = (parse + copy) / (header + mmap) = ").unwrap();
    let number = |text: &str| text.trim_end_matches(" ms").parse::<f64>().unwrap();
    let (times, s) = rest.split_once(" = ").unwrap();
    let (read, map) = times.split_once(" / ").unwrap();
    // Both are shown with three digits at least.
    let shown = number(read) / number(map);
    assert!((number(s) / shown - 1.0).abs() < 0.05, "{last}");
}

#[test]
fn what_was_not_asked_for_is_not_shown() {
    if !maps_files() {
        return;
    }
    let scratch = Scratch::new("only");
    let sample = scratch.sample();
    let names = |arguments: &[&str]| -> Vec<String> {
        let all = [&["time", &sample, "--json", "--rounds=1"], arguments].concat();
        let measured = measured(&all);
        assert!(measured["s"].is_number(), "S is always there");
        let ways = measured["ways"].list().iter();
        ways.filter(|way| way["cache"].text() == "cold")
            .map(|way| way["way"].text().to_owned())
            .collect()
    };
    assert_eq!(names(&["--only", "prefetch,on-demand,prefetch"]), ["on-demand", "prefetch"]);
    assert_eq!(names(&["--threads", "3"]), ["workers-on-demand", "workers-prefetch"]);
    assert_eq!(names(&["--processes", "2"]), [""; 0]);
    let out = good(&["time", &sample, "--only", "disk", "--rounds", "1"]);
    assert!(out.contains("\ndisk ") && !out.contains("\non-demand "), "{out}");
}

#[test]
fn rounds_are_counted_and_medians_lie_within() {
    if !maps_files() {
        return;
    }
    let scratch = Scratch::new("rounds");
    let sample = scratch.sample();
    let measured = measured(&["time", &sample, "--json", "--rounds", "3", "--only", "prefetch"]);
    for way in measured["ways"].list() {
        let mut times: Vec<u64> =
            way["runs"].list().iter().map(|run| run["all_ns"].number()).collect();
        times.sort_unstable();
        assert_eq!(times.len(), 3);
        assert_eq!(way["median"]["all_ns"].number(), times[1]);
    }
}

#[test]
fn threads_take_every_tensor_once_and_processes_share_what_they_map() {
    if !maps_files() {
        return;
    }
    let scratch = Scratch::new("many");
    let sample = scratch.sample();
    let measured =
        measured(&["time", &sample, "--json", "--rounds=1", "--threads=3", "--processes", "3"]);
    assert_eq!(measured["threads"].number(), 3);
    let sum = expected_sum(&sample);
    for (name, run) in runs(&measured, "cold").into_iter().chain(runs(&measured, "warm")) {
        assert_eq!(run.unwrap()["sum_of_touched"].number(), sum, "{name}");
    }
    let bytes = measured["model"]["bytes"].number();
    let pss_of = |name: &str| -> u64 {
        let sharing = measured["processes"].list().iter().find(|way| way["way"].text() == name);
        let each = sharing.unwrap()["each"].list();
        assert_eq!(each.len(), 3);
        each.iter()
            .map(|one| {
                assert_eq!(one["sum_of_touched"].number(), sum, "{name}");
                one["pss_bytes"].number()
            })
            .sum()
    };
    let (mapped, read) = (pss_of("mapped"), pss_of("read-by-each"));
    assert!(read >= 3 * bytes, "each has a copy: {read}");
    assert!(mapped + bytes < read, "they share: {mapped} and {read} of {bytes}");
}

#[test]
fn a_model_of_several_files_is_measured_as_one() {
    if !maps_files() {
        return;
    }
    let scratch = Scratch::new("shards");
    let (one, shards) = (scratch.sample(), scratch.path("models/sharded"));
    let measured = measured(&["time", &shards, "--json", "--rounds", "1"]);
    assert!(measured["model"]["files"].number() > 1);
    let data: u64 =
        barest::Index::open(&one).unwrap().tensors().map(|(_, info)| info.byte_len()).sum();
    let sums: Vec<u64> = runs(&measured, "warm")
        .into_iter()
        .filter(|(name, _)| !name.starts_with("first-") && !name.starts_with("random-"))
        .map(|(name, run)| {
            let run = run.unwrap();
            assert_eq!(run["tensor_bytes"].number(), data, "{name}");
            run["sum_of_touched"].number()
        })
        .collect();
    assert_eq!(sums.len(), 7);
    assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:?}");
}

#[test]
fn the_picture_is_xml_and_nothing_else_is_overwritten() {
    if !maps_files() {
        return;
    }
    let scratch = Scratch::new("svg");
    let sample = scratch.sample();
    let svg = scratch.path("a.svg");
    let out = good(&["time", &sample, "--rounds=1", "--only=on-demand,read", "--svg", &svg]);
    let drawn = fs::read_to_string(&svg).unwrap();
    assert_eq!(xml::whole(&drawn), Ok(()), "{drawn}");
    assert!(drawn.starts_with("<svg class=\"barest-time\""), "{drawn}");
    assert!(out.lines().last().unwrap().contains("for a browser"), "{out}");
    assert!(out.contains("\non-demand "), "the table as well");
    for name in ["on-demand", "read"] {
        assert_eq!(drawn.matches(&format!(">{name}</text>")).count(), 2, "{drawn}");
    }
    let quick = ["time", &sample, "--rounds=1", "--only=on-demand"];
    let json = good(&[&quick[..], &["--json", "--svg", &svg]].concat());
    assert!(json::parse(&json).is_ok(), "nothing but JSON: {json}");
    let drawn = good(&[&quick[..], &["--svg", "-"]].concat());
    assert_eq!(xml::whole(&drawn), Ok(()), "{drawn}");

    let mine = scratch.path("mine");
    fs::write(&mine, "mine").unwrap();
    for file in [&mine, &sample, &scratch.path("no/such/folder"), &scratch.path("models")] {
        let (out, err, status) = run(&[&quick[..], &["--svg", file]].concat());
        assert_eq!((out.as_str(), status), ("", 1), "before anything is measured: {err}");
        assert!(err.contains("cannot write"), "{err}");
    }
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
}

#[test]
fn misuse_is_told_and_so_is_a_bad_file() {
    let scratch = Scratch::new("misuse");
    let sample = &scratch.sample();
    for arguments in [
        &["time"][..],
        &["time", "a", "b"],
        &["time", sample, "--rounds"],
        &["time", sample, "--rounds", "0"],
        &["time", sample, "--rounds", "-1"],
        &["time", sample, "--rounds", "1001"],
        &["time", sample, "--threads", "0"],
        &["time", sample, "--processes", "x"],
        &["time", sample, "--only", ""],
        &["time", sample, "--only", "fastest"],
        &["time", sample, "--only", "mapped"],
        &["time", sample, "--svg="],
        &["time", sample, "--json", "--svg", "-"],
        &["time", sample, "--frobnicate"],
        &["time", sample, "--child", "no-such-way"],
    ] {
        let (out, err, status) = run(arguments);
        assert_eq!((out.as_str(), status), ("", 2), "{arguments:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{arguments:?}: {err}");
    }
    let help = good(&["time", "--help"]);
    for name in MAPPED.into_iter().chain(READ).chain(COLD_ONLY) {
        assert!(help.contains(&format!("\n  {name} ")), "{name}");
    }
    for broken in ["models/broken-cut.safetensors", "models/missing.safetensors"] {
        let (out, err, status) = run(&["time", &scratch.path(broken)]);
        assert_eq!((out.as_str(), status), ("", 1), "{broken}");
        assert!(err.contains(broken), "{err}");
    }
}

/// How many processes were given this path.
fn processes_with(path: &str) -> usize {
    let is_ours = |entry: &fs::DirEntry| {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        command.split(|&byte| byte == 0).any(|argument| argument == path.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().filter(is_ours).count()
}

/// Waits until something is so; for minutes, since a machine may be busy, but not for ever.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("waited in vain until {what}");
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn nothing_is_left_behind() {
    if !maps_files() {
        return;
    }
    let scratch = Scratch::new("left");
    let sample = scratch.sample();
    let before = (names_in(&scratch.0), names_in(&scratch.0.join("models")));
    let bytes = fs::read(&sample).unwrap();
    let arguments = ["time", &sample, "--rounds=1", "--threads=2", "--processes=2"];
    let output =
        barest().args(arguments).current_dir(&scratch.0).env("TMPDIR", &scratch.0).output();
    assert!(output.unwrap().status.success());
    assert_eq!((names_in(&scratch.0), names_in(&scratch.0.join("models"))), before);
    assert_eq!(fs::read(&sample).unwrap(), bytes);
    assert_eq!(processes_with(&sample), 0);
}

#[test]
fn whoever_stops_reading_or_kills_it_leaves_no_process() {
    if !maps_files() {
        return;
    }
    let scratch = Scratch::new("killed");
    let sample = scratch.sample();
    // 1. A reader that leaves.
    let mut child = barest()
        .args(["time", &sample, "--rounds", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stderr.as_slice(), output.status.code()), (&b""[..], Some(0)));
    assert_eq!(processes_with(&sample), 0);
    // 2. A kill that nobody can prepare for: of the one that measures, while one process runs, and
    // while several share the model.
    for (arguments, processes) in [(&["--rounds", "1000"][..], 1), (&["--processes", "16"], 4)] {
        let mut child = barest()
            .args(["time", &sample])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut first).unwrap();
        assert!(first.starts_with("model "), "{first}");
        until("they run", || {
            assert_eq!(child.try_wait().unwrap(), None, "it was through before it was killed");
            processes_with(&sample) > processes
        });
        child.kill().unwrap();
        child.wait().unwrap();
        // They see the end of their input.
        until("they are gone", || processes_with(&sample) == 0);
    }
}
