//! Which compiler built what is measured?

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").expect("cargo names the compiler");
    let output = Command::new(rustc).arg("--version").output().expect("a compiler that runs");
    let version = String::from_utf8_lossy(&output.stdout);
    println!("cargo::rustc-env=COMPILER={}", version.split(" (").next().unwrap_or_default().trim());
    println!("cargo::rerun-if-changed=build.rs");
}
