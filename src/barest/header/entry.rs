//! What does one entry say about its tensor?
//!
//! ```text
//!   "wte.weight" : {"dtype":"BF16","shape":[50257,768],"data_offsets":[0,77194752]}
//!                   └─────────── three fields, each once, in any order ──────────┘
//! ```
//!
//! Whether they agree with each other is proved later, for all tensors at once. Other fields are
//! ignored, as the reference does, but must be JSON.

use super::super::dtype::Dtype;
use super::super::error::reserve::room;
use super::super::error::{Error, ErrorKind, Result};
use super::super::json::{Cursor, Text};
use super::shapes::{Dims, SHORTEST_DIMENSION};
use std::ops::Range;

/// The fields of an entry; its dimensions went into the arena.
pub struct Entry {
    pub dtype: Dtype,
    pub dims: Dims,
    pub begin: u64,
    pub end: u64,
    /// Whether there were fields besides the three.
    pub extra: bool,
    /// Where the shape stands, from bracket to bracket.
    pub shape_at: Range<usize>,
    /// Where the offsets stand, likewise.
    pub offsets_at: Range<usize>,
}

/// Objects around the value of a field: the header and the entry.
const OUTSIDE: usize = 2;

#[derive(Clone, Copy)]
enum Field {
    Dtype,
    Shape,
    DataOffsets,
}

impl Field {
    const NAMES: [&'static str; 3] = ["dtype", "shape", "data_offsets"];

    fn from_key(key: Text, text: &str) -> Option<Field> {
        let fields = [Field::Dtype, Field::Shape, Field::DataOffsets];
        fields.into_iter().find(|&field| key.is(text, Field::NAMES[field as usize]))
    }
}

/// Reads the value of a tensor's name.
pub fn read(cursor: &mut Cursor<'_>, text: &str, dims: &mut Vec<u64>) -> Result<Entry> {
    let start = cursor.position();
    if !cursor.take(b'{') {
        const EXPECTED: &str = "an object with dtype, shape and data_offsets";
        return Err(cursor.wrong_type("the entry of a tensor", EXPECTED));
    }
    let mut dtype = Dtype::U8;
    let mut shape = Dims::default();
    let mut offsets = (0, 0);
    let (mut shape_at, mut offsets_at) = (0..0, 0..0);
    let mut extra = false;
    // Where the key of each field stands; 0, where no key can stand, for not yet.
    let mut seen = [0; 3];
    cursor.skip_blanks();
    let mut more = !cursor.take(b'}');
    while more {
        let key = cursor.string("a field in quotes")?;
        cursor.expect(b':', "`:` after the key")?;
        cursor.skip_blanks();
        match Field::from_key(key, text) {
            None => {
                extra = true;
                cursor.skip_value(OUTSIDE)?;
            }
            Some(field) => {
                let first = std::mem::replace(&mut seen[field as usize], key.start as usize);
                if first != 0 {
                    let field = Field::NAMES[field as usize];
                    let kind = ErrorKind::DuplicateField { field, first: Error::offset_of(first) };
                    return Err(Error::at_header(kind, key.start as usize));
                }
                let at = cursor.position();
                match field {
                    Field::Dtype => dtype = read_dtype(cursor, text)?,
                    Field::Shape => {
                        shape = read_shape(cursor, text, dims)?;
                        shape_at = at..cursor.position();
                    }
                    Field::DataOffsets => {
                        offsets = read_offsets(cursor)?;
                        offsets_at = at..cursor.position();
                    }
                }
            }
        }
        more = cursor.another(b'}', "`,` or `}` in the entry")?;
    }
    if let Some(missing) = seen.iter().position(|&key| key == 0) {
        let kind = ErrorKind::MissingField { expected: Field::NAMES[missing] };
        return Err(Error::at_header(kind, start));
    }
    let (begin, end) = offsets;
    Ok(Entry { dtype, dims: shape, begin, end, extra, shape_at, offsets_at })
}

fn read_dtype(cursor: &mut Cursor<'_>, text: &str) -> Result<Dtype> {
    let position = cursor.position();
    if cursor.peek() != Some(b'"') {
        return Err(cursor.wrong_type("`dtype`", "a string"));
    }
    let name = cursor.string("a string")?;
    let dtype = match name.escaped {
        true => Dtype::ALL.iter().copied().find(|dtype| name.is(text, dtype.name())),
        false => Dtype::from_name(&text[name.range()]),
    };
    dtype.ok_or_else(|| {
        let found = name.characters(text).take(100).collect();
        Error::at_header(ErrorKind::UnknownDtype { found }, position)
    })
}

/// Puts the dimensions at the end of the arena and says where.
fn read_shape(cursor: &mut Cursor<'_>, text: &str, dims: &mut Vec<u64>) -> Result<Dims> {
    if !cursor.take(b'[') {
        return Err(cursor.wrong_type("`shape`", "an array of unsigned integers"));
    }
    let start = dims.len();
    cursor.skip_blanks();
    let mut more = !cursor.take(b']');
    while more {
        let dimension = cursor.unsigned("shape")?;
        room(dims, text.len() - cursor.position(), SHORTEST_DIMENSION)?;
        dims.push(dimension);
        more = cursor.another(b']', "`,` or `]` in the shape")?;
    }
    Ok(Dims::since(start, dims))
}

fn read_offsets(cursor: &mut Cursor<'_>) -> Result<(u64, u64)> {
    let position = cursor.position();
    if !cursor.take(b'[') {
        return Err(cursor.wrong_type("`data_offsets`", "an array of two unsigned integers"));
    }
    let mut offsets = [0; 2];
    let mut count = 0;
    cursor.skip_blanks();
    let mut more = !cursor.take(b']');
    while more {
        let offset = cursor.unsigned("data_offsets")?;
        match offsets.get_mut(count) {
            Some(place) => *place = offset,
            None => return Err(not_two(3, position)),
        }
        count += 1;
        more = cursor.another(b']', "`,` or `]` in the data_offsets")?;
    }
    match count {
        2 => Ok((offsets[0], offsets[1])),
        found => Err(not_two(found, position)),
    }
}

fn not_two(found: usize, position: usize) -> Error {
    Error::at_header(ErrorKind::NotTwoOffsets { found }, position)
}
