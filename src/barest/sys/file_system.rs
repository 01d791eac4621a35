//! On which kind of file system does a file lie?
//!
//! On some, mapping is a bad idea: a page that cannot be fetched over the network is a signal and no
//! error, and each fault waits for a round trip.

use std::ffi::c_int;
use std::fs::File;
use std::os::fd::AsRawFd;

/// Longer than `struct statfs` is on any of these systems.
#[repr(C, align(8))]
struct Answer([u8; 4096]);

unsafe extern "C" {
    // Not in POSIX, but on all systems of this file.
    #[cfg_attr(all(target_vendor = "apple", target_arch = "x86_64"), link_name = "fstatfs$INODE64")]
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    fn fstatfs(descriptor: c_int, answer: *mut Answer) -> c_int;
}

/// The file system's name, if it is one on which files are better read than mapped; `None` for local
/// ones, and where the system does not tell.
pub fn better_read(file: &File) -> Option<&'static str> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        let mut answer = Answer([0; 4096]);
        // SAFETY: `answer` is writable and longer than what is written.
        let status = unsafe { fstatfs(file.as_raw_fd(), &mut answer) };
        if status == 0 { name(&answer.0) } else { None }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    {
        let _ = file;
        None
    }
}

/// The first word of Linux's `struct statfs` is a number that each file system has chosen: of 32 bits,
/// at the beginning of a wider word except on s390x.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn name(answer: &[u8]) -> Option<&'static str> {
    const REMOTE: [(u32, &str); 10] = [
        (0x6969, "NFS"),
        (0xfe53_4d42, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0x6573_5546, "FUSE"),
        (0x0102_1997, "9p"),
        (0x0bd0_0bd0, "Lustre"),
        (0x4750_4653, "GPFS"),
        (0x00c3_6400, "Ceph"),
        (0x1983_0326, "BeeGFS"),
        (0x5346_414f, "AFS"),
    ];
    let number = match cfg!(target_arch = "s390x") {
        true => u32::from_ne_bytes(*answer.first_chunk()?),
        false => u64::from_ne_bytes(*answer.first_chunk()?) as u32,
    };
    REMOTE.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Apple's `struct statfs` holds a name of 16 bytes, 72 bytes from its start. Untested: no Mac was at
/// hand.
#[cfg(target_vendor = "apple")]
fn name(answer: &[u8]) -> Option<&'static str> {
    const REMOTE: [&str; 6] = ["nfs", "smbfs", "afpfs", "webdav", "macfuse", "osxfuse"];
    let name = answer[72..88].split(|&byte| byte == 0).next()?;
    REMOTE.iter().find(|known| known.as_bytes() == name).copied()
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_known_whatever_the_width_of_its_word() {
        let answer = |number: u64| match cfg!(target_arch = "s390x") {
            true => (number as u32).to_ne_bytes().to_vec(),
            false => number.to_ne_bytes().to_vec(),
        };
        assert_eq!(name(&answer(0x6969)), Some("NFS"));
        // Sign-extended, as a `long` of a number with the top bit set may be.
        assert_eq!(name(&answer(0xffff_ffff_ff53_4d42)), Some("CIFS"));
        assert_eq!(name(&answer(0xef53)), None);
        assert_eq!(name(&[]), None);
    }

    #[test]
    fn the_test_s_own_program_lies_somewhere() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let mut answer = Answer([0; 4096]);
        // SAFETY: as in `better_read`.
        assert_eq!(unsafe { fstatfs(file.as_raw_fd(), &mut answer) }, 0);
        assert_ne!(answer.0[..8], [0; 8], "no file system has the number 0");
    }
}
