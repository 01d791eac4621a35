//! Which pages of this model are in memory?

mod svg;

use super::End;
use super::arguments::{Arguments, usage};
use super::layout::{deliver, may_deliver, svg_option};
use super::ls::{name_cell, size_in_words};
use super::output::Output;
use super::table::Table;
use barest::escape::{Brief, Shown};
use barest::{Mapping, Model, PageCount, Pages, Residency, Shard};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

pub const HELP: &str = "\
usage: barest pages PATH [PREFIX] [--svg FILE]

Shows which pages of a model are in memory: a picture of each file, and a line for each
tensor. A PREFIX takes the tensors below it, or the tensor of that name. No page is
touched by looking.

MAPPED is the address space, which costs nothing. IN MEMORY is the page cache: those
pages were read from the disk and are shared by all processes. What one process has
touched of them is its own number, see barest time. Linux tells it of files that you
own or may write; of others the column says `?`.

  --svg FILE   write the picture for a browser into FILE instead, `-` for standard output;
               only a picture that this program drew is overwritten
";

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let file = svg_option(&mut arguments)?;
    let positional = arguments.positional()?;
    let (path, prefixes) = match &positional[..] {
        [path] => (path, &[][..]),
        [path, prefix] => (path, std::slice::from_ref(prefix)),
        other => {
            let found = other.len();
            return Err(usage("pages", format!("expected PATH [PREFIX], found {found}")));
        }
    };
    if let Some(file) = &file {
        may_deliver(file, svg::MARK)?;
    }
    let model = super::open(Path::new(path))?;
    let tensors = below(&model, prefixes)?;
    if let Some(file) = file {
        let drawn = svg::draw(&model, &counted(tensors)?);
        return match &*file {
            "-" => Ok(output.write_all(drawn.as_bytes())?),
            file => deliver(file, &drawn, svg::MARK, true, output),
        };
    }
    // 1. The files.
    for shard in model.shards() {
        picture(shard, output)?;
    }
    writeln!(
        output,
        "each sign is a part of the file: █ all of it is in memory, ▓ most, ░ some, · none\n"
    )?;
    // 2. The tensors.
    let mut all = Pages::new();
    tensors.iter().for_each(|(_, pages)| all.extend(pages.clone()));
    let row_of = |tensor: &Tensor<'_>| row(name_cell(tensor.name), tensor.count);
    let mut rows: Vec<Vec<String>> = counted(tensors)?.iter().map(row_of).collect();
    rows.push(row("all of them".to_owned(), all.count()?));
    let table = Table::new(&["NAME", ">MAPPED", ">IN MEMORY", ">SHARE"]);
    table.write(rows.iter().cloned(), output)?;
    let page = size_in_words(Mapping::page_size() as u64);
    Ok(writeln!(output, "\nin pages of {page}; a page that two tensors share counts for both")?)
}

/// A tensor, and which of its pages are in memory.
struct Tensor<'m> {
    name: &'m str,
    count: PageCount,
}

fn counted<'m>(tensors: Vec<(&'m str, Pages)>) -> Result<Vec<Tensor<'m>>, End> {
    let count = |(name, pages): (&'m str, Pages)| Ok(Tensor { name, count: pages.count()? });
    tensors.into_iter().map(count).collect()
}

/// The tensors that were asked for, with their pages; all of them, if no prefix was.
fn below<'m>(model: &'m Model, prefixes: &[OsString]) -> Result<Vec<(&'m str, Pages)>, End> {
    let mut tensors: Vec<(&str, Pages)> = Vec::new();
    for prefix in text_of(prefixes)? {
        let before = tensors.len();
        tensors.extend(model.get(prefix).map(|tensor| (tensor.name(), tensor.pages())));
        let scope = model.scope(prefix);
        tensors.extend(scope.tensors().map(|tensor| (tensor.name(), tensor.pages())));
        if tensors.len() == before {
            let prefix = Brief(prefix);
            return Err(End::Bad(format!("no tensor is named `{prefix}`, nor any below it")));
        }
    }
    if prefixes.is_empty() {
        tensors.extend(model.tensors().map(|tensor| (tensor.name(), tensor.pages())));
    }
    Ok(tensors)
}

/// The pages of the tensors that prefixes name, in the order of the prefixes; those of the whole model
/// if there are none.
pub fn of_prefixes(model: &Model, prefixes: &[OsString]) -> Result<Pages, End> {
    if prefixes.is_empty() {
        return Ok(model.pages());
    }
    let mut pages = Pages::new();
    below(model, prefixes)?.into_iter().for_each(|(_, more)| pages.extend(more));
    Ok(pages)
}

fn text_of(prefixes: &[OsString]) -> Result<Vec<&str>, End> {
    let text: Option<Vec<&str>> = prefixes.iter().map(|prefix| prefix.to_str()).collect();
    text.ok_or_else(|| End::Usage("a tensor's name is UTF-8".to_owned()))
}

fn row(name: String, count: PageCount) -> Vec<String> {
    let PageCount { mapped, in_memory, untold, .. } = count;
    let (cached, share) = match untold {
        0 => (in_memory.to_string(), share(in_memory, mapped)),
        _ => ("?".to_owned(), "?".to_owned()),
    };
    vec![name, mapped.to_string(), cached, share]
}

/// A part of a whole, as `26.2 %`.
pub fn share(part: usize, whole: usize) -> String {
    match (part, whole) {
        (_, 0) => "-".to_owned(),
        (part, whole) if part == whole => "100 %".to_owned(),
        _ => format!("{:.1} %", part as f64 / whole as f64 * 100.0),
    }
}

/// A file as one line, page after page.
fn picture(shard: &Shard, output: &mut Output) -> io::Result<()> {
    const COLUMNS: usize = 72;
    let path = shard.path().unwrap_or(Path::new("")).to_string_lossy();
    let mapping = shard.mapping();
    let residency = match mapping.residency(0..mapping.len()) {
        Ok(residency) => residency,
        Err(error) => return writeln!(output, "{}: {error}\n", Shown(&path)),
    };
    let (pages, resident) = (residency.pages(), residency.resident());
    let told = share(resident, pages);
    writeln!(output, "{}: {resident} of {pages} pages in memory, {told}", Shown(&path))?;
    let columns = output.columns().unwrap_or(COLUMNS).min(COLUMNS);
    writeln!(output, "{}\n", signs(&residency, columns))
}

/// At most so many signs for all pages, each for about as many pages as the others.
fn signs(residency: &Residency, most: usize) -> String {
    let pages: Vec<bool> = residency.iter().collect();
    let columns = most.min(pages.len());
    let part = |column: usize| column * pages.len() / columns;
    let sign = |column: usize| {
        let pages = &pages[part(column)..part(column + 1)];
        let resident = pages.iter().filter(|&&page| page).count();
        match (resident, pages.len()) {
            (0, _) => '·',
            (resident, all) if resident == all => '█',
            (resident, all) if resident * 2 >= all => '▓',
            _ => '░',
        }
    };
    (0..columns).map(sign).collect()
}
