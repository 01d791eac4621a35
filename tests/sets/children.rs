//! What only a process of its own can show: limits, and a file system that maps nothing.
//!
//! This test binary starts itself again, with the path to open in an environment variable and one
//! of the children below as the only test.

use crate::files::{Folder, INDEX, index};
use crate::skip::skip;
use barest::{Backing, Error, ErrorKind, Index, Mapping, Model, ReadReason};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const PATH: &str = "BAREST_TEST_CHILD";

/// Runs a child with a path, behind these lines of a shell, and with this library loaded first.
fn child(name: &str, path: &Path, lines: &str, preloaded: Option<&Path>) {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{lines} exec \"$0\" \"$@\"")]);
    shell.arg(env::current_exe().unwrap());
    shell.args(["--exact", &format!("children::{name}"), "--nocapture", "--test-threads=1"]);
    shell.env(PATH, path);
    if let Some(library) = preloaded {
        shell.env("LD_PRELOAD", library);
    }
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    // A child that was not run proves nothing.
    assert!(text.contains(DONE), "{told}");
}

const DONE: &str = "the child has seen it all";

/// The path of a child; `None` in an ordinary run, where it has nothing to do.
fn path() -> Option<PathBuf> {
    env::var_os(PATH).map(PathBuf::from)
}

/// A set of so many shards.
fn set(count: usize) -> Folder {
    let folder = Folder::new();
    let names: Vec<String> = (0..count).map(|number| format!("{number}.safetensors")).collect();
    for name in &names {
        folder.shard(name, &[(name, &[1, 2, 3])]);
    }
    let entries: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &**name)).collect();
    folder.file(INDEX, index(&entries));
    folder
}

fn limit(error: &Error) -> (&str, u64, &str) {
    let ErrorKind::Limit { action, limit, what, .. } = error.kind() else { panic!("{error}") };
    (action, *limit, what)
}

#[test]
fn too_many_open_files_name_the_limit() {
    child("child_with_64_open_files", &set(200).0, "ulimit -n 64;", None);
}

#[test]
fn child_with_64_open_files() {
    let Some(path) = path() else { return };
    let paths: Vec<PathBuf> =
        (0..200).map(|number| path.join(format!("{number}.safetensors"))).collect();
    for error in [
        Index::open(&path).unwrap_err(),
        Model::read(&path).unwrap_err(),
        Index::open_files(&paths).unwrap_err(),
    ] {
        assert_eq!(limit(&error), ("open", 64, "open files"));
        // Alone: that the other shards could not be opened either helps nobody.
        assert_eq!(error.faults().len(), 1);
        assert!(error.path().is_some_and(|shard| shard.starts_with(&path)), "{error}");
        let told = ": this process may have 64 open files (ulimit -n)";
        assert!(error.to_string().ends_with(told), "{error}");
    }
    // All were given back.
    assert_eq!(Index::open_files(&paths[..40]).unwrap().len(), 40);
    println!("{DONE}");
}

#[test]
fn too_little_address_space_names_the_limit() {
    let folder = Folder::new();
    let path = folder.path("large.safetensors");
    const BYTES: u64 = 3 << 30;
    let header =
        format!("{{\"a\":{{\"dtype\":\"U8\",\"shape\":[{BYTES}],\"data_offsets\":[0,{BYTES}]}}}}");
    folder.file("large.safetensors", crate::files::safetensors(&header, b""));
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    if let Err(error) = file.set_len(8 + header.len() as u64 + BYTES) {
        return skip("a sparse file of 3 GiB", &error.to_string());
    }
    if !cfg!(target_os = "linux") {
        return skip("ulimit -v", "this system does not limit a process's addresses");
    }
    child("child_with_2_gib_of_addresses", &path, "ulimit -v 2097152;", None);
    // Nor does the program promise what would not be done.
    let script = "ulimit -v 2097152; exec \"$0\" ls \"$1\"";
    let program = env!("CARGO_BIN_EXE_barest");
    let output = Command::new("sh").args(["-c", script, program]).arg(&path).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && out.contains("cannot be mapped here ("), "{out}");
    assert!(!out.contains("open reads it"), "{out}");
}

#[test]
fn child_with_2_gib_of_addresses() {
    let Some(path) = path() else { return };
    // SAFETY: the test that started this one does not change the file.
    let mapped = unsafe { [Model::map(&path), Model::open(&path)] };
    for outcome in mapped {
        let error = outcome.unwrap_err();
        assert_eq!(limit(&error), ("map", 2 << 30, "bytes of address space"));
        assert_eq!(error.path(), Some(&*path));
        let told =
            "this process may have 2147483648 bytes of address space (ulimit -v, which counts KiB)";
        assert!(error.to_string().ends_with(told), "{error}");
    }
    // There is no memory to read it into either, which is an error and no abort.
    let error = Model::read(&path).unwrap_err();
    assert_eq!(limit(&error), ("reserve memory for the file", 2 << 30, "bytes of address space"));
    println!("{DONE}");
}

