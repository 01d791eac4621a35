//! What a view answers, where it says no and with which numbers, and what asking costs.
//!
//! This test binary counts its allocations: each thread its own, so that tests do not disturb each
//! other. Memory that is mapped is not counted; a header never lies in such memory.

// It is shared, and not all of it is needed here.
#[path = "common/counting.rs"]
#[allow(dead_code)]
mod counting;

use barest::{Bf16, Dtype, Element, Error, ErrorKind, Header, Mapping, Model, Plain, TensorView};
use counting::cost;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

#[test]
fn the_counting_counts() {
    let (_, nothing) = cost(|| std::hint::black_box(1 + 1));
    assert_eq!((nothing.allocations, nothing.peak), (0, 0));
    let (_, two) = cost(|| {
        drop(std::hint::black_box(vec![0u8; 1000]));
        std::hint::black_box(vec![0u8; 500])
    });
    assert_eq!((two.allocations, two.peak), (2, 1000));
}

// Files to look at.

struct File {
    entries: String,
    data: Vec<u8>,
}

impl File {
    fn new() -> File {
        File { entries: String::new(), data: Vec::new() }
    }

    /// A tensor of bytes that differ from their neighbours, behind what is there.
    fn tensor(mut self, name: &str, dtype: Dtype, shape: &[u64]) -> File {
        let elements: u64 = match shape.contains(&0) {
            true => 0,
            false => shape.iter().product(),
        };
        let begin = self.data.len();
        let len = (elements * dtype.bits() / 8) as usize;
        self.data.extend((0..len).map(|at| (at * 83 + 129) as u8));
        let comma = if self.entries.is_empty() { "" } else { "," };
        let end = begin + len;
        write!(
            self.entries,
            r#"{comma}"{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{begin},{end}]}}"#
        )
        .unwrap();
        self
    }

    /// The file, padded with spaces to data that begin `offset` bytes behind a multiple of 8.
    fn at(self, offset: usize) -> Vec<u8> {
        let mut header = format!("{{{}}}", self.entries);
        while header.len() % 8 != offset {
            header.push(' ');
        }
        file_of(&header, &self.data)
    }

    fn model(self) -> Model {
        Model::from_bytes(&self.at(0)).unwrap()
    }
}

