//! How is one element shown: its bytes as they stand in the file, and its value?

use barest::{Dtype, TensorView};

/// One element.
pub struct Shown {
    /// Its bytes in file order, as hexadecimal digits, so that `xxd` agrees.
    pub raw: String,
    /// Its value for a person.
    pub text: String,
    /// Its value as JSON: exact, and a string for what JSON has no number for. `null` for dtypes
    /// that this version does not decode.
    pub json: String,
}

/// Elements of a dtype below 8 bits have no bytes of their own: of those, bytes are shown.
pub fn unit_bytes(dtype: Dtype) -> usize {
    dtype.element_bytes().unwrap_or(1)
}

/// Whether this version knows the values of a dtype.
pub fn has_values(dtype: Dtype) -> bool {
    read(dtype, &[0; 8][..unit_bytes(dtype)]).is_some()
}

/// The units of a tensor from one to another, not included.
pub fn show(tensor: &TensorView<'_>, from: usize, to: usize) -> impl Iterator<Item = Shown> {
    let (dtype, unit) = (tensor.dtype(), unit_bytes(tensor.dtype()));
    tensor.bytes()[from * unit..to * unit].chunks_exact(unit).map(move |bytes| {
        let raw = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match read(dtype, bytes) {
            Some((text, json)) => Shown { raw, text, json },
            None => Shown { raw, text: "-".to_owned(), json: "null".to_owned() },
        }
    })
}

fn read(dtype: Dtype, bytes: &[u8]) -> Option<(String, String)> {
    fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
        bytes.try_into().ok()
    }
    fn both(text: String) -> Option<(String, String)> {
        Some((text.clone(), text))
    }
    match dtype {
        Dtype::Bool => Some(match bytes {
            [0] => ("false".to_owned(), "false".to_owned()),
            [1] => ("true".to_owned(), "true".to_owned()),
            other => {
                let text = format!("no boolean ({})", other[0]);
                (text.clone(), format!("\"{text}\""))
            }
        }),
        Dtype::U8 => both(u8::from_le_bytes(array(bytes)?).to_string()),
        Dtype::I8 => both(i8::from_le_bytes(array(bytes)?).to_string()),
        Dtype::U16 => both(u16::from_le_bytes(array(bytes)?).to_string()),
        Dtype::I16 => both(i16::from_le_bytes(array(bytes)?).to_string()),
        Dtype::U32 => both(u32::from_le_bytes(array(bytes)?).to_string()),
        Dtype::I32 => both(i32::from_le_bytes(array(bytes)?).to_string()),
        Dtype::U64 => both(u64::from_le_bytes(array(bytes)?).to_string()),
        Dtype::I64 => both(i64::from_le_bytes(array(bytes)?).to_string()),
        Dtype::Bf16 => {
            let number = barest::Bf16(u16::from_le_bytes(array(bytes)?)).to_f32();
            Some((format!("{number:?}"), json_float(number.into())))
        }
        Dtype::F32 => {
            let number = f32::from_le_bytes(array(bytes)?);
            Some((format!("{number:?}"), json_float(number.into())))
        }
        Dtype::F64 => {
            let number = f64::from_le_bytes(array(bytes)?);
            Some((format!("{number:?}"), json_float(number)))
        }
        Dtype::C64 => {
            let re = f32::from_le_bytes(array(&bytes[..4])?);
            let im = f32::from_le_bytes(array(&bytes[4..])?);
            let json = format!("[{},{}]", json_float(re.into()), json_float(im.into()));
            Some((format!("{re:?} {im:+?}i"), json))
        }
        _ => None,
    }
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

    #[test]
    fn floats_are_exact_in_json_and_what_is_no_number_is_a_string() {
        for (dtype, bytes, text, json) in [
            (Dtype::Bf16, &[0x80, 0x3f][..], "1.0", "1.0"),
            (Dtype::Bf16, &[0x01, 0x00], "9.1835e-41", "9.183549615799121e-41"),
            (Dtype::Bf16, &[0x00, 0x80], "-0.0", "-0.0"),
            (Dtype::Bf16, &[0xc0, 0x7f], "NaN", "\"NaN\""),
            (Dtype::F32, &[0xcd, 0xcc, 0xcc, 0x3d], "0.1", "0.10000000149011612"),
            (Dtype::F32, &[0, 0, 0x80, 0xff], "-inf", "\"-Infinity\""),
            (Dtype::C64, &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0], "1.0 -2.0i", "[1.0,-2.0]"),
            (Dtype::Bool, &[1], "true", "true"),
            (Dtype::Bool, &[2], "no boolean (2)", "\"no boolean (2)\""),
            (Dtype::I16, &[0xfe, 0xff], "-2", "-2"),
            (Dtype::U64, &[255; 8], "18446744073709551615", "18446744073709551615"),
        ] {
            let (found_text, found_json) = read(dtype, bytes).unwrap();
            assert_eq!((found_text.as_str(), found_json.as_str()), (text, json), "{dtype}");
        }
        assert!(!has_values(Dtype::F8E4M3) && has_values(Dtype::Bf16));
    }
}
