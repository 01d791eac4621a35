//! How do a file's pages become Metal buffers, and who keeps them mapped?
//!
//! ```text
//!   Shard ──mapping──▶ windows ──newBufferWithBytesNoCopy──▶ MTLBuffer ──deallocator──▶ Arc<Shard>
//!                                        │ nil, or too short
//!                                        └──────▶ a buffer of its own, and a copy of the pages
//! ```
//!
//! A buffer lies over whole pages of a mapping of ours, never over a slice: who rounds a slice up to
//! pages runs past somebody's allocation. Its deallocator holds the shard, so the pages outlive
//! the last user of the buffer, be it a command that is still running. Making a buffer reads no
//! page; the first command that uses it does.
//!
//! Storage is `Shared`, the one mode for memory that is there already. Untested on a Mac by its
//! authors: its calls were run against a fake, and as arm64 code under an emulator.

#![cfg(all(
    target_pointer_width = "64",
    any(target_os = "macos", target_os = "ios", all(test, unix)),
))]

use super::super::error::reserve::{no_memory, vector, zeros};
use super::super::error::{Error, ErrorKind, Result};
use super::super::mapping::Mapping;
use super::super::model::Model;
use super::super::shard::Shard;
use super::super::sys::objc::{Buffer, Deallocator, Kernel, Pool, ResidencySet};
use super::device::MetalDevice;
use super::plan::{Limits, Place, Plan, Window};
use std::ffi::{CStr, c_void};
use std::fmt::{self, Debug, Formatter};
use std::ptr;
use std::sync::Arc;

/// One Metal buffer with weights. `Send` and `Sync`.
pub struct MetalBuffer {
    buffer: Buffer,
    copied: bool,
}

impl MetalBuffer {
    /// Bytes, as Metal says.
    pub fn len(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// Whether there are none; a buffer of this crate has some.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it has a copy of the bytes; else it lies over the model's own pages.
    pub fn is_copy(&self) -> bool {
        self.copied
    }

    /// The `id<MTLBuffer>`, to be bound with another binding.
    ///
    /// # Safety
    ///
    /// Nothing may write through it, no kernel, no blit, and nobody may make it purgeable: the pages
    /// are those of every `&[u8]` of the model. It is alive as long as `self`; to keep it longer,
    /// retain it, and the pages stay as long.
    pub unsafe fn as_raw(&self) -> *mut c_void {
        self.buffer.id()
    }

    /// Its first words, as a kernel that has ended left them.
    pub(super) fn words(&self, count: usize) -> Result<Vec<u32>> {
        let room = count.min(self.buffer.len() / 4);
        let mut words = zeros(room)?;
        // SAFETY: the buffer has `room` words, which any bits are, and so has `words`; nobody
        // writes to it any more.
        unsafe {
            ptr::copy_nonoverlapping(self.buffer.contents().cast(), words.as_mut_ptr(), room)
        };
        Ok(words)
    }
}

/// Where a tensor stands in a buffer.
#[derive(Clone, Copy)]
pub struct TensorBuffer<'a> {
    buffer: &'a MetalBuffer,
    offset: usize,
}

impl<'a> TensorBuffer<'a> {
    /// The buffer, which holds the tensor whole.
    pub fn buffer(&self) -> &'a MetalBuffer {
        self.buffer
    }

    /// Bytes from the buffer's start, a multiple of the element's bytes: fit for
    /// `setBuffer:offset:atIndex:` and the `device` address space. (`constant` wants more.)
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Runs one of this folder's kernels on it, and waits. The kernel reads the tensor as buffer 0,
    /// writes to `results` as buffers 1 and on, and gets the constant behind them.
    pub(super) fn run(
        &self,
        kernel: &Kernel,
        results: &[&MetalBuffer],
        constant: &[u8],
        groups: usize,
        threads: usize,
    ) -> Result<()> {
        let mut buffers = vec![(&self.buffer.buffer, self.offset)];
        buffers.extend(results.iter().map(|result| (&result.buffer, 0)));
        // SAFETY: the kernels of this folder read no further than the count they are given, and
        // write to the results alone, which have a place for each thread.
        unsafe { kernel.run(&buffers, constant, groups, threads) }
            .map_err(|message| metal("run the kernel", message))
    }
}

