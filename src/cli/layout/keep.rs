//! May this file be overwritten?
//!
//! A new one is made, an empty one filled, one that begins with our mark replaced. All else stays:
//! the model too, since it does not begin with the mark (taken for a length, `<svg` is no length
//! that a valid file can have).

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;

/// Writes what begins with `mark` where nothing else is lost.
pub fn write(path: &Path, bytes: &[u8], mark: &[u8]) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(bytes).inspect_err(|_| {
            let _ = fs::remove_file(path);
        }),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => replace(path, bytes, mark),
        Err(error) => Err(error),
    }
}

/// Fails where [`write`] is sure to: something else is there, or there is no such folder.
pub fn may_write(path: &Path, mark: &[u8]) -> io::Result<()> {
    match open_ours(path, mark) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            fs::metadata(folder.unwrap_or(Path::new("."))).map(|_| ())
        }
        outcome => outcome.map(|_| ()),
    }
}

fn replace(path: &Path, bytes: &[u8], mark: &[u8]) -> io::Result<()> {
    let mut file = open_ours(path, mark)?;
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(bytes)
}

fn open_ours(path: &Path, mark: &[u8]) -> io::Result<File> {
    let refused = || io::Error::other("what is there is no picture of ours; it is not overwritten");
    // Asked before it is opened: opening a pipe waits for who writes to it.
    if !fs::metadata(path)?.is_file() {
        return Err(refused());
    }
    // Looked at and written through one handle: a file that takes its name meanwhile is safe.
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    match is_ours(&mut file, mark)? {
        true => Ok(file),
        false => Err(refused()),
    }
}

fn is_ours(file: &mut File, mark: &[u8]) -> io::Result<bool> {
    let mut first = Vec::new();
    file.take(mark.len() as u64).read_to_end(&mut first)?;
    Ok(first.is_empty() || first == mark)
}
