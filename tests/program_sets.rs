//! Does each verb take a directory or an index wherever it takes a file?

#[path = "common/files.rs"]
mod files;
#[path = "common/json.rs"]
mod json;

#[path = "common/program.rs"]
mod program;

use files::{Folder, INDEX, index, offset_of, safetensors, shard, shard_with};
use json::Json;
use program::{barest, good, run, told};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::Stdio;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

const PT: &str = r#""__metadata__":{"format":"pt"},"#;

/// Three layers in two shards; each shard has a tensor that the index leaves out.
fn set() -> Folder {
    let folder = Folder::new();
    let one: &[(&str, &[u8])] =
        &[("model.embed", &[1, 2, 3]), ("model.layers.0.a", &[4]), ("model.layers.0.b", &[5, 6])];
    let two: &[(&str, &[u8])] =
        &[("model.layers.1.a", &[7]), ("model.layers.1.b", &[8, 9]), ("left.out", &[0])];
    folder.file("one.safetensors", shard_with(PT, one));
    folder.file("two.safetensors", shard_with(PT, two));
    folder.shard("beside.safetensors", &[("x", &[1])]);
    let entries = |shard, tensors: &[(&'static str, &[u8])]| {
        tensors.iter().map(|(name, _)| (*name, shard)).collect::<Vec<(&str, &str)>>()
    };
    let all = [entries("two.safetensors", &two[..2]), entries("one.safetensors", one)].concat();
    folder.index(&all);
    folder
}

/// The words of a line.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The words of the line that begins with this word, which only one does.
fn row<'a>(out: &'a str, first: &str) -> Vec<&'a str> {
    let mut rows = out.lines().map(words).filter(|words| words.first() == Some(&first));
    let row = rows.next().unwrap_or_else(|| panic!("no {first} in {out}"));
    assert_eq!(rows.next(), None, "{first} twice in {out}");
    row
}

#[test]
fn ls_lists_a_directory_or_an_index_as_one_model() {
    let folder = set();
    for path in [text(&folder.0), text(&folder.path(INDEX))] {
        let out = good(&["ls", path]);
        let names: Vec<&str> = out.lines().map_while(|line| words(line).first().copied()).collect();
        let tensors = [
            "model.embed",
            "model.layers.0.a",
            "model.layers.0.b",
            "model.layers.1.a",
            "model.layers.1.b",
        ];
        assert_eq!(names, [&["NAME"][..], &tensors].concat(), "{out}");
        assert_eq!(
            row(&out, "NAME"),
            ["NAME", "DTYPE", "SHAPE", "BYTES", "SHARD", "FROM", "TO", "ALIGN"]
        );
        let two = fs::read(folder.path("two.safetensors")).unwrap();
        let at = (two.len() - 4).to_string();
        let end = (two.len() - 3).to_string();
        assert_eq!(
            row(&out, "model.layers.1.a")[..7],
            ["model.layers.1.a", "U8", "[1]", "1", "1", &at, &end]
        );
        assert_eq!(row(&out, "model.embed")[3..5], ["3", "0"]);
        assert_eq!(row(&out, "all"), ["all", "5", "9", "9"]);
        assert!(
            out.contains("9 parameters in 9 bytes of data, behind the headers of 2 shards, of "),
            "{out}"
        );
        let one = fs::metadata(folder.path("one.safetensors")).unwrap().len().to_string();
        assert_eq!(row(&out, "one.safetensors"), ["one.safetensors", "0", "3", &one]);
        assert!(out.contains(&format!("index: {INDEX}\n")), "{out}");
        assert!(
            out.contains("1 tensor of the shards is not assigned to them by the index"),
            "{out}"
        );
        let ignored = out.contains("ignored beside it: beside.safetensors\n");
        assert_eq!(ignored, path == text(&folder.0), "{out}");
        // Said once, since each shard says the same.
        assert!(out.ends_with("__metadata__ in each shard, 1 pair\n  format = pt\n"), "{out}");
        let by_name = good(&["ls", path, "--by", "name"]);
        assert_eq!(row(&by_name, "all"), row(&out, "all"));
    }
}

