//! What is a Metal device asked, and what does it make?
//!
//! Each type here owns a reference to one object, so its methods can be called at any time; they
//! may be called from any thread, as Apple says of devices and buffers.

use super::{Bool, Deallocator, Id, Pool, Retained, class, messages, runtime, text};
use std::ffi::{CStr, c_void};
use std::ptr;

/// `MTLResourceStorageModeShared`, with the default cache mode and hazard tracking.
const SHARED: usize = 0;

/// An `id<MTLDevice>`.
pub struct Device(Retained);

impl Device {
    /// The system's default, or the first of the list where the default is nil, as in some programs
    /// without a window. `None` if there is neither.
    pub fn system_default() -> Option<Device> {
        let runtime = runtime();
        Pool::around(|| {
            // SAFETY: takes nothing, and the reference is ours.
            let default = unsafe { Retained::owned((runtime.create_system_default_device)()) };
            if default.is_some() {
                return default;
            }
            // SAFETY: the same.
            let list = unsafe { Retained::owned((runtime.copy_all_devices?)()) }?;
            // SAFETY: an array that is alive; a device that it holds, alive as long, is retained.
            unsafe {
                match messages::count(list.id()) {
                    0 => None,
                    _ => Retained::shared(messages::object_at_index(list.id(), 0)),
                }
            }
        })
        .map(Device)
    }

    pub fn id(&self) -> Id {
        self.0.id()
    }

    pub fn name(&self) -> String {
        // SAFETY: a living device, and a string that the pool keeps until it is copied.
        Pool::around(|| unsafe { text(messages::name(self.id())) })
    }

    /// The next four are `None` where the system is too old to know the question.
    pub fn max_buffer_length(&self) -> Option<usize> {
        self.answer(c"maxBufferLength", messages::max_buffer_length)
    }

    pub fn current_allocated_size(&self) -> Option<usize> {
        self.answer(c"currentAllocatedSize", messages::current_allocated_size)
    }

    pub fn recommended_max_working_set_size(&self) -> Option<u64> {
        self.answer(c"recommendedMaxWorkingSetSize", messages::recommended_max_working_set_size)
    }

    pub fn has_unified_memory(&self) -> Option<bool> {
        self.answer(c"hasUnifiedMemory", messages::has_unified_memory).map(|yes: Bool| yes != 0)
    }

    fn answer<T>(&self, asked: &'static CStr, ask: unsafe fn(Id) -> T) -> Option<T> {
        // SAFETY: a living device, which is asked only if it knows the question; these take nothing
        // and give numbers.
        Pool::around(|| unsafe { messages::responds(self.id(), asked).then(|| ask(self.id())) })
    }

    /// A buffer over memory that stays where it is. `None` if Metal makes none; it may also be
    /// shorter than it should be.
    ///
    /// # Safety
    ///
    /// From `address` on `len` bytes, above 0 and whole pages, lie in one mapping, which is readable
    /// at least as long as `deallocator` holds what it keeps.
    pub unsafe fn buffer_over<T: Send + Sync>(
        &self,
        address: *const u8,
        len: usize,
        deallocator: &Deallocator<T>,
    ) -> Option<Buffer> {
        // SAFETY: a living device; the memory is as Metal wants it, by this function's contract; the
        // block is alive during the call, and copied by whoever wants it longer. The reference
        // is ours.
        Pool::around(|| unsafe {
            Retained::owned(messages::new_buffer_with_bytes_no_copy(
                self.id(),
                address.cast_mut().cast(),
                len,
                SHARED,
                deallocator.as_block(),
            ))
        })
        .map(Buffer)
    }

    /// A buffer of memory of its own, `len` bytes of zeros, above 0. `None` if there is no such
    /// memory.
    pub fn buffer(&self, len: usize) -> Option<Buffer> {
        // SAFETY: a living device; the reference is ours.
        let made = Pool::around(|| unsafe {
            Retained::owned(messages::new_buffer_with_length(self.id(), len, SHARED))
        });
        made.map(Buffer).filter(|buffer| buffer.len() >= len && !buffer.contents().is_null())
    }
}

/// An `id<MTLBuffer>` with shared storage.
pub struct Buffer(Retained);

impl Buffer {
    pub fn id(&self) -> Id {
        self.0.id()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        // SAFETY: a living buffer.
        unsafe { messages::length(self.id()) }
    }

    /// Its first byte, for the processor.
    pub fn contents(&self) -> *mut c_void {
        // SAFETY: a living buffer.
        unsafe { messages::contents(self.id()) }
    }
}

/// Buffers that the system was asked to keep resident, until this is dropped.
pub struct ResidencySet(Retained);

impl ResidencySet {
    /// `Ok(None)` on a system without such sets; fails with what Metal says.
    pub fn new<'a>(
        device: &Device,
        buffers: impl Iterator<Item = &'a Buffer>,
    ) -> Result<Option<ResidencySet>, String> {
        let descriptors = class(c"MTLResidencySetDescriptor");
        if descriptors.is_null() {
            return Ok(None);
        }
        Pool::around(|| {
            let mut error = ptr::null_mut();
            // SAFETY: a class with `new`; a living device and descriptor. The references are ours,
            // and an error is lent to the pool.
            let set = unsafe {
                let descriptor = Retained::owned(messages::new(descriptors));
                let descriptor = descriptor.as_ref().map_or(ptr::null_mut(), Retained::id);
                let set = messages::new_residency_set(device.id(), descriptor, &mut error);
                Retained::owned(set).ok_or_else(|| text(messages::localized_description(error)))?
            };
            for buffer in buffers {
                // SAFETY: a living set, which takes a reference to a living buffer.
                unsafe { messages::add_allocation(set.id(), buffer.id()) };
            }
            // SAFETY: a living set.
            unsafe {
                messages::commit(set.id());
                messages::request_residency(set.id());
            }
            Ok(Some(ResidencySet(set)))
        })
    }

    pub fn id(&self) -> Id {
        self.0.id()
    }
}

impl Drop for ResidencySet {
    /// Without all three the memory is not given back.
    fn drop(&mut self) {
        // SAFETY: a living set.
        Pool::around(|| unsafe {
            messages::end_residency(self.id());
            messages::remove_all_allocations(self.id());
            messages::commit(self.id());
        });
    }
}
