//! Does the program say what is true, end as it should, and keep names from the terminal?

#[cfg(unix)]
#[path = "../src/barest/skip.rs"]
mod skip;

#[path = "common/program.rs"]
mod program;

use program::{barest, run, told};
use std::fs;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::Stdio;

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let path =
            std::env::temp_dir().join(format!("barest-program-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A file with this header and so many bytes of data, each its offset.
    fn model(&self, name: &str, header: &str, data: u8) -> PathBuf {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend(0..data);
        self.write(name, &bytes)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_tour_tells_what_it_measured_and_leaves_nothing_behind() {
    let scratch = Scratch::new("tour");
    let output = barest().env("TMPDIR", &scratch.0).output().unwrap();
    let (out, err, status) = told(output);
    assert_eq!((err.as_str(), status), ("", 0));
    for told in
        ["39 tensors tile", "model.layers.2.mlp.up_proj.weight", "0x3b4a0000 = 0.0030822754"]
    {
        assert!(out.contains(told), "{told} is missing:\n{out}");
    }
    if cfg!(all(target_os = "linux", target_pointer_width = "64")) {
        assert!(out.contains("the first touch: 1 minor"), "{out}");
        assert!(out.contains("the second touch: 0 minor and 0 major"), "{out}");
        assert!(out.contains("1 before, 0 after"), "{out}");
    }
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
}

#[test]
fn the_demo_is_listed_checked_and_dumped_as_its_own_text_says() {
    let scratch = Scratch::new("demo");
    let directory = text(&scratch.0);
    let (out, _, status) = run(&["demo", directory]);
    assert_eq!(status, 0);
    let model = format!("{directory}/sample.safetensors");
    assert!(out.contains(&format!("barest ls {model}")), "{out}");

    let (out, _, status) = run(&["ls", &model]);
    assert_eq!(status, 0);
    let row = out.lines().find(|line| line.starts_with("model.layers.2.mlp.up_proj")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1..], ["BF16", "[352,128]", "90112", "1447312", "1537424", "16"]);
    assert!(out.contains("all         39   1000592  2001216"), "{out}");
    assert!(out.contains("  format = pt"), "{out}");

    let files = ["sample", "broken-cut", "broken-overlap", "broken-pointer"]
        .map(|name| format!("{directory}/{name}.safetensors"));
    let (out, err, status) = run(&["check", &files[0], &files[1], &files[2], &files[3], &files[0]]);
    assert_eq!(status, 1);
    assert_eq!(out.matches("good  ").count(), 2, "{out}");
    assert_eq!(out.matches("BAD   ").count(), 3, "{out}");
    assert!(out.contains("802157 bytes missing"), "{out}");
    assert!(out.contains("inside `model.layers.2.mlp.gate_proj.weight`"), "{out}");
    assert!(out.contains("a Git LFS pointer"), "{out}");
    assert_eq!(err, "barest: 3 of 5 models are bad\n");
    // The caret stands under the name of the tensor that is out of place.
    let mut lines = out.lines().skip_while(|line| !line.contains("data_offsets\":[1353024"));
    let (excerpt, caret) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(excerpt[caret.find('^').unwrap()..].starts_with("model.layers.2.mlp.up_proj"));

    // The same again is fine; another file of the name is not overwritten.
    assert_eq!(run(&["demo", directory]).2, 0);
    fs::write(&model, "mine").unwrap();
    let (_, err, status) = run(&["demo", directory]);
    assert_eq!(status, 1);
    assert!(err.contains("not overwritten"), "{err}");
    assert_eq!(fs::read(&model).unwrap(), b"mine");
}

#[test]
fn dump_shows_bytes_as_they_stand_and_values_as_they_are() {
    let scratch = Scratch::new("dump");
    let header = r#"{"m":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"n":{"dtype":"F32","shape":[2],"data_offsets":[12,20]},"f":{"dtype":"F4","shape":[4],"data_offsets":[20,22]},"s":{"dtype":"I64","shape":[],"data_offsets":[22,30]}}"#;
    let path = scratch.model("m.safetensors", header, 30);
    // A NaN and an infinity in the place of n.
    let mut bytes = fs::read(&path).unwrap();
    let n = 8 + header.len() + 12;
    bytes[n..n + 8].copy_from_slice(&[0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0xff]);
    fs::write(&path, bytes).unwrap();
    let path = text(&path);

    let (out, _, status) = run(&["dump", path, "m", "--row", "1", "--json"]);
    assert_eq!(status, 0);
    assert!(out.contains(r#""raw": ["0607", "0809", "0a0b"]"#), "{out}");
    // BF16 0x0706 is 1.0078e-34 and so on: what matters is that all digits are there.
    let values = out.split("\"values\": [").nth(1).unwrap().split(']').next().unwrap();
    let values: Vec<f64> = values.split(", ").map(|value| value.parse().unwrap()).collect();
    let expected = [0x0706u32, 0x0908, 0x0b0a].map(|bits| f64::from(f32::from_bits(bits << 16)));
    assert_eq!(values, expected);

    let (out, _, _) = run(&["dump", path, "n", "--json"]);
    assert!(out.contains(r#""values": ["NaN", "-Infinity"]"#), "{out}");
    assert!(out.contains(r#""raw": ["0000c07f", "000080ff"]"#), "{out}");

    let (out, _, _) = run(&["dump", path, "m", "2"]);
    assert!(out.lines().nth(2).unwrap().starts_with("[0,0]"), "{out}");
    assert!(out.lines().nth(2).unwrap().contains("0001"), "{out}");
    assert!(out.contains("… 4 more elements"), "{out}");

    let (out, _, _) = run(&["dump", path, "f", "--json"]);
    assert!(out.contains(r#""values": [2.0, 0.5, 3.0, 0.5]"#), "{out}");
    assert!(out.contains(r#""raw": ["4", "1", "5", "1"]"#), "{out}");
    let (out, _, _) = run(&["dump", path, "s"]);
    let row: Vec<&str> = out.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(row[2..], ["161718191a1b1c1d", &0x1d1c_1b1a_1918_1716_u64.to_string()]);

    let (out, _, _) = run(&["dump", path, "m", "--slice", ":,::2", "--json"]);
    assert!(out.contains(r#""shape": [2,2]"#), "{out}");
    assert!(out.contains(r#""raw": ["0001", "0405", "0607", "0a0b"]"#), "{out}");
    let (out, _, _) = run(&["dump", path, "m", "3", "--slice", ":,1:", "--json"]);
    assert!(out.contains(r#""raw": ["0203", "0405", "0809"]"#), "{out}");
    let (out, _, _) = run(&["dump", path, "m", "--slice", "0:0"]);
    assert!(out.contains("slice [0:0]: [0,3]") && out.contains("no elements"), "{out}");

    for (arguments, status, told) in [
        (&["dump", path, "m", "--row", "2"][..], 1, "expected one below 2, found 2"),
        (&["dump", path, "s", "--row", "0"], 1, "it is a scalar"),
        (&["dump", path, "f", "--row", "0"], 1, "elements of F4 share bytes"),
        (&["dump", path, "mm"], 1, "the nearest name is `m`"),
        (&["dump", path, "m", "x"], 2, "N must be a number"),
        (&["dump", path], 2, "expected PATH TENSOR [N]"),
        (&["dump", path, "m", "--row"], 2, "--row needs a value"),
        (&["dump", path, "m", "--slice", "1:0"], 1, "the range 1..0"),
        (&["dump", path, "m", "--slice", "0,0,0"], 1, "there is no axis 2"),
        (&["dump", path, "m", "--slice", "-1"], 2, "is no slice such as"),
        (&["dump", path, "m", "--slice", "0", "--row", "0"], 2, "exclude each other"),
    ] {
        let (out, err, found) = run(arguments);
        assert_eq!((out.as_str(), found), ("", status), "{arguments:?}: {err}");
        assert!(err.contains(told), "{arguments:?}: {err}");
    }
}

#[test]
fn metal_plans_windows_and_names_what_must_be_copied() {
    let scratch = Scratch::new("metal");
    // Data from byte 128 + 8 on: `odd` at 137 is no place for a BF16.
    let header = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"odd":{"dtype":"BF16","shape":[2],"data_offsets":[1,5]}}"#;
    let path = scratch.model("m.safetensors", &format!("{header:<128}"), 5);
    let path = text(&path);
    let (out, err, status) = run(&["metal", path, "--page", "4KiB", "--max-buffer", "1GiB"]);
    assert_eq!((err.as_str(), status), ("", 0));
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["WINDOW", "FROM", "TO", "BYTES", "TENSORS"]);
    assert_eq!(rows[2], ["0", "0", "4096", "4096", "1"]);
    assert_eq!(rows[4], ["odd", "BF16", "137", "4"]);
    assert!(out.contains("for pages of 4096 bytes and buffers of 1.0 GiB at most\n"), "{out}");
    assert!(out.ends_with(": this is a plan, and no buffer was made\n"), "{out}");
    if cfg!(not(target_os = "macos")) {
        let (out, _, status) = run(&["metal", path, "odd"]);
        assert_eq!(status, 0);
        let row: Vec<&str> = out.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(row, ["0", "0", "16384", "16384", "1"]);
        assert!(out.ends_with("there is no Metal here: this is a plan, and no buffer was made\n"));
    }
    for (arguments, status, told) in [
        (&["metal", path, "--page", "5000"][..], 1, "expected a power of two from 4096 on"),
        (&["metal", path, "--max-buffer", "4095"], 1, "tensor `a`: one GPU buffer can have 4095"),
        (&["metal", path, "--max-buffer", "4 GB"], 2, "takes bytes such as 16384 or 4GiB"),
        (&["metal", path, "--max-buffer", "99999999TiB"], 2, "takes bytes such as"),
        (&["metal", path, "--page", "+4096"], 2, "takes bytes such as"),
        (&["metal", path, "b"], 1, "no such tensor among 2"),
        (&["metal", path, "a", "b"], 2, "expected one path, found 3"),
        (&["metal"], 2, "expected one path, found 0"),
    ] {
        let (_, err, found) = run(arguments);
        assert_eq!(found, status, "{arguments:?}: {err}");
        assert!(err.contains(told), "{arguments:?}: {err}");
    }
}

#[test]
fn check_looks_at_values_and_says_what_it_saw() {
    let scratch = Scratch::new("values");
    let header = r#"{"f":{"dtype":"BF16","shape":[6],"data_offsets":[0,12]},"b":{"dtype":"BOOL","shape":[3],"data_offsets":[12,15]},"i":{"dtype":"I8","shape":[3],"data_offsets":[15,18]},"e":{"dtype":"F32","shape":[0],"data_offsets":[18,18]}}"#;
    let path = scratch.model("v.safetensors", header, 18);
    let mut bytes = fs::read(&path).unwrap();
    let data = 8 + header.len();
    // 0, 1, -2, infinity, NaN, -0; false, true, no boolean; -1, 0, 7.
    bytes[data..].copy_from_slice(&[
        0, 0, 0x80, 0x3f, 0, 0xc0, 0x80, 0x7f, 0xc0, 0x7f, 0, 0x80, 0, 1, 2, 255, 0, 7,
    ]);
    fs::write(&path, bytes).unwrap();
    let (out, err, status) = run(&["check", "--values", text(&path)]);
    assert_eq!((err.as_str(), status), ("", 0), "a NaN makes no file bad");
    let row = |name: &str| -> Vec<String> {
        let row = out.lines().find(|line| line.starts_with(name)).unwrap();
        row.split_whitespace().skip(1).map(str::to_owned).collect()
    };
    assert_eq!(row("f "), ["BF16", "1", "1", "2", "-2.00000", "1.00000", "3"]);
    assert_eq!(row("b "), ["BOOL", "0", "0", "1", "false", "true", "2"]);
    assert_eq!(row("i "), ["I8", "0", "0", "1", "-1", "7", "-"]);
    assert_eq!(row("e "), ["F32", "0", "0", "0", "-", "-", "-"]);
}

#[test]
fn no_name_reaches_the_terminal_raw_and_json_is_lossless() {
    let scratch = Scratch::new("names");
    let header = "{\"__metadata__\":{\"k\\u0000\":\"\\u001b]0;x\\u0007\"},\
                  \"a\\u001b[2J\\n\u{202e}\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    let path = scratch.model("odd\u{1b}[31m.safetensors", header, 1);
    let broken = scratch.model("broken\n.safetensors", &header.replace("[0,1]", "[1,2]"), 2);
    let path = text(&path);
    let name = "a\u{1b}[2J\n\u{202e}";
    for arguments in [
        &["ls", path][..],
        &["ls", path, "--json"],
        &["check", path, text(&broken)],
        &["dump", path, name],
        &["dump", path, "b\u{1b}"],
        &["\u{1b}[2J"],
        &["ls", "--\u{1b}"],
        &["ls", "no\u{1b}such"],
    ] {
        let (out, err, _) = run(arguments);
        for said in [&out, &err] {
            let raw = said.chars().find(|&c| c != '\n' && (c.is_control() || c == '\u{202e}'));
            assert_eq!(raw, None, "{arguments:?}: {said:?}");
        }
        assert!(!(out + &err).is_empty());
    }
    let (out, _, _) = run(&["ls", path, "--json"]);
    assert!(out.contains(r#""name": "a\u001b[2J\n\u202e""#), "{out}");
    assert!(out.contains(r#""k\u0000": "\u001b]0;x\u0007""#), "{out}");
    let begin = 8 + header.len();
    assert!(out.contains(&format!("\"file_range\": [{begin}, {}]", begin + 1)), "{out}");
}

#[test]
fn ls_sorts_and_tells_absent_metadata_from_empty() {
    let scratch = Scratch::new("order");
    let entry = |name, begin| {
        format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{begin},{}]}}"#, begin + 1)
    };
    let header = format!("{{{},{}}}", entry("b", 0), entry("a", 1));
    let path = scratch.model("order.safetensors", &header, 2);
    let order = |arguments: &[&str]| {
        let (out, _, _) = run(&[&["ls", text(&path)], arguments].concat());
        out.find("\na ").unwrap() < out.find("\nb ").unwrap_or(0)
    };
    assert!(!order(&[]));
    assert!(!order(&["--by", "offset"]));
    assert!(order(&["--by=name"]));

    let with = |metadata: &str| {
        let header = format!("{{{metadata}{}}}", entry("a", 0));
        let path = scratch.model("meta.safetensors", &header, 1);
        run(&["ls", text(&path), "--json"]).0.split("\"metadata\": ").nth(1).unwrap().to_owned()
    };
    assert_eq!(with(""), "null}\n");
    assert_eq!(with("\"__metadata__\":null,"), "null}\n");
    assert_eq!(with("\"__metadata__\":{},"), "{}}\n");
}

#[test]
fn help_and_misuse_end_as_they_should() {
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["ls", "--help"],
        &["ls", "-h"],
        &["check", "--help"],
        &["dump", "x", "-h"],
        &["demo", "--help"],
    ] {
        let (out, err, status) = run(arguments);
        assert_eq!((err.as_str(), status), ("", 0), "{arguments:?}");
        assert!(out.contains("barest"), "{arguments:?}: {out}");
    }
    let version = format!("barest {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["--version"]), (version, String::new(), 0));
    for arguments in [
        &["frobnicate"][..],
        &["ls"],
        &["ls", "a", "b"],
        &["ls", "--frobnicate", "a"],
        &["ls", "a", "--by", "size"],
        &["ls", "a", "--by"],
        &["check"],
        &["check", "--json", "a"],
        &["demo"],
        &["demo", "a", "b"],
        &["--json"],
        &[""],
    ] {
        let (out, err, status) = run(arguments);
        assert_eq!((out.as_str(), status), ("", 2), "{arguments:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{arguments:?}: {err}");
    }
    let (_, err, status) = run(&["ls", "--", "--help"]);
    assert_eq!(status, 1, "behind -- it is a path: {err}");
}

#[test]
fn what_is_no_file_is_named() {
    let scratch = Scratch::new("special");
    let (_, err, status) = run(&["ls", text(&scratch.0)]);
    assert_eq!(status, 1);
    assert!(err.contains("no .safetensors file and no index in this directory"), "{err}");
    let missing = scratch.0.join("missing.safetensors");
    let (_, err, status) = run(&["ls", text(&missing)]);
    assert_eq!(status, 1);
    assert!(err.contains("missing.safetensors: cannot open"), "{err}");
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_error_and_a_full_disk_is_one() {
    let scratch = Scratch::new("pipe");
    assert_eq!(run(&["demo", text(&scratch.0)]).2, 0);
    let model = scratch.0.join("sample.safetensors");
    // More than a pipe holds, and a reader that leaves at once.
    let mut child = barest()
        .args(["dump", text(&model), "model.embed_tokens.weight", "100000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let (_, err, status) = told(child.wait_with_output().unwrap());
    assert_eq!((err.as_str(), status), ("", 0));

    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        return skip::skip("/dev/full", "no device that is always full");
    };
    let output = barest().args(["ls", text(&model)]).stdout(full).output().unwrap();
    let (_, err, status) = told(output);
    assert_eq!(status, 1);
    assert!(err.contains("cannot write the output"), "{err}");
}

/// A file of a megabyte is cut a little later in each round, while its values are looked at.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_file_that_is_cut_while_it_is_checked_is_bad_and_ends_nothing() {
    let scratch = Scratch::new("cut");
    let elements = 1 << 19;
    let end = 2 * elements;
    let header =
        format!(r#"{{"w":{{"dtype":"F16","shape":[{elements}],"data_offsets":[0,{end}]}}}}"#);
    let path = scratch.model("w.safetensors", &header, 0);
    let whole = 8 + header.len() as u64 + end;
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let mut bad = 0;
    for round in 0..6 {
        file.set_len(whole).unwrap();
        let child = barest()
            .args(["check", "--values", text(&path)])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1 << round));
        file.set_len(whole / 2).unwrap();
        let (out, err, status) = told(child.wait_with_output().unwrap());
        assert_eq!(status == 1, out.contains("BAD   "), "{status}: {out}{err}");
        assert_eq!(status == 0, out.contains("FIRST BAD"), "{status}: {out}{err}");
        bad += usize::from(out.contains("lost bytes while it was mapped"));
    }
    println!("{bad} of 6 were cut while they were mapped");
}
