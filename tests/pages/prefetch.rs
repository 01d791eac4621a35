//! Do pages come in the order of their use, and do those who wait hear of it?

use crate::common::{Folder, MIB, cut, in_memory, make_cold, map, up_to_a_boundary};
use crate::skip::skip;
use barest::{Error, ErrorKind, Mapping, Model, Pages, Prefetcher};
use std::fs;
use std::path::Path;
use std::thread;

const PIECE: usize = 8 * MIB;

/// Whether all pages of a tensor are in memory, by the witness.
fn is_there(path: &Path, model: &Model, name: &str) -> bool {
    let page = Mapping::page_size() as u64;
    let range = model.tensor(name).unwrap().file_range();
    let pages = in_memory(path);
    pages[(range.start / page) as usize..range.end.div_ceil(page) as usize].iter().all(|&page| page)
}

fn wait(prefetcher: &Prefetcher, model: &Model, name: &str) -> Result<(), Error> {
    prefetcher.wait(&model.tensor(name).unwrap())
}

#[test]
fn all_pages_are_there_after_waiting_and_every_byte_was_counted() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.model("all", &[("a", 3 * PIECE + 12_345), ("b", 7), ("c", MIB)]);
    let model = map(&path);
    let len = fs::metadata(&path).unwrap().len();
    let expected = fs::read(&path).unwrap();
    for pages in [model.pages(), model.scope("").pages(), model.pages_of(["c", "b", "a"]).unwrap()]
    {
        make_cold(&model.pages());
        let prefetcher = Prefetcher::start(&pages).unwrap();
        prefetcher.wait_all().unwrap();
        let count = pages.count().unwrap();
        assert_eq!(count.in_memory, count.mapped, "{prefetcher:?}");
        assert_eq!(prefetcher.progress(), (pages.byte_len(), pages.byte_len()));
        assert!(prefetcher.bytes_brought() <= pages.byte_len());
        // Not all of it: what the kernel has read ahead of one piece may be all of the next.
        assert!(prefetcher.bytes_brought() >= PIECE as u64, "{}", prefetcher.bytes_brought());
    }
    assert_eq!(model.pages().byte_len(), len);
    let start = model.shards().next().unwrap().header().data_start() as usize;
    assert!(model.tensor("a").unwrap().bytes() == &expected[start..][..3 * PIECE + 12_345]);

    // Warm: nothing is left to do.
    let again = model.pages().prefetch().unwrap();
    again.wait_all().unwrap();
    assert_eq!((again.bytes_brought(), again.progress()), (0, (len, len)));
}

/// Tries what a slow enough thread may come too late for, until it came in time.
fn in_time(attempt: impl Fn() -> bool) {
    assert!((0..20).any(|_| attempt()), "never before all was done");
}

#[test]
fn what_is_first_in_use_is_there_before_all_is() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.sparse("order", &[("rest", 32 * PIECE), ("first", 1000), ("other", 1000)]);
    let model = map(&path);
    let pages = model.pages_of(["first", "rest", "other"]).unwrap();
    in_time(|| {
        make_cold(&model.pages());
        let prefetcher = pages.prefetch().unwrap();
        wait(&prefetcher, &model, "first").unwrap();
        let (done, all) = prefetcher.progress();
        assert!(is_there(&path, &model, "first"));
        wait(&prefetcher, &model, "other").unwrap();
        wait(&prefetcher, &model, "rest").unwrap();
        assert_eq!(prefetcher.progress(), (all, all));
        // A kernel that reclaims pages of its own accord may have taken one already: then once more.
        let all_there = is_there(&path, &model, "rest") && is_there(&path, &model, "other");
        all_there && done < all / 2
    });
}

#[test]
fn the_first_huge_page_comes_although_reading_the_header_brought_small_ones() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.sparse("huge", &[("first", 4 * MIB), ("rest", 96 * MIB)]);
    // A kernel that is short of huge pages gives fewer.
    let most = |name: &str| {
        let huge = || {
            make_cold(&map(&path).pages());
            let model = map(&path);
            model.pages_of([name]).unwrap().prefetch().unwrap().wait_all().unwrap();
            model.memory().map_or(0, |memory| memory.huge)
        };
        (0..20).map(|_| huge()).max().unwrap()
    };
    match most("rest") {
        0 => skip("huge pages of files", "the first one was not seen to come"),
        _ => assert_eq!(most("first"), 4 * MIB as u64),
    }
}

