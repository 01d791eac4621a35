//! How are values read one by one, without a copy in between?

use super::super::decode::{Bf16, Element, Float};
use super::super::error::{Error, ErrorKind, Result};
use super::super::escape::{Brief, Shape};
use super::TensorView;
use super::borrow::arrays;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::marker::PhantomData;

/// The elements of a BF16 tensor, as `f32`.
pub type Bf16View<'a> = Elements<'a, Bf16>;

/// The elements of a tensor, or of a part of it that lies in one piece, read when asked for.
#[derive(Clone, Copy)]
pub struct Elements<'a, E: Element> {
    pub(super) tensor: TensorView<'a>,
    pub(super) shape: &'a [u64],
    /// INVARIANT: whole groups of elements.
    pub(super) bytes: &'a [u8],
    pub(super) element: PhantomData<E>,
}

impl<'a, E: Element> Elements<'a, E> {
    /// The dimensions; for a row, those after the first.
    pub fn shape(&self) -> &'a [u64] {
        self.shape
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.raw().len() * E::PER_GROUP
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The elements as they stand in the file, in groups.
    pub(super) fn raw(&self) -> &'a [E::Raw] {
        arrays(self.bytes)
    }

    /// Element `index` in C order; `None` beyond the last. Reports no loss: ask
    /// [`Model::still_whole`](super::super::Model::still_whole) after use.
    pub fn get(&self, index: usize) -> Option<E::Value> {
        let group = self.raw().get(index / E::PER_GROUP)?;
        Some(E::read(group, index % E::PER_GROUP))
    }

    /// All elements in C order. Reports no loss: ask
    /// [`Model::still_whole`](super::super::Model::still_whole) after use.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = E::Value> + DoubleEndedIterator + Clone + use<'a, E> {
        let raw = self.raw();
        (0..self.len()).map(move |index| E::read(&raw[index / E::PER_GROUP], index % E::PER_GROUP))
    }

    /// What stands at `index` of the first axis: for a matrix a row, for a vector one element, with
    /// the shape `[]`.
    ///
    /// An index that is not below the first dimension is [`OutOfRange`](ErrorKind::OutOfRange); a
    /// scalar has [`NoRows`](ErrorKind::NoRows); rows of elements below 8 bits that do not begin
    /// with a byte [`SplitsByte`](ErrorKind::SplitsByte).
    pub fn row(&self, index: usize) -> Result<Elements<'a, E>> {
        let Some((&rows, shape)) = self.shape.split_first() else {
            return Err(self.tensor.error(ErrorKind::NoRows));
        };
        let found = index as u64;
        if found >= rows {
            return Err(self.tensor.error(ErrorKind::OutOfRange { expected: rows, found }));
        }
        // Without elements rows may be more than a `usize`, and every row is empty.
        let elements = self.len() as u64 / rows;
        let bits = elements * E::DTYPE.bits();
        if bits % 8 != 0 {
            return Err(self.tensor.error(ErrorKind::SplitsByte { dtype: E::DTYPE }));
        }
        let len = (bits / 8) as usize;
        let start = index.saturating_mul(len);
        Ok(Elements { shape, bytes: &self.bytes[start..start + len], ..*self })
    }

    /// Writes all elements into `values`, which must have exactly as many places; if not,
    /// [`WrongLength`](ErrorKind::WrongLength) and nothing is written. If the guard noted that bytes
    /// of theirs were lost, [`Truncated`](ErrorKind::Truncated), and what was written is not to be
    /// used; so it is with all that follow.
    pub fn read_into(&self, values: &mut [E::Value]) -> Result<()> {
        self.expect_len(values.len())?;
        for (values, group) in values.chunks_exact_mut(E::PER_GROUP).zip(self.raw()) {
            for (place, value) in values.iter_mut().enumerate() {
                *value = E::read(group, place);
            }
        }
        self.check_read()
    }

    /// All elements in new memory. Fails if there is no such memory.
    pub fn to_vec(&self) -> Result<Vec<E::Value>> {
        let mut values = reserve(self.len(), &self.tensor)?;
        values.extend(self.iter());
        self.check_read()?;
        Ok(values)
    }

    /// For after a loop over all of its bytes: were they the file's?
    #[inline]
    fn check_read(&self) -> Result<()> {
        self.tensor.check_read(|| {
            let before = self.bytes.as_ptr() as usize - self.tensor.bytes().as_ptr() as usize;
            let start = self.tensor.file_range().start + before as u64;
            std::iter::once(start..start + self.bytes.len() as u64)
        })
    }

    fn expect_len(&self, found: usize) -> Result<()> {
        match self.len() {
            expected if expected == found => Ok(()),
            expected => Err(self.tensor.error(ErrorKind::WrongLength { expected, found })),
        }
    }
}

impl<E: Float> Elements<'_, E> {
    /// Writes all elements into `values` as `f32`, many at a time; if it has not exactly as many
    /// places, [`WrongLength`](ErrorKind::WrongLength) and nothing is written. Exact, but for F64,
    /// which is rounded to the nearest. Lost bytes are reported as by [`Elements::read_into`].
    pub fn read_f32(&self, values: &mut [f32]) -> Result<()> {
        self.expect_len(values.len())?;
        E::widen(self.raw(), values);
        self.check_read()
    }

    /// The same into new memory. Fails if there is no such memory.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        let mut values = reserve(self.len(), &self.tensor)?;
        values.resize(self.len(), 0.0);
        E::widen(self.raw(), &mut values);
        self.check_read()?;
        Ok(values)
    }

    /// The sum of the products of all elements, as `f32`, and as many factors, in the order that
    /// [`LANES`](super::super::decode::LANES) tells. Nothing is copied: a matrix times a vector is one
    /// of these for each row. [`WrongLength`](ErrorKind::WrongLength) for another number of factors;
    /// [`Truncated`](ErrorKind::Truncated) for bytes of theirs that the guard noted as lost.
    pub fn dot(&self, factors: &[f32]) -> Result<f32> {
        self.expect_len(factors.len())?;
        let sum = E::dot(self.raw(), factors);
        self.check_read()?;
        Ok(sum)
    }
}

/// An empty vector with room for so many values; or the error that there is no such memory, where
/// `with_capacity` would end the program.
pub(super) fn reserve<T>(len: usize, tensor: &TensorView<'_>) -> Result<Vec<T>> {
    let mut values = Vec::new();
    match values.try_reserve_exact(len) {
        Ok(()) => Ok(values),
        Err(_) => Err(no_memory(tensor)),
    }
}

fn no_memory(tensor: &TensorView<'_>) -> Error {
    let source = io::ErrorKind::OutOfMemory.into();
    tensor.error(ErrorKind::Io { action: "reserve memory for the values", source })
}

impl<E: Element> Debug for Elements<'_, E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, shape) = (Brief(self.tensor.name()), Shape(self.shape));
        write!(f, "elements {shape} of `{name}`, {}", E::DTYPE)
    }
}
