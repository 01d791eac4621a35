//! Is what was written what was meant, and is nothing else lost?
//!
//! ```text
//!   tensors in any order ──Writer──▶ bytes ──Model──▶ the same tensors
//!   a file, mapped       ──Writer──▶ over itself; its views show what they showed
//! ```

use barest::{Dtype, EditMetadata, ErrorKind, Header, LeftKind, Model, Order, Writer, left_in};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

#[path = "../src/barest/skip.rs"]
mod skip;
use skip::skip;

#[derive(Clone, Debug)]
struct Given {
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("barest-write-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
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

// What anyone may want to write.

/// Any text, and often text that needs care in JSON.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c.]{0,4}",
        any::<String>(),
        "[\"\\\\\u{0}-\u{1f}\u{7f}/é🦀\u{2028}\u{202e}]{0,6}",
        select(vec!["__metadata", "dtype", "shape", "data_offsets", " ", "model.layers.0.w"])
            .prop_map(str::to_owned),
    ]
}

fn tensors() -> impl Strategy<Value = Vec<Given>> {
    let one = (text(), select(Dtype::ALL), vec(0u64..5, 0..4), any::<u8>());
    vec(one, 0..12).prop_map(|tensors| {
        let mut seen = HashSet::from(["__metadata__".to_owned()]);
        let tensors = tensors.into_iter().filter(|(name, ..)| seen.insert(name.clone()));
        tensors.map(|(name, dtype, shape, seed)| given(name, dtype, shape, seed)).collect()
    })
}

/// With a shape that fills its last byte.
fn given(name: String, dtype: Dtype, mut shape: Vec<u64>, seed: u8) -> Given {
    let bits = |shape: &[u64]| shape.iter().product::<u64>() * dtype.bits();
    if bits(&shape) % 8 != 0 {
        shape.push(4);
    }
    let len = bits(&shape) / 8;
    let bytes = (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect();
    Given { name, dtype, shape, bytes }
}

fn pairs() -> impl Strategy<Value = Option<Vec<(String, String)>>> {
    proptest::option::of(vec((text(), text()), 0..6))
}

fn writer(tensors: &[Given]) -> Writer<'_> {
    let mut writer = Writer::new();
    for Given { name, dtype, shape, bytes } in tensors {
        writer.tensor(name, *dtype, &shape[..], bytes);
    }
    writer
}

