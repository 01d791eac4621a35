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
use super::super::sys::objc::{Deallocator, Id, Kernel, Pool, Retained, default_device};
use super::super::sys::objc::{class, messages, text};
use super::plan::{Limits, Place, Plan, Window};
use std::ffi::{CStr, c_void};
use std::fmt::{self, Debug, Formatter};
use std::ptr;
use std::sync::Arc;

/// `MTLResourceStorageModeShared`, with the default cache mode and hazard tracking.
const SHARED: usize = 0;

/// What every device can do, by Apple's feature tables: for systems that cannot be asked.
const SMALLEST_MAX_BUFFER: usize = 256 << 20;

/// A graphics device. `Send` and `Sync`.
pub struct MetalDevice {
    object: Retained,
}

impl MetalDevice {
    /// The system's default device, or the first that it lists. Fails with
    /// [`NoMetalDevice`](ErrorKind::NoMetalDevice), which is no reason to stop: the bytes are there.
    pub fn system_default() -> Result<MetalDevice> {
        let object = default_device().ok_or_else(|| Error::new(ErrorKind::NoMetalDevice))?;
        Ok(MetalDevice { object })
    }

    /// What it is called.
    pub fn name(&self) -> String {
        // SAFETY: a living device, and a string that the pool keeps until it is copied.
        Pool::around(|| unsafe { text(messages::name(self.object.id())) })
    }

    /// Bytes of this system's pages and of the device's longest buffer.
    pub fn limits(&self) -> Limits {
        let longest = self.answer(c"maxBufferLength", messages::max_buffer_length);
        Limits {
            page_size: Mapping::page_size() as u64,
            max_buffer_length: longest.unwrap_or(SMALLEST_MAX_BUFFER) as u64,
        }
    }

    /// Bytes that the device counts as allocated by this process, with those of buffers that lie
    /// over mapped pages.
    pub fn current_allocated_size(&self) -> u64 {
        self.answer(c"currentAllocatedSize", messages::current_allocated_size).unwrap_or(0) as u64
    }

    /// Bytes beyond which the system may have to take memory away from the device; `None` if it
    /// does not say.
    pub fn recommended_max_working_set_size(&self) -> Option<u64> {
        let asked = c"recommendedMaxWorkingSetSize";
        self.answer(asked, messages::recommended_max_working_set_size).filter(|&bytes| bytes > 0)
    }

    /// Whether it shares memory with the processor, as on Apple silicon. Where it does not, reading
    /// such a buffer goes over a bus, each time: there a copy into memory of the device's own is
    /// the better choice, and the reader's to make.
    pub fn has_unified_memory(&self) -> bool {
        self.answer(c"hasUnifiedMemory", messages::has_unified_memory).is_some_and(|yes| yes != 0)
    }

    /// What a model would add to what is allocated, before it is added. Faults no page; fails as
    /// [`Plan::new`] does.
    pub fn budget(&self, model: &Model) -> Result<Budget> {
        let limits = self.limits();
        let mut needed = 0u64;
        for shard in model.shards() {
            needed = needed.saturating_add(plan(shard, limits)?.buffer_bytes());
        }
        let (allocated, recommended) =
            (self.current_allocated_size(), self.recommended_max_working_set_size());
        Ok(Budget { needed, allocated, recommended })
    }

    /// The `id<MTLDevice>`, to be used through another binding.
    ///
    /// # Safety
    ///
    /// It is alive as long as `self`; to keep it longer, retain it.
    pub unsafe fn as_raw(&self) -> *mut c_void {
        self.object.id()
    }

    /// The answer to a question that older systems do not know.
    fn answer<T>(&self, asked: &'static CStr, ask: unsafe fn(Id) -> T) -> Option<T> {
        let device = self.object.id();
        // SAFETY: a living device, which is asked only if it knows the question; these take nothing.
        Pool::around(|| unsafe { messages::responds(device, asked).then(|| ask(device)) })
    }

