//! What is measured? A file for each table; a new one is added here.

mod attacks;
mod decode;
mod disk;
mod dot;
mod fresh;
mod instructions;
mod iterate;
mod layouts;
mod lookup;
mod memory;
mod names;
mod open;
mod parse;
mod sets;
mod typed;

use crate::Run;
use crate::cases::ModelFile;
use crate::table::Table;
use barest_peers::peers::by_safetensors;
use std::io;

type Make = fn(&Run) -> io::Result<Table>;

/// Names, and what makes the tables, in the order in which they are shown.
pub const TABLES: [(&str, Make); 20] = [
    ("parse", parse::table),
    ("typed", typed::table),
    ("layouts", layouts::table),
    ("names", names::table),
    ("open", open::table),
    ("fresh", fresh::times),
    ("fresh-calls", fresh::calls),
    ("sets", sets::times),
    ("lookup", lookup::table),
    ("iterate", iterate::table),
    ("decode", decode::table),
    ("dot", dot::table),
    ("memory", memory::table),
    ("sets-memory", sets::memory),
    ("sets-calls", sets::calls),
    ("instructions", instructions::table),
    ("attacks", attacks::table),
    ("cold", disk::cold),
    ("rows", disk::rows),
    ("share", disk::share),
];

/// Header, proof and names by this crate.
fn by_barest(bytes: &[u8]) -> barest::Header {
    barest::Header::parse(bytes, bytes.len() as u64).expect("a valid header")
}

/// No number counts before both see the same tensors.
fn agree(file: &ModelFile) {
    let (ours, theirs) = (by_barest(&file.map), by_safetensors(&file.map));
    assert_eq!((ours.len(), theirs.len()), (file.tensors, file.tensors));
    let data = file.map.len() - ours.data_len() as usize;
    for tensor in ours.tensors() {
        let other = theirs.tensor(tensor.name()).expect("a name that the reference knows");
        let shape = other.shape().iter().map(|&dimension| dimension as u64);
        assert!(shape.eq(tensor.shape().iter().copied()), "{tensor:?}");
        assert_eq!(other.dtype().to_string(), tensor.dtype().name(), "{tensor:?}");
        let begin = other.data().as_ptr() as usize - file.map[data..].as_ptr() as usize;
        let range = (begin as u64, (begin + other.data().len()) as u64);
        assert_eq!(range, tensor.data_offsets(), "{tensor:?}");
    }
}
