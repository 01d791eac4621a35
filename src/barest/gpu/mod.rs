//! How does a GPU compute with a model without a second copy of it?
//!
//! Where processor and graphics share one memory, a buffer can lie over the very pages of the file:
//!
//! ```text
//!   plan.rs    which pages go into which buffer: arithmetic, on every system
//!   metal.rs   the buffers, for macOS and iOS
//!   sum.rs     one kernel, to see that the GPU reads what the processor reads
//! ```
//!
//! A copy of this crate that needs none of it leaves this folder out, and `sys/objc/`: a `mod`
//! line each. Then no framework is linked.

mod plan;

pub use plan::{Limits, Place, Plan, Window};
