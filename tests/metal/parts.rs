//! Has each file of a model its own buffers, and a part of a file those of its place in the mapping?

use super::fake::{Answers, Fake, NoCopy, USUAL};
use super::{NO_COPY, block, file, page};
use crate::barest::gpu::{Limits, MetalBuffer, MetalDevice, MetalModel, Place, Plan};
use crate::barest::{Index, Model, TensorView};
use proptest::prelude::*;
use proptest::sample::select;
use std::path::{Path, PathBuf};

/// A folder that goes away with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let name = format!("barest-metal-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn map(&self) -> Model {
        // SAFETY: files of this test's own, which it leaves alone.
        unsafe { Model::map(&self.0) }.unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How many of these files this process has mapped, if there is somebody to ask.
fn mapped(paths: &[PathBuf]) -> Option<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    Some(paths.iter().filter(|path| maps.contains(path.to_str().unwrap())).count())
}

/// Behind the buffer and the offset are the tensor's bytes: its own, or a copy.
fn assert_there(fake: &Fake, buffers: &MetalModel, view: &TensorView<'_>) {
    let name = view.name();
    let Some(tensor) = buffers.tensor(name).unwrap() else {
        return assert!(view.is_empty(), "{name}");
    };
    assert!(tensor.offset() + view.byte_len() <= tensor.buffer().len() as usize, "{name}");
    assert_eq!(tensor.offset() % view.dtype().natural_alignment(), 0, "{name}");
    // SAFETY: a living buffer, which nobody writes to; so many bytes it has, as just seen.
    let there = unsafe {
        let contents = fake.contents(tensor.buffer().as_raw());
        std::slice::from_raw_parts(contents.add(tensor.offset()), view.byte_len())
    };
    assert!(there == view.bytes(), "{name}");
    assert_eq!(there.as_ptr() == view.bytes().as_ptr(), !tensor.buffer().is_copy(), "{name}");
}

/// Three shards of one, two and no windows, and tensors that the index leaves out.
fn three(folder: &Folder) -> [PathBuf; 3] {
    let two_pages = page();
    let shards: [&[(&str, &str, usize)]; 3] = [
        &[("b", "BF16", two_pages), ("out", "U8", 1), ("odd", "BF16", 70)],
        &[("c", "BF16", 2 * two_pages), ("a", "BF16", 3 * two_pages)],
        &[("e", "BF16", 0)],
    ];
    let entries: Vec<String> = (1..)
        .zip(shards)
        .flat_map(|(number, tensors)| tensors.iter().map(move |(name, ..)| (number, *name)))
        .filter(|(_, name)| *name != "out")
        .map(|(number, name)| format!("\"{name}\":\"{number}.safetensors\""))
        .collect();
    let index = format!("{{\"weight_map\":{{{}}}}}", entries.join(","));
    folder.file("model.safetensors.index.json", index.as_bytes());
    let mut number = 0;
    shards.map(|tensors| {
        number += 1;
        folder.file(&format!("{number}.safetensors"), &file(page() + 16 * number, tensors))
    })
}

