//! Which numbers stand for what on macOS, iOS and their kin?
//!
//! From `sys/mman.h`, `sys/fcntl.h` and `unistd.h` of the open-source kernel. Not run by the
//! authors' own machine: the test in `posix.rs` asks the C compiler when it runs on a Mac.

use super::Advice;
use std::ffi::c_int;

pub const MAP_ANONYMOUS: c_int = 0x1000;
pub const MAP_FIXED: c_int = 0x10;
pub const MAP_NORESERVE: c_int = 0x40;
pub const O_NONBLOCK: c_int = 4;
pub const SC_PAGESIZE: c_int = 29;
pub const TIOCGWINSZ: u64 = 0x4008_7468;

/// None: Apple's kernel has no advice like Linux's younger ones.
pub fn own_advice(_: Advice) -> Option<c_int> {
    None
}
