//! What becomes of one file of several, or of a part of a larger one, under a model that is in use:
//! is it told of the right file, at the file's own offset, and of nothing else?

use crate::files::{Folder, INDEX, safetensors, shard};
use crate::skip::skip;
use barest::{Error, ErrorKind, Index, Mapping, Model, Writer, sigbus};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

fn map(path: impl AsRef<Path>) -> Model {
    // SAFETY: the tests of this file break the promise on purpose, and touch what is left; or all,
    // with a guard.
    unsafe { Model::map(path) }.unwrap()
}

fn cut(path: &Path, len: u64) {
    File::options().write(true).open(path).unwrap().set_len(len).unwrap();
}

/// Three shards of some pages each: `a`, `b` and `c`, each behind a small `A`, `B`, `C`.
fn set(folder: &Folder) -> [PathBuf; 3] {
    let long = 5 * Mapping::page_size();
    let name = |name: &str| format!("{name}.safetensors");
    let shards = ["a", "b", "c"].map(|tensor| {
        let small = tensor.to_uppercase();
        let bytes = vec![tensor.as_bytes()[0]; long];
        folder.shard(&name(tensor), &[(&small, &[1, 2, 3]), (tensor, &bytes)])
    });
    let names = ["a", "b", "c"].map(name);
    let entry = |at: usize| (["a", "b", "c", "A", "B", "C"][at], &*names[at % 3]);
    folder.index(&[0, 1, 2, 3, 4, 5].map(entry));
    shards
}

/// Truncated, in this file and tensor, at this offset of the file.
fn assert_cut(error: &Error, path: &Path, tensor: &str, offset: u64) {
    assert!(matches!(error.kind(), ErrorKind::Truncated { mapped: true, .. }), "{error}");
    assert_eq!((error.path(), error.tensor()), (Some(path), Some(tensor)), "{error}");
    assert_eq!(error.offset(), Some(offset), "{error}");
}

#[test]
fn of_a_set_the_file_that_was_cut_is_named() {
    let folder = Folder::new();
    let [_, second, _] = set(&folder);
    let (mapped, read) = (map(&folder.0), Model::read(folder.path(INDEX)).unwrap());
    for model in [&mapped, &read] {
        model.still_whole().unwrap();
        model.tensors().try_for_each(|tensor| tensor.verify_present()).unwrap();
    }
    let index = Index::open(&folder.0).unwrap();
    let range = index.tensor("b").unwrap().1.file_range();
    let left = range.start + 2 * Mapping::page_size() as u64 + 9;
    cut(&second, left);

    assert_cut(&mapped.still_whole().unwrap_err(), &second, "b", left);
    assert_cut(&mapped.tensor("b").unwrap().verify_present().unwrap_err(), &second, "b", left);
    for name in ["a", "c", "A", "B", "C"] {
        let view = mapped.tensor(name).unwrap();
        view.verify_present().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for (shard, is_whole) in mapped.shards().zip([true, false, true]) {
        assert_eq!(shard.still_whole().is_ok(), is_whole, "{shard:?}");
    }
    // The index, which has no pages, says so too.
    let error = index.read_into("b", &mut vec![0; range.end as usize - range.start as usize]);
    let error = error.unwrap_err();
    assert_eq!((error.path(), error.offset()), (Some(&*second), Some(left)), "{error}");
    // The copy has all bytes, and its file is another all the same.
    let error = read.still_whole().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Shrank { .. }), "{error}");
    assert_eq!(error.path(), Some(&*second));
    read.tensor("b").unwrap().verify_present().unwrap();
    assert!(read.tensor("b").unwrap().bytes().iter().all(|&byte| byte == b'b'));
}

/// A model with 300 bytes and some pages of something else before it, and as many behind it.
fn part(folder: &Folder) -> (PathBuf, std::ops::Range<u64>) {
    let page = Mapping::page_size();
    let header = r#"{"w":{"dtype":"F32","shape":[5,1024],"data_offsets":[0,20480]}}"#;
    let model = safetensors(header, &[0x3f; 20480]);
    let around = vec![0xee; 3 * page + 300];
    let path = folder.file("container", [&around, &model, &around[..]].concat());
    let start = around.len() as u64;
    (path, start..start + model.len() as u64)
}

fn map_part(path: &Path, range: &std::ops::Range<u64>) -> Model {
    let index = Index::open_range(path, range.clone()).unwrap();
    // SAFETY: as in `map`.
    unsafe { index.map() }.unwrap()
}