    /// A buffer over a window of the shard's mapping; `None` if Metal refuses, or makes a shorter
    /// one, which old virtual devices do.
    fn no_copy(&self, shard: &Arc<Shard>, window: Window) -> Option<MetalBuffer> {
        let mapping = shard.mapping();
        let len = usize::try_from(window.len()).ok()?;
        let mapped = mapping.len().checked_next_multiple_of(Mapping::page_size())?;
        if window.end() > mapped as u64 {
            return None;
        }
        let address = mapping.as_ptr().wrapping_add(window.start() as usize);
        let deallocator = Deallocator::new(Arc::clone(shard));
        // SAFETY: whole pages of one mapping, which the block keeps mapped until the buffer goes
        // away; the device is alive. What writes through the buffer is what `as_raw` warns of.
        let buffer = unsafe {
            Retained::owned(messages::new_buffer_with_bytes_no_copy(
                self.object.id(),
                address.cast_mut().cast(),
                len,
                SHARED,
                deallocator.as_block(),
            ))
        };
        let buffer = buffer.map(|object| MetalBuffer { object, copied: false });
        if buffer.as_ref().is_some_and(|buffer| buffer.len() == window.len()) {
            return buffer;
        }
        // Whether Metal called the block for what it did not make is its own affair: the shard is
        // let go of here, and once.
        drop(buffer);
        deallocator.let_go();
        None
    }

    /// A buffer of so many zeros, above 0.
    pub(super) fn zeros(&self, len: u64) -> Result<MetalBuffer> {
        let bytes = usize::try_from(len).unwrap_or(usize::MAX);
        // SAFETY: a living device; the reference is ours.
        let object = unsafe {
            Retained::owned(messages::new_buffer_with_length(self.object.id(), bytes, SHARED))
        };
        let buffer = object.map(|object| MetalBuffer { object, copied: true });
        let found = buffer.as_ref().map_or(0, MetalBuffer::len);
        let made = buffer.filter(|buffer| found >= len && !buffer.contents().is_null());
        made.ok_or_else(|| Error::new(ErrorKind::NoBuffer { expected: len, found }))
    }

    /// A buffer of `len` bytes with a copy of `bytes` in it, `offset` bytes from its start.
    fn copy(&self, bytes: &[u8], offset: u64, len: u64) -> Result<MetalBuffer> {
        let buffer = self.zeros(len)?;
        let room = len.saturating_sub(offset).min(bytes.len() as u64) as usize;
        // SAFETY: `room` bytes from `offset` on lie within the `len` that were just made, which no
        // one else has yet, and within `bytes`.
        unsafe {
            let to = buffer.contents().cast::<u8>().add((len - room as u64).min(offset) as usize);
            ptr::copy_nonoverlapping(bytes.as_ptr(), to, room);
        }
        Ok(buffer)
    }

    pub(super) fn compile(&self, source: &CStr, name: &CStr) -> Result<Kernel> {
        Kernel::compile(&self.object, source, name)
            .map_err(|message| metal("compile the kernel", message))
    }
}

impl Debug for MetalDevice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "MetalDevice({})", self.name())
    }
}

/// What a model takes of a device's memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// The model's buffers together.
    pub needed: u64,
    /// What this process has allocated already.
    pub allocated: u64,
    /// What the system recommends not to pass; `None` if it does not say.
    pub recommended: Option<u64>,
}

impl Budget {
    /// Bytes by which the recommendation would be passed, 0 if it would not. What is beyond it is
    /// paged out and in again, and commands may fail.
    pub fn excess(&self) -> u64 {
        let all = self.allocated.saturating_add(self.needed);
        all.saturating_sub(self.recommended.unwrap_or(u64::MAX))
    }
}

/// One Metal buffer with weights. `Send` and `Sync`.
pub struct MetalBuffer {
    object: Retained,
    copied: bool,
}

