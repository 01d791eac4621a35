//! What people ran into with models of many files: B49 to B60, B79 (B62 is in `large.rs`, B73 in
//! `range.rs`).

use crate::files::{Folder, INDEX, offset_of, shard};
use crate::skip::skip;
use crate::ways::{self, lines, open};
use barest::{Error, ErrorKind};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// B49
#[test]
fn a_missing_shard_is_named_with_what_it_takes_along() {
    let folder = Folder::new();
    let name = |number| format!("model-0000{number}-of-00003.safetensors");
    folder.shard(&name(1), &[("t1", &[1])]);
    folder.shard(&name(3), &[("t3", &[3])]);
    let (one, two, three) = (name(1), name(2), name(3));
    let index = folder.index(&[("t1", &one), ("t2", &two), ("t2b", &two), ("t3", &three)]);
    for path in [&folder.0, &index] {
        let error = open(path).unwrap_err();
        let ErrorKind::MissingShard { tensors: 2, link: None } = error.kind() else {
            panic!("{error}");
        };
        assert_eq!(error.path(), Some(&*folder.path(&two)));
        let told = format!(
            "{}: shard missing: the index assigns 2 tensors to it",
            text(&folder.path(&two))
        );
        assert_eq!(error.to_string(), told);
    }
}

/// B50
#[test]
fn an_entry_for_an_absent_tensor_says_who_holds_it() {
    let (one, two) = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors");
    let folder = Folder::new();
    folder.shard(one, &[("t1", &[1])]);
    folder.shard(two, &[("t2", &[2])]);
    let index = folder.index(&[("t1", one), ("t2", two), ("mtp.w", two)]);
    let at = offset_of(&index, "mtp.w");
    let error = open(&folder.0).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::StaleEntry { expected, found: None } if expected == two)
    );
    assert_eq!((error.tensor(), error.offset()), (Some("mtp.w"), Some(at)));
    let told = format!(
        "{}: tensor `mtp.w`: the index assigns it to {two}, which does not hold it; no shard does, at offset {at}",
        text(&index)
    );
    assert_eq!(error.to_string(), told);

    let index = folder.index(&[("t1", two), ("t2", one)]);
    let error = open(&folder.0).unwrap_err();
    let told = |tensor, expected, found| {
        let at = offset_of(&index, tensor);
        let index = text(&index);
        format!(
            "{index}: tensor `{tensor}`: the index assigns it to {expected}, which does not hold it; {found} does, at offset {at}"
        )
    };
    assert_eq!(lines(&error), [told("t1", two, one), told("t2", one, two)]);
}

/// B52
#[test]
fn the_index_decides_which_of_two_counts_and_without_one_both_are_named() {
    let (base, overlay) = ("model-00001-of-00001.safetensors", "model-overlay-1.safetensors");
    let folder = Folder::new();
    let first = folder.shard(base, &[("w", &[1])]);
    let second = folder.shard(overlay, &[("w", &[2])]);
    for (named, other, expected) in [(overlay, base, 2), (base, overlay, 1)] {
        folder.index(&[("w", named)]);
        let told = open(&folder.0).unwrap();
        assert_eq!((told.names(), told.bytes("w")), (vec!["w"], &[expected][..]));
        assert_eq!(
            (told.shard_names(), told.ignored_names()),
            (vec![named.into()], vec![other.into()])
        );
    }
    fs::remove_file(folder.path(INDEX)).unwrap();
    let error = open(&folder.0).unwrap_err();
    let at = offset_of(&first, "w\"");
    let ErrorKind::DuplicateInShards { other, first: found } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!((&**other, *found), (&*first, at));
    assert_eq!((error.path(), error.offset()), (Some(&*second), Some(at)));
    let told = format!(
        "{}: tensor `w`: duplicate tensor name, in {} at {at} and here, at offset {at}",
        text(&second),
        text(&first)
    );
    assert_eq!(error.to_string(), told);
}

