//! How is one element shown: its bytes as they stand in the file, and its value?

use barest::{
    Bf16, C64, Dtype, Element, F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0,
    F16, TensorView,
};

/// One element.
pub struct Shown {
    /// Its bytes in file order, as hexadecimal digits, so that `xxd` agrees; of an element below 8
    /// bits, its bits as one number.
    pub raw: String,
    /// Its value for a person: the shortest digits that lead back to it.
    pub text: String,
    /// Its value as JSON: exact, and a string for what JSON has no number for.
    pub json: String,
}

/// Element `index` of a tensor, in C order.
pub fn show(tensor: &TensorView<'_>, index: usize) -> Shown {
    match tensor.dtype() {
        // By its byte: it may be none of the two that a `bool` can be.
        Dtype::Bool => {
            let byte = tensor.bytes().get(index).copied().unwrap_or_default();
            let text = match byte {
                0 => "false".to_owned(),
                1 => "true".to_owned(),
                other => format!("no boolean ({other})"),
            };
            let json = if byte > 1 { format!("\"{text}\"") } else { text.clone() };
            Shown { raw: hexadecimal(&[byte]), text, json }
        }
        Dtype::U8 => at::<u8>(tensor, index, integer),
        Dtype::I8 => at::<i8>(tensor, index, integer),
        Dtype::U16 => at::<u16>(tensor, index, integer),
        Dtype::I16 => at::<i16>(tensor, index, integer),
        Dtype::U32 => at::<u32>(tensor, index, integer),
        Dtype::I32 => at::<i32>(tensor, index, integer),
        Dtype::U64 => at::<u64>(tensor, index, integer),
        Dtype::I64 => at::<i64>(tensor, index, integer),
        Dtype::F64 => at::<f64>(tensor, index, |n| (format!("{n:?}"), json_float(n))),
        Dtype::F32 => at::<f32>(tensor, index, float),
        Dtype::Bf16 => at::<Bf16>(tensor, index, float),
        Dtype::F16 => at::<F16>(tensor, index, float),
        Dtype::F8E4M3 => at::<F8E4M3>(tensor, index, float),
        Dtype::F8E5M2 => at::<F8E5M2>(tensor, index, float),
        Dtype::F8E8M0 => at::<F8E8M0>(tensor, index, float),
        Dtype::F8E4M3Fnuz => at::<F8E4M3Fnuz>(tensor, index, float),
        Dtype::F8E5M2Fnuz => at::<F8E5M2Fnuz>(tensor, index, float),
        Dtype::F6E2M3 => at::<F6E2M3>(tensor, index, float),
        Dtype::F6E3M2 => at::<F6E3M2>(tensor, index, float),
        Dtype::F4 => at::<F4>(tensor, index, float),
        Dtype::C64 => at::<C64>(tensor, index, |(re, im)| {
            let json = format!("[{},{}]", json_float(re.into()), json_float(im.into()));
            (format!("{re:?} {im:+?}i"), json)
        }),
        // A dtype that a later version of the table may have.
        _ => unknown(),
    }
}

fn at<E: Element>(
    tensor: &TensorView<'_>,
    index: usize,
    in_words: impl Fn(E::Value) -> (String, String),
) -> Shown {
    let (group, place) = (index / E::PER_GROUP, index % E::PER_GROUP);
    let bytes = tensor.bytes().chunks_exact(size_of::<E::Raw>()).nth(group);
    let value = tensor.elements::<E>().ok().and_then(|elements| elements.get(index));
    let (Some(bytes), Some(value)) = (bytes, value) else {
        return unknown();
    };
    let raw = match E::PER_GROUP {
        1 => hexadecimal(bytes),
        _ => {
            let bits = E::DTYPE.bits() as usize;
            let group = bytes.iter().rev().fold(0u32, |group, &byte| group << 8 | u32::from(byte));
            let pattern = group >> (bits * place) & ((1 << bits) - 1);
            format!("{pattern:0width$x}", width = bits.div_ceil(4))
        }
    };
    let (text, json) = in_words(value);
    Shown { raw, text, json }
}

