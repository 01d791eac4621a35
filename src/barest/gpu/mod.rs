//! How does a GPU compute with a model without a second copy of it?
//!
//! Where processor and graphics share one memory, a buffer can lie over the very pages of the file:
//!
//! ```text
//!   plan.rs    which pages go into which buffer: arithmetic, on every system
//!   device.rs  what a device can take; from here on for macOS and iOS
//!   metal.rs   the buffers
//!   sum.rs     one kernel, to see that the GPU reads what the processor reads
//! ```
//!
//! A copy of this crate that needs none of it leaves this folder out, and `sys/objc/`: a `mod`
//! line each. Then no framework is linked.

mod device;
mod metal;
mod plan;
mod sum;

pub use plan::{Limits, Place, Plan, Window};

#[cfg(all(
    target_pointer_width = "64",
    any(target_os = "macos", target_os = "ios", all(test, unix)),
))]
pub use device::{Budget, MetalDevice};
#[cfg(all(
    target_pointer_width = "64",
    any(target_os = "macos", target_os = "ios", all(test, unix)),
))]
pub use metal::{MetalBuffer, MetalModel, TensorBuffer};
#[cfg(all(
    target_pointer_width = "64",
    any(target_os = "macos", target_os = "ios", all(test, unix)),
))]
pub use sum::{Sum, sum_bf16, sum_bf16_on_cpu};
// For tests outside of this folder, where there is no Metal.
#[cfg(all(test, unix, target_pointer_width = "64", not(target_vendor = "apple")))]
pub use super::sys::objc::{Runtime, install};
