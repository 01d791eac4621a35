//! Runs of the program.

// It is shared, and not all of it is needed everywhere.
#![allow(dead_code)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program, to be given arguments.
pub fn barest() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_barest"));
    command.stdin(Stdio::null());
    command
}

/// Standard output, standard error and exit status of a run.
pub fn run(arguments: &[&str]) -> (String, String, i32) {
    told(barest().args(arguments).output().unwrap())
}

/// The same in a folder.
pub fn run_in(folder: &Path, arguments: &[&str]) -> (String, String, i32) {
    told(barest().args(arguments).current_dir(folder).output().unwrap())
}

/// What has ended, as text.
pub fn told(output: Output) -> (String, String, i32) {
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("no signal"))
}

/// The output of a run that ends well and says nothing else.
pub fn good(arguments: &[&str]) -> String {
    good_in(Path::new("."), arguments)
}

/// The same in a folder.
pub fn good_in(folder: &Path, arguments: &[&str]) -> String {
    let (out, err, status) = run_in(folder, arguments);
    assert_eq!((&*err, status), ("", 0), "{arguments:?}: {out}");
    out
}