fn written(writer: &mut Writer<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let count = writer.write_to(&mut bytes).unwrap();
    assert_eq!(count, bytes.len() as u64);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        source_file: Some(file!()),
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_written_is_read(
        tensors in tensors(),
        pairs in pairs(),
        reference in any::<bool>(),
        alignment in select(vec![1u64, 8, 64, 4096]),
    ) {
        let order = if reference { Order::Reference } else { Order::AsGiven };
        let mut writer = writer(&tensors);
        writer.order(order).align(alignment);
        if let Some(pairs) = &pairs {
            writer.metadata_pairs(pairs.iter().map(|(key, value)| (&key[..], &value[..])));
        }
        let bytes = written(&mut writer);
        let model = Model::from_bytes(&bytes).unwrap();

        // 1. The tensors, each with its bytes, and no others.
        prop_assert_eq!(model.len(), tensors.len());
        for Given { name, dtype, shape, bytes } in &tensors {
            let view = model.tensor(name).unwrap();
            prop_assert_eq!((view.dtype(), view.shape()), (*dtype, &shape[..]));
            prop_assert_eq!(view.bytes(), &bytes[..]);
        }
        // 2. In the order that was asked for.
        let mut expected: Vec<&Given> = tensors.iter().collect();
        let rank = |dtype| Dtype::ALL.iter().rposition(|&known| known == dtype).unwrap();
        if reference {
            expected.sort_by(|a, b| {
                rank(b.dtype).cmp(&rank(a.dtype)).then(a.name.as_bytes().cmp(b.name.as_bytes()))
            });
        }
        let names: Vec<&str> = model.tensors().map(|view| view.name()).collect();
        prop_assert_eq!(names, expected.iter().map(|given| &given.name[..]).collect::<Vec<_>>());
        // 3. Metadata, absent or empty or the last value of each key.
        let found: Option<Vec<(String, String)>> = model.metadata(0).map(|metadata| {
            metadata.iter().map(|(key, value)| (key.to_owned(), value.into_owned())).collect()
        });
        let last: Option<BTreeMap<String, String>> = pairs.clone().map(|pairs| pairs.into_iter().collect());
        let found_sorted = found.clone().map(|pairs| pairs.into_iter().collect());
        prop_assert_eq!(&found_sorted, &last);
        if reference {
            prop_assert_eq!(found, last.map(|pairs| pairs.into_iter().collect()));
        }
        // 4. Data where it was asked to begin; no more padding than that needs.
        let header = Header::parse(&bytes, bytes.len() as u64).unwrap();
        let unit = alignment.max(8);
        prop_assert_eq!(header.data_start() % unit, 0);
        let spaces = header.text().len() - header.text().trim_end().len();
        prop_assert!((spaces as u64) < unit);
        // 5. Once more, the same bytes.
        prop_assert_eq!(written(&mut writer), bytes);
    }

    #[test]
    fn bytes_that_come_in_pieces_or_from_a_model_are_the_same(
        tensors in tensors(), piece in 1usize..40,
    ) {
        let expected = written(&mut writer(&tensors));
        let mut streaming = Writer::new();
        for Given { name, dtype, shape, bytes } in &tensors {
            streaming.stream(name, *dtype, &shape[..], move |to| {
                bytes.chunks(piece).try_for_each(|piece| to.write_all(piece))
            });
        }
        prop_assert_eq!(&written(&mut streaming), &expected);
        let model = Model::from_bytes(&expected).unwrap();
        let mut copying = Writer::new();
        for view in model.tensors() {
            copying.copy(view.name(), view);
        }
        prop_assert_eq!(&written(&mut copying), &expected);
    }
}

#[test]
fn the_layout_is_spelled_as_the_reference_spells_it() {
    let tensors = [
        given("b".into(), Dtype::U8, vec![3], 0),
        given("z".into(), Dtype::F32, vec![], 0),
        given("a\n\"é".into(), Dtype::F32, vec![2, 1], 0),
        given("e".into(), Dtype::Bool, vec![0], 0),
    ];
    let bytes = written(writer(&tensors).metadata("format", "pt"));
    let header = r#"{"__metadata__":{"format":"pt"},"a\n\"é":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"z":{"dtype":"F32","shape":[],"data_offsets":[8,12]},"b":{"dtype":"U8","shape":[3],"data_offsets":[12,15]},"e":{"dtype":"BOOL","shape":[0],"data_offsets":[15,15]}}"#;
    let padded = header.len().next_multiple_of(8);
    assert_eq!(bytes[..8], (padded as u64).to_le_bytes());
    assert_eq!(
        std::str::from_utf8(&bytes[8..8 + padded]).unwrap(),
        format!("{header}{}", " ".repeat(padded - header.len()))
    );
    assert_eq!(written(&mut Writer::new()), *b"\x08\0\0\0\0\0\0\0{}      ");
}

