//! What the guard against SIGBUS does, and leaves undone: each case in a process of its own.
#![cfg(all(unix, target_pointer_width = "64"))]

#[path = "../src/barest/skip.rs"]
mod skip;

#[path = "common/child.rs"]
mod child;

use barest::{ErrorKind, F16, Mapping, Model, Select, sigbus};
use child::{SIGBUS, each_in_a_child};
use std::ffi::{c_int, c_void};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::thread;

unsafe extern "C" {
    fn signal(signal: c_int, handler: usize) -> usize;
    fn raise(signal: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
    fn mmap(
        at: *mut c_void,
        len: usize,
        prot: c_int,
        flags: c_int,
        fd: c_int,
        off: i64,
    ) -> *mut c_void;
}

const PROT_READ: c_int = 1;
const MAP_SHARED: c_int = 1;
const MAP_FIXED: c_int = 0x10;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;

/// A path in the system's folder for such, that no other test has. Children may die, so the file
/// is unlinked as soon as it is open.
fn path() -> PathBuf {
    static PATHS: AtomicU32 = AtomicU32::new(0);
    let number = PATHS.fetch_add(1, SeqCst);
    std::env::temp_dir().join(format!("barest-guard-{}-{number}", std::process::id()))
}

/// A file of so many bytes, all of them holes, that has no name any more.
fn holes(len: usize) -> File {
    let path = path();
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    fs::remove_file(path).unwrap();
    file.set_len(len as u64).unwrap();
    file
}

/// A mapping that the registry does not know.
fn unknown(file: &File, len: usize, at: *const u8) -> *const u8 {
    let fixed = if at.is_null() { 0 } else { MAP_FIXED };
    let descriptor = file.as_raw_fd();
    // SAFETY: free addresses of the kernel's choosing, or those that a caller has just given back.
    let address =
        unsafe { mmap(at as *mut c_void, len, PROT_READ, MAP_SHARED | fixed, descriptor, 0) };
    assert_ne!(address as usize, usize::MAX, "{}", io::Error::last_os_error());
    address.cast()
}

fn touch(address: *const u8) -> u8 {
    // SAFETY: an address in a mapping of the caller's. That its page may be gone is the point.
    unsafe { address.read_volatile() }
}

/// What reads a page that its file has lost, in a mapping that is not guarded.
fn touch_a_lost_page_of_an_unknown_mapping() {
    let page = Mapping::page_size();
    let file = holes(page);
    let address = unknown(&file, page, null_mut());
    file.set_len(0).unwrap();
    assert_eq!(touch(address), 0);
}

const PAGES: usize = 64;

/// Tensors `first`, of one page, then `halves`, `truths` and `last`, each of [`PAGES`]. The first
/// begins on a page: 4096 bytes of header, and with pages that are larger still only `first` is short.
fn model_file(path: &Path) -> (File, usize) {
    let page = Mapping::page_size();
    let (elements, rows, span) = (page / 2, PAGES, PAGES * page);
    let names = [("first", "F16", page, format!("[1,{elements}]"))].into_iter().chain(
        ["halves", "truths", "last"].map(|name| match name {
            "truths" => (name, "BOOL", span, format!("[{rows},{page}]")),
            _ => (name, "F16", span, format!("[{rows},{elements}]")),
        }),
    );
    let mut at = 0;
    let entries: Vec<String> = names
        .map(|(name, dtype, len, shape)| {
            let begin = at;
            at += len;
            format!(
                r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{at}]}}"#
            )
        })
        .collect();
    let header = format!("{{{}}}", entries.join(","));
    let header = format!("{header:width$}", width = page - 8);
    let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
    let start = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    std::os::unix::fs::FileExt::write_all_at(&file, &start, 0).unwrap();
    file.set_len((page + at) as u64).unwrap();
    (file, page)
}

fn mapped_model() -> (Model, File, usize) {
    let path = path();
    let (file, page) = model_file(&path);
    // SAFETY: none that would hold; that is what is tried here. What is read of the model's memory
    // after a change is judged by nothing but the guard's own report.
    let model = unsafe { Model::map(&path) }.unwrap();
    fs::remove_file(path).unwrap();
    (model, file, page)
}

