//! Does the C compiler agree with a number that stands in a declaration of ours?
//!
//! No compiler checks a foreign declaration across the border. So a test writes a C program that
//! prints the constants, sizes and offsets as the system's headers have them, and runs it.

use super::super::skip::skip;
use std::fmt::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Asserts that each expression has, in C, the value that it has here. A macro that old headers lack
/// may be missing, up to three of them; sizes and offsets may not.
pub fn assert_c_agrees(headers: &[&str], ours: &[(&str, u64)]) {
    let expressions: Vec<&str> = ours.iter().map(|(name, _)| *name).collect();
    let Some(answer) = ask(headers, &expressions) else { return };
    let mut asked = 0;
    for line in answer.lines() {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let (_, our_value) = ours.iter().find(|(our_name, _)| *our_name == name).unwrap();
        assert_eq!(value, our_value.to_string(), "{name}: C says {value}");
        asked += 1;
    }
    // Headers may be older than the youngest advice, but not older than the rest.
    assert!(asked + 3 >= ours.len(), "C knew only {asked} of {}:\n{answer}", ours.len());
}

/// Prints each name that the headers define as `NAME VALUE`, and the others not at all.
fn ask(headers: &[&str], expressions: &[&str]) -> Option<String> {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let number = ASKED.fetch_add(1, Ordering::Relaxed);
    let name = format!("barest-cc-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let (source, program) = (directory.join("ask.c"), directory.join("ask"));
    let mut text = String::from("#define _GNU_SOURCE\n#include <stddef.h>\n#include <stdio.h>\n");
    for header in headers {
        writeln!(text, "#include <{header}>").unwrap();
    }
    text += "int main(void) {\n";
    for expression in expressions {
        // Of all expressions only macros can be missing; those of `sysconf` are none on some systems.
        let is_macro = !expression.contains('(');
        let (guard, end) = match is_macro && !expression.starts_with("_SC_") {
            true => (format!("#ifdef {expression}\n"), "#endif\n"),
            false => (String::new(), ""),
        };
        text += &format!(
            "{guard}printf(\"%s %llu\\n\", \"{expression}\", (unsigned long long)({expression}));\n{end}"
        );
    }
    text += "return 0;\n}\n";
    std::fs::write(&source, text).unwrap();
    let built = Command::new("cc").arg(&source).arg("-o").arg(&program).output();
    let Ok(built) = built else {
        skip("cc", "no C compiler to ask for the constants");
        return None;
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let answer = Command::new(&program).output().unwrap().stdout;
    std::fs::remove_dir_all(&directory).unwrap();
    Some(String::from_utf8(answer).unwrap())
}
