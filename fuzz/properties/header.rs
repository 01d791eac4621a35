//! What must hold for any bytes that someone calls a model?
//!
//! Plain functions over bytes: the fuzz target calls them, and so does `tests/corpus.rs` on the
//! stable compiler. They panic where a property does not hold. Nothing here looks into the crate;
//! the file itself is what its answers are held against.

use barest::{Error, ErrorKind, Header, Model};
use std::collections::BTreeMap;

/// Bytes of the header length, with which every file begins.
const PREFIX: usize = 8;

/// How many beginnings of a file are tried at most, besides the shortest.
const PREFIXES: usize = 8;

/// Tries everything on one file, and tells whether it was accepted.
pub fn judge(file: &[u8]) -> bool {
    let len = file.len() as u64;
    let header = Header::parse(file, len);
    match (&header, Model::from_bytes(file)) {
        (Ok(header), Ok(model)) => {
            tiles(header, len);
            is_the_files_own(header, file);
            names_lead_back(header);
            keys_differ(header);
            remarks_are_plain(header);
            views_show_the_file(header, &model, file);
        }
        (Err(refusal), Err(of_model)) => {
            explains(refusal, len);
            assert_eq!(refusal.to_string(), of_model.to_string());
            wants_other_data(refusal, file);
        }
        (header, model) => panic!("the header is {header:?}, the model {model:?}"),
    }
    beginnings_are_refused(file);
    header_alone_suffices(&header, file);
    header.is_ok()
}

/// Where the header ends, if the file holds all of it.
fn header_end(file: &[u8]) -> Option<usize> {
    let len = u64::from_le_bytes(*file.first_chunk()?);
    let end = usize::try_from(len).ok()?.checked_add(PREFIX)?;
    (end <= file.len()).then_some(end)
}

/// Each tensor begins where the one before it ended, and the last ends where the file does; each
/// has the bytes that its shape and dtype ask for.
fn tiles(header: &Header, file_len: u64) {
    let mut end = 0;
    for (number, tensor) in header.tensors().enumerate() {
        let (begin, after) = tensor.data_offsets();
        assert_eq!(begin, end, "{tensor:?}");
        assert!(begin <= after, "{tensor:?}");
        assert_eq!(tensor.number(), number, "{tensor:?}");
        assert_eq!(tensor.byte_len(), after - begin, "{tensor:?}");
        let start = header.data_start();
        assert_eq!(tensor.file_range(), start + begin..start + after, "{tensor:?}");
        // Beside a 0 the other dimensions may multiply to anything.
        let elements = match tensor.shape() {
            shape if shape.contains(&0) => Some(0),
            shape => shape.iter().try_fold(1u128, |product, &dim| product.checked_mul(dim.into())),
        };
        let elements = elements.unwrap_or_else(|| panic!("{tensor:?} has no end"));
        assert_eq!(elements, tensor.elements().into(), "{tensor:?}");
        let bits = elements * u128::from(tensor.dtype().bits());
        assert_eq!(bits, 8 * u128::from(tensor.byte_len()), "{tensor:?}");
        end = after;
    }
    assert_eq!(header.tensors().len(), header.len());
    assert_eq!(header.data_len(), end);
    assert_eq!(header.data_start() + header.data_len(), file_len);
}

fn is_the_files_own(header: &Header, file: &[u8]) {
    let end = header_end(file).expect("an accepted file holds its header");
    assert_eq!(header.text().as_bytes(), &file[PREFIX..end]);
    assert_eq!(header.header_len(), (end - PREFIX) as u64);
    assert_eq!(header.data_start(), end as u64);
}

/// Every name is found and leads to its own tensor, no name stands there twice, and what is no
/// name is not found.
fn names_lead_back(header: &Header) {
    let names: BTreeMap<&str, usize> =
        header.tensors().map(|tensor| (tensor.name(), tensor.number())).collect();
    assert_eq!(names.len(), header.len(), "a name stands there twice");
    let find = |name: &str| header.tensor(name).map(|tensor| tensor.number());
    for (&name, &number) in &names {
        assert_eq!(find(name), Some(number), "{name:?}");
        let longer = format!("{name}a");
        let shorter = name.char_indices().next_back().map_or("a", |(end, _)| &name[..end]);
        for other in [&longer, shorter] {
            assert_eq!(find(other), names.get(other).copied(), "{other:?}");
        }
    }
    assert_eq!(find("__metadata__"), None);
}

fn keys_differ(header: &Header) {
    let Some(metadata) = header.metadata() else {
        return;
    };
    let pairs: BTreeMap<_, _> = metadata.iter().collect();
    assert_eq!(pairs.len(), metadata.len(), "a key stands there twice");
    assert_eq!(metadata.iter().count(), metadata.len());
    for (key, value) in &pairs {
        assert_eq!(metadata.get(key).as_ref(), Some(value), "{key:?}");
    }
}

