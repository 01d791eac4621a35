//! An index comes from the same place as the shards: does it get what it deserves?

use crate::counting::peak_of;
use crate::files::{Folder, INDEX, index, shard, shard_with};
use crate::ways::{Tensor, lines, open, open_files};
use barest::{ErrorKind, Index, OpenOptions};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// What is said of an index with this text, beside two shards; without its path.
fn said(text: impl AsRef<[u8]>) -> String {
    let folder = Folder::new();
    folder.shard("s", &[("a", &[1]), ("\"\u{1b}\u{e9}", &[2])]);
    folder.shard("t", &[("a", &[3])]);
    let path = folder.file(INDEX, text);
    match open(&folder.0) {
        Ok(told) => {
            format!("{:?}", told.tensors.iter().map(|t| (&t.name, &t.bytes)).collect::<Vec<_>>())
        }
        Err(error) => {
            let line = lines(&error).join("\n");
            line.replace(&format!("{}: ", path.display()), "")
        }
    }
}

#[test]
fn a_name_stands_in_the_index_once() {
    let again = |first| {
        format!(
            "tensor `a`: duplicate entry in `weight_map`, first at 16, again, at offset {first}"
        )
    };
    // For the same shard, for another, and by an escape.
    assert_eq!(said(r#"{"weight_map":{"a":"s","a":"s"}}"#), again(24));
    assert_eq!(said(r#"{"weight_map":{"a":"s","a":"t"}}"#), again(24));
    assert_eq!(said(r#"{"weight_map":{"a":"t","\u0061":"s"}}"#), again(24));
    assert_eq!(said(r#"{"weight_map":{"a":"s","\u0061":"\u0073"}}"#), again(24));
    // Twice again: once more for each.
    assert_eq!(
        said(r#"{"weight_map":{"a":"s","a":"s","a":"s"}}"#),
        format!("{}\n{}", again(24), again(32))
    );
}

#[test]
fn names_with_escapes_are_found() {
    let index = r#"{"weight_map":{"\"\u001b\u00e9":"\u0073"}}"#;
    assert_eq!(said(index), format!("{:?}", [("\"\u{1b}\u{e9}", [2])]));
    let index = r#"{"weight_map":{"\u001b[2J":"s"}}"#;
    let told =
        "tensor `\\u{1b}[2J`: the index assigns it to s, which does not hold it; no shard does";
    assert_eq!(said(index), format!("{told}, at offset 16"));
    let index = r#"{"weight_map":{"a":"..\u002f\u001b"}}"#;
    let told = "`weight_map` names the shard `../\\u{1b}`, which leads out of the directory";
    assert_eq!(said(index), format!("tensor `a`: {told}, at offset 20"));
}

#[test]
fn what_is_no_json_or_of_another_type_is_refused_with_its_place() {
    let utf_16: Vec<u8> = "{\"weight_map\":{}}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let deep = format!("{{\"x\":{}{},\"weight_map\":{{}}}}", "[".repeat(127), "]".repeat(127));
    let deep_in = format!("{{\"metadata\":{{\"x\":{}1{}}}}}", "[".repeat(126), "]".repeat(126));
    for (text, told) in [
        (
            "\u{feff}{\"weight_map\":{}}".as_bytes(),
            "expected `{` to begin the index, found byte 0xef, at offset 0",
        ),
        (
            &[b"\xff\xfe", &utf_16[..]].concat(),
            "text in UTF-16, not the index of a sharded model: download the file again and look at what the server answered",
        ),
        // Without a mark it is text with NULs in it.
        (&utf_16, "expected a key in quotes, found byte 0x00, at offset 1"),
        (b"{\0", "expected a key in quotes, found byte 0x00, at offset 1"),
        (b"{\"weight_map\":{\"a\xff\":\"s\"}}", "the index is not UTF-8: byte 0xff, at offset 17"),
        (deep.as_bytes(), "nested too deep: more than 127 arrays and objects, at offset 131"),
        (deep_in.as_bytes(), "nested too deep: more than 127 arrays and objects, at offset 142"),
        (b"[{\"weight_map\":{}}]", "expected `{` to begin the index, found `[`, at offset 0"),
        (
            b"{\"weight_map\":\"s\"}",
            "`weight_map` must be an object of strings, found a string, at offset 14",
        ),
        (
            b"{\"weight_map\":{\"a\":[\"s\"]}}",
            "tensor `a`: the shard of a tensor must be a string, found an array, at offset 19",
        ),
        (
            b"{\"weight_map\":{\"a\":{}}}",
            "tensor `a`: the shard of a tensor must be a string, found an object, at offset 19",
        ),
        (
            b"{\"weight_map\":{\"a\":true}}",
            "tensor `a`: the shard of a tensor must be a string, found a boolean, at offset 19",
        ),
        (b"{\"weight_map\":{\"a\":}}", "tensor `a`: expected a string, found `}`, at offset 19"),
        (
            b"{\"weight_map\":{a:\"s\"}}",
            "expected a tensor's name in quotes, found `a`, at offset 15",
        ),
        (
            b"{\"weight_map\":null}",
            "`weight_map` must be an object of strings, found null, at offset 14",
        ),
        (
            b"{\"weight_map\":{}",
            "expected `,` or `}` in the index, found the end of the text, at offset 16",
        ),
        (b"{\"metadata\":{\"total_size\":}}", "expected a JSON value, found `}`, at offset 26"),
        (
            b"{\"weight_map\":{},\"weight_\\u006dap\":{}}",
            "duplicate field `weight_map`, first at 2, again, at offset 18",
        ),
    ] {
        assert_eq!(said(text), told, "{}", String::from_utf8_lossy(text));
    }
    // One level less is ignored.
    let less = format!("{{\"x\":{}{},\"weight_map\":{{}}}}", "[".repeat(126), "]".repeat(126));
    assert_eq!(said(less), "[]");
}

#[test]
fn no_shard_at_all_is_a_model_without_tensors() {
    let folder = Folder::new();
    folder.shard("s.safetensors", &[("a", &[1])]);
    folder.file(INDEX, "{\"weight_map\":{}}");
    let told = open(&folder.0).unwrap();
    assert_eq!((told.names(), told.shards.len()), (vec![], 0));
    assert_eq!(told.ignored_names(), ["s.safetensors"]);
    let none = open_files(&[]).unwrap();
    assert_eq!((none.names(), none.shards.len()), (vec![], 0));
    let index = Index::open(&folder.0).unwrap();
    assert!(index.is_empty() && !Index::open(folder.path("s.safetensors")).unwrap().is_empty());
    assert_eq!(format!("{index:?}"), "[]");
    let model = index.read().unwrap();
    assert!(model.is_empty() && model.metadata(0).is_none() && model.backing(0).is_none());
    let told = "tensor `a`: no such tensor among 0";
    assert!(model.tensor("a").unwrap_err().to_string().ends_with(told));
}

#[test]
fn a_shard_of_an_index_shows_its_path_and_has_its_metadata() {
    let folder = Folder::new();
    let path = folder.file("m", shard_with(r#""__metadata__":{"k":"v"},"#, &[("a", &[1, 2])]));
    let index = Index::open(&path).unwrap();
    let [file] = index.shards() else { panic!("{index:?}") };
    assert_eq!(file.metadata().unwrap().get("k").as_deref(), Some("v"));
    let told = format!("ShardFile({}, Header(1 tensors, 2 bytes of data))", path.display());
    assert_eq!(format!("{file:?}"), told);
}

/// Where the next tensor stands is guessed, and a guess is no more than that.
#[test]
fn an_index_may_name_the_tensors_of_a_shard_in_any_order() {
    const COUNT: usize = 12;
    let folder = Folder::new();
    let names: Vec<String> = (0..COUNT).map(|number| format!("t{number:02}")).collect();
    let bytes: Vec<[u8; 1]> = (0..COUNT as u8).map(|number| [number]).collect();
    let tensors: Vec<(&str, &[u8])> =
        names.iter().zip(&bytes).map(|(name, bytes)| (&**name, &bytes[..])).collect();
    folder.shard("s", &tensors);
    for step in [1, 5, 7, 11] {
        let name = |place: usize| &*names[place * step % COUNT];
        let entries: Vec<(&str, &str)> = (0..COUNT).map(|place| (name(place), "s")).collect();
        folder.index(&entries);
        let told = open(&folder.0).unwrap();
        assert_eq!(told.names(), names, "by steps of {step}");
        assert!(names.iter().zip(&bytes).all(|(name, bytes)| told.bytes(name) == bytes));
    }
}

/// Whoever opens a folder with one file, or a list of one, asks that file.
#[test]
fn an_only_file_is_what_errors_name_and_of_several_the_folder() {
    let folder = Folder::new();
    let one = folder.shard("a.safetensors", &[("a", &[1])]);
    let path_of = |index: barest::Result<Index>| {
        let error = index.unwrap().tensor("z").unwrap_err();
        error.path().map(PathBuf::from)
    };
    assert_eq!(path_of(Index::open(&folder.0)).as_ref(), Some(&one));
    assert_eq!(path_of(Index::open_files(&[&one])).as_ref(), Some(&one));
    let other = folder.shard("b.safetensors", &[("b", &[1])]);
    assert_eq!(path_of(Index::open(&folder.0)).as_ref(), Some(&folder.0));
    assert_eq!(path_of(Index::open_files(&[one, other])), None);
}

#[test]
fn a_file_given_twice_is_named_twice() {
    let folder = Folder::new();
    let path = folder.shard("a.safetensors", &[("a", &[1]), ("b", &[1])]);
    let error = open_files(&[path.clone(), path.clone()]).unwrap_err();
    assert_eq!(error.faults().len(), 2);
    for fault in error.faults() {
        let ErrorKind::DuplicateInShards { other, .. } = fault.kind() else { panic!("{fault}") };
        assert_eq!((fault.path(), other), (Some(&*path), &path));
    }
    // One that holds nothing may be.
    let path = folder.shard("empty.safetensors", &[]);
    assert_eq!(open_files(&[path.clone(), path]).unwrap().shards.len(), 2);
}

#[test]
fn what_the_index_does_not_assign_is_hidden_and_counted() {
    let folder = Folder::new();
    folder.shard("1", &[("a", &[1]), ("b", &[2]), ("c", &[3])]);
    folder.shard("2", &[("b", &[4]), ("c", &[5]), ("d", &[6])]);
    folder.file(
        INDEX,
        r#"{"metadata":{"total_size":18446744073709551615},"weight_map":{"c":"2","b":"2","a":"1"}}"#,
    );
    let told = open(&folder.0).unwrap();
    let shown: Vec<(&str, usize, &[u8])> =
        told.tensors.iter().map(|t| (&*t.name, t.shard, &*t.bytes)).collect();
    assert_eq!(shown, [("a", 0, &[1][..]), ("b", 1, &[4]), ("c", 1, &[5])]);
    assert_eq!((told.unassigned, told.total_size), (3, Some(u64::MAX)));
    let model = Index::open(&folder.0).unwrap().read().unwrap();
    assert!(model.get("d").is_none());
    // What is hidden is not suggested either.
    let error = model.tensor("d").unwrap_err();
    let ErrorKind::NotFound { nearest, among: 3 } = error.kind() else { panic!("{error}") };
    assert_ne!(nearest.as_deref(), Some("d"));
}

#[test]
fn shards_lie_in_folders_below_and_have_any_name() {
    let folder = Folder::new();
    folder.shard("deep/er/x", &[("x", &[1])]);
    folder.shard("unet/model.safetensors", &[("u", &[2])]);
    folder.shard("vae/model.safetensors", &[("v", &[3])]);
    folder.shard(".hidden", &[("h", &[4])]);
    folder.shard("é ü", &[("e", &[5])]);
    folder.index(&[
        ("v", "vae/model.safetensors"),
        ("x", "deep/er/x"),
        ("h", ".hidden"),
        ("u", "unet/model.safetensors"),
        ("e", "é ü"),
    ]);
    let told = open(&folder.0).unwrap();
    // By the names of the shards, byte by byte.
    assert_eq!(told.names(), ["h", "x", "u", "v", "e"]);
    assert_eq!(
        told.tensors[3],
        Tensor { name: "v".into(), shard: 3, range: told.tensors[3].range.clone(), bytes: vec![3] }
    );
    assert_eq!(told.shards[1], folder.path("deep/er/x"));
}

#[test]
fn a_shard_by_two_spellings_is_one_that_the_index_names() {
    let folder = Folder::new();
    folder.shard("s.safetensors", &[("a", &[1]), ("b", &[2])]);
    folder.index(&[("a", "./s.safetensors"), ("b", ".//s.safetensors")]);
    let told = open(&folder.0).unwrap();
    assert_eq!((told.bytes("a"), told.bytes("b")), (&[1][..], &[2][..]));
    assert_eq!(told.ignored_names(), [""; 0]);
}

#[test]
fn of_several_indexes_none_is_guessed() {
    let folder = Folder::new();
    folder.shard("a", &[("a", &[1])]);
    let one = folder.file("model.safetensors.index.json", index(&[("a", "a")]));
    folder.file("model.fp16.safetensors.index.json", index(&[("a", "a")]));
    let error = open(&folder.0).unwrap_err();
    let told = "several indexes in this directory, open one of them: model.fp16.safetensors.index.json, model.safetensors.index.json";
    assert_eq!(error.to_string(), format!("{}: {told}", folder.0.display()));
    assert!(matches!(error.kind(), ErrorKind::SeveralIndexes { .. }));
    assert_eq!(open(&one).unwrap().names(), ["a"]);
}

#[test]
fn hidden_files_are_no_part_of_a_directory_s_model() {
    let folder = Folder::new();
    folder.shard("a.safetensors", &[("a", &[1])]);
    folder.shard(".a.safetensors", &[("a", &[2])]);
    folder.file("._a.safetensors", "what macOS leaves on foreign disks");
    folder.file(".model.safetensors.index.json", "");
    let told = open(&folder.0).unwrap();
    assert_eq!((told.shard_names(), told.bytes("a")), (vec!["a.safetensors".into()], &[1][..]));
}

#[test]
fn a_directory_is_one_whatever_its_name() {
    let folder = Folder::new();
    folder.shard("x.json/model.safetensors", &[("a", &[1])]);
    assert_eq!(open(&folder.path("x.json")).unwrap().names(), ["a"]);
    // In the place of an index or a shard it is none.
    folder.shard(&format!("y/{INDEX}/model.safetensors"), &[("a", &[1])]);
    let error = open(&folder.path("y")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotAFile { found: "a directory" }), "{error}");
    fs::create_dir_all(folder.path("z/m.safetensors")).unwrap();
    let error = open(&folder.path("z")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotAFile { found: "a directory" }), "{error}");
    assert_eq!(error.path(), Some(&*folder.path("z/m.safetensors")));
}

#[test]
fn an_index_is_known_by_the_end_of_its_name() {
    let folder = Folder::new();
    folder.shard("s", &[("a", &[1])]);
    for name in ["i.json", "I.JSON", "model.safetensors.index.json"] {
        let path = folder.file(name, index(&[("a", "s")]));
        assert_eq!(open(&path).unwrap().names(), ["a"], "{name}");
    }
    let path = folder.file("index.txt", index(&[("a", "s")]));
    let error = open(&path).unwrap_err();
    assert!(error.to_string().contains("give it a name that ends in .json"), "{error}");
    // A link's own name counts, and the shards lie beside the link.
    let other = Folder::new();
    other.shard("s", &[("a", &[2])]);
    symlink(folder.path("i.json"), other.path("linked.json")).unwrap();
    assert_eq!(open(&other.path("linked.json")).unwrap().bytes("a"), [2]);
    // A relative path without a directory in front means the current one.
    let bare = PathBuf::from("no-such-index.json");
    let error = open(&bare).unwrap_err();
    assert_eq!(error.path(), Some(&*bare));
}

#[test]
fn an_index_of_nine_megabytes_is_read_and_the_cap_holds_for_it() {
    let folder = Folder::new();
    // One tensor is there, and 9 MB of entries are not.
    folder.shard("s", &[("a", &[1])]);
    let mut text = "{\"weight_map\":{\"a\":\"s\"".to_owned();
    let mut count = 0;
    while text.len() < 9_000_000 {
        text += &format!(",\"model.layers.{count}.self_attn.q_proj.weight\":\"s\"");
        count += 1;
    }
    text += "}}";
    let path = folder.file(INDEX, &text);
    let (outcome, peak) = peak_of(|| Index::open(&folder.0));
    let error = outcome.unwrap_err();
    let ErrorKind::Faults { more, faults, .. } = error.kind() else { panic!("{error}") };
    assert_eq!(faults.len() + more, count);
    assert!(peak < 4 * text.len(), "{peak} bytes for an index of {}", text.len());

    let mut options = OpenOptions::new();
    let error = options.header_cap(text.len() as u32 - 1).index(&path).unwrap_err();
    let ErrorKind::IndexTooLong { expected, found } = *error.kind() else { panic!("{error}") };
    assert_eq!((expected, found), (text.len() as u64 - 1, text.len() as u64));
    let error = options.header_cap(text.len() as u32).index(&path).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Faults { .. }), "{error}");
}

/// Nobody would wait for these if each entry looked at all others.
#[test]
fn the_work_grows_with_the_index_and_not_with_its_square() {
    const MANY: usize = 60_000;
    let name = |number: usize| format!("{number:05}");
    // 1. Each entry names a shard of its own, and none is there.
    let folder = Folder::new();
    let mut text = "{\"weight_map\":{".to_owned();
    for number in 0..MANY {
        text += &format!("{}\"{number:05}\":\"{number:05}\"", if number > 0 { "," } else { "" });
    }
    folder.file(INDEX, text + "}}");
    let (outcome, peak) = peak_of(|| {
        let mut options = OpenOptions::new();
        options.read_threads(1.try_into().unwrap()).index(&folder.0)
    });
    let error = outcome.unwrap_err();
    assert!(error.to_string().contains(&format!("{MANY} faults")), "{error}");
    assert!(peak < MANY * 200, "{peak} bytes for {MANY} shards");

    // 2. Each name stands for both of two shards that hold it.
    let names: Vec<String> = (0..MANY).map(name).collect();
    let all: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &[][..])).collect();
    let folder = Folder::new();
    folder.file("s", shard(&all));
    folder.file("t", shard(&all));
    let both = ["s", "t"].map(|shard| names.iter().map(move |name| (&**name, shard)));
    let entries: Vec<(&str, &str)> = both.into_iter().flatten().collect();
    folder.index(&entries);
    let error = Index::open(&folder.0).unwrap_err();
    assert!(error.to_string().contains(&format!("{MANY} faults")), "{error}");
}
