//! Is advice taken, or said to be unknown, and is it never more than advice?

use crate::common::{Folder, MIB, cut, make_cold, map};
use barest::{Advice, ErrorKind, Model, Pages};
use std::fs;
use std::io;

const ADVICE: [Advice; 7] = [
    Advice::Random,
    Advice::Sequential,
    Advice::Normal,
    Advice::WillNeed,
    Advice::Cold,
    Advice::HugePage,
    Advice::PopulateRead,
];

/// Gives advice; whether the system knows it. Any other failure is one of the test.
fn is_known(pages: &Pages, advice: Advice) -> bool {
    let Err(error) = pages.advise(advice) else { return true };
    let ErrorKind::Io { action, source } = error.kind() else { panic!("{advice:?}: {error}") };
    assert_eq!((*action, source.kind()), ("give advice", io::ErrorKind::Unsupported), "{advice:?}");
    false
}

#[test]
fn each_advice_is_taken_or_unknown_for_models_mapped_and_read() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let names: Vec<String> = (0..500).map(|number| format!("t{number}")).collect();
    let tensors: Vec<(&str, usize)> = names.iter().map(|name| (&**name, 10_001)).collect();
    let path = folder.model("advised", &tensors);
    let expected = fs::read(&path).unwrap();
    for model in [map(&path), Model::read(&path).unwrap()] {
        let backwards = model.pages_of(names.iter().rev().map(|name| &**name)).unwrap();
        for pages in [model.pages(), backwards, model.tensor("t7").unwrap().pages(), Pages::new()] {
            for advice in ADVICE {
                let basic = matches!(
                    advice,
                    Advice::Normal | Advice::Sequential | Advice::Random | Advice::WillNeed
                );
                assert!(is_known(&pages, advice) || !basic, "{advice:?} of {pages:?}");
            }
        }
        for tensor in model.tensors() {
            let range = tensor.file_range();
            let expected = &expected[range.start as usize..range.end as usize];
            assert!(tensor.bytes() == expected, "{} has other bytes", tensor.name());
        }
    }
}

#[test]
fn to_populate_is_to_have_all_pages() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.model("populated", &[("a", 20 * MIB), ("b", MIB)]);
    let model = map(&path);
    make_cold(&model.pages());
    let pages = model.tensor("a").unwrap().pages();
    if is_known(&pages, Advice::PopulateRead) {
        let count = pages.count().unwrap();
        assert_eq!(count.in_memory, count.mapped);
        assert!(model.memory().unwrap().resident >= 20 * MIB as u64);
    }
    // What cannot be read is an error and no signal.
    let path = folder.model("cut", &[("a", MIB)]);
    let model = map(&path);
    cut(&path, 1000);
    let error = model.pages().advise(Advice::PopulateRead).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io { action: "give advice", .. }), "{error}");
    assert_eq!(error.path(), Some(&*path));
}