#[test]
fn of_a_part_of_a_file_the_offset_is_the_file_s() {
    let folder = Folder::new();
    let (path, range) = part(&folder);
    let model = map_part(&path, &range);
    model.still_whole().unwrap();
    model.tensor("w").unwrap().verify_present().unwrap();
    let data = model.tensor("w").unwrap().file_range();
    assert_eq!(data.end, range.end);

    // What stood behind the part is gone: the file is another, and no byte of the model is lost.
    cut(&path, range.end + 1);
    let error = model.still_whole().unwrap_err();
    let ErrorKind::Shrank { found, .. } = *error.kind() else { panic!("{error}") };
    assert_eq!((found, error.path(), error.tensor()), (range.end + 1, Some(&*path), None));
    model.tensor("w").unwrap().verify_present().unwrap();

    let left = data.start + Mapping::page_size() as u64 + 77;
    cut(&path, left);
    assert_cut(&model.still_whole().unwrap_err(), &path, "w", left);
    assert_cut(&model.tensor("w").unwrap().verify_present().unwrap_err(), &path, "w", left);
    // Within the header, which is a private copy: the first tensor is lost from its start.
    cut(&path, range.start + 3);
    let error = model.tensor("w").unwrap().verify_present().unwrap_err();
    assert_cut(&error, &path, "w", data.start);
}

#[test]
fn with_the_guard_zeros_in_a_part_and_in_a_set_are_an_error() {
    if let Err(error) = sigbus::install() {
        return skip("a guard against SIGBUS", &error.to_string());
    }
    let folder = Folder::new();
    let (path, range) = part(&folder);
    let model = map_part(&path, &range);
    let view = model.tensor("w").unwrap();
    let page = Mapping::page_size() as u64;
    // The end of a page: only what lies on lost pages raises a signal.
    let left = (view.file_range().start + page).next_multiple_of(page);
    cut(&path, left);
    assert_cut(&view.to_f32().unwrap_err(), &path, "w", left);
    assert_eq!(view.row(0).unwrap().to_f32().unwrap(), [f32::from_le_bytes([0x3f; 4]); 1024]);

    let [_, second, third] = set(&folder);
    let model = map(folder.path(INDEX));
    let start = model.tensor("b").unwrap().file_range().start;
    let left = (start + page).next_multiple_of(page);
    cut(&second, left);
    let hashes: Vec<bool> = model.shards().map(|shard| shard.data_sha256().is_ok()).collect();
    assert_eq!(hashes, [true, false, true], "{third:?}");
    let error = model.shards().nth(1).unwrap().data_sha256().unwrap_err();
    assert_cut(&error, &second, "b", left);
    assert_cut(&model.still_whole().unwrap_err(), &second, "b", left);
}

/// All tensors of a model in one file.
fn merged(model: &Model) -> Writer<'_> {
    let mut writer = Writer::new();
    for view in model.tensors() {
        writer.copy(view.name(), view);
    }
    writer
}

/// Drops all pages of a model, where the system can do that.
fn drop_pages(model: &Model) {
    let Err(error) = model.pages().evict() else { return };
    let ErrorKind::Io { source, .. } = error.kind() else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::Unsupported, "{error}");
    skip("dropping pages", "they stay in memory here");
}

#[test]
fn many_files_are_saved_over_one_of_them_while_they_are_mapped() {
    let folder = Folder::new();
    let [first, second, _] = set(&folder);
    let model = map(&folder.0);
    let before: Vec<Vec<u8>> = model.tensors().map(|view| view.bytes().to_vec()).collect();
    let prefetcher = model.pages().prefetch().unwrap();
    let mut last = (0, 0);
    let mut writer = merged(&model);
    writer.verify(true).progress(|done, all| last = (done, all));
    writer.save(&second).unwrap();
    drop(writer);
    prefetcher.wait_all().unwrap();
    assert_eq!(last, (last.1, 2 * fs::metadata(&second).unwrap().len()));
    // The views show the file that had the name, though its pages are dropped and read again.
    model.still_whole().unwrap();
    drop_pages(&model);
    for (view, before) in model.tensors().zip(&before) {
        assert_eq!(view.bytes(), before, "{}", view.name());
    }
    model.still_whole().unwrap();
    // And can be saved again, over another of them.
    merged(&model).save(&first).unwrap();
    assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
    let saved = map(&first);
    assert_eq!(saved.len(), 6);
    for view in model.tensors() {
        assert_eq!(saved.tensor(view.name()).unwrap().bytes(), view.bytes());
    }
    drop_pages(&saved);
    saved.tensors().try_for_each(|tensor| tensor.verify_present()).unwrap();
    let names: Vec<_> = fs::read_dir(&folder.0).unwrap().collect();
    assert_eq!(names.len(), 4, "no temporary file is left: {names:?}");
}