#[test]
fn each_shard_has_its_own_list_of_windows() {
    let folder = Folder::new("shards");
    let paths = three(&folder);
    let fake = Fake::start(Answers { max_buffer_length: 7 * page(), ..USUAL });
    let device = MetalDevice::system_default().unwrap();
    let model = folder.map();
    let calls = block::calls();
    let buffers = MetalModel::new(&device, &model).unwrap();
    // By shard: from the page of its first tensor, in its own mapping.
    let at: Vec<usize> =
        model.shards().map(|shard| shard.mapping().as_ptr() as usize + page()).collect();
    let sent = fake.sent(NO_COPY);
    let windows: Vec<&[usize]> = sent.iter().map(|sent| &sent.arguments[..2]).collect();
    let expected = [[at[0], 3 * page()], [at[1], 5 * page()], [at[1] + 4 * page(), 7 * page()]];
    assert_eq!(windows, expected);
    let number = |buffer: &MetalBuffer| {
        buffers.buffers().position(|other| std::ptr::eq(other, buffer)).unwrap()
    };
    // The windows of a shard, then its copies.
    for (name, buffer, offset) in [("b", 0, 16), ("odd", 1, 0), ("c", 2, 32), ("a", 3, 32)] {
        let tensor = buffers.tensor(name).unwrap().unwrap();
        assert_eq!((number(tensor.buffer()), tensor.offset()), (buffer, offset), "{name}");
        assert_eq!(tensor.buffer().is_copy(), name == "odd");
    }
    assert!(buffers.tensor("e").unwrap().is_none());
    assert!(buffers.tensor("out").is_err(), "no tensor of the model");
    model.tensors().for_each(|view| assert_there(&fake, &buffers, &view));
    assert_eq!(device.current_allocated_size(), device.budget(&model).unwrap().needed);

    // Each file stays as long as somebody uses a buffer of it, and no longer.
    let mut kept: Vec<_> = ["b", "c"].map(|name| model.tensor(name).unwrap().share()).into();
    // SAFETY: a reference of the fake's own, which stands for a command that is running.
    let running = unsafe { buffers.tensor("a").unwrap().unwrap().buffer().as_raw() };
    fake.retain(running);
    let bytes = model.tensor("b").unwrap().bytes().to_vec();
    drop((buffers, device, model));
    assert_eq!(block::calls() - calls, 2);
    assert!(mapped(&paths).is_none_or(|mapped| mapped == 2));
    fake.release(running);
    assert_eq!(block::calls() - calls, 3);
    assert!(kept[0].view().bytes() == bytes, "no buffer let go of it twice");
    for left in [2, 1] {
        assert!(mapped(&paths).is_none_or(|mapped| mapped == left));
        drop(kept.pop());
    }
    assert_eq!(mapped(&paths).unwrap_or_default(), 0);
    fake.end();
}

/// One refusal after the other, over the shards.
#[test]
fn a_window_of_one_shard_may_be_refused_and_those_of_others_not() {
    use NoCopy::{CalledTwice, Made, Nil, NilAndCalled, NilAndKept, Short};
    let folder = Folder::new("refusals");
    let paths = three(&folder);
    for refusals in [
        [Nil, Made, Made],
        [Made, NilAndCalled, CalledTwice],
        [Short, CalledTwice, NilAndKept],
        [NilAndKept, Short, Nil],
    ] {
        let no_copy = [refusals[0], refusals[1], refusals[2], Made];
        let fake = Fake::start(Answers { max_buffer_length: 7 * page(), no_copy, ..USUAL });
        let device = MetalDevice::system_default().unwrap();
        let model = folder.map();
        let buffers = MetalModel::new(&device, &model).unwrap();
        for (name, refusal) in ["b", "c", "a"].into_iter().zip(refusals) {
            let is_made = [Made, CalledTwice].contains(&refusal);
            let tensor = buffers.tensor(name).unwrap().unwrap();
            assert_eq!(tensor.buffer().is_copy(), !is_made, "{name} {refusal:?}");
        }
        model.tensors().for_each(|view| assert_there(&fake, &buffers, &view));
        let kept = model.tensor("a").unwrap().share();
        let bytes = kept.view().bytes().to_vec();
        drop((buffers, model, device));
        assert!(mapped(&paths).is_none_or(|mapped| mapped == 1), "{refusals:?}");
        assert!(kept.view().bytes() == bytes);
        drop(kept);
        assert_eq!(mapped(&paths).unwrap_or_default(), 0, "{refusals:?}");
        fake.end();
    }
}

/// The model that is this range of a file.
fn part(path: &Path, start: usize, len: usize) -> Model {
    let range = start as u64..(start + len) as u64;
    // SAFETY: a file of this test's own, which it leaves alone.
    unsafe { Index::open_range(path, range).and_then(|index| index.map()) }.unwrap()
}