/// B53
#[test]
fn a_consolidated_file_beside_the_shards_is_ignored_and_said_so() {
    let folder = Folder::new();
    folder.shard("model.safetensors", &[("w", &[9])]);
    folder.shard("consolidated.safetensors", &[("w", &[8])]);
    folder.shard("model-00001-of-00001.safetensors", &[("w", &[1])]);
    let index = folder.index(&[("w", "model-00001-of-00001.safetensors")]);
    let told = open(&folder.0).unwrap();
    assert_eq!((told.names(), told.bytes("w")), (vec!["w"], &[1][..]));
    assert_eq!(told.ignored_names(), ["consolidated.safetensors", "model.safetensors"]);
    assert_eq!(told.index.as_ref(), Some(&index));
    // Whoever opens the index itself did not ask what lies beside it.
    assert_eq!(open(&index).unwrap().ignored_names(), [""; 0]);
}

/// B54
#[test]
fn without_an_index_the_files_are_the_model() {
    let single = Folder::new();
    let path = single.shard("model.safetensors", &[("w", &[5])]);
    let told = open(&single.0).unwrap();
    assert_eq!((told.bytes("w"), &told.shards[..]), (&[5][..], &[path][..]));

    let two = Folder::new();
    two.shard("flux.safetensors", &[("b", &[2])]);
    two.shard("ae.safetensors", &[("a", &[1])]);
    two.shard("notes.txt", &[("c", &[3])]);
    let told = open(&two.0).unwrap();
    assert_eq!(
        (told.names(), told.bytes("a"), told.bytes("b")),
        (vec!["a", "b"], &[1][..], &[2][..])
    );

    let none = Folder::new();
    let empty = open(&none.0).unwrap_err();
    assert!(matches!(empty.kind(), ErrorKind::NoModel { found } if found == "nothing"));
    for name in ["config.json", "a.bin", "z", ".x.safetensors", "b"] {
        none.file(name, "{}");
    }
    let error = open(&none.0).unwrap_err();
    let told = "no .safetensors file and no index in this directory, which holds .x.safetensors, a.bin, b and 2 more";
    assert_eq!(error.to_string(), format!("{}: {told}", text(&none.0)));
}

/// B56: what its name is, and why it is refused.
const ASTRAY: [(&str, &str); 9] = [
    ("../secret.safetensors", "which leads out of the directory"),
    ("a/../../secret.safetensors", "which leads out of the directory"),
    ("/secret.safetensors", "which is an absolute path"),
    ("..\\secret.safetensors", "which holds a backslash"),
    ("C:secret.safetensors", "which begins with a drive"),
    ("secret\0.safetensors", "which holds a NUL"),
    ("", "which is no name"),
    (".", "which is no file"),
    ("part/..", "which leads out of the directory"),
];

/// A folder with a readable secret beside the model, whose index names it by `name`.
fn astray(folder: &Folder, name: &str) -> (String, std::path::PathBuf) {
    let secret = folder.shard("secret.safetensors", &[("w", &[42])]);
    folder.shard("model/a/x.safetensors", &[("w", &[1])]);
    // The absolute path must be one that is there.
    let name = if name.starts_with('/') { text(&secret).to_owned() } else { name.to_owned() };
    let index = folder.file(&format!("model/{INDEX}"), crate::files::index(&[("w", &name)]));
    (name, index)
}

/// B56
#[test]
fn no_shard_s_name_leads_out_of_the_directory() {
    for (name, why) in ASTRAY {
        let folder = Folder::new();
        let (name, index) = astray(&folder, name);
        let error = open(&folder.path("model")).unwrap_err();
        let ErrorKind::BadShardName { found, why: told } = error.kind() else {
            panic!("{name}: {error}");
        };
        assert_eq!((found, *told), (&name, why));
        assert_eq!((error.path(), error.tensor()), (Some(&*index), Some("w")));
        // The place is the name's own, also in the drawing.
        let at = "{\"weight_map\":{\"w\":\"".len();
        assert_eq!(error.offset(), Some(at as u64));
        let caret = error.caret().unwrap();
        assert_eq!(caret.lines().nth(1).unwrap().find('^'), Some(11 + at), "{caret}");
    }
    let folder = Folder::new();
    folder.shard("part/x.safetensors", &[("w", &[42])]);
    folder.index(&[("w", "part/x.safetensors")]);
    assert_eq!(open(&folder.0).unwrap().bytes("w"), [42]);
}

