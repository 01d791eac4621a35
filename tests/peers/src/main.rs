//! Is barest faster than what others use, and how far from what is possible?
//!
//! The crates that do the same, and the physical limits, in one process and interleaved: what the
//! tables are and how times are taken stands in `README.md` beside this folder.

mod bench;
mod cases;
mod chart;
mod child;
mod count;
mod filled;
mod headers;
mod inside;
mod models;
mod sets;
mod table;
mod tables;
mod typed;
mod work;

use barest::escape::Json;
use bench::Rounds;
use cases::Folder;
use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{fs, io, thread};
use table::Table;

const HELP: &str = "\
usage: barest-peers [--rounds N] [--only NAME] [--size MB] [--cpu] [--json]
                    [--svg FILE]
       barest-peers work WHAT PATH TIMES

  --rounds N   how often each contender is timed (25, and 7 or more where that
               would take longer than 3 seconds for a row)
  --only NAME  rows of whose `table/header` this is a part: `parse`, `92000`,
               `sets/deepseek`, `lookup/smollm2`; may be given more than once
  --size MB    of the file that is read from the disk (512); twice as much must be free
  --cpu        count the time of processors, of all threads together, instead of
               the time that goes by: for busy machines
  --json       one JSON object instead of tables
  --svg FILE   also a chart of those rows that people ask about first

`work` does one thing TIMES times and nothing else, for profilers: it parses a
file's header (`barest`, `safetensors`; `judge`, which may refuse it), or maps a directory (`map-barest`,
`map-safetensors`, `map-candle`).
";

/// What a run of all tables needs to know.
pub struct Run {
    pub rounds: Rounds,
    pub folder: Folder,
    only: Vec<String>,
    /// What it is measured on.
    machine: String,
    /// Bytes of the file that is read from the disk; and the file, or why there is none.
    size: u64,
    filled: OnceCell<Result<PathBuf, String>>,
}

impl Run {
    /// The file that is read from the disk, written when it is first asked for.
    pub fn filled(&self) -> Result<&Path, &str> {
        let write = || filled::write(&self.folder, self.size).map_err(|error| error.to_string());
        self.filled.get_or_init(write).as_deref().map_err(|reason| &reason[..])
    }

    /// Whether a row was asked for.
    pub fn wants(&self, table: &str, case: &str) -> bool {
        let name = format!("{table}/{case}");
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part))
    }
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((first, rest)) if first == "work" => work::work(rest),
        Some((first, rest)) if first == "child" => child::run(rest),
        _ => measure(arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("barest-peers: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: Vec<OsString>) -> Result<(), String> {
    let mut rounds = Rounds::AtMost(25, Duration::from_secs(3));
    let (mut only, mut size) = (Vec::new(), 512_000_000);
    let (mut json, mut svg) = (false, None);
    let mut arguments =
        arguments.into_iter().map(|argument| argument.to_string_lossy().into_owned());
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match &argument[..] {
            "--rounds" => {
                let number = value()?.parse().ok().filter(|&number| number > 0);
                rounds = Rounds::Exactly(number.ok_or("--rounds takes a number from 1")?);
            }
            "--only" => only.push(value()?),
            "--size" => {
                let number: Option<u64> = value()?.parse().ok();
                let number = number.filter(|number| (16..=1 << 20).contains(number));
                size = number.ok_or("--size takes a number of megabytes from 16")? * 1_000_000;
            }
            "--cpu" => bench::count_processor_time(),
            "--json" => json = true,
            "--svg" => svg = Some(PathBuf::from(value()?)),
            "--help" => {
                print!("{HELP}");
                return Ok(());
            }
            _ => return Err(format!("what is {argument}?\n{HELP}")),
        }
    }
    let folder = Folder::new().map_err(|error| format!("no folder for files: {error}"))?;
    let run = Run { rounds, folder, only, size, filled: OnceCell::new(), machine: machine() };
    let tables = show(&run, json).map_err(|error| error.to_string())?;
    match svg {
        Some(path) => draw(&run, &tables, &path),
        None => Ok(()),
    }
}

/// A chart of the tables, in a file.
fn draw(run: &Run, tables: &[(&str, Table)], path: &Path) -> Result<(), String> {
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let chart = chart::draw(&day, &run.machine, tables);
    let chart = chart.ok_or("no row was run that the chart shows")?;
    fs::write(path, chart).map_err(|error| format!("{}: {error}", path.display()))?;
    if run.only.is_empty() {
        for row in chart::missing(tables) {
            eprintln!("barest-peers: the chart is without {row}");
        }
    }
    Ok(())
}

/// Makes the tables and prints each as soon as it is there.
fn show(run: &Run, json: bool) -> io::Result<Vec<(&'static str, Table)>> {
    if json {
        println!("{{\"machine\": {}", Json(&run.machine));
    } else {
        println!("{}", run.machine);
    }
    let mut made = Vec::new();
    for (name, make) in tables::TABLES {
        let table = make(run)?;
        if table.rows.is_empty() {
            continue;
        }
        match json {
            true => println!(", \"{name}\": {}", table.json()),
            false => print!("\n{table}"),
        }
        made.push((name, table));
    }
    if json {
        println!("}}");
    }
    match made.is_empty() {
        true => Err(io::Error::other("no row has such a name, or none could be run")),
        false => Ok(made),
    }
}

/// What the numbers are measured on, and how busy it was when they began.
fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (processors, load) = (read("/proc/cpuinfo"), read("/proc/loadavg"));
    let kernel = read("/proc/sys/kernel/osrelease");
    let model =
        processors.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let load = load.split(' ').next().filter(|load| !load.is_empty());
    format!(
        "{} processors ({}, {}), {} {}, {}, load {}",
        thread::available_parallelism().map_or(1, usize::from),
        model.unwrap_or("of unknown model"),
        std::env::consts::ARCH,
        std::env::consts::OS,
        // What is behind the hyphen is the name of whoever built it.
        kernel.trim().split('-').next().unwrap_or_default(),
        env!("COMPILER"),
        load.unwrap_or("unknown")
    )
}