fn unknown() -> Shown {
    Shown { raw: String::new(), text: "-".to_owned(), json: "null".to_owned() }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn integer(number: impl ToString) -> (String, String) {
    (number.to_string(), number.to_string())
}

fn float(number: f32) -> (String, String) {
    (format!("{number:?}"), json_float(number.into()))
}

/// The shortest digits that read back as this `f64`; every narrower float is one exactly.
fn json_float(number: f64) -> String {
    match number {
        _ if number.is_nan() => "\"NaN\"".to_owned(),
        f64::INFINITY => "\"Infinity\"".to_owned(),
        f64::NEG_INFINITY => "\"-Infinity\"".to_owned(),
        _ => format!("{number:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barest::Model;

    #[test]
    fn floats_are_exact_in_json_and_what_is_no_number_is_a_string() {
        for (dtype, bytes, index, raw, text, json) in [
            (Dtype::Bf16, &[0x80, 0x3f][..], 0, "803f", "1.0", "1.0"),
            (Dtype::Bf16, &[0, 0, 1, 0], 1, "0100", "9.1835e-41", "9.183549615799121e-41"),
            (Dtype::Bf16, &[0x00, 0x80], 0, "0080", "-0.0", "-0.0"),
            (Dtype::Bf16, &[0xc0, 0x7f], 0, "c07f", "NaN", "\"NaN\""),
            (Dtype::F16, &[0x66, 0x2e], 0, "662e", "0.099975586", "0.0999755859375"),
            (Dtype::F8E4M3, &[0x7e], 0, "7e", "448.0", "448.0"),
            (Dtype::F8E8M0, &[0], 0, "00", "5.877472e-39", "5.877471754111438e-39"),
            (Dtype::F4, &[0x31], 0, "1", "0.5", "0.5"),
            (Dtype::F4, &[0x31], 1, "3", "1.5", "1.5"),
            (Dtype::F6E2M3, &[0x40, 0x20, 0x0c], 2, "02", "0.25", "0.25"),
            (Dtype::F32, &[0xcd, 0xcc, 0xcc, 0x3d], 0, "cdcccc3d", "0.1", "0.10000000149011612"),
            (Dtype::F32, &[0, 0, 0x80, 0xff], 0, "000080ff", "-inf", "\"-Infinity\""),
            (
                Dtype::C64,
                &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0],
                0,
                "0000803f000000c0",
                "1.0 -2.0i",
                "[1.0,-2.0]",
            ),
            (Dtype::Bool, &[1], 0, "01", "true", "true"),
            (Dtype::Bool, &[2], 0, "02", "no boolean (2)", "\"no boolean (2)\""),
            (Dtype::I16, &[0xfe, 0xff], 0, "feff", "-2", "-2"),
            (
                Dtype::U64,
                &[255; 8],
                0,
                "ffffffffffffffff",
                "18446744073709551615",
                "18446744073709551615",
            ),
        ] {
            let model = model(dtype, bytes);
            let shown = show(&model.tensor("t").unwrap(), index);
            let found = (shown.raw.as_str(), shown.text.as_str(), shown.json.as_str());
            assert_eq!(found, (raw, text, json), "{dtype}");
        }
    }

    /// A model of one tensor.
    fn model(dtype: Dtype, bytes: &[u8]) -> Model {
        let (elements, end) = (bytes.len() as u64 * 8 / dtype.bits(), bytes.len());
        let header = format!(
            r#"{{"t":{{"dtype":"{dtype}","shape":[{elements}],"data_offsets":[0,{end}]}}}}"#
        );
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        file.extend_from_slice(bytes);
        Model::from_bytes(&file).unwrap()
    }

    #[test]
    fn every_dtype_is_shown() {
        for &dtype in Dtype::ALL {
            let bytes = [0; 24];
            assert_ne!(show(&model(dtype, &bytes).tensor("t").unwrap(), 0).text, "-", "{dtype}");
        }
    }
}