#[test]
fn what_is_wrong_is_told_before_a_byte_is_written() {
    static BYTES: [u8; 64] = [0; 64];
    static LONG: LazyLock<String> = LazyLock::new(|| "n".repeat(200));
    type Plan = Box<dyn Fn(&mut Writer<'static>)>;
    let (bytes, long): (&'static [u8], &'static str) = (&BYTES, &LONG);
    let cases: Vec<(&str, Plan)> = vec![
        (
            "tensor `a`: another tensor of this name",
            Box::new(move |writer| {
                writer.tensor("a", Dtype::U8, vec![1], &bytes[..1]);
                writer.tensor("b", Dtype::U8, vec![1], &bytes[..1]);
                writer.tensor("a", Dtype::U8, vec![1], &bytes[..1]);
            }),
        ),
        (
            "tensor `__metadata__`: no tensor can have this name",
            Box::new(move |writer| {
                writer.tensor("__metadata__", Dtype::U8, vec![1], &bytes[..1]);
            }),
        ),
        (
            "tensor `a`: F32 [2,3] needs 24 bytes, 23 were given",
            Box::new(move |writer| {
                writer.tensor("a", Dtype::F32, vec![2, 3], &bytes[..23]);
            }),
        ),
        (
            "tensor `a`: F32 [0] needs 0 bytes, 4 were given",
            Box::new(move |writer| {
                writer.tensor("a", Dtype::F32, vec![0], &bytes[..4]);
            }),
        ),
        (
            "tensor `a`: F4 [3] has 12 bits, not a whole number of bytes",
            Box::new(move |writer| {
                writer.tensor("a", Dtype::F4, vec![3], &bytes[..2]);
            }),
        ),
        (
            "tensor `a`: the bits of U8 [9223372036854775808,2]",
            Box::new(move |writer| {
                writer.stream("a", Dtype::U8, vec![1 << 63, 2], |_| panic!("called"));
            }),
        ),
        (
            "tensor `a`: the bits of U8 [18446744073709551615]",
            Box::new(move |writer| {
                writer.stream("a", Dtype::U8, vec![u64::MAX], |_| panic!("called"));
            }),
        ),
        (
            "together the tensors have more bytes",
            Box::new(move |writer| {
                for number in 0..9 {
                    writer.stream(number.to_string(), Dtype::U8, vec![u64::MAX / 8], |_| panic!());
                }
            }),
        ),
        (
            "together the tensors have more bytes",
            Box::new(move |writer| {
                for number in 0..8 {
                    writer.stream(number.to_string(), Dtype::U8, vec![u64::MAX / 8], |_| panic!());
                }
            }),
        ),
        (
            "header length too large: 256 bytes, the cap is 255",
            Box::new(move |writer| {
                writer.tensor(long, Dtype::U8, vec![1], &bytes[..1]).header_cap(255);
            }),
        ),
        (
            "header length too large: 4088 bytes, the cap is 300",
            Box::new(move |writer| {
                writer.tensor(long, Dtype::U8, vec![1], &bytes[..1]).header_cap(300).align(4096);
            }),
        ),
        (
            "header length too large",
            Box::new(move |writer| {
                writer.align(1 << 63);
            }),
        ),
        (
            "data cannot be aligned to 0 bytes",
            Box::new(|writer| {
                writer.align(0);
            }),
        ),
        (
            "data cannot be aligned to 24 bytes",
            Box::new(|writer| {
                writer.align(24);
            }),
        ),
    ];
    let scratch = Scratch::new("plan");
    for (expected, prepare) in cases {
        let mut writer = Writer::new();
        prepare(&mut writer);
        let mut bytes = Vec::new();
        let error = writer.write_to(&mut bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n{expected}");
        assert!(!error.contains('\n') && bytes.is_empty(), "{error}");
        assert_eq!(writer.plan().unwrap_err().to_string(), error);
        let path = scratch.path("m.safetensors");
        let saving = writer.save(&path).unwrap_err();
        assert_eq!(saving.path(), Some(&*path));
        assert!(saving.to_string().ends_with(&error), "{saving}");
    }
    assert_eq!(scratch.names(), [""; 0]);
    let mut fits = Writer::new();
    fits.tensor(long, Dtype::U8, vec![1], &bytes[..1]).header_cap(256);
    assert_eq!(fits.plan().unwrap().header().header_len(), 256);
}

#[test]
fn a_callback_must_give_exactly_its_bytes() {
    let scratch = Scratch::new("callback");
    let path = scratch.path("m.safetensors");
    fs::write(&path, "old").unwrap();
    type Give = fn(&mut dyn Write) -> io::Result<()>;
    for (expected, give) in [
        ("U8 [4] needs 4 bytes, 3 were given", (|to| to.write_all(b"123")) as Give),
        ("U8 [4] needs 4 bytes, 0 were given", |_| Ok(())),
        ("U8 [4] needs 4 bytes, 5 were given", |to| to.write_all(b"12345")),
        ("U8 [4] needs 4 bytes, 5 were given", |to| {
            to.write_all(b"1234")?;
            to.write_all(b"5")
        }),
        // Nor does it help to look away.
        ("U8 [4] needs 4 bytes, 6 were given", |to| {
            let _ = to.write_all(b"123456");
            Ok(())
        }),
        ("cannot get the bytes of the tensor: no such luck", |to| {
            to.write_all(b"12")?;
            Err(io::Error::other("no such luck"))
        }),
    ] {
        let mut writer = Writer::new();
        writer.stream("t", Dtype::U8, vec![4], give);
        let error = writer.save(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("tensor `t`: {expected}")), "{error}");
        assert_eq!(
            (scratch.names(), &*fs::read(&path).unwrap()),
            (vec!["m.safetensors".into()], &b"old"[..])
        );
    }
}

#[test]
fn what_does_not_read_back_as_written_never_gets_the_name() {
    let scratch = Scratch::new("verify");
    let path = scratch.path("m.safetensors");
    fs::write(&path, "old").unwrap();
    // A source that changes its mind stands for a disk that does.
    for (len, change, place) in [(10u64, 1, 3), (3_000_000, 1, 2_999_999), (3_000_000, 0, 0)] {
        let mut times = 0;
        let mut writer = Writer::new();
        writer.verify(true).align(4096);
        writer.stream("t", Dtype::U8, vec![len], move |to| {
            let mut bytes = vec![7; len as usize];
            bytes[place] += times * change;
            times += 1;
            to.write_all(&bytes)
        });
        match writer.save(&path) {
            Ok(_) => assert_eq!(change, 0),
            Err(error) => {
                let expected = "expected byte 0x08, found 0x07";
                assert!(change == 1 && error.to_string().contains(expected), "{error}");
                assert_eq!(error.offset(), Some(4096 + place as u64));
                assert_eq!((error.tensor(), error.path()), (Some("t"), Some(&*path)));
                assert_eq!(fs::read(&path).unwrap(), b"old");
            }
        }
        assert_eq!(scratch.names(), ["m.safetensors"]);
    }
}

#[test]
fn progress_goes_forward_to_the_end() {
    let scratch = Scratch::new("progress");
    let path = scratch.path("m.safetensors");
    let tensor = given("w".into(), Dtype::U8, vec![5_000_000], 5);
    writer(std::slice::from_ref(&tensor)).save(&path).unwrap();
    let file_len = fs::metadata(&path).unwrap().len();
    // SAFETY: it is replaced by rename, which the promise allows.
    let model = unsafe { Model::open(&path).unwrap() };
    for (verify, all) in [(false, file_len), (true, file_len * 2)] {
        let told = std::cell::RefCell::new(Vec::new());
        let mut writer = Writer::new();
        writer.copy("w", model.tensor("w").unwrap()).verify(verify);
        writer.progress(|done, of| told.borrow_mut().push((done, of))).save(&path).unwrap();
        drop(writer);
        let told = told.into_inner();
        assert!(told.windows(2).all(|pair| pair[0].0 < pair[1].0), "{told:?}");
        assert_eq!(told.last(), Some(&(all, all)));
        assert!(told.len() > 1 && told.iter().all(|&(_, of)| of == all), "{told:?}");
    }
}

#[test]
fn a_file_can_be_saved_over_itself_while_it_is_mapped() {
    let scratch = Scratch::new("itself");
    let path = scratch.path("m.safetensors");
    let tensor = given("w".into(), Dtype::F32, vec![4, 4, 4096], 5);
    writer(std::slice::from_ref(&tensor)).save(&path).unwrap();
    // SAFETY: it is replaced by rename, which the promise allows.
    let model = unsafe { Model::map(&path).unwrap() };
    let mut again = Writer::new();
    again.copy("renamed", model.tensor("w").unwrap()).align(4096).metadata("a", "b");
    let saved = again.save(&path).unwrap();
    assert_eq!(saved.path(), path);
    assert!(saved.left().is_empty() && saved.unsynced().is_none(), "{saved:?}");
    assert_eq!(model.tensor("w").unwrap().bytes(), tensor.bytes);
    let new = Model::read(&path).unwrap();
    assert_eq!(new.tensor("renamed").unwrap().bytes(), tensor.bytes);
    assert_eq!(new.tensor("renamed").unwrap().file_range().start % 4096, 0);
    assert_eq!(scratch.names(), ["m.safetensors"]);
}

#[test]
fn a_copy_is_the_same_wherever_it_comes_to_lie() {
    let scratch = Scratch::new("lie");
    let (from, to) = (scratch.path("from.safetensors"), scratch.path("to.safetensors"));
    // No page is like another.
    let large: Vec<u8> = (0..700_001u64).map(|i| ((i * i) >> 9) as u8).collect();
    for before in [0usize, 1, 4095, 4096, 5000, 300_000] {
        for alignment in [8, 4096] {
            let mut writer = Writer::new();
            writer.order(Order::AsGiven).align(alignment);
            writer.tensor("before", Dtype::U8, vec![before as u64], &large[..before]);
            writer.tensor("large", Dtype::U8, vec![700_001], &large);
            writer.tensor("after", Dtype::U8, vec![3], b"end");
            writer.save(&from).unwrap();
            // SAFETY: it is replaced by rename, which the promise allows.
            let model = unsafe { Model::map(&from).unwrap() };
            for (names, alignment) in [
                (&["before", "large", "after"][..], 8),
                (&["before", "large", "after"], 4096),
                (&["large", "after", "before"], 4096),
                (&["after", "large"], 8),
            ] {
                let mut writer = Writer::new();
                writer.order(Order::AsGiven).align(alignment);
                for name in names {
                    writer.copy(*name, model.tensor(name).unwrap());
                }
                writer.save(&to).unwrap();
                let copy = Model::read(&to).unwrap();
                for name in names {
                    let (one, other) = (model.tensor(name).unwrap(), copy.tensor(name).unwrap());
                    assert!(one.bytes() == other.bytes(), "{name} of {names:?} behind {before}");
                }
            }
        }
    }
}

#[test]
fn a_source_that_became_shorter_is_an_error_and_not_a_signal() {
    let scratch = Scratch::new("shorter");
    let (from, to) = (scratch.path("from.safetensors"), scratch.path("to.safetensors"));
    let tensor = given("w".into(), Dtype::U8, vec![300_000], 5);
    writer(std::slice::from_ref(&tensor)).save(&from).unwrap();
    // SAFETY: the promise is broken below, and after that no byte is touched through the mapping.
    let model = unsafe { Model::map(&from).unwrap() };
    fs::OpenOptions::new().write(true).open(&from).unwrap().set_len(100_000).unwrap();
    let error = Writer::new().copy("w", model.tensor("w").unwrap()).save(&to).unwrap_err();
    assert!(error.to_string().contains("the file ended early"), "{error}");
    assert_eq!(scratch.names(), ["from.safetensors"]);
}

#[test]
fn something_else_of_that_name_is_left_alone() {
    let scratch = Scratch::new("else");
    fs::create_dir(scratch.path("d")).unwrap();
    let refused = Writer::new().save(scratch.path("d")).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::NotAFile { found: "a directory" }), "{refused}");
    let refused = Writer::new().save(scratch.path("none/m.safetensors")).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Io { .. }), "{refused}");
    for path in ["", "/", "..", "."] {
        Writer::new().save(path).unwrap_err();
    }
}