fn supported() -> bool {
    let known = cfg!(any(target_os = "linux", target_os = "android", target_vendor = "apple"));
    if !known {
        skip::skip("a guard against SIGBUS", "the layout of signals is not known here");
    }
    known
}

/// Reads all of `halves`, of which all but four pages are gone, and expects the error.
fn read_what_was_cut() {
    let (model, file, page) = mapped_model();
    let mut values = vec![1.0; model.tensor("halves").unwrap().len()];
    // Page 0 is the header, page 1 `first`; four of `halves` remain.
    file.set_len((page * 6) as u64).unwrap();
    let error = model.tensor("halves").unwrap().read_f32(&mut values).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Truncated { .. }), "{error}");
    assert_eq!(error.tensor(), Some("halves"));
    assert_eq!(error.offset(), Some(6 * page as u64), "{error}");
}

#[test]
fn a_lost_page_ends_the_process_and_with_the_guard_is_an_error() {
    if !supported() {
        return;
    }
    let [without, with] = each_in_a_child(
        "a_lost_page_ends_the_process_and_with_the_guard_is_an_error",
        [
            ("without", read_what_was_cut),
            ("with", || {
                sigbus::install().unwrap();
                read_what_was_cut();
            }),
        ],
    );
    without.assert_of_sigbus("without");
    with.assert_well("with");
}

fn every_routine() {
    sigbus::install().unwrap();
    let (model, file, page) = mapped_model();
    let (first, halves, truths) = (
        model.tensor("first").unwrap(),
        model.tensor("halves").unwrap(),
        model.tensor("truths").unwrap(),
    );
    let elements = page / 2;
    let factors = vec![1.0; halves.len()];
    let step = halves.slice(&[Select::all(), Select::all().every(2)]).unwrap();
    // Made before the cut, used after it.
    let (whole, early, late) = (
        halves.f16().unwrap(),
        halves.f16().unwrap().row(1).unwrap(),
        halves.f16().unwrap().row(20).unwrap(),
    );
    file.set_len((page * 6) as u64).unwrap();

    // What lies in front of the cut is as it was.
    let mut row = vec![1.0; elements];
    assert_eq!(early.dot(&factors[..elements]).unwrap(), 0.0);
    early.read_f32(&mut row).unwrap();
    assert_eq!(row, vec![0.0; elements]);

    // Row 20 is in page 22.
    let at = |error: barest::Error| {
        assert!(matches!(error.kind(), ErrorKind::Truncated { .. }), "{error}");
        (error.tensor().unwrap().to_owned(), error.offset().unwrap() / page as u64)
    };
    let halves_at = |number| ("halves".to_owned(), number);
    assert_eq!(at(late.dot(&factors[..elements]).unwrap_err()), halves_at(22));
    early.dot(&factors[..elements]).unwrap();
    assert_eq!(at(late.read_f32(&mut row).unwrap_err()), halves_at(22));
    assert_eq!(at(late.to_f32().unwrap_err()), halves_at(22));
    assert_eq!(at(late.to_vec().unwrap_err()), halves_at(22));
    assert_eq!(at(late.read_into(&mut row).unwrap_err()), halves_at(22));
    assert_eq!(at(halves.row(20).unwrap().to_f32().unwrap_err()), halves_at(22));
    let mut bytes = vec![1; page];
    assert_eq!(at(halves.row(20).unwrap().copy_to(&mut bytes).unwrap_err()), halves_at(22));
    halves.row(3).unwrap().copy_to(&mut bytes).unwrap();
    // Further back all is declared lost, zeros or not, from the tensor's own beginning.
    assert_eq!(at(truths.bools().unwrap_err()), ("truths".to_owned(), 66));
    // The lowest page counts.
    assert_eq!(at(step.to_f32().unwrap_err()), halves_at(6));
    let mut values = vec![0.0; step.len()];
    assert_eq!(at(step.read_f32(&mut values).unwrap_err()), halves_at(6));
    assert_eq!(at(step.copy_to(&mut vec![0; step.byte_len()]).unwrap_err()), halves_at(6));
    assert_eq!(at(whole.dot(&factors).unwrap_err()), halves_at(6));
    assert_eq!(at(whole.to_vec().unwrap_err()), halves_at(6));
    assert_eq!(at(halves.to_f32().unwrap_err()), halves_at(6));
    assert_eq!(at(halves.floats().unwrap().dot(&factors).unwrap_err()), halves_at(6));
    assert_eq!(at(halves.elements::<F16>().unwrap().to_vec().unwrap_err()), halves_at(6));
    first.to_f32().unwrap();

    // The mark stays, also when the file has its length again.
    file.set_len((page * (2 + 3 * PAGES)) as u64).unwrap();
    assert_eq!(at(model.still_whole().unwrap_err()), halves_at(6));
    assert_eq!(at(halves.verify_present().unwrap_err()), halves_at(6));
    first.verify_present().unwrap();
}

