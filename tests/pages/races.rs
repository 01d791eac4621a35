//! Does anything break when everything happens at once, or is very much?

use crate::common::{Folder, MIB, cut, make_cold, map};
use barest::{ErrorKind, Model};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn bytes_stay_the_same_while_pages_come_and_go() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let names: Vec<String> = (0..8).map(|number| format!("layer.{number}")).collect();
    let tensors: Vec<(&str, usize)> = names.iter().map(|name| (&**name, 3 * MIB + 77)).collect();
    let path = folder.model("busy", &tensors);
    let expected = fs::read(&path).unwrap();
    let model = map(&path);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for first in [0, 4] {
            let (model, expected, names, done) = (&model, &expected, &names, &done);
            scope.spawn(move || {
                for name in names.iter().cycle().skip(first) {
                    let tensor = model.tensor(name).unwrap();
                    let start = tensor.file_range().start as usize;
                    assert!(tensor.bytes() == &expected[start..][..tensor.byte_len()], "{name}");
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        scope.spawn(|| {
            for name in names.iter().cycle().take(40) {
                let eviction = model.tensor(name).unwrap().pages().evict().unwrap();
                assert!(eviction.after.in_memory <= eviction.after.mapped);
                model.pages().count().unwrap();
            }
        });
        for round in 0..12 {
            let prefetcher = model.pages().prefetch().unwrap();
            let locked = model.tensor(&names[round % 8]).unwrap().pages().lock();
            if round % 3 == 0 {
                prefetcher.cancel();
            } else {
                prefetcher.wait_all().unwrap();
            }
            drop(locked);
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Nothing is touched: to read a page that the file has lost is what ends a process.
#[test]
fn a_file_that_is_cut_while_it_is_fetched_is_an_error_or_whole() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.sparse("shrinking", &[("t", 64 * MIB)]);
    let whole = fs::metadata(&path).unwrap().len();
    let model = map(&path);
    let done = AtomicBool::new(false);
    let cut_ones = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                cut(&path, whole / 3 + 1);
                cut(&path, whole);
            }
        });
        let fetch = |_| {
            let fetched = model.pages().prefetch_regardless().unwrap().wait_all();
            let locked = model.pages().lock().map(drop);
            let evicted = model.pages().evict().map(drop);
            [fetched, locked, evicted]
        };
        let outcomes: Vec<_> = (0..8).flat_map(fetch).collect();
        done.store(true, Ordering::Relaxed);
        outcomes.into_iter().filter_map(Result::err).collect::<Vec<_>>()
    });
    // It may be whole again by the time it is asked.
    for error in cut_ones {
        match error.kind() {
            ErrorKind::Shrank { expected, found } => assert!(found < expected, "{error}"),
            ErrorKind::Io { .. } | ErrorKind::Limit { .. } => {}
            _ => panic!("{error}"),
        }
        assert_eq!(error.path(), Some(&*path));
    }
}

/// Bytes of memory that this process has of its own.
fn private_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn a_hundred_thousand_tiny_tensors_in_an_odd_order_cost_little() {
    let Some(folder) = Folder::on_a_disk() else { return };
    const COUNT: usize = 100_000;
    let names: Vec<String> = (0..COUNT).map(|number| format!("t{number}")).collect();
    let tensors: Vec<(&str, usize)> = names.iter().map(|name| (&**name, 64)).collect();
    let path = folder.model("tiny", &tensors);
    let model = map(&path);
    make_cold(&model.pages());
    // 7919 is prime: each once.
    let order = || (0..COUNT).map(|at| &*names[at * 7919 % COUNT]);
    let pages = model.pages_of(order()).unwrap();
    let before = private_memory();
    let prefetcher = pages.prefetch().unwrap();
    for name in order() {
        prefetcher.wait(&model.tensor(name).unwrap()).unwrap();
    }
    prefetcher.wait_all().unwrap();
    assert_eq!(prefetcher.progress(), (64 * COUNT as u64, 64 * COUNT as u64));
    let cost = private_memory().saturating_sub(before);
    // Other tests allocate meanwhile; a MiB or more for each would be many GiB.
    assert!(cost < 512 * MIB, "{cost} bytes");
    let count = pages.count().unwrap();
    assert_eq!(count.in_memory, count.mapped);
    drop(prefetcher);
    assert!(pages.lock().is_err() || model.memory().unwrap().locked == 0);
    let left = pages.evict().unwrap().after;
    assert!(left.in_memory <= 2, "{left:?}");
}

/// The child has the mappings and none of the threads.
#[test]
fn a_forked_child_reads_what_its_parent_fetches() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.model("forked", &[("t", 30 * MIB)]);
    let expected = fs::read(&path).unwrap();
    for model in [map(&path), Model::read(&path).unwrap()] {
        if model.pages().evict().is_ok() {
            make_cold(&model.pages());
        }
        let prefetcher = model.pages().prefetch().unwrap();
        let (tensor, expected) = (model.tensor("t").unwrap().share(), expected.clone());
        let read = move || {
            let view = tensor.view();
            let start = view.file_range().start as usize;
            match view.bytes() == &expected[start..][..30 * MIB] {
                true => Ok(()),
                false => Err(io::Error::from_raw_os_error(5)),
            }
        };
        let mut child = Command::new("true");
        // SAFETY: between fork and exec the closure only reads memory.
        unsafe { child.pre_exec(read) };
        assert!(child.status().unwrap().success());
        prefetcher.wait_all().unwrap();
    }
}
