//! Do locked pages stay, and does a refusal say which limit it met?

use crate::common::{Folder, MIB, child, cut, finish, make_cold, map, on_linux, part};
use crate::skip::skip;
use barest::{Advice, Error, ErrorKind, Locked, Mapping, Model, Pages};
use std::fs;
use std::path::Path;
use std::process::Command;

fn locked_bytes(model: &Model) -> usize {
    model.memory().unwrap().locked as usize
}

/// Locks pages; `None`, said aloud, where this process may lock none.
fn lock(pages: &Pages) -> Option<Locked> {
    match pages.lock() {
        Ok(locked) => Some(locked),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Limit { .. }), "{error}");
            skip("a larger limit for locked memory", &error.to_string());
            None
        }
    }
}

#[test]
fn locked_pages_come_and_stay_until_they_are_let_go() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let page = Mapping::page_size();
    let path = folder.model("locked", &[("a", MIB), ("b", 5 * page), ("c", MIB)]);
    let model = map(&path);
    make_cold(&model.pages());
    let pages = model.tensor("b").unwrap().pages();
    let mapped = pages.count().unwrap().mapped;
    let Some(locked) = lock(&pages) else { return };
    assert_eq!(pages.count().unwrap().in_memory, mapped);
    assert_eq!(locked_bytes(&model), mapped * page);
    assert_eq!(format!("{locked:?}"), format!("Locked({} bytes)", 5 * page));

    // The kernel refuses to drop them, and no byte changes.
    let before = fs::read(&path).unwrap();
    assert_eq!(pages.evict().unwrap().after.in_memory, mapped);
    let around = model.pages().evict().unwrap();
    assert!(around.after.in_memory >= mapped, "{around:?}");
    let tensor = model.tensor("b").unwrap();
    assert!(tensor.bytes() == &before[tensor.file_range().start as usize..][..5 * page]);
    assert_eq!(locked_bytes(&model), mapped * page);

    // Nor does it take advice to reclaim them first.
    let error = pages.advise(Advice::Cold).unwrap_err();
    let ErrorKind::Io { source, .. } = error.kind() else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::Unsupported);

    drop(locked);
    assert_eq!(locked_bytes(&model), 0);
    make_cold(&model.pages());
}

#[test]
fn what_is_let_go_leaves_other_locks_alone() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let page = Mapping::page_size();
    let tensors = ["before", "gap", "middle", "other gap", "behind"].map(|name| (name, 3 * page));
    let model = map(&folder.model("neighbours", &tensors));
    let pages = |name: &str| model.tensor(name).unwrap().pages();
    let bytes = |name: &str| pages(name).count().unwrap().mapped * page;
    let Some(before) = lock(&pages("before")) else { return };
    let Some(middle) = lock(&pages("middle")) else { return };
    let Some(behind) = lock(&pages("behind")) else { return };
    assert_eq!(locked_bytes(&model), bytes("before") + bytes("middle") + bytes("behind"));
    drop(middle);
    assert_eq!(locked_bytes(&model), bytes("before") + bytes("behind"));
    drop(behind);
    assert_eq!(locked_bytes(&model), bytes("before"));
    drop(before);
    assert_eq!(locked_bytes(&model), 0);
}

#[test]
fn a_lock_outlives_the_model_and_lets_it_go() {
    if !on_linux() {
        return;
    }
    let folder = Folder::new();
    let path = folder.model("outlived", &[("t", 100)]);
    let model = map(&path);
    let Some(locked) = lock(&model.pages()) else { return };
    drop(model);
    let is_mapped = || {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.contains(path.to_str().unwrap())
    };
    assert!(is_mapped());
    drop(locked);
    assert!(!is_mapped());
}

#[test]
fn what_was_read_can_be_locked_and_tiny_parts_in_any_order() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let names: Vec<String> = (0..2000).map(|number| format!("t{number}")).collect();
    let tensors: Vec<(&str, usize)> = names.iter().map(|name| (&**name, 50)).collect();
    let path = folder.model("tiny", &tensors);
    for model in [map(&path), Model::read(&path).unwrap()] {
        let pages = model.pages_of(names.iter().rev().map(|name| &**name)).unwrap();
        let Some(locked) = lock(&pages) else { return };
        let all = pages.count().unwrap().mapped * Mapping::page_size();
        assert_eq!(locked_bytes(&model), all, "{:?}", model.backing(0));
        drop(locked);
        assert_eq!(locked_bytes(&model), 0);
    }
    assert_eq!(format!("{:?}", Pages::new().lock().unwrap()), "Locked(0 bytes)");
}