#[test]
fn what_was_left_behind_is_told() {
    let scratch = Scratch::new("left");
    let path = scratch.path("m.safetensors");
    for name in
        [".m.safetensors.1.partial", ".other.safetensors.1.partial", ".m.safetensors.header-backup"]
    {
        fs::write(scratch.path(name), "").unwrap();
    }
    let saved = Writer::new().save(&path).unwrap();
    let kinds: Vec<LeftKind> = saved.left().iter().map(|left| left.kind()).collect();
    assert_eq!(kinds, [LeftKind::Partial { process: 1 }, LeftKind::StaleBackup]);
    assert_eq!(left_in(&scratch.0).unwrap().len(), 3);
    // Our own number, left by another with the same: it is not touched.
    let ours = format!(".m.safetensors.{}.partial", std::process::id());
    fs::write(scratch.path(&ours), "another's").unwrap();
    Writer::new().metadata("k", "v").save(&path).unwrap();
    assert_eq!(fs::read(scratch.path(&ours)).unwrap(), b"another's");
    assert_eq!(scratch.names().len(), 5);
}

#[test]
fn two_threads_may_save_the_same_file() {
    let scratch = Scratch::new("threads");
    let path = scratch.path("m.safetensors");
    let tensor = given("w".into(), Dtype::U8, vec![100_000], 5);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..5 {
                    writer(std::slice::from_ref(&tensor)).save(&path).unwrap();
                }
            });
        }
    });
    assert_eq!(Model::read(&path).unwrap().tensor("w").unwrap().bytes(), tensor.bytes);
    assert_eq!(scratch.names(), ["m.safetensors"]);
}