#[test]
fn a_directory_with_one_file_is_listed_with_its_name_and_the_file_itself_without() {
    let folder = Folder::new();
    let path = folder.file("only.safetensors", shard_with(PT, &[("a", &[1])]));
    let of_file = good(&["ls", text(&path)]);
    assert!(!of_file.contains("only.safetensors") && !of_file.contains("SHARD"), "{of_file}");
    assert!(of_file.ends_with("\n__metadata__, 1 pair\n  format = pt\n"), "{of_file}");
    let of_folder = good(&["ls", text(&folder.0)]);
    assert_eq!(row(&of_folder, "only.safetensors")[1..3], ["0", "1"]);
    assert!(!row(&of_folder, "NAME").contains(&"SHARD"), "{of_folder}");
}

#[test]
fn metadata_that_differs_is_told_for_each_shard() {
    let folder = Folder::new();
    folder.file("1.safetensors", shard_with(PT, &[("a", &[1])]));
    folder.shard("2.safetensors", &[("b", &[1])]);
    let mlx = r#""__metadata__":{"format":"mlx","by":"x\u001b"},"#;
    folder.file("3.safetensors", shard_with(mlx, &[("c", &[1])]));
    let out = good(&["ls", text(&folder.0)]);
    let told = "__metadata__ in shard 0, 1 pair\n  format = pt\nno __metadata__ in shard 1\n\
                __metadata__ in shard 2, 2 pairs\n  format = mlx\n  by = x\\u{1b}\n";
    assert!(out.ends_with(told), "{out}");

    let none = Folder::new();
    none.shard("1.safetensors", &[("a", &[1])]);
    none.shard("2.safetensors", &[("b", &[1])]);
    assert!(good(&["ls", text(&none.0)]).ends_with("\nno __metadata__ in each shard\n"));

    let json = Json::read(&good(&["ls", text(&folder.0), "--json"]));
    assert_eq!(json.keys(), ["tensors", "shards"]);
    let shards = json.get("shards").list();
    assert_eq!(shards.len(), 3);
    assert_eq!(shards[2].get("file").text(), text(&folder.path("3.safetensors")));
    assert_eq!(shards[1].get("metadata"), &Json::Null);
    assert_eq!(shards[2].get("metadata").keys(), ["format", "by"]);
    assert_eq!(shards[2].get("metadata").get("by").text(), "x\u{1b}");
}

#[test]
fn ls_groups_by_as_many_parts_of_a_name_as_are_asked_for() {
    let folder = set();
    let path = text(&folder.0);
    let rows = |depth: &str| -> Vec<(String, u64, u64)> {
        let out = good(&["ls", path, "--depth", depth]);
        let lines = out.lines().skip(1).take_while(|line| !line.is_empty());
        let rows: Vec<(String, u64, u64)> = lines
            .map(|line| {
                let words = words(line);
                assert_eq!(words[4..], ["U8"], "{out}");
                (words[0].to_owned(), words[1].parse().unwrap(), words[3].parse().unwrap())
            })
            .collect();
        assert_eq!(row(&out, "all"), ["all", "5", "9", "9"]);
        let json = Json::read(&good(&["ls", path, "--json", "--depth", depth]));
        assert_eq!(json.keys(), ["groups", "shards"]);
        let groups = json.get("groups").list().iter();
        let of_json: Vec<(String, u64, u64)> = groups
            .map(|group| {
                assert_eq!(group.get("elements"), group.get("bytes"));
                let numbers = (group.get("tensors").number(), group.get("bytes").number());
                (group.get("name").text().to_owned(), numbers.0, numbers.1)
            })
            .collect();
        assert_eq!(rows, of_json);
        rows
    };
    let row = |name: &str, tensors, bytes| (name.to_owned(), tensors, bytes);
    assert_eq!(rows("1"), [row("model", 5, 9)]);
    assert_eq!(rows("2"), [row("model.embed", 1, 3), row("model.layers", 4, 6)]);
    let layers =
        [row("model.embed", 1, 3), row("model.layers.0", 2, 3), row("model.layers.1", 2, 3)];
    assert_eq!(rows("3"), layers);
    assert_eq!(rows("9").len(), 5);
    for depth in ["0", "-1", "x", "", "1.5"] {
        let (out, err, status) = run(&["ls", path, "--depth", depth]);
        assert_eq!((&*out, status), ("", 2), "{depth}");
        assert!(err.contains("--depth takes a number"), "{err}");
    }
}

