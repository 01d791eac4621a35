//! Which numbers stand for what on 64-bit Linux and Android?
//!
//! From the kernel's `asm-generic/mman-common.h` and the libcs' headers; a test in `posix.rs` asks
//! the C compiler for each of them.

use super::Advice;
use std::ffi::{c_int, c_long};

#[cfg(any(target_arch = "mips64", target_arch = "mips64r6"))]
pub const MAP_ANONYMOUS: c_int = 0x800;
#[cfg(not(any(target_arch = "mips64", target_arch = "mips64r6")))]
pub const MAP_ANONYMOUS: c_int = 0x20;

pub const MAP_FIXED: c_int = 0x10;
#[cfg(any(target_arch = "mips64", target_arch = "mips64r6"))]
pub const MAP_NORESERVE: c_int = 0x400;
#[cfg(any(target_arch = "powerpc64", target_arch = "sparc64"))]
pub const MAP_NORESERVE: c_int = 0x40;
#[cfg(not(any(
    target_arch = "mips64",
    target_arch = "mips64r6",
    target_arch = "powerpc64",
    target_arch = "sparc64"
)))]
pub const MAP_NORESERVE: c_int = 0x4000;

#[cfg(any(target_arch = "mips64", target_arch = "mips64r6"))]
pub const O_NONBLOCK: c_int = 0x80;
#[cfg(target_arch = "sparc64")]
pub const O_NONBLOCK: c_int = 0x4000;
#[cfg(not(any(target_arch = "mips64", target_arch = "mips64r6", target_arch = "sparc64")))]
pub const O_NONBLOCK: c_int = 0x800;

#[cfg(target_os = "android")]
pub const SC_PAGESIZE: c_int = 39;
#[cfg(not(target_os = "android"))]
pub const SC_PAGESIZE: c_int = 30;

#[cfg(any(
    target_arch = "mips64",
    target_arch = "mips64r6",
    target_arch = "powerpc64",
    target_arch = "sparc64"
))]
pub const TIOCGWINSZ: u64 = 0x4008_7468;
#[cfg(not(any(
    target_arch = "mips64",
    target_arch = "mips64r6",
    target_arch = "powerpc64",
    target_arch = "sparc64"
)))]
pub const TIOCGWINSZ: u64 = 0x5413;

#[cfg(target_arch = "sparc64")]
pub const O_TMPFILE: c_int = 0x201_0000;
#[cfg(any(target_arch = "aarch64", target_arch = "powerpc64"))]
pub const O_TMPFILE: c_int = 0x40_4000;
#[cfg(not(any(target_arch = "sparc64", target_arch = "aarch64", target_arch = "powerpc64")))]
pub const O_TMPFILE: c_int = 0x41_0000;

pub const AT_FDCWD: c_int = -100;
pub const AT_SYMLINK_FOLLOW: c_int = 0x400;

/// `copy_file_range` by its number: older C libraries, and Android's, have no function for it.
/// `None` on machines whose number no test here has asked for; files are then copied through memory.
#[cfg(target_arch = "x86_64")]
pub const COPY_FILE_RANGE: Option<c_long> = Some(326);
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
pub const COPY_FILE_RANGE: Option<c_long> = Some(285);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub const COPY_FILE_RANGE: Option<c_long> = None;

pub const MADV_HUGEPAGE: c_int = 14;
pub const MADV_COLD: c_int = 20;
pub const MADV_PAGEOUT: c_int = 21;
pub const MADV_POPULATE_READ: c_int = 22;

/// The number of an advice that only some systems have.
pub fn own_advice(advice: Advice) -> Option<c_int> {
    match advice {
        Advice::Cold => Some(MADV_COLD),
        Advice::HugePage => Some(MADV_HUGEPAGE),
        Advice::PopulateRead => Some(MADV_POPULATE_READ),
        _ => None,
    }
}
