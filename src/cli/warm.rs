//! How is a model in memory before somebody asks for it?

use super::End;
use super::arguments::{Arguments, usage};
use super::ls::size_in_words;
use super::output::Output;
use super::pages::{of_prefixes, share};
use super::watch::{bytes, watched};
use barest::{Mapping, PageCount};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

pub const HELP: &str = "\
usage: barest warm PATH [PREFIX...] [--force]

Reads the pages of a model into memory, those of the first PREFIX first; without one, all
of them in file order. What is there already is left as it is. The pages stay until the
system needs the memory for something else.

  --force   also if less memory is left than the missing pages need
";

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let force = arguments.flag("--force");
    let positional = arguments.positional()?;
    let [path, prefixes @ ..] = &positional[..] else {
        return Err(usage("warm", "expected PATH [PREFIX...]".to_owned()));
    };
    let model = super::open(Path::new(path))?;
    let pages = of_prefixes(&model, prefixes)?;
    tell("before", pages.count()?, output)?;
    let started = Instant::now();
    let prefetcher = if force { pages.prefetch_regardless()? } else { pages.prefetch()? };
    watched(|| bytes(prefetcher.progress()), || prefetcher.wait_all())?;
    let seconds = started.elapsed().as_secs_f64();
    tell("after", pages.count()?, output)?;
    let brought = size_in_words(prefetcher.bytes_brought());
    Ok(writeln!(output, "{brought} in pieces that were not whole in memory, {seconds:.3} seconds")?)
}

/// `before: 12 of 490 pages in memory, 2.4 %`
pub fn tell(when: &str, count: PageCount, output: &mut Output) -> io::Result<()> {
    let page = size_in_words(Mapping::page_size() as u64);
    let PageCount { mapped, in_memory, untold, .. } = count;
    match untold {
        0 => writeln!(
            output,
            "{when:>6}: {in_memory} of {mapped} pages of {page} in memory, {}",
            share(in_memory, mapped)
        ),
        _ => writeln!(
            output,
            "{when:>6}: of {untold} of {mapped} pages of {page} the kernel tells nothing"
        ),
    }
}
