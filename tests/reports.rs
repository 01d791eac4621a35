//! What people ran into: every row of `cases/reports.txt`. An accepted file must give its tensors by
//! name; a refused one must give an error that would have told them what was wrong.

#[path = "common/notation.rs"]
mod notation;

use barest::{Header, Model};
use notation::Case;
use std::panic::catch_unwind;
use std::thread;

fn cases() -> Vec<Case> {
    notation::cases(include_str!("cases/reports.txt")).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn no_case_is_lost() {
    let cases = cases();
    let count = |wanted: fn(&Case) -> bool| cases.iter().filter(|case| wanted(case)).count();
    assert_eq!(cases.len(), 144);
    assert_eq!(count(|case| case.accepted), 33);
    assert_eq!(count(|case| case.stricter), 4);
}

#[test]
fn every_case_gets_its_verdict() {
    let faults: Vec<String> = cases().iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// B17: the smallest stack that threads are given in practice is enough.
#[test]
fn deep_nesting_needs_no_stack() {
    let small = thread::Builder::new().stack_size(64 * 1024);
    let judge_all = || {
        for case in cases().iter().filter(|case| case.name.starts_with("B17/")) {
            assert!(Header::parse(&case.file, case.file.len() as u64).is_err(), "{}", case.name);
            assert!(Model::from_bytes(&case.file).is_err(), "{case}");
        }
    };
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
    let mut faults = Vec::new();
    if header.len() != case.tensors.len() {
        faults.push(format!("{} tensors, not {}", header.len(), case.tensors.len()));
    }
    for expected in &case.tensors {
        let name = &expected.name;
        match model.tensor(name) {
            Err(error) => faults.push(format!("{name:?}: {error}")),
            Ok(view) => {
                let shown = (view.dtype().name(), view.shape());
                if shown != (&expected.dtype[..], &expected.shape[..]) {
                    faults.push(format!("{name:?} is {shown:?}"));
                }
                if view.bytes() != expected.bytes {
                    faults.push(format!("{name:?} holds {:?}", view.bytes()));
                }
            }
        }
    }
    for (key, value) in case.metadata.iter().flatten() {
        let found = header.metadata().and_then(|metadata| metadata.get(key));
        if found.as_deref() != Some(value) {
            faults.push(format!("metadata {key:?} is {found:?}"));
        }
    }
    let count = header.metadata().map(|metadata| metadata.len());
    if count != case.metadata.as_ref().map(Vec::len) {
        faults.push(format!("metadata has the length {count:?}"));
    }
    faults
}
