//! Does a model come back from its file as it was given?
//!
//! The tape says tensors, metadata and order, with names that need escapes, shapes that do not fit
//! and names that stand twice. What is wrong with it is found by looking; if nothing is, the file is
//! written, read, and written again from what was read.

use crate::tape::Tape;
use barest::{Dtype, ErrorKind, Model, Order, Writer};
use std::collections::BTreeMap;

/// A tensor as it is given to the writer.
#[derive(Clone, Debug)]
pub struct Given {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
}

/// All that is given to it.
#[derive(Debug)]
pub struct Wish {
    pub tensors: Vec<Given>,
    pub metadata: Option<Vec<(String, String)>>,
    pub order: Order,
    pub align: u64,
}

/// Tries one model; gives it with its file, if there could be one.
pub fn judge(tape: &[u8]) -> Option<(Wish, Vec<u8>)> {
    let wish = wish(&mut Tape(tape));
    let mut file = Vec::new();
    let outcome = writer(&wish).write_to(&mut file);
    let faults = faults(&wish);
    match outcome {
        Ok(len) => {
            assert!(faults.is_empty(), "{faults:?} in {wish:?}");
            assert_eq!(len, file.len() as u64);
            comes_back(&wish, &file);
            Some((wish, file))
        }
        Err(error) => {
            let told = fault(error.kind());
            assert!(faults.contains(&told), "{error}, which is not among {faults:?}: {wish:?}");
            assert!(file.is_empty(), "{error}, after {} bytes", file.len());
            None
        }
    }
}

fn wish(tape: &mut Tape) -> Wish {
    let order = tape.pick(&[Order::Reference, Order::AsGiven]);
    let align = match tape.below(64) {
        63 => 0,
        62 => 24,
        power => 1 << (power % 13),
    };
    let metadata =
        (tape.below(4) > 0).then(|| (0..tape.below(4)).map(|_| (text(tape), text(tape))).collect());
    let tensors = (0..tape.below(7)).map(|_| tensor(tape)).collect();
    Wish { tensors, metadata, order, align }
}

fn tensor(tape: &mut Tape) -> Given {
    let (name, dtype) = (text(tape), tape.pick(Dtype::ALL));
    let mut shape: Vec<u64> = (0..tape.below(4)).map(|_| tape.below(5) as u64).collect();
    let bits = shape.iter().product::<u64>() * dtype.bits();
    let mut bytes = tape.noise(bits as usize / 8);
    match tape.below(48) {
        47 => bytes.push(1),
        46 => drop(bytes.pop()),
        45 => shape.push(u64::MAX),
        _ => {}
    }
    Given { name, dtype, shape, bytes }
}

/// A name, a key or a value: mostly plain, sometimes whatever the tape holds.
fn text(tape: &mut Tape) -> String {
    match tape.below(12) {
        0 => "__metadata__".to_owned(),
        1 => "\0\u{1f}\"\\/\u{7f}\u{2028}\u{1f980}".to_owned(),
        2..=4 => {
            let len = tape.below(12);
            String::from_utf8_lossy(&tape.bytes(len)).into_owned()
        }
        other => format!("model.{}.weight", other * 256 + usize::from(tape.byte())),
    }
}

fn writer(wish: &Wish) -> Writer<'_> {
    let mut writer = Writer::new();
    writer.order(wish.order).align(wish.align);
    if let Some(pairs) = &wish.metadata {
        writer.metadata_pairs(pairs.iter().map(|(key, value)| (&**key, &**value)));
    }
    for Given { name, dtype, shape, bytes } in &wish.tensors {
        writer.tensor(&**name, *dtype, &shape[..], bytes);
    }
    writer
}

/// What can be wrong, by the names of the errors.
#[derive(PartialEq, Debug)]
enum Fault {
    NameGivenTwice,
    ReservedName,
    WrongDataLength,
    PartialByte,
    Overflow,
    BadAlignment,
}

fn fault(kind: &ErrorKind) -> Fault {
    match kind {
        ErrorKind::NameGivenTwice => Fault::NameGivenTwice,
        ErrorKind::ReservedName => Fault::ReservedName,
        ErrorKind::WrongDataLength { .. } => Fault::WrongDataLength,
        ErrorKind::PartialByte { .. } => Fault::PartialByte,
        ErrorKind::Overflow { .. } => Fault::Overflow,
        ErrorKind::BadAlignment { .. } => Fault::BadAlignment,
        _ => panic!("{kind}"),
    }
}

fn faults(wish: &Wish) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !wish.align.is_power_of_two() {
        faults.push(Fault::BadAlignment);
    }
    for (number, Given { name, dtype, shape, bytes }) in wish.tensors.iter().enumerate() {
        if name == "__metadata__" {
            faults.push(Fault::ReservedName);
        }
        if wish.tensors[..number].iter().any(|other| other.name == *name) {
            faults.push(Fault::NameGivenTwice);
        }
        // From the left, as the reader multiplies: a 0 saves what follows.
        let bits = shape.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim));
        match bits.and_then(|elements| elements.checked_mul(dtype.bits())) {
            None => faults.push(Fault::Overflow),
            Some(bits) if bits % 8 != 0 => faults.push(Fault::PartialByte),
            Some(bits) if bits / 8 != bytes.len() as u64 => faults.push(Fault::WrongDataLength),
            Some(_) => {}
        }
    }
    faults
}

fn comes_back(wish: &Wish, file: &[u8]) {
    let model = Model::from_bytes(file).expect("what was written can be read");
    // 1. The tensors, in the order that was asked for.
    let mut expected: Vec<&Given> = wish.tensors.iter().collect();
    if wish.order == Order::Reference {
        let rank = |dtype| Dtype::ALL.iter().position(|other| *other == dtype);
        expected.sort_by_key(|given| (std::cmp::Reverse(rank(given.dtype)), &given.name));
    }
    assert_eq!(model.len(), expected.len());
    for (view, given) in model.tensors().zip(expected) {
        assert_eq!(view.name(), given.name);
        assert_eq!((view.dtype(), view.shape()), (given.dtype, &given.shape[..]), "{given:?}");
        assert_eq!(view.bytes(), given.bytes, "{given:?}");
        let found = model.tensor(&given.name).expect("found by its name");
        assert_eq!(found.file_range(), view.file_range(), "{given:?}");
    }
    // 2. The metadata, where the last value of a key counts.
    let found = model.metadata(0).map(|pairs| {
        pairs.iter().map(|(key, value)| (key.to_string(), value.into_owned())).collect()
    });
    let expected: Option<BTreeMap<String, String>> =
        wish.metadata.clone().map(|pairs| pairs.into_iter().collect());
    assert_eq!(found, expected);
    // 3. Where the data begin.
    let start = model.shards().next().expect("a shard").header().data_start();
    assert_eq!(start % wish.align.max(8), 0, "{wish:?}");
    // 4. Written from what was read, it is the same file.
    let mut again = Vec::new();
    let mut writer = Writer::new();
    writer.order(Order::AsGiven).align(wish.align);
    if let Some(pairs) = model.metadata(0) {
        writer.metadata_pairs(pairs.iter());
    }
    for view in model.tensors() {
        writer.copy(view.name(), view);
    }
    writer.write_to(&mut again).expect("a model that was read");
    assert_eq!(again, file, "written again");
}