#[test]
fn nobody_waits_for_what_was_not_asked_for() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let mut tensors =
        [("lead", 0), ("asked.one", 32 * PIECE), ("empty", 0), ("asked.too", PIECE), ("out", 100)];
    tensors[0].1 = up_to_a_boundary(&tensors, Mapping::page_size());
    let path = folder.sparse("outside", &tensors);
    let (model, other) = (map(&path), map(&path));
    in_time(|| {
        make_cold(&model.pages());
        let prefetcher = model.scope("asked").pages().prefetch().unwrap();
        prefetcher.cancel();
        for (of, name) in
            [(&model, "lead"), (&model, "out"), (&model, "empty"), (&other, "asked.one")]
        {
            wait(&prefetcher, of, name).unwrap();
        }
        match (wait(&prefetcher, &model, "asked.one"), prefetcher.wait_all()) {
            (Err(one), Err(other)) => {
                assert!(matches!(one.kind(), ErrorKind::Cancelled), "{one}");
                assert!(matches!(other.kind(), ErrorKind::Cancelled), "{other}");
                true
            }
            _ => false,
        }
    });
}

#[test]
fn several_wait_for_several_things_at_once() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let names: Vec<String> = (0..20).map(|number| format!("layer.{number}")).collect();
    let tensors: Vec<(&str, usize)> = names.iter().map(|name| (&**name, 3 * MIB + 1)).collect();
    let path = folder.model("waiters", &tensors);
    let model = map(&path);
    let expected = fs::read(&path).unwrap();
    make_cold(&model.pages());
    let prefetcher = model.pages().prefetch().unwrap();
    thread::scope(|scope| {
        for first in 0..5 {
            let (names, model, prefetcher, expected) = (&names, &model, &prefetcher, &expected);
            scope.spawn(move || {
                for name in names.iter().cycle().skip(first * 4).take(20) {
                    let tensor = model.tensor(name).unwrap();
                    prefetcher.wait(&tensor).unwrap();
                    let start = tensor.file_range().start as usize;
                    assert!(tensor.bytes() == &expected[start..][..tensor.byte_len()], "{name}");
                }
                prefetcher.wait_all().unwrap();
            });
        }
    });
}

#[test]
fn those_who_wait_are_woken_when_it_is_cancelled() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.sparse("cancelled", &[("a", 32 * PIECE), ("b", 1)]);
    let model = map(&path);
    in_time(|| {
        make_cold(&model.pages());
        let prefetcher = model.pages().prefetch().unwrap();
        let is_cancelled = || match wait(&prefetcher, &model, "b") {
            Ok(()) => false,
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Cancelled), "{error}");
                true
            }
        };
        let outcomes = thread::scope(|scope| {
            let waiters: Vec<_> = (0..3).map(|_| scope.spawn(is_cancelled)).collect();
            thread::yield_now();
            prefetcher.cancel();
            waiters.into_iter().map(|waiter| waiter.join().unwrap()).collect::<Vec<_>>()
        });
        let (done, all) = prefetcher.progress();
        done < all && outcomes == [true; 3]
    });
}

#[test]
fn dropped_it_ends_early_and_lets_go_of_the_model() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.sparse("dropped", &[("a", 32 * PIECE)]);
    let is_mapped = || {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.contains(path.to_str().unwrap())
    };
    in_time(|| {
        let model = map(&path);
        make_cold(&model.pages());
        let prefetcher = model.pages().prefetch().unwrap();
        // It keeps the pages of a model that is gone.
        drop(model);
        assert!(is_mapped());
        assert_eq!(prefetcher.progress().1, fs::metadata(&path).unwrap().len());
        drop(prefetcher);
        // A thread that still ran would keep it mapped.
        assert!(!is_mapped());
        in_memory(&path).contains(&false)
    });
}

#[test]
fn nothing_is_fetched_at_once() {
    let folder = Folder::new();
    let path = folder.model("little", &[("t", 3 * MIB)]);
    let read = Model::read(&path).unwrap();
    for pages in [Pages::new(), read.pages(), read.scope("no such").pages()] {
        let prefetcher = pages.prefetch().unwrap();
        prefetcher.wait_all().unwrap();
        wait(&prefetcher, &read, "t").unwrap();
        assert_eq!((prefetcher.progress(), prefetcher.bytes_brought()), ((0, 0), 0));
        prefetcher.cancel();
        // What was read is there, whatever happens.
        wait(&prefetcher, &read, "t").unwrap();
    }
}

#[test]
fn parts_of_several_files_mapped_and_read_come_together() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let inner = folder.path("shards");
    fs::create_dir(&inner).unwrap();
    for (name, tensor) in [("1", "one"), ("2", "two"), ("3", "three")] {
        folder.model(&format!("shards/{name}.safetensors"), &[(tensor, PIECE + 5), (name, 100)]);
    }
    let (model, read) = (map(&inner), Model::read(&inner).unwrap());
    make_cold(&model.pages());
    let mut pages = model.pages_of(["three", "1"]).unwrap();
    pages.extend(read.pages());
    pages.add(&model.tensor("2").unwrap());
    let prefetcher = pages.prefetch().unwrap();
    for name in ["2", "1", "three"] {
        wait(&prefetcher, &model, name).unwrap();
        let count = model.tensor(name).unwrap().pages().count().unwrap();
        assert_eq!(count.in_memory, count.mapped, "{name}");
    }
    // Neither the other tensors of those files nor the copies are counted.
    let mapped = (PIECE + 5 + 2 * 100) as u64;
    assert_eq!(prefetcher.progress(), (mapped, mapped));
    assert!(!is_there(&inner.join("2.safetensors"), &map(&inner.join("2.safetensors")), "two"));
}

