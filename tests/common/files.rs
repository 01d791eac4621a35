//! Models of a few bytes, and folders for them that go away with the test.

use barest::escape::Json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of one test alone.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("barest-{}-{}-{number}", env!("CARGO_CRATE_NAME"), process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        // The kernel names a file by its path without symlinks.
        Folder(path.canonicalize().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file in it, or in a folder below.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A file with these tensors of U8.
    pub fn shard(&self, name: &str, tensors: &[(&str, &[u8])]) -> PathBuf {
        self.file(name, shard(tensors))
    }

    /// `model.safetensors.index.json` with these entries: tensor, shard.
    pub fn index(&self, entries: &[(&str, &str)]) -> PathBuf {
        self.file(INDEX, index(entries))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub const INDEX: &str = "model.safetensors.index.json";

/// A header behind its length, and data.
pub fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// A model with these tensors of U8, one behind the other.
pub fn shard(tensors: &[(&str, &[u8])]) -> Vec<u8> {
    shard_with("", tensors)
}

/// The same, with this text in front of the entries.
pub fn shard_with(first: &str, tensors: &[(&str, &[u8])]) -> Vec<u8> {
    let mut begin = 0;
    let entry = |(name, bytes): &(&str, &[u8])| {
        let (len, end) = (bytes.len(), begin + bytes.len());
        let name = Json(name);
        let entry = format!(
            "{name}:{{\"dtype\":\"U8\",\"shape\":[{len}],\"data_offsets\":[{begin},{end}]}}"
        );
        begin = end;
        entry
    };
    let entries: Vec<String> = tensors.iter().map(entry).collect();
    let data: Vec<u8> = tensors.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    safetensors(&format!("{{{first}{}}}", entries.join(",")), &data)
}

/// An index with these entries: tensor, shard.
pub fn index(entries: &[(&str, &str)]) -> String {
    let entry = |(tensor, shard): &(&str, &str)| format!("{}:{}", Json(tensor), Json(shard));
    let entries: Vec<String> = entries.iter().map(entry).collect();
    format!("{{\"weight_map\":{{{}}}}}", entries.join(","))
}

/// Where a text stands in a file, in bytes from its start.
pub fn offset_of(path: &Path, text: &str) -> u64 {
    let file = fs::read(path).unwrap();
    let place = file.windows(text.len()).position(|window| window == text.as_bytes());
    place.unwrap_or_else(|| panic!("{text} does not stand in {}", path.display())) as u64
}