#[test]
fn every_routine_that_reads_to_the_end_returns_the_error() {
    if supported() {
        let test = "every_routine_that_reads_to_the_end_returns_the_error";
        let [all] = each_in_a_child(test, [("all", every_routine)]);
        all.assert_well("all");
    }
}

#[test]
fn the_mark_is_asked_of_the_mapping() {
    fn mark() {
        let page = Mapping::page_size();
        let file = holes(8 * page);
        let early = Mapping::open(&file).unwrap();
        assert!(!early.guarded());
        sigbus::install().unwrap();
        sigbus::install().unwrap();
        // Also what was mapped before.
        assert!(early.guarded());
        let path = path();
        model_file(&path);
        let copy = Model::read(&path).unwrap();
        fs::remove_file(path).unwrap();
        assert!(!copy.shards().next().unwrap().mapping().guarded());
        file.set_len(2 * page as u64).unwrap();
        assert_eq!(touch(early.as_ptr().wrapping_add(page)), 0);
        assert_eq!(early.poisoned(), None);
        assert_eq!(touch(early.as_ptr().wrapping_add(5 * page + 7)), 0);
        assert_eq!(early.poisoned(), Some(5 * page));
        assert_eq!(touch(early.as_ptr().wrapping_add(7 * page)), 0);
        assert_eq!(early.poisoned(), Some(5 * page));
        assert_eq!(touch(early.as_ptr().wrapping_add(2 * page)), 0);
        assert_eq!(early.poisoned(), Some(2 * page));
        // Other mappings of the same file are not concerned, until they are touched.
        let late = Mapping::open(&file).unwrap();
        assert_eq!((late.len(), late.poisoned()), (2 * page, None));
    }
    if supported() {
        let [all] = each_in_a_child("the_mark_is_asked_of_the_mapping", [("mark", mark)]);
        all.assert_well("mark");
    }
}

/// `errno` of a failed call survives a fault.
#[test]
fn the_handler_keeps_errno() {
    fn kept() {
        sigbus::install().unwrap();
        let page = Mapping::page_size();
        let file = holes(page);
        let mapping = Mapping::open(&file).unwrap();
        file.set_len(0).unwrap();
        let closed = File::open("/no such path").unwrap_err().raw_os_error();
        assert_eq!(touch(mapping.as_ptr()), 0);
        assert_eq!(io::Error::last_os_error().raw_os_error(), closed);
        assert_eq!(mapping.poisoned(), Some(0));
    }
    if supported() {
        let [all] = each_in_a_child("the_handler_keeps_errno", [("kept", kept)]);
        all.assert_well("kept");
    }
}

// Whose signal it is not, goes to the one before.

extern "C" fn leave_with_42(_: c_int) {
    // SAFETY: ends the process, from anywhere.
    unsafe { _exit(42) }
}

fn set(handler: usize) {
    // SAFETY: a function of ours that may run at any time, or one of the two special numbers.
    unsafe { signal(SIGBUS, handler) };
}

fn raise_sigbus() {
    // SAFETY: takes a number; what happens then is what is tried here.
    unsafe { raise(SIGBUS) };
}

