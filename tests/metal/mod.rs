//! Are the right messages sent, and does everything go away once?
//!
//! `gpu/metal.rs` against the runtime of `fake.rs`. These are unit tests of the crate, since they
//! hand in what no user could; they lie here, since the folder that is copied has nothing that
//! stands for Apple's libraries.

mod block;
mod fake;
mod parts;

use crate::barest::gpu::{MetalDevice, MetalModel, sum_bf16, sum_bf16_on_cpu};
use crate::barest::{Dtype, ErrorKind, Mapping, Model};
use fake::{Answers, Fake, NoCopy, USUAL};
use proptest::prelude::*;
use proptest::sample::select;
use std::path::PathBuf;

const NO_COPY: &str = "newBufferWithBytesNoCopy:length:options:deallocator:";

/// A file that goes away with its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str, bytes: &[u8]) -> Scratch {
        let name = format!("barest-metal-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        Scratch(path)
    }

    fn map(&self) -> Model {
        // SAFETY: a file of this test's own, which it leaves alone.
        unsafe { Model::map(&self.0) }.unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Tensors one behind the other from byte `data_start` on: name, dtype, elements.
fn file(data_start: usize, tensors: &[(&str, &str, usize)]) -> Vec<u8> {
    let mut text = String::from("{\"__metadata__\":{}");
    let mut end = 0;
    for (name, dtype, elements) in tensors {
        let begin = end;
        end += elements * (Dtype::from_name(dtype).unwrap().bits() / 8) as usize;
        text += &format!(
            ",\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":[{elements}],\"data_offsets\":[{begin},{end}]}}"
        );
    }
    text.push('}');
    let mut bytes = (data_start as u64 - 8).to_le_bytes().to_vec();
    bytes.extend(format!("{text:<width$}", width = data_start - 8).bytes());
    // As BF16: numbers of either sign, from 2^-5 to 2^5.
    bytes.extend((0..end).map(|at| match at % 2 {
        0 => (at * 7) as u8,
        _ => 0x3d + (at / 2 % 5) as u8 + ((at / 6 % 2) << 7) as u8,
    }));
    bytes
}

fn page() -> usize {
    Mapping::page_size()
}

/// Whether this process has a mapping of the file: asks the kernel.
#[cfg(target_os = "linux")]
fn is_mapped(scratch: &Scratch) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.contains(scratch.0.to_str().unwrap())
}

/// Nobody to ask; the fake's own count of calls remains.
#[cfg(not(target_os = "linux"))]
fn is_mapped(_: &Scratch) -> bool {
    false
}

#[test]
fn a_device_is_found_or_there_is_none() {
    for (default_device, listed, found) in
        [(true, 0, true), (true, 2, true), (false, 2, true), (false, 0, false)]
    {
        let fake = Fake::start(Answers { default_device, listed, ..USUAL });
        let device = MetalDevice::system_default();
        match &device {
            Ok(device) => assert_eq!(device.name(), "a fake device"),
            Err(error) => assert!(matches!(error.kind(), ErrorKind::NoMetalDevice)),
        }
        assert_eq!(device.is_ok(), found, "{default_device} {listed}");
        drop(device);
        fake.end();
    }
}

#[test]
fn a_device_is_asked_only_what_it_knows() {
    let fake = Fake::start(Answers { max_buffer_length: 12345, recommended: 0, ..USUAL });
    let device = MetalDevice::system_default().unwrap();
    assert_eq!(device.limits().max_buffer_length, 12345);
    assert_eq!(device.limits().page_size, page() as u64);
    assert_eq!(device.recommended_max_working_set_size(), None);
    assert!(device.has_unified_memory());
    drop(device);
    fake.end();

    let fake = Fake::start(Answers { old: true, ..USUAL });
    let device = MetalDevice::system_default().unwrap();
    assert_eq!(device.limits().max_buffer_length, 256 << 20);
    assert_eq!(device.current_allocated_size(), 0);
    assert_eq!(device.recommended_max_working_set_size(), None);
    assert!(!device.has_unified_memory());
    drop(device);
    fake.end();
}