#[test]
fn json_names_the_file_of_each_tensor() {
    let folder = set();
    let json = Json::read(&good(&["ls", text(&folder.0), "--json"]));
    let tensors = json.get("tensors").list();
    assert_eq!(tensors.len(), 5);
    for (tensor, expected) in tensors.iter().zip([&[1, 2, 3][..], &[4], &[5, 6], &[7], &[8, 9]]) {
        let file = fs::read(tensor.get("file").text()).unwrap();
        let range = tensor.get("file_range").list();
        let (begin, end) = (range[0].number() as usize, range[1].number() as usize);
        assert_eq!(file[begin..end], *expected);
        assert_eq!(tensor.get("dtype").text(), "U8");
        assert_eq!(tensor.get("shape").list()[0].number() as usize, expected.len());
    }
    // Odd names come back as they are.
    let odd = Folder::new();
    let name = "a\"\\\u{1b}\u{202e}\u{1f600}\n";
    odd.shard("o\"d.safetensors", &[(name, &[1])]);
    let json = Json::read(&good(&["ls", text(&odd.0), "--json"]));
    let tensor = &json.get("tensors").list()[0];
    assert_eq!(tensor.get("name").text(), name);
    assert_eq!(tensor.get("file").text(), text(&odd.path("o\"d.safetensors")));
    assert_eq!(json.get("metadata"), &Json::Null);
    let json = Json::read(&good(&["ls", text(&odd.0), "--json", "--depth", "1"]));
    assert_eq!(json.get("groups").list()[0].get("name").text(), name);
    // No shard at all.
    let none = Folder::new();
    none.file(INDEX, "{\"weight_map\":{}}");
    let json = Json::read(&good(&["ls", text(&none.0), "--json"]));
    assert_eq!((json.get("tensors").list(), json.get("shards").list()), (&[][..], &[][..]));
    let out = good(&["ls", text(&none.0)]);
    assert_eq!(row(&out, "all"), ["all", "0", "0", "0"]);
}

#[test]
fn dump_and_layout_take_a_directory_or_an_index() {
    let folder = set();
    for path in [text(&folder.0), text(&folder.path(INDEX))] {
        let json = Json::read(&good(&["dump", path, "model.layers.1.b", "--json"]));
        let values: Vec<u64> = json.get("values").list().iter().map(Json::number).collect();
        assert_eq!(values, [8, 9]);
        let (out, err, status) = run(&["dump", path, "model.layers.1.c"]);
        assert_eq!((&*out, status), ("", 1));
        assert!(err.contains("among 5; the nearest name is `model.layers."), "{err}");
        let (_, err, status) = run(&["dump", path, "left.out"]);
        assert_eq!(status, 1, "what the index leaves out is shown: {err}");

        let (out, err, status) = run(&["layout", path]);
        assert_eq!((&*err, status), ("", 0));
        assert!(out.contains("model.embed") && out.contains("model.layers"), "{out}");
    }
}

