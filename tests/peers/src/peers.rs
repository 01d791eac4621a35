//! How do the others do it?

use candle_core::safetensors::MmapedSafetensors;
use memmap2::Mmap;
use safetensors::SafeTensors;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Header, proof and names by the reference.
pub fn by_safetensors(bytes: &[u8]) -> SafeTensors<'_> {
    SafeTensors::deserialize(bytes).expect("a valid header")
}

/// A file's pages by memmap2.
pub fn map(path: &Path) -> Mmap {
    let file = File::open(path).expect("the file");
    // SAFETY: the files are this program's own, or those of whoever runs `work` and leaves them
    // alone meanwhile.
    unsafe { Mmap::map(&file).expect("a mapping") }
}

/// What of opening a model is the system's: its header in memory, unread, and its pages.
pub fn header_and_map(path: &Path) -> (Vec<u8>, Mmap) {
    let mut file = File::open(path).expect("the file");
    let mut prefix = [0; 8];
    file.read_exact(&mut prefix).expect("eight bytes");
    let mut header = vec![0; u64::from_le_bytes(prefix) as usize];
    file.read_exact(&mut header).expect("a header");
    // SAFETY: as above.
    (header, unsafe { Mmap::map(&file).expect("a mapping") })
}

pub fn map_all(paths: &[PathBuf]) -> Vec<Mmap> {
    paths.iter().map(|path| map(path)).collect()
}

/// What a program builds that has the reference and several files.
pub struct Routed<'a> {
    files: Vec<SafeTensors<'a>>,
    /// Which file has the tensor of that name.
    routing: HashMap<String, usize>,
}

pub fn route(maps: &[Mmap]) -> Routed<'_> {
    let files: Vec<SafeTensors<'_>> = maps.iter().map(|map| by_safetensors(map)).collect();
    let mut routing = HashMap::new();
    for (number, file) in files.iter().enumerate() {
        routing.extend(file.names().into_iter().map(|name| (name.to_owned(), number)));
    }
    Routed { files, routing }
}

impl<'a> Routed<'a> {
    pub fn tensor_count(&self) -> usize {
        self.routing.len()
    }

    pub fn tensor(&self, name: &str) -> Option<safetensors::tensor::TensorView<'a>> {
        self.files[*self.routing.get(name)?].tensor(name).ok()
    }
}

/// The same by candle: it maps with memmap2, parses with the reference and routes with a
/// `HashMap<String, usize>` of its own.
pub fn by_candle(paths: &[PathBuf]) -> MmapedSafetensors {
    // SAFETY: as above.
    unsafe { MmapedSafetensors::multi(paths).expect("a model") }
}