#[test]
fn the_pages_themselves_are_handed_over() {
    let bytes = file(2 * page() + 16, &[("a", "BF16", 3 * page()), ("b", "U8", 5)]);
    let scratch = Scratch::new("handed", &bytes);
    for model in
        [scratch.map(), Model::read(&scratch.0).unwrap(), Model::from_bytes(&bytes).unwrap()]
    {
        let fake = Fake::start(USUAL);
        let device = MetalDevice::system_default().unwrap();
        let buffers = MetalModel::new(&device, &model).unwrap();
        // From the page of the first tensor to the last page, whole.
        let start = model.shards().next().unwrap().mapping().as_ptr() as usize;
        let sent = fake.sent(NO_COPY);
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].to, "MTLDevice");
        assert_eq!(sent[0].arguments[..3], [start + 2 * page(), 7 * page(), 0]);
        assert_ne!(sent[0].arguments[3], 0);
        for (name, offset) in [("a", 16), ("b", 16 + 6 * page())] {
            let tensor = buffers.tensor(name).unwrap().unwrap();
            assert_eq!(tensor.offset(), offset);
            assert_eq!(tensor.buffer().len(), 7 * page() as u64);
            assert!(!tensor.buffer().is_copy());
        }
        assert_eq!(device.current_allocated_size(), 7 * page() as u64);
        assert!(buffers.tensor("c").is_err());
        drop((buffers, device));
        fake.end();
    }
}

#[test]
fn each_tensor_lies_whole_in_one_of_several_windows() {
    let tensors =
        [("a", "U8", 3 * page()), ("b", "BF16", page()), ("c", "U8", page()), ("d", "U8", 9)];
    let model = Model::from_bytes(&file(page() + 6, &tensors)).unwrap();
    let fake = Fake::start(Answers { max_buffer_length: 4 * page() + 99, ..USUAL });
    let device = MetalDevice::system_default().unwrap();
    let buffers = MetalModel::new(&device, &model).unwrap();
    let start = model.shards().next().unwrap().mapping().as_ptr() as usize;
    let windows: Vec<Vec<usize>> =
        fake.sent(NO_COPY).iter().map(|sent| sent.arguments[..2].to_vec()).collect();
    assert_eq!(windows, [[start + page(), 4 * page()], [start + 4 * page(), 4 * page()]]);
    for (name, window, offset) in
        [("a", 0, 6), ("b", 1, 6), ("c", 1, 6 + 2 * page()), ("d", 1, 6 + 3 * page())]
    {
        let tensor = buffers.tensor(name).unwrap().unwrap();
        let expected = buffers.buffers().nth(window).unwrap();
        assert!(std::ptr::eq(tensor.buffer(), expected), "{name}");
        assert_eq!(tensor.offset(), offset, "{name}");
    }
    assert_eq!(fake.living("MTLBuffer"), 2);
    drop((buffers, device));
    fake.end();

    let fake = Fake::start(Answers { max_buffer_length: 4 * page() - 1, ..USUAL });
    let device = MetalDevice::system_default().unwrap();
    let refused = MetalModel::new(&device, &model).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::BufferTooShort { .. }), "{refused}");
    assert_eq!(fake.sent(NO_COPY).len(), 0);
    drop(device);
    fake.end();
}

#[test]
fn the_last_user_of_a_buffer_lets_the_pages_go() {
    let scratch = Scratch::new("last", &file(page(), &[("a", "U8", page())]));
    for last in [NoCopy::Made, NoCopy::CalledTwice] {
        let fake = Fake::start(Answers { no_copy: [last; 4], ..USUAL });
        let device = MetalDevice::system_default().unwrap();
        let model = scratch.map();
        let buffers = MetalModel::new(&device, &model).unwrap();
        // SAFETY: a reference of the fake's own, which stands for a command that is running.
        let running = unsafe { buffers.tensor("a").unwrap().unwrap().buffer().as_raw() };
        fake.retain(running);
        let calls = block::calls();
        drop((buffers, model, device));
        assert_eq!(block::calls(), calls, "the buffer lives");
        assert!(is_mapped(&scratch) || !cfg!(target_os = "linux"), "the command still runs");
        fake.release(running);
        assert_eq!(block::calls(), calls + if last == NoCopy::Made { 1 } else { 2 });
        assert!(!is_mapped(&scratch), "nobody uses the pages any more");
        fake.end();
    }
}