#[test]
fn check_of_a_good_set_has_one_line_and_remarks() {
    let folder = set();
    let path = text(&folder.0);
    let out = good(&["check", path]);
    let first = format!("good  {path}: 5 tensors in 2 shards, 9 bytes of data");
    assert_eq!(out.lines().next(), Some(&*first));
    assert!(out.contains("      ignored beside it: beside.safetensors\n"), "{out}");
    assert!(out.contains("      1 tensor of the shards is not assigned"), "{out}");
    assert!(!out.contains("total_size"), "{out}");
    let with_total = |total: u64| {
        let text = fs::read_to_string(folder.path(INDEX)).unwrap();
        let metadata = format!("{{\"metadata\":{{\"total_size\":{total}}},");
        let other = folder.file("other.json", text.replacen('{', &metadata, 1));
        good(&["check", other.to_str().unwrap()])
    };
    assert!(!with_total(9).contains("total_size"));
    let told = "      remark: the index says total_size 10, the tensors have 9 bytes\n";
    assert!(with_total(10).contains(told));
    // What is true of several shards is said once.
    let odd = Folder::new();
    for name in ["a", "b", "c"] {
        let header =
            format!(" {{\"{name}\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}}}");
        odd.file(&format!("{name}.safetensors"), safetensors(&header, &[1]));
    }
    let out = good(&["check", text(&odd.0)]);
    let remarks: Vec<&str> = out.lines().filter(|line| line.contains("remark")).collect();
    assert!(remarks.iter().any(|remark| remark.ends_with(" (in 3 shards)")), "{out}");
    let mut once = remarks.clone();
    once.dedup();
    assert_eq!(once, remarks, "{out}");
}

/// B60, and more.
#[test]
fn check_of_a_bad_set_has_a_line_for_each_fault() {
    let folder = Folder::new();
    let names: Vec<String> = (1..=6).map(|number| format!("{number}.safetensors")).collect();
    let mut entries: Vec<(&str, &str)> =
        names.iter().map(|name| (name.trim_end_matches(".safetensors"), &**name)).collect();
    for (tensor, name) in &entries[..5] {
        let mut bytes = shard(&[(tensor, &[0; 64])]);
        match *tensor {
            "2" => bytes.truncate(bytes.len() - 44),
            "4" => bytes.truncate(bytes.len() - 24),
            _ => {}
        }
        folder.file(name, bytes);
    }
    entries.push(("stale", "1.safetensors"));
    let index = folder.index(&entries);
    let good_one = folder.shard("good/model.safetensors", &[("a", &[1])]);
    let (out, err, status) = run(&["check", text(&folder.0), text(&good_one)]);
    assert_eq!((&*err, status), ("barest: 1 of 2 models are bad\n", 1));
    let bad: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("BAD   ")).collect();
    assert_eq!(bad.len(), 4, "{out}");
    for ((line, path), told) in bad
        .iter()
        .zip([&folder.path("2.safetensors"), &folder.path("4.safetensors"), &folder.path("6.safetensors"), &index])
        .zip([
            "44 bytes missing".to_owned(),
            "24 bytes missing".to_owned(),
            "shard missing: the index assigns 1 tensor to it".to_owned(),
            format!("tensor `stale`: the index assigns it to 1.safetensors, which does not hold it; no shard does, at offset {}", offset_of(&index, "stale")),
        ])
    {
        assert!(line.starts_with(&format!("{}: ", text(path))) && line.contains(&told), "{line}");
    }
    assert!(out.contains("\n      3 of 6 shards are good\n"), "{out}");
    assert!(
        out.contains(&format!("good  {}: 1 tensor, 1 byte of data\n", text(&good_one))),
        "{out}"
    );
    // Another verb lists them too.
    let (out, err, status) = run(&["ls", text(&folder.0)]);
    assert_eq!((&*out, status), ("", 1));
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines[0], format!("barest: {}: 4 faults", text(&index)));
    assert_eq!(lines[1..].iter().map(|line| line.trim_start()).collect::<Vec<_>>(), bad);
}