#[test]
fn windows_over_a_part_of_a_file_are_counted_from_the_mapping() {
    let folder = Folder::new("part");
    let model = file(1000, &[("a", "BF16", page()), ("b", "F32", 3)]);
    let start = 2 * page() + 424;
    let bytes = [&vec![0xee; start][..], &model, &[0xee; 9000]].concat();
    let path = folder.file("container", &bytes);
    for refusal in [NoCopy::Made, NoCopy::Nil] {
        let fake = Fake::start(Answers { no_copy: [refusal; 4], ..USUAL });
        let device = MetalDevice::system_default().unwrap();
        let model = part(&path, start, model.len());
        let shard = model.shards().next().unwrap();
        let limits = Limits { page_size: page() as u64, max_buffer_length: 1 << 30 };
        let plan = Plan::of(shard, limits).unwrap();
        assert_eq!(plan.lead(), 424, "of the page in which the part begins");
        // 424 bytes of another, 1000 of the header: the first page has the first tensor.
        let windows = plan.windows();
        assert_eq!(
            (windows.len(), windows[0].start(), windows[0].len()),
            (1, 0, 3 * page() as u64)
        );
        let offsets = [("a", 1424), ("b", 1424 + 2 * page())];
        for (name, offset) in offsets {
            let info = model.tensor(name).unwrap().info();
            let expected = Place::Window { window: 0, offset: offset as u64 };
            assert_eq!(plan.place(&info), expected);
            // Where the shard says that it is.
            assert_eq!(shard.in_mapping(info.file_range()).start, offset);
        }
        let buffers = MetalModel::new(&device, &model).unwrap();
        let sent = fake.sent(NO_COPY);
        let address = shard.mapping().as_ptr() as usize;
        assert_eq!(sent[0].arguments[..2], [address, 3 * page()]);
        for (name, offset) in offsets {
            assert_eq!(buffers.tensor(name).unwrap().unwrap().offset(), offset);
        }
        model.tensors().for_each(|view| assert_there(&fake, &buffers, &view));
        if refusal == NoCopy::Nil {
            // What is around the model is not copied.
            let buffer = buffers.buffers().next().unwrap();
            // SAFETY: a living buffer of three pages, which nobody writes to.
            let there =
                unsafe { std::slice::from_raw_parts(fake.contents(buffer.as_raw()), 3 * page()) };
            assert!(there[..424].iter().all(|&byte| byte == 0));
            let end = 424 + model.shards().next().unwrap().byte_len() as usize;
            assert!(there[end - 12..end].iter().any(|&byte| byte != 0), "the model's own are");
            assert!(there[end..].iter().all(|&byte| byte == 0));
        }
        drop((buffers, device, model));
        fake.end();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Wherever the part begins, whatever is refused.
    #[test]
    fn behind_every_buffer_over_a_part_are_the_tensor_s_bytes(
        tensors in prop::collection::vec((select(vec!["U8", "BF16", "F32"]), 0usize..5000), 1..8),
        before in prop_oneof![0usize..40, 4000usize..4200, 0usize..20_000],
        data_start in 1200usize..1300,
        pages in 7usize..20,
        no_copy in prop::array::uniform4(select(vec![NoCopy::Made, NoCopy::Nil, NoCopy::Short])),
    ) {
        let names: Vec<String> = (0..tensors.len()).map(|number| format!("t{number}")).collect();
        let tensors: Vec<(&str, &str, usize)> = tensors
            .iter()
            .zip(&names)
            .map(|((dtype, elements), name)| (name.as_str(), *dtype, *elements))
            .collect();
        let bytes = file(data_start, &tensors);
        let folder = Folder::new("anywhere");
        let path = folder.file("c", &[&vec![0xee; before][..], &bytes, &[0xee; 100]].concat());
        let model = part(&path, before, bytes.len());
        let fake = Fake::start(Answers { max_buffer_length: pages * page(), no_copy, ..USUAL });
        let device = MetalDevice::system_default().unwrap();
        let needed = device.budget(&model).unwrap().needed;
        let buffers = MetalModel::new(&device, &model).unwrap();
        prop_assert_eq!(device.current_allocated_size(), needed);
        model.tensors().for_each(|view| assert_there(&fake, &buffers, &view));
        drop((buffers, device, model));
        prop_assert_eq!(mapped(&[path]).unwrap_or_default(), 0);
        fake.end();
    }
}
