//! Has a processor really read every page?
//!
//! One byte of each page is read and added to a sum, which the run reports: nothing can be left out
//! as unused, and ways that touch the same pages must come to the same sum.

use barest::{Mapping, Model, TensorView};
use std::collections::HashMap;

/// The sum of a tensor's first byte and of the first bytes of its further pages. `offset` is where
/// the bytes stand in the file, where pages are counted, so that a copy at any address gives the same
/// sum.
pub fn touch(bytes: &[u8], offset: u64) -> u64 {
    let page = Mapping::page_size();
    let Some(&first) = bytes.first() else { return 0 };
    let to_next_page = page - (offset % page as u64) as usize;
    let others = bytes.get(to_next_page..).unwrap_or_default().iter().step_by(page);
    u64::from(first) + others.map(|&byte| u64::from(byte)).sum::<u64>()
}

/// The same for a tensor.
pub fn touch_tensor(tensor: &TensorView<'_>) -> u64 {
    touch(tensor.bytes(), tensor.file_range().start)
}

/// The tensors that a program would want first: those of the first layers by number, of about a tenth
/// of all bytes; where no name has a number, the first tensor of the file.
pub fn first_layers(model: &Model) -> Vec<TensorView<'_>> {
    let all: usize = model.tensors().map(|tensor| tensor.byte_len()).sum();
    let tenth = all / 10;
    let mut wanted = Vec::new();
    let mut bytes = 0;
    for layer in layers(model) {
        let more: usize = layer.iter().map(|tensor| tensor.byte_len()).sum();
        if bytes > 0 && bytes + more > tenth {
            break;
        }
        bytes += more;
        wanted.extend(layer);
    }
    // Layers without a byte are no start.
    if bytes == 0 {
        wanted = model.tensors().find(|tensor| !tensor.is_empty()).into_iter().collect();
    }
    wanted
}

/// The tensors whose names have a number, joined by what ends with the first: `model.layers.0`; in the
/// order of these numbers.
fn layers(model: &Model) -> Vec<Vec<TensorView<'_>>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut layers: Vec<(u64, Vec<TensorView<'_>>)> = Vec::new();
    for tensor in model.tensors() {
        let Some((number, prefix)) = layer_of(tensor.name()) else { continue };
        let place = *places.entry(prefix).or_insert(layers.len());
        if place == layers.len() {
            layers.push((number, Vec::new()));
        }
        layers[place].1.push(tensor);
    }
    layers.sort_by_key(|&(number, _)| number);
    layers.into_iter().map(|(_, tensors)| tensors).collect()
}

fn layer_of(name: &str) -> Option<(u64, &str)> {
    let mut end = 0;
    for part in name.split('.') {
        end += part.len();
        if let Ok(number) = part.parse() {
            return Some((number, &name[..end]));
        }
        end += 1;
    }
    None
}

/// A tensor, and a byte of it.
pub type Place<'m> = (TensorView<'m>, usize);

/// One page in a hundred, each anywhere among its hundred, in no order: rows that somebody looks up.
pub fn random_rows(model: &Model) -> Vec<Place<'_>> {
    const STRIDE: u64 = 100;
    let page = Mapping::page_size();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut places = Vec::new();
    let (mut pages_before, mut hundred) = (0, 0);
    let mut wanted = random.below(STRIDE);
    for tensor in model.tensors() {
        let range = tensor.file_range();
        let lead = (range.start.next_multiple_of(page as u64) - range.start) as usize;
        let pages = (tensor.byte_len().saturating_sub(lead)).div_ceil(page) as u64;
        while wanted < pages_before + pages {
            places.push((tensor, lead + (wanted - pages_before) as usize * page));
            hundred += STRIDE;
            wanted = hundred + random.below(STRIDE);
        }
        pages_before += pages;
    }
    if places.is_empty() {
        places.extend(model.tensors().find(|tensor| !tensor.is_empty()).map(|tensor| (tensor, 0)));
    }
    for last in (1..places.len()).rev() {
        places.swap(last, random.below(last as u64 + 1) as usize);
    }
    places
}