/// What Python makes of a file: a line for each tensor, and the metadata.
const READ_BY_PYTHON: &str = "
import sys
from safetensors import safe_open
with safe_open(sys.argv[1], framework='np') as f:
    for name in sorted(f.keys()):
        part = f.get_slice(name)
        print(ascii(name), part.get_dtype(), part.get_shape())
    print(sorted(f.metadata().items()))
";

#[test]
fn python_opens_what_is_written() {
    let found = Command::new("python3").args(["-c", "import safetensors, numpy"]).output();
    if !found.is_ok_and(|found| found.status.success()) {
        return skip("safetensors and numpy for Python", "one reader less to ask");
    }
    let scratch = Scratch::new("python");
    let path = scratch.path("m.safetensors");
    let tensors: Vec<Given> = Dtype::ALL
        .iter()
        .map(|&dtype| given(format!("é\n{dtype}"), dtype, vec![2, 4], 1))
        .chain([given("empty".into(), Dtype::F32, vec![0, 3], 1)])
        .chain([given("scalar".into(), Dtype::F32, vec![], 1)])
        .collect();
    for (order, alignment) in [(Order::Reference, 8), (Order::AsGiven, 4096)] {
        let mut writer = writer(&tensors);
        writer.order(order).align(alignment).metadata("k", "\"v\u{1}\"");
        writer.save(&path).unwrap();
        let output = Command::new("python3")
            .args(["-c", READ_BY_PYTHON])
            .arg(&path)
            .env("PYTHONIOENCODING", "utf-8")
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{err}");
        let mut sorted: Vec<&Given> = tensors.iter().collect();
        sorted.sort_by(|one, other| one.name.cmp(&other.name));
        let mut expected = String::new();
        for Given { name, dtype, shape, .. } in sorted {
            let name = name.replace('é', "\\xe9").replace('\n', "\\n");
            let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
            expected += &format!("'{name}' {dtype} [{}]\n", shape.join(", "));
        }
        expected += "[('k', '\"v\\x01\"')]\n";
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_new_file_has_the_mode_of_any_new_file_and_a_replaced_one_keeps_its_own() {
        let scratch = Scratch::new("mode");
        let path = scratch.path("m.safetensors");
        fs::write(scratch.path("any"), "").unwrap();
        Writer::new().save(&path).unwrap();
        assert_eq!(mode(&path), mode(&scratch.path("any")));
        for old in [0o664, 0o600, 0o666, 0o444, 0o777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(old)).unwrap();
            Writer::new().save(&path).unwrap();
            assert_eq!(mode(&path), old, "{old:o}");
            EditMetadata::new().set("k", "v").save(&path).unwrap();
            assert_eq!(mode(&path), old, "{old:o}");
        }
    }

    #[test]
    fn the_umask_counts() {
        let scratch = Scratch::new("umask");
        let path = scratch.path("m.safetensors");
        let program = env!("CARGO_BIN_EXE_barest");
        Writer::new().save(scratch.path("old.safetensors")).unwrap();
        for (umask, expected) in [("022", 0o644), ("077", 0o600), ("007", 0o660)] {
            let _ = fs::remove_file(&path);
            let script = "umask \"$1\" && exec \"$2\" pack \"$3\" \"$4\"";
            let status = Command::new("sh")
                .args(["-c", script, "sh", umask, program])
                .args([&scratch.path("old.safetensors"), &path])
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert!(status.success(), "{status}");
            assert_eq!(mode(&path), expected, "umask {umask}");
        }
    }

    #[test]
    fn a_symbolic_link_stays_one() {
        let scratch = Scratch::new("link");
        fs::create_dir(scratch.path("blobs")).unwrap();
        let (link, blob) = (scratch.path("m.safetensors"), scratch.path("blobs/1"));
        symlink("middle", &link).unwrap();
        symlink("blobs/1", scratch.path("middle")).unwrap();
        // One that leads nowhere yet, then one that leads to a file.
        for value in ["first", "second"] {
            let saved = Writer::new().metadata("k", value).save(&link).unwrap();
            assert_eq!(saved.path(), scratch.path("./blobs/1"));
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert!(fs::symlink_metadata(&blob).unwrap().is_file());
            let header = Header::open(&link).unwrap();
            assert_eq!(header.metadata().unwrap().get("k").unwrap(), value);
        }
        EditMetadata::new().set("k", "third").save(&link).unwrap();
        EditMetadata::new().set("k", "fifth").save_in_place(&link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(scratch.path("blobs")).unwrap().count(), 1);
        let header = Header::open(&blob).unwrap();
        assert_eq!(header.metadata().unwrap().get("k").unwrap(), "fifth");

        symlink("loop", scratch.path("loop")).unwrap();
        let refused = Writer::new().save(scratch.path("loop")).unwrap_err().to_string();
        assert!(refused.contains("too many symbolic links"), "{refused}");
    }

    #[test]
    fn a_full_file_system_loses_nothing() {
        let scratch = Scratch::new("full");
        let disk = scratch.path("disk");
        fs::create_dir(&disk).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"])
            .arg(&disk)
            .output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            return skip("the right to mount", "no small file system to fill");
        }
        let unmounted = Unmounted(&disk);
        let path = disk.join("m.safetensors");
        let small = given("w".into(), Dtype::U8, vec![300_000], 1);
        let large = given("w".into(), Dtype::U8, vec![400_000], 1);
        // 1. Nothing there yet; too much for the disk at all.
        let too_large = given("w".into(), Dtype::U8, vec![600_000], 1);
        let error = writer(std::slice::from_ref(&too_large)).save(&path).unwrap_err().to_string();
        assert!(error.contains("cannot write: "), "{error}");
        assert_eq!(fs::read_dir(&disk).unwrap().count(), 0);
        // 2. There is one, and no room for another: by bytes, by callback, and by the kernel.
        writer(std::slice::from_ref(&small)).save(&path).unwrap();
        let old = fs::read(&path).unwrap();
        let source = scratch.path("source.safetensors");
        writer(std::slice::from_ref(&large)).save(&source).unwrap();
        // SAFETY: nobody changes the file.
        let model = unsafe { Model::map(&source).unwrap() };
        let mut by_kernel = Writer::new();
        by_kernel.copy("w", model.tensor("w").unwrap());
        let mut by_callback = Writer::new();
        by_callback.stream("w", Dtype::U8, vec![400_000], |to| to.write_all(&large.bytes));
        for mut writer in [writer(std::slice::from_ref(&large)), by_callback, by_kernel] {
            let error = writer.save(&path).unwrap_err().to_string();
            assert!(error.contains("cannot write: "), "{error}");
            assert_eq!(fs::read(&path).unwrap(), old);
            assert_eq!(fs::read_dir(&disk).unwrap().count(), 1);
        }
        // 3. Changed metadata needs as much room.
        let error = EditMetadata::new().set("k", "v").save(&path).unwrap_err().to_string();
        assert!(error.contains("cannot write: "), "{error}");
        assert_eq!(fs::read(&path).unwrap(), old);
        assert_eq!(fs::read_dir(&disk).unwrap().count(), 1);
        drop(unmounted);
    }

    struct Unmounted<'a>(&'a Path);

    impl Drop for Unmounted<'_> {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(self.0).status();
        }
    }
}

