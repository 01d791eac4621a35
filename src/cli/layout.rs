//! What does the file look like as a whole?

mod excerpt;
mod keep;
mod picture;
mod runs;
mod scale;
pub mod svg;
mod terminal;

use super::End;
use super::arguments::{Arguments, usage};
use super::output::Output;
use barest::ShardFile;
use barest::escape::Shown;
use picture::Picture;
use std::io::{self, Write};
use std::path::Path;

pub const HELP: &str = "\
usage: barest layout PATH [--svg FILE]

Draws a safetensors file: the length word, the header with its first bytes and its
end as they are, its padding, the tensors to scale, the sum of their sizes, and how
many tensors start where their elements or a page would not. Only the header is read.

More than 32 tensors are joined into runs of neighbours: those whose names begin
alike, or, where that does not help, 16 runs of about one size. A run is named by its
largest tensor.

Offsets are those of the file. Mapped, a file begins at a page, so an offset is a
multiple of a page's part exactly where the address is. An element asks for a
multiple of its bytes (C64, two floats, for 4; below 8 bits, for 1). Empty tensors
are not counted there. Of a model of several files each is drawn, one below the other.

  --svg FILE    write the picture for a browser into FILE instead, `-` for standard
                output. A FILE that is there already is overwritten only if it is
                empty or a picture that this program drew; the model never is.
";

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let svg = svg_option(&mut arguments)?;
    let positional = arguments.positional()?;
    let [path] = &positional[..] else {
        let found = positional.len();
        return Err(usage("layout", format!("expected one path, found {found}")));
    };
    let index = super::index(Path::new(path))?;
    let picture =
        |file| Picture::new(ShardFile::path(file).unwrap_or(Path::new(path)), file.header());
    let pictures: Vec<Picture<'_>> = index.shards().iter().map(picture).collect();
    match svg.as_deref() {
        None => {
            for (number, picture) in pictures.iter().enumerate() {
                output.write_all(if number > 0 { b"\n\n" } else { b"" })?;
                terminal::draw(picture, output)?;
            }
        }
        Some("-") => output.write_all(svg::draw(&pictures).as_bytes())?,
        Some(file) => deliver(file, &svg::draw(&pictures), svg::MARK, true, output)?,
    }
    Ok(())
}

/// Takes `--svg FILE`, for each verb that draws.
pub fn svg_option(arguments: &mut Arguments) -> Result<Option<String>, End> {
    let svg = arguments.option("--svg")?;
    if let Some("") = svg.as_deref() {
        return Err(arguments.usage("--svg needs the name of a file".to_owned()));
    }
    // Arguments are taken as text; written under another name the picture would not be found.
    if svg.as_ref().is_some_and(|file| file.contains(char::REPLACEMENT_CHARACTER)) {
        return Err(arguments.usage("the name of the file for --svg must be UTF-8".to_owned()));
    }
    Ok(svg)
}

/// Writes a picture that begins with `mark` into a file, where nothing else is lost, and says so if
/// that is wanted.
pub fn deliver(
    file: &str,
    drawn: &str,
    mark: &str,
    say_so: bool,
    output: &mut Output,
) -> Result<(), End> {
    keep::write(Path::new(file), drawn.as_bytes(), mark.as_bytes())
        .map_err(|error| cannot_write(file, error))?;
    match say_so {
        true => Ok(writeln!(output, "{}  {} bytes, for a browser", Shown(file), drawn.len())?),
        false => Ok(()),
    }
}

/// Fails as [`deliver`] would, where that can be known before there is a picture.
pub fn may_deliver(file: &str, mark: &str) -> Result<(), End> {
    match file {
        "-" => Ok(()),
        _ => keep::may_write(Path::new(file), mark.as_bytes())
            .map_err(|error| cannot_write(file, error)),
    }
}

fn cannot_write(file: &str, error: io::Error) -> End {
    End::Bad(format!("cannot write {}: {error}", Shown(file)))
}
