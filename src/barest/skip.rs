//! How does a test say that it cannot run here?
//!
//! Never by passing in silence. [`skip`] writes to the standard error that the test harness does
//! not capture, and appends a line to the file that `BAREST_SKIPPED` names, if it names one: the
//! continuous integration prints that list, and fails if a tool that was missing is there after
//! all.

use std::io::Write;

/// Reports that a test could not run for want of `tool` (a command, or what else was missing).
pub fn skip(tool: &str, reason: &str) {
    let line = format!("skipped\t{tool}\t{reason}\n");
    // `eprint!` would be captured; the handle itself is not.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os("BAREST_SKIPPED") {
        let mut list = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(list)
            .expect("the list of skipped tests can be written");
        list.write_all(line.as_bytes()).expect("the list of skipped tests can be written");
    }
}
