//! Models on a disk, a witness, and children of another user or with another limit.

use crate::skip::skip;
use barest::{Error, Mapping, Model, Pages};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

pub const MIB: usize = 1 << 20;

/// A folder of one test alone, on the file system where this was built: the folder for temporary
/// files often lies in memory, which has nothing to drop and nothing to read.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        Folder::within(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    pub fn within(parent: &Path) -> Folder {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("barest-pages-{}-{number}", process::id()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Folder(path.canonicalize().unwrap())
    }

    /// One whose files the kernel can drop from memory; `None`, said aloud, if there is none.
    pub fn on_a_disk() -> Option<Folder> {
        if !on_linux() {
            return None;
        }
        let folder = Folder::new();
        let asked = Command::new("stat").args(["-f", "-c", "%T"]).arg(&folder.0).output();
        let kind = asked.map_or(String::new(), |answer| String::from_utf8(answer.stdout).unwrap());
        if ["tmpfs", "ramfs"].contains(&kind.trim()) {
            skip("a disk", "the target folder lies in memory, which is never dropped");
            return None;
        }
        Some(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A model of these tensors of bytes, on the disk: no two blocks of it are the same.
    pub fn model(&self, name: &str, tensors: &[(&str, usize)]) -> PathBuf {
        let path = self.path(name);
        let mut file = File::create(&path).unwrap();
        file.write_all(&head(tensors)).unwrap();
        let mut left: usize = tensors.iter().map(|(_, len)| len).sum();
        let mut block: Vec<u8> = (0..BLOCK).map(|at| (at ^ at >> 8) as u8).collect();
        for number in 0_u64.. {
            block[..8].copy_from_slice(&number.to_le_bytes());
            file.write_all(&block[..left.min(BLOCK)]).unwrap();
            left = left.saturating_sub(BLOCK);
            if left == 0 {
                break;
            }
        }
        // What is still to be written cannot be dropped.
        file.sync_all().unwrap();
        path
    }

    /// The same, all holes: nothing to read from the disk, and no room taken on it.
    pub fn sparse(&self, name: &str, tensors: &[(&str, usize)]) -> PathBuf {
        let path = self.path(name);
        let head = head(tensors);
        fs::write(&path, &head).unwrap();
        let len = head.len() + tensors.iter().map(|(_, len)| len).sum::<usize>();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(len as u64).unwrap();
        file.sync_all().unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Elsewhere pages come and go in other ways, and nobody keeps an account of them.
pub fn on_linux() -> bool {
    let is_linux = cfg!(target_os = "linux");
    if !is_linux {
        skip("Linux", "no page of a model was counted, fetched or dropped on this system");
    }
    is_linux
}

const BLOCK: usize = 4096;

/// Everything before the data. Its length is odd, so that no tensor lies on a page boundary unless its
/// neighbours see to it.
fn head(tensors: &[(&str, usize)]) -> Vec<u8> {
    let mut header = String::from("{");
    let mut start = 0;
    for (name, len) in tensors {
        let comma = if start > 0 || header.len() > 1 { "," } else { "" };
        let end = start + len;
        header += &format!(
            r#"{comma}"{name}":{{"dtype":"U8","shape":[{len}],"data_offsets":[{start},{end}]}}"#
        );
        start = end;
    }
    header.push('}');
    if header.len() % 2 == 0 {
        header.push(' ');
    }
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat()
}

/// How long the first tensor must be for the second to begin on a boundary.
pub fn up_to_a_boundary(tensors: &[(&str, usize)], boundary: usize) -> usize {
    let mut len = boundary;
    for _ in 0..4 {
        let mut tried = tensors.to_vec();
        tried[0].1 = len;
        let lead = head(&tried).len() + len;
        len = len + lead.next_multiple_of(boundary) - lead;
    }
    len
}

pub fn map(path: &Path) -> Model {
    try_map(path).unwrap()
}

pub fn try_map(path: &Path) -> Result<Model, Error> {
    // SAFETY: the file lies in a folder of this test. Where the test cuts it, it touches no page that
    // was lost.
    unsafe { Model::map(path) }
}

/// For each page of a file: is it in memory? Asked through a mapping of its own.
pub fn in_memory(path: &Path) -> Vec<bool> {
    let mapping = Mapping::open(&File::open(path).unwrap()).unwrap();
    mapping.residency(0..mapping.len()).unwrap().iter().collect()
}

/// The bytes of a file, all of whose pages are in memory then. Under load the kernel takes one away now
/// and then, right after it was read.
pub fn read_whole(path: &Path) -> Vec<u8> {
    for _ in 0..100 {
        let bytes = fs::read(path).unwrap();
        if !in_memory(path).contains(&false) {
            return bytes;
        }
    }
    panic!("{path:?} does not stay in memory");
}

/// Drops what there is, and sees that it is gone.
pub fn make_cold(pages: &Pages) {
    let eviction = pages.evict().unwrap();
    assert_eq!(eviction.after.in_memory, 0, "{eviction:?}");
}

/// Takes the end of a file away.
pub fn cut(path: &Path, len: u64) {
    File::options().write(true).open(path).unwrap().set_len(len).unwrap();
}

pub fn touch(bytes: &[u8]) {
    let sum: u64 = bytes.iter().step_by(Mapping::page_size()).map(|&byte| u64::from(byte)).sum();
    std::hint::black_box(sum);
}

/// This very test once more in a process of its own, which finds its part in [`part`].
pub fn child(test: &str, part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(PART, part);
    command
}

/// What this process is asked to do, if it is a child.
pub fn part() -> Option<String> {
    std::env::var(PART).ok()
}

const PART: &str = "BAREST_TEST_PART";

/// Runs a child to its end. Fails if it cannot be started.
pub fn finish(mut child: Command) -> io::Result<()> {
    let output = child.output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // The harness ends well also if it knows no such test.
    assert!(output.status.success() && text.contains("1 passed"), "{}: {text}", output.status);
    Ok(())
}
