//! Does a real device take our buffers, and compute from them?
//!
//! The only tests that need a Mac. Where there is no device they say so. They were written without
//! one: what runs them is the public continuous integration.

#![cfg(target_os = "macos")]

#[path = "../src/barest/skip.rs"]
mod skip;

use barest::gpu::{MetalDevice, MetalModel, sum_bf16, sum_bf16_on_cpu};
use barest::{Mapping, Model};
use std::path::PathBuf;

fn device() -> Option<MetalDevice> {
    match MetalDevice::system_default() {
        Ok(device) => Some(device),
        Err(error) => {
            skip::skip("a Metal device", &error.to_string());
            None
        }
    }
}

/// A file that goes away with its test: U8 `u`, BF16 `even`, U8 `one`, BF16 `odd`.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let elements = 3 * Mapping::page_size();
        let tensors = [
            ("u", "U8", 6, 6),
            ("even", "BF16", elements, 2 * elements),
            ("one", "U8", 1, 1),
            ("odd", "BF16", 999, 1998),
        ];
        let mut text = String::from("{\"__metadata__\":{}");
        let mut end = 0;
        for (name, dtype, elements, bytes) in tensors {
            let begin = end;
            end += bytes;
            text += &format!(
                ",\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":[{elements}],\"data_offsets\":[{begin},{end}]}}"
            );
        }
        text.push('}');
        let mut bytes = 1016u64.to_le_bytes().to_vec();
        bytes.extend(format!("{text:<1016}").bytes());
        // As BF16: numbers from 2^-3 to 1, whichever byte they begin with.
        bytes.extend((0..end).map(|at| 0x3e + (at / 2 % 2) as u8));
        let path =
            std::env::temp_dir().join(format!("barest-device-{test}-{}", std::process::id()));
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

#[test]
fn the_gpu_reads_the_bytes_that_the_processor_reads() {
    let Some(device) = device() else { return };
    let scratch = Scratch::new("reads");
    for model in [scratch.map(), Model::read(&scratch.0).unwrap()] {
        let buffers = MetalModel::new(&device, &model).unwrap();
        assert!(buffers.tensor("odd").unwrap().unwrap().buffer().is_copy());
        for name in ["even", "odd"] {
            let gpu = sum_bf16(&device, &buffers, name).unwrap();
            let cpu = sum_bf16_on_cpu(&model.tensor(name).unwrap()).unwrap();
            assert_eq!(gpu.check, cpu.check, "{name}");
            assert!((gpu.value - cpu.value).abs() <= cpu.value * 1e-4, "{name}: {gpu:?} {cpu:?}");
        }
    }
}

#[test]
fn the_buffers_outlive_the_model_that_they_were_made_of() {
    let Some(device) = device() else { return };
    let scratch = Scratch::new("outlive");
    let model = scratch.map();
    let expected = sum_bf16_on_cpu(&model.tensor("even").unwrap()).unwrap().check;
    let budget = device.budget(&model).unwrap();
    let mut buffers = MetalModel::new(&device, &model).unwrap();
    drop(model);
    let kept = buffers.keep_resident(&device);
    // For whoever reads the log: a virtual device may have strange answers.
    println!("{device:?} {budget:?}, {} now, resident: {kept:?}", device.current_allocated_size());
    println!("copies: {:?}", buffers.buffers().map(|buffer| buffer.is_copy()).collect::<Vec<_>>());
    assert_eq!(sum_bf16(&device, &buffers, "even").unwrap().check, expected);
}
