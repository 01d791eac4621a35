//! What are the parts of this model?
//!
//! Tensors whose names begin with the same few words, which dots divide: the layers.

use super::super::output::Output;
use super::super::table::Table;
use super::{Listing, Sum, name_cell};
use barest::Dtype;
use std::collections::HashMap;
use std::io::{self, Write};

/// The tensors whose names begin alike.
pub struct Group<'a> {
    /// What they begin with, without the dot behind it; or the whole name of a tensor.
    pub name: &'a str,
    pub sum: Sum,
    /// In the order in which they were met.
    pub dtypes: Vec<Dtype>,
}

/// The groups in the order of their first tensors.
pub fn of<'a>(listing: &Listing<'a>, depth: usize) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (_, tensor) in &listing.tensors {
        let name = beginning(tensor.name(), depth);
        let number = *known.entry(name).or_insert_with(|| {
            groups.push(Group { name, sum: Sum::default(), dtypes: Vec::new() });
            groups.len() - 1
        });
        let group = &mut groups[number];
        group.sum.add(tensor);
        if !group.dtypes.contains(&tensor.dtype()) {
            group.dtypes.push(tensor.dtype());
        }
    }
    groups
}

fn beginning(name: &str, depth: usize) -> &str {
    name.match_indices('.').nth(depth - 1).map_or(name, |(dot, _)| &name[..dot])
}

pub fn write(listing: &Listing<'_>, depth: usize, output: &mut Output) -> io::Result<()> {
    let groups = of(listing, depth);
    if groups.is_empty() {
        return Ok(());
    }
    let columns = ["GROUP", ">TENSORS", ">ELEMENTS", ">BYTES", "DTYPES"];
    let rows = groups.iter().map(|group| {
        let Sum { tensors, elements, bytes } = group.sum;
        let dtypes: Vec<&str> = group.dtypes.iter().map(|dtype| dtype.name()).collect();
        let numbers = [tensors, elements, bytes].map(|number| number.to_string());
        [&[name_cell(group.name)], &numbers[..], &[dtypes.join(" ")]].concat()
    });
    Table::new(&columns).giving_way(&["DTYPES", "ELEMENTS"]).write(rows, output)?;
    writeln!(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_at_its_dots() {
        for (name, depth, expected) in [
            ("model.layers.0.mlp.weight", 1, "model"),
            ("model.layers.0.mlp.weight", 3, "model.layers.0"),
            ("model.layers.0.mlp.weight", 5, "model.layers.0.mlp.weight"),
            ("model.layers.0.mlp.weight", 9, "model.layers.0.mlp.weight"),
            ("a..b", 2, "a."),
            (".a", 1, ""),
            ("", 1, ""),
        ] {
            assert_eq!(beginning(name, depth), expected, "{name} at {depth}");
        }
    }
}
