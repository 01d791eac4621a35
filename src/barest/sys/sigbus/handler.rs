//! What runs when a lost page is touched?
//!
//! A handler of signals runs in the middle of anything, so it may call what POSIX lists as
//! async-signal-safe and no more. Ours walks a table of atomics and makes one system call, `mmap`.
//! POSIX does not list that one. Where the number of the call is known here it goes to the kernel by
//! `syscall`, a bare wrapper everywhere, so that no C library and no tool that replaces its `mmap`
//! stands in between. On s390x and on Apple systems it is the C library's `mmap`: the former's
//! wraps the call alone; the latter's may also report it to a debugger of allocations, if one was
//! asked for.

use super::super::page_size;
use super::signals::*;
use super::{INSTALLED, RANGES};
use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::mem::transmute;
use std::ops::Range;
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};

unsafe extern "C" {
    fn sigaction(signal: c_int, new: *const SigAction, old: *mut SigAction) -> c_int;
    fn raise(signal: c_int) -> c_int;
    #[cfg_attr(target_os = "linux", link_name = "__errno_location")]
    #[cfg_attr(target_os = "android", link_name = "__errno")]
    #[cfg_attr(target_vendor = "apple", link_name = "__error")]
    fn errno_place() -> *mut c_int;
}

const PROT_READ: c_int = 1;
const MAP_PRIVATE: c_int = 2;
const MAP_FIXED: c_int = 0x10;
#[cfg(not(target_vendor = "apple"))]
const MAP_ANONYMOUS: c_int = 0x20;
#[cfg(target_vendor = "apple")]
const MAP_ANONYMOUS: c_int = 0x1000;

// The number of the system call.
#[cfg(all(target_arch = "x86_64", not(target_vendor = "apple")))]
const SYS_MMAP: c_long = 9;
#[cfg(target_arch = "powerpc64")]
const SYS_MMAP: c_long = 90;
#[cfg(all(
    any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "loongarch64"),
    not(target_vendor = "apple")
))]
const SYS_MMAP: c_long = 222;

/// Asked for before the first signal.
static PAGE: AtomicUsize = AtomicUsize::new(0);

// The handler that was there before, and its flags.
static PREVIOUS: AtomicUsize = AtomicUsize::new(SIG_DFL);
static PREVIOUS_FLAGS: AtomicI32 = AtomicI32::new(0);

type WithInfo = unsafe extern "C" fn(c_int, *mut SigInfo, *mut c_void);
type WithoutInfo = unsafe extern "C" fn(c_int);

pub fn put_in_place() -> io::Result<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    // It guards no data, so a panic of another caller spoils nothing.
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let ours = on_sigbus as WithInfo as usize;
    let current = exchange(None)?;
    if current.handler == ours {
        return Ok(());
    }
    if INSTALLED.load(SeqCst) && current.handler > SIG_IGN {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "another handler of SIGBUS was put over the guard since it was installed",
        ));
    }
    PAGE.store(page_size(), SeqCst);
    // Before ours can run. It keeps the mask and the habits of the one it hands on to.
    remember(&current);
    let mut action = SigAction::default_action();
    action.handler = ours;
    action.mask = current.mask;
    action.flags = SA_SIGINFO | SA_ONSTACK | (current.flags & (SA_RESTART | SA_NODEFER));
    let replaced = exchange(Some(&action))?;
    // Somebody may have been quicker.
    remember(&replaced);
    INSTALLED.store(true, SeqCst);
    Ok(())
}

fn remember(previous: &SigAction) {
    PREVIOUS_FLAGS.store(previous.flags, SeqCst);
    PREVIOUS.store(previous.handler, SeqCst);
}

/// What is done at SIGBUS until now; and from now on, if an action is given.
fn exchange(action: Option<&SigAction>) -> io::Result<SigAction> {
    let mut old = SigAction::default_action();
    let new = action.map_or(null(), |action| action as *const SigAction);
    // SAFETY: both point to a `struct sigaction`, or to nothing; a test holds the layout against
    // C's. The handler put there is `on_sigbus`, which is sound in any thread and at any time.
    match unsafe { sigaction(SIGBUS, new, &mut old) } {
        0 => Ok(old),
        _ => Err(io::Error::last_os_error()),
    }
}

