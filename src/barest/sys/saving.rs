//! What does a save ask of the kernel: a file that has no name yet, and a copy that needs no memory?
//!
//! Linux has both. Elsewhere they are `Unsupported`, and a save takes a named file and a buffer.

#[cfg(any(target_os = "linux", target_os = "android"))]
use super::linux as numbers;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::ffi::{CString, c_char, c_int, c_long};
use std::fs::File;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::fs::OpenOptions;
use std::io;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::AsRawFd;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::unix::{ffi::OsStrExt, fs::OpenOptionsExt};
use std::path::Path;

// POSIX.1-2024 has linkat; syscall is Linux's, and variadic as the C library has it.
#[cfg(any(target_os = "linux", target_os = "android"))]
unsafe extern "C" {
    fn linkat(
        from_directory: c_int,
        from: *const c_char,
        to_directory: c_int,
        to: *const c_char,
        flags: c_int,
    ) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

/// A new file without a name in `directory`, for reading and writing: it is gone when it is closed,
/// unless [`give_name`] gave it one. Permissions are `mode` without the bits of the umask.
/// [`io::ErrorKind::Unsupported`] where the system or the file system has none such (Linux 3.11 has).
pub fn open_unnamed(directory: &Path, mode: u32) -> io::Result<File> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(mode).custom_flags(numbers::O_TMPFILE);
        let file = options.open(directory).map_err(|error| {
            // Kernels that do not know the flag see a directory opened for writing; sandboxes
            // without the call say that it is not there.
            const EISDIR: i32 = 21;
            match error.raw_os_error() {
                Some(EISDIR) => super::unsupported("a file without a name"),
                _ => error,
            }
        })?;
        // Without /proc it could never get a name.
        match std::fs::metadata(own_descriptor(&file)) {
            Ok(_) => Ok(file),
            Err(_) => Err(super::unsupported("a file without a name")),
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (directory, mode);
        Err(super::unsupported("a file without a name"))
    }
}

/// Gives the file of [`open_unnamed`] a name, which must be free. It must lie in the same file
/// system.
pub fn give_name(file: &File, path: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
        let from = text(own_descriptor(file).as_bytes())?;
        let to = text(path.as_os_str().as_bytes())?;
        let (here, follow) = (numbers::AT_FDCWD, numbers::AT_SYMLINK_FOLLOW);
        // SAFETY: both are texts that end in a 0 and outlive the call, which only reads them.
        match unsafe { linkat(here, from.as_ptr(), here, to.as_ptr(), follow) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (file, path);
        Err(super::unsupported("a file without a name"))
    }
}

/// Where Linux shows a descriptor of this process as a file.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn own_descriptor(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Copies at most `len` bytes within the kernel, from a position of one file, whose own position
/// stays, to where the other one is; gives their number, 0 at the end of `from`. File systems that
/// can share blocks copy nothing. [`io::ErrorKind::Unsupported`] where there is no such call; any
/// other error also means that the bytes should go through memory.
pub fn copy_range(from: &File, offset: u64, to: &File, len: usize) -> io::Result<usize> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(number) = numbers::COPY_FILE_RANGE {
        let mut offset =
            i64::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let (from, to) = (c_long::from(from.as_raw_fd()), c_long::from(to.as_raw_fd()));
        let (own_position, flags) = (std::ptr::null_mut::<i64>(), 0 as c_long);
        // SAFETY: six arguments of register width, as the call has them: the kernel reads and
        // writes the one offset, which outlives the call, and no other memory of ours.
        let copied =
            unsafe { syscall(number, from, &raw mut offset, to, own_position, len, flags) };
        return usize::try_from(copied).map_err(|_| io::Error::last_os_error());
    }
    let _ = (from, offset, to, len);
    Err(super::unsupported("copying within the kernel"))
}