/// The buffers of a model: for each shard its windows, and the tensors that had to be copied.
pub struct MetalModel {
    // Dropped in this order: who is resident first, then the buffers, then the model.
    resident: Option<ResidencySet>,
    shards: Vec<ShardBuffers>,
    model: Model,
}

struct ShardBuffers {
    plan: Plan,
    windows: Vec<MetalBuffer>,
    /// By the tensor's number, which rises.
    copies: Vec<(usize, MetalBuffer)>,
}

impl MetalModel {
    /// Lays buffers over a model's pages, mapped or read. No page is faulted in and nothing copied,
    /// but for tensors at places where no kernel can read them, and for windows that Metal refuses;
    /// [`MetalBuffer::is_copy`] tells. Ask [`MetalDevice::budget`] before.
    ///
    /// Fails as [`Plan::new`] does, and with [`NoBuffer`](ErrorKind::NoBuffer).
    pub fn new(device: &MetalDevice, model: &Model) -> Result<MetalModel> {
        let limits = device.limits();
        let mut shards = vector(model.handles().len())?;
        for shard in model.handles() {
            let buffers = Pool::around(|| ShardBuffers::new(device, shard, limits));
            shards.push(buffers.map_err(|error| in_file_of(shard, error))?);
        }
        Ok(MetalModel { resident: None, shards, model: model.clone() })
    }

    /// Where the tensor of that name is; `Ok(None)` if it has no bytes, for no buffer is empty.
    /// Fails as [`Model::tensor`] does.
    pub fn tensor(&self, name: &str) -> Result<Option<TensorBuffer<'_>>> {
        let view = self.model.tensor(name)?;
        let info = view.info();
        let ShardBuffers { plan, windows, copies } = &self.shards[view.shard()];
        let found = match plan.place(&info) {
            Place::Empty => None,
            Place::Window { window, offset } => {
                windows.get(window).map(|buffer| (buffer, offset as usize))
            }
            Place::Copy => {
                let found = copies.binary_search_by_key(&info.number(), |(number, _)| *number);
                found.ok().map(|place| (&copies[place].1, 0))
            }
        };
        Ok(found.map(|(buffer, offset)| TensorBuffer { buffer, offset }))
    }

    /// The model, whose bytes these are.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// All buffers, shard by shard: the windows, then the copies.
    pub fn buffers(&self) -> impl Iterator<Item = &MetalBuffer> {
        self.shards.iter().flat_map(|shard| {
            shard.windows.iter().chain(shard.copies.iter().map(|(_, buffer)| buffer))
        })
    }

    /// Asks the system to make all buffers resident and to keep them so until this is dropped.
    /// Their pages are read now, and wired: see [`MetalDevice::budget`]. False, and nothing is
    /// done, on systems before macOS 15 and iOS 18, which have no residency sets.
    ///
    /// Fails with [`Metal`](ErrorKind::Metal) if the system makes no set.
    pub fn keep_resident(&mut self, device: &MetalDevice) -> Result<bool> {
        self.resident = None;
        let buffers = self.buffers().map(|buffer| &buffer.buffer);
        let set = ResidencySet::new(&device.device, buffers);
        self.resident = set.map_err(|message| metal("make a residency set", message))?;
        Ok(self.resident.is_some())
    }

    /// The `id<MTLResidencySet>` for a queue's `addResidencySet:`; `None` unless it was asked for
    /// and the system has it.
    ///
    /// # Safety
    ///
    /// As for [`MetalDevice::as_raw`].
    pub unsafe fn residency_set_as_raw(&self) -> Option<*mut c_void> {
        self.resident.as_ref().map(ResidencySet::id)
    }
}

impl Debug for MetalModel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "MetalModel({} buffers of {:?})", self.buffers().count(), self.model)
    }
}

