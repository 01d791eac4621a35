//! Who guarantees that a file's bytes stay as they are?
//!
//! Linux does, of two kinds of files, and nothing can undo it while the file exists:
//!
//! ```text
//!   a sealed memfd   F_SEAL_WRITE: no write, no hole, no writable mapping; one that is there makes
//!                    sealing fail. F_SEAL_SHRINK: no truncation. A seal cannot be broken
//!   fs-verity        the file cannot be opened for writing any more, not by root either, and each
//!                    page is checked against a hash tree when it is read: what was changed on the
//!                    disk below is an error (and a SIGBUS), not other bytes
//! ```
//!
//! F_SEAL_FUTURE_WRITE leaves writable mappings in place that were there before. A read-only mount
//! and the immutable flag can be undone by root while we look. None of these counts. Whether a file
//! has fs-verity is asked by `statx`, which the kernel's own file systems answer, and not by an
//! `ioctl`, which FUSE hands to a program that may say anything.

use std::ffi::{c_char, c_int, c_long};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

unsafe extern "C" {
    // Variadic, and declared so.
    fn fcntl(descriptor: c_int, command: c_int, ...) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

const F_GET_SEALS: c_int = 1034;
const F_SEAL_SEAL: c_int = 1;
const F_SEAL_SHRINK: c_int = 2;
const F_SEAL_WRITE: c_int = 8;
const F_SEAL_FUTURE_WRITE: c_int = 16;
const AT_EMPTY_PATH: c_int = 0x1000;
const STATX_ATTR_VERITY: u64 = 0x0010_0000;

/// The number of the system call; younger than some C libraries that lack the function.
const SYS_STATX: Option<c_long> = match () {
    _ if cfg!(target_os = "android") => None, // it may end a process that asks for an unknown call
    _ if cfg!(target_arch = "x86_64") => Some(332),
    _ if cfg!(target_arch = "powerpc64") => Some(383),
    _ if cfg!(target_arch = "s390x") => Some(379),
    _ if cfg!(target_arch = "aarch64") => Some(291),
    _ if cfg!(target_arch = "riscv64") => Some(291),
    _ if cfg!(target_arch = "loongarch64") => Some(291),
    _ => None,
};

/// `struct statx`, of which two fields are of interest.
#[repr(C)]
struct Statx {
    mask_and_block_size: [u32; 2],
    attributes: u64,
    between: [u64; 5],
    attributes_mask: u64,
    rest: [u64; 24],
}

/// Whether the kernel guarantees that nobody changes, truncates or punches the file's bytes for as
/// long as it exists; and if it does not, why not.
pub fn vouch(file: &File) -> io::Result<Result<(), String>> {
    if let Some(seals) = seals(file)? {
        return Ok(judge_seals(seals));
    }
    Ok(match verity(file)? {
        Verity::Enabled => Ok(()),
        Verity::Disabled => Err("fs-verity is not enabled for it, and it is no memfd".to_owned()),
        Verity::Unknown => {
            Err("its file system reports no fs-verity, and it is no memfd".to_owned())
        }
    })
}

/// The seals of a file in memory; `None` for one that cannot have any.
fn seals(file: &File) -> io::Result<Option<c_int>> {
    // SAFETY: takes a descriptor and gives a number, no memory of ours.
    match unsafe { fcntl(file.as_raw_fd(), F_GET_SEALS) } {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
            error => Err(error),
        },
        seals => Ok(Some(seals)),
    }
}

fn judge_seals(seals: c_int) -> Result<(), String> {
    let lacks = |seal| seals & seal == 0;
    let missing = match (lacks(F_SEAL_WRITE), lacks(F_SEAL_SHRINK)) {
        (false, false) => return Ok(()),
        (true, false) => "the seal F_SEAL_WRITE",
        (false, true) => "the seal F_SEAL_SHRINK",
        (true, true) => "the seals F_SEAL_WRITE and F_SEAL_SHRINK",
    };
    let why = match () {
        _ if !lacks(F_SEAL_FUTURE_WRITE) => {
            "; F_SEAL_FUTURE_WRITE leaves writable mappings from before"
        }
        _ if !lacks(F_SEAL_SEAL) => {
            ", and takes no more seals: a file of tmpfs, or a memfd made without MFD_ALLOW_SEALING"
        }
        _ => "",
    };
    Err(format!("it lies in memory without {missing}{why}"))
}

