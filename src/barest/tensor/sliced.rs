//! How is a part of a tensor used?
//!
//! What lies together is borrowed like a tensor of its own; what does not is walked over run by run,
//! or copied into a buffer. Neither needs memory that grows with the part.

use super::super::decode::{Element, Float};
use super::super::dtype::Dtype;
use super::super::error::{ErrorKind, Result};
use super::super::escape::{Brief, Shape};
use super::super::slice::{Runs, Select, Selection, select};
use super::TensorView;
use super::borrow::arrays;
use super::elements::reserve;
use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::ops::Range;

/// A part of a tensor. Its values are those of the tensor's bytes; nothing is copied to make it.
#[derive(Clone)]
pub struct Sliced<'a> {
    tensor: TensorView<'a>,
    selection: Selection,
}

impl<'a> Sliced<'a> {
    pub(super) fn of(tensor: TensorView<'a>, selects: &[Select]) -> Result<Sliced<'a>> {
        let dtype = tensor.dtype();
        match select(tensor.shape(), dtype.bits(), selects) {
            Ok(selection) => Ok(Sliced { tensor, selection }),
            Err(ErrorKind::PartOfByte) => Err(tensor.error(ErrorKind::SplitsByte { dtype })),
            Err(kind) => Err(tensor.error(kind)),
        }
    }

    /// The tensor it is a part of.
    pub fn tensor(&self) -> TensorView<'a> {
        self.tensor
    }

    /// The type of its elements.
    pub fn dtype(&self) -> Dtype {
        self.tensor.dtype()
    }

    /// The dimensions that are left; an axis of which one index was taken is none of them.
    pub fn shape(&self) -> &[u64] {
        &self.selection.shape
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.selection.elements() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of its elements.
    pub fn byte_len(&self) -> usize {
        self.selection.byte_len() as usize
    }

    /// Its bytes, run by run in C order, borrowed from the file. Runs can report no loss: ask
    /// [`Model::still_whole`](super::super::Model::still_whole) after use, also of the following two.
    pub fn runs(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.tensor.bytes();
        let runs: Runs = self.selection.runs();
        runs.map(move |run| &bytes[run.start as usize..run.end as usize])
    }

    /// Where its bytes stand, run by run, in bytes from the start of the file.
    pub fn file_ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let start = self.tensor.file_range().start;
        self.selection.runs().map(move |run| start + run.start..start + run.end)
    }

    /// Its bytes, if they lie together.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        let mut runs = self.runs();
        match (runs.next(), runs.next()) {
            (None, _) => Some(&[]),
            (Some(run), None) => Some(run),
            _ => None,
        }
    }

    /// Copies its bytes, in C order, into a buffer of exactly so many; another length is
    /// [`WrongByteLength`](ErrorKind::WrongByteLength), and nothing is written. If the guard noted that
    /// bytes of its were lost, [`Truncated`](ErrorKind::Truncated), and the copy is not to be used.
    pub fn copy_to(&self, buffer: &mut [u8]) -> Result<()> {
        let (expected, found) = (self.byte_len(), buffer.len());
        if expected != found {
            return Err(self.tensor.error(ErrorKind::WrongByteLength { expected, found }));
        }
        let mut rest = buffer;
        for run in self.runs() {
            let (here, behind) = rest.split_at_mut(run.len());
            here.copy_from_slice(run);
            rest = behind;
        }
        self.tensor.check_read(|| self.file_ranges())
    }

    /// Its elements as values, in C order, read when asked for: an iterator can report no loss. Another dtype than `E`'s is
    /// [`WrongDtype`](ErrorKind::WrongDtype). Of BOOL every byte of the tensor is looked at first.
    pub fn values<E: Element>(&self) -> Result<impl Iterator<Item = E::Value> + use<'a, E>> {
        self.tensor.elements::<E>()?;
        Ok(self.runs().flat_map(|run| {
            let raw: &[E::Raw] = arrays(run);
            raw.iter().flat_map(|group| (0..E::PER_GROUP).map(move |place| E::read(group, place)))
        }))
    }

    /// Writes its elements into `values` as `f32`, in C order; see [`TensorView::read_f32`]. Lost bytes
    /// are reported as by [`Sliced::copy_to`].
    pub fn read_f32(&self, values: &mut [f32]) -> Result<()> {
        self.tensor.floats()?;
        self.expect_len(self.len(), values.len())?;
        macro_rules! of {
            ($($dtype:ident $element:ty),*) => {
                match self.dtype() {
                    $(Dtype::$dtype => widen_runs::<$element>(self.runs(), values),)*
                    _ => return Err(self.tensor.wrong_dtype(Cow::Borrowed("a float dtype"))),
                }
            };
        }
        use super::super::decode::*;
        of!(
            Bf16 Bf16, F16 F16, F32 f32, F64 f64, F8E4M3 F8E4M3, F8E5M2 F8E5M2, F8E8M0 F8E8M0,
            F8E4M3Fnuz F8E4M3Fnuz, F8E5M2Fnuz F8E5M2Fnuz, F6E2M3 F6E2M3, F6E3M2 F6E3M2, F4 F4
        );
        self.tensor.check_read(|| self.file_ranges())
    }

    /// The same into new memory. Fails if there is no such memory.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        self.tensor.floats()?;
        let mut values = reserve(self.len(), &self.tensor)?;
        values.resize(self.len(), 0.0);
        self.read_f32(&mut values)?;
        Ok(values)
    }

    fn expect_len(&self, expected: usize, found: usize) -> Result<()> {
        match expected == found {
            true => Ok(()),
            false => Err(self.tensor.error(ErrorKind::WrongLength { expected, found })),
        }
    }
}

fn widen_runs<'a, E: Float>(runs: impl Iterator<Item = &'a [u8]>, values: &mut [f32]) {
    let mut rest = values;
    for run in runs {
        let raw: &[E::Raw] = arrays(run);
        let (here, behind) = rest.split_at_mut(raw.len() * E::PER_GROUP);
        E::widen(raw, here);
        rest = behind;
    }
}

impl Debug for Sliced<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, shape) = (Brief(self.tensor.name()), Shape(self.shape()));
        write!(f, "{} {shape} of `{name}`", self.dtype())
    }
}