#[test]
fn a_refusal_is_a_copy_and_neither_leaks_nor_drops_twice() {
    let bytes = file(page() + 6, &[("a", "BF16", 2 * page())]);
    let scratch = Scratch::new("refused", &bytes);
    for refusal in [NoCopy::Nil, NoCopy::NilAndCalled, NoCopy::NilAndKept, NoCopy::Short] {
        let fake = Fake::start(Answers { no_copy: [refusal; 4], ..USUAL });
        let device = MetalDevice::system_default().unwrap();
        let model = scratch.map();
        let kept = model.tensor("a").unwrap().share();
        let buffers = MetalModel::new(&device, &model).unwrap();
        let tensor = buffers.tensor("a").unwrap().unwrap();
        assert!(tensor.buffer().is_copy());
        assert_eq!((tensor.offset(), tensor.buffer().len()), (6, 5 * page() as u64));
        assert_eq!(
            sum_bf16(&device, &buffers, "a").unwrap().check,
            sum_bf16_on_cpu(&model.tensor("a").unwrap()).unwrap().check
        );
        // The refused blocks hold nothing: the pages go with the model, though a copy may stay.
        drop((buffers, model, device));
        assert_eq!(kept.view().bytes(), &bytes[page() + 6..]);
        drop(kept);
        assert!(!is_mapped(&scratch));
        fake.end();
    }
}

#[test]
fn one_window_may_be_refused_and_the_others_not() {
    let tensors = ["a", "b", "c"].map(|name| (name, "BF16", 16 * page()));
    let model = Model::from_bytes(&file(page(), &tensors)).unwrap();
    let no_copy = [NoCopy::Made, NoCopy::Nil, NoCopy::Made, NoCopy::Made];
    let fake = Fake::start(Answers { max_buffer_length: 32 * page(), no_copy, ..USUAL });
    let device = MetalDevice::system_default().unwrap();
    let buffers = MetalModel::new(&device, &model).unwrap();
    for (name, copied) in [("a", false), ("b", true), ("c", false)] {
        let tensor = buffers.tensor(name).unwrap().unwrap();
        assert_eq!(tensor.buffer().is_copy(), copied, "{name}");
        let on_cpu = sum_bf16_on_cpu(&model.tensor(name).unwrap()).unwrap();
        assert_eq!(sum_bf16(&device, &buffers, name).unwrap().check, on_cpu.check, "{name}");
    }
    drop((buffers, device));
    fake.end();

    let fake = Fake::start(Answers { no_copy: [NoCopy::Nil; 4], memory: false, ..USUAL });
    let device = MetalDevice::system_default().unwrap();
    let refused = MetalModel::new(&device, &model).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::NoBuffer { .. }), "{refused}");
    drop(device);
    fake.end();
}

