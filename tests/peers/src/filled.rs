//! Which file is read from the disk?
//!
//! One with data in all of it, of a size that is asked for: a shard out of the middle of a model, so
//! that it begins with a layer and not with an embedding that is a fifth of it. Its data is random: no
//! file system can press it together.

use crate::cases::Folder;
use crate::headers::{self, METADATA, Random, Style};
use crate::models::layers;
use crate::sets::cut;
use barest::Model;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Writes it; it is on the disk when this returns.
pub fn write(folder: &Folder, bytes: u64) -> io::Result<PathBuf> {
    let path = folder.path().join("filled.safetensors");
    let room = room(folder.path())?;
    if room < bytes * 2 {
        let message = format!("{room} bytes are free on the disk, and twice {bytes} are wanted");
        return Err(io::Error::other(message));
    }
    let tensors = cut(layers(bytes), bytes).swap_remove(0);
    let header = headers::write(&tensors, &METADATA, Style::Compact, false);
    header.create(&path)?;
    let mut file = OpenOptions::new().write(true).open(&path)?;
    file.seek(SeekFrom::Start(8 + header.text.len() as u64))?;
    let (mut random, mut file) = (Random(17), BufWriter::with_capacity(1 << 20, file));
    for _ in 0..header.data_len / 8 {
        file.write_all(&random.next().to_le_bytes())?;
    }
    file.into_inner()?.sync_all()?;
    Ok(path)
}

#[cfg(unix)]
fn room(folder: &Path) -> io::Result<u64> {
    let system = rustix::fs::statvfs(folder)?;
    Ok(system.f_bavail * system.f_frsize)
}

#[cfg(not(unix))]
fn room(_: &Path) -> io::Result<u64> {
    Err(io::Error::other("nobody tells here how much room the disk has"))
}

/// Drops the file's pages, and makes sure that they are gone.
pub fn drop_pages(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    // SAFETY: the file is this program's own.
    let model = unsafe { Model::map(path).expect("a model") };
    let left = model.pages().evict().map_err(io::Error::other)?.after;
    match (left.in_memory, left.untold) {
        (0, 0) => Ok(()),
        (some, untold) => Err(io::Error::other(format!(
            "not cold: {some} of {} pages stayed in memory, of {untold} nobody tells",
            left.mapped
        ))),
    }
}

/// Reads the file, so that its pages are in memory.
pub fn bring_pages(path: &Path) -> io::Result<()> {
    io::copy(&mut File::open(path)?, &mut io::sink()).map(drop)
}

/// How far the kernel reads ahead of who reads in order, on the device of the file: bytes.
pub fn read_ahead(path: &Path) -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata(path).ok()?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let setting = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
        let kib: u64 = std::fs::read_to_string(setting).ok()?.trim().parse().ok()?;
        Some(kib * 1024)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        None
    }
}
