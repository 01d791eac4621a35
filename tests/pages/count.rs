//! Are pages counted truly?

use crate::common::{Folder, MIB, child, finish, in_memory, make_cold, map, part, touch};
use crate::skip::skip;
use barest::{Mapping, Model, PageCount, Pages};
use std::fs::{self, Permissions};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::slice::from_ref;

/// The pages that a range of a file touches.
fn touched(range: &Range<u64>) -> Range<usize> {
    let page = Mapping::page_size() as u64;
    (range.start / page) as usize..range.end.div_ceil(page) as usize
}

fn numbers(count: PageCount) -> (usize, usize, usize) {
    (count.mapped, count.in_memory, count.untold)
}

#[test]
fn a_range_a_tensor_a_prefix_and_a_model_are_counted() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let page = Mapping::page_size();
    let tensors =
        [("in.a", 10), ("in.b", 5 * page), ("none", 0), ("in.c", 3 * page + 7), ("out", MIB)];
    let path = folder.model("counted.safetensors", &tensors);
    let model = map(&path);
    let ends = |first: &str, last: &str| {
        let range = |name| model.tensor(name).unwrap().file_range();
        range(first).start..range(last).end
    };
    let whole = 0..fs::metadata(&path).unwrap().len();
    let list = ["in.b", "out"];
    let rows: [(&str, Pages, &[Range<u64>]); 6] = [
        ("model", model.pages(), from_ref(&whole)),
        ("prefix", model.scope("in").pages(), &[ends("in.a", "in.c")]),
        ("tensor", model.tensor("in.b").unwrap().pages(), &[ends("in.b", "in.b")]),
        ("list", model.pages_of(list).unwrap(), &[ends("in.b", "in.b"), ends("out", "out")]),
        ("empty", model.tensor("none").unwrap().pages(), &[]),
        ("nothing", Pages::new(), &[]),
    ];
    let compare = |when: &str| {
        let witness = in_memory(&path);
        for (what, pages, ranges) in &rows {
            // The parts of the list lie further from each other than a page.
            let touched = ranges.iter().flat_map(touched);
            let expected = touched.clone().filter(|&page| witness[page]).count();
            let count = numbers(pages.count().unwrap());
            assert_eq!(count, (touched.count(), expected, 0), "{what}, {when}");
        }
    };
    make_cold(&model.pages());
    compare("all dropped");
    assert!(!in_memory(&path).contains(&true));

    touch(&model.tensor("in.b").unwrap().bytes()[..1]);
    compare("one byte touched");
    assert!(rows[2].1.count().unwrap().in_memory > 0);

    touch(model.tensor("out").unwrap().bytes());
    compare("a tensor touched");
    assert!(rows[3].1.count().unwrap().in_memory >= MIB / page);
}

#[test]
fn each_page_counts_once_in_whatever_order_the_parts_are_given() {
    let folder = Folder::new();
    let names: Vec<String> = (0..1000).map(|number| format!("t{number}")).collect();
    let tensors: Vec<(&str, usize)> = names.iter().map(|name| (&**name, 40)).collect();
    let path = folder.model("tiny.safetensors", &tensors);
    for model in [map(&path), Model::read(&path).unwrap()] {
        let forwards = model.pages_of(names.iter().map(|name| &**name)).unwrap();
        let backwards = model.pages_of(names.iter().rev().map(|name| &**name)).unwrap();
        // Every second one, which touches the same pages; and all of them twice.
        let mut others = model.pages_of(names.iter().step_by(2).map(|name| &**name)).unwrap();
        let expected = forwards.count().unwrap();
        assert!(expected.mapped <= 40_000 / Mapping::page_size() + 2, "{expected:?}");
        assert_eq!(backwards.count().unwrap(), expected);
        assert_eq!(others.count().unwrap(), expected);
        others.extend(backwards.clone());
        others.extend(forwards.clone());
        assert_eq!(others.count().unwrap(), expected);
        assert_eq!(others.byte_len(), 2 * 40_000 + 20_000);
        // A part within a part.
        let mut nested = model.pages();
        nested.add(&model.tensor("t7").unwrap());
        assert_eq!(nested.count().unwrap(), model.pages().count().unwrap());
    }
}

#[test]
fn a_model_that_was_read_is_in_memory_whole() {
    let folder = Folder::new();
    let path = folder.model("read.safetensors", &[("a", 3 * MIB + 5), ("b", 77)]);
    let bytes = fs::read(&path).unwrap();
    for model in [Model::read(&path).unwrap(), Model::from_bytes(&bytes).unwrap()] {
        let all = bytes.len().div_ceil(Mapping::page_size());
        assert_eq!(numbers(model.pages().count().unwrap()), (all, all, 0));
        let one = model.tensor("b").unwrap().pages().count().unwrap();
        assert_eq!(one.in_memory, one.mapped);
    }
}

/// Linux says of such a file that every page is in memory.
#[test]
fn of_another_user_s_file_nothing_is_told() {
    if let Some(path) = part() {
        return count_as_nobody(Path::new(&path));
    }
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.model("root.safetensors", &[("t", 8 * MIB)]);
    if fs::metadata(&path).unwrap().uid() != 0 {
        return skip("the user root", "no process can be started as another user");
    }
    make_cold(&map(&path).pages());
    const NOBODY: u32 = 65_534;
    let test = "count::of_another_user_s_file_nothing_is_told";
    for mode in [0o644, 0o666] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let mut child = child(test, path.to_str().unwrap());
        child.uid(NOBODY).gid(NOBODY).current_dir("/");
        if finish(child).is_err() {
            return skip("a target folder that all may enter", "nobody cannot run this test");
        }
    }
}

fn count_as_nobody(path: &Path) {
    let model = map(path);
    let pages = model.tensor("t").unwrap().pages();
    let may_write = fs::metadata(path).unwrap().mode() & 0o002 != 0;
    let all = 8 * MIB / Mapping::page_size() + 1;
    let count = pages.count().unwrap();
    let untold = if may_write { 0 } else { all };
    assert_eq!((count.mapped, count.untold), (all, untold));
    assert!(may_write || count.in_memory == 0);
    // What is not told is brought in as if it were absent; only the kernel knows how much it was.
    let prefetcher = pages.prefetch().unwrap();
    prefetcher.wait_all().unwrap();
    assert!(may_write || prefetcher.bytes_brought() == 8 * MIB as u64);
    let eviction = pages.evict().unwrap();
    assert_eq!((eviction.before.untold, eviction.after.untold), (untold, untold));
    assert!(model.memory().unwrap().resident < 8 * MIB as u64);
}
