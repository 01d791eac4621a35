//! Is there a graphics device, and how much can it take?

#![cfg(all(
    target_pointer_width = "64",
    any(target_os = "macos", target_os = "ios", all(test, unix)),
))]

use super::super::error::{Error, ErrorKind, Result};
use super::super::mapping::Mapping;
use super::super::model::Model;
use super::super::sys::objc::Device;
use super::plan::{Limits, Plan};
use std::fmt::{self, Debug, Formatter};

/// What every device can do, by Apple's feature tables: for systems that cannot be asked.
const SMALLEST_MAX_BUFFER: usize = 256 << 20;

/// A graphics device. `Send` and `Sync`.
pub struct MetalDevice {
    pub(super) device: Device,
}

impl MetalDevice {
    /// The system's default device, or the first that it lists. Fails with
    /// [`NoMetalDevice`](ErrorKind::NoMetalDevice), which is no reason to stop: the bytes are there.
    pub fn system_default() -> Result<MetalDevice> {
        let device = Device::system_default();
        Ok(MetalDevice { device: device.ok_or_else(|| Error::new(ErrorKind::NoMetalDevice))? })
    }

    /// What it is called.
    pub fn name(&self) -> String {
        self.device.name()
    }

    /// Bytes of this system's pages and of the device's longest buffer.
    pub fn limits(&self) -> Limits {
        let longest = self.device.max_buffer_length().unwrap_or(SMALLEST_MAX_BUFFER);
        Limits { page_size: Mapping::page_size() as u64, max_buffer_length: longest as u64 }
    }

    /// Bytes that the device counts as allocated by this process, with those of buffers that lie
    /// over mapped pages.
    pub fn current_allocated_size(&self) -> u64 {
        self.device.current_allocated_size().unwrap_or(0) as u64
    }

    /// Bytes beyond which the system may have to take memory away from the device; `None` if it
    /// does not say.
    pub fn recommended_max_working_set_size(&self) -> Option<u64> {
        self.device.recommended_max_working_set_size().filter(|&bytes| bytes > 0)
    }

    /// Whether it shares memory with the processor, as on Apple silicon. Where it does not, to read
    /// a buffer over pages goes over a bus, each time: there a copy into memory of the device's own
    /// is better, and the caller's to make.
    pub fn has_unified_memory(&self) -> bool {
        self.device.has_unified_memory() == Some(true)
    }

    /// What a model would add to what is allocated, before it is added. Faults no page; fails as
    /// [`Plan::new`] does.
    pub fn budget(&self, model: &Model) -> Result<Budget> {
        let limits = self.limits();
        let mut needed = 0u64;
        for shard in model.shards() {
            needed = needed.saturating_add(Plan::of(shard, limits)?.buffer_bytes());
        }
        let (allocated, recommended) =
            (self.current_allocated_size(), self.recommended_max_working_set_size());
        Ok(Budget { needed, allocated, recommended })
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
    /// Bytes by which the recommendation would be passed, 0 if it would not. Beyond it memory is
    /// taken from one user for another, and commands may fail.
    pub fn excess(&self) -> u64 {
        let all = self.allocated.saturating_add(self.needed);
        all.saturating_sub(self.recommended.unwrap_or(u64::MAX))
    }
}
