//! Do the verbs that write, hash and compare say what is true, and leave what they should?

#[path = "common/program.rs"]
mod program;

use program::{good_in, run_in};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("barest-verbs-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// A file with this header, unpadded, and this data.
    fn model(&self, name: &str, header: &str, data: &[u8]) {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes());
        bytes.extend(data);
        fs::write(self.0.join(name), bytes).unwrap();
    }

    /// A file with one tensor.
    fn one(&self, name: &str, dtype: &str, shape: &str, data: &[u8]) {
        let len = data.len();
        let header =
            format!(r#"{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{len}]}}}}"#);
        self.model(name, &header, data);
    }

    fn run(&self, arguments: &[&str]) -> (String, String, i32) {
        run_in(&self.0, arguments)
    }

    fn good(&self, arguments: &[&str]) -> String {
        good_in(&self.0, arguments)
    }

    fn bad(&self, arguments: &[&str]) -> (String, String) {
        let (out, err, status) = self.run(arguments);
        assert_eq!(status, 1, "{arguments:?}: {out}{err}");
        (out, err)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// SHA-256 of `abc`, and of nothing.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn a_hash_is_of_the_data_and_of_nothing_else() {
    let scratch = Scratch::new("hash");
    scratch.model(
        "m",
        r#"{"e":{"dtype":"U8","shape":[0],"data_offsets":[3,3]},"t\u001b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}"#,
        b"abc",
    );
    let expected = format!("{ABC}  data section, 3 bytes\n\n{ABC}  t\\u{{1b}}\n{NOTHING}  e\n");
    assert_eq!(scratch.good(&["hash", "m"]), expected);
    scratch.good(&["meta", "m", "--set", "a=b"]);
    assert_eq!(scratch.good(&["hash", "m"]), expected);
    scratch.model("empty", "{}", b"");
    assert_eq!(scratch.good(&["hash", "empty"]), format!("{NOTHING}  data section, 0 bytes\n"));
}

#[test]
fn a_hash_is_checked_against_what_the_metadata_says() {
    let scratch = Scratch::new("check");
    let zeros = "0".repeat(64);
    let upper = ABC.to_uppercase();
    for (pairs, out, err) in [
        (
            format!(r#""modelspec.hash_sha256":"0x{ABC}""#),
            "good  modelspec.hash_sha256 says so too\n".to_owned(),
            "",
        ),
        (
            format!(r#""sshs_model_hash":"{upper}""#),
            "good  sshs_model_hash says so too\n".to_owned(),
            "",
        ),
        (
            format!(r#""sshs_model_hash":"{ABC}","modelspec.hash_sha256":"0x{zeros}""#),
            format!(
                "BAD   modelspec.hash_sha256: expected {zeros}, found {ABC}\ngood  sshs_model_hash says so too\n"
            ),
            "barest: the data is not what its metadata says\n",
        ),
        (
            r#""modelspec.hash_sha256":"\u001b""#.to_owned(),
            format!("BAD   modelspec.hash_sha256: expected \\u{{1b}}, found {ABC}\n"),
            "barest: the data is not what its metadata says\n",
        ),
        (
            String::new(),
            String::new(),
            "barest: the metadata has no modelspec.hash_sha256 and no sshs_model_hash\n",
        ),
    ] {
        let header = format!(
            r#"{{"__metadata__":{{{pairs}}},"t":{{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}}}"#
        );
        scratch.model("m", &header, b"abc");
        let (found, told, status) = scratch.run(&["hash", "--check", "m"]);
        assert_eq!(found, format!("{ABC}  data section, 3 bytes\n{out}"));
        assert_eq!((&*told, status), (err, i32::from(!err.is_empty())));
    }
}

#[test]
fn the_hash_of_a_large_file_is_that_of_sha256sum() {
    let scratch = Scratch::new("large");
    let data: Vec<u8> =
        (0..5_000_011u32).map(|i| (2_654_435_761u32.wrapping_mul(i) >> 13) as u8).collect();
    scratch.one("m", "U8", "[5000011]", &data);
    fs::write(scratch.0.join("data"), &data).unwrap();
    let output = Command::new("sha256sum").arg("data").current_dir(&scratch.0).output();
    let Ok(output) = output else {
        return skip::skip("sha256sum", "nobody to ask for another opinion");
    };
    let theirs = String::from_utf8(output.stdout).unwrap();
    let ours = scratch.good(&["hash", "m"]);
    assert_eq!(ours.lines().next().unwrap()[..64], theirs[..64]);
    assert_eq!(ours.lines().last().unwrap()[..64], theirs[..64]);
}

#[test]
fn a_difference_is_told_where_it_is() {
    let scratch = Scratch::new("diff");
    scratch.one("a", "F32", "[2,3]", &f32s(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
    scratch.one("b", "F32", "[2,3]", &f32s(&[0.0, 1.0, 2.5, 3.0, 3.25, 5.0]));
    assert_eq!(scratch.good(&["diff", "a", "a"]), "1 of 1 tensor the same\n");
    let (out, err) = scratch.bad(&["diff", "a", "b"]);
    assert_eq!(err, "barest: a and b differ\n");
    assert_eq!(
        out,
        "DIFFER  DTYPE  SHAPE  ELEMENTS  LARGEST     AT\n\
         w       F32    [2,3]    2 of 6   7.5e-1  [1,1]\n\
         \n\
         0 of 1 tensor the same\n"
    );
    // Values alone, by two dtypes; not elements at all; other shapes; no floats.
    scratch.one(
        "f64",
        "F64",
        "[2,3]",
        &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0].map(f64::to_le_bytes).concat(),
    );
    scratch.one("flat", "F32", "[6]", &f32s(&[0.0; 6]));
    scratch.one("i32", "I32", "[2,3]", &[0; 24]);
    let mut other = [0; 24];
    (other[5], other[6]) = (1, 2);
    scratch.one("j32", "I32", "[2,3]", &other);
    for (one, other, row) in [
        ("a", "f64", "w       F32 | F64  [2,3]    0 of 6        -   -"),
        ("a", "flat", "w       F32    [2,3] | [6]         -        -   -"),
        ("a", "i32", "w       F32 | I32  [2,3]         -        -   -"),
        ("i32", "j32", "w       I32    [2,3]   2 bytes        -  byte 5"),
    ] {
        let (out, _) = scratch.bad(&["diff", one, other]);
        assert_eq!(out.lines().nth(1).unwrap(), row, "{one} {other}\n{out}");
    }
}

#[test]
fn tensors_and_metadata_that_one_side_lacks_are_told() {
    let scratch = Scratch::new("lacks");
    let tensor = |name: &str, at: u8| {
        format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{at},{}]}}"#, at + 1)
    };
    let header =
        format!(r#"{{"__metadata__":{{"k":"1","l":"2"}},{},{}}}"#, tensor("x", 0), tensor("y", 1));
    scratch.model("a", &header, b"12");
    // Another order of the data is no difference.
    let header =
        format!(r#"{{"__metadata__":{{"l":"2","m":"3"}},{},{}}}"#, tensor("z", 0), tensor("x", 1));
    scratch.model("b", &header, b"41");
    let (out, _) = scratch.bad(&["diff", "a", "b"]);
    assert_eq!(
        out,
        "ONLY IN A  DTYPE  SHAPE\ny          U8     [1]\n\n\
         ONLY IN B  DTYPE  SHAPE\nz          U8     [1]\n\n\
         METADATA  A  B\nk         1  -\nm         -  3\n\n\
         1 of 2 tensors the same\n"
    );
    // Metadata alone makes no other model.
    let header = format!(r#"{{{},{}}}"#, tensor("x", 0), tensor("y", 1));
    scratch.model("c", &header, b"12");
    assert!(scratch.good(&["diff", "a", "c"]).ends_with("2 of 2 tensors the same\n"));
}

#[test]
fn metadata_is_printed_whole_and_changed() {
    let scratch = Scratch::new("meta");
    scratch.model("m", r#"{"__metadata__":{"a":"\u001b[2J\n\\","":"x=y"}}"#, b"");
    assert_eq!(scratch.good(&["meta", "m"]), "a = \\u{1b}[2J\\n\\\\\n = x=y\n");
    assert_eq!(
        scratch.good(&["meta", "m", "--json"]),
        "{\n  \"a\": \"\\u001b[2J\\n\\\\\",\n  \"\": \"x=y\"\n}\n"
    );
    let out = scratch.good(&["meta", "m", "--set", "a=1=2", "--set=n=", "--unset", ""]);
    assert_eq!(out, "m: 2 pairs now, file written anew, 55 bytes\n");
    assert_eq!(scratch.good(&["meta", "m"]), "a = 1=2\nn = \n");
    let out = scratch.good(&["meta", "m", "--unset", "n", "--in-place"]);
    assert_eq!(out, "m: 1 pair now, in place\n");
    scratch.good(&["meta", "m", "--unset", "a"]);
    assert_eq!(scratch.good(&["meta", "m"]), "__metadata__ is empty\n");
    assert_eq!(scratch.good(&["meta", "m", "--json"]), "{}\n");
    scratch.model("none", "{}", b"");
    assert_eq!(scratch.good(&["meta", "none"]), "no __metadata__\n");
    assert_eq!(scratch.good(&["meta", "none", "--json"]), "null\n");

    let (_, err) = scratch.bad(&["meta", "none", "--set", "a=b", "--in-place"]);
    assert!(err.contains("does not fit in place: it needs 26 bytes, the old one has 2"), "{err}");
    let (_, err) = scratch.bad(&["meta", "none", "--unset", "a"]);
    assert_eq!(err, "barest: none: `__metadata__` has no key `a`\n");
    for arguments in [
        &["meta", "m", "--set", "a"][..],
        &["meta", "m", "--set"],
        &["meta", "m", "--in-place"],
        &["meta", "m", "--json", "--set", "a=b"],
        &["meta"],
        &["meta", "m", "none"],
        &["pack", "m"],
        &["pack", "m", "n", "--align", "24"],
        &["pack", "m", "n", "--order", "name"],
        &["pack", "m", "n", "--to", "f8"],
        &["pack", "m", "n", "--shard", "0"],
        &["diff", "m"],
        &["hash"],
    ] {
        let (out, err, status) = scratch.run(arguments);
        assert_eq!((&*out, status), ("", 2), "{arguments:?}: {err}");
        assert!(err.contains(&format!("see barest {} --help", arguments[0])), "{err}");
    }
    assert_eq!(scratch.names(), ["m", "none"]);
}

#[test]
fn what_was_left_behind_is_named_by_the_next_save() {
    let scratch = Scratch::new("left");
    scratch.model("m", r#"{"__metadata__":{"a":"b"}}      "#, b"");
    fs::write(scratch.0.join(".m.7.partial"), "").unwrap();
    let out = scratch.good(&["meta", "m", "--set", "a=c"]);
    assert!(
        out.contains("left behind: ./.m.7.partial: what process 7 had written of `./m`"),
        "{out}"
    );
    let head = fs::read(scratch.0.join("m")).unwrap();
    fs::write(scratch.0.join(".m.header-backup"), &head).unwrap();
    // The command that is told restores.
    let told = "barest: m: a change of it did not end: ./.m.header-backup: the header of `./m`";
    let (_, err) = scratch.bad(&["meta", "m", "--set", "a=d", "--in-place"]);
    assert!(err.starts_with(told), "{err}");
    assert_eq!(scratch.bad(&["meta", "m", "--set", "a=d"]).1, err);
    let (_, command) = err.split_once("restore it by: ").unwrap();
    fs::write(scratch.0.join("m"), vec![b'#'; head.len()]).unwrap();
    assert_eq!(scratch.bad(&["meta", "m", "--set", "a=d"]).1, err);
    if cfg!(unix) {
        let status = Command::new("sh")
            .args(["-c", command])
            .current_dir(&scratch.0)
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "{command}");
        assert_eq!(fs::read(scratch.0.join("m")).unwrap(), head);
        assert_eq!(scratch.names(), [".m.7.partial", "m"]);
        // Not of another file that has the name now.
        fs::write(scratch.0.join(".m.header-backup"), &head).unwrap();
        let out = scratch.good(&["pack", "m", "m"]);
        assert!(out.contains("it fits no more: remove it"), "{out}");
    }
}

#[test]
fn packing_aligns_orders_chooses_and_keeps() {
    let scratch = Scratch::new("pack");
    let header = r#"{"__metadata__":{"z":"1","a":"2"},"b.x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]},"bx":{"dtype":"F32","shape":[],"data_offsets":[7,11]}}"#;
    scratch.model("m", header, b"abc12345678");
    let out = scratch.good(&["pack", "m", "n", "--align", "4096", "--verify"]);
    assert_eq!(out, "n: 3 tensors, 11 bytes of data, verified\n");
    let bytes = fs::read(scratch.0.join("n")).unwrap();
    assert_eq!(&bytes[4096..], b"abc12345678");
    assert_eq!(scratch.good(&["meta", "n"]), "z = 1\na = 2\n");
    assert_eq!(scratch.good(&["diff", "m", "n"]), "3 of 3 tensors the same\n");

    scratch.good(&["pack", "m", "n", "--order", "reference"]);
    assert!(fs::read(scratch.0.join("n")).unwrap().ends_with(b"12345678abc"));
    assert_eq!(scratch.good(&["meta", "n"]), "a = 2\nz = 1\n");

    let out = scratch.good(&["pack", "m", "n", "--only", "b"]);
    assert_eq!(out, "n: 2 tensors, 7 bytes of data\n");
    assert!(fs::read(scratch.0.join("n")).unwrap().ends_with(b"abc1234"));
    let (_, err) = scratch.bad(&["pack", "m", "n", "--only", "c"]);
    assert_eq!(err, "barest: no tensor is `c` or below it\n");

    // Over itself.
    let before = scratch.good(&["hash", "m"]);
    scratch.good(&["pack", "m", "m", "--align", "64"]);
    assert_eq!(scratch.good(&["hash", "m"]), before);
    assert_eq!(scratch.names(), ["m", "n"]);
}

#[test]
fn packing_converts_to_the_nearest() {
    let scratch = Scratch::new("convert");
    // Of f64: by way of f32 the second would become 1.
    let tie = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
    let data: Vec<u8> = [0.1, tie, 1e39, -0.0].map(f64::to_le_bytes).concat();
    scratch.one("f64", "F64", "[4]", &data);
    scratch.one("f32", "F32", "[3]", &f32s(&[65520.0, f32::INFINITY, 1.0]));
    scratch.one("u8", "U8", "[2]", b"12");
    let out = scratch.good(&["pack", "f64", "out", "--to", "bf16"]);
    let note = "note: `w`: 1 finite values are too large for BF16 and became infinite\n";
    assert!(out.ends_with(&format!("1 of 1 tensors converted to BF16\n{note}")), "{out}");
    let values = [0x3dcdu16, 0x3f81, 0x7f80, 0x8000].map(u16::to_le_bytes).concat();
    assert!(fs::read(scratch.0.join("out")).unwrap().ends_with(&values));
    let out = scratch.good(&["pack", "f32", "out", "--to", "F16", "--verify"]);
    assert!(out.contains("1 finite values are too large for F16"), "{out}");
    let values = [0x7c00u16, 0x7c00, 0x3c00].map(u16::to_le_bytes).concat();
    assert!(fs::read(scratch.0.join("out")).unwrap().ends_with(&values));
    let out = scratch.good(&["pack", "u8", "out", "--to", "f32"]);
    assert!(out.ends_with("0 of 1 tensors converted to F32, 1 stay what they are\n"), "{out}");
    scratch.good(&["pack", "out", "u8", "--to", "f32"]);
    assert_eq!(scratch.good(&["diff", "u8", "out"]), "1 of 1 tensor the same\n");
}

#[test]
fn packing_splits_and_tells_which_tensor_is_where() {
    let scratch = Scratch::new("shards");
    let header = r#"{"__metadata__":{"k":"v"},"c":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"a\n":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},"large":{"dtype":"U8","shape":[9],"data_offsets":[5,14]},"d":{"dtype":"U8","shape":[5],"data_offsets":[14,19]}}"#;
    scratch.model("m", header, b"ccc22lllllllll-----");
    let out = scratch.good(&["pack", "m", "d", "--shard", "5"]);
    let file = |number| format!("d/model-0000{number}-of-00003.safetensors");
    assert_eq!(
        out,
        format!(
            "{}: 2 tensors, 5 bytes of data\n{}: 1 tensor, 9 bytes of data\n{}: 1 tensor, 5 bytes of data\n3 files, 19 bytes of data in all\n",
            file(1),
            file(2),
            file(3)
        )
    );
    let index = fs::read_to_string(scratch.0.join("d/model.safetensors.index.json")).unwrap();
    assert_eq!(
        index,
        "{\n  \"metadata\": {\"total_size\": 19},\n  \"weight_map\": {\n    \
         \"a\\n\": \"model-00001-of-00003.safetensors\",\n    \
         \"c\": \"model-00001-of-00003.safetensors\",\n    \
         \"d\": \"model-00003-of-00003.safetensors\",\n    \
         \"large\": \"model-00002-of-00003.safetensors\"\n  }\n}\n"
    );
    assert_eq!(scratch.good(&["meta", &file(2)]), "k = v\n");
    assert_eq!(
        scratch.good(&["hash", &file(3)])[..64],
        scratch.good(&["hash", "m"]).lines().last().unwrap()[..64]
    );
    // Never among the files of another model.
    let (_, err) = scratch.bad(&["pack", "m", "d", "--shard", "5"]);
    assert!(err.starts_with("barest: d has a model in it: model"), "{err}");
    let out = scratch.good(&["pack", "m", "e", "--shard", "1GB"]);
    assert_eq!(out, "e/model.safetensors: 4 tensors, 19 bytes of data\n");
    assert_eq!(fs::read_dir(scratch.0.join("e")).unwrap().count(), 1);
}

/// What a shell can limit without any rights: the size of a file.
#[cfg(unix)]
#[test]
fn a_file_that_may_not_grow_loses_nothing() {
    let scratch = Scratch::new("limit");
    let data = vec![7; 300_000];
    scratch.one("m", "U8", "[300000]", &data);
    let old = fs::read(scratch.0.join("m")).unwrap();
    let header = r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[300000],"data_offsets":[4,300004]}}"#;
    scratch.model("two", header, &[7; 300_004]);
    for arguments in [
        "meta m --set a=b",
        "pack m m",
        "pack m n",
        "pack m m --to f32 --verify",
        // Here one file and the index are written before it fails.
        "pack two d --shard 4",
    ] {
        let script = format!("trap '' XFSZ; ulimit -f 300; exec \"$1\" {arguments}");
        let output = Command::new("sh")
            .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_barest")])
            .current_dir(&scratch.0)
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {err}");
        assert!(err.contains("cannot write: "), "{arguments}: {err}");
        assert_eq!(scratch.names(), ["m", "two"], "{arguments}");
        assert!(fs::read(scratch.0.join("m")).unwrap() == old, "{arguments}");
    }
}

#[path = "../src/barest/skip.rs"]
mod skip;
