//! Which files are measured?

use crate::headers::{self, Header, METADATA, Style, Tensor, long_value};
use crate::models::{experts, smollm2};
use memmap2::Mmap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A kind of file.
pub struct Case {
    pub name: &'static str,
    pub tensors: fn() -> Vec<Tensor>,
    write: fn(&[Tensor]) -> Header,
}

pub const CASES: [Case; 15] = [
    Case { name: "smollm2-272", tensors: smollm2, write: compact },
    Case { name: "experts-1000", tensors: || experts(1_000), write: compact },
    Case { name: "experts-10000", tensors: || experts(10_000), write: compact },
    Case { name: "experts-92000", tensors: || experts(92_000), write: compact },
    Case { name: "experts-200000", tensors: || experts(200_000), write: compact },
    Case { name: "shuffled-10000", tensors: || experts(10_000), write: shuffled },
    Case { name: "shuffled-92000", tensors: || experts(92_000), write: shuffled },
    Case { name: "spaced-10000", tensors: || experts(10_000), write: spaced },
    Case { name: "mlx-10000", tensors: || experts(10_000), write: alphabetical },
    Case { name: "backwards-10000", tensors: || experts(10_000), write: backwards },
    Case { name: "any-order-10000", tensors: || experts(10_000), write: in_any_order },
    Case { name: "bare-10000", tensors: || experts(10_000), write: bare },
    Case { name: "metadata-2MB", tensors: smollm2, write: with_prose },
    Case { name: "metadata-2MB-escaped", tensors: smollm2, write: with_json },
    Case { name: "metadata-only", tensors: Vec::new, write: compact },
];

fn compact(tensors: &[Tensor]) -> Header {
    headers::write(tensors, &METADATA, Style::Compact, false)
}

fn shuffled(tensors: &[Tensor]) -> Header {
    headers::write(tensors, &METADATA, Style::Compact, true)
}

fn spaced(tensors: &[Tensor]) -> Header {
    headers::write(tensors, &METADATA, Style::Spaced, false)
}

fn alphabetical(tensors: &[Tensor]) -> Header {
    headers::write(tensors, &[("format", "mlx")], Style::Alphabetical, false)
}

fn backwards(tensors: &[Tensor]) -> Header {
    headers::write(tensors, &METADATA, Style::Backwards, false)
}

fn in_any_order(tensors: &[Tensor]) -> Header {
    headers::write(tensors, &METADATA, Style::AnyOrder, false)
}

fn bare(tensors: &[Tensor]) -> Header {
    headers::write(tensors, &[], Style::Compact, false)
}

fn with_prose(tensors: &[Tensor]) -> Header {
    with_long_metadata(tensors, false)
}

fn with_json(tensors: &[Tensor]) -> Header {
    with_long_metadata(tensors, true)
}

/// 64 pairs, 2 MB together.
fn with_long_metadata(tensors: &[Tensor], is_json: bool) -> Header {
    let value = long_value(2_000_000 / 64, is_json);
    let keys: Vec<String> = (0..64).map(|number| format!("note_{number:02}")).collect();
    let pairs: Vec<(&str, &str)> = keys.iter().map(|key| (&key[..], &value[..])).collect();
    headers::write(tensors, &pairs, Style::Compact, false)
}

impl Case {
    pub fn file(&self, folder: &Folder) -> io::Result<ModelFile> {
        let tensors = (self.tensors)();
        let header = (self.write)(&tensors);
        let path = folder.0.join(format!("{}.safetensors", self.name));
        header.create(&path)?;
        // SAFETY: the folder is this process's own, and nobody else knows of the file.
        let map = unsafe { Mmap::map(&File::open(&path)?)? };
        Ok(ModelFile { path, map, tensors: tensors.len(), header_len: header.text.len() })
    }
}

/// A file that looks like a model, and its pages.
pub struct ModelFile {
    pub path: PathBuf,
    pub map: Mmap,
    pub tensors: usize,
    pub header_len: usize,
}

impl Drop for ModelFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A folder that goes away with the process.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("barest-peers-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
