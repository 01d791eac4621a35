//! Is what we write what the reference writer writes, and does the reference read all of it?
//!
//! The same tensors go to both writers, in an order of chance; in the reference's layout the files
//! must be equal to the byte. In every other layout the reference must read what was meant.

use barest::{Dtype, Order, Writer};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype as Theirs, TensorView};
use std::collections::{BTreeMap, HashMap};

struct Tensor {
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

/// Numbers by chance, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn text(&mut self) -> String {
        const CHARACTERS: [char; 16] = [
            'a', 'b', 'Z', '.', '_', '"', '\\', '/', '\n', '\u{8}', '\u{0}', '\u{1f}', '\u{7f}',
            'é', '\u{2028}', '🦀',
        ];
        let len = self.below(6);
        (0..len).map(|_| CHARACTERS[self.below(16) as usize]).collect()
    }

    fn tensors(&mut self) -> Vec<Tensor> {
        let mut tensors = BTreeMap::new();
        for _ in 0..self.below(12) {
            let dtype = Dtype::ALL[self.below(Dtype::ALL.len() as u64) as usize];
            let mut shape: Vec<u64> = (0..self.below(4)).map(|_| self.below(5)).collect();
            let bits = |shape: &[u64]| shape.iter().product::<u64>() * dtype.bits();
            if bits(&shape) % 8 != 0 {
                shape.push(4);
            }
            let bytes = (0..bits(&shape) / 8).map(|_| self.below(256) as u8).collect();
            let name = self.text();
            tensors.insert(name.clone(), Tensor { name, dtype, shape, bytes });
        }
        // Neither sorted by name nor by dtype.
        let mut tensors: Vec<Tensor> = tensors.into_values().collect();
        for place in (1..tensors.len()).rev() {
            tensors.swap(place, self.below(place as u64 + 1) as usize);
        }
        tensors
    }
}

fn theirs(dtype: Dtype) -> Theirs {
    match dtype {
        Dtype::Bool => Theirs::BOOL,
        Dtype::F4 => Theirs::F4,
        Dtype::F6E2M3 => Theirs::F6_E2M3,
        Dtype::F6E3M2 => Theirs::F6_E3M2,
        Dtype::U8 => Theirs::U8,
        Dtype::I8 => Theirs::I8,
        Dtype::F8E5M2 => Theirs::F8_E5M2,
        Dtype::F8E4M3 => Theirs::F8_E4M3,
        Dtype::F8E8M0 => Theirs::F8_E8M0,
        Dtype::F8E4M3Fnuz => Theirs::F8_E4M3FNUZ,
        Dtype::F8E5M2Fnuz => Theirs::F8_E5M2FNUZ,
        Dtype::I16 => Theirs::I16,
        Dtype::U16 => Theirs::U16,
        Dtype::F16 => Theirs::F16,
        Dtype::Bf16 => Theirs::BF16,
        Dtype::I32 => Theirs::I32,
        Dtype::U32 => Theirs::U32,
        Dtype::F32 => Theirs::F32,
        Dtype::C64 => Theirs::C64,
        Dtype::F64 => Theirs::F64,
        Dtype::I64 => Theirs::I64,
        Dtype::U64 => Theirs::U64,
        other => panic!("what is {other}?"),
    }
}

fn by_the_reference(tensors: &[Tensor], metadata: Option<HashMap<String, String>>) -> Vec<u8> {
    let views = tensors.iter().map(|tensor| {
        let shape = tensor.shape.iter().map(|&dimension| dimension as usize).collect();
        let view = TensorView::new(theirs(tensor.dtype), shape, &tensor.bytes).unwrap();
        (&tensor.name, view)
    });
    safetensors::serialize(views, metadata).unwrap()
}

fn writer<'a>(tensors: &'a [Tensor], pairs: &'a Option<Vec<(String, String)>>) -> Writer<'a> {
    let mut writer = Writer::new();
    for tensor in tensors {
        writer.tensor(&tensor.name, tensor.dtype, &tensor.shape[..], &tensor.bytes);
    }
    if let Some(pairs) = pairs {
        writer.metadata_pairs(pairs.iter().map(|(key, value)| (&key[..], &value[..])));
    }
    writer
}

fn written(writer: &mut Writer<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    writer.write_to(&mut bytes).unwrap();
    bytes
}

#[test]
fn the_reference_layout_is_equal_to_the_byte() {
    let mut chance = Chance(1);
    for round in 0..2000 {
        let tensors = chance.tensors();
        // Of several pairs the reference leaves the order to chance.
        let pairs = match chance.below(3) {
            0 => None,
            1 => Some(Vec::new()),
            _ => Some(vec![(chance.text(), chance.text())]),
        };
        let expected = by_the_reference(&tensors, pairs.clone().map(HashMap::from_iter));
        let found = written(&mut writer(&tensors, &pairs));
        if tensors.is_empty() && pairs == Some(Vec::new()) {
            // It counts the members beforehand, and wrongly: what it writes it cannot read.
            assert!(expected[8..].starts_with(br#"{},"__metadata__":{}}"#), "it has been mended");
            assert!(SafeTensors::deserialize(&expected).is_err());
            SafeTensors::deserialize(&found).unwrap();
            continue;
        }
        assert_eq!(
            String::from_utf8_lossy(&found),
            String::from_utf8_lossy(&expected),
            "round {round}"
        );
        assert!(found == expected, "round {round}");
    }
}

#[test]
fn the_reference_reads_every_layout() {
    let mut chance = Chance(2);
    for round in 0..2000 {
        let tensors = chance.tensors();
        let pairs = match chance.below(3) {
            0 => None,
            _ => Some((0..chance.below(5)).map(|_| (chance.text(), chance.text())).collect()),
        };
        let order = if chance.below(2) == 0 { Order::Reference } else { Order::AsGiven };
        let alignment = [1, 8, 64, 4096, 16384][chance.below(5) as usize];
        let file = written(writer(&tensors, &pairs).order(order).align(alignment));
        let read = SafeTensors::deserialize(&file).unwrap_or_else(|error| {
            panic!("round {round}: {error}: {}", String::from_utf8_lossy(&file))
        });
        assert_eq!(read.len(), tensors.len());
        for tensor in &tensors {
            let view = read.tensor(&tensor.name).unwrap();
            let shape: Vec<u64> = view.shape().iter().map(|&dimension| dimension as u64).collect();
            assert_eq!((view.dtype(), shape), (theirs(tensor.dtype), tensor.shape.clone()));
            assert_eq!(view.data(), tensor.bytes);
        }
        let (_, header) = SafeTensors::read_metadata(&file).unwrap();
        let expected: Option<HashMap<String, String>> = pairs.map(HashMap::from_iter);
        assert_eq!(header.metadata(), &expected, "round {round}");
    }
}