/// B56: the kernel is the witness that the file outside was not opened.
#[test]
fn the_file_outside_is_never_opened() {
    let folder = Folder::new();
    let list = folder.path("calls");
    let traced = |verb: &str, path: &Path| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-e", "trace=file", "-o"]).arg(&list);
        let status = strace.arg(env!("CARGO_BIN_EXE_barest")).arg(verb).arg(path).output();
        status.map(|_| fs::read_to_string(&list).unwrap_or_default()).unwrap_or_default()
    };
    let model = folder.path("model");
    let (_, index) = astray(&folder, "a/x.safetensors");
    let seen = traced("ls", &model);
    // The trace must show what was opened, or it shows nothing at all.
    if !seen.contains("a/x.safetensors") {
        let reason = "what the program opens cannot be watched";
        return skip(if seen.is_empty() { "strace" } else { "ptrace" }, reason);
    }
    for (name, _) in ASTRAY {
        astray(&folder, name);
        for (verb, path) in [("ls", &model), ("check", &model), ("check", &index)] {
            let seen = traced(verb, path);
            assert!(seen.contains(INDEX), "{seen}");
            assert!(!seen.contains("secret"), "{name}: {seen}");
        }
    }
}

/// B57
#[test]
fn links_of_a_hub_s_cache_are_followed_and_a_dangling_one_says_where_it_leads() {
    let folder = Folder::new();
    let name = "model-00001-of-00001.safetensors";
    folder.shard("hub/blobs/aa11", &[("w", &[7])]);
    folder.file("hub/blobs/bb22", crate::files::index(&[("w", name)]));
    let snapshot = folder.path("hub/snapshots/rev1");
    fs::create_dir_all(&snapshot).unwrap();
    for (name, blob) in [(name, "aa11"), (INDEX, "bb22"), ("gone.safetensors", "cc33")] {
        symlink(format!("../../blobs/{blob}"), snapshot.join(name)).unwrap();
    }
    for path in [&snapshot, &snapshot.join(INDEX)] {
        let told = open(path).unwrap();
        assert_eq!((told.bytes("w"), told.shard_names()), (&[7][..], vec![name.into()]));
    }
    assert_eq!(open(&snapshot).unwrap().ignored_names(), ["gone.safetensors"]);
    let gone = snapshot.join("gone.safetensors");
    let dangling =
        format!("{}: a symbolic link to ../../blobs/cc33, which is not there", text(&gone));
    assert_eq!(open(&gone).unwrap_err().to_string(), dangling);
    // As a shard it takes its tensors along.
    fs::remove_file(folder.path("hub/blobs/aa11")).unwrap();
    let error = open(&snapshot).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::MissingShard { tensors: 1, link: Some(link) }
        if link == Path::new("../../blobs/aa11")));
    let told = format!(
        "{}: shard missing (a symbolic link to ../../blobs/aa11, which is not there): the index assigns 1 tensor to it",
        text(&snapshot.join(name))
    );
    assert_eq!(error.to_string(), told);
}

/// B59
#[test]
fn what_is_no_index_is_refused_with_the_place() {
    let pointer = format!(
        "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 23950\n",
        "0".repeat(64)
    );
    for (index, told) in [
        ("{\"metadata\":{}}", "lacks the field `weight_map`"),
        (
            "{\"weight_map\":[]}",
            "`weight_map` must be an object of strings, found an array, at offset 14",
        ),
        (
            "{\"weight_map\":{\"w\":1}}",
            "tensor `w`: the shard of a tensor must be a string, found a number, at offset 19",
        ),
        (
            "{\"weight_map\":{\"w\":null}}",
            "tensor `w`: the shard of a tensor must be a string, found null, at offset 19",
        ),
        (
            "weight_map",
            "plain text, not the index of a sharded model: download the file again and look at what the server answered",
        ),
        ("", "expected `{` to begin the index, found the end of the text, at offset 0"),
        (
            &pointer,
            "a Git LFS pointer, not the index of a sharded model (it stands for one of 23950 bytes): fetch the file itself, for instance with `git lfs pull`",
        ),
    ] {
        let folder = Folder::new();
        folder.shard("s.safetensors", &[("w", &[7])]);
        let path = folder.file(INDEX, index);
        for asked in [&folder.0, &path] {
            let error = open(asked).unwrap_err();
            assert_eq!(error.to_string(), format!("{}: {told}", text(&path)));
        }
    }
}

