//! How is a tensor looked at without being copied?
//!
//! ```text
//!   TensorView<'a>   borrows its shard: name, dtype, shape, and bytes that live in the mapping
//!      │  bytes()            &'a [u8]              always
//!      │  chunks::<N>()      &'a [[u8; N]]         any address, any byte order
//!      │  as_slice::<T>()    &'a [T]               if the address suits T, or an error
//!      │  elements::<E>()    values, one by one    any address, any byte order
//!      │  floats()           f32 whatever float    any address, any byte order
//!      │  row, narrow, slice a part of it          the same again, or a copy
//!   Tensor           the same tensor, holding its shard alive: no lifetime, still no copy
//! ```
//!
//! Nothing here reads a byte before it is asked for one: making a view, a row or an iterator faults
//! no page in.

mod borrow;
mod elements;
mod floats;
mod present;
mod sliced;

pub use elements::{Bf16View, Elements};
pub use floats::Floats;
pub use sliced::Sliced;

use super::decode::{Bool, Element, F16, Plain};
use super::dtype::Dtype;
use super::error::{Error, ErrorKind, Result};
use super::header::TensorInfo;
use super::shard::Shard;
use super::slice::Select;
use borrow::arrays;
use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// A tensor, borrowed from its model. Small and `Copy`.
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    pub(super) shard: &'a Arc<Shard>,
    pub(super) shard_number: usize,
    /// Its place in the shard's file order.
    pub(super) number: usize,
}