impl MetalBuffer {
    /// Bytes, as Metal says.
    pub fn len(&self) -> u64 {
        // SAFETY: a living buffer.
        unsafe { messages::length(self.object.id()) as u64 }
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
    /// Nothing may write through it: no kernel, no blit, no purgeable state. The pages are those of
    /// every `&[u8]` of the model. It is alive as long as `self`; to keep it longer, retain it, and
    /// the pages stay as long.
    pub unsafe fn as_raw(&self) -> *mut c_void {
        self.object.id()
    }

    /// Its first words, as a kernel that has ended left them.
    pub(super) fn words(&self, count: usize) -> Result<Vec<u32>> {
        let room = count.min((self.len() / 4) as usize);
        let mut words = zeros(room)?;
        // SAFETY: the buffer has `room` words, which every pattern of bits is, and so has `words`;
        // nobody writes to it any more.
        unsafe { ptr::copy_nonoverlapping(self.contents().cast(), words.as_mut_ptr(), room) };
        Ok(words)
    }

    fn contents(&self) -> *mut c_void {
        // SAFETY: a living buffer; with shared storage it has an address.
        unsafe { messages::contents(self.object.id()) }
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
        let results = results.iter().map(|buffer| (&buffer.object, 0));
        let buffers: Vec<_> =
            [(&self.buffer.object, self.offset)].into_iter().chain(results).collect();
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

    /// Where the tensor of that name is; `Ok(None)` if it has no bytes, which no buffer can have.
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
        let set = Pool::around(|| ResidencySet::new(device, self.buffers()))?;
        self.resident = set;
        Ok(self.resident.is_some())
    }

    /// The `id<MTLResidencySet>` for a queue's `addResidencySet:`; `None` unless it was asked for
    /// and the system has it.
    ///
    /// # Safety
    ///
    /// As for [`MetalDevice::as_raw`].
    pub unsafe fn residency_set_as_raw(&self) -> Option<*mut c_void> {
        self.resident.as_ref().map(|set| set.0.id())
    }
}

impl Debug for MetalModel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "MetalModel({} buffers of {:?})", self.buffers().count(), self.model)
    }
}

impl ShardBuffers {
    fn new(device: &MetalDevice, shard: &Arc<Shard>, limits: Limits) -> Result<ShardBuffers> {
        let plan = plan(shard, limits)?;
        let mut windows = vector(plan.windows().len())?;
        for &window in plan.windows() {
            windows.push(match device.no_copy(shard, window) {
                Some(buffer) => buffer,
                None => copy_of(device, shard, window)?,
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

/// Buffers that the system was asked to keep resident.
struct ResidencySet(Retained);

impl ResidencySet {
    /// `None` on a system without such sets. Call it within a pool.
    fn new<'a>(
        device: &MetalDevice,
        buffers: impl Iterator<Item = &'a MetalBuffer>,
    ) -> Result<Option<ResidencySet>> {
        let descriptors = class(c"MTLResidencySetDescriptor");
        if descriptors.is_null() {
            return Ok(None);
        }
        let mut error = ptr::null_mut();
        // SAFETY: a class with `new`, whose reference is ours; a living device and descriptor; an
        // error is lent to the pool.
        let set = unsafe {
            let descriptor = Retained::owned(messages::new(descriptors));
            let descriptor = descriptor.as_ref().map_or(ptr::null_mut(), Retained::id);
            Retained::owned(messages::new_residency_set(device.object.id(), descriptor, &mut error))
        };
        let Some(set) = set else {
            // SAFETY: nil, or an error that the pool keeps.
            let message = unsafe { text(messages::localized_description(error)) };
            return Err(metal("make a residency set", message));
        };
        for buffer in buffers {
            // SAFETY: a living set, which keeps a reference to a living buffer.
            unsafe { messages::add_allocation(set.id(), buffer.object.id()) };
        }
        // SAFETY: a living set.
        unsafe {
            messages::commit(set.id());
            messages::request_residency(set.id());
        }
        Ok(Some(ResidencySet(set)))
    }
}

impl Drop for ResidencySet {
    /// Without all three the memory is not given back.
    fn drop(&mut self) {
        // SAFETY: a living set.
        Pool::around(|| unsafe {
            messages::end_residency(self.0.id());
            messages::remove_all_allocations(self.0.id());
            messages::commit(self.0.id());
        });
    }
}

/// How many bytes of a shard's mapping stand before its file's first: the one place that knows.
fn lead(_: &Shard) -> u64 {
    0
}

fn plan(shard: &Shard, limits: Limits) -> Result<Plan> {
    Plan::new(shard.header(), lead(shard), limits).map_err(|error| in_file_of(shard, error))
}

/// A buffer with a copy of a window, in which every tensor has the same offset.
fn copy_of(device: &MetalDevice, shard: &Shard, window: Window) -> Result<MetalBuffer> {
    let lead = lead(shard);
    let start = window.start().saturating_sub(lead);
    let end = window.end().saturating_sub(lead).min(shard.file_len());
    let before = lead.saturating_sub(window.start());
    device.copy(shard.slice(start.min(end)..end), before, window.len())
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
