//! One thing, so many times, and nothing else: for profilers, and for those who count what a
//! process does.

use crate::sets::shards_in;
use barest::{Header, Model};
use barest_peers::peers::{by_candle, by_safetensors, map, map_all, route};
use safetensors::{SafeTensorError, SafeTensors};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the subcommand `work` can be asked to do.
const WORK: [(&str, Work); 7] = [
    ("barest", Work::Parse(parse_by_barest)),
    ("safetensors", Work::Parse(parse_by_safetensors)),
    ("judge", Work::Parse(judge_by_barest)),
    ("open-safetensors", Work::Map(open_by_safetensors)),
    ("map-barest", Work::Map(map_by_barest)),
    ("map-safetensors", Work::Map(map_by_safetensors)),
    ("map-candle", Work::Map(map_by_candle)),
];

enum Work {
    /// Parses the first bytes of a file that has so many.
    Parse(fn(&[u8], u64)),
    /// Opens a directory that holds these shards, or a file.
    Map(fn(&Path, &[PathBuf])),
}

fn parse_by_barest(first: &[u8], file_len: u64) {
    black_box(Header::parse(first, file_len).expect("a valid header"));
}

/// The same of a file that may be refused.
fn judge_by_barest(first: &[u8], file_len: u64) {
    let _ = black_box(Header::parse(first, file_len));
}

/// It has the header alone, since callgrind has no room for a mapping of a hundred gigabytes: so
/// the peer, when all of its work is done, finds that the data is missing.
fn parse_by_safetensors(first: &[u8], _: u64) {
    match black_box(SafeTensors::read_metadata(first)) {
        Ok(_) | Err(SafeTensorError::MetadataIncompleteBuffer) => {}
        Err(error) => panic!("{error}"),
    }
}

fn map_by_barest(directory: &Path, _: &[PathBuf]) {
    // SAFETY: whoever runs `work` on a model leaves it alone meanwhile.
    black_box(unsafe { Model::map(directory).expect("a model") });
}

/// One file, without the map that several need.
fn open_by_safetensors(_: &Path, shards: &[PathBuf]) {
    let map = map(&shards[0]);
    black_box(by_safetensors(&map));
}

fn map_by_safetensors(_: &Path, shards: &[PathBuf]) {
    black_box(route(&map_all(shards)));
}

fn map_by_candle(_: &Path, shards: &[PathBuf]) {
    black_box(by_candle(shards));
}

/// What a tool says on standard error of this program's `work WHAT PATH TIMES`; `None` where the tool
/// is not.
pub fn under(tool: &[&str], what: &str, path: &Path, times: u32) -> Option<String> {
    let (tool, options) = tool.split_first()?;
    let output = Command::new(tool)
        .args(options)
        .arg(std::env::current_exe().ok()?)
        .args(["work", what])
        .arg(path)
        .arg(times.to_string())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The subcommand: `work WHAT PATH TIMES`.
pub fn work(arguments: &[OsString]) -> Result<(), String> {
    let [what, path, times] = arguments else {
        return Err("expected WHAT PATH TIMES".to_owned());
    };
    let named = WORK.iter().find(|(name, _)| what == OsStr::new(name));
    let (_, work) = named
        .ok_or_else(|| format!("WHAT is one of: {}", WORK.map(|(name, _)| name).join(", ")))?;
    let times = times.to_str().and_then(|times| times.parse::<u32>().ok());
    let times = times.ok_or("TIMES is a number")?;
    let path = Path::new(path);
    let unread = |error| format!("cannot read {}: {error}", path.display());
    match work {
        Work::Parse(parse) => {
            let (first, file_len) = read(path).map_err(unread)?;
            (0..times).for_each(|_| parse(&first, file_len));
        }
        Work::Map(map) => {
            let shards = shards_in(path).map_err(unread)?;
            (0..times).for_each(|_| map(path, &shards));
        }
    }
    Ok(())
}

/// The header's length and the header, and the length of the file.
fn read(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    let mut file = File::open(path)?;
    let mut first = vec![0; 8];
    file.read_exact(&mut first)?;
    let header_len = u64::from_le_bytes(first[..].try_into().expect("eight bytes"));
    (&mut file).take(header_len).read_to_end(&mut first)?;
    Ok((first, file.metadata()?.len()))
}