#[test]
fn odd_tensors_are_copied_and_empty_ones_have_no_buffer() {
    let tensors = [("u", "U8", 3), ("odd", "BF16", 700), ("e", "BF16", 0), ("v", "U8", 1)];
    let model = Model::from_bytes(&file(page(), &tensors)).unwrap();
    let fake = Fake::start(USUAL);
    let device = MetalDevice::system_default().unwrap();
    let buffers = MetalModel::new(&device, &model).unwrap();
    let odd = buffers.tensor("odd").unwrap().unwrap();
    assert_eq!((odd.offset(), odd.buffer().len(), odd.buffer().is_copy()), (0, 1400, true));
    assert!(buffers.tensor("e").unwrap().is_none());
    assert_eq!(buffers.tensor("v").unwrap().unwrap().offset(), 1403);
    let on_cpu = sum_bf16_on_cpu(&model.tensor("odd").unwrap()).unwrap();
    assert_eq!(sum_bf16(&device, &buffers, "odd").unwrap().check, on_cpu.check);
    assert_eq!(sum_bf16(&device, &buffers, "e").unwrap().check, 0);
    assert!(sum_bf16(&device, &buffers, "u").is_err());
    drop((buffers, device));
    fake.end();

    // A model of nothing needs no buffer, mapped or not.
    let model = Model::from_bytes(&file(page(), &[("e", "BF16", 0)])).unwrap();
    let fake = Fake::start(USUAL);
    let device = MetalDevice::system_default().unwrap();
    let buffers = MetalModel::new(&device, &model).unwrap();
    assert_eq!((buffers.buffers().count(), fake.sent(NO_COPY).len()), (0, 0));
    drop((buffers, device));
    fake.end();
}

#[test]
fn the_kernel_sums_what_the_processor_sums() {
    let tensors = [("u", "U8", 2), ("big", "BF16", 40_000), ("one", "BF16", 1)];
    let model = Model::from_bytes(&file(page() + 2, &tensors)).unwrap();
    let fake = Fake::start(USUAL);
    let device = MetalDevice::system_default().unwrap();
    let buffers = MetalModel::new(&device, &model).unwrap();
    for name in ["big", "one"] {
        let view = model.tensor(name).unwrap();
        let (gpu, cpu) =
            (sum_bf16(&device, &buffers, name).unwrap(), sum_bf16_on_cpu(&view).unwrap());
        assert_eq!(gpu.check, cpu.check, "{name}");
        let magnitude: f64 = view.bf16().unwrap().iter().map(|value| f64::from(value.abs())).sum();
        assert!((gpu.value - cpu.value).abs() <= magnitude * 1e-5, "{name}: {gpu:?} {cpu:?}");
        assert_ne!(cpu.value, 0.0);
    }
    let bound = fake.sent("setBuffer:offset:atIndex:");
    assert_eq!(bound[0].arguments[1..], [4, 0], "the tensor's own offset");
    drop((buffers, device));
    fake.end();

    for (compiles, runs, told) in [(false, true, "no such word"), (true, false, "taken away")] {
        let fake = Fake::start(Answers { compiles, runs, ..USUAL });
        let device = MetalDevice::system_default().unwrap();
        let buffers = MetalModel::new(&device, &model).unwrap();
        let failed = sum_bf16(&device, &buffers, "big").unwrap_err().to_string();
        assert!(failed.contains(told), "{failed}");
        drop((buffers, device));
        fake.end();
    }
}

#[test]
fn residency_is_asked_for_and_given_back() {
    let tensors = [("a", "U8", page()), ("b", "U8", page())];
    let model = Model::from_bytes(&file(page(), &tensors)).unwrap();
    let fake = Fake::start(Answers { max_buffer_length: page(), ..USUAL });
    let device = MetalDevice::system_default().unwrap();
    let mut buffers = MetalModel::new(&device, &model).unwrap();
    // Twice: the second set takes the place of the first.
    for _ in 0..2 {
        assert!(buffers.keep_resident(&device).unwrap());
        assert_eq!(fake.resident(), Some((2, true)));
        assert_eq!(fake.living("MTLResidencySet"), 1);
    }
    drop((buffers, device));
    fake.end();

    for (residency, expected) in [(None, Ok(false)), (Some(false), Err(()))] {
        let fake = Fake::start(Answers { residency, ..USUAL });
        let device = MetalDevice::system_default().unwrap();
        let mut buffers = MetalModel::new(&device, &model).unwrap();
        let kept = buffers.keep_resident(&device);
        let told = kept.as_ref().map_or_else(|error| error.to_string(), bool::to_string);
        assert_eq!(kept.map_err(|_| ()), expected, "{told}");
        if expected.is_err() {
            assert_eq!(told, "Metal cannot make a residency set: no room for a set");
        }
        drop((buffers, device));
        fake.end();
    }
}

