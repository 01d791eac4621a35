//! Are these files what they claim to be?

use super::End;
use super::arguments::{Arguments, usage};
use super::ls::size_in_words;
use super::output::Output;
use barest::Header;
use barest::escape::Shown;
use std::io::Write;
use std::path::Path;

pub const HELP: &str = "\
usage: barest check PATH...

Validates safetensors files in full: every byte of the header, and that the tensors
tile the data section up to the last byte of the file. One line for each file; below
a bad one the place, drawn; below a good one remarks, where it departs from the
written format or surprises some readers. Goes on after a bad file. Values are not
looked at: the format allows any.

Exit status: 0 if all are good, 1 if any is bad.
";

pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let paths = arguments.positional()?;
    if paths.is_empty() {
        return Err(usage("check", "expected at least one path".to_owned()));
    }
    let mut bad = 0;
    for path in &paths {
        let path = Path::new(path);
        match Header::open(path) {
            Ok(header) => {
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
            }
            Err(error) => {
                bad += 1;
                writeln!(output, "BAD   {error}")?;
                if let Some(caret) = error.caret() {
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
