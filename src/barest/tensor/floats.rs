//! How are floats read by someone who does not care which kind they are?
//!
//! The dtype is looked at once for each request, and the request then goes to the view of that
//! dtype: the values are the same, bit for bit.

use super::super::decode::{
    Bf16, F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, F16,
};
use super::super::dtype::Dtype;
use super::super::error::Result;
use super::TensorView;
use super::elements::Elements;
use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;

/// The elements of a tensor of any float dtype, as `f32`.
#[derive(Clone, Copy)]
pub struct Floats<'a> {
    tensor: TensorView<'a>,
    shape: &'a [u64],
    bytes: &'a [u8],
}

/// Does something with the elements as those of their dtype.
macro_rules! with_elements {
    ($floats:expr, $elements:ident => $work:expr) => {{
        macro_rules! of {
            ($element:ty) => {{
                let $elements = $floats.elements::<$element>();
                $work
            }};
        }
        match $floats.tensor.dtype() {
            Dtype::Bf16 => of!(Bf16),
            Dtype::F16 => of!(F16),
            Dtype::F64 => of!(f64),
            Dtype::F8E4M3 => of!(F8E4M3),
            Dtype::F8E5M2 => of!(F8E5M2),
            Dtype::F8E8M0 => of!(F8E8M0),
            Dtype::F8E4M3Fnuz => of!(F8E4M3Fnuz),
            Dtype::F8E5M2Fnuz => of!(F8E5M2Fnuz),
            Dtype::F6E2M3 => of!(F6E2M3),
            Dtype::F6E3M2 => of!(F6E3M2),
            Dtype::F4 => of!(F4),
            // `Floats::of` lets no other dtype in.
            _ => of!(f32),
        }
    }};
}

impl<'a> Floats<'a> {
    pub(super) fn of(tensor: TensorView<'a>) -> Result<Floats<'a>> {
        match tensor.dtype() {
            Dtype::Bool | Dtype::C64 => {}
            Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => {}
            Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 => {}
            _ => return Ok(Floats { tensor, shape: tensor.shape(), bytes: tensor.bytes() }),
        }
        Err(tensor.wrong_dtype(Cow::Borrowed("a float dtype")))
    }

    fn elements<E: super::super::decode::Float>(&self) -> Elements<'a, E> {
        debug_assert_eq!(self.tensor.dtype(), E::DTYPE);
        let (tensor, shape, bytes) = (self.tensor, self.shape, self.bytes);
        Elements { tensor, shape, bytes, element: PhantomData }
    }

    /// The dimensions; for a row, those after the first.
    pub fn shape(&self) -> &'a [u64] {
        self.shape
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        with_elements!(self, elements => elements.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// As [`Elements::get`].
    pub fn get(&self, index: usize) -> Option<f32> {
        use super::super::decode::Float;
        fn one<E: Float>(elements: Elements<'_, E>, index: usize) -> Option<f32> {
            elements.get(index).map(E::to_f32)
        }
        with_elements!(self, elements => one(elements, index))
    }

    /// As [`Elements::iter`].
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = f32> + DoubleEndedIterator + Clone + use<'a> {
        let floats = *self;
        (0..self.len()).map(move |index| floats.get(index).unwrap_or_default())
    }

    /// As [`Elements::row`].
    pub fn row(&self, index: usize) -> Result<Floats<'a>> {
        with_elements!(self, elements => {
            let row = elements.row(index)?;
            Ok(Floats { tensor: self.tensor, shape: row.shape, bytes: row.bytes })
        })
    }

    /// As [`Elements::read_f32`].
    pub fn read_f32(&self, values: &mut [f32]) -> Result<()> {
        with_elements!(self, elements => elements.read_f32(values))
    }

    /// As [`Elements::to_f32`].
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        with_elements!(self, elements => elements.to_f32())
    }

    /// As [`Elements::dot`].
    pub fn dot(&self, factors: &[f32]) -> Result<f32> {
        with_elements!(self, elements => elements.dot(factors))
    }
}

impl Debug for Floats<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        with_elements!(self, elements => elements.fmt(f))
    }
}
