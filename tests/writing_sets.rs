//! Do the verbs that write, hash and compare take models of many files, and leave them models?

#[allow(dead_code)]
#[path = "common/files.rs"]
mod files;
#[path = "common/program.rs"]
mod program;

use files::{Folder, INDEX, safetensors, shard, shard_with};
use program::{good_in, run_in};
use std::fs;

fn run(folder: &Folder, arguments: &[&str]) -> (String, String, i32) {
    run_in(&folder.0, arguments)
}

fn good(folder: &Folder, arguments: &[&str]) -> String {
    good_in(&folder.0, arguments)
}

/// What is told on standard error by a run that changes nothing and prints nothing else.
fn refused(folder: &Folder, arguments: &[&str]) -> String {
    let before = all(folder);
    let (out, err, status) = run(folder, arguments);
    assert_eq!((&*out, status), ("", 1), "{arguments:?}: {err}");
    assert!(all(folder) == before, "{arguments:?} changed a file");
    err
}

/// Every file below a folder, with its bytes.
fn all(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.0.clone()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let bytes = fs::read(&path).unwrap();
                    found.push((path.to_str().unwrap().to_owned(), bytes));
                }
            }
        }
    }
    found.sort();
    found
}

/// `m`: three shards with metadata that differs, and an index that leaves a tensor out; of each name
/// that is there twice one is assigned.
fn set() -> Folder {
    let folder = Folder::new();
    let metadata = |pairs: &str| format!(r#""__metadata__":{{{pairs}}},"#);
    let part = |name: &str, pairs: &str, tensors: &[(&str, &[u8])]| {
        folder.file(&format!("m/{name}.safetensors"), shard_with(&metadata(pairs), tensors));
    };
    part("1", r#""format":"pt","n":"1""#, &[("a.x", &[1, 2, 3]), ("b", &[4])]);
    part("2", r#""n":"2""#, &[("b", &[9, 9]), ("a.y", &[5, 6])]);
    part("3", r#""format":"pt","last":"z""#, &[("c", &[7; 5]), ("left.out", &[8])]);
    let entries = [("c", "3"), ("a.x", "1"), ("a.y", "2"), ("b", "1")];
    let entries = entries.map(|(name, file)| format!(r#""{name}":"{file}.safetensors""#));
    folder.file(&format!("m/{INDEX}"), format!(r#"{{"weight_map":{{{}}}}}"#, entries.join(",")));
    folder
}

const NOTES: &str = "note: files differ in `n` of their metadata; the first value is kept\n\
                     note: 2 tensors that the index does not assign are left out\n";

#[test]
fn many_files_become_one_with_what_the_index_assigns() {
    let folder = set();
    for from in ["m", &format!("m/{INDEX}")] {
        let out = good(&folder, &["pack", from, "one", "--verify"]);
        assert_eq!(out, format!("one: 4 tensors, 11 bytes of data, verified\n{NOTES}"));
        assert_eq!(good(&folder, &["meta", "one"]), "format = pt\nn = 1\nlast = z\n");
        let bytes = fs::read(folder.path("one")).unwrap();
        assert!(bytes.ends_with(&[1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7]), "shard by shard");
        assert_eq!(good(&folder, &["diff", from, "one"]), "4 of 4 tensors the same\n");
        fs::remove_file(folder.path("one")).unwrap();
    }
    let out = good(&folder, &["pack", "m", "some", "--only", "a", "--align", "64"]);
    assert_eq!(out, format!("some: 2 tensors, 5 bytes of data\n{NOTES}"));
    let bytes = fs::read(folder.path("some")).unwrap();
    assert_eq!(bytes[bytes.len() - 5..], [1, 2, 3, 5, 6]);
    assert_eq!((bytes.len() - 5) % 64, 0);
}

#[test]
fn many_files_become_others_that_say_the_same() {
    let folder = set();
    let before = all(&folder);
    let hashes = |path: &str| {
        let out = good(&folder, &["hash", path]);
        let mut lines: Vec<String> =
            out.split("\n\n").nth(1).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    // Below SRC, which has no eye for it; then from one index to the next.
    for (from, to, more, files) in [
        ("m", "m/below", &["--shard", "5"][..], 3),
        ("m/below", "split", &["--shard", "1", "--align", "4096", "--verify"], 4),
        ("split", "one", &["--shard", "1GB", "--order", "reference"], 1),
    ] {
        let out = good(&folder, &[&["pack", from, to], more].concat());
        assert_eq!(out.contains("not assign"), from == "m", "{out}");
        assert_eq!(good(&folder, &["diff", "m", to]), "4 of 4 tensors the same\n");
        assert_eq!(hashes(to), hashes("m"));
        let told = good(&folder, &["check", to]);
        assert!(told.starts_with(&format!("good  {to}: 4 tensors")), "{told}");
        let found = fs::read_dir(folder.path(to)).unwrap();
        let found = found.filter(|entry| !entry.as_ref().unwrap().path().ends_with(INDEX));
        assert_eq!(found.count(), files, "{to}");
        assert!(!told.contains("total_size"), "{told}");
    }
    let index = fs::read_to_string(folder.path("split").join(INDEX)).unwrap();
    assert!(index.contains("{\"total_size\": 11}"), "{index}");
    assert!(index.contains("\"a.y\": \"model-00003-of-00004.safetensors\""), "{index}");
    for file in 1..=4 {
        let path = format!("split/model-0000{file}-of-00004.safetensors");
        assert_eq!(good(&folder, &["meta", &path]), "format = pt\nn = 1\nlast = z\n");
        let len = fs::metadata(folder.path(&path)).unwrap().len();
        assert!((4096..4096 + 6).contains(&len), "{len}");
    }
    let source = all(&folder);
    let source = source.iter().filter(|(path, _)| !path.contains("/below/"));
    assert!(source.filter(|(path, _)| path.contains("/m/")).eq(before.iter()));
}

/// The bytes depend on the tensors and not on the files they come from. (That they are those of the
/// reference writer is shown in `tests/peers`.)
#[test]
fn the_sample_in_one_file_and_in_three_packs_to_the_same_bytes() {
    let folder = Folder::new();
    good(&folder, &["demo", "models"]);
    let sample = "models/sample.safetensors";
    let pack = |from: &str, to: &str, more: &[&str]| {
        good(&folder, &[&["pack", from, to], more].concat());
        fs::read(folder.path(to)).unwrap()
    };
    let reference = &["--order", "reference"];
    let one = pack(sample, "one", reference);
    assert!(pack("models/sharded", "three", reference) == one);
    let all = &["--order", "reference", "--verify", "--align", "16384"];
    assert!(pack("models/sharded", "three", all)[16384..] == one[one.len() - 2_001_216..]);
    // Split anew, each way, and merged again.
    for (size, files) in [("300kB", 8), ("1MB", 3), ("1", 39)] {
        let to = format!("split-{size}");
        good(&folder, &["pack", "models/sharded", &to, "--shard", size]);
        let told = good(&folder, &["check", &to]);
        let expected = format!("good  {to}: 39 tensors in {files} shards, 1.9 MiB of data\n");
        assert!(told.starts_with(&expected), "{told}");
        assert_eq!(good(&folder, &["diff", sample, &to]), "39 of 39 tensors the same\n");
        assert!(pack(&to, "again", reference) == one, "{size}");
    }
}

/// Converted bytes are those that are split and summed.
#[test]
fn a_split_counts_what_it_writes() {
    let folder = Folder::new();
    let header = r#"{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[4],"data_offsets":[16,32]},"c":{"dtype":"U8","shape":[3],"data_offsets":[32,35]}}"#;
    folder.file("m.safetensors", safetensors(header, &[0; 35]));
    let out = good(&folder, &["pack", "m.safetensors", "d", "--shard", "16", "--to", "bf16"]);
    assert!(out.contains("model-00001-of-00002.safetensors: 2 tensors, 16 bytes"), "{out}");
    assert!(out.contains("2 files, 19 bytes of data in all\n2 of 3 tensors converted"), "{out}");
    let index = fs::read_to_string(folder.path("d").join(INDEX)).unwrap();
    assert!(index.contains("{\"total_size\": 19}"), "{index}");
    assert!(good(&folder, &["check", "d"]).starts_with("good  d: 3 tensors in 2 shards, 19 bytes"));
}

#[test]
fn a_model_is_never_made_another_by_packing_it() {
    let folder = set();
    let index = format!("m/{INDEX}");
    folder.file("none/1.safetensors", shard(&[("a", &[1])]));
    folder.file("none/2.safetensors", shard(&[("b", &[2])]));
    folder.file("single/x.safetensors", shard(&[("a", &[1])]));
    for (from, to, why) in [
        ("m", "m/2.safetensors", "it is one of the 3 files of m: choose another name"),
        (&index, "m/../m/2.safetensors", "it is one of the 3 files of m/model.safetensors.index"),
        ("none", "none/1.safetensors", "it is one of the 2 files of none: choose another name"),
        (
            "none",
            "none/new.safetensors",
            "none has no index, and would have each tensor twice: choose",
        ),
        ("single", "single/y.safetensors", "single has no index, and would have each tensor twice"),
        ("m", &index, "a name that ends in .json is that of an index: choose another\n"),
        ("single", "new.JSON", "a name that ends in .json is that of an index"),
    ] {
        let err = refused(&folder, &["pack", from, to, "--only", ""]);
        assert!(err.starts_with(&format!("barest: {to}: {why}")), "{err}");
    }
    let err = refused(&folder, &["pack", "m", "m"]);
    assert_eq!(err, "barest: m: not a regular file but a directory\n");
    let err = refused(&folder, &["pack", "m", "m", "--shard", "1"]);
    assert!(err.starts_with("barest: m has a model in it: "), "{err}");
    let err = refused(&folder, &["pack", "m", "m/1.safetensors", "--shard", "1"]);
    assert!(err.starts_with("barest: m/1.safetensors: it is one of the 3 files of m"), "{err}");
    let err = refused(&folder, &["pack", "m", "single/x.safetensors", "--shard", "1"]);
    let why = "single/x.safetensors is a file: with --shard DST is a directory";
    assert_eq!(err, format!("barest: {why}\n"));
    // What makes no other model is fine: the only file, one beside an index, other names.
    for (from, to) in [
        ("single", "single/x.safetensors"),
        ("none", "none/all.st"),
        ("m", "m/all.safetensors"),
        ("none/1.safetensors", "single/x.safetensors"),
    ] {
        good(&folder, &["pack", from, to]);
        assert!(good(&folder, &["diff", from, to]).ends_with(" the same\n"));
        assert!(good(&folder, &["check", from]).starts_with("good  "));
    }
    // Files of something else do not stand in the way of a split.
    folder.file("other/config.json", "{}");
    good(&folder, &["pack", "m", "other", "--shard", "4"]);
    assert!(folder.path("other/config.json").exists());
    assert!(good(&folder, &["check", "other"]).starts_with("good  other: 4 tensors in 3 shards"));
}

#[test]
fn metadata_is_that_of_one_file() {
    let folder = set();
    let index = format!("m/{INDEX}");
    for path in ["m", &index] {
        for more in [&[][..], &["--json"], &["--set", "a=b"], &["--unset", "n", "--in-place"]] {
            let err = refused(&folder, &[&["meta", path], more].concat());
            let told = format!(
                "barest: {path} has 3 files, and each has metadata of its own: name one of them, such as m/"
            );
            assert!(err.starts_with(&told) && err.ends_with(".safetensors\n"), "{err}");
        }
    }
    good(&folder, &["meta", "m/2.safetensors", "--set", "n=3"]);
    assert_eq!(good(&folder, &["meta", "m/2.safetensors"]), "n = 3\n");
    assert!(good(&folder, &["check", "m"]).starts_with("good  m: 4 tensors in 3 shards"));
    folder.file("single/x.safetensors", shard(&[("a", &[1])]));
    let out = good(&folder, &["meta", "single", "--set", "k=v"]);
    assert_eq!(out, "single/x.safetensors: 1 pair now, file written anew, 89 bytes\n");
    assert_eq!(good(&folder, &["meta", "single"]), "k = v\n");
}

#[test]
fn each_file_of_a_set_has_a_hash_and_a_verdict() {
    let folder = Folder::new();
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for (name, hash) in [("1", ABC.to_owned()), ("2", ABC.replace('b', "c"))] {
        let first = format!(r#""__metadata__":{{"sshs_model_hash":"{hash}"}},"#);
        folder.file(&format!("{name}.safetensors"), shard_with(&first, &[(name, b"abc")]));
    }
    let section = |name| format!("{ABC}  data section of ./{name}.safetensors, 3 bytes\n");
    let sections = section("1") + &section("2");
    let out = good(&folder, &["hash", "."]);
    assert_eq!(out, format!("{sections}\n{ABC}  1\n{ABC}  2\n"));
    let (out, err, status) = run(&folder, &["hash", ".", "--check"]);
    let wrong = ABC.replace('b', "c");
    assert_eq!(
        out,
        format!(
            "{sections}good  ./1.safetensors: sshs_model_hash says so too\n\
             BAD   ./2.safetensors: sshs_model_hash: expected {wrong}, found {ABC}\n"
        )
    );
    assert_eq!((&*err, status), ("barest: the data is not what its metadata says\n", 1));
}

#[test]
fn a_difference_in_a_set_is_told_by_name() {
    let folder = set();
    good(&folder, &["pack", "m", "d", "--shard", "4"]);
    let path = folder.path("d/model-00002-of-00003.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    let (out, err, status) = run(&folder, &["diff", "m", "d"]);
    assert_eq!((&*err, status), ("barest: m and d differ\n", 1));
    let row = out.lines().nth(1).unwrap();
    assert!(row.starts_with("a.y") && row.ends_with("byte 1"), "{out}");
    assert!(out.ends_with("\n3 of 4 tensors the same\n"), "{out}");
    // A set with a fault is no model, and the fault is told.
    fs::remove_file(path).unwrap();
    for arguments in [&["diff", "m", "d"][..], &["hash", "d"], &["pack", "d", "e"], &["meta", "d"]]
    {
        let err = refused(&folder, arguments);
        let told = "d/model-00002-of-00003.safetensors: shard missing: the index assigns 1 tensor";
        assert!(err.contains(told), "{arguments:?}: {err}");
    }
}

/// What is true of several files is said once, and counted over all of them.
#[test]
fn remarks_about_several_files_are_one() {
    let folder = Folder::new();
    let header = |tensor: &str, at: u64| {
        format!(
            r#"{{"{tensor}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}},"{tensor}.{at}":{{"dtype":"F16","shape":[0],"data_offsets":[0,0]}}}} "#
        )
    };
    for (name, len) in [("a", 120), ("b", 120), ("c", 128)] {
        let text = format!("{:<len$}", header(name, 1));
        folder.file(&format!("{name}.safetensors"), safetensors(&text, &[]));
    }
    let text = format!("{:<127}", header("d", 1));
    folder.file("d.safetensors", safetensors(&text, &[]));
    let out = good(&folder, &["check", "."]);
    let remarks: Vec<&str> =
        out.lines().filter_map(|line| line.strip_prefix("      remark: ")).collect();
    let expected = [
        "4 entries have fields that are ignored (in 4 shards)",
        "8 empty tensors (in 4 shards)",
        "the header length 127 is not a multiple of 8 (in 1 shard)",
    ];
    assert_eq!(remarks, expected, "{out}");
}

#[test]
fn a_check_names_what_was_left_of_the_files_it_was_asked_about() {
    let folder = set();
    let index = format!("m/{INDEX}");
    for name in [".2.safetensors.77.partial", ".x.safetensors.8.partial", ".notes.txt"] {
        folder.file(&format!("m/{name}"), "");
    }
    folder.file("m/.1.safetensors.header-backup", "");
    let left = |arguments: &[&str]| {
        let out = good(&folder, &[&["check"], arguments].concat());
        let told = |line: &str| {
            Some(line.strip_prefix("      left behind: ")?.split(": ").next()?.to_owned())
        };
        out.lines().filter_map(told).collect::<Vec<String>>()
    };
    let (one, two) = ("m/.1.safetensors.header-backup", "m/.2.safetensors.77.partial");
    let other = "m/.x.safetensors.8.partial";
    assert_eq!(left(&["m"]), [one, two, other]);
    assert_eq!(left(&[&index]), [one, two]);
    assert_eq!(left(&["m/1.safetensors"]), [one]);
    assert_eq!(left(&["m/2.safetensors"]), [two]);
    assert_eq!(left(&["m/3.safetensors"]), [""; 0]);
    assert_eq!(left(&["m/2.safetensors", "m/1.safetensors"]), [two, one]);
    let out = good(&folder, &["check", "m/1.safetensors"]);
    assert!(out.contains("restore it by: dd conv=notrunc if=m/.1.safetensors.header-backup"));
    // Also beside a file that is bad by now, and of a file that is not there yet.
    fs::write(folder.path("m/1.safetensors"), "half a header").unwrap();
    for path in ["m/1.safetensors", "m"] {
        let (out, _, status) = run(&folder, &["check", path]);
        assert!(
            status == 1 && out.contains(&format!("left behind: {one}: the header of")),
            "{out}"
        );
    }
    let (out, _, status) = run(&folder, &["check", "m/x.safetensors"]);
    assert!(status == 1 && out.contains(&format!("left behind: {other}: what process 8")), "{out}");
    // In the folder itself, and where a link leads, as a cache of downloads has it.
    let bytes = fs::read(folder.path("m/3.safetensors")).unwrap();
    folder.file("blobs/abc", bytes);
    folder.file("blobs/.abc.5.partial", "");
    folder.file("blobs/.abd.5.partial", "");
    #[cfg(unix)]
    {
        fs::create_dir(folder.path("snapshot")).unwrap();
        let link = folder.path("snapshot/model.safetensors");
        std::os::unix::fs::symlink("../blobs/abc", link).unwrap();
        let there = folder.path("blobs/.abc.5.partial").to_str().unwrap().to_owned();
        assert_eq!(left(&["snapshot/model.safetensors"]), [&*there]);
        assert_eq!(left(&["snapshot"]), [there]);
    }
}

#[test]
fn metal_plans_each_file_and_counts_what_the_model_has() {
    let folder = set();
    let out = good(&folder, &["metal", "m", "--page", "4096"]);
    let heads: Vec<&str> = out.lines().filter(|line| line.starts_with("m/")).collect();
    let len = |name: &str| fs::metadata(folder.path(name)).unwrap().len();
    assert_eq!(
        heads,
        [
            format!("m/1.safetensors: 2 tensors, {} bytes", len("m/1.safetensors")),
            format!(
                "m/2.safetensors: 1 tensor and 1 that the index does not assign, {} bytes",
                len("m/2.safetensors")
            ),
            format!(
                "m/3.safetensors: 1 tensor and 1 that the index does not assign, {} bytes",
                len("m/3.safetensors")
            ),
        ]
    );
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let windows: Vec<Vec<String>> =
        out.lines().filter(|line| line.starts_with("0 ")).map(words).collect();
    let tensors: Vec<&str> = windows.iter().map(|window| &*window[4]).collect();
    assert_eq!(tensors, ["2", "1", "1"], "{out}");
    assert_eq!(out.matches("1 window, 0 bytes of copies, 4.0 KiB in all\n").count(), 3, "{out}");
}
