//! Is all that is wrong with a set told in one error, in order, and with the right numbers?

use crate::files::{Folder, INDEX, index, offset_of, shard};
use crate::skip::skip;
use crate::ways::{lines, open, open_files};
use barest::{Error, ErrorKind, Index};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

/// The name of a fault's kind, with its numbers.
fn kind(fault: &Error) -> String {
    format!("{:?}", fault.kind())
}

#[test]
fn all_faults_of_a_set_stand_in_one_error() {
    let folder = Folder::new();
    let mut cut = shard(&[("c1", &[1; 8]), ("c2", &[2; 8])]);
    cut.truncate(cut.len() - 3);
    folder.file("d-cut.safetensors", cut);
    folder.shard("e-good.safetensors", &[("e", &[5]), ("f", &[6])]);
    folder.shard("f-good.safetensors", &[("g", &[7])]);
    folder.file("g-pointer.safetensors", "version https://git-lfs.github.com/spec/v1\nsize 7\n");
    fs::create_dir(folder.path("h-dir.safetensors")).unwrap();
    symlink("nowhere", folder.path("c-link.safetensors")).unwrap();
    let fifo = folder.path("i-fifo.safetensors");
    let has_fifo = Command::new("mkfifo").arg(&fifo).status().is_ok_and(|status| status.success());
    if !has_fifo {
        skip("mkfifo", "a FIFO is no part of the set");
    }
    // Neither shards nor entries stand in the order of their names.
    let mut entries = vec![
        ("h", "h-dir.safetensors"),
        ("b2", "b-missing.safetensors"),
        ("x", "../x.safetensors"),
        ("g", "e-good.safetensors"),
        ("e", "e-good.safetensors"),
        ("p", "g-pointer.safetensors"),
        ("c1", "d-cut.safetensors"),
        ("l", "c-link.safetensors"),
        ("b1", "b-missing.safetensors"),
        ("nobody", "f-good.safetensors"),
        ("e", "e-good.safetensors"),
        ("y", "/y"),
        ("x2", "../x.safetensors"),
    ];
    entries.extend(has_fifo.then_some(("i", "i-fifo.safetensors")));
    let index = folder.index(&entries);
    let error = open(&folder.0).unwrap_err();

    let path = |name: &str| folder.path(&format!("{name}.safetensors"));
    let cut_at = |name| Some(offset_of(&path("d-cut"), name));
    let mut expected = vec![
        ("BadShardName { found: \"../x.safetensors\"", index.clone(), Some("x"), "../x"),
        ("BadShardName { found: \"/y\"", index.clone(), Some("y"), "/y"),
        ("MissingShard { tensors: 2, link: None }", path("b-missing"), None, ""),
        ("MissingShard { tensors: 1, link: Some(\"nowhere\") }", path("c-link"), None, ""),
        ("Truncated { expected: 16, found: 13, mapped: false }", path("d-cut"), Some("c2"), ""),
        ("Foreign { expected: \"a safetensors file\"", path("g-pointer"), None, ""),
        ("NotAFile { found: \"a directory\" }", path("h-dir"), None, ""),
        ("NotAFile { found: \"a FIFO", path("i-fifo"), None, ""),
        (
            "StaleEntry { expected: \"e-good.safetensors\", found: Some(\"f-good.safetensors\") }",
            index.clone(),
            Some("g"),
            "g\":\"e-good",
        ),
        (
            "StaleEntry { expected: \"f-good.safetensors\", found: None }",
            index.clone(),
            Some("nobody"),
            "nobody",
        ),
        ("DuplicateEntry { first: ", index.clone(), Some("e"), "e\":\"e-good.safetensors\",\"y"),
    ];
    expected.retain(|(_, path, ..)| has_fifo || *path != fifo);
    assert_eq!(error.faults().len(), expected.len(), "{:#?}", error.faults());
    for (fault, (wanted, path, tensor, place)) in error.faults().iter().zip(&expected) {
        assert!(kind(fault).starts_with(wanted), "{} is not {wanted}", kind(fault));
        assert_eq!((fault.path(), fault.tensor()), (Some(&**path), *tensor), "{fault}");
        if !place.is_empty() {
            assert_eq!(fault.offset(), Some(offset_of(&index, place)), "{fault}");
        }
    }
    let ErrorKind::Faults { more: 0, shards, .. } = error.kind() else { panic!("{error}") };
    assert_eq!(*shards, if has_fifo { 8 } else { 7 });
    let duplicate = error.faults().last().unwrap().to_string();
    let first = offset_of(&index, "e\":\"e-good.safetensors\",\"p");
    let told = format!("tensor `e`: duplicate entry in `weight_map`, first at {first}, again");
    assert!(duplicate.contains(&told), "{duplicate}");
    assert!(cut_at("c2") > cut_at("c1"));

    // One line, which counts those that it does not show.
    let line = error.to_string();
    let (all, three) = (error.faults().len(), lines(&error)[..3].join("; "));
    let told = format!("{}: {all} faults: {three}; and {} more", index.display(), all - 3);
    assert_eq!(line, told);
}

#[test]
fn one_fault_is_told_without_wrapping() {
    let folder = Folder::new();
    folder.shard("a.safetensors", &[("a", &[1])]);
    folder.index(&[("a", "a.safetensors"), ("b", "a.safetensors")]);
    let error = open(&folder.0).unwrap_err();
    assert_eq!(error.faults().len(), 1);
    assert!(matches!(error.kind(), ErrorKind::StaleEntry { .. }), "{error}");
}

