//! What is in this model, for another program?

use super::super::output::Output;
use super::groups::{self, Group};
use super::{AllDimensions, Listing};
use barest::escape::Json;
use barest::{Header, TensorInfo};
use std::io::{self, Write};

pub fn write(listing: &Listing<'_>, depth: Option<usize>, output: &mut Output) -> io::Result<()> {
    match depth {
        None => {
            write!(output, "{{\"tensors\": [")?;
            for (number, (shard, tensor)) in listing.tensors.iter().enumerate() {
                write_tensor(&listing.files[*shard].0, tensor, number > 0, output)?;
            }
        }
        Some(depth) => {
            write!(output, "{{\"groups\": [")?;
            for (number, group) in groups::of(listing, depth).iter().enumerate() {
                write_group(group, number > 0, output)?;
            }
        }
    }
    write!(output, "\n],\n")?;
    match &listing.files[..] {
        [(_, header)] => write_metadata(header, output)?,
        files => {
            write!(output, "\"shards\": [")?;
            for (number, (path, header)) in files.iter().enumerate() {
                let comma = if number > 0 { "," } else { "" };
                write!(output, "{comma}\n  {{\"file\": {}, ", Json(path))?;
                write_metadata(header, output)?;
                write!(output, "}}")?;
            }
            write!(output, "\n]")?;
        }
    }
    writeln!(output, "}}")
}

fn write_tensor(
    file: &str,
    tensor: &TensorInfo<'_>,
    another: bool,
    output: &mut Output,
) -> io::Result<()> {
    let range = tensor.file_range();
    write!(
        output,
        "{}\n  {{\"name\": {}, \"dtype\": \"{}\", \"shape\": {}, \"file\": {}, \"file_range\": [{}, {}]}}",
        if another { "," } else { "" },
        Json(tensor.name()),
        tensor.dtype(),
        AllDimensions(tensor.shape()),
        Json(file),
        range.start,
        range.end
    )
}

fn write_group(group: &Group<'_>, another: bool, output: &mut Output) -> io::Result<()> {
    write!(
        output,
        "{}\n  {{\"name\": {}, \"tensors\": {}, \"elements\": {}, \"bytes\": {}}}",
        if another { "," } else { "" },
        Json(group.name),
        group.sum.tensors,
        group.sum.elements,
        group.sum.bytes
    )
}

fn write_metadata(header: &Header, output: &mut Output) -> io::Result<()> {
    write!(output, "\"metadata\": ")?;
    let Some(metadata) = header.metadata() else {
        return write!(output, "null");
    };
    write!(output, "{{")?;
    for (number, (key, value)) in metadata.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(output, "{comma}\n  {}: {}", Json(key), Json(&value))?;
    }
    write!(output, "}}")
}
