//! Runs of the program in a folder of the test's own.

use std::path::Path;
use std::process::{Command, Stdio};

/// Standard output, standard error and exit status of a run in this folder.
pub fn run_in(folder: &Path, arguments: &[&str]) -> (String, String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_barest"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("no signal"))
}

/// The output of a run that ends well and says nothing else.
pub fn good_in(folder: &Path, arguments: &[&str]) -> String {
    let (out, err, status) = run_in(folder, arguments);
    assert_eq!((&*err, status), ("", 0), "{arguments:?}: {out}");
    out
}