#[test]
fn faults_without_number_are_counted() {
    let folder = Folder::new();
    let names: Vec<String> = (0..1234).map(|number| format!("{number:04}")).collect();
    let entries: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &**name)).collect();
    folder.file(INDEX, index(&entries));
    let (_, err, _) = run(&["ls", text(&folder.0)]);
    assert!(
        err.starts_with(&format!("barest: {}: 1234 faults\n", text(&folder.path(INDEX)))),
        "{err}"
    );
    assert!(err.ends_with("\n  and 1214 more, see barest check\n"), "{err}");
    let (out, _, status) = run(&["check", text(&folder.0)]);
    assert_eq!((out.matches("BAD   ").count(), status), (1000, 1));
    assert!(out.ends_with("      and 234 more\n"), "{out}");
}

#[test]
fn a_caret_shows_the_place_in_the_index() {
    let folder = Folder::new();
    let path = folder.file(INDEX, "{\"weight_map\":{\"a\":7}}");
    for verb in ["ls", "check"] {
        let (out, err, status) = run(&[verb, text(&folder.0)]);
        let said = out + &err;
        assert_eq!(status, 1);
        let told =
            "tensor `a`: the shard of a tensor must be a string, found a number, at offset 19";
        assert!(said.contains(&format!("{}: {told}\n", text(&path))), "{said}");
        let drawn = "       0 | {\"weight_map\":{\"a\":7}}\n         |                    ^\n";
        assert!(said.contains(drawn), "{said}");
    }
}

/// Runs `ls -` and gives it these bytes, and then zeros for as long as it takes some.
fn piped(arguments: &[&str], first: &[u8], endless: bool) -> ((String, String, i32), usize) {
    let mut child = barest()
        .arg("ls")
        .args(arguments)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut given = 0;
    let zeros = [0; 4096];
    let mut next = first;
    loop {
        match pipe.write(next) {
            Ok(count) => given += count,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(error) => panic!("{error}"),
        }
        next = match next.len() {
            // The first bytes may be taken in parts.
            _ if given < first.len() => &first[given..],
            _ if endless => &zeros,
            _ => break,
        };
    }
    drop(pipe);
    (told(child.wait_with_output().unwrap()), given)
}

#[test]
fn ls_reads_a_pipe_as_far_as_the_header_goes() {
    let model = shard_with(PT, &[("a", &[1, 2, 3]), ("b", &[4])]);
    let folder = Folder::new();
    let path = folder.file("m", &model);
    let ((out, err, status), _) = piped(&[], &model, false);
    assert_eq!((&*err, status), ("", 0));
    assert_eq!(out, good(&["ls", text(&path)]));
    let ((out, ..), _) = piped(&["--json"], &model, false);
    let json = Json::read(&out);
    assert_eq!(json.get("tensors").list()[1].get("file").text(), "-");
    assert_eq!(json.get("metadata").get("format").text(), "pt");
    let ((out, ..), _) = piped(&["--depth", "1"], &model, false);
    assert_eq!(row(&out, "GROUP")[..2], ["GROUP", "TENSORS"]);

    // A stream that never ends behind the header: it is left alone.
    let header =
        r#"{"big":{"dtype":"U8","shape":[1000000000000],"data_offsets":[0,1000000000000]}}"#;
    let ((out, err, status), given) = piped(&[], &safetensors(header, b""), true);
    assert_eq!((&*err, status), ("", 0));
    assert_eq!(row(&out, "big")[1..4], ["U8", "[1000000000000]", "1000000000000"]);
    // What a pipe holds and a buffer in front of it, wherever; far from all.
    assert!(given < 1 << 20, "{given} bytes were taken");

    let ((out, err, status), _) = piped(&[], &model[..20], false);
    assert_eq!((&*out, status), ("", 1));
    assert!(err.contains("header cut short"), "{err}");
    let ((_, err, status), given) = piped(&[], b"<!DOCTYPE html>", true);
    assert_eq!(status, 1);
    assert!(err.contains("an HTML page, not a safetensors file"), "{err}");
    assert!(given < 1 << 20, "{given} bytes were taken");
}
