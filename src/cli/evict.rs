//! How is the memory of a model given back?

use super::End;
use super::arguments::{Arguments, usage};
use super::output::Output;
use super::pages::of_prefixes;
use super::warm::tell;
use std::io::Write;
use std::path::Path;

pub const HELP: &str = "\
usage: barest evict PATH [PREFIX...]

Drops the pages of a model from memory: those of the tensors below each PREFIX, or of that
name; without one, all of them. The file is not changed. Pages stay that another process
has mapped, that a tensor shares with a neighbour which is not dropped, or that were
written a moment ago and are not on the disk yet: then `sync`, and once more.
";

pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let positional = arguments.positional()?;
    let [path, prefixes @ ..] = &positional[..] else {
        return Err(usage("evict", "expected PATH [PREFIX...]".to_owned()));
    };
    let model = super::open(Path::new(path))?;
    let eviction = of_prefixes(&model, prefixes)?.evict()?;
    tell("before", eviction.before, output)?;
    tell("after", eviction.after, output)?;
    Ok(output.flush()?)
}
