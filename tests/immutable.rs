//! Which files does the kernel vouch for, and what is said of the others?
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

#[path = "../src/barest/skip.rs"]
mod skip;

use barest::{Backing, ErrorKind, Model};
use skip::skip;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

unsafe extern "C" {
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    fn fcntl(descriptor: c_int, command: c_int, ...) -> c_int;
    fn ioctl(descriptor: c_int, request: c_ulong, ...) -> c_int;
}

const MFD_ALLOW_SEALING: c_uint = 2;
const F_ADD_SEALS: c_int = 1033;
const SHRINK: c_int = 2;
const GROW: c_int = 4;
const WRITE: c_int = 8;
const FUTURE_WRITE: c_int = 16;

/// A model with a tensor `w` of four bytes.
fn model() -> Vec<u8> {
    let header = r#"{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), b"abcd"].concat()
}

fn memfd(flags: c_uint) -> File {
    const NAME: &CStr = c"barest";
    // SAFETY: takes a C string and gives a descriptor, or -1.
    let descriptor = unsafe { memfd_create(NAME.as_ptr(), flags) };
    assert!(descriptor >= 0, "{}", io::Error::last_os_error());
    // SAFETY: a descriptor that nobody else has.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(&model()).unwrap();
    file
}

fn seal(file: &File, seals: c_int) {
    // SAFETY: takes a descriptor and a number.
    let status = unsafe { fcntl(file.as_raw_fd(), F_ADD_SEALS, seals) };
    assert_eq!(status, 0, "{}", io::Error::last_os_error());
}

fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

fn refusal(path: impl Into<PathBuf>) -> String {
    let path = path.into();
    let error = Model::map_immutable(&path).map(|_| "mapped").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotImmutable { .. }), "{error}");
    assert_eq!(error.path(), Some(&*path));
    let text = error.to_string();
    assert!(text.contains("root can undo it"), "{text}");
    text
}

#[test]
fn a_sealed_memfd_is_mapped_without_a_promise_and_nobody_can_break_it() {
    let file = memfd(MFD_ALLOW_SEALING);
    seal(&file, WRITE | SHRINK);
    let model = Model::map_immutable(path_of(&file)).unwrap();
    assert_eq!(model.backing(0), Some(&Backing::Mapped));
    for (what, tried) in [
        ("write", file.write_at(b"x", 61).map(drop)),
        ("truncate", file.set_len(0)),
        (
            "write by another descriptor",
            File::options()
                .write(true)
                .open(path_of(&file))
                .and_then(|file| file.write_at(b"x", 61).map(drop)),
        ),
    ] {
        assert_eq!(tried.unwrap_err().kind(), io::ErrorKind::PermissionDenied, "{what}");
    }
    // A file that grows takes nothing away.
    file.set_len(1000).unwrap();
    assert_eq!(model.tensor("w").unwrap().bytes(), b"abcd");
}

/// Names that lead to memory: a folder of links, with an index or without.
#[test]
fn a_folder_of_sealed_files_is_mapped_if_each_of_them_is_sealed() {
    let folder = std::env::temp_dir().join(format!("barest-sealed-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let files = ["v", "w"].map(|name| {
        let file = memfd(MFD_ALLOW_SEALING);
        // A tensor of that name at the same place.
        file.write_at(name.as_bytes(), 10).unwrap();
        let link = folder.join(format!("{name}.safetensors"));
        std::os::unix::fs::symlink(path_of(&file), link).unwrap();
        file
    });
    seal(&files[0], WRITE | SHRINK);
    let second = folder.join("w.safetensors");
    let error = Model::map_immutable(&folder).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotImmutable { .. }), "{error}");
    assert_eq!(error.path(), Some(&*second));
    seal(&files[1], WRITE | SHRINK);
    let index = r#"{"weight_map":{"v":"v.safetensors","w":"w.safetensors"}}"#;
    for has_index in [false, true] {
        if has_index {
            // It may change: what it says was read once.
            fs::write(folder.join("model.safetensors.index.json"), index).unwrap();
        }
        let model = Model::map_immutable(&folder).unwrap();
        assert_eq!(model.summary().index.is_some(), has_index);
        for (number, name) in ["v", "w"].iter().enumerate() {
            assert_eq!(model.backing(number), Some(&Backing::Mapped));
            assert_eq!(model.tensor(name).unwrap().bytes(), b"abcd");
        }
        model.still_whole().unwrap();
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_seal_that_is_missing_is_named() {
    for (seals, expected) in [
        (0, "the seals F_SEAL_WRITE and F_SEAL_SHRINK "),
        (GROW, "the seals F_SEAL_WRITE and F_SEAL_SHRINK "),
        (SHRINK, "the seal F_SEAL_WRITE "),
        (WRITE, "the seal F_SEAL_SHRINK "),
        (SHRINK | FUTURE_WRITE, "the seal F_SEAL_WRITE; F_SEAL_FUTURE_WRITE leaves "),
    ] {
        let file = memfd(MFD_ALLOW_SEALING);
        seal(&file, seals);
        let text = refusal(path_of(&file));
        assert!(text.contains(expected), "{seals}: {text}");
    }
    let text = refusal(path_of(&memfd(0)));
    assert!(text.contains("takes no more seals"), "{text}");
}

#[test]
fn of_another_file_it_is_said_why() {
    let path = std::env::temp_dir().join(format!("barest-immutable-{}", std::process::id()));
    fs::write(&path, model()).unwrap();
    let text = refusal(&path);
    // Where temporary files lie in memory, the seals are what is missing.
    assert!(text.contains("fs-verity") || text.contains("takes no more seals"), "{text}");
    let refused = Model::map_immutable(path.with_extension("missing")).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Io { action: "open", .. }), "{refused}");
    fs::write(&path, b"not a model").unwrap();
    assert!(Model::map_immutable(&path).is_err());
    fs::remove_file(path).unwrap();
}

/// `struct fsverity_enable_arg`.
#[repr(C)]
struct Enable {
    version: u32,
    hash_algorithm: u32,
    block_size: u32,
    salt_and_signature: [u32; 29],
}

#[test]
fn a_file_with_fs_verity_is_mapped_without_a_promise() {
    const FS_IOC_ENABLE_VERITY: c_ulong = 0x4080_6685;
    let path = std::env::temp_dir().join(format!("barest-verity-{}", std::process::id()));
    fs::write(&path, model()).unwrap();
    let file = File::open(&path).unwrap();
    let enable =
        Enable { version: 1, hash_algorithm: 1, block_size: 4096, salt_and_signature: [0; 29] };
    // SAFETY: reads one `struct fsverity_enable_arg` of 128 bytes, without salt and signature.
    let status = unsafe { ioctl(file.as_raw_fd(), FS_IOC_ENABLE_VERITY, &enable) };
    if status != 0 {
        fs::remove_file(&path).unwrap();
        return skip("fs-verity", "no kernel or no file system that has it");
    }
    let model = Model::map_immutable(&path).unwrap();
    assert!(File::options().write(true).open(&path).is_err());
    assert_eq!(model.tensor("w").unwrap().bytes(), b"abcd");
    fs::remove_file(path).unwrap();
}