#[test]
fn what_is_not_ours_goes_to_the_handler_that_was_there_before() {
    if !supported() {
        return;
    }
    let test = "what_is_not_ours_goes_to_the_handler_that_was_there_before";
    let [own, own_raised, std_s, default, default_raised, ignored, ignored_raised] =
        each_in_a_child(
            test,
            [
                ("a handler", || {
                    set(leave_with_42 as extern "C" fn(c_int) as usize);
                    sigbus::install().unwrap();
                    read_what_was_cut();
                    touch_a_lost_page_of_an_unknown_mapping();
                }),
                ("a handler, by raise", || {
                    set(leave_with_42 as extern "C" fn(c_int) as usize);
                    sigbus::install().unwrap();
                    raise_sigbus();
                }),
                ("std's", || {
                    sigbus::install().unwrap();
                    read_what_was_cut();
                    touch_a_lost_page_of_an_unknown_mapping();
                }),
                ("the default", || {
                    set(SIG_DFL);
                    sigbus::install().unwrap();
                    read_what_was_cut();
                    touch_a_lost_page_of_an_unknown_mapping();
                }),
                ("the default, by raise", || {
                    set(SIG_DFL);
                    sigbus::install().unwrap();
                    raise_sigbus();
                }),
                ("ignored", || {
                    set(SIG_IGN);
                    sigbus::install().unwrap();
                    touch_a_lost_page_of_an_unknown_mapping();
                }),
                ("ignored, by raise", || {
                    set(SIG_IGN);
                    sigbus::install().unwrap();
                    raise_sigbus();
                    read_what_was_cut();
                }),
            ],
        );
    assert_eq!(own.status, Some(42), "{own:?}");
    assert_eq!(own_raised.status, Some(42), "{own_raised:?}");
    std_s.assert_of_sigbus("std's");
    default.assert_of_sigbus("the default");
    default_raised.assert_of_sigbus("the default, by raise");
    ignored.assert_of_sigbus("ignored");
    ignored_raised.assert_well("ignored, by raise");
}

#[test]
fn a_handler_that_was_put_over_the_guard_is_not_put_under_it() {
    fn over() {
        sigbus::install().unwrap();
        set(leave_with_42 as extern "C" fn(c_int) as usize);
        let refused = sigbus::install().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        // Where nobody can hand on to it, it may come back.
        set(SIG_DFL);
        sigbus::install().unwrap();
        read_what_was_cut();
    }
    if supported() {
        let test = "a_handler_that_was_put_over_the_guard_is_not_put_under_it";
        let [all] = each_in_a_child(test, [("over", over)]);
        all.assert_well("over");
    }
}

static SEEN: AtomicUsize = AtomicUsize::new(0);

extern "C" fn note_the_stack(_: c_int) {
    let local = 0u8;
    SEEN.store(&raw const local as usize, SeqCst);
}

/// `stack_t` of Linux.
#[repr(C)]
struct Stack {
    start: usize,
    flags: c_int,
    len: usize,
}

/// std gives each of its threads such a stack.
#[test]
fn the_alternate_stack_is_used() {
    fn stack() {
        unsafe extern "C" {
            fn sigaltstack(new: *const Stack, old: *mut Stack) -> c_int;
        }
        set(note_the_stack as extern "C" fn(c_int) as usize);
        sigbus::install().unwrap();
        raise_sigbus();
        let mut stack = Stack { start: 0, flags: 0, len: 0 };
        // SAFETY: asks only; `stack` has the layout that Linux has.
        assert_eq!(unsafe { sigaltstack(std::ptr::null(), &mut stack) }, 0);
        let seen = SEEN.load(SeqCst);
        let alternate = stack.start..stack.start + stack.len;
        assert!(alternate.contains(&seen), "{seen:x} is not in {alternate:x?}");
    }
    if !cfg!(target_os = "linux") {
        return skip::skip("Linux's stack_t", "the layout is another here");
    }
    let [all] = each_in_a_child("the_alternate_stack_is_used", [("stack", stack)]);
    all.assert_well("stack");
}

#[test]
fn a_mapping_leaves_the_registry_with_its_pages() {
    fn gone() {
        sigbus::install().unwrap();
        let page = Mapping::page_size();
        let file = holes(page);
        let mapping = Mapping::open(&file).unwrap();
        let address = mapping.as_ptr();
        drop(mapping);
        // Other pages at the same addresses are somebody else's.
        let again = unknown(&file, page, address);
        file.set_len(0).unwrap();
        touch(again);
    }
    if supported() {
        let test = "a_mapping_leaves_the_registry_with_its_pages";
        let [all] = each_in_a_child(test, [("gone", gone)]);
        all.assert_of_sigbus("gone");
    }
}

// How much it can take.