/// A change between the first byte and the last: no model that is half of one and half of another
/// gets the name, and what failed is told of the file that changed.
#[test]
fn a_source_that_changes_while_it_is_saved_is_told_and_nothing_is_saved() {
    type Change = fn(&Path);
    fn overwrite(path: &Path) {
        use std::os::unix::fs::FileExt;
        let file = File::options().write(true).open(path).unwrap();
        let written = fs::metadata(path).unwrap().modified().unwrap();
        file.write_all_at(b"!", 900).unwrap();
        // Also within one tick of the clock.
        file.set_modified(written + std::time::Duration::from_secs(1)).unwrap();
    }
    fn empty(path: &Path) {
        cut(path, 0);
    }
    fn rename_over(path: &Path) {
        let other = path.with_extension("other");
        fs::copy(path, &other).unwrap();
        fs::rename(other, path).unwrap();
    }
    let cases: [(&str, Change, Option<&str>); 3] = [
        ("overwritten", overwrite, Some("changed")),
        ("emptied", empty, Some("cut")),
        ("replaced", rename_over, None),
    ];
    for (case, change, told) in cases {
        let folder = Folder::new();
        let [_, second, _] = set(&folder);
        let model = map(&folder.0);
        let mut writer = merged(&model);
        // Its turn comes when all bytes of the second file are written, or wait to be.
        let give = |to: &mut dyn std::io::Write| {
            change(&second);
            to.write_all(&[1])
        };
        writer.order(barest::Order::AsGiven).stream("last", barest::Dtype::U8, &[1][..], give);
        let destination = folder.path("new");
        let outcome = writer.save(&destination).map(|_| ());
        let Some(told) = told else {
            outcome.unwrap_or_else(|error| panic!("{case}: {error}"));
            continue;
        };
        let error = outcome.unwrap_err();
        assert_eq!(error.path(), Some(&*second), "{case}: {error}");
        assert!(error.to_string().contains(told), "{case}: {error}");
        assert!(!destination.exists(), "{case}");
        // The stream is written to as far as it came, and fails all the same.
        let mut bytes = Vec::new();
        drop(writer);
        model.still_whole().unwrap_err();
        let before = fs::metadata(&second).unwrap().len();
        let again = merged(&model).write_to(&mut bytes);
        assert_eq!(again.is_ok(), before > 0, "{case}: only a change meanwhile counts");
    }
}

#[test]
fn bytes_that_cannot_be_read_are_missing_from_the_source_and_not_from_the_new_file() {
    let folder = Folder::new();
    let [_, second, _] = set(&folder);
    let model = map(&folder.0);
    let start = model.tensor("b").unwrap().file_range().start;
    cut(&second, start + 100);
    let error = merged(&model).save(folder.path("new")).unwrap_err();
    let ErrorKind::Shrank { found, .. } = *error.kind() else { panic!("{error}") };
    assert_eq!((error.path(), error.tensor()), (Some(&*second), Some("b")));
    assert_eq!((found, error.offset()), (start + 100, Some(start + 100)));
    // Of a tensor that lies behind the end altogether, its own start, and how long the file is.
    cut(&second, 30);
    let error = merged(&model).save(folder.path("new")).unwrap_err();
    let ErrorKind::Shrank { found, .. } = *error.kind() else { panic!("{error}") };
    let first_of_it = error.tensor().map(|name| model.tensor(name).unwrap().file_range().start);
    assert_eq!((found, error.offset()), (30, first_of_it));
    assert!(!folder.path("new").exists());
    // Into the file itself, or what is called so, nothing was written.
    assert_eq!(fs::metadata(&second).unwrap().len(), 30);
    let alone = shard(&[("x", &[1])]);
    let other = folder.file("other", alone);
    assert!(merged(&model).save(&other).is_err());
    assert_eq!(fs::read(&other).unwrap(), shard(&[("x", &[1])]));
}
