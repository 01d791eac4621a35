//! Where are the programs that open one model and do nothing else?
//!
//! `cargo run` builds one program, this one. So the others are built by the same cargo when they are asked
//! for; what they consist of is there already.

use serde_json::Value;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The paths of these programs of this package.
pub fn programs<const N: usize>(names: [&str; N]) -> io::Result<[PathBuf; N]> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--locked", "--message-format", "json"])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .args(names.iter().flat_map(|name| ["--bin", name]))
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("cargo did not build {}", names.join(", "))));
    }
    let messages: Vec<Value> = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .collect::<Result<_, _>>()?;
    let path_of = |name: &str| {
        let built = messages.iter().find(|message| message["target"]["name"] == *name);
        built.and_then(|message| message["executable"].as_str()).map(PathBuf::from)
    };
    let found: Option<Vec<PathBuf>> = names.into_iter().map(path_of).collect();
    let found = found.and_then(|paths| paths.try_into().ok());
    found.ok_or_else(|| io::Error::other("cargo does not say where it put what it built"))
}