#[test]
fn what_finds_the_registry_full_is_mapped_and_not_guarded() {
    fn fill() -> (Vec<Mapping>, Mapping, File) {
        sigbus::install().unwrap();
        let file = holes(Mapping::page_size());
        let open = || Mapping::open(&file).unwrap();
        let mut all: Vec<Mapping> = (0..1024).map(|_| open()).collect();
        assert!(all.iter().all(Mapping::guarded));
        let one_more = open();
        assert!(!one_more.guarded());
        assert_eq!(touch(one_more.as_ptr()), 0);
        all.remove(500);
        let again = open();
        assert!(again.guarded());
        all.push(again);
        assert!(!open().guarded());
        (all, one_more, file)
    }
    if !supported() {
        return;
    }
    let test = "what_finds_the_registry_full_is_mapped_and_not_guarded";
    let [guarded, not] = each_in_a_child(
        test,
        [
            ("guarded", || {
                let (all, _one_more, file) = fill();
                file.set_len(0).unwrap();
                for mapping in &all {
                    assert_eq!(touch(mapping.as_ptr()), 0);
                    assert_eq!(mapping.poisoned(), Some(0));
                }
            }),
            ("not", || {
                let (_all, one_more, file) = fill();
                file.set_len(0).unwrap();
                touch(one_more.as_ptr());
            }),
        ],
    );
    guarded.assert_well("guarded");
    not.assert_of_sigbus("not");
}

#[test]
fn several_threads_fault_at_once_and_each_is_told() {
    fn threads() {
        sigbus::install().unwrap();
        let (model, file, page) = mapped_model();
        let other = mapped_model();
        let start = std::sync::Barrier::new(8);
        file.set_len(page as u64).unwrap();
        other.1.set_len(page as u64 * 3).unwrap();
        thread::scope(|scope| {
            for number in 0..8 {
                let (start, model) = (&start, if number % 2 == 0 { &model } else { &other.0 });
                scope.spawn(move || {
                    let halves = model.tensor("halves").unwrap();
                    let elements = halves.f16().unwrap();
                    start.wait();
                    for row in (0..PAGES).rev() {
                        let outcome = elements.row(row).unwrap().to_f32();
                        // Of the other one row remains.
                        assert_eq!(outcome.is_ok(), number % 2 == 1 && row == 0, "{row}");
                    }
                });
            }
        });
    }
    if supported() {
        let test = "several_threads_fault_at_once_and_each_is_told";
        let [all] = each_in_a_child(test, [("threads", threads)]);
        all.assert_well("threads");
    }
}

/// A page here, a page there of a gigabyte that is gone. An area for each would be more than the
/// 65,530 that Linux lets a process have.
#[test]
fn a_large_hole_takes_few_areas() {
    const LEN: usize = 1 << 30;
    /// How many there are at the mapping's addresses.
    fn areas(mapping: &Mapping) -> usize {
        let start = mapping.as_ptr() as usize;
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let overlaps = |line: &&str| {
            let (from, rest) = line.split_once('-').unwrap();
            let to = rest.split_once(' ').unwrap().0;
            let number = |digits| usize::from_str_radix(digits, 16).unwrap();
            number(from) < start + mapping.len() && number(to) > start
        };
        maps.lines().filter(overlaps).count()
    }
    fn hole() {
        sigbus::install().unwrap();
        let file = holes(LEN);
        let mapping = Mapping::open(&file).unwrap();
        file.set_len(0).unwrap();
        let touch_at = |at: usize| assert_eq!(touch(mapping.as_ptr().wrapping_add(at)), 0);
        // First in every second two MiB, so that no two areas can be one: zeros, pages of the file,
        // zeros again. The mapping may begin anywhere between two boundaries.
        for at in (0..LEN).step_by(4 << 20) {
            touch_at(at);
        }
        let most = 2 * (LEN >> 22) + 1;
        assert!(areas(&mapping) <= most, "{} areas, not {most}", areas(&mapping));
        for at in (0..LEN).step_by(2 * Mapping::page_size()) {
            touch_at(at);
        }
        assert!(areas(&mapping) <= most, "{} areas, not {most}", areas(&mapping));
    }
    if !cfg!(any(target_os = "linux", target_os = "android")) {
        return skip::skip("/proc/self/maps", "this system does not list what a process holds");
    }
    let [all] = each_in_a_child("a_large_hole_takes_few_areas", [("hole", hole)]);
    all.assert_well("hole");
}
