//! Do pages go when they are dropped, and only those?

use crate::common::{Folder, MIB, in_memory, make_cold, map, read_whole, touch, up_to_a_boundary};
use crate::skip::skip;
use barest::{ErrorKind, Index, Mapping, Model, Pages, TensorView};
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;

/// The pages that lie whole within a tensor, among them the last of the file.
fn whole_pages(tensor: &TensorView<'_>, file_len: usize) -> Range<usize> {
    let page = Mapping::page_size();
    let range = tensor.file_range();
    let (start, mut end) = (range.start as usize, range.end as usize);
    if end == file_len {
        end = end.next_multiple_of(page);
    }
    let start = start.div_ceil(page);
    start..(end / page).max(start)
}

/// Whether the kernel is known to split what the page cache holds in one piece.
fn splits_pieces() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(18))
}

/// Has all of a model in the page cache, drops a tensor, and compares page by page.
fn drop_between_neighbours(path: &Path, model: &Model, name: &str) {
    let expected = read_whole(path);
    let tensor = model.tensor(name).unwrap();
    let eviction = tensor.pages().evict().unwrap();
    let witness = in_memory(path);
    let dropped = whole_pages(&tensor, expected.len());
    let lost = (0..witness.len()).find(|page| !witness[*page] && !dropped.contains(page));
    assert_eq!(lost, None, "a neighbour's page went, dropped were {dropped:?}");
    let left: Vec<usize> = dropped.clone().filter(|&page| witness[page]).collect();
    if !left.is_empty() {
        assert!(!splits_pieces(), "left of {dropped:?}: {left:?}");
        skip("Linux 6.18", "pages that the cache holds in one piece with others were not dropped");
    }
    assert_eq!(eviction.before.in_memory, eviction.before.mapped);
    assert_eq!(
        eviction.after.in_memory,
        eviction.after.mapped - dropped.len() + left.len(),
        "{eviction:?}"
    );
    let start = tensor.file_range().start as usize;
    assert!(tensor.bytes() == &expected[start..][..tensor.byte_len()], "{name} has other bytes");
}

#[test]
fn a_tensor_goes_and_its_neighbours_stay() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let page = Mapping::page_size();
    for len in [1, page - 1, page, page + 1, 2 * page, 3 * page + 5, 40 * page] {
        let mut tensors = [("before", 0), ("t", len), ("after", 10 * page + 3)];
        let aligned = up_to_a_boundary(&tensors, page);
        for before in [aligned, aligned + 1, aligned + page - 1, 100] {
            tensors[0].1 = before;
            let path = folder.model(&format!("{before}-{len}"), &tensors);
            let model = map(&path);
            model.tensors().for_each(|tensor| touch(tensor.bytes()));
            drop_between_neighbours(&path, &model, "t");
        }
    }
}

/// With 2 MiB in a piece of the page cache, if the file system can, and mapped as such.
#[test]
fn a_tensor_goes_that_shares_a_huge_page_with_its_neighbours() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let len = 8 * MIB;
    let path = folder.model("huge", &[("before", len), ("t", len), ("after", len)]);
    let model = map(&path);
    for name in ["t", "before", "after", "t"] {
        make_cold(&model.pages());
        model.pages().prefetch().unwrap().wait_all().unwrap();
        drop_between_neighbours(&path, &model, name);
    }
}

/// Another process may have brought them, in pieces as large.
#[test]
fn a_tensor_goes_that_was_not_touched_here() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let tensors = [("before", 5 * MIB), ("t", 6 * MIB), ("after", 7 * MIB)];
    let path = folder.model("untouched", &tensors);
    for name in ["t", "before", "after", "t"] {
        let other = map(&path);
        make_cold(&other.pages());
        other.pages().prefetch().unwrap().wait_all().unwrap();
        drop(other);
        drop_between_neighbours(&path, &map(&path), name);
    }
}

