//! How are floats of one dtype written as those of another?
//!
//! Value by value, rounded once, to the nearest and from halfway to the even one; a few thousand
//! at a time.

use barest::{Bf16, Dtype, F16, TensorView};
use std::io::{self, Write};

/// Whether a dtype is converted at all. Those of 8 bits and fewer usually belong to a scale that
/// stands elsewhere.
pub fn is_convertible(dtype: Dtype) -> bool {
    [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::Bf16].contains(&dtype)
}

/// Writes the values of a tensor as `dtype`, which is F32, F16 or BF16, and counts the finite ones
/// that became infinite.
pub fn pour(view: &TensorView<'_>, dtype: Dtype, to: &mut dyn Write) -> io::Result<u64> {
    let mut narrowed = Narrowed { dtype, to, bytes: Vec::with_capacity(ENOUGH), overflowed: 0 };
    let refused = |error: barest::Error| io::Error::other(error.to_string());
    match view.dtype() {
        Dtype::F64 => {
            let values = view.elements::<f64>().map_err(refused)?;
            values.iter().try_for_each(|value| narrowed.put_f64(value))?;
        }
        _ => {
            let values = view.floats().map_err(refused)?;
            values.iter().try_for_each(|value| narrowed.put_f32(value))?;
        }
    }
    narrowed.flush()?;
    Ok(narrowed.overflowed)
}

/// Bytes that are collected before they are passed on.
const ENOUGH: usize = 64 << 10;

struct Narrowed<'a> {
    dtype: Dtype,
    to: &'a mut dyn Write,
    bytes: Vec<u8>,
    overflowed: u64,
}

impl Narrowed<'_> {
    fn put_f64(&mut self, value: f64) -> io::Result<()> {
        let became = match self.dtype {
            Dtype::Bf16 => self.put_16(Bf16::from_f64(value).0, |bits| Bf16(bits).to_f32()),
            Dtype::F16 => self.put_16(F16::from_f64(value).0, |bits| F16(bits).to_f32()),
            _ => self.put_32(value as f32),
        };
        self.count(value.is_finite(), became)
    }

    fn put_f32(&mut self, value: f32) -> io::Result<()> {
        let became = match self.dtype {
            Dtype::Bf16 => self.put_16(Bf16::from_f32(value).0, |bits| Bf16(bits).to_f32()),
            Dtype::F16 => self.put_16(F16::from_f32(value).0, |bits| F16(bits).to_f32()),
            _ => self.put_32(value),
        };
        self.count(value.is_finite(), became)
    }

    fn put_16(&mut self, bits: u16, value: impl Fn(u16) -> f32) -> f32 {
        self.bytes.extend_from_slice(&bits.to_le_bytes());
        value(bits)
    }

    fn put_32(&mut self, value: f32) -> f32 {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        value
    }

    fn count(&mut self, was_finite: bool, became: f32) -> io::Result<()> {
        self.overflowed += u64::from(was_finite && became.is_infinite());
        if self.bytes.len() + 4 > ENOUGH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}