enum Verity {
    Enabled,
    Disabled,
    Unknown,
}

fn verity(file: &File) -> io::Result<Verity> {
    let Some(number) = SYS_STATX else { return Ok(Verity::Unknown) };
    let mut found = Statx {
        mask_and_block_size: [0; 2],
        attributes: 0,
        between: [0; 5],
        attributes_mask: 0,
        rest: [0; 24],
    };
    let (descriptor, flags) = (c_long::from(file.as_raw_fd()), c_long::from(AT_EMPTY_PATH));
    let empty: *const c_char = c"".as_ptr();
    // SAFETY: five arguments of a register each; the path is an empty C string, and the call writes
    // one `struct statx`, whose layout a test holds against C's.
    match unsafe { syscall(number, descriptor, empty, flags, 0 as c_long, &mut found) } {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Unsupported => Ok(Verity::Unknown),
            error => Err(error),
        },
        _ => Ok(judge_attributes(found.attributes, found.attributes_mask)),
    }
}

fn judge_attributes(attributes: u64, mask: u64) -> Verity {
    match (mask & STATX_ATTR_VERITY != 0, attributes & STATX_ATTR_VERITY != 0) {
        (true, true) => Verity::Enabled,
        (true, false) => Verity::Disabled,
        (false, _) => Verity::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask_c::assert_c_agrees;
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_c_compiler_agrees_on_seals_and_statx() {
        assert_c_agrees(
            &["fcntl.h", "sys/stat.h", "sys/syscall.h"],
            &[
                ("F_GET_SEALS", F_GET_SEALS as u64),
                ("F_SEAL_SEAL", F_SEAL_SEAL as u64),
                ("F_SEAL_SHRINK", F_SEAL_SHRINK as u64),
                ("F_SEAL_WRITE", F_SEAL_WRITE as u64),
                ("F_SEAL_FUTURE_WRITE", F_SEAL_FUTURE_WRITE as u64),
                ("AT_EMPTY_PATH", AT_EMPTY_PATH as u64),
                ("STATX_ATTR_VERITY", STATX_ATTR_VERITY),
                #[cfg(target_os = "linux")]
                ("SYS_statx", SYS_STATX.unwrap_or_default() as u64),
                ("sizeof(struct statx)", size_of::<Statx>() as u64),
                (
                    "offsetof(struct statx, stx_attributes)",
                    offset_of!(Statx, attributes) as u64,
                ),
                (
                    "offsetof(struct statx, stx_attributes_mask)",
                    offset_of!(Statx, attributes_mask) as u64,
                ),
            ],
        );
    }

    #[test]
    fn both_seals_are_needed_and_no_other_counts() {
        for seals in 0..64 {
            let both = seals & F_SEAL_WRITE != 0 && seals & F_SEAL_SHRINK != 0;
            assert_eq!(judge_seals(seals).is_ok(), both, "{seals}");
        }
        let refused = judge_seals(F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE).unwrap_err();
        assert!(refused.contains("F_SEAL_WRITE;") && refused.contains("FUTURE"), "{refused}");
    }

    #[test]
    fn an_attribute_counts_where_the_file_system_knows_it() {
        let judge = |attributes, mask| judge_attributes(attributes, mask);
        let bit = STATX_ATTR_VERITY;
        assert!(matches!(judge(bit, u64::MAX), Verity::Enabled));
        assert!(matches!(judge(!bit, u64::MAX), Verity::Disabled));
        assert!(matches!(judge(bit, !bit), Verity::Unknown));
        assert!(matches!(judge(0, 0), Verity::Unknown));
    }
}
