//! The rules of the format: every row of `cases/conformance.txt`, by the header alone and by the
//! whole file in memory. And, because a table is no better than its reader, the notation itself.

#[path = "common/notation.rs"]
mod notation;

use barest::{Header, Model};
use notation::{Case, Tensor, decode};
use std::panic::catch_unwind;
use std::thread;

fn cases() -> Vec<Case> {
    notation::cases(include_str!("cases/conformance.txt")).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn no_case_is_lost() {
    let cases = cases();
    let count = |wanted: fn(&Case) -> bool| cases.iter().filter(|case| wanted(case)).count();
    assert_eq!(cases.len(), 240);
    assert_eq!(count(|case| case.accepted), 66);
    assert_eq!(count(|case| case.stricter), 8, "what the reference accepts is a closed list");
}

#[test]
fn every_case_gets_its_verdict() {
    let faults: Vec<String> = cases().iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_header_is_judged_without_its_data() {
    for case in cases() {
        if let Some(end) = case.header_end() {
            let header = Header::parse(&case.file[..end], case.file.len() as u64);
            assert_eq!(header.is_ok(), case.accepted, "{case}");
        }
    }
}

/// A parser that calls itself at every bracket would end this process.
#[test]
fn no_case_needs_a_deep_stack() {
    let cases = cases();
    let judge_all = move || {
        for case in &cases {
            let header = Header::parse(&case.file, case.file.len() as u64);
            assert_eq!(header.is_ok(), case.accepted, "{case}");
        }
    };
    let small = thread::Builder::new().stack_size(64 * 1024);
    small.spawn(judge_all).unwrap().join().unwrap();
}

fn faults(case: &Case) -> Vec<String> {
    let file = &case.file;
    let tried = catch_unwind(|| (Header::parse(file, file.len() as u64), Model::from_bytes(file)));
    let mut faults = match (case.accepted, tried) {
        (true, Ok((Ok(header), Ok(model)))) => faults_of_result(case, &header, &model),
        (false, Ok((Err(first), Err(second)))) => [first, second]
            .iter()
            .flat_map(|error| case.faults_of(&error.to_string(), error.offset(), error.tensor()))
            .collect(),
        (_, Ok((header, model))) => vec![format!(
            "Header::parse gives {:?}, Model::from_bytes gives {:?}",
            header.map(|_| "a header").map_err(|error| error.to_string()),
            model.map(|_| "a model").map_err(|error| error.to_string()),
        )],
        (_, Err(_)) => vec!["panics".to_owned()],
    };
    faults.sort();
    faults.dedup();
    faults.iter().map(|fault| format!("{case}: {fault}")).collect()
}

fn faults_of_result(case: &Case, header: &Header, model: &Model) -> Vec<String> {
    let data = &case.file[case.header_end().unwrap()..];
    let by_header: Vec<Tensor> = header
        .tensors()
        .map(|tensor| Tensor {
            name: tensor.name().to_owned(),
            dtype: tensor.dtype().name().to_owned(),
            shape: tensor.shape().to_vec(),
            data_offsets: tensor.data_offsets(),
            bytes: data[tensor.data_offsets().0 as usize..tensor.data_offsets().1 as usize]
                .to_vec(),
        })
        .collect();
    let metadata = header.metadata().map(|metadata| {
        metadata.iter().map(|(key, value)| (key.to_owned(), value.into_owned())).collect()
    });
    let mut faults = Vec::new();
    if by_header != case.tensors || header.len() != case.tensors.len() {
        faults.push(format!("expected {:?}, found {by_header:?}", case.tensors));
    }
    if metadata != case.metadata {
        faults.push(format!("expected metadata {:?}, found {metadata:?}", case.metadata));
    }
    let views: Vec<_> = model.tensors().collect();
    if views.len() != case.tensors.len() {
        faults.push(format!("the model has {} tensors", views.len()));
    }
    for (tensor, view) in case.tensors.iter().zip(views) {
        if view.name() != tensor.name
            || view.dtype().name() != tensor.dtype
            || view.shape() != tensor.shape
            || view.bytes() != tensor.bytes
        {
            faults.push(format!("expected {tensor:?}, found {:?} in the model", view.bytes()));
        }
    }
    faults
}

#[test]
fn the_notation_says_what_it_says() {
    let rows: &[(&str, &[u8])] = &[
        (r"", b""),
        (r"plain {text}", b"plain {text}"),
        (r"\\ \n\r\t\0\x7f\xff", b"\\ \n\r\t\0\x7f\xff"),
        (r"\u{e9}\u{1f980}", "é🦀".as_bytes()),
        (r"\N{}\|data", b"\x02\0\0\0\0\0\0\0{}data"),
        (r"\N\|", b"\0\0\0\0\0\0\0\0"),
        (r"\N\*300( \)\|", &[&[44, 1, 0, 0, 0, 0, 0, 0][..], &[b' '; 300]].concat()),
        (r"\*3(ab\)c", b"abababc"),
        (r"\*2(<\*2(\#(i)\)>\#(i)\)", b"<01>0<01>1"),
        (r"\*3(\#(2i+7),\)", b"7,9,11,"),
        (r"\#(18446744073709551615)", b"18446744073709551615"),
        (r"\*2(\#16(256i+3)\)", b"\x03\0\x03\x01"),
        (r"\#64(258)", b"\x02\x01\0\0\0\0\0\0"),
        (r"\~0\~4", b"\x01\x08\x0f\x16"),
    ];
    for (notation, bytes) in rows {
        assert_eq!(decode(notation).unwrap().bytes, *bytes, "{notation}");
    }
    assert_eq!(decode(r"\N\*5(x\)\^y\|").unwrap().mark, Some(13));
}

#[test]
fn a_slip_in_the_notation_is_named_with_its_place() {
    let rows = [
        (r"ab\q", r"`\q` is no escape (column 4"),
        ("a\tb", r"'\t' must be written as an escape (column 2"),
        (r"\x4", r"`\x` wants two hex digits"),
        (r"\u{d800}", r"`\u` wants the hex digits of a character"),
        (r"\u41", "expected {…}"),
        (r"\*3(ab", r"`\*` lacks its `\)`"),
        (r"ab\)", r"`\)` is no escape"),
        (r"\*0(ab\)", r"`\*` wants a count and `(`"),
        (r"\*(ab\)", "expected a count"),
        (r"\N{}", r"`\N` lacks its `\|`"),
        (r"{}\|", r"`\|` without `\N`"),
        (r"\N\N\|\|", r"`\N` within a header"),
        (r"\#(i)", "`i` outside of a repetition"),
        (r"\*2(\#(i-1)\)", "`i-1` is no number"),
        (r"\*2(\#(i+18446744073709551615)\)", "`i+18446744073709551615` is no number"),
        (r"\#16(65536)", "more than 16 bits"),
        (r"\#8(1)", "a number has 16 or 64 bits"),
        (r"\*2(\^\)", r"`\^` stands twice"),
        ("\\", "a backslash at the end"),
    ];
    for (notation, fault) in rows {
        let found = decode(notation).unwrap_err();
        assert!(found.starts_with(fault), "{notation}: {found}");
    }
}

#[test]
fn a_slip_in_a_table_is_named_with_its_line() {
    let rows = [
        ("  note x", "line 1: a fact before the first case"),
        ("a\taccept", "line 1: a case is a name, a verdict and the bytes"),
        ("a\taccepts\t{}", "line 1: the verdict `accepts` is neither accept nor reject"),
        ("# a\n\na\taccept\t\\q", r"line 3: `\q` is no escape"),
        ("a\taccept\t\\^", "line 1: a mark in an accepted file"),
        ("a\treject\t{}\na\treject\t{}", "line 2: `a` stands twice"),
        ("a\taccept\t\\N{}\\|\n  says \"x\"", "line 2: `says` is no fact about such a case"),
        ("a\treject\t{}\n  says x", "line 2: \"x\" is no list of quoted texts"),
        ("a\taccept\t\\N{}\\|x\n  tensor a U8 [1] 0..1", "line 2: \"a U8 [1] 0..1\" is no tensor"),
        ("a\taccept\t\\N{}\\|x\n  tensor \"a\" U8 [1] 0..2", "line 2: the file has no such bytes"),
        (
            "a\taccept\t\\N{}\\|x\n  tensor \"a\" U8 [1] 0..1 = y",
            "line 2: the file has [120] there",
        ),
        ("a\taccept\t\\N{}\\|x\n  metadata k", "line 2: \"k\" is no pair of metadata"),
    ];
    for (table, fault) in rows {
        let found = notation::cases(table).err().unwrap();
        assert!(found.starts_with(fault), "{table}: {found}");
    }
}

#[test]
fn a_fragment_is_looked_for_as_whole_words() {
    let case = |says: &str| notation::cases(&format!("a\treject\t\\0\n  says \"{says}\"")).unwrap();
    for (says, found) in
        [("12", true), ("20 of 12", true), ("2", false), ("`a`", true), ("byte", false)]
    {
        let faults = case(says)[0].faults_of("tensor `a`: 20 of 12 bytes", None, None);
        assert_eq!(faults.is_empty(), found, "{says}");
    }
}