#[test]
fn neighbours_that_go_together_go_whole_in_whatever_order() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let names: Vec<String> = (0..3000).map(|number| format!("t{number}")).collect();
    let tensors: Vec<(&str, usize)> = names.iter().map(|name| (&**name, 100)).collect();
    let path = folder.model("tiny", &tensors);
    let model = map(&path);
    // Backwards, and each with a stride that meets all of them.
    let orders: [Vec<usize>; 2] =
        [(0..3000).rev().collect(), (0..3000).map(|at| at * 1007 % 3000).collect()];
    for order in orders {
        read_whole(&path);
        let pages = model.pages_of(order.iter().map(|&number| &*names[number])).unwrap();
        let eviction = pages.evict().unwrap();
        // The first of them shares its page with the header.
        assert_eq!(eviction.before.in_memory, eviction.before.mapped);
        assert_eq!(eviction.after.in_memory, 1, "{eviction:?}");
    }
}

#[test]
fn what_was_read_is_never_dropped() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.model("read", &[("a", 3 * MIB), ("b", 70_001)]);
    let expected = fs::read(&path).unwrap();
    for model in [Model::read(&path).unwrap(), Model::from_bytes(&expected).unwrap()] {
        let shard = model.shards().next().unwrap();
        let parts = [model.pages(), model.tensor("b").unwrap().pages(), model.scope("").pages()];
        for pages in parts {
            let error = pages.evict().unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::NotFileBacked), "{error}");
            assert_eq!(error.path(), shard.path());
        }
        for tensor in model.tensors() {
            let start = tensor.file_range().start as usize;
            assert!(tensor.bytes() == &expected[start..][..tensor.byte_len()]);
        }
    }
}

#[test]
fn a_list_that_holds_what_was_read_drops_nothing() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.model("mixed", &[("t", 3 * MIB)]);
    let (mapped, read) = (map(&path), Model::read(&path).unwrap());
    touch(mapped.tensor("t").unwrap().bytes());
    let before = in_memory(&path);
    for [first, second] in [[&mapped, &read], [&read, &mapped]] {
        let mut pages = first.pages();
        pages.extend(second.pages());
        let error = pages.evict().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotFileBacked), "{error}");
        assert_eq!(in_memory(&path), before);
    }
    assert!(Pages::new().evict().is_ok());
}

/// As with two processes: the kernel takes no page from a mapping that did not ask for it.
#[test]
fn what_another_mapping_has_touched_stays_and_is_told() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.model("twice", &[("t", 3 * MIB)]);
    let (one, other) = (map(&path), map(&path));
    touch(one.tensor("t").unwrap().bytes());
    touch(other.tensor("t").unwrap().bytes());
    let eviction = one.pages().evict().unwrap();
    let left = in_memory(&path).iter().filter(|&&page| page).count();
    assert_eq!(eviction.after.in_memory, left);
    assert!(left >= 3 * MIB / Mapping::page_size(), "{eviction:?}");
    // This one has let them go, the other has not.
    assert_eq!(one.memory().unwrap().resident, 0);
    assert!(other.memory().unwrap().resident >= 3 * MIB as u64);
    drop(other);
    make_cold(&one.pages());
}

/// Of a file that holds more than the model, only the model's pages go.
#[test]
fn what_lies_around_a_model_in_a_larger_file_stays() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let page = Mapping::page_size();
    let model = fs::read(folder.model("inner", &[("t", 5 * page)])).unwrap();
    for lead in [page, page + 1234, 3 * page - 1] {
        let path = folder.path(&format!("outer-{lead}"));
        let bytes = [&vec![7; lead][..], &model[..], &vec![9; 4 * page][..]].concat();
        fs::write(&path, &bytes).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        let range = lead as u64..(lead + model.len()) as u64;
        // SAFETY: nobody changes the file.
        let model = unsafe { Index::open_range(&path, range.clone()).unwrap().map() }.unwrap();
        read_whole(&path);
        let eviction = model.pages().evict().unwrap();
        let gone: Vec<usize> = (0..)
            .zip(in_memory(&path))
            .filter(|(_, page)| !page)
            .map(|(number, _)| number)
            .collect();
        let whole = range.start.div_ceil(page as u64)..range.end / page as u64;
        let expected: Vec<usize> = whole.map(|page| page as usize).collect();
        assert_eq!(gone, expected, "{range:?}, {eviction:?}");
        let start = model.tensor("t").unwrap().file_range().start as usize;
        assert!(model.tensor("t").unwrap().bytes() == &bytes[start..][..5 * page]);
    }
}