fn remarks_are_plain(header: &Header) {
    for remark in header.remarks() {
        is_one_plain_line(&remark.to_string());
    }
}

fn views_show_the_file(header: &Header, model: &Model, file: &[u8]) {
    assert_eq!(model.len(), header.len());
    assert_eq!(model.tensors().count(), header.len());
    for (view, tensor) in model.tensors().zip(header.tensors()) {
        let name = tensor.name();
        assert_eq!(view.name(), name);
        assert_eq!(view.dtype(), tensor.dtype(), "{name:?}");
        assert_eq!(view.shape(), tensor.shape(), "{name:?}");
        assert_eq!(view.file_range(), tensor.file_range(), "{name:?}");
        let range = view.file_range().start as usize..view.file_range().end as usize;
        assert_eq!(view.bytes(), &file[range], "{name:?}");
        let found = model.tensor(name).expect("a tensor is found by its name");
        assert_eq!(found.bytes().as_ptr(), view.bytes().as_ptr(), "{name:?}");
    }
}

/// A refusal is one line that may be printed anywhere, points into the file, and draws the place
/// in two lines or not at all.
fn explains(refusal: &Error, file_len: u64) {
    let line = refusal.to_string();
    is_one_plain_line(&line);
    assert!(refusal.path().is_none(), "{line}");
    if let Some(offset) = refusal.offset() {
        assert!(offset <= file_len, "{line}: {offset} of {file_len} bytes");
    }
    if let ErrorKind::DuplicateTensor { first }
    | ErrorKind::DuplicateMetadata { first }
    | ErrorKind::DuplicateMetadataKey { first, .. }
    | ErrorKind::DuplicateField { first, .. } = refusal.kind()
    {
        assert!(Some(*first) < refusal.offset(), "{line}");
    }
    if let Some(drawing) = refusal.caret() {
        let lines: Vec<&str> = drawing.split('\n').collect();
        let [text, mark] = lines[..] else {
            panic!("{line}\n{drawing}");
        };
        is_one_plain_line(text);
        is_one_plain_line(mark);
        let is_mark = mark.ends_with('^') && mark.matches('^').count() == 1;
        let column = mark.chars().count();
        assert!(is_mark && column <= text.chars().count() + 1, "{line}\n{drawing}");
    }
}

fn is_one_plain_line(line: &str) {
    let moves_the_cursor = |character: char| {
        character.is_control()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    assert!(!line.is_empty());
    assert!(!line.contains(moves_the_cursor), "{line:?}");
}

/// Bytes of data with which a file would have been accepted that was refused for nothing else.
fn data_wanted(refusal: &Error) -> Option<u64> {
    match *refusal.kind() {
        ErrorKind::Truncated { expected, .. } | ErrorKind::TrailingBytes { expected, .. } => {
            Some(expected)
        }
        _ => None,
    }
}

/// A refusal that gives the right length is right about it. The data need not exist: no header
/// asks for more than `u64` counts, and no memory is taken for what is only promised.
fn wants_other_data(refusal: &Error, file: &[u8]) {
    let Some(wanted) = data_wanted(refusal) else {
        return;
    };
    let end = header_end(file).expect("the data are judged after the header");
    if let Some(len) = wanted.checked_add(end as u64) {
        let header = Header::parse(&file[..end], len).expect("the length that was asked for");
        tiles(&header, len);
        names_lead_back(&header);
    }
}

/// Whatever a file begins with, less than its header is not enough: neither as all there is, nor as
/// all that was handed over.
fn beginnings_are_refused(file: &[u8]) {
    let shorter = header_end(file).unwrap_or(file.len());
    let step = shorter / PREFIXES + 1;
    let cuts = (0..PREFIX.min(shorter)).chain((PREFIX..shorter).step_by(step));
    let mut last = None;
    for cut in cuts {
        for len in [cut, file.len()] {
            let header = Header::parse(&file[..cut], len as u64);
            last = Some((header.expect_err("less than a header was accepted"), len));
        }
    }
    // One for all: to read each line takes longer than to parse.
    if let Some((refusal, len)) = last {
        explains(&refusal, len as u64);
    }
}

/// The bytes of the tensors have no say: the header alone gets the same verdict.
fn header_alone_suffices(of_file: &barest::Result<Header>, file: &[u8]) {
    if let Some(end) = header_end(file) {
        let alone = Header::parse(&file[..end], file.len() as u64);
        assert_eq!(
            of_file.is_ok(),
            alone.is_ok(),
            "{of_file:?} by the file, {alone:?} by its header"
        );
    }
}