/// # Safety
///
/// For the kernel to call, with what it gives a handler that was installed with `SA_SIGINFO`.
unsafe extern "C" fn on_sigbus(signal: c_int, info: *mut SigInfo, context: *mut c_void) {
    // SAFETY: the kernel gives a whole `siginfo_t`; a test holds the two offsets against C's.
    let (code, address) = unsafe { ((*info).code, (*info).address as usize) };
    // SAFETY: takes nothing, and the place it gives is this thread's own.
    let errno = unsafe { errno_place() };
    // SAFETY: as above.
    let kept = unsafe { *errno };
    let page = PAGE.load(SeqCst);
    let done =
        LOST.contains(&code) && RANGES.poison(address, page, |pages| map_zeros(&pages));
    // SAFETY: as above.
    unsafe { *errno = kept };
    if !done {
        // SAFETY: what the kernel gave is passed on.
        unsafe { hand_on(signal, code, info, context) };
    }
}

/// Maps zeros over pages of a mapping of ours.
fn map_zeros(pages: &Range<usize>) -> bool {
    let at = pages.start as *mut c_void;
    let flags = MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS;
    // SAFETY: whole pages of one mapping in the registry, which is mapped for as long as it stands
    // there, and readable afterwards as before. What stood there is lost already, or declared lost
    // by the mark.
    unsafe { map_over(at, pages.len(), PROT_READ, flags) != usize::MAX }
}

/// # Safety
///
/// As for `mmap` with `MAP_FIXED`: the range is the caller's to replace.
#[cfg(not(any(target_vendor = "apple", target_arch = "s390x")))]
unsafe fn map_over(at: *mut c_void, len: usize, protection: c_int, flags: c_int) -> usize {
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    let (protection, flags, none, start) =
        (c_long::from(protection), c_long::from(flags), -1 as c_long, 0 as c_long);
    // SAFETY: six arguments of a register each, as the call takes them; the rest is this function's
    // own contract.
    unsafe { syscall(SYS_MMAP, at, len, protection, flags, none, start) as usize }
}

/// # Safety
///
/// As for `mmap` with `MAP_FIXED`: the range is the caller's to replace.
#[cfg(any(target_vendor = "apple", target_arch = "s390x"))]
unsafe fn map_over(at: *mut c_void, len: usize, protection: c_int, flags: c_int) -> usize {
    unsafe extern "C" {
        fn mmap(
            address: *mut c_void,
            length: usize,
            protection: c_int,
            flags: c_int,
            descriptor: c_int,
            offset: i64,
        ) -> *mut c_void;
    }
    // SAFETY: this function's own contract.
    unsafe { mmap(at, len, protection, flags, -1, 0) as usize }
}

/// Does with a signal what would have been done without us.
///
/// # Safety
///
/// With what the kernel gave the handler.
unsafe fn hand_on(signal: c_int, code: c_int, info: *mut SigInfo, context: *mut c_void) {
    let (previous, flags) = (PREVIOUS.load(SeqCst), PREVIOUS_FLAGS.load(SeqCst));
    match previous {
        // A fault that is ignored would come back for ever: the kernel does not ignore it either.
        SIG_IGN if !COMES_AGAIN.contains(&code) => {}
        SIG_DFL | SIG_IGN => {
            let default = SigAction::default_action();
            // SAFETY: a whole `struct sigaction`. If this fails the fault comes again, until it
            // does not fail.
            unsafe { sigaction(signal, &default, null_mut()) };
            if !COMES_AGAIN.contains(&code) {
                // SAFETY: takes a number. It is held back until this handler returns.
                unsafe { raise(signal) };
            }
        }
        handler => {
            if flags & SA_RESETHAND != 0 {
                PREVIOUS.store(SIG_DFL, SeqCst);
            }
            match flags & SA_SIGINFO != 0 {
                // SAFETY: `sigaction` gave this address as that of a handler of three arguments.
                true => unsafe { transmute::<usize, WithInfo>(handler)(signal, info, context) },
                // SAFETY: the same, of one argument.
                false => unsafe { transmute::<usize, WithoutInfo>(handler)(signal) },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::ask_c::assert_c_agrees;
    use super::*;

    #[test]
    fn the_c_compiler_agrees_on_what_the_handler_maps() {
        assert_c_agrees(
            &["sys/mman.h", "sys/syscall.h"],
            &[
                #[cfg(not(any(target_vendor = "apple", target_arch = "s390x")))]
                ("SYS_mmap", SYS_MMAP as u64),
                ("PROT_READ", PROT_READ as u64),
                ("MAP_PRIVATE", MAP_PRIVATE as u64),
                ("MAP_FIXED", MAP_FIXED as u64),
                ("MAP_ANONYMOUS", MAP_ANONYMOUS as u64),
                ("sizeof(int)", size_of::<c_int>() as u64),
                ("sizeof(long)", size_of::<c_long>() as u64),
            ],
        );
    }
}
