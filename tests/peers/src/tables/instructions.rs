//! How many instructions does a tensor take?
//!
//! A number that a busy machine does not move. This program runs itself under callgrind, once with
//! few repetitions and once with more: what start-up takes falls out of the difference.

use crate::Run;
use crate::cases::CASES;
use crate::table::{Cell, Table};
use barest::Header;
use safetensors::{SafeTensorError, SafeTensors};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};
use std::path::Path;
use std::process::Command;
use std::thread;

/// Headers, and how many repetitions the second run has more than the first.
const SHOWN: [(&str, u32); 5] = [
    ("smollm2-272", 20),
    ("experts-1000", 5),
    ("experts-10000", 1),
    ("shuffled-10000", 1),
    ("spaced-10000", 1),
];

/// Parses the first bytes of a file that has so many.
type Parse = fn(&[u8], u64);

/// What the subcommand `work` can be asked to do, as often as it is asked. It has the header
/// alone, since callgrind has no room for a mapping of a hundred gigabytes: so the peer, when all
/// of its work is done, finds that the data is missing.
const WORK: [(&str, Parse); 2] = [
    ("safetensors", |first, _| match black_box(SafeTensors::read_metadata(first)) {
        Ok(_) | Err(SafeTensorError::MetadataIncompleteBuffer) => {}
        Err(error) => panic!("{error}"),
    }),
    ("barest", |first, file_len| {
        black_box(Header::parse(first, file_len).expect("a valid header"));
    }),
];

pub fn table(run: &Run) -> io::Result<Table> {
    let mut rows = Vec::new();
    for (name, more) in SHOWN.into_iter().filter(|(name, _)| run.wants("instructions", name)) {
        let case = CASES.iter().find(|case| case.name == name).expect("a case of that name");
        let file = case.file(&run.folder)?;
        let each = WORK.map(|(parser, _)| {
            let counted = counts(parser, &file.path, [1, 1 + more]);
            counted.map(|[few, many]| {
                (many.saturating_sub(few)) as f64 / f64::from(more) / file.tensors as f64
            })
        });
        let [theirs, ours] = each;
        rows.push(vec![
            Cell::Text(case.name.to_owned()),
            theirs.map_or(Cell::None, Cell::Each),
            ours.map_or(Cell::None, Cell::Each),
            match theirs.zip(ours) {
                Some((theirs, ours)) => Cell::Each(theirs / ours),
                None => Cell::None,
            },
        ]);
    }
    Ok(Table {
        title: "instructions: for one tensor, dropping the result included (`-`: no valgrind)",
        columns: &["header", "safetensors", "barest", "safetensors / barest"],
        rows,
    })
}

/// Instructions of two runs of this program, side by side; `None` where callgrind is not.
fn counts(parser: &str, path: &Path, times: [u32; 2]) -> Option<[u64; 2]> {
    let [few, many] = times.map(|times| {
        let (parser, path) = (parser.to_owned(), path.to_owned());
        thread::spawn(move || count(&parser, &path, times))
    });
    let join = |run: thread::JoinHandle<Option<u64>>| run.join().expect("a run of callgrind");
    let [few, many] = [few, many].map(join);
    Some([few?, many?])
}

fn count(parser: &str, path: &Path, times: u32) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(["work", parser])
        .arg(path)
        .arg(times.to_string())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let after = said.split("Collected : ").nth(1)?;
    after.split_whitespace().next()?.parse().ok()
}

/// The subcommand: `work PARSER FILE TIMES` parses a file's header, for callgrind or a profiler.
pub fn work(arguments: &[OsString]) -> Result<(), String> {
    let [parser, path, times] = arguments else {
        return Err("expected PARSER FILE TIMES".to_owned());
    };
    let named = WORK.iter().find(|(name, _)| parser == OsStr::new(name));
    let (_, parse) = named.ok_or("PARSER is `safetensors` or `barest`")?;
    let times = times.to_str().and_then(|times| times.parse::<u32>().ok());
    let times = times.ok_or("TIMES is a number")?;
    let (first, file_len) = read(path).map_err(|error| format!("cannot read the file: {error}"))?;
    (0..times).for_each(|_| parse(&first, file_len));
    Ok(())
}

/// The header's length and the header, and the length of the file.
fn read(path: &OsStr) -> io::Result<(Vec<u8>, u64)> {
    let mut file = File::open(path)?;
    let mut first = vec![0; 8];
    file.read_exact(&mut first)?;
    let header_len = u64::from_le_bytes(first[..].try_into().expect("eight bytes"));
    (&mut file).take(header_len).read_to_end(&mut first)?;
    Ok((first, file.metadata()?.len()))
}