#[test]
fn what_would_be_passed_is_known_before() {
    let model = Model::from_bytes(&file(page(), &[("a", "U8", 3 * page())])).unwrap();
    let needed = 3 * page() as u64;
    let fake = Fake::start(Answers { recommended: needed + 1, ..USUAL });
    let device = MetalDevice::system_default().unwrap();
    let before = device.budget(&model).unwrap();
    assert_eq!((before.needed, before.allocated, before.excess()), (needed, 0, 0));
    assert_eq!(fake.living("MTLBuffer"), 0);
    let buffers = MetalModel::new(&device, &model).unwrap();
    let after = device.budget(&model).unwrap();
    assert_eq!((after.allocated, after.excess()), (needed, needed - 1));
    assert_eq!(after.recommended, Some(needed + 1));
    drop((buffers, device));
    fake.end();
}

#[test]
fn buffers_may_be_dropped_by_another_thread() {
    fn needs<T: Send + Sync + 'static>(_: &T) {}
    let model = Model::from_bytes(&file(page(), &[("a", "BF16", page())])).unwrap();
    let fake = Fake::start(USUAL);
    let device = MetalDevice::system_default().unwrap();
    let buffers = MetalModel::new(&device, &model).unwrap();
    needs(&device);
    needs(&buffers);
    let expected = sum_bf16_on_cpu(&model.tensor("a").unwrap()).unwrap().check;
    std::thread::spawn(move || {
        assert_eq!(sum_bf16(&device, &buffers, "a").unwrap().check, expected);
        drop((buffers, device));
    })
    .join()
    .unwrap();
    fake.end();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the model, the longest buffer and the refusals: behind buffer and offset are the
    /// tensor's bytes, and in the end nothing is left.
    #[test]
    fn behind_every_buffer_and_offset_are_the_tensor_s_bytes(
        tensors in prop::collection::vec((select(vec!["U8", "BF16", "F32"]), 0usize..5000), 0..12),
        data_start in 1200usize..1300,
        pages in 7usize..20,
        no_copy in prop::array::uniform4(select(vec![
            NoCopy::Made, NoCopy::Made, NoCopy::Made, NoCopy::Nil, NoCopy::NilAndCalled, NoCopy::Short,
        ])),
    ) {
        let names: Vec<String> = (0..tensors.len()).map(|number| format!("t{number}")).collect();
        let tensors: Vec<(&str, &str, usize)> = tensors
            .iter()
            .zip(&names)
            .map(|((dtype, elements), name)| (name.as_str(), *dtype, *elements))
            .collect();
        let model = Model::from_bytes(&file(data_start, &tensors)).unwrap();
        let fake = Fake::start(Answers { max_buffer_length: pages * page(), no_copy, ..USUAL });
        let device = MetalDevice::system_default().unwrap();
        let needed = device.budget(&model).unwrap().needed;
        let buffers = MetalModel::new(&device, &model).unwrap();
        prop_assert_eq!(device.current_allocated_size(), needed);
        for view in model.tensors() {
            let Some(tensor) = buffers.tensor(view.name()).unwrap() else {
                prop_assert!(view.is_empty());
                continue;
            };
            let element = view.dtype().natural_alignment();
            prop_assert_eq!(tensor.offset() % element, 0);
            prop_assert!(tensor.offset() + view.byte_len() <= tensor.buffer().len() as usize);
            // SAFETY: a living buffer, which nobody writes to; so many bytes it has, as just seen.
            let there = unsafe {
                let contents = fake.contents(tensor.buffer().as_raw());
                std::slice::from_raw_parts(contents.add(tensor.offset()), view.byte_len())
            };
            prop_assert_eq!(there, view.bytes());
            let is_the_same = there.as_ptr() == view.bytes().as_ptr();
            prop_assert_eq!(is_the_same, !tensor.buffer().is_copy());
        }
        drop((buffers, device));
        fake.end();
    }
}