/// Marsaglia's xorshift: the same numbers in each run, so that runs can be compared.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_touched_once_wherever_the_copy_lies() {
        let page = Mapping::page_size();
        let mut file = vec![0; 4 * page];
        for (number, byte) in [(0, 1), (100, 2), (page, 4), (2 * page, 8), (2 * page + 1, 16)] {
            file[number] = byte;
        }
        let sum = |from: usize, to: usize| touch(&file[from..to], from as u64);
        assert_eq!(sum(0, 4 * page), 1 + 4 + 8);
        assert_eq!(sum(100, 4 * page), 2 + 4 + 8);
        assert_eq!(sum(100, page), 2);
        assert_eq!(sum(100, page + 1), 2 + 4);
        assert_eq!(sum(page, 2 * page), 4);
        assert_eq!(sum(2 * page + 1, 3 * page), 16);
        assert_eq!(sum(7, 7), 0);
    }

    #[test]
    fn a_layer_is_named_by_the_first_number() {
        for (name, layer) in [
            ("model.layers.12.mlp.3.weight", Some((12, "model.layers.12"))),
            ("0.weight", Some((0, "0"))),
            ("h1.weight", None),
            ("norm", None),
        ] {
            assert_eq!(layer_of(name), layer, "{name}");
        }
    }

    /// A model of U8 tensors of so many bytes.
    fn model(tensors: &[(&str, usize)]) -> Model {
        let mut end = 0;
        let mut header = String::new();
        for (name, len) in tensors {
            let comma = if header.is_empty() { "" } else { "," };
            header += &format!(
                "{comma}\"{name}\":{{\"dtype\":\"U8\",\"shape\":[{len}],\"data_offsets\":[{end},{}]}}",
                end + len
            );
            end += len;
        }
        let header = format!("{{{header}}}");
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + end, 1);
        Model::from_bytes(&bytes).unwrap()
    }

    #[test]
    fn the_first_layers_come_in_the_order_of_their_numbers() {
        let names = |model: &Model| -> Vec<String> {
            first_layers(model).iter().map(|tensor| tensor.name().to_owned()).collect()
        };
        let layered = model(&[("e", 100), ("l.10.a", 4), ("l.2.a", 3), ("l.2.b", 3), ("l.1.a", 6)]);
        assert_eq!(names(&layered), ["l.1.a"], "the second would make more than a tenth");
        let small = model(&[("e", 200), ("l.10.a", 4), ("l.2.a", 3), ("l.2.b", 3), ("l.1.a", 6)]);
        assert_eq!(names(&small), ["l.1.a", "l.2.a", "l.2.b", "l.10.a"]);
        assert_eq!(names(&model(&[("a", 10), ("b", 10)])), ["a"]);
        assert_eq!(names(&model(&[("a.0.b", 0), ("c", 1)])), ["c"]);
        assert_eq!(names(&model(&[("a.0.b", 0)])), [""; 0]);
    }

    #[test]
    fn one_page_in_a_hundred_is_looked_up_and_none_twice() {
        let page = Mapping::page_size();
        let big = model(&[("a", 450 * page), ("b", 3), ("c", 550 * page)]);
        let mut places: Vec<u64> = random_rows(&big)
            .iter()
            .map(|(tensor, byte)| {
                assert!(*byte < tensor.byte_len());
                (tensor.file_range().start + *byte as u64) / page as u64
            })
            .collect();
        assert!((9..=10).contains(&places.len()), "{places:?}");
        assert!(places.windows(2).any(|pair| pair[0] > pair[1]), "in no order");
        places.sort_unstable();
        places.dedup();
        assert!((9..=10).contains(&places.len()), "{places:?}");
        assert_eq!(random_rows(&model(&[("a", 5)])).len(), 1);
    }
}
