//! Whatever the distribution of tensors over shards: does each name lead to its bytes?

use crate::counting::allocations_of;
use crate::files::{Folder, INDEX, index, shard};
use crate::ways::{Told, file_names, of_index, of_model, open, open_files};
use barest::{ErrorKind, Index, Model};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

/// What one shard holds, in the order of its data, and which of it the index assigns to it.
type Contents = Vec<(String, Vec<u8>, bool)>;

/// Tensors by name, spread over shards; some of them also as copies that no index assigns.
fn shards() -> impl Strategy<Value = Vec<Contents>> {
    let bytes = || vec(any::<u8>(), 0..20);
    let name = prop_oneof!["[ab.]{0,4}", "model\\.layers\\.[0-9]{1,2}\\.w", ".{0,3}"]
        .prop_filter("a reserved name", |name| name != "__metadata__");
    let tensors =
        btree_map(name, (bytes(), any::<usize>(), vec((any::<usize>(), bytes()), 0..2)), 0..40);
    (1..7_usize, tensors, any::<u64>()).prop_map(|(count, tensors, seed)| {
        let mut shards = vec![Contents::new(); count];
        for (name, (bytes, home, copies)) in tensors {
            let home = home % count;
            shards[home].push((name.clone(), bytes, true));
            for (shard, bytes) in copies {
                let known = shards[shard % count].iter().any(|(other, ..)| *other == name);
                if !known {
                    shards[shard % count].push((name.clone(), bytes, false));
                }
            }
        }
        // Not in the order of the names.
        for (number, shard) in shards.iter_mut().enumerate() {
            let middle = (seed as usize >> number) % (shard.len() + 1);
            shard.rotate_left(middle);
        }
        shards
    })
}

fn file_name(shard: usize) -> String {
    format!("model-{shard:05}.safetensors")
}

fn write(folder: &Folder, name: &str, contents: &[&(String, Vec<u8>, bool)]) -> PathBuf {
    let tensors: Vec<(&str, &[u8])> =
        contents.iter().map(|(name, bytes, _)| (&**name, &**bytes)).collect();
    folder.file(name, shard(&tensors))
}

/// What is told holds the expected tensors, file after file in the order of their data.
/// A file's name, and its tensors with their bytes.
type Expected<'a> = (String, Vec<(&'a str, &'a [u8])>);

