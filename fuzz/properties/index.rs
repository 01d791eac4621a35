//! Does an index get what it asks for, and nothing else?
//!
//! Around the same few files, any text as `model.safetensors.index.json`, or any list of files. How
//! many faults that has, and which tensors are left if it has none, is found without haste: by
//! `serde_json`, and by a look at a table of what lies where. Beside the folder lies a model that no
//! text may reach.

use crate::changes::Random;
use barest::{Error, ErrorKind, Index, OpenOptions, TensorInfo};
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

/// Files below the folder, and the tensors in them; those without a list are no model.
const FILES: [(&str, Option<&[&str]>); 7] = [
    ("s", Some(&["a", "b"])),
    ("t", Some(&["a", "c", "\u{e9}\n"])),
    ("sub/u.safetensors", Some(&["d"])),
    ("empty", Some(&[])),
    ("short", None),
    ("text", None),
    ("sub/folder", None),
];

/// Made once for each process; whoever starts it says in `TMPDIR` where, and clears it up.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let outside = std::env::temp_dir().join(format!("barest-fuzz-{}", std::process::id()));
    let inside = outside.join("inside");
    fs::create_dir_all(inside.join("sub/folder")).expect("a folder");
    fs::write(outside.join("secret"), file(&["secret", "a"])).expect("a file");
    for (name, tensors) in FILES {
        let path = inside.join(name);
        match (tensors, name) {
            (Some(tensors), _) => fs::write(path, file(tensors)).expect("a file"),
            (None, "short") => fs::write(path, &file(&["a", "b"])[..60]).expect("a file"),
            (None, "text") => fs::write(path, "version https://git-lfs").expect("a file"),
            (None, _) => {}
        }
    }
    inside
});