#[test]
fn of_a_file_that_was_cut_nothing_is_locked() {
    let Some(folder) = Folder::on_a_disk() else { return };
    for left in [0, 20_000, MIB as u64] {
        let path = folder.model(&format!("cut-{left}"), &[("a", 10_000), ("b", MIB)]);
        let whole = fs::metadata(&path).unwrap().len();
        let model = map(&path);
        // All of it fits: another error could only be the file's.
        let Some(locked) = lock(&model.pages()) else { return };
        drop(locked);
        for left in [left, whole - 1] {
            cut(&path, left);
            let error = model.pages().lock().unwrap_err();
            let ErrorKind::Shrank { expected, found } = *error.kind() else { panic!("{error}") };
            assert_eq!((expected, found, error.path()), (whole, left, Some(&*path)));
            assert_eq!(locked_bytes(&model), 0, "{left} of {whole} bytes are left");
        }
    }
}

/// Each lock of a part needs two mappings more, of which a process may not have many: a process of its
/// own, for the sake of the other tests.
#[test]
fn too_many_parts_are_not_blamed_on_the_limit_for_memory() {
    if let Some(path) = part() {
        return lock_with_few_mappings_left(Path::new(&path));
    }
    let limit = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    if limit.trim().parse().map_or(true, |limit: usize| limit > 200_000) {
        return skip("a small vm.max_map_count", "so many mappings would take long");
    }
    let folder = Folder::new();
    let page = Mapping::page_size();
    let names: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
    let tensors: Vec<(&str, usize)> = names.iter().map(|name| (&**name, 3 * page)).collect();
    let path = folder.model("many", &tensors);
    let test = "lock::too_many_parts_are_not_blamed_on_the_limit_for_memory";
    finish(child(test, path.to_str().unwrap())).unwrap();
}

fn lock_with_few_mappings_left(path: &Path) {
    let model = map(path);
    let mut parts = Pages::new();
    model.tensors().step_by(2).for_each(|tensor| parts.add(&tensor));
    let file = fs::File::open(path).unwrap();
    let mut others: Vec<Mapping> = std::iter::from_fn(|| Mapping::open(&file).ok()).collect();
    others.truncate(others.len() - 6);
    let error = parts.lock().unwrap_err();
    let ErrorKind::Limit { what, advice, .. } = *error.kind() else { panic!("{error}") };
    assert_eq!((what, advice), ("mappings", "sysctl vm.max_map_count"));
    drop(others);
    assert_eq!(locked_bytes(&model), 0);
}

/// Root may lock what it likes unless it gives that right away.
#[test]
fn beyond_the_limit_the_error_names_it() {
    if let Some(path) = part() {
        return lock_too_much(Path::new(&path));
    }
    let folder = Folder::new();
    let path = folder.model("limited", &[("little", 10_000), ("much", MIB)]);
    let test = "lock::beyond_the_limit_the_error_names_it";
    let itself = child(test, path.to_str().unwrap());
    let may_lock = "-ipc_lock";
    let mut limited = Command::new("setpriv");
    limited.args([
        "--bounding-set",
        may_lock,
        "--inh-caps",
        may_lock,
        "prlimit",
        "--memlock=131072",
    ]);
    limited.arg(itself.get_program()).args(itself.get_args());
    limited.envs(itself.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let tries = Command::new("setpriv")
        .args(["--bounding-set", may_lock, "prlimit", "--memlock=131072", "true"])
        .output();
    if !tries.is_ok_and(|output| output.status.success()) {
        return skip("a way to give up CAP_IPC_LOCK", "the limit for locked memory is not met");
    }
    finish(limited).unwrap();
}

fn lock_too_much(path: &Path) {
    for model in [map(path), Model::read(path).unwrap()] {
        let held = model.tensor("little").unwrap().pages().lock().unwrap();
        let refuse = |pages: Pages| -> Error { pages.lock().unwrap_err() };
        let error = refuse(model.tensor("much").unwrap().pages());
        let ErrorKind::Limit { action, what, limit, advice, .. } = *error.kind() else {
            panic!("{error}");
        };
        assert_eq!((action, limit), ("lock pages", 131_072));
        let text = error.to_string();
        for part in [what, advice, "131072", "ulimit -l", path.to_str().unwrap()] {
            assert!(text.contains(part), "{text}");
        }
        drop(held);
        assert_eq!(locked_bytes(&model), 0);
    }
}
