//! What does a signal look like, number by number and byte by byte?
//!
//! Two structures and a few numbers, of which every system has its own. A test asks the C compiler
//! for each of them wherever it runs; on a system that is missing here there is no guard.
//!
//! ```text
//!   struct sigaction   Linux      handler, mask (128 bytes), flags, restorer
//!                      s390x      handler, nothing, flags, restorer, mask      with glibc
//!                      Android    flags, handler, mask (8 bytes), restorer
//!                      Apple      handler, mask (4 bytes), flags
//!   siginfo_t          Linux      code at byte 8, address at 16
//!                      Apple      code at byte 8, address at 24
//! ```

use std::ffi::{c_int, c_void};
use std::ops::RangeInclusive;

pub const SIG_DFL: usize = 0;
pub const SIG_IGN: usize = 1;

#[cfg(not(target_vendor = "apple"))]
mod numbers {
    use super::*;

    pub const SIGBUS: c_int = 7;
    pub const SA_SIGINFO: c_int = 4;
    pub const SA_ONSTACK: c_int = 0x0800_0000;
    pub const SA_RESTART: c_int = 0x1000_0000;
    pub const SA_NODEFER: c_int = 0x4000_0000;
    pub const SA_RESETHAND: c_int = 0x8000_0000_u32 as c_int;

    /// `BUS_ADRERR`: nothing is behind the address.
    pub const LOST: RangeInclusive<c_int> = 2..=2;
    /// From `BUS_ADRALN` to `BUS_MCEERR_AR`: what comes again if the instruction does.
    pub const COMES_AGAIN: RangeInclusive<c_int> = 1..=4;
}

#[cfg(target_vendor = "apple")]
mod numbers {
    use super::*;

    pub const SIGBUS: c_int = 10;
    pub const SA_SIGINFO: c_int = 0x40;
    pub const SA_ONSTACK: c_int = 1;
    pub const SA_RESTART: c_int = 2;
    pub const SA_NODEFER: c_int = 0x10;
    pub const SA_RESETHAND: c_int = 4;

    /// On arm64 this kernel calls every SIGBUS `BUS_ADRALN`; elsewhere it is `BUS_ADRERR`.
    pub const LOST: RangeInclusive<c_int> = 1..=2;
    /// From `BUS_ADRALN` to `BUS_OBJERR`.
    pub const COMES_AGAIN: RangeInclusive<c_int> = 1..=3;
}

pub use numbers::*;

/// `struct sigaction` as the C library's function takes it.
#[cfg(all(target_os = "linux", not(all(target_arch = "s390x", target_env = "gnu"))))]
#[repr(C)]
pub struct SigAction {
    pub handler: usize,
    pub mask: [u64; 16],
    pub flags: c_int,
    restorer: usize,
}

/// `struct sigaction` as the C library's function takes it.
#[cfg(all(target_os = "linux", target_arch = "s390x", target_env = "gnu"))]
#[repr(C)]
pub struct SigAction {
    pub handler: usize,
    reserved: c_int,
    pub flags: c_int,
    restorer: usize,
    pub mask: [u64; 16],
}

/// `struct sigaction` as the C library's function takes it.
#[cfg(target_os = "android")]
#[repr(C)]
pub struct SigAction {
    pub flags: c_int,
    pub handler: usize,
    pub mask: u64,
    restorer: usize,
}

/// `struct sigaction` as the C library's function takes it.
#[cfg(target_vendor = "apple")]
#[repr(C)]
pub struct SigAction {
    pub handler: usize,
    pub mask: u32,
    pub flags: c_int,
}

impl SigAction {
    /// The default action: all bytes are 0, on every system.
    pub fn default_action() -> SigAction {
        // SAFETY: integers and arrays of integers alone, to which 0 is a value.
        unsafe { std::mem::zeroed() }
    }
}

/// The beginning of `siginfo_t`, as far as it is read.
#[cfg(not(target_vendor = "apple"))]
#[repr(C)]
pub struct SigInfo {
    head: [c_int; 2],
    pub code: c_int,
    /// A union on the boundary of a pointer.
    pub address: *mut c_void,
}

/// The beginning of `siginfo_t`, as far as it is read.
#[cfg(target_vendor = "apple")]
#[repr(C)]
pub struct SigInfo {
    head: [c_int; 2],
    pub code: c_int,
    sender: [c_int; 3],
    pub address: *mut c_void,
}

#[cfg(test)]
mod tests {
    use super::super::super::ask_c::assert_c_agrees;
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_c_compiler_agrees_on_signals() {
        assert_c_agrees(
            &["signal.h"],
            &[
                ("SIGBUS", SIGBUS as u64),
                ("(size_t)SIG_DFL", SIG_DFL as u64),
                ("(size_t)SIG_IGN", SIG_IGN as u64),
                ("(unsigned)SA_SIGINFO", SA_SIGINFO as u64),
                ("(unsigned)SA_ONSTACK", SA_ONSTACK as u64),
                ("(unsigned)SA_RESTART", SA_RESTART as u64),
                ("(unsigned)SA_NODEFER", SA_NODEFER as u64),
                ("(unsigned)SA_RESETHAND", SA_RESETHAND as u32 as u64),
                ("BUS_ADRALN", *COMES_AGAIN.start() as u64),
                ("BUS_ADRERR", *LOST.end() as u64),
                #[cfg(not(target_vendor = "apple"))]
                ("BUS_MCEERR_AR", *COMES_AGAIN.end() as u64),
                #[cfg(target_vendor = "apple")]
                ("BUS_OBJERR", *COMES_AGAIN.end() as u64),
                ("sizeof(struct sigaction)", size_of::<SigAction>() as u64),
                (
                    "offsetof(struct sigaction, sa_sigaction)",
                    offset_of!(SigAction, handler) as u64,
                ),
                ("offsetof(struct sigaction, sa_mask)", offset_of!(SigAction, mask) as u64),
                ("offsetof(struct sigaction, sa_flags)", offset_of!(SigAction, flags) as u64),
                ("sizeof(sigset_t)", size_of_val(&SigAction::default_action().mask) as u64),
                ("offsetof(siginfo_t, si_code)", offset_of!(SigInfo, code) as u64),
                ("offsetof(siginfo_t, si_addr)", offset_of!(SigInfo, address) as u64),
            ],
        );
    }
}