impl ShardBuffers {
    fn new(device: &MetalDevice, shard: &Arc<Shard>, limits: Limits) -> Result<ShardBuffers> {
        let plan = Plan::of(shard, limits)?;
        let mut windows = vector(plan.windows().len())?;
        for &window in plan.windows() {
            windows.push(match device.no_copy(shard, window) {
                Some(buffer) => buffer,
                None => device.copy_of_window(shard, window, plan.lead())?,
            });
        }
        let mut copies = Vec::new();
        for tensor in shard.header().tensors().filter(|tensor| plan.must_be_copied(tensor)) {
            copies.try_reserve(1).map_err(|_| no_memory())?;
            let bytes = shard.slice(tensor.file_range());
            let buffer = device.copy(bytes, 0, bytes.len() as u64);
            copies.push((tensor.number(), buffer.map_err(|error| error.in_tensor(tensor.name()))?));
        }
        Ok(ShardBuffers { plan, windows, copies })
    }
}

impl MetalDevice {
    /// The `id<MTLDevice>`, to be used through another binding.
    ///
    /// # Safety
    ///
    /// It is alive as long as `self`; to keep it longer, retain it.
    pub unsafe fn as_raw(&self) -> *mut c_void {
        self.device.id()
    }

    /// A buffer over a window of the shard's mapping; `None` if Metal refuses, or makes a shorter
    /// one, which old virtual devices do.
    fn no_copy(&self, shard: &Arc<Shard>, window: Window) -> Option<MetalBuffer> {
        let mapping = shard.mapping();
        let mapped = mapping.len().checked_next_multiple_of(Mapping::page_size())?;
        let (start, len) = (window.start() as usize, window.len() as usize);
        if window.end() > mapped as u64 {
            return None;
        }
        let deallocator = Deallocator::new(Arc::clone(shard));
        let address = mapping.as_ptr().wrapping_add(start);
        // SAFETY: whole pages of one mapping, which the shard in the block keeps mapped.
        let buffer = unsafe { self.device.buffer_over(address, len, &deallocator) };
        if buffer.as_ref().is_some_and(|buffer| buffer.len() == len) {
            return buffer.map(|buffer| MetalBuffer { buffer, copied: false });
        }
        // Whether Metal calls the block of what it did not make, or keeps it, is its own affair:
        // the shard is let go of here, and once.
        drop(buffer);
        deallocator.let_go();
        None
    }

    /// A buffer of so many zeros, above 0.
    pub(super) fn zeros(&self, len: u64) -> Result<MetalBuffer> {
        let buffer = usize::try_from(len).ok().and_then(|len| self.device.buffer(len));
        match buffer {
            Some(buffer) => Ok(MetalBuffer { buffer, copied: true }),
            None => Err(Error::new(ErrorKind::NoBuffer { expected: len })),
        }
    }

    /// A buffer of `len` bytes with a copy of `bytes` in it, `offset` bytes from its start.
    fn copy(&self, bytes: &[u8], offset: u64, len: u64) -> Result<MetalBuffer> {
        let buffer = self.zeros(len)?;
        let offset = offset.min(len);
        let room = (len - offset).min(bytes.len() as u64) as usize;
        // SAFETY: `room` bytes from `offset` on lie within the `len` that were just made, which no
        // one else has yet, and within `bytes`.
        unsafe {
            let to = buffer.buffer.contents().cast::<u8>().add(offset as usize);
            ptr::copy_nonoverlapping(bytes.as_ptr(), to, room);
        }
        Ok(buffer)
    }

    /// A buffer with a copy of a window, in which every tensor has the same offset.
    fn copy_of_window(&self, shard: &Shard, window: Window, lead: u64) -> Result<MetalBuffer> {
        // The model's own bytes of the window; what is mapped around them is nobody's.
        let model = shard.header().model_start();
        let start = model + window.start().saturating_sub(lead);
        let end = model + window.end().saturating_sub(lead).min(shard.byte_len());
        let before = lead.saturating_sub(window.start());
        self.copy(shard.slice(start.min(end)..end), before, window.len())
    }

    pub(super) fn compile(&self, source: &CStr, name: &CStr) -> Result<Kernel> {
        Kernel::compile(&self.device, source, name)
            .map_err(|message| metal("compile the kernel", message))
    }
}

fn in_file_of(shard: &Shard, error: Error) -> Error {
    match shard.path() {
        Some(path) => error.in_file(path),
        None => error,
    }
}

fn metal(action: &'static str, message: String) -> Error {
    Error::new(ErrorKind::Metal { action, message })
}