fn holds(told: &Told, folder: &Folder, expected: &[Expected<'_>]) {
    let shown: Vec<(usize, &str, &[u8])> =
        told.tensors.iter().map(|t| (t.shard, &*t.name, &*t.bytes)).collect();
    let numbered = expected.iter().enumerate();
    let wanted: Vec<(usize, &str, &[u8])> = numbered
        .flat_map(|(shard, (_, tensors))| {
            tensors.iter().map(move |(name, bytes)| (shard, *name, *bytes))
        })
        .collect();
    assert_eq!(shown, wanted);
    assert_eq!(
        file_names(&told.shards),
        expected.iter().map(|(name, _)| &**name).collect::<Vec<_>>()
    );
    // The ranges are those of the files, as anyone can read them.
    for tensor in &told.tensors {
        let file = fs::read(folder.path(&expected[tensor.shard].0)).unwrap();
        assert_eq!(file[tensor.range.start as usize..tensor.range.end as usize], tensor.bytes);
    }
}

/// Hits and misses of a model, against an oracle.
fn look_up(model: &Model, index: &Index, oracle: &BTreeMap<&str, &[u8]>, asked: &[String]) {
    let sorted: Vec<&str> = model.tensors_by_name().map(|view| view.name()).collect();
    assert_eq!(sorted, oracle.keys().copied().collect::<Vec<_>>());
    for name in asked.iter().map(|name| &**name).chain(oracle.keys().copied()) {
        let (found, allocations) = allocations_of(|| model.get(name));
        assert_eq!(allocations, 0, "{name:?}");
        assert_eq!(found.map(|view| view.bytes()), oracle.get(name).copied(), "{name:?}");
        match (model.tensor(name), index.tensor(name), oracle.get(name)) {
            (Ok(view), Ok((shard, info)), Some(bytes)) => {
                assert_eq!((view.name(), view.bytes()), (name, *bytes));
                assert_eq!((view.shard(), view.file_range()), (shard, info.file_range()));
            }
            (Err(one), Err(other), None) => {
                for error in [&one, &other] {
                    let ErrorKind::NotFound { nearest, among } = error.kind() else {
                        panic!("{error}")
                    };
                    assert_eq!(*among, oracle.len());
                    assert!(nearest.as_ref().is_none_or(|name| oracle.contains_key(&**name)));
                }
                assert_eq!(one.to_string(), other.to_string());
                let none = index.read_into(name, &mut []).unwrap_err();
                assert_eq!(none.to_string(), one.to_string());
            }
            (found, _, expected) => panic!("{name:?}: {found:?}, expected {expected:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// With an index, whichever its order: its shards, and of these what it assigns.
    #[test]
    fn an_index_leads_each_name_to_its_bytes(
        contents in shards(),
        asked in vec("[ab.]{0,4}|.{0,3}", 0..10),
        turned in any::<usize>(),
    ) {
        let folder = Folder::new();
        let (mut expected, mut entries, mut unassigned) = (Vec::new(), Vec::new(), 0);
        let mut ignored = Vec::new();
        for (number, shard) in contents.iter().enumerate() {
            let name = file_name(number);
            write(&folder, &name, &shard.iter().collect::<Vec<_>>());
            let assigned: Vec<(&str, &[u8])> = shard
                .iter()
                .filter(|(.., assigned)| *assigned)
                .map(|(name, bytes, _)| (&**name, &**bytes))
                .collect();
            if assigned.is_empty() {
                ignored.push(name);
                continue;
            }
            unassigned += shard.len() - assigned.len();
            entries.extend(assigned.iter().map(|(tensor, _)| (*tensor, number)));
            expected.push((name, assigned));
        }
        let turned = turned % entries.len().max(1);
        entries.rotate_left(turned);
        let names: Vec<(&str, String)> =
            entries.iter().map(|(tensor, number)| (*tensor, file_name(*number))).collect();
        let named: Vec<(&str, &str)> = names.iter().map(|(tensor, file)| (*tensor, &**file)).collect();
        let path = folder.index(&named);

        let told = open(&folder.0).unwrap();
        holds(&told, &folder, &expected);
        prop_assert_eq!(told.unassigned, unassigned);
        prop_assert_eq!(told.ignored_names(), ignored);
        let of_path = open(&path).unwrap();
        prop_assert_eq!(&of_path.tensors, &told.tensors);

        let oracle = expected.iter().flat_map(|(_, tensors)| tensors.iter().copied()).collect();
        let index = Index::open(&folder.0).unwrap();
        look_up(&Model::read(&path).unwrap(), &index, &oracle, &asked);
    }

    /// Without one: all files, in the order given, or in that of their names.
    #[test]
    fn files_without_an_index_lead_each_name_to_its_bytes(
        contents in shards(),
        asked in vec("[ab.]{0,4}|.{0,3}", 0..10),
        turned in any::<usize>(),
    ) {
        let folder = Folder::new();
        let mut expected = Vec::new();
        for (number, shard) in contents.iter().enumerate() {
            let own: Vec<&(String, Vec<u8>, bool)> = shard.iter().filter(|(.., own)| *own).collect();
            write(&folder, &file_name(number), &own);
            let tensors = own.iter().map(|(name, bytes, _)| (&**name, &**bytes)).collect();
            expected.push((file_name(number), tensors));
        }
        holds(&open(&folder.0).unwrap(), &folder, &expected);
        let turned = turned % expected.len();
        expected.rotate_left(turned);
        let paths: Vec<PathBuf> = expected.iter().map(|(name, _)| folder.path(name)).collect();
        let told = open_files(&paths).unwrap();
        holds(&told, &folder, &expected);

        let oracle = expected.iter().flat_map(|(_, tensors)| tensors.iter().copied()).collect();
        let opened = || Index::open_files(&paths).unwrap();
        look_up(&opened().read().unwrap(), &opened(), &oracle, &asked);
    }
}

#[test]
fn one_file_is_the_same_by_its_name_in_its_directory_and_in_a_list() {
    let folder = Folder::new();
    let path = folder.shard("m.safetensors", &[("b", &[1, 2]), ("a", &[]), ("c", &[3])]);
    let told = open(&path).unwrap();
    assert_eq!(told.names(), ["b", "a", "c"]);
    assert_eq!(told, open(&folder.0).unwrap());
    assert_eq!(told, open_files(std::slice::from_ref(&path)).unwrap());
    folder.file(
        INDEX,
        index(&[("a", "m.safetensors"), ("b", "m.safetensors"), ("c", "m.safetensors")]),
    );
    assert_eq!(told.tensors, open(&folder.0).unwrap().tensors);
    // Whoever asks for what is not there learns which path was opened.
    for (opened, path) in [(&path, &path), (&folder.0, &folder.path(INDEX))] {
        let error = Model::read(opened).unwrap().tensor("d").unwrap_err();
        assert_eq!(error.path(), Some(&**path));
    }
}

#[test]
fn a_buffer_of_another_length_is_refused_and_left_alone() {
    let folder = Folder::new();
    folder.shard("1.safetensors", &[("a", &[1, 2, 3])]);
    let second = folder.shard("2.safetensors", &[("b", &[4, 5])]);
    let index = Index::open(&folder.0).unwrap();
    for len in [0, 1, 3, 4] {
        let mut buffer = vec![9; len];
        let error = index.read_into("b", &mut buffer).unwrap_err();
        let ErrorKind::WrongByteLength { expected: 2, found } = *error.kind() else {
            panic!("{error}")
        };
        assert_eq!(found, len);
        assert_eq!((error.path(), error.tensor()), (Some(&*second), Some("b")));
        assert_eq!(buffer, vec![9; len]);
    }
}

#[test]
fn a_shard_that_was_cut_meanwhile_is_an_error_that_says_where_it_ended() {
    let folder = Folder::new();
    folder.shard("1.safetensors", &[("a", &[1; 100])]);
    let second = folder.shard("2.safetensors", &[("b", &[2; 100]), ("c", &[3; 100])]);
    let opened = || Index::open(&folder.0).unwrap();
    let (index, to_read) = (opened(), opened());
    let range = index.tensor("c").unwrap().1.file_range();
    let left = range.start + 40;
    File::options().write(true).open(&second).unwrap().set_len(left).unwrap();

    let mut buffer = [0; 100];
    let error = index.read_into("c", &mut buffer).unwrap_err();
    let ErrorKind::Shrank { expected, found } = *error.kind() else { panic!("{error}") };
    assert_eq!((expected, found, error.offset()), (range.end, left, Some(left)));
    assert_eq!((error.path(), error.tensor()), (Some(&*second), Some("c")));
    for name in ["a", "b"] {
        index.read_into(name, &mut buffer).unwrap();
    }
    assert_eq!(buffer, [2; 100]);
    let error = to_read.read().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Shrank { .. }), "{error}");
    assert_eq!(error.path(), Some(&*second));
}

/// A replaced file is another: what was opened stays what it was.
#[test]
fn later_questions_are_put_to_the_open_file_and_not_to_the_path() {
    let folder = Folder::new();
    folder.shard("1.safetensors", &[("a", &[1])]);
    let second = folder.shard("2.safetensors", &[("b", &[2])]);
    let index = Index::open(&folder.0).unwrap();
    let before = of_index(&index);
    let other = folder.shard("other", &[("b", &[9])]);
    fs::rename(other, second).unwrap();
    assert_eq!(of_index(&index), before);
    assert_eq!(of_model(&index.read().unwrap()), before);
}