/// B60
#[test]
fn every_shard_that_is_cut_short_is_listed_with_what_is_missing() {
    let folder = Folder::new();
    let mut entries = Vec::new();
    for number in 1..=5 {
        let (tensor, file) =
            (format!("t{number}"), format!("model-{number:05}-of-00005.safetensors"));
        let mut bytes = shard(&[(&tensor, &[0; 64])]);
        if number == 2 || number == 4 {
            bytes.truncate(bytes.len() - 64 + 10 * number);
        }
        folder.file(&file, bytes);
        entries.push((tensor, file));
    }
    let entries: Vec<(&str, &str)> =
        entries.iter().map(|(one, other)| (&**one, &**other)).collect();
    let index = folder.index(&entries);
    let error = open(&folder.0).unwrap_err();
    let ErrorKind::Faults { more: 0, shards: 5, faults } = error.kind() else { panic!("{error}") };
    assert_eq!(error.path(), Some(&*index));
    for (fault, (number, found)) in faults.iter().zip([(2, 20), (4, 40)]) {
        let file = folder.path(&format!("model-{number:05}-of-00005.safetensors"));
        assert_eq!(fault.path(), Some(&*file));
        assert_eq!(fault.tensor(), Some(&*format!("t{number}")));
        assert!(
            matches!(fault.kind(), ErrorKind::Truncated { expected: 64, found: f, .. } if *f == found)
        );
        let missing = format!("{} bytes missing", 64 - found);
        assert!(fault.to_string().contains(&missing), "{fault}");
    }
    assert_eq!(faults.len(), 2);
    assert!(error.to_string().contains(": 2 faults: "), "{error}");
}

/// The outcome of something that must not wait for anybody.
fn at_once<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(60)).expect("it waits")
}

/// B79
#[test]
fn what_is_no_regular_file_is_named_alone_and_as_a_shard_or_an_index() {
    let folder = Folder::new();
    let fifo = folder.path("fifo.safetensors");
    let has_fifo = Command::new("mkfifo").arg(&fifo).status().is_ok_and(|status| status.success());
    if !has_fifo {
        skip("mkfifo", "there is no FIFO to open");
    }
    symlink("loop.safetensors", folder.path("loop.safetensors")).unwrap();
    symlink("/dev/null", folder.path("null.safetensors")).unwrap();
    fs::create_dir(folder.path("dir.safetensors")).unwrap();
    symlink("dir.safetensors", folder.path("dir.json")).unwrap();
    let rows = [
        (
            "dir.safetensors",
            "no .safetensors file and no index in this directory",
            "but a directory",
        ),
        ("dir.json", "no .safetensors file and no index in this directory", "but a directory"),
        ("fifo.safetensors", "but a FIFO (named pipe)", "but a FIFO (named pipe)"),
        ("loop.safetensors", "cannot open: ", "cannot open: "),
        ("null.safetensors", "but a character device", "but a character device"),
    ];
    for (name, alone, as_shard) in rows {
        if name.starts_with("fifo") && !has_fifo {
            continue;
        }
        let path = folder.path(name);
        let asked = path.clone();
        let error = at_once(move || open(&asked)).unwrap_err();
        assert_eq!(error.path(), Some(&*path));
        assert!(error.to_string().contains(alone), "{error}");

        let index = folder.index(&[("w", name)]);
        let error = at_once(move || open(&index)).unwrap_err();
        assert_eq!(error.path(), Some(&*path));
        assert!(error.to_string().contains(as_shard), "{error}");

        let files = [path.clone()];
        let error = at_once(move || ways::open_files(&files)).unwrap_err();
        assert!(error.to_string().contains(as_shard), "{error}");

        // In the place of the index.
        let other = Folder::new();
        symlink(&path, other.path(INDEX)).unwrap();
        let asked = other.0.clone();
        let error: Error = at_once(move || open(&asked)).unwrap_err();
        assert_eq!(error.path(), Some(&*other.path(INDEX)));
        assert!(error.to_string().contains(as_shard), "{error}");
    }
}
