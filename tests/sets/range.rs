//! A model out of a larger file: wherever it begins, is everything about it in the file's own bytes?

use crate::files::{Folder, safetensors, shard};
use crate::ways::{Told, of_index, of_model};
use barest::{Backing, Error, ErrorKind, Index, Mapping, OpenOptions, Result};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Range;
use std::path::Path;

/// What every way to a part of a file says.
fn open(path: &Path, range: Range<u64>) -> Result<Told> {
    let opened = || Index::open_range(path, range.clone());
    // SAFETY: the file lies in a folder of one test, which does not change it meanwhile.
    let mapped = unsafe { opened().and_then(|index| index.map()) };
    // SAFETY: as above.
    let either = unsafe { opened().and_then(|index| index.map_or_read()) };
    let first = opened().map(|index| of_index(&index));
    let options = OpenOptions::new().index_range(path, range.clone());
    let models = [mapped, either, opened().and_then(Index::read), options.and_then(Index::read)];
    for model in models {
        match (&first, &model) {
            (Ok(first), Ok(model)) => {
                assert_eq!(*first, of_model(model));
                let shard = model.shards().next().unwrap();
                assert_eq!(shard.byte_len(), range.end - range.start);
                // The pages hold at the place that is told what the tensor holds.
                for tensor in first.tensors.iter().filter(|tensor| !tensor.bytes.is_empty()) {
                    let place = shard.in_mapping(tensor.range.clone());
                    let view = model.tensor(&tensor.name).unwrap();
                    let address = shard.mapping().as_ptr() as usize + place.start;
                    assert_eq!(view.bytes().as_ptr() as usize, address);
                    assert!(place.end <= shard.mapping().len());
                    if let Some(Backing::Mapped) = model.backing(0) {
                        // Pages keep the file's own order within a page.
                        let page = Mapping::page_size();
                        assert_eq!(address % page, tensor.range.start as usize % page);
                    }
                }
            }
            (Err(first), Err(error)) => assert_eq!(first.to_string(), error.to_string()),
            _ => panic!("{first:?} {model:?}"),
        }
    }
    first
}

/// B73
#[test]
fn a_model_in_a_container_is_that_of_its_range_alone() {
    let header = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  "#;
    let model = safetensors(header, &1.0_f32.to_le_bytes());
    assert_eq!(model.len(), 68);
    let folder = Folder::new();
    let path = folder.file("container.bin", [&[0xee; 5000][..], &model, &[0xee; 300]].concat());
    let whole = Index::open(&path).unwrap_err();
    assert!(matches!(whole.kind(), ErrorKind::HeaderTooLong { found: 0xeeee_eeee_eeee_eeee, .. }));
    let told = open(&path, 5000..5068).unwrap();
    assert_eq!((told.bytes("a"), &told.tensors[0].range), (&[0, 0, 0x80, 0x3f][..], &(5064..5068)));

    let cut = open(&path, 5000..5067).unwrap_err();
    assert!(matches!(cut.kind(), ErrorKind::Truncated { expected: 4, found: 3, .. }), "{cut}");
    let long = open(&path, 5000..5069).unwrap_err();
    assert!(matches!(long.kind(), ErrorKind::TrailingBytes { expected: 4, found: 5 }), "{long}");
    let nothing = open(&path, 5000..5000).unwrap_err();
    assert!(matches!(nothing.kind(), ErrorKind::TooShort { found: 0, .. }), "{nothing}");
}

#[test]
#[allow(clippy::reversed_empty_ranges)]
fn a_part_that_the_file_does_not_have_is_refused_with_both_ends() {
    let folder = Folder::new();
    let path = folder.shard("m", &[("a", &[1])]);
    let len = std::fs::metadata(&path).unwrap().len();
    for range in [0..len + 1, len..len + 1, len + 1..len + 2, 0..u64::MAX, 9..8] {
        let error = open(&path, range.clone()).unwrap_err();
        let ErrorKind::RangeBeyondFile { expected, found } = *error.kind() else {
            panic!("{error}")
        };
        assert_eq!((expected, found, error.offset()), (len, range.end, Some(range.start)));
        let told = format!(
            "{}: the part asked for is none of the file: expected an end between its own start and {len}, found {}, at offset {}",
            path.display(),
            range.end,
            range.start
        );
        assert_eq!(error.to_string(), told);
    }
    open(&path, 0..len).unwrap();
}

