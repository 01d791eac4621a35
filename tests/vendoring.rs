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
//!   no-gpu                     copied without gpu/ and sys/objc/     built, run, tested
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
const HEADER: [&str; 6] = ["escape", "dtype", "error", "json", "looks_like", "header"];

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
const READER: &str = r##"
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
"##;

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
    for module in ["json", "error", "header"] {
        assert!(modules(&tests[0]).contains(&module.to_owned()), "{module}: {:?}", tests[0]);
    }
}

#[test]
fn the_gpu_can_be_left_out() {
    let Some(engines) = Engines::new("no-gpu") else { return };
    let folder = repository().join("src/barest");
    let model = engines.0.join("engine.safetensors");
    fs::write(&model, model_file()).unwrap();
    let package = engines.package("no-gpu", "2021");
    write(&package.join("src/main.rs"), &format!("mod barest;\n{ENGINE}"));
    let copy_of = package.join("src/barest");
    copy(&folder, &copy_of);
    // What one does by hand: two folders, and the line that names each.
    for (directory, list, line) in
        [("gpu", "mod.rs", "pub mod gpu;"), ("sys/objc", "sys/mod.rs", "pub mod objc;")]
    {
        fs::remove_dir_all(copy_of.join(directory)).unwrap();
        let text = fs::read_to_string(copy_of.join(list)).unwrap();
        let kept: Vec<&str> = text.lines().filter(|kept| !kept.starts_with(line)).collect();
        assert_eq!(kept.len() + 1, text.lines().count(), "{line} in {list}");
        write(&copy_of.join(list), &kept.join("\n"));
    }
    // It links what std links: no attribute asks for more, on any system.
    assert_eq!(files_with(&folder, "#[link("), ["sys/objc/runtime.rs"]);
    assert!(files_with(&copy_of, "#[link(").is_empty());
    let run = ["run", "--quiet", "--package", "no-gpu", "--", model.to_str().unwrap()];
    assert_eq!(engines.cargo(&run), "1 tensor, Some(3.140625)\n");
    let tests = modules(&engines.tests("no-gpu"));
    assert!(
        tests.contains(&"mapping".to_owned()) && !tests.contains(&"gpu".to_owned()),
        "{tests:?}"
    );
}

/// The files below a folder, by their paths in it, whose text holds this.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in names_in(folder) {
        let path = folder.join(&name);
        match path.is_dir() {
            true => {
                found.extend(files_with(&path, text).iter().map(|inner| format!("{name}/{inner}")))
            }
            false if fs::read_to_string(&path).unwrap().contains(text) => found.push(name),
            false => {}
        }
    }
    found
}

/// A workspace of packages in a directory that goes away with the test.
struct Engines(PathBuf);

impl Engines {
    /// `None`, and said so, where there is no cargo.
    fn new(test: &str) -> Option<Engines> {
        if Command::new(cargo()).arg("--version").stdout(Stdio::null()).status().is_err() {
            skip::skip("cargo", "the folder cannot be built in another crate");
            return None;
        }
        let name = format!("barest-vendoring-{test}-{}", std::process::id());
        let top = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&top);
        fs::create_dir_all(top.join("home")).unwrap();
        // Without debugging information it is built in half of the time.
        let manifest = "[workspace]\nresolver = \"2\"\nmembers = [\"packages/*\"]\n\n[profile.dev]\ndebug = false\n";
        write(&top.join("Cargo.toml"), manifest);
        Some(Engines(top))
    }

    /// The directory of a new package without dependencies.
    fn package(&self, name: &str, edition: &str) -> PathBuf {
        let package = self.0.join("packages").join(name);
        let manifest =
            format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"{edition}\"\n");
        write(&package.join("Cargo.toml"), &manifest);
        package
    }

    /// What cargo writes to standard output. It must succeed.
    fn cargo(&self, arguments: &[&str]) -> String {
        let output = Command::new(cargo())
            .arg(arguments[0])
            .arg("--offline")
            .args(&arguments[1..])
            .current_dir(&self.0)
            // Nothing that was downloaded before may help, and nothing of ours may get in the way.
            .env("CARGO_HOME", self.0.join("home"))
            .env("CARGO_TARGET_DIR", self.0.join("target"))
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_TERM_COLOR", "never")
            .env("RUSTFLAGS", "-Dwarnings")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("CARGO_BUILD_TARGET")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cargo {}:\n{out}\n{err}", arguments.join(" "));
        out
    }

    /// Runs a package's tests and gives their names, in order.
    fn tests(&self, package: &str) -> Vec<String> {
        let out = self.cargo(&["test", "--package", package]);
        let names =
            out.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... ok"));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The cargo that runs this test, or whichever there is.
fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn by_path_in(folder: &Path) -> String {
    format!("#[path = {:?}]\nmod barest;\n", folder.join("mod.rs"))
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// `cp -r`.
fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
        return;
    }
    for name in names_in(from) {
        copy(&from.join(&name), &to.join(&name));
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A BF16 tensor of two rows: 1, -2 and 3.140625, 0.
fn model_file() -> Vec<u8> {
    let header = br#"{"wte":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.iter().chain(&[0x80, 0x3f, 0, 0xc0, 0x49, 0x40, 0, 0]));
    file
}

/// The top modules of the folder that tests belong to, each once.
fn modules(tests: &[String]) -> Vec<String> {
    let of_folder =
        tests.iter().filter_map(|test| test.strip_prefix("barest::")?.split("::").next());
    let mut modules: Vec<String> = of_folder.map(str::to_owned).collect();
    modules.dedup();
    modules
}

/// The top modules of the folder that have tests, by their text.
fn modules_with_tests(folder: &Path) -> Vec<String> {
    fn has_tests(path: &Path) -> bool {
        match path.is_dir() {
            true => names_in(path).iter().any(|name| has_tests(&path.join(name))),
            false => fs::read_to_string(path).unwrap().contains("#[test]"),
        }
    }
    let with_tests = names_in(folder).into_iter().filter(|name| has_tests(&folder.join(name)));
    let mut modules: Vec<String> =
        with_tests.map(|name| name.trim_end_matches(".rs").to_owned()).collect();
    modules.sort();
    modules
}