/// A file of tensors without elements.
fn file(tensors: &[&str]) -> Vec<u8> {
    let entry = |name: &&str| {
        let name = serde_json::to_string(name).expect("a string");
        format!(r#"{name}:{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#)
    };
    let entries: Vec<String> = tensors.iter().map(entry).collect();
    let header = format!("{{{}}}", entries.join(","));
    [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()
}

/// An index of these files, and of some that are not there.
pub fn skeleton(random: &mut Random) -> Vec<u8> {
    const TENSORS: [&str; 7] = ["a", "b", "c", "d", "\\u0061", "\\u00e9\\n", "gone"];
    const SHARDS: [&str; 16] = [
        "s",
        "t",
        "sub/u.safetensors",
        "empty",
        "s",
        "t",
        "./s",
        "\\u0073",
        "short",
        "text",
        "sub/folder",
        "gone",
        "../secret",
        "sub/../../secret",
        "/etc/passwd",
        "..\\\\secret",
    ];
    // Mostly shards that are there.
    let most = random.pick(&[6, 8, SHARDS.len()]);
    let entry = |random: &mut Random| {
        format!("\"{}\":\"{}\"", random.pick(&TENSORS), SHARDS[random.below(most)])
    };
    let entries: Vec<String> = (0..random.below(7)).map(|_| entry(random)).collect();
    let metadata = random.pick(&["", "\"metadata\":{\"total_size\":12},", "\"metadata\":null,"]);
    format!("{{{metadata}\"weight_map\":{{{}}}}}", entries.join(",")).into_bytes()
}

/// Tries one index, or one list of files; tells whether it was a model.
pub fn judge(input: &[u8]) -> bool {
    match input.split_first() {
        Some((b'L', list)) => judge_list(list),
        _ => judge_text(input),
    }
}

/// Each byte names a file.
fn judge_list(list: &[u8]) -> bool {
    let names: Vec<&str> = list
        .iter()
        .take(12)
        .map(|&byte| FILES.get(usize::from(byte) % 8).map_or("gone", |(name, _)| *name))
        .collect();
    let paths: Vec<PathBuf> = names.iter().map(|name| FOLDER.join(name)).collect();
    let shards: Vec<Option<&[&str]>> = names.iter().map(|name| tensors_of(name)).collect();
    let all: Vec<&str> = shards.iter().flatten().copied().flatten().copied().collect();
    let distinct: BTreeSet<&str> = all.iter().copied().collect();
    let faults = shards.iter().filter(|shard| shard.is_none()).count() + all.len() - distinct.len();
    let wanted = (0..).zip(&shards).flat_map(|(number, shard)| {
        shard.iter().copied().flatten().map(move |name| (name.to_string(), number))
    });
    agree(one_thread().index_files(&paths), faults, &wanted.collect(), &paths)
}

fn judge_text(text: &[u8]) -> bool {
    let path = FOLDER.join("model.safetensors.index.json");
    fs::write(&path, text).expect("the index");
    // By its own path and by the folder's it is the same.
    let opened = one_thread().index(&path);
    let other = one_thread().index(&*FOLDER);
    assert_eq!(told(&opened), told(&other));
    let Some(entries) = std::str::from_utf8(text).ok().and_then(weight_map) else {
        let error = opened.expect_err("a text that is no index");
        assert_eq!(error.faults().len(), 1, "{error}");
        assert_eq!(error.path(), Some(&*path), "{error}");
        return false;
    };
    if let Err(error) = &opened {
        // The one thing in which serde_json is more lenient.
        if matches!(error.kind(), ErrorKind::NumberOutOfRange) {
            return false;
        }
    }
    // 1. The shards by name, and what is wrong with them.
    let names: BTreeSet<&str> = entries.iter().map(|(_, shard)| &**shard).collect();
    let stays = |name: &&&str| stays_below(name);
    let (good, bad): (Vec<&str>, Vec<&str>) = names.iter().partition(stays);
    let lost = good.iter().filter(|name| tensors_of(name).is_none()).count();
    // 2. The entries: what is not there, what is twice.
    let mut faults = bad.len() + lost;
    let mut wanted = BTreeMap::new();
    let mut marked = BTreeSet::new();
    for (tensor, shard) in &entries {
        let Ok(number) = good.binary_search(&&**shard) else { continue };
        let Some(tensors) = tensors_of(shard) else { continue };
        let is_new = tensors.contains(&&**tensor) && marked.insert((tensor, number));
        let is_first = is_new && wanted.insert(tensor.clone(), number).is_none();
        faults += usize::from(!is_first);
    }
    let paths: Vec<PathBuf> = good.iter().map(|name| FOLDER.join(name)).collect();
    agree(opened, faults, &wanted, &paths)
}

/// A few small files are not worth another.
fn one_thread() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read_threads(NonZeroUsize::MIN);
    options
}

fn told(outcome: &barest::Result<Index>) -> String {
    match outcome {
        Ok(index) => {
            let name = |(shard, tensor): (usize, TensorInfo<'_>)| (shard, tensor.name().to_owned());
            format!("{index:?} {:?}", index.tensors().map(name).collect::<Vec<_>>())
        }
        Err(error) => error.to_string(),
    }
}

/// Either as many faults as there are, or the tensors that are wanted.
fn agree(
    opened: barest::Result<Index>,
    faults: usize,
    wanted: &BTreeMap<String, usize>,
    paths: &[PathBuf],
) -> bool {
    match opened {
        Ok(index) => {
            assert_eq!(faults, 0, "{index:?} has faults");
            let found: BTreeMap<String, usize> =
                index.tensors().map(|(shard, tensor)| (tensor.name().to_owned(), shard)).collect();
            assert_eq!((found.len(), &found), (index.len(), wanted));
            let opened: Vec<&Path> =
                index.shards().iter().filter_map(|shard| shard.path()).collect();
            assert_eq!(opened, paths);
            for path in opened {
                let below = path.strip_prefix(&*FOLDER).expect("below the folder");
                let plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
                assert!(below.components().all(plain), "{below:?}");
            }
            true
        }
        Err(error) => {
            let found = match error.kind() {
                ErrorKind::Faults { faults, more, .. } => faults.len() + more,
                _ => 1,
            };
            assert_eq!(found, faults, "{}", lines(&error));
            false
        }
    }
}

fn lines(error: &Error) -> String {
    error.faults().iter().map(|fault| format!("{fault}\n")).collect()
}

/// Whether a name leads to a file below the folder, by its letters.
fn stays_below(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let is_drive = matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    let last = parts.last().copied().unwrap_or("");
    !name.starts_with('/')
        && !name.contains(['\\', '\0'])
        && !is_drive
        && !parts.contains(&"..")
        && !["", "."].contains(&last)
}

/// What lies at a name; `None` for what is no model or not there.
fn tensors_of(name: &str) -> Option<&'static [&'static str]> {
    let plain: Vec<&str> = name.split('/').filter(|part| !["", "."].contains(part)).collect();
    // A file is no folder, also on the way to `./` behind it.
    let is_file = |at: usize| FILES.iter().any(|(file, _)| *file == plain[..at].join("/"));
    if (1..plain.len()).any(is_file) {
        return None;
    }
    FILES.iter().find(|(file, _)| *file == plain.join("/"))?.1
}

/// The entries of `weight_map` in order, also those that stand twice; `None` if a text is no index.
fn weight_map(text: &str) -> Option<Vec<(String, String)>> {
    struct Outer;
    impl<'de> Visitor<'de> for Outer {
        type Value = Option<Entries>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an index")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = None;
            while let Some(key) = map.next_key::<String>()? {
                if key != "weight_map" {
                    map.next_value::<Value>()?;
                } else if entries.replace(map.next_value()?).is_some() {
                    return Err(serde::de::Error::custom("twice"));
                }
            }
            Ok(entries)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let entries: Option<Entries> = serde::Deserializer::deserialize_map(&mut reader, Outer).ok()?;
    reader.end().ok()?;
    entries.map(|entries| entries.0)
}

struct Entries(Vec<(String, String)>);

impl<'de> serde::Deserialize<'de> for Entries {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Entries, D::Error> {
        struct Inner;
        impl<'de> Visitor<'de> for Inner {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        from.deserialize_map(Inner)
    }
}
