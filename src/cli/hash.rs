//! Are these the bytes that somebody else has, whatever stands around them?

use super::End;
use super::arguments::{Arguments, usage};
use super::ls::{name_cell, size_in_words};
use super::output::Output;
use super::progress::Progress;
use super::table::cut;
use barest::escape::Shown;
use barest::{Sha256, Sha256Digest, Shard, TensorView};
use std::io::Write;
use std::path::Path;

pub const HELP: &str = "\
usage: barest hash PATH [--check]

Prints SHA-256 of the data section, which stays the same whatever the metadata says,
and of each tensor, which stays the same in whatever file it lies. A tensor's is that
of its bytes alone: name, dtype and shape are not in it. Of several files each has a
data section; of tensors that an index does not assign there is no hash.

  --check    compares the hash of the data section with those that the metadata
             of its file gives, under modelspec.hash_sha256 or sshs_model_hash

The file is mapped: nobody may change it meanwhile.

Exit status: 0, or with --check 1 if a hash differs or none is given.
";

/// Where metadata gives the hash of the data section, with `0x` before it or not.
const KEYS: [&str; 2] = ["modelspec.hash_sha256", "sshs_model_hash"];

pub fn run(mut arguments: Arguments, output: &mut Output) -> Result<(), End> {
    let check = arguments.flag("--check");
    let positional = arguments.positional()?;
    let [path] = &positional[..] else {
        let found = positional.len();
        return Err(usage("hash", format!("expected one path, found {found}")));
    };
    let model = super::open(Path::new(path))?;
    let shards: Vec<&Shard> = model.shards().collect();
    let tensors: Vec<TensorView<'_>> = if check { Vec::new() } else { model.tensors().collect() };
    let (of_data, of_tensors) = hashes(&shards, &tensors);
    // The hash of zeros that stand in for lost bytes is none of the file's.
    model.still_whole()?;
    let of_data = of_data?;
    for (shard, hash) in shards.iter().zip(&of_data) {
        let size = size_in_words(shard.header().data_len());
        let place = match (shards.len(), shard.path()) {
            (2.., Some(path)) => format!(" of {}", Shown(&path.to_string_lossy())),
            _ => String::new(),
        };
        line(output, hash, &format!("data section{place}, {size}"))?;
    }
    if check {
        return compare(&shards, &of_data, output);
    }
    if !tensors.is_empty() {
        writeln!(output)?;
    }
    for (tensor, hash) in tensors.iter().zip(&of_tensors) {
        line(output, hash, &name_cell(tensor.name()))?;
    }
    Ok(())
}

/// A hash, and what it is of, cut where a terminal has room for some of it but not for all.
fn line(output: &mut Output, hash: &Sha256Digest, what: &str) -> Result<(), End> {
    const BEFORE: usize = 66;
    const LEAST: usize = 20;
    let what = match output.columns() {
        Some(columns) if columns >= BEFORE + LEAST => cut(what, columns - BEFORE),
        _ => what.to_owned(),
    };
    Ok(writeln!(output, "{hash}  {what}")?)
}

/// Both kinds at once: each goes over the data by itself.
fn hashes(
    shards: &[&Shard],
    tensors: &[TensorView<'_>],
) -> (barest::Result<Vec<Sha256Digest>>, Vec<Sha256Digest>) {
    let of_data = || shards.iter().map(|shard| shard.data_sha256()).collect();
    let of_tensors = || {
        let all = tensors.iter().map(|tensor| tensor.byte_len() as u64).sum();
        let mut progress = Progress::new("hashing", all);
        tensors.iter().map(|tensor| in_pieces(tensor.bytes(), &mut progress)).collect()
    };
    std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, of_data) {
        Err(_) => (of_data(), of_tensors()),
        Ok(helper) => {
            let of_tensors = of_tensors();
            let of_data = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (of_data, of_tensors)
        }
    })
}

fn in_pieces(bytes: &[u8], progress: &mut Progress) -> Sha256Digest {
    let mut hash = Sha256::new();
    for piece in bytes.chunks(16 << 20) {
        hash.update(piece);
        progress.advance(piece.len() as u64);
    }
    hash.finish()
}

fn compare(shards: &[&Shard], of_data: &[Sha256Digest], output: &mut Output) -> Result<(), End> {
    let (mut given, mut wrong) = (0, 0);
    for (shard, hash) in shards.iter().zip(of_data) {
        let hash = hash.to_string();
        for key in KEYS {
            let Some(value) = shard.metadata().and_then(|metadata| metadata.get(key)) else {
                continue;
            };
            given += 1;
            let of = match (shards.len(), shard.path()) {
                (2.., Some(path)) => format!("{}: ", Shown(&path.to_string_lossy())),
                _ => String::new(),
            };
            let digits = value.strip_prefix("0x").unwrap_or(&value);
            if digits.eq_ignore_ascii_case(&hash) {
                writeln!(output, "good  {of}{key} says so too")?;
            } else {
                wrong += 1;
                writeln!(output, "BAD   {of}{key}: expected {}, found {hash}", Shown(digits))?;
            }
        }
    }
    match (given, wrong) {
        (0, _) => Err(End::Bad(format!("the metadata has no {} and no {}", KEYS[0], KEYS[1]))),
        (_, 0) => Ok(()),
        _ => Err(End::Bad("the data is not what its metadata says".to_owned())),
    }
}