impl<'a> TensorView<'a> {
    /// What the header says of it.
    pub fn info(&self) -> TensorInfo<'a> {
        self.shard.header().info(self.number)
    }

    /// The name, escapes resolved. It may hold any character: show it through
    /// [`Shown`](super::escape::Shown).
    pub fn name(&self) -> &'a str {
        self.info().name()
    }

    /// The type of its elements.
    pub fn dtype(&self) -> Dtype {
        self.info().dtype()
    }

    /// Its dimensions, the slowest first (C order, no strides); none for a scalar.
    pub fn shape(&self) -> &'a [u64] {
        self.info().shape()
    }

    /// Elements: the product of the dimensions, 1 for a scalar.
    pub fn len(&self) -> usize {
        // Its bytes are in memory, so they are at most `isize::MAX`, and two elements fill a byte
        // at most.
        self.info().elements() as usize
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.byte_len() == 0
    }

    /// Bytes of data.
    pub fn byte_len(&self) -> usize {
        self.info().byte_len() as usize
    }

    /// Where its data stands, in bytes from the start of its file.
    pub fn file_range(&self) -> Range<u64> {
        self.info().file_range()
    }

    /// The number of its shard in the model.
    pub fn shard(&self) -> usize {
        self.shard_number
    }

    /// Its data, little-endian, elements below 8 bits packed. Copies nothing. Touching a byte for
    /// the first time faults its page in. A slice can report no loss: ask
    /// [`Model::still_whole`](super::Model::still_whole) after use, also of what is made of it.
    pub fn bytes(&self) -> &'a [u8] {
        self.shard.slice(self.file_range())
    }

    /// The largest power of two that the address of its data is a multiple of, in bytes; a page at
    /// most.
    pub fn alignment(&self) -> usize {
        borrow::alignment(self.bytes())
    }

    /// Its elements as arrays of their bytes, with what is said of
    /// [`bytes`](TensorView::bytes): any address, any byte order, no copy. `N` is the
    /// bytes of an element; another number, or a dtype below 8 bits, is
    /// [`WrongDtype`](ErrorKind::WrongDtype).
    pub fn chunks<const N: usize>(&self) -> Result<&'a [[u8; N]]> {
        if self.dtype().element_bytes() == Some(N) {
            return Ok(arrays(self.bytes()));
        }
        Err(self.wrong_dtype(Cow::Owned(format!("{N} byte{}", if N == 1 { "" } else { "s" }))))
    }

    /// Its elements as a slice of numbers, borrowed from the file, with what is said of
    /// [`bytes`](TensorView::bytes). No copy.
    ///
    /// Fails with [`WrongDtype`](ErrorKind::WrongDtype) if `T` does not stand for its dtype (see
    /// [`Plain::DTYPES`]), with [`Misaligned`](ErrorKind::Misaligned) if its address does not suit
    /// `T`, which the format allows and unpadded files have, and with
    /// [`ForeignByteOrder`](ErrorKind::ForeignByteOrder) on a big-endian machine. An empty tensor
    /// is an empty slice everywhere. [`TensorView::elements`] always works.
    pub fn as_slice<T: Plain>(&self) -> Result<&'a [T]> {
        if !T::DTYPES.contains(&self.dtype()) {
            return Err(self.wrong_dtype(Cow::Borrowed(T::NAME)));
        }
        borrow::typed(self.bytes()).map_err(|kind| self.error(kind))
    }

    /// Its elements as values, read one by one when asked for: any address, any byte order, no copy.
    /// Another dtype than `E`'s is [`WrongDtype`](ErrorKind::WrongDtype).
    ///
    /// Of BOOL every byte is looked at first, and one that is neither 0 nor 1 is
    /// [`NotABool`](ErrorKind::NotABool); of other dtypes no page is faulted in. If the guard noted
    /// that bytes of a BOOL tensor were lost: [`Truncated`](ErrorKind::Truncated).
    pub fn elements<E: Element>(&self) -> Result<Elements<'a, E>> {
        if self.dtype() != E::DTYPE {
            return Err(self.wrong_dtype(Cow::Borrowed(E::DTYPE.name())));
        }
        let bytes = self.bytes();
        let first_invalid = E::first_invalid(arrays(bytes));
        if E::DTYPE == Dtype::Bool {
            self.check_read(|| std::iter::once(self.file_range()))?;
        }
        if let Some(index) = first_invalid {
            let found = bytes.get(index).copied().unwrap_or_default();
            return Err(self.error(ErrorKind::NotABool { index, found }));
        }
        Ok(Elements { tensor: *self, shape: self.shape(), bytes, element: PhantomData })
    }

    /// [`TensorView::elements`] of a BF16 tensor, as `f32`.
    pub fn bf16(&self) -> Result<Bf16View<'a>> {
        self.elements()
    }

    /// [`TensorView::elements`] of an F16 tensor, as `f32`.
    pub fn f16(&self) -> Result<Elements<'a, F16>> {
        self.elements()
    }

    /// [`TensorView::elements`] of a BOOL tensor.
    pub fn bools(&self) -> Result<Elements<'a, Bool>> {
        self.elements()
    }

    /// Its elements as `f32` whatever float they are: the narrow ones exactly, F64 rounded to the
    /// nearest. Integers, BOOL and C64 are [`WrongDtype`](ErrorKind::WrongDtype).
    pub fn floats(&self) -> Result<Floats<'a>> {
        Floats::of(*self)
    }

    /// Writes all elements of a float tensor into `values`, which must have exactly
    /// [`len`](TensorView::len) places; see [`TensorView::floats`].
    pub fn read_f32(&self, values: &mut [f32]) -> Result<()> {
        self.floats()?.read_f32(values)
    }

    /// The same into new memory: 4 bytes an element. Fails as [`TensorView::read_f32`] does, and if
    /// there is no such memory. Fresh memory costs more than the conversion: to read tensor after
    /// tensor, keep a buffer and use [`TensorView::read_f32`].
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        self.floats()?.to_f32()
    }

    /// What stands at `index` of the first axis, with the remaining axes. Borrows.
    ///
    /// Fails with [`NoRows`](ErrorKind::NoRows) for a scalar, with
    /// [`OutOfRange`](ErrorKind::OutOfRange), and with [`SplitsByte`](ErrorKind::SplitsByte) if a
    /// row of elements below 8 bits does not begin and end with a byte.
    pub fn row(&self, index: usize) -> Result<Sliced<'a>> {
        if self.shape().is_empty() {
            return Err(self.error(ErrorKind::NoRows));
        }
        self.slice(&[Select::Index(index as u64)])
    }

    /// A range of one axis, all of the others. Borrows.
    ///
    /// Fails with [`NoSuchAxis`](ErrorKind::NoSuchAxis), with [`BadRange`](ErrorKind::BadRange) if the
    /// range ends behind the axis or before it begins, and with
    /// [`SplitsByte`](ErrorKind::SplitsByte). An empty range is fine.
    pub fn narrow(&self, axis: usize, range: Range<u64>) -> Result<Sliced<'a>> {
        if axis >= self.shape().len() {
            let rank = self.shape().len();
            return Err(self.error(ErrorKind::NoSuchAxis { expected: rank, found: axis }));
        }
        let mut selects = vec![Select::all(); axis];
        selects.push(range.into());
        self.slice(&selects)
    }

    /// A part of it: for each axis from the first on an index, a range or a range with a step; axes
    /// that are not named are taken whole. Borrows; memory for a few numbers an axis.
    ///
    /// ```text
    ///   [2.into(), (0..64).into(), Select::all().every(2)]      row 2, its first 64, every other one
    /// ```
    ///
    /// Fails as [`TensorView::narrow`] does, with [`BadRange`](ErrorKind::BadRange) also for a step of
    /// 0, and with [`OutOfRange`](ErrorKind::OutOfRange) for an index.
    pub fn slice(&self, selects: &[Select]) -> Result<Sliced<'a>> {
        Sliced::of(*self, selects)
    }

    /// The part of one of `world` equal workers along an axis, as tensor parallelism deals them
    /// out: rank 0 has the first. Borrows.
    ///
    /// Fails as [`TensorView::narrow`] does, with [`OutOfRange`](ErrorKind::OutOfRange) if `rank` is
    /// not below `world`, and with [`Uneven`](ErrorKind::Uneven) if the axis cannot be dealt out
    /// evenly.
    pub fn tensor_parallel(&self, axis: usize, rank: u64, world: u64) -> Result<Sliced<'a>> {
        let Some(&dimension) = self.shape().get(axis) else {
            let rank = self.shape().len();
            return Err(self.error(ErrorKind::NoSuchAxis { expected: rank, found: axis }));
        };
        if rank >= world {
            return Err(self.error(ErrorKind::OutOfRange { expected: world, found: rank }));
        }
        if dimension % world != 0 {
            return Err(self.error(ErrorKind::Uneven { dimension, world }));
        }
        let share = dimension / world;
        self.narrow(axis, rank * share..(rank + 1) * share)
    }

    /// The same tensor without a lifetime: it keeps its file alive. Copies nothing.
    pub fn share(&self) -> Tensor {
        Tensor {
            shard: Arc::clone(self.shard),
            shard_number: self.shard_number,
            number: self.number,
        }
    }

    pub(super) fn wrong_dtype(&self, expected: Cow<'static, str>) -> Error {
        self.error(ErrorKind::WrongDtype { expected, found: self.dtype() })
    }

    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        let error = Error::new(kind).in_tensor(self.name());
        match self.shard.path() {
            Some(path) => error.in_file(path),
            None => error,
        }
    }
}

impl Debug for TensorView<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.info().fmt(f)
    }
}

/// A tensor that keeps its file alive: `'static`, `Send`, `Sync`, cheap to clone. The pages stay
/// mapped until the model and the last of its tensors are dropped.
#[derive(Clone)]
pub struct Tensor {
    shard: Arc<Shard>,
    shard_number: usize,
    number: usize,
}

impl Tensor {
    /// Everything that can be asked of it.
    pub fn view(&self) -> TensorView<'_> {
        TensorView { shard: &self.shard, shard_number: self.shard_number, number: self.number }
    }
}

impl Debug for Tensor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}
