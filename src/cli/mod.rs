//! What can be asked on the command line, and how does the program end?
//!
//! One small file for each verb. A verb writes to [`Output`] and reports its end as an [`End`]:
//!
//! ```text
//!   0   good                              also when the reader of a pipe went away
//!   1   a file is bad, or cannot be used  one line on standard error, and the caret
//!   2   the question was not understood   what was wrong, and where help is
//! ```

mod arguments;
mod check;
mod demo;
mod diff;
mod dump;
mod evict;
mod hash;
mod layout;
mod ls;
mod meta;
mod metal;
mod output;
mod pack;
mod pages;
mod progress;
mod sample;
mod survey;
mod table;
mod time;
mod tour;
mod values;
mod warm;
mod watch;

use arguments::Arguments;
use barest::escape::Shown;
use output::Output;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// A verb: its name, its help, and what does it.
struct Verb {
    name: &'static str,
    help: &'static str,
    run: fn(Arguments, &mut Output) -> Result<(), End>,
}

const VERBS: [Verb; 14] = [
    Verb { name: "ls", help: ls::HELP, run: ls::run },
    Verb { name: "check", help: check::HELP, run: check::run },
    Verb { name: "dump", help: dump::HELP, run: dump::run },
    Verb { name: "layout", help: layout::HELP, run: layout::run },
    Verb { name: "pages", help: pages::HELP, run: pages::run },
    Verb { name: "warm", help: warm::HELP, run: warm::run },
    Verb { name: "evict", help: evict::HELP, run: evict::run },
    Verb { name: "time", help: time::HELP, run: time::run },
    Verb { name: "metal", help: metal::HELP, run: metal::run },
    Verb { name: "hash", help: hash::HELP, run: hash::run },
    Verb { name: "diff", help: diff::HELP, run: diff::run },
    Verb { name: "meta", help: meta::HELP, run: meta::run },
    Verb { name: "pack", help: pack::HELP, run: pack::run },
    Verb { name: "demo", help: demo::HELP, run: demo::run },
];

const HELP: &str = "\
barest - from a safetensors file on disk to a tensor, and nothing in between

usage: barest                            the story of one tensor, measured on this machine
       barest ls PATH                    what is in a model: names, dtypes, shapes, ranges
       barest check PATH...              validate models in full
       barest dump PATH TENSOR [N]       values beside their raw bytes
       barest layout PATH                the picture of a file, also as SVG
       barest pages PATH [PREFIX]        which pages are in memory
       barest warm PATH [PREFIX...]      read them in, in this order
       barest evict PATH [PREFIX...]     drop them
       barest time PATH                  ways to bring it into memory, measured
       barest metal PATH                 its pages as GPU buffers (on a Mac), or the plan
       barest hash PATH                  SHA-256 of the data and of each tensor
       barest diff A B                   what differs between two models
       barest meta PATH                  print __metadata__, or change it
       barest pack SRC DST               write a model anew: aligned, split, converted
       barest demo DIR                   write the sample model, and broken ones

       barest VERB --help                more about a verb
       barest --version

PATH is a safetensors file, an index (*.json), or a directory: its one
*.safetensors.index.json and the shards that it names, or without one its
.safetensors files.

Exit status: 0 good, 1 a bad file, 2 a question that was not understood.
";

/// How a verb ends if not well.
enum End {
    /// A file is to blame, or the system.
    Failed(barest::Error),
    /// The same, already told; or told by this line.
    Bad(String),
    /// The arguments are to blame.
    Usage(String),
    /// Standard output cannot be written.
    Output(io::Error),
}

impl From<barest::Error> for End {
    fn from(error: barest::Error) -> End {
        End::Failed(error)
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Output(error)
    }
}

/// Runs the program with the arguments it was started with.
pub fn run() -> ExitCode {
    // Where there is no guard, a file that is cut while it is mapped ends the program.
    let _ = barest::sigbus::install();
    let mut arguments = std::env::args_os().skip(1);
    let mut output = Output::new();
    let verb = arguments.next();
    let ended = dispatch(verb, arguments.collect(), &mut output);
    // What was printed so far belongs before the error, also on one terminal.
    let flushed = output.flush().map_err(End::Output);
    match ended.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(end) => tell(end),
    }
}

fn dispatch(
    verb: Option<OsString>,
    arguments: Vec<OsString>,
    output: &mut Output,
) -> Result<(), End> {
    let Some(verb) = verb else {
        return tour::run(output);
    };
    let name = verb.to_string_lossy();
    let asks_for_help = |argument: &OsString| argument == "--help" || argument == "-h";
    match &*name {
        "-h" | "--help" | "help" => Ok(output.write_all(HELP.as_bytes())?),
        "-V" | "--version" => Ok(writeln!(output, "barest {}", env!("CARGO_PKG_VERSION"))?),
        _ => match VERBS.iter().find(|known| known.name == name) {
            Some(verb) if arguments.iter().take_while(|a| *a != "--").any(asks_for_help) => {
                Ok(output.write_all(verb.help.as_bytes())?)
            }
            Some(verb) => (verb.run)(Arguments::new(verb.name, arguments), output),
            None => {
                let name = barest::escape::Brief(&name);
                Err(End::Usage(format!("there is no verb `{name}`; see barest --help")))
            }
        },
    }
}

/// Says on standard error how it ended, and gives the exit status.
fn tell(end: End) -> ExitCode {
    let (text, status) = match end {
        // Whoever read us has read enough.
        End::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        End::Output(error) => (format!("barest: cannot write the output: {error}"), 1),
        End::Bad(line) => (format!("barest: {line}"), 1),
        End::Usage(line) => (format!("barest: {line}"), 2),
        End::Failed(error) if error.faults().len() > 1 => {
            let mut lines = error.faults().iter().map(|fault| format!("\n  {fault}"));
            let path = error.path().unwrap_or(Path::new("")).to_string_lossy();
            const SHOWN: usize = 20;
            let shown: String = lines.by_ref().take(SHOWN).collect();
            let more = match error.kind() {
                barest::ErrorKind::Faults { more, .. } => *more,
                _ => 0,
            };
            let rest = match lines.count() + more {
                0 => String::new(),
                rest => format!("\n  and {rest} more, see barest check"),
            };
            let count = error.faults().len() + more;
            (format!("barest: {}: {count} faults{shown}{rest}", Shown(&path)), 1)
        }
        End::Failed(error) => {
            let caret = error.caret().map(|caret| format!("\n{caret}")).unwrap_or_default();
            (format!("barest: {error}{caret}"), 1)
        }
    };
    // If standard error is closed too there is no one left to tell.
    let _ = writeln!(io::stderr(), "{text}");
    ExitCode::from(status)
}

/// Reads the headers of a model: of a file, an index or a directory.
fn index(path: &Path) -> barest::Result<barest::Index> {
    let progress = barest::Progress::new();
    let read = || barest::OpenOptions::new().progress(&progress).index(path);
    watch::watched(|| watch::headers(&progress), read)
}

/// Opens a model to look at some of its bytes.
fn open(path: &Path) -> barest::Result<barest::Model> {
    // SAFETY: the promise is passed on to whoever starts the program: its help says that a file
    // must not be changed while it is looked at. Who breaks it gets wrong numbers, and is told so
    // afterwards; nothing else depends on the bytes.
    unsafe { index(path)?.map_or_read() }
}

/// Maps a model, or fails: for who wants to know about the mapping.
fn map(path: &Path) -> barest::Result<barest::Model> {
    // SAFETY: as in `open`.
    unsafe { barest::Model::map(path) }
}
