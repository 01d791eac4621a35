//! Functions that `run.py` calls, one for each thing that shall be seen to work. They give 0, or the
//! number of the line at which it did not.
//!
//! Everything behind them is the crate as a Mac would run it: std, the parser, `mmap`, and the
//! messages to Metal. What answers is Python.

#![cfg(target_os = "macos")]

use barest::gpu::{MetalDevice, MetalModel, sum_bf16, sum_bf16_on_cpu};
use barest::{ErrorKind, Mapping, Model};
use std::ffi::{c_char, c_void};

macro_rules! hold {
    ($condition:expr) => {
        if !$condition {
            return u64::from(line!());
        }
    };
}

/// Tensors of so many BF16s, from the second page on and 6 bytes.
fn model(elements: &[usize]) -> Model {
    let mut text = String::from("{\"__metadata__\":{}");
    let mut end = 0;
    for (number, elements) in elements.iter().enumerate() {
        let begin = end;
        end += elements * 2;
        text += &format!(
            ",\"t{number}\":{{\"dtype\":\"BF16\",\"shape\":[{elements}],\"data_offsets\":[{begin},{end}]}}"
        );
    }
    text.push('}');
    let header = Mapping::page_size() + 6 - 8;
    let mut bytes = (header as u64).to_le_bytes().to_vec();
    bytes.extend(format!("{text:<header$}").bytes());
    bytes.extend(
        (0..end).map(|at| if at % 2 == 0 { (at * 7) as u8 } else { 0x3e + (at / 2 % 4) as u8 }),
    );
    Model::from_bytes(&bytes).expect("a model")
}

/// No device at all: run.py answers nil.
#[unsafe(no_mangle)]
pub extern "C" fn no_device() -> u64 {
    match MetalDevice::system_default() {
        Err(error) => hold!(matches!(error.kind(), ErrorKind::NoMetalDevice)),
        Ok(_) => hold!(false),
    }
    0
}

/// Buffers of 4 pages at most, tensors of 2 pages and 1: run.py knows what it must be asked for.
#[unsafe(no_mangle)]
pub extern "C" fn windows() -> u64 {
    let page = Mapping::page_size();
    hold!(page == 16384);
    let model = model(&[page, page, page / 2]);
    let Ok(device) = MetalDevice::system_default() else {
        hold!(false);
        return 0;
    };
    hold!(device.name() == "Emulated");
    hold!(device.has_unified_memory());
    hold!(device.limits().max_buffer_length == 4 * 16384 + 5);
    hold!(device.recommended_max_working_set_size() == Some(1 << 40));
    let Ok(buffers) = MetalModel::new(&device, &model) else {
        hold!(false);
        return 0;
    };
    for (name, offset, len) in [("t0", 6, 3), ("t1", 6, 4), ("t2", 6 + 2 * page, 4)] {
        let Ok(Some(tensor)) = buffers.tensor(name) else {
            hold!(false);
            return 0;
        };
        hold!(tensor.offset() == offset);
        hold!(tensor.buffer().len() == len * page as u64);
        hold!(!tensor.buffer().is_copy());
    }
    hold!(device.current_allocated_size() == 7 * page as u64);
    0
}

/// What run.py refuses is copied.
#[unsafe(no_mangle)]
pub extern "C" fn refused() -> u64 {
    let model = model(&[100]);
    let Ok(device) = MetalDevice::system_default() else {
        hold!(false);
        return 0;
    };
    let Ok(buffers) = MetalModel::new(&device, &model) else {
        hold!(false);
        return 0;
    };
    let Ok(Some(tensor)) = buffers.tensor("t0") else {
        hold!(false);
        return 0;
    };
    hold!(tensor.buffer().is_copy() && tensor.offset() == 6);
    let sums = sum_bf16(&device, &buffers, "t0")
        .ok()
        .zip(model.tensor("t0").ok().and_then(|view| sum_bf16_on_cpu(&view).ok()));
    hold!(sums.is_some_and(|(gpu, cpu)| gpu.check == cpu.check));
    0
}

/// The kernel's messages, among them the one with two structs by value.
#[unsafe(no_mangle)]
pub extern "C" fn sum() -> u64 {
    let model = model(&[900]);
    let Ok(device) = MetalDevice::system_default() else {
        hold!(false);
        return 0;
    };
    let Ok(buffers) = MetalModel::new(&device, &model) else {
        hold!(false);
        return 0;
    };
    let on_cpu = model.tensor("t0").ok().and_then(|view| sum_bf16_on_cpu(&view).ok());
    match (sum_bf16(&device, &buffers, "t0"), on_cpu) {
        (Ok(gpu), Some(cpu)) => {
            hold!(gpu.check == cpu.check);
            hold!((gpu.value - cpu.value).abs() < 1e-2 && cpu.value > 1.0);
        }
        _ => hold!(false),
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn resident() -> u64 {
    let model = model(&[5]);
    let Ok(device) = MetalDevice::system_default() else {
        hold!(false);
        return 0;
    };
    let Ok(mut buffers) = MetalModel::new(&device, &model) else {
        hold!(false);
        return 0;
    };
    hold!(buffers.keep_resident(&device).is_ok_and(|kept| kept));
    0
}

/// Makes a model and its buffer, drops all that is Rust's, and hands out the buffer's address, which
/// run.py holds a reference to as a running command would. 0 if it failed.
#[unsafe(no_mangle)]
pub extern "C" fn leave_running() -> u64 {
    unsafe extern "C" {
        fn objc_retain(object: *mut c_void) -> *mut c_void;
    }
    let model = model(&[5]);
    let Ok(device) = MetalDevice::system_default() else { return 0 };
    let Ok(buffers) = MetalModel::new(&device, &model) else { return 0 };
    let Ok(Some(tensor)) = buffers.tensor("t0") else { return 0 };
    // SAFETY: a living buffer, which nobody writes to.
    unsafe { objc_retain(tensor.buffer().as_raw()) as u64 }
}

/// The mistake that compiles everywhere and fails on this processor alone: arguments on the stack.
/// run.py must notice.
#[unsafe(no_mangle)]
pub extern "C" fn variadic() -> u64 {
    #[allow(clashing_extern_declarations)]
    unsafe extern "C" {
        fn objc_msgSend(object: *mut c_void, selector: *const c_void, ...) -> *mut c_void;
        fn sel_registerName(name: *const c_char) -> *const c_void;
        fn MTLCreateSystemDefaultDevice() -> *mut c_void;
    }
    // SAFETY: none of it is right, and run.py's memory is not ours to harm.
    unsafe {
        let device = MTLCreateSystemDefaultDevice();
        let selector = sel_registerName(c"newBufferWithLength:options:".as_ptr());
        u64::from(objc_msgSend(device, selector, 16384usize, 0usize).is_null())
    }
}
