//! What does a process do that does one thing, once?
//!
//! What is met for the first time (code that is not in memory yet, a heap without pages, a file that
//! is not mapped) is met once in a process. So this program starts itself: `child WHAT PATH` does it,
//! prints what it measured of itself as a line of JSON, and ends. Where the size of the program counts,
//! it starts a small one.

mod cold;
mod direct;
mod parts;
mod share;
mod small;

pub use cold::Cold;
pub use direct::is_there as direct_reads;
pub use parts::Rows;
pub use share::weigh;
pub use small::programs;

use crate::bench::Rounds;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

type Work = fn(&Path);

/// What a child can be asked to do, and who does it.
const WHAT: [(&str, Work); 14] = [
    ("cold-barest", |path| say(&cold::barest(path))),
    ("cold-memmap2", |path| say(&cold::memmap2(path))),
    ("cold-candle", |path| say(&cold::candle(path))),
    ("cold-read", |path| say(&cold::read(path))),
    ("direct-2", |path| say(&direct::kept(path, 2))),
    ("direct-8", |path| say(&direct::kept(path, 8))),
    ("disk-2", |path| say(&direct::reused(path, 2))),
    ("disk-8", |path| say(&direct::reused(path, 8))),
    ("rows-barest", |path| say(&parts::barest(path))),
    ("rows-memmap2", |path| say(&parts::memmap2(path))),
    ("rows-memmap2-advised", |path| say(&parts::memmap2_advised(path))),
    ("share-barest", share::barest),
    ("share-memmap2", share::memmap2),
    ("share-read", share::read),
];

fn say(figures: &impl Serialize) {
    println!("{}", serde_json::to_string(figures).expect("figures are JSON"));
}

/// The subcommand: `child WHAT PATH`.
pub fn run(arguments: &[OsString]) -> Result<(), String> {
    let [what, path] = arguments else {
        return Err("expected WHAT PATH".to_owned());
    };
    let named = WHAT.iter().find(|(name, _)| what == OsStr::new(name));
    let (_, run) = named
        .ok_or_else(|| format!("WHAT is one of: {}", WHAT.map(|(name, _)| name).join(", ")))?;
    run(Path::new(path));
    Ok(())
}

/// What to start, but for the path of the model.
pub enum Way {
    /// `child WHAT` of this program.
    Itself(&'static str),
    /// A program that can do only one thing.
    Small(PathBuf),
}

impl Way {
    fn command(&self, path: &Path) -> io::Result<Command> {
        let mut command = match self {
            Way::Itself(what) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["child", what]);
                command
            }
            Way::Small(program) => Command::new(program),
        };
        command.arg(path);
        Ok(command)
    }

    /// Has a fresh process do it; gives its figures.
    fn ask<T: DeserializeOwned>(&self, path: &Path) -> io::Result<T> {
        let mut command = self.command(path)?;
        let output = command.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("{command:?}: {}: {said}", output.status)));
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// Lets ways take turns, each time in a process of its own; gives the figures of each, one for each
/// round. `before` is done before each.
pub fn take_turns<T: DeserializeOwned, const N: usize>(
    ways: [Way; N],
    path: &Path,
    rounds: Rounds,
    mut before: impl FnMut() -> io::Result<()>,
) -> io::Result<[Vec<T>; N]> {
    let mut figures = [const { Vec::new() }; N];
    let (began, mut round) = (Instant::now(), 0);
    while !rounds.are_over(round, began.elapsed()) {
        for place in 0..N {
            let way = (round + place) % N;
            before()?;
            figures[way].push(ways[way].ask(path)?);
        }
        round += 1;
    }
    Ok(figures)
}
