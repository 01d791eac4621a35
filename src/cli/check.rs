//! Are these files what they claim to be?

use super::arguments::{Arguments, usage};
use super::ls::size_in_words;
use super::output::Output;
use super::{End, survey};
use barest::Header;
use barest::escape::Shown;
use std::io::Write;
use std::path::Path;

pub const HELP: &str = "\
usage: barest check [--values] PATH...

Validates safetensors files in full: every byte of the header, and that the tensors
tile the data section up to the last byte of the file. One line for each file; below
a bad one the place, drawn; below a good one remarks, where it departs from the
written format or surprises some readers. Goes on after a bad file.

  --values   looks at the values too, of which the format allows any: for each tensor
             how many are NaN, infinite, zero, the least and the greatest of the
             others, and the index of the first that is no finite number (of BOOL:
             neither 0 nor 1). Of C64 both parts are counted. The file is mapped: nobody may
             change it meanwhile, and if somebody did it is reported as bad.

Exit status: 0 if all are good, 1 if any is bad. A NaN makes no file bad.
";

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let values = arguments.flag("--values");
    let paths = arguments.positional()?;
    if paths.is_empty() {
        return Err(usage("check", "expected at least one path".to_owned()));
    }
    let mut bad = 0;
    for path in &paths {
        let path = Path::new(path);
        match Header::open(path) {
            Ok(header) => {
                good(path, &header, output)?;
                if values {
                    match survey::write(path, output) {
                        Err(End::Failed(error)) => {
                            bad += 1;
                            writeln!(output, "BAD   {error}")?;
                        }
                        ended => ended?,
                    }
                }
            }
            Err(error) => {
                bad += 1;
                writeln!(output, "BAD   {error}")?;
                let columns = output.columns().unwrap_or(usize::MAX);
                if let Some(caret) = error.caret_within(columns) {
                    writeln!(output, "{caret}")?;
                }
            }
        }
    }
    match (bad, paths.len()) {
        (0, _) => Ok(()),
        (_, 1) => Err(End::Bad(format!("{} is bad", Shown(&paths[0].to_string_lossy())))),
        (bad, all) => Err(End::Bad(format!("{bad} of {all} files are bad"))),
    }
}

fn good(path: &Path, header: &Header, output: &mut Output) -> Result<(), End> {
    let tensors = header.len();
    writeln!(
        output,
        "good  {}: {tensors} tensor{}, {} of data",
        Shown(&path.to_string_lossy()),
        if tensors == 1 { "" } else { "s" },
        size_in_words(header.data_len())
    )?;
    for remark in header.remarks() {
        writeln!(output, "      remark: {remark}")?;
    }
    Ok(())
}