fn file_of(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(name: &str, bytes: &[u8]) -> TemporaryFile {
        let name = format!("barest-views-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, bytes).unwrap();
        TemporaryFile(path)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

// Borrowing.

/// A typed borrow where the address allows it, an error with its numbers where it does not, and the
/// same numbers by the other two ways in either case.
fn borrow_and_read<T: Plain + Element, const N: usize>(
    model: &Model,
    to_bytes: fn(T) -> [u8; N],
    value_to_bytes: fn(T::Value) -> [u8; N],
) {
    let view = model.tensor(T::DTYPE.name()).unwrap();
    let bytes = view.bytes();
    let place = view.file_range().start as usize;
    let alignment = (1 << place.trailing_zeros()).min(Mapping::page_size());
    assert_eq!(view.alignment(), alignment, "{view:?}");

    let is_foreign = cfg!(target_endian = "big") && N > 1;
    match (view.as_slice::<T>(), place % align_of::<T>()) {
        (Ok(numbers), 0) if !is_foreign => {
            let found: Vec<[u8; N]> = numbers.iter().map(|&number| to_bytes(number)).collect();
            assert_eq!(found.concat(), bytes, "{view:?}");
            assert_eq!(numbers.as_ptr().cast(), bytes.as_ptr(), "{view:?} was copied");
        }
        (Err(error), off) => match *error.kind() {
            ErrorKind::ForeignByteOrder if is_foreign => {}
            ErrorKind::Misaligned { expected, found } if off != 0 => {
                assert_eq!((expected, found), (align_of::<T>(), alignment), "{view:?}");
                assert_eq!(error.tensor(), Some(T::DTYPE.name()));
                let numbers = format!("a multiple of {expected}, found one of {found}");
                assert!(error.to_string().contains(&numbers), "{error}");
            }
            _ => panic!("{view:?}: {error}"),
        },
        (Ok(_), _) => panic!("{view:?} was borrowed at an odd place"),
    }

    assert_eq!(view.chunks::<N>().unwrap().concat(), bytes, "{view:?}");
    assert_eq!(view.chunks::<N>().unwrap().as_ptr().cast(), bytes.as_ptr());
    let elements = view.elements::<T>().unwrap();
    let found: Vec<[u8; N]> = elements.iter().map(value_to_bytes).collect();
    assert_eq!(found.concat(), bytes, "{view:?}");
}

#[test]
fn borrows_and_values_are_right_at_every_address() {
    // A BF16 is the upper half of its value.
    let upper_half = |value: f32| {
        let [low, lower, third, fourth] = value.to_le_bytes();
        assert_eq!((low, lower), (0, 0));
        [third, fourth]
    };
    for offset in 0..8 {
        let numbers = [
            Dtype::U8,
            Dtype::F32,
            Dtype::Bf16,
            Dtype::U16,
            Dtype::I8,
            Dtype::I16,
            Dtype::U32,
            Dtype::F64,
            Dtype::I32,
            Dtype::U64,
            Dtype::I64,
        ];
        let file = numbers.iter().fold(File::new(), |file, dtype| {
            // 8 elements: 8 bytes at least, so that all begin at the same odd place.
            file.tensor(dtype.name(), *dtype, &[2, 4])
        });
        let bytes = file.at(offset);
        let on_disk = TemporaryFile::new(&format!("odd-{offset}"), &bytes);
        // SAFETY: the file is this test's own, and nobody changes it.
        let opened = unsafe { Model::open(&on_disk.0) }.unwrap();
        for model in [Model::from_bytes(&bytes).unwrap(), opened] {
            let starts: Vec<u64> =
                model.tensors().map(|view| view.file_range().start % 8).collect();
            assert_eq!(starts, [offset as u64; 11]);
            borrow_and_read::<u8, 1>(&model, u8::to_le_bytes, u8::to_le_bytes);
            borrow_and_read::<i8, 1>(&model, i8::to_le_bytes, i8::to_le_bytes);
            borrow_and_read::<u16, 2>(&model, u16::to_le_bytes, u16::to_le_bytes);
            borrow_and_read::<i16, 2>(&model, i16::to_le_bytes, i16::to_le_bytes);
            borrow_and_read::<u32, 4>(&model, u32::to_le_bytes, u32::to_le_bytes);
            borrow_and_read::<i32, 4>(&model, i32::to_le_bytes, i32::to_le_bytes);
            borrow_and_read::<f32, 4>(&model, f32::to_le_bytes, f32::to_le_bytes);
            borrow_and_read::<u64, 8>(&model, u64::to_le_bytes, u64::to_le_bytes);
            borrow_and_read::<i64, 8>(&model, i64::to_le_bytes, i64::to_le_bytes);
            borrow_and_read::<f64, 8>(&model, f64::to_le_bytes, f64::to_le_bytes);
            borrow_and_read::<Bf16, 2>(&model, |number| number.0.to_le_bytes(), upper_half);
        }
    }
}

/// All dtypes, 32 elements each: a multiple of 8 bytes for every one of them.
fn every_dtype() -> Model {
    let one_more = |file: File, dtype: &Dtype| file.tensor(dtype.name(), *dtype, &[32]);
    Dtype::ALL.iter().fold(File::new(), one_more).model()
}

type Look = fn(TensorView) -> Result<(), Error>;

fn slice<T: Plain>(view: TensorView) -> Result<(), Error> {
    view.as_slice::<T>().map(drop)
}

fn values<E: Element>(view: TensorView) -> Result<(), Error> {
    view.elements::<E>().map(drop)
}

fn chunks<const N: usize>(view: TensorView) -> Result<(), Error> {
    view.chunks::<N>().map(drop)
}

#[test]
fn a_type_stands_for_its_own_dtypes_and_no_other() {
    use Dtype::*;
    let bytes = &[Bool, U8, F8E5M2, F8E4M3, F8E8M0, F8E4M3Fnuz, F8E5M2Fnuz][..];
    let one = &[Bool, U8, I8, F8E5M2, F8E4M3, F8E8M0, F8E4M3Fnuz, F8E5M2Fnuz][..];
    let floats = "a float dtype";
    let all_floats =
        &[Bf16, F16, F32, F64, F8E5M2, F8E4M3, F8E8M0, F8E4M3Fnuz, F8E5M2Fnuz, F6E2M3, F6E3M2, F4]
            [..];
    let rows: [(&str, Look, &[Dtype]); 24] = [
        ("u8", slice::<u8>, bytes),
        ("i8", slice::<i8>, &[I8]),
        ("u16", slice::<u16>, &[U16, F16, Bf16]),
        ("i16", slice::<i16>, &[I16]),
        ("Bf16", slice::<barest::Bf16>, &[Bf16]),
        ("u32", slice::<u32>, &[U32]),
        ("i32", slice::<i32>, &[I32]),
        ("f32", slice::<f32>, &[F32]),
        ("u64", slice::<u64>, &[U64]),
        ("i64", slice::<i64>, &[I64]),
        ("f64", slice::<f64>, &[F64]),
        ("U8", values::<u8>, &[U8]),
        ("I8", values::<i8>, &[I8]),
        ("U16", values::<u16>, &[U16]),
        ("I64", values::<i64>, &[I64]),
        ("F64", values::<f64>, &[F64]),
        ("BF16", |view| view.bf16().map(drop), &[Bf16]),
        (floats, |view| view.to_f32().map(drop), all_floats),
        (floats, |view| view.read_f32(&mut [0.0; 32]), all_floats),
        ("1 byte", chunks::<1>, one),
        ("2 bytes", chunks::<2>, &[I16, U16, F16, Bf16]),
        ("3 bytes", chunks::<3>, &[]),
        ("4 bytes", chunks::<4>, &[I32, U32, F32]),
        ("8 bytes", chunks::<8>, &[C64, F64, I64, U64]),
    ];
    let model = every_dtype();
    for (asked, look, dtypes) in rows {
        for view in model.tensors() {
            let is_taken = match look(view) {
                Ok(()) => true,
                Err(error) => match error.kind() {
                    ErrorKind::ForeignByteOrder => cfg!(target_endian = "big"),
                    ErrorKind::WrongDtype { expected, found } => {
                        assert_eq!((&**expected, *found), (asked, view.dtype()));
                        assert_eq!(error.tensor(), Some(view.name()));
                        let text = format!("expected elements of {asked}, found {found}");
                        assert!(error.to_string().ends_with(&text), "{error}");
                        false
                    }
                    _ => panic!("{asked} of {view:?}: {error}"),
                },
            };
            let stands_for_it = dtypes.contains(&view.dtype());
            assert_eq!(is_taken, stands_for_it, "{asked} of {}", view.dtype());
        }
    }
}

#[test]
fn an_error_of_a_view_names_the_file_as_well() {
    let file = TemporaryFile::new("named", &File::new().tensor("t", Dtype::U8, &[3]).at(1));
    let model = Model::read(&file.0).unwrap();
    let view = model.tensor("t").unwrap();
    let errors = [
        view.bf16().unwrap_err(),
        view.elements::<u8>().unwrap().row(3).unwrap_err(),
        view.elements::<u8>().unwrap().read_into(&mut []).unwrap_err(),
        model.tensor("tt").unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.path(), Some(&*file.0), "{error}");
        assert!(error.to_string().starts_with(&file.0.display().to_string()), "{error}");
    }
}

#[test]
fn a_tensor_without_elements_is_an_empty_slice_at_any_place() {
    for offset in 0..8 {
        let model = Model::from_bytes(
            &File::new()
                .tensor("first", Dtype::F64, &[0])
                .tensor("odd", Dtype::U8, &[1])
                .tensor("middle", Dtype::F32, &[3, 0])
                .tensor("more", Dtype::U8, &[2])
                .tensor("last", Dtype::Bf16, &[0, u64::MAX])
                .at(offset),
        )
        .unwrap();
        let empty = |name: &str| {
            let view = model.tensor(name).unwrap();
            assert_eq!((view.len(), view.byte_len(), view.is_empty()), (0, 0, true));
            assert_eq!(view.bytes(), b"");
            view
        };
        assert_eq!(empty("first").as_slice::<f64>().unwrap(), &[0.0; 0]);
        assert_eq!(empty("middle").as_slice::<f32>().unwrap(), &[0.0; 0]);
        assert_eq!(empty("last").as_slice::<Bf16>().unwrap(), &[]);
        assert_eq!(empty("last").as_slice::<u16>().unwrap(), &[0; 0]);
        assert_eq!(empty("first").chunks::<8>().unwrap(), &[[0; 8]; 0]);
        assert_eq!(empty("middle").to_f32().unwrap(), [0.0; 0]);
        empty("last").read_f32(&mut []).unwrap();
        assert_eq!(empty("last").bf16().unwrap().iter().next(), None);
        assert_eq!(empty("first").elements::<f64>().unwrap().get(0), None);
    }
}

// Rows.

enum Row {
    /// Its shape, and the numbers of its elements in the tensor.
    Is(&'static [u64], &'static [usize]),
    OutOf(u64),
    NoRows,
}

#[test]
fn a_row_is_what_stands_at_an_index_of_the_first_axis() {
    const FAR: u64 = 1 << 40;
    const FARTHER: u64 = 1 << 62;
    #[cfg(target_pointer_width = "64")]
    let last = |rows: u64| rows as usize - 1;
    let rows = [
        (&[3][..], 0, Row::Is(&[], &[0])),
        (&[3], 2, Row::Is(&[], &[2])),
        (&[3], 3, Row::OutOf(3)),
        (&[2, 3], 0, Row::Is(&[3], &[0, 1, 2])),
        (&[2, 3], 1, Row::Is(&[3], &[3, 4, 5])),
        (&[2, 3], 2, Row::OutOf(2)),
        (&[2, 3], usize::MAX, Row::OutOf(2)),
        (&[2, 2, 3], 1, Row::Is(&[2, 3], &[6, 7, 8, 9, 10, 11])),
        (&[1, 1, 1], 0, Row::Is(&[1, 1], &[0])),
        (&[], 0, Row::NoRows),
        (&[], usize::MAX, Row::NoRows),
        (&[0], 0, Row::OutOf(0)),
        (&[0, FAR], 0, Row::OutOf(0)),
        (&[0, u64::MAX, 3], 0, Row::OutOf(0)),
        (&[2, 0], 1, Row::Is(&[0], &[])),
        (&[2, 0, FAR], 1, Row::Is(&[0, FAR], &[])),
        (&[FARTHER, 0], 0, Row::Is(&[0], &[])),
        #[cfg(target_pointer_width = "64")]
        (&[FARTHER, 0], last(FARTHER), Row::Is(&[0], &[])),
        #[cfg(target_pointer_width = "64")]
        (&[FARTHER, 0], last(FARTHER) + 1, Row::OutOf(FARTHER)),
        #[cfg(target_pointer_width = "64")]
        (&[u64::MAX, 0], last(u64::MAX), Row::Is(&[0], &[])),
        #[cfg(target_pointer_width = "64")]
        (&[u64::MAX, 0], usize::MAX, Row::OutOf(u64::MAX)),
    ];
    for (shape, index, expected) in rows {
        // Behind one byte: rows start at odd addresses too.
        let file = File::new().tensor("_", Dtype::U8, &[1]).tensor("t", Dtype::U16, shape);
        let model = file.model();
        let elements = model.tensor("t").unwrap().elements::<u16>().unwrap();
        let case = format!("row {index} of {shape:?}");
        match (elements.row(index), expected) {
            (Ok(row), Row::Is(of_row, numbers)) => {
                assert_eq!(row.shape(), of_row, "{case}");
                let all: Vec<u16> = elements.iter().collect();
                let values: Vec<u16> = numbers.iter().map(|&number| all[number]).collect();
                assert_eq!(row.to_vec().unwrap(), values, "{case}");
                assert_eq!((row.len(), row.is_empty()), (values.len(), values.is_empty()));
                assert_eq!(row.get(0), values.first().copied(), "{case}");
                assert_eq!(row.get(values.len()), None, "{case} ends where it ends");
            }
            (Err(error), expected) => {
                assert_eq!(error.tensor(), Some("t"), "{case}");
                match (error.kind(), expected) {
                    (&ErrorKind::OutOfRange { expected, found }, Row::OutOf(rows)) => {
                        assert_eq!((expected, found), (rows, index as u64), "{case}");
                    }
                    (ErrorKind::NoRows, Row::NoRows) => {}
                    _ => panic!("{case}: {error}"),
                }
            }
            (Ok(row), _) => panic!("{case} is {row:?}"),
        }
    }
}

#[test]
fn a_row_of_a_row_of_a_row_is_an_element() {
    let model = File::new().tensor("t", Dtype::I16, &[2, 3, 4]).model();
    let elements = model.tensor("t").unwrap().elements::<i16>().unwrap();
    for (number, value) in elements.iter().enumerate() {
        let plane = elements.row(number / 12).unwrap();
        let line = plane.row(number / 4 % 3).unwrap();
        let element = line.row(number % 4).unwrap();
        assert_eq!((element.shape(), element.len()), (&[][..], 1));
        assert_eq!(element.get(0), Some(value));
        assert!(matches!(element.row(0).unwrap_err().kind(), ErrorKind::NoRows));
        assert!(plane.row(3).is_err() && line.row(4).is_err());
    }
}

#[test]
fn a_buffer_of_the_wrong_length_is_left_as_it_was() {
    let model = File::new()
        .tensor("bf16", Dtype::Bf16, &[2, 3])
        .tensor("f32", Dtype::F32, &[6])
        .tensor("none", Dtype::F32, &[0])
        .model();
    for (name, len, wrong) in
        [("bf16", 6, &[0, 1, 5, 7, 12][..]), ("f32", 6, &[0, 1, 5, 7, 24]), ("none", 0, &[1, 4])]
    {
        let view = model.tensor(name).unwrap();
        for &found in wrong {
            let mut buffer = vec![-7.0; found];
            let mut errors = vec![view.read_f32(&mut buffer).unwrap_err()];
            if name == "bf16" {
                errors.push(view.bf16().unwrap().read_f32(&mut buffer).unwrap_err());
                errors.push(view.bf16().unwrap().read_into(&mut buffer).unwrap_err());
            }
            assert!(buffer.iter().all(|&value| value == -7.0), "{name}: {buffer:?}");
            for error in errors {
                let ErrorKind::WrongLength { expected, found: numbers } = *error.kind() else {
                    panic!("{error}");
                };
                assert_eq!((expected, numbers), (len, found), "{error}");
            }
        }
        let mut buffer = vec![-7.0; len];
        view.read_f32(&mut buffer).unwrap();
        assert_eq!(buffer, view.to_f32().unwrap());
        assert!(buffer.iter().all(|&value| value != -7.0));
    }
}

// Names.

#[test]
fn a_missing_name_is_answered_with_the_nearest() {
    let names = ["model.embed_tokens.weight", "model.norm.weight", "lm_head.weight", "é"];
    let model =
        names.iter().fold(File::new(), |file, name| file.tensor(name, Dtype::U8, &[1])).model();
    for (asked, expected) in [
        ("model.embed_token.weight", Some(names[0])),
        ("embed_tokens.weight", Some(names[0])),
        ("model.norm.weights", Some(names[1])),
        ("LM_head.weight", Some(names[2])),
        ("something else altogether", None),
        ("e\u{301}", None),
        ("", None),
    ] {
        assert!(model.get(asked).is_none());
        let error = model.tensor(asked).unwrap_err();
        let ErrorKind::NotFound { nearest, among } = error.kind() else {
            panic!("{error}");
        };
        assert_eq!((nearest.as_deref(), *among), (expected, 4), "{asked}");
        assert_eq!(error.tensor(), Some(asked));
        let suggestion = expected.map(|name| format!("the nearest name is `{name}`"));
        let text = error.to_string();
        assert!(suggestion.is_none_or(|suggestion| text.ends_with(&suggestion)), "{text}");
    }
}

// What it costs.

fn many_tensors(count: usize) -> Vec<u8> {
    let mut file = File::new();
    for number in 0..count {
        let name = format!("model.layers.{}.part.{number}.weight", number / 9);
        file = file.tensor(&name, Dtype::Bf16, &[1, 3]);
    }
    file.at(0)
}

#[test]
fn looking_a_tensor_up_and_at_it_allocates_nothing() {
    let model = Model::from_bytes(&many_tensors(10_000)).unwrap();
    let name = "model.layers.555.part.5000.weight";
    let view = model.tensor(name).unwrap();
    let elements = view.bf16().unwrap();
    let rows: [(&str, &dyn Fn() -> bool); 11] = [
        ("get, a hit", &|| model.get(name).is_some()),
        ("tensor, a hit", &|| model.tensor(name).is_ok()),
        ("get, a miss", &|| model.get("model.layers.5.part.5000.weight").is_none()),
        ("every tensor", &|| {
            model.tensors().map(|view| view.bytes().len()).sum::<usize>() == 60_000
        }),
        ("what it is", &|| {
            (view.name(), view.dtype(), view.shape()) == (name, Dtype::Bf16, &[1, 3])
        }),
        ("borrows", &|| {
            let is_foreign = cfg!(target_endian = "big");
            view.chunks::<2>().is_ok() && (is_foreign || view.as_slice::<u16>().is_ok())
        }),
        ("elements", &|| elements.iter().len() == 3 && elements.get(2).is_some()),
        ("a row", &|| elements.row(0).unwrap().row(2).unwrap().len() == 1),
        ("reading", &|| view.read_f32(&mut [0.0; 3]).is_ok()),
        ("sharing", &|| view.share().view().byte_len() == 6),
        ("cloning the model", &|| model.clone().len() == 10_000),
    ];
    for (what, look) in rows {
        let (is_right, cost) = cost(look);
        assert!(is_right, "{what}");
        assert_eq!(cost.allocations, 0, "{what}");
    }
}

/// The copy of the header, its records, its dimensions and the name table. Names with escapes have a
/// text and a list of origins besides, which grow by doubling, and what was too much is given back.
#[test]
fn the_number_of_allocations_does_not_follow_the_number_of_tensors() {
    for (prefix, most) in [("", 4), ("\\u006d", 4 + 2 * 15)] {
        let [few, many] = [1_000, 10_000].map(|count| {
            let file = many_tensors(count);
            let plain = Header::parse(&file, file.len() as u64).unwrap();
            // In the JSON itself, so that every name has an escape in it.
            let header = plain.text().replace("\"model.", &format!("\"{prefix}model."));
            let file_len = (8 + header.len()) as u64 + plain.data_len();
            let file = file_of(&header, &[]);
            let (header, cost) = cost(|| Header::parse(&file, file_len));
            assert_eq!(header.unwrap().len(), count);
            cost.allocations
        });
        assert!(few <= most && many <= most, "{prefix:?}: {few} and {many}, not {most}");
    }
}

/// A name, a header made to cost as much memory as it can, the bytes of its data, and what it is
/// refused for: so that it costs what it is meant to, and not less by failing early.
type Hostile = (&'static str, String, usize, Option<&'static str>);

/// The counts lie a little above powers of two: there a vector that doubles wastes the most.
fn hostile_headers() -> Vec<Hostile> {
    const DIMENSIONS: usize = (1 << 21) + 10_000;
    const PAIRS: usize = (1 << 19) + 10_000;
    const TENSORS: usize = (1 << 16) + 5_000;
    let many = |count: usize, member: &dyn Fn(usize) -> String| {
        let members: Vec<String> = (0..count).map(member).collect();
        format!("{{{}}}", members.join(","))
    };
    let metadata = |pairs: String| format!(r#"{{"__metadata__":{pairs}}}"#);
    let entry = |shape: &str, begin: usize| {
        let end = begin + 1;
        format!(r#"{{"dtype":"U8","shape":[{shape}],"data_offsets":[{begin},{end}]}}"#)
    };
    let one = |name: &str, entry: &str| format!(r#"{{"{name}":{entry}}}"#);
    let same = |text: &'static str| move |_| text.to_owned();
    let ones = "1,".repeat(DIMENSIONS - 1) + "1";
    let escaped = r"\u0041".repeat(700_000);
    let long = "A".repeat(4_000_000);
    let brackets = "[".repeat(4_000_000);
    let braces = r#"{"":"#.repeat(1_000_000);
    let nines = "9".repeat(4_000_000);
    let pair = |number| format!(r#""{number:x}":"""#);
    let tensor = |number| format!(r#""{number:x}":{}"#, entry("", number));
    let from_the_last = |number| format!(r#""\n{number:x}":{}"#, entry("", TENSORS - 1 - number));
    let twin = |_| format!(r#""":{}"#, entry("", 0));
    let escaped_twin = |_| format!(r#""\n":{}"#, entry("", 0));
    let of_many_axes = |_| format!(r#""":{}"#, entry("1,1,1,1,1,1,1,1,1,1,1,1", 0));
    vec![
        ("a shape", one("", &entry(&ones, 0)), 1, None),
        ("pairs", metadata(many(PAIRS / 2, &pair)), 0, None),
        ("tensors", many(TENSORS, &tensor), TENSORS, None),
        ("out of order", many(TENSORS, &from_the_last), TENSORS, None),
        ("a name", one(&escaped, &entry("", 0)), 1, None),
        ("twin pairs", metadata(many(PAIRS, &same(r#""":"""#))), 0, Some("duplicate key ``")),
        (
            "escaped twin pairs",
            metadata(many(PAIRS, &same(r#""\n":"""#))),
            0,
            Some(r"duplicate key `\n`"),
        ),
        ("twins", many(TENSORS, &twin), 0, Some("duplicate tensor name")),
        ("escaped twins", many(TENSORS, &escaped_twin), 0, Some("duplicate tensor name")),
        ("twins of many axes", many(TENSORS / 2, &of_many_axes), 0, Some("duplicate tensor name")),
        ("brackets", brackets.clone(), 0, Some("expected `{`")),
        ("nested arrays", one("", &one("", &brackets)), 0, Some("nested too deep")),
        ("nested objects", one("", &one("", &braces)), 0, Some("nested too deep")),
        (
            "a name without an entry",
            one(&escaped, "0"),
            0,
            Some("the entry of a tensor must be an object"),
        ),
        (
            "a key without a value",
            metadata(one(&long, "0")),
            0,
            Some("must be a string, found a number"),
        ),
        ("a dtype", one("", &format!(r#"{{"dtype":"{escaped}"}}"#)), 0, Some("unknown dtype")),
        ("a dimension", one("", &entry(&nines, 0)), 0, Some("is not an unsigned integer")),
        ("blanks", " ".repeat(4_000_000), 0, Some("the end of the text")),
    ]
}

#[test]
fn a_hostile_header_costs_ten_times_its_length_at_most() {
    for (what, header, data, refused_for) in hostile_headers() {
        assert!(header.len() > 2_500_000, "{what} is small: {}", header.len());
        let file = file_of(&header, &vec![0; data]);
        let (outcome, cost) = cost(|| Header::parse(&file, file.len() as u64));
        let factor = cost.peak as f64 / header.len() as f64;
        match (outcome.map_err(|error| error.to_string()), refused_for) {
            (Ok(_), None) => {}
            (Err(text), Some(reason)) if text.contains(reason) => {}
            (outcome, _) => panic!("{what}: {outcome:?}"),
        }
        assert!(factor <= 10.0, "{what}: {factor:.1} times {} bytes", header.len());
    }
}