#[test]
fn too_many_mappings_name_the_limit() {
    // Every one costs the kernel some memory.
    const CHEAP: u64 = 200_000;
    match most_mappings() {
        None => skip("/proc/sys/vm/max_map_count", "this system does not say how many mappings"),
        Some(most) if most > CHEAP => {
            skip("vm.max_map_count", "too many mappings to make them all")
        }
        Some(_) => child("child_with_all_its_mappings", &set(2).0, "", None),
    }
}

fn most_mappings() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()
}

#[test]
fn child_with_all_its_mappings() {
    let Some(path) = path() else { return };
    let most = most_mappings().unwrap();
    let file = std::fs::File::open(path.join("0.safetensors")).unwrap();
    let mut mappings = Vec::with_capacity(most as usize);
    while let Ok(mapping) = Mapping::open(&file) {
        mappings.push(mapping);
    }
    // SAFETY: the test that started this one does not change the files.
    let outcomes = unsafe { [Model::map(&path), Model::open(&path)] };
    mappings.truncate(100);
    for outcome in outcomes {
        let error = outcome.unwrap_err();
        assert_eq!(limit(&error), ("map", most, "mappings"));
        assert_eq!(error.path(), Some(&*path.join("0.safetensors")));
    }
    println!("{DONE}");
}

/// A library whose `mmap` maps no file, as that of some network and FUSE mounts.
fn without_mmap(folder: &Folder) -> Option<PathBuf> {
    if !cfg!(target_os = "linux") {
        skip("LD_PRELOAD", "this system loads no library first");
        return None;
    }
    let source = folder.file(
        "no-mmap.c",
        "#define _GNU_SOURCE\n\
         #include <errno.h>\n\
         #include <stddef.h>\n\
         #include <sys/types.h>\n\
         #include <sys/mman.h>\n\
         #include <sys/syscall.h>\n\
         #include <unistd.h>\n\
         void *mmap64(void *at, size_t len, int protection, int flags, int file, off_t offset) {\n\
             if (file >= 0) { errno = ENODEV; return MAP_FAILED; }\n\
             return (void *)syscall(SYS_mmap, at, len, protection, flags, file, offset);\n\
         }\n\
         void *mmap(void *at, size_t len, int protection, int flags, int file, off_t offset) {\n\
             return mmap64(at, len, protection, flags, file, offset);\n\
         }\n",
    );
    let library = folder.path("no-mmap.so");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).output();
    match built {
        Err(_) => {
            skip("cc", "no C compiler for a library that maps nothing");
            None
        }
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(library)
        }
    }
}

#[test]
fn where_files_cannot_be_mapped_map_says_so_and_open_reads() {
    let folder = set(2);
    if let Some(library) = without_mmap(&folder) {
        child("child_that_cannot_map", &folder.0, "", Some(&library));
    }
}

#[test]
fn child_that_cannot_map() {
    let Some(path) = path() else { return };
    const ENODEV: i32 = 19;
    // SAFETY: the test that started this one does not change the files.
    let error = unsafe { Model::map(&path) }.unwrap_err();
    let ErrorKind::CannotBeMapped { source } = error.kind() else { panic!("{error}") };
    assert_eq!(source.raw_os_error(), Some(ENODEV));
    assert_eq!(error.path(), Some(&*path.join("0.safetensors")));
    assert!(error.to_string().contains("files of this file system cannot be mapped"), "{error}");
    assert!(std::error::Error::source(&error).is_some());

    // SAFETY: as above.
    let model = unsafe { Model::open(&path) }.unwrap();
    for shard in 0..2 {
        let Some(Backing::Read { why: ReadReason::Refused(why) }) = model.backing(shard) else {
            panic!("{:?}", model.backing(shard));
        };
        assert_eq!(*why, source.to_string());
        let told = model.backing(shard).unwrap().to_string();
        assert_eq!(told, format!("read into memory (not mapped: {source})"));
    }
    assert_eq!(model.backing(2), None);
    assert_eq!(model.tensor("1.safetensors").unwrap().bytes(), [1, 2, 3]);
    let read = Model::read(&path).unwrap();
    assert_eq!(read.backing(0), Some(&Backing::Read { why: ReadReason::Asked }));
    println!("{DONE}");
}

#[test]
fn the_program_says_that_it_cannot_map_and_shows_the_values_all_the_same() {
    let folder = set(2);
    let Some(library) = without_mmap(&folder) else { return };
    let run = |arguments: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_barest"));
        program.arg(arguments[0]).arg(&folder.0).args(&arguments[1..]);
        let output = program.env("LD_PRELOAD", &library).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let told = "cannot be mapped here (No such device (os error 19)): open reads it into memory";
    for verb in ["ls", "check"] {
        let out = run(&[verb]);
        assert!(out.contains(told), "{verb}: {out}");
    }
    let out = run(&["dump", "1.safetensors", "--json"]);
    assert!(out.contains("\"values\": [1, 2, 3]"), "{out}");
    let out = run(&["check", "--values"]);
    assert!(
        out.lines().any(|line| line.starts_with("1.safetensors") && line.contains("U8")),
        "{out}"
    );
}
