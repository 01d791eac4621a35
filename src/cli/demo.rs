//! Is there something to try this on?

use super::arguments::{Arguments, usage};
use super::output::Output;
use super::{End, sample};
use barest::escape::Shown;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

pub const HELP: &str = "\
usage: barest demo DIR

Writes the sample model into DIR, which is made if need be: a Llama of four layers
with BF16 weights, 2 MB, the same bytes on every machine; the same in three shards
with an index; and three siblings that are broken in ways that are met in practice. A
file that is there already is left alone if it is the same, and is an error if it is
not.
";

pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let positional = arguments.positional()?;
    let [directory] = &positional[..] else {
        let found = positional.len();
        return Err(usage("demo", format!("expected one directory, found {found}")));
    };
    if directory.is_empty() {
        return Err(usage("demo", "the directory has no name".to_owned()));
    }
    let directory = Path::new(directory);
    for folder in [directory, &directory.join(sample::SHARDED)] {
        fs::create_dir_all(folder).map_err(|error| bad(folder, "make", error))?;
    }
    for file in sample::files() {
        let path = directory.join(file.name);
        write_new(&path, &file.bytes).map_err(|error| bad(&path, "write", error))?;
        writeln!(
            output,
            "{}  {} bytes, {}",
            Shown(&path.to_string_lossy()),
            file.bytes.len(),
            file.about
        )?;
    }
    let model = for_a_shell(&directory.join(sample::MODEL_NAME).to_string_lossy());
    let directory = for_a_shell(&directory.to_string_lossy());
    writeln!(
        output,
        "\nNow try:\n  barest ls {model}\n  barest check {directory}/*.safetensors\n  \
         barest dump {model} {} 8\n  barest ls --depth 3 {directory}/{}",
        sample::FAMOUS_TENSOR,
        sample::SHARDED
    )?;
    Ok(())
}

/// A path as it can be copied into a command: in quotes, if it holds more than plain characters.
fn for_a_shell(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    match path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", Shown(&path.replace('\'', "'\\''"))),
    }
}

fn bad(path: &Path, action: &str, error: io::Error) -> End {
    End::Bad(format!("cannot {action} {}: {error}", Shown(&path.to_string_lossy())))
}

/// Writes a file that is not there, or finds that it is there as it should be. What cannot be
/// written whole is taken away again.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let is_same = fs::metadata(path)?.len() == bytes.len() as u64
                && fs::metadata(path)?.is_file()
                && fs::read(path)? == bytes;
            return match is_same {
                true => Ok(()),
                false => Err(io::Error::other("another file has this name; it is not overwritten")),
            };
        }
        Err(error) => return Err(error),
    };
    file.write_all(bytes).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}
