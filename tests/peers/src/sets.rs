//! Which models of many files are measured?
//!
//! Cut where `save_pretrained` cuts: a new file whenever the next tensor would pass a limit.

use crate::cases::Folder;
use crate::headers::{self, METADATA, Style, Tensor};
use crate::models::{LLAMA_3_8B, LLAMA_3_70B, as_written, deepseek_v3, smollm2};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A kind of model, as a directory.
pub struct Set {
    pub name: &'static str,
    shards: fn() -> Vec<Vec<Tensor>>,
    /// Digits of the number of files, in their names.
    digits: usize,
    /// Whether there is a `model.safetensors.index.json`.
    with_index: bool,
}

pub const SETS: [Set; 7] = [
    Set { name: "smollm2-1", shards: || vec![smollm2()], digits: 5, with_index: false },
    Set { name: "llama3-8b-4", shards: llama_8b, digits: 5, with_index: false },
    Set { name: "llama3-8b-4-index", shards: llama_8b, digits: 5, with_index: true },
    Set { name: "llama3-70b-30", shards: llama_70b, digits: 5, with_index: false },
    Set { name: "llama3-70b-30-index", shards: llama_70b, digits: 5, with_index: true },
    Set { name: "deepseek-v3-163", shards: deepseek, digits: 6, with_index: false },
    Set { name: "deepseek-v3-163-index", shards: deepseek, digits: 6, with_index: true },
];

fn llama_8b() -> Vec<Vec<Tensor>> {
    cut(LLAMA_3_8B.tensors(), 5_000_000_000)
}

fn llama_70b() -> Vec<Vec<Tensor>> {
    cut(LLAMA_3_70B.tensors(), 5_000_000_000)
}

/// Of the published model it is known how many files there are; this limit gives as many.
fn deepseek() -> Vec<Vec<Tensor>> {
    cut(deepseek_v3(), 4_260_000_000)
}

pub fn cut(tensors: Vec<Tensor>, limit: u64) -> Vec<Vec<Tensor>> {
    let mut shards = vec![Vec::new()];
    let mut room = limit;
    for tensor in tensors {
        let len = tensor.byte_len();
        if len > room {
            shards.push(Vec::new());
            room = limit;
        }
        room = room.saturating_sub(len);
        shards.last_mut().expect("at least one").push(tensor);
    }
    shards.into_iter().map(as_written).collect()
}

impl Set {
    pub fn files(&self, folder: &Folder) -> io::Result<ModelFiles> {
        let directory = folder.path().join(self.name);
        fs::create_dir_all(&directory)?;
        let shards = (self.shards)();
        let mut files = ModelFiles { directory, paths: vec![], names: vec![], header_bytes: 0 };
        let mut index = BTreeMap::new();
        let mut total_size = 0;
        for (number, tensors) in (1..).zip(&shards) {
            let (all, digits) = (shards.len(), self.digits);
            let name = format!("model-{number:05}-of-{all:0digits$}.safetensors");
            let header = headers::write(tensors, &METADATA, Style::Compact, false);
            let path = files.directory.join(&name);
            header.create(&path)?;
            total_size += header.data_len;
            files.header_bytes += header.text.len();
            files.paths.push(path);
            for tensor in tensors {
                files.names.push(tensor.name.clone());
                index.insert(&tensor.name, name.clone());
            }
        }
        if self.with_index {
            fs::write(files.index_path(), index_text(&index, total_size))?;
        }
        Ok(files)
    }
}

/// As `save_pretrained` writes it: names in alphabetical order, two blanks for each step inwards.
fn index_text(index: &BTreeMap<&String, String>, total_size: u64) -> String {
    let entries: Vec<String> =
        index.iter().map(|(name, shard)| format!("    \"{name}\": \"{shard}\"")).collect();
    let metadata = format!("  \"metadata\": {{\n    \"total_size\": {total_size}\n  }}");
    format!("{{\n{metadata},\n  \"weight_map\": {{\n{}\n  }}\n}}\n", entries.join(",\n"))
}

/// A directory that looks like a model.
pub struct ModelFiles {
    pub directory: PathBuf,
    /// The shards, in order.
    pub paths: Vec<PathBuf>,
    /// Names of all tensors, shard by shard.
    pub names: Vec<String>,
    /// Bytes of all headers together.
    pub header_bytes: usize,
}

impl ModelFiles {
    fn index_path(&self) -> PathBuf {
        self.directory.join("model.safetensors.index.json")
    }

    /// Bytes of the index, if there is one.
    pub fn index_bytes(&self) -> usize {
        fs::metadata(self.index_path()).map_or(0, |index| index.len() as usize)
    }
}

impl Drop for ModelFiles {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The shards in a directory, in the order of their names: what a program has to find out before it
/// calls a peer that takes files. Of a file, itself.
pub fn shards_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    if directory.is_file() {
        return Ok(vec![directory.to_owned()]);
    }
    for entry in fs::read_dir(directory)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    paths.sort_unstable();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(shards: &[Vec<Tensor>]) -> Vec<u64> {
        let one = |tensors: &Vec<Tensor>| {
            let header = headers::write(tensors, &METADATA, Style::Compact, false);
            8 + header.text.len() as u64 + header.data_len
        };
        shards.iter().map(one).collect()
    }

    #[test]
    fn llama_is_cut_as_published() {
        assert_eq!(sizes(&llama_8b()), [4976698672, 4999802720, 4915916176, 1168138808]);
        let shards = sizes(&llama_70b());
        assert_eq!((shards.len(), shards.last()), (30, Some(&2101346432)));
    }

    #[test]
    fn an_index_is_written_as_save_pretrained_does() {
        let (one, other) = ("b".to_owned(), "a".to_owned());
        let index = BTreeMap::from([(&one, "1".to_owned()), (&other, "2".to_owned())]);
        let expected = "{
  \"metadata\": {
    \"total_size\": 7
  },
  \"weight_map\": {
    \"a\": \"2\",
    \"b\": \"1\"
  }
}
";
        assert_eq!(index_text(&index, 7), expected);
    }

    #[test]
    fn deepseek_has_its_tensors_and_files() {
        let shards = deepseek();
        let tensors: usize = shards.iter().map(Vec::len).sum();
        assert_eq!((shards.len(), tensors), (163, 91_991));
    }
}
