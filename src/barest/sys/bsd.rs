//! Which numbers stand for what on the BSDs?
//!
//! From their headers. Untested: none of them was at hand. The test in `posix.rs` asks the C
//! compiler wherever it runs.

use super::Advice;
use std::ffi::c_int;

pub const MAP_ANONYMOUS: c_int = 0x1000;
pub const MAP_FIXED: c_int = 0x10;
pub const MAP_NORESERVE: c_int = 0x40;
pub const O_NONBLOCK: c_int = 4;
pub const TIOCGWINSZ: u64 = 0x4008_7468;

#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
pub const SC_PAGESIZE: c_int = 47;
#[cfg(not(any(target_os = "freebsd", target_os = "dragonfly")))]
pub const SC_PAGESIZE: c_int = 28;

/// None beyond those that all systems have.
pub fn own_advice(_: Advice) -> Option<c_int> {
    None
}