// What cannot be brought in.

#[test]
fn a_file_that_was_cut_is_an_error_with_its_numbers_and_no_signal() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let rows = [("all", 0), ("half", 2 * PIECE + 3), ("the last pages", 4 * PIECE - 5000)];
    for (name, left) in rows {
        let path = folder.model(name, &[("a", 1000), ("b", 4 * PIECE)]);
        let model = map(&path);
        let whole = fs::metadata(&path).unwrap().len();
        make_cold(&model.pages());
        cut(&path, left as u64);
        let prefetcher = model.pages().prefetch().unwrap();
        for outcome in
            [prefetcher.wait_all(), wait(&prefetcher, &model, "b"), prefetcher.wait_all()]
        {
            let error = outcome.unwrap_err();
            let ErrorKind::Shrank { expected, found } = *error.kind() else { panic!("{error}") };
            assert_eq!((expected, found), (whole, left as u64), "{name}");
            assert_eq!((error.path(), error.offset()), (Some(&*path), Some(left as u64)));
        }
    }
}

/// The kernel's own view: after the end, within the last page, are zeros and no error.
#[test]
fn a_file_cut_within_its_last_page_is_told_too() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.model("last-page", &[("t", MIB + 100)]);
    let model = map(&path);
    let whole = fs::metadata(&path).unwrap().len();
    make_cold(&model.pages());
    cut(&path, whole - 1);
    let error = model.pages().prefetch().unwrap().wait_all().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Shrank { .. }), "{error}");
}

#[test]
fn more_than_the_machine_has_is_refused_before_anything_is_read() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().next().unwrap().split_whitespace().nth(1).unwrap();
    let total = total.parse::<usize>().unwrap() * 1024;
    let path = folder.sparse("large", &[("a", 64 * MIB), ("b", total + 64 * MIB)]);
    let model = map(&path);
    let error = model.pages().prefetch().unwrap_err();
    let ErrorKind::WouldNotFit { need, have, limit } = *error.kind() else { panic!("{error}") };
    assert!(total as u64 <= need && need <= (total + 256 * MIB) as u64, "{need}");
    assert!(0 < have && have < need, "{have}");
    assert!(["memory available", "memory left of the control group's limit"].contains(&limit));
    let text = error.to_string();
    assert!(text.contains(&need.to_string()) && text.contains(&have.to_string()), "{text}");
    assert_eq!(model.tensor("b").unwrap().pages().count().unwrap().in_memory, 0);
    // What is asked for twice is needed once; what fits and is there is needed no more.
    let needed = |pages: &Pages| match *pages.prefetch().unwrap_err().kind() {
        ErrorKind::WouldNotFit { need, .. } => need,
        _ => panic!("another error"),
    };
    let mut twice = model.pages();
    twice.extend(model.pages());
    assert_eq!(needed(&twice), need);
    model.tensor("a").unwrap().pages().prefetch().unwrap().wait_all().unwrap();
    assert!(needed(&twice) <= need - 64 * MIB as u64);
}

/// Bytes of a file's mappings that were advised to lie on huge pages.
fn advised_huge(path: &Path) -> usize {
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut len, mut sum) = (0, 0);
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            sum += if flags.contains(" hg") { len } else { 0 };
        } else if let Some((start, end)) = line.split(' ').next().unwrap().split_once('-') {
            let address = |text| usize::from_str_radix(text, 16).unwrap();
            let is_ours = line.contains(path.to_str().unwrap());
            len = if is_ours { address(end) - address(start) } else { 0 };
        }
    }
    sum
}

#[test]
fn huge_pages_are_asked_for_where_parts_are_long_whatever_stands_before_them() {
    let Some(folder) = Folder::on_a_disk() else { return };
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return skip("huge pages", "this kernel has none to ask for");
    }
    // More short parts, none beside another, than may be advised.
    let names: Vec<String> = (0..600).map(|number| format!("t{number}")).collect();
    let mut tensors: Vec<(&str, usize)> = names.iter().map(|name| (&**name, 9000)).collect();
    tensors.push(("long", 5 * MIB));
    let path = folder.model("advised", &tensors);
    let model = map(&path);
    let mut pages = model.pages_of(names.iter().step_by(2).map(|name| &**name)).unwrap();
    pages.prefetch().unwrap().wait_all().unwrap();
    assert_eq!(advised_huge(&path), 0);
    pages.add(&model.tensor("long").unwrap());
    pages.prefetch().unwrap().wait_all().unwrap();
    let advised = advised_huge(&path);
    assert!((5 * MIB..6 * MIB).contains(&advised), "{advised}");
}
