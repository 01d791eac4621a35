//! How is a tensor looked at without being copied?
//!
//! ```text
//!   TensorView<'a>   borrows its shard: name, dtype, shape, and bytes that live in the mapping
//!      │  bytes()            &'a [u8]              always
//!      │  chunks::<N>()      &'a [[u8; N]]         any address, any byte order
//!      │  as_slice::<T>()    &'a [T]               if the address suits T, or an error
//!      └─ elements::<E>()    numbers, one by one   any address, any byte order
//!   Tensor           the same tensor, holding its shard alive: no lifetime, still no copy
//! ```
//!
//! Nothing here reads a byte before it is asked for one: making a view, a row or an iterator faults
//! no page in.

use super::decode::sealed::ByteArray;
use super::decode::{Bf16, Element, Plain};
use super::dtype::Dtype;
use super::error::{Error, ErrorKind, Result};
use super::escape::{Brief, Shape};
use super::header::TensorInfo;
use super::mapping::Mapping;
use super::shard::Shard;
use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::io;
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
        self.shard.header.info(self.number)
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
    /// the first time faults its page in.
    pub fn bytes(&self) -> &'a [u8] {
        self.shard.slice(self.file_range())
    }

    /// The largest power of two that the address of its data is a multiple of, in bytes; a page at
    /// most.
    pub fn alignment(&self) -> usize {
        alignment_of(self.bytes())
    }

    /// Its elements as arrays of their bytes: any address, any byte order, no copy. `N` is the
    /// bytes of an element; another number, or a dtype below 8 bits, is
    /// [`WrongDtype`](ErrorKind::WrongDtype).
    pub fn chunks<const N: usize>(&self) -> Result<&'a [[u8; N]]> {
        if self.dtype().element_bytes() == Some(N) {
            return Ok(arrays(self.bytes()));
        }
        Err(self.wrong_dtype(Cow::Owned(format!("{N} byte{}", if N == 1 { "" } else { "s" }))))
    }

    /// Its elements as a slice of numbers, borrowed from the file. No copy.
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
        let bytes = self.bytes();
        if bytes.is_empty() {
            return Ok(&[]);
        }
        if cfg!(target_endian = "big") && size_of::<T>() > 1 {
            return Err(self.error(ErrorKind::ForeignByteOrder));
        }
        let (expected, found) = (align_of::<T>(), alignment_of(bytes));
        if found < expected {
            return Err(self.error(ErrorKind::Misaligned { expected, found }));
        }
        // SAFETY: the address was just found to suit T; T is Plain, so every bit pattern is a value
        // of it; the length is that of `bytes`, whose lifetime the slice takes over.
        Ok(unsafe {
            std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>())
        })
    }

    /// Its elements as numbers, read one by one when asked for: any address, any byte order, no
    /// copy. Another dtype than `E`'s is [`WrongDtype`](ErrorKind::WrongDtype).
    pub fn elements<E: Element>(&self) -> Result<Elements<'a, E>> {
        if self.dtype() != E::DTYPE {
            return Err(self.wrong_dtype(Cow::Borrowed(E::DTYPE.name())));
        }
        Ok(Elements {
            tensor: *self,
            shape: self.shape(),
            bytes: self.bytes(),
            element: PhantomData,
        })
    }

    /// [`TensorView::elements`] of a BF16 tensor, as `f32`.
    pub fn bf16(&self) -> Result<Bf16View<'a>> {
        self.elements()
    }

    /// Writes all elements of a BF16 or F32 tensor into `values`, which must have exactly
    /// [`len`](TensorView::len) places. Exact. Other dtypes are
    /// [`WrongDtype`](ErrorKind::WrongDtype).
    pub fn read_f32(&self, values: &mut [f32]) -> Result<()> {
        match self.dtype() {
            Dtype::F32 => self.elements::<f32>()?.read_f32(values),
            Dtype::Bf16 => self.bf16()?.read_f32(values),
            _ => Err(self.wrong_dtype(Cow::Borrowed("BF16 or F32"))),
        }
    }

    /// The same into new memory: 4 bytes an element. Fails as [`TensorView::read_f32`] does, and if
    /// there is no such memory.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        match self.dtype() {
            Dtype::F32 => self.elements::<f32>()?.to_vec(),
            Dtype::Bf16 => self.bf16()?.to_vec(),
            _ => Err(self.wrong_dtype(Cow::Borrowed("BF16 or F32"))),
        }
    }

    /// The same tensor without a lifetime: it keeps its file alive. Copies nothing.
    pub fn share(&self) -> Tensor {
        Tensor {
            shard: Arc::clone(self.shard),
            shard_number: self.shard_number,
            number: self.number,
        }
    }

    fn wrong_dtype(&self, expected: Cow<'static, str>) -> Error {
        self.error(ErrorKind::WrongDtype { expected, found: self.dtype() })
    }

    fn error(&self, kind: ErrorKind) -> Error {
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

/// The largest power of two that the address is a multiple of; a page at most.
fn alignment_of(bytes: &[u8]) -> usize {
    let page = Mapping::page_size();
    1 << (bytes.as_ptr() as usize | page).trailing_zeros()
}

/// Bytes as arrays of bytes; what does not fill an array is left out.
fn arrays<A: ByteArray>(bytes: &[u8]) -> &[A] {
    const { assert!(align_of::<A>() == 1 && size_of::<A>() > 0) }
    // SAFETY: A is an array of u8 (the trait is sealed), so any address suits it and any bytes are
    // a value of it; the quotient keeps the slice within `bytes`, whose lifetime it takes over.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<A>()) }
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

/// The elements of a BF16 tensor, as `f32`.
pub type Bf16View<'a> = Elements<'a, Bf16>;

/// The elements of a tensor, or of a row of it, read when asked for.
#[derive(Clone, Copy)]
pub struct Elements<'a, E: Element> {
    tensor: TensorView<'a>,
    shape: &'a [u64],
    bytes: &'a [u8],
    element: PhantomData<E>,
}

impl<'a, E: Element> Elements<'a, E> {
    /// The dimensions; for a row, those after the first.
    pub fn shape(&self) -> &'a [u64] {
        self.shape
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.raw().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The elements as they stand in the file.
    fn raw(&self) -> &'a [E::Raw] {
        arrays(self.bytes)
    }

    /// Element `index` in C order; `None` beyond the last.
    pub fn get(&self, index: usize) -> Option<E::Value> {
        self.raw().get(index).map(E::read)
    }

    /// All elements in C order.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = E::Value> + DoubleEndedIterator + Clone + use<'a, E> {
        self.raw().iter().map(E::read)
    }

    /// What stands at `index` of the first axis: for a matrix a row, for a vector one element, with
    /// the shape `[]`.
    ///
    /// An index that is not below the first dimension is [`OutOfRange`](ErrorKind::OutOfRange); a
    /// scalar has [`NoRows`](ErrorKind::NoRows).
    pub fn row(&self, index: usize) -> Result<Elements<'a, E>> {
        let Some((&rows, shape)) = self.shape.split_first() else {
            return Err(self.tensor.error(ErrorKind::NoRows));
        };
        let found = index as u64;
        if found >= rows {
            return Err(self.tensor.error(ErrorKind::OutOfRange { expected: rows, found }));
        }
        // Without elements rows may be more than a `usize`, and every row is empty.
        let len = (self.bytes.len() as u64 / rows) as usize;
        let start = index.saturating_mul(len);
        Ok(Elements { shape, bytes: &self.bytes[start..start + len], ..*self })
    }

    /// Writes all elements into `values`, which must have exactly as many places; if not,
    /// [`WrongLength`](ErrorKind::WrongLength) and nothing is written.
    pub fn read_into(&self, values: &mut [E::Value]) -> Result<()> {
        let (expected, found) = (self.len(), values.len());
        if found != expected {
            return Err(self.tensor.error(ErrorKind::WrongLength { expected, found }));
        }
        for (value, raw) in values.iter_mut().zip(self.raw()) {
            *value = E::read(raw);
        }
        Ok(())
    }

    /// All elements in new memory. Fails if there is no such memory.
    pub fn to_vec(&self) -> Result<Vec<E::Value>> {
        let mut values = Vec::new();
        values.try_reserve_exact(self.len()).map_err(|_| {
            let refused = io::ErrorKind::OutOfMemory.into();
            self.tensor
                .error(ErrorKind::Io { action: "reserve memory for the values", source: refused })
        })?;
        values.extend(self.iter());
        Ok(values)
    }
}

impl<E: Element<Value = f32>> Elements<'_, E> {
    /// [`Elements::read_into`], by the name that all float views have.
    pub fn read_f32(&self, values: &mut [f32]) -> Result<()> {
        self.read_into(values)
    }

    /// [`Elements::to_vec`], by the name that all float views have.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        self.to_vec()
    }
}

impl<E: Element> Debug for Elements<'_, E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, shape) = (Brief(self.tensor.name()), Shape(self.shape));
        write!(f, "elements {shape} of `{name}`, {}", E::DTYPE)
    }
}