#[test]
fn names_in_two_files_are_all_listed() {
    let folder = Folder::new();
    folder.shard("1.safetensors", &[("a", &[1]), ("b", &[1]), ("c", &[1])]);
    folder.shard("2.safetensors", &[("b", &[2]), ("d", &[2])]);
    folder.shard("3.safetensors", &[("a", &[3]), ("b", &[3])]);
    folder.file("0.safetensors", "");
    let told = |error: &Error| -> Vec<(String, String, String)> {
        let name = |path: Option<&std::path::Path>| {
            path.unwrap().file_name().unwrap().to_str().unwrap()[..1].to_owned()
        };
        let row = |fault: &Error| match fault.kind() {
            ErrorKind::DuplicateInShards { other, first } => {
                let tensor = fault.tensor().unwrap();
                assert_eq!(*first, offset_of(other, &format!("{tensor}\":")));
                assert_eq!(
                    fault.offset(),
                    Some(offset_of(fault.path().unwrap(), &format!("{tensor}\":")))
                );
                (name(fault.path()), tensor.to_owned(), name(Some(other)))
            }
            ErrorKind::TooShort { expected: 10, found: 0 } => {
                (name(fault.path()), "".into(), "".into())
            }
            other => panic!("{other:?}"),
        };
        error.faults().iter().map(row).collect()
    };
    let expected = [("0", "", ""), ("3", "a", "1"), ("2", "b", "1"), ("3", "b", "2")];
    let expected = expected.map(|(one, two, three)| (one.into(), two.into(), three.into()));
    let error = open(&folder.0).unwrap_err();
    assert_eq!(told(&error), expected);
    assert_eq!(error.path(), Some(&*folder.0));
    assert!(matches!(error.kind(), ErrorKind::Faults { shards: 4, more: 0, .. }));
    // The same without a directory: in the order in which they are given.
    let paths: Vec<PathBuf> =
        ["3", "2"].iter().map(|name| folder.path(&format!("{name}.safetensors"))).collect();
    let error = open_files(&paths).unwrap_err();
    assert_eq!(told(&error), [("2".into(), "b".into(), "3".into())]);
}

/// What is the last of the faults that are kept, and how many are there beyond them?
fn beyond(folder: &Folder) -> (String, usize) {
    let error = Index::open(&folder.0).unwrap_err();
    let ErrorKind::Faults { faults, more, .. } = error.kind() else { panic!("{error}") };
    assert_eq!(faults.len(), 1000);
    let line = error.to_string();
    let counts = (format!(": {} faults: ", 1000 + more), format!("; and {} more", 997 + more));
    assert!(line.contains(&counts.0) && line.ends_with(&counts.1), "{line}");
    (kind(&faults[999]), *more)
}

#[test]
fn more_than_a_thousand_faults_are_counted() {
    let names: Vec<String> = (0..1500).map(|number| format!("t{number:04}")).collect();
    let bytes: &[u8] = &[1];
    let all: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, bytes)).collect();
    let entries = |shard: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for (number, name) in names.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            text += &format!("{comma}\"{name}\":\"{}\"", shard(number));
        }
        text
    };
    let with_index = |entries: &str| {
        let folder = Folder::new();
        folder.shard("s.safetensors", &all);
        folder.shard("t.safetensors", &all);
        folder.file(INDEX, format!("{{\"weight_map\":{{{entries}}}}}"));
        folder
    };
    let s = entries(&|_| "s.safetensors".to_owned());
    let t = entries(&|_| "t.safetensors".to_owned());

    let (kind, more) = beyond(&with_index(&entries(&|number| format!("gone-{number:04}"))));
    assert_eq!((&*kind, more), ("MissingShard { tensors: 1, link: None }", 500));

    let (kind, more) = beyond(&with_index(&entries(&|number| format!("../{number:04}"))));
    assert!(kind.starts_with("BadShardName { found: \"../0999\""), "{kind}");
    assert_eq!(more, 500);

    let (kind, more) = beyond(&with_index(&s.replace("\"t", "\"u")));
    assert!(kind.starts_with("StaleEntry"), "{kind}");
    assert_eq!(more, 500);

    // The same entry again, and the same name for another shard.
    let (kind, more) = beyond(&with_index(&format!("{s},{s}")));
    assert!(kind.starts_with("DuplicateEntry"), "{kind}");
    assert_eq!(more, 500);
    let (kind, more) = beyond(&with_index(&format!("{s},{t}")));
    assert!(kind.starts_with("DuplicateEntry"), "{kind}");
    assert_eq!(more, 500);

    let folder = with_index("");
    fs::remove_file(folder.path(INDEX)).unwrap();
    let (kind, more) = beyond(&folder);
    assert!(kind.starts_with("DuplicateInShards"), "{kind}");
    assert_eq!(more, 500);

    // Some of this and some of that.
    let entries = entries(&|number| match number % 2 {
        0 => format!("gone-{number:04}"),
        _ => format!("../{number:04}"),
    });
    assert_eq!(beyond(&with_index(&format!("{entries},\"v\":\"s.safetensors\""))).1, 501);
    assert_eq!(index(&[("a", "b")]), "{\"weight_map\":{\"a\":\"b\"}}");
}
