//! Does the folder work in somebody else's crate?
//!
//! A workspace of engines is written into a temporary directory and handed to cargo, offline, with
//! an empty home and with warnings denied:
//!
//! ```text
//!   copied-2021, copied-2024   src/barest/ copied, `mod barest;`     built, run, tested
//!   path-2021, path-2024       #[path = "…/src/barest/mod.rs"]       built, run
//!   library                    the same in a library, kept private   its doctests: none
//!   header-2021, header-2024   the modules of HEADER alone           built, tested
//! ```
//!
//! One workspace, so that cargo is called a few times and compiles on all processors.

#[path = "../src/barest/skip.rs"]
mod skip;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const EDITIONS: [&str; 2] = ["2021", "2024"];

/// What a reader of headers needs that maps nothing, in the order of `mod.rs`.
const HEADER: [&str; 8] =
    ["escape", "dtype", "error", "options", "json", "looks_like", "names", "header"];

/// An engine: opens the model that it is given, and prints a number.
const ENGINE: &str = r#"
fn main() -> Result<(), barest::Error> {
    let path = std::env::args_os().nth(1).expect("a path");
    // SAFETY: the test that wrote this file leaves it alone.
    let model = unsafe { barest::Model::map(path)? };
    let weights = model.tensor("wte")?.bf16()?;
    println!("{} tensor, {:?}", model.len(), weights.row(1)?.get(0));
    Ok(())
}
"#;

/// A library that reads headers.
const READER: &str = r#"
mod barest;

pub fn tensors(file: &[u8]) -> Result<Vec<String>, String> {
    let header = barest::Header::parse(file, file.len() as u64).map_err(|error| error.to_string())?;
    Ok(header.tensors().map(|tensor| format!("{} {}", tensor.name(), tensor.dtype())).collect())
}

#[test]
fn a_header_is_read() {
    let header = br#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.iter().chain(b"."));
    assert_eq!(tensors(&file).unwrap(), ["a U8"]);
    assert!(tensors(&file[..20]).unwrap_err().contains("header cut short"));
}
"#;

#[test]
fn the_folder_works_in_another_crate() {
    let Some(engines) = Engines::new("whole") else { return };
    let folder = repository().join("src/barest");
    for edition in EDITIONS {
        let copied = engines.package(&format!("copied-{edition}"), edition);
        write(&copied.join("src/main.rs"), &format!("mod barest;\n{ENGINE}"));
        copy(&folder, &copied.join("src/barest"));
        let by_path = engines.package(&format!("path-{edition}"), edition);
        write(&by_path.join("src/main.rs"), &format!("{}{ENGINE}", by_path_in(&folder)));
    }
    let library = engines.package("library", "2024");
    write(&library.join("src/lib.rs"), &by_path_in(&folder));

    // 1. All of them build, and the engines find the number.
    engines.cargo(&["build", "--workspace"]);
    let model = engines.0.join("engine.safetensors");
    fs::write(&model, model_file()).unwrap();
    for how in ["copied", "path"] {
        for edition in EDITIONS {
            let package = format!("{how}-{edition}");
            let run = ["run", "--quiet", "--package", &package, "--", model.to_str().unwrap()];
            assert_eq!(engines.cargo(&run), "1 tensor, Some(3.140625)\n", "{package}");
        }
    }
    // 2. The folder's own tests came along: the same in both editions.
    let tests = EDITIONS.map(|edition| engines.tests(&format!("copied-{edition}")));
    assert_eq!(tests[0], tests[1]);
    assert_eq!(modules(&tests[0]), modules_with_tests(&folder));
    // 3. Its examples did not: rustdoc would run those of private modules too, and in a crate of
    //    another name they could not even be compiled.
    let doctests = engines.cargo(&["test", "--doc", "--package", "library"]);
    assert!(doctests.contains("running 0 tests"), "{doctests}");
}

#[test]
fn the_reader_of_headers_works_alone() {
    let Some(engines) = Engines::new("header") else { return };
    let folder = repository().join("src/barest");
    for edition in EDITIONS {
        let package = engines.package(&format!("header-{edition}"), edition);
        write(&package.join("src/lib.rs"), READER);
        let copy_of = package.join("src/barest");
        for module in HEADER {
            let (file, directory) = (format!("{module}.rs"), folder.join(module));
            match directory.is_dir() {
                true => copy(&directory, &copy_of.join(module)),
                false => copy(&folder.join(&file), &copy_of.join(&file)),
            }
        }
        let declared: String = HEADER.iter().map(|module| format!("mod {module};\n")).collect();
        let public = "pub use header::Header;\n";
        write(
            &copy_of.join("mod.rs"),
            &format!("#![allow(dead_code, unused_imports)]\n{declared}{public}"),
        );
    }
    engines.cargo(&["build", "--workspace"]);
    let tests = EDITIONS.map(|edition| engines.tests(&format!("header-{edition}")));
    assert_eq!(tests[0], tests[1]);
    for module in ["json", "names", "header"] {
        assert!(modules(&tests[0]).contains(&module.to_owned()), "{module}: {:?}", tests[0]);
    }
}
