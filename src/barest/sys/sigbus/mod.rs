//! How can a process outlive a mapped file that became shorter?
//!
//! The kernel answers a touch of a page that the file has lost with SIGBUS, and SIGBUS ends the
//! process. [`install`] puts a handler in front of it:
//!
//! ```text
//!   touch ──▶ page lost ──▶ SIGBUS ──▶ an address of ours? ─ no ──▶ the handler that was there before
//!                                          │ yes
//!                                          ├─ note the lowest such offset of this mapping: the poison mark
//!                                          ├─ map zeros over the page and what follows it
//!   touch again, reads 0 ◀── return ───────┘
//! ```
//!
//! That keeps the process alive and makes the numbers wrong, so the mark is half of the matter:
//! whoever read bytes asks for it afterwards. Every routine of this folder that walks a tensor to
//! its end does; [`Model::still_whole`](super::super::Model::still_whole) does for the others.
//!
//! It is containment and no more. Bytes that change under a live `&[u8]` are outside of what the
//! language promises, whoever changes them: the one who cut the file, or these zeros.

mod registry;

macro_rules! where_signals_are_known {
    ($($item:item)*) => {
        $(#[cfg(all(
            target_pointer_width = "64",
            any(
                target_vendor = "apple",
                all(
                    any(target_os = "linux", target_os = "android"),
                    any(
                        target_arch = "x86_64",
                        target_arch = "aarch64",
                        target_arch = "riscv64",
                        target_arch = "loongarch64",
                        target_arch = "powerpc64",
                        target_arch = "s390x",
                    ),
                ),
            ),
        ))]
        $item)*
    };
}

macro_rules! where_they_are_not {
    ($($item:item)*) => {
        $(#[cfg(not(all(
            target_pointer_width = "64",
            any(
                target_vendor = "apple",
                all(
                    any(target_os = "linux", target_os = "android"),
                    any(
                        target_arch = "x86_64",
                        target_arch = "aarch64",
                        target_arch = "riscv64",
                        target_arch = "loongarch64",
                        target_arch = "powerpc64",
                        target_arch = "s390x",
                    ),
                ),
            ),
        )))]
        $item)*
    };
}

where_signals_are_known! {
    mod handler;
    mod signals;
    use handler::put_in_place;
}

where_they_are_not! {
    fn put_in_place() -> io::Result<()> {
        Err(super::unsupported("outliving SIGBUS"))
    }
}

use registry::{Place, Registry};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering, fence};

static RANGES: Registry = Registry::new();

static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Guards the mapped files of this process, those that are mapped already and those to come,
/// against SIGBUS. A choice of the program, for all of it: no constructor of this crate calls this.
///
/// From then on a touch of a page that a mapped file has lost (it was truncated, or the disk failed)
/// reads zeros instead of ending the process, and is noted: routines that read a tensor to its end
/// return [`Truncated`](super::super::ErrorKind::Truncated), and
/// [`Model::still_whole`](super::super::Model::still_whole) reports it to whoever read `bytes()`.
/// The zeros reach from that page up to the next address that is a multiple of 2 MiB or up to the
/// mapping's end, so that a large hole takes few of the areas that a process may have; good pages
/// behind a failing one may be among them. Nothing from the mark on is to be trusted.
///
/// At most 1,024 mappings are guarded at a time; [`Mapping::guarded`](super::super::Mapping::guarded)
/// tells of each. Any other SIGBUS goes to the handler that was there before; std has one. A cut
/// inside of a page that stays is no fault: its rest reads as zeros, with the guard or without, and
/// only the file's length tells. The handler allocates nothing, takes no lock, keeps `errno` and runs
/// on the alternate stack if the thread has one.
///
/// A second call changes nothing. Fails with [`io::ErrorKind::Unsupported`] where the layout of
/// signals is not known here (anything but 64-bit Linux, Android and Apple systems), with
/// [`io::ErrorKind::AlreadyExists`] if somebody put a handler over this one since: that one may hand
/// on to this, and a circle must not be; and with what
/// [`sigaction`](https://pubs.opengroup.org/onlinepubs/9799919799/functions/sigaction.html) says.
/// On Apple systems it was compiled, not run.
pub fn install() -> io::Result<()> {
    put_in_place()
}

/// A mapping's place in the registry. Dropping it gives the place back, and must come before the
/// pages are.
pub(in super::super) struct Watch {
    place: &'static Place,
}

/// Enters `len` mapped bytes, so that the handler knows them. `None` if all places are taken: the
/// mapping is then as good as any other, only not guarded.
pub(in super::super) fn watch(address: NonNull<u8>, len: usize) -> Option<Watch> {
    let place = RANGES.enter(address.as_ptr() as usize, len)?;
    Some(Watch { place })
}

impl Watch {
    /// Whether a fault would be caught.
    pub(in super::super) fn is_guarded(&self) -> bool {
        INSTALLED.load(Ordering::Acquire)
    }

    /// The poison mark: the lowest offset at which zeros stand in for the file's bytes. Ask after
    /// reading, not before.
    #[inline]
    pub(in super::super) fn poisoned(&self) -> Option<usize> {
        // What was read before must not have been read after the mark was. The handler sets the
        // mark before it maps the zeros.
        fence(Ordering::Acquire);
        self.place.mark()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.place.leave();
    }
}