/// What is wrong with each, at some place.
fn broken() -> Vec<Vec<u8>> {
    let entry = |name: &str, from: u64, to: u64| {
        format!(r#""{name}":{{"dtype":"U8","shape":[{}],"data_offsets":[{from},{to}]}}"#, to - from)
    };
    let a = entry("a", 0, 1);
    let headers = [
        format!("{{{a},{}}}", entry("\\u0061", 1, 2)),
        format!("{{{a},{}}}", entry("b", 2, 3)),
        format!("{{{a},{}}}", entry("b", 0, 1)),
        format!(r#"{{"__metadata__":{{"k":"1","j":"2","k":"3"}},{a}}}"#),
        format!(r#"{{"__metadata__":{{}},{a},"__metadata__":{{}}}}"#),
        r#"{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#.to_owned(),
        r#"{"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}"#.to_owned(),
        r#"{"a":{"dtype":"U9","shape":[1],"data_offsets":[0,1]}}"#.to_owned(),
        r#"{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,1]}}"#.to_owned(),
        "{\"a\u{e9}\":".to_owned(),
        "[]".to_owned(),
    ];
    let mut all: Vec<Vec<u8>> = headers.iter().map(|header| safetensors(header, &[7])).collect();
    let good = shard(&[("a", &[1, 2]), ("b", &[3, 4])]);
    for cut in [1, 3, 4, 5, 20, good.len() - 9, good.len() - 8, good.len() - 5] {
        all.push(good[..good.len() - cut].to_vec());
    }
    let mut no_utf_8 = good.clone();
    no_utf_8[10] = 0xff;
    all.extend([no_utf_8, [&good[..], &[0; 3]].concat(), vec![0; 100], b"GGUF\x03\0\0\0".to_vec()]);
    all.push(b"version https://git-lfs.github.com/spec/v1\nsize 7\n".to_vec());
    all
}

/// The places that a kind of failure has beside the error's own.
fn first(error: &Error) -> Option<u64> {
    match *error.kind() {
        ErrorKind::DuplicateTensor { first }
        | ErrorKind::DuplicateField { first, .. }
        | ErrorKind::DuplicateMetadata { first }
        | ErrorKind::DuplicateMetadataKey { first, .. } => Some(first),
        _ => None,
    }
}

/// The offset of the first byte that a drawing shows, and the rest of it.
fn drawn(error: &Error) -> Option<(u64, String)> {
    let caret = error.caret()?;
    let (offset, rest) = caret.split_once('|').unwrap();
    Some((offset.trim().parse().unwrap(), rest.to_owned()))
}

/// A failure of a file of its own, and the same in a part that begins so many bytes later.
fn is_moved(alone: &Error, part: &Error, by: u64) {
    let move_by = |place: Option<u64>| place.map(|place| place + by);
    assert_eq!(std::mem::discriminant(alone.kind()), std::mem::discriminant(part.kind()));
    assert_eq!(part.offset(), move_by(alone.offset()), "{alone} / {part}");
    assert_eq!(first(part), move_by(first(alone)), "{alone} / {part}");
    assert_eq!(part.tensor(), alone.tensor());
    let (one, other) = (drawn(alone), drawn(part));
    assert_eq!(other, one.map(|(offset, rest)| (offset + by, rest)), "{alone} / {part}");
    // The sentence has the numbers of the kind.
    assert!(
        first(part).is_none_or(|first| part.to_string().contains(&format!("first at {first}")))
    );
}

#[test]
fn what_is_wrong_with_a_part_is_told_in_the_file_s_own_offsets() {
    let folder = Folder::new();
    let mut with_first = 0;
    for (number, model) in broken().iter().enumerate() {
        let alone = folder.file("alone", model);
        let alone = Index::open(alone).unwrap_err();
        with_first += usize::from(first(&alone).is_some());
        for lead in [1, 7, 4096, 5001] {
            let path = folder.file("part", [&vec![b' '; lead][..], model, b"}}}}"].concat());
            let end = (lead + model.len()) as u64;
            let part = open(&path, lead as u64..end).unwrap_err();
            is_moved(&alone, &part, lead as u64);
            assert_eq!(part.path(), Some(&*path), "{number}");
        }
    }
    assert_eq!(with_first, 4);
}

#[test]
fn a_file_cut_meanwhile_is_told_in_the_file_s_own_offsets() {
    let folder = Folder::new();
    let path = folder.file("c", [&[9; 333][..], &shard(&[("a", &[1; 50])])].concat());
    let len = std::fs::metadata(&path).unwrap().len();
    let index = Index::open_range(&path, 333..len).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(len - 20).unwrap();
    let error = index.read_into("a", &mut [0; 50]).unwrap_err();
    let ErrorKind::Shrank { expected, found } = *error.kind() else { panic!("{error}") };
    assert_eq!((expected, found, error.offset()), (len, len - 20, Some(len - 20)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anywhere_in_a_file_a_model_is_what_it_is_alone(
        lead in prop_oneof![0..40_usize, 4080..4110_usize, 0..20_000_usize],
        behind in 0..5000_usize,
        a in vec(any::<u8>(), 0..50),
        b in vec(any::<u8>(), 0..6000),
        name in ".{0,5}",
    ) {
        prop_assume!(name != "b" && name != "__metadata__");
        let folder = Folder::new();
        let model = shard(&[(&name, &a), ("b", &b)]);
        let path = folder.file("c", [&vec![0xa5; lead][..], &model, &vec![0x5a; behind]].concat());
        let end = lead + model.len();
        let told = open(&path, lead as u64..end as u64).unwrap();
        prop_assert_eq!(told.names(), vec![&*name, "b"]);
        prop_assert_eq!((told.bytes(&name), told.bytes("b")), (&a[..], &b[..]));
        prop_assert_eq!(told.tensors[1].range.end, end as u64);
        prop_assert_eq!(told.tensors[1].range.start, (end - b.len()) as u64);
    }
}