#[test]
fn metadata_is_changed_and_every_other_byte_stays() {
    let scratch = Scratch::new("edit");
    let path = scratch.path("m.safetensors");
    let tensor = r#""t": {"shape":[3], "extra":[1.0e2], "dtype":"U8","data_offsets":[0,3]}"#;
    for (header, after) in [
        (format!(r#"{{"__metadata__": {{"a":"\u0031"}}, {tensor}}}"#), 0),
        (format!(r#"  {{ {tensor} ,"__metadata__":null }}  "#), 1),
        (format!(r#"{{{tensor}}}"#), 2),
        (format!(r#"{{{tensor}}}{}"#, " ".repeat(100)), 3),
    ] {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes());
        bytes.extend(b"xyz");
        fs::write(&path, &bytes).unwrap();
        let mut edit = EditMetadata::new();
        edit.set("b", "2\n").set("c", "3").set("b", "4\u{0}").set("d", "5").unset("d");
        let saved = edit.save(&path).unwrap();
        assert!(saved.unsynced().is_none());
        let model = Model::read(&path).unwrap();
        let pairs: Vec<(String, String)> = model
            .metadata(0)
            .unwrap()
            .iter()
            .map(|(key, value)| (key.to_owned(), value.into_owned()))
            .collect();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let mut expected = vec![pair("b", "4\u{0}"), pair("c", "3")];
        if after == 0 {
            expected.insert(0, pair("a", "1"));
        }
        assert_eq!(pairs, expected);
        assert_eq!(model.tensor("t").unwrap().bytes(), b"xyz");
        let text = Header::open(&path).unwrap().text().to_owned();
        assert!(text.contains(tensor), "{text}");
        if after == 3 {
            assert_eq!(text.len(), header.len(), "there was room for it");
        }
        let refused = EditMetadata::new().unset("none").save(&path).unwrap_err().to_string();
        assert!(refused.ends_with("`__metadata__` has no key `none`"), "{refused}");
    }
}

#[test]
fn data_keeps_its_boundary_when_the_header_grows() {
    let scratch = Scratch::new("boundary");
    let path = scratch.path("m.safetensors");
    let tensor = given("w".into(), Dtype::U8, vec![70_000], 1);
    for alignment in [8u64, 64, 4096, 16384] {
        writer(std::slice::from_ref(&tensor)).align(alignment).save(&path).unwrap();
        EditMetadata::new().set("k", "v".repeat(20_000)).save(&path).unwrap();
        let header = Header::open(&path).unwrap();
        assert_eq!(header.data_start() % alignment, 0, "{alignment}");
        assert_eq!(Model::read(&path).unwrap().tensor("w").unwrap().bytes(), tensor.bytes);
    }
}

#[test]
fn in_place_fits_or_is_refused() {
    let scratch = Scratch::new("place");
    let path = scratch.path("m.safetensors");
    let tensor = given("w".into(), Dtype::U8, vec![8], 1);
    writer(std::slice::from_ref(&tensor)).metadata("k", "1").align(256).save(&path).unwrap();
    let old = fs::read(&path).unwrap();
    let room = 248 - Header::open(&path).unwrap().text().trim_end().len() + 1;
    let refused =
        EditMetadata::new().set("k", "x".repeat(room + 1)).save_in_place(&path).unwrap_err();
    let kind = refused.kind();
    assert!(matches!(kind, ErrorKind::NoRoomInPlace { expected: 249, found: 248 }), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), old);
    EditMetadata::new().set("k", "x".repeat(room)).save_in_place(&path).unwrap();
    let new = fs::read(&path).unwrap();
    assert_eq!((new.len(), &new[256..]), (old.len(), &old[256..]));
    assert_eq!(scratch.names(), ["m.safetensors"]);
    // And back to the byte.
    EditMetadata::new().set("k", "1").save_in_place(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), old);

    fs::write(scratch.path(".m.safetensors.header-backup"), "").unwrap();
    let refused = EditMetadata::new().set("k", "2").save_in_place(&path).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::LeftBackup { .. }), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), old);
}
