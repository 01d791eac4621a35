//! What becomes of a model whose file is changed while it is used?
//!
//! Truncated, extended, written to, punched, replaced, unlinked: what is noticed, what is not, and
//! what survives. What may end a process is done in a process of its own.
#![cfg(all(unix, target_pointer_width = "64"))]

#[path = "../src/barest/skip.rs"]
mod skip;

#[path = "common/child.rs"]
mod child;

use barest::{Error, ErrorKind, Mapping, Model, TensorView, sigbus};
use child::each_in_a_child;
use std::ffi::{c_int, c_void};
use std::fs::{self, File, FileTimes};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        len: usize,
        prot: c_int,
        flags: c_int,
        fd: c_int,
        off: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, len: usize) -> c_int;
}

/// A folder of one test alone.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("barest-underneath-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    /// A file with a model, last modified long ago: whatever the clock's tick, a write shows.
    fn model(&self) -> PathBuf {
        let path = self.0.join("model.safetensors");
        fs::write(&path, bytes()).unwrap();
        set_back(&path);
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn set_back(path: &Path) {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    writable(path).set_times(FileTimes::new().set_modified(long_ago)).unwrap();
}

fn writable(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

/// Pages of the two tensors together.
const PAGES: usize = 20;

/// Tensors `a`, 4 pages of F16, and `b`, 16 pages and an odd bit. The header is a page but 10 bytes.
fn bytes() -> Vec<u8> {
    let page = Mapping::page_size();
    let (a, b) = (4 * page, (PAGES - 4) * page + 100);
    let header = format!(
        r#"{{"a":{{"dtype":"F16","shape":[{}],"data_offsets":[0,{a}]}},"b":{{"dtype":"F16","shape":[{}],"data_offsets":[{a},{}]}}}}"#,
        a / 2,
        b / 2,
        a + b
    );
    let header = format!("{header:width$}", width = page - 18);
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0x3c; a + b]].concat()
}

fn map(path: &Path) -> Result<Model, Error> {
    // SAFETY: the promise is broken on purpose in this file. What is read of such a mapping is
    // compared with nothing, or was read before; what may end the process is done in a child.
    unsafe { Model::map(path) }
}

type Change = fn(&Path, &File);

fn extend(_: &Path, file: &File) {
    file.set_len(2 * bytes().len() as u64).unwrap();
}

fn cut(_: &Path, file: &File) {
    file.set_len(bytes().len() as u64 / 2).unwrap();
}

fn empty(_: &Path, file: &File) {
    file.set_len(0).unwrap();
}

/// Within the last page: no page is lost.
fn cut_a_byte(_: &Path, file: &File) {
    file.set_len(bytes().len() as u64 - 1).unwrap();
}

fn cut_and_mend(path: &Path, file: &File) {
    cut(path, file);
    file.write_all_at(&bytes(), 0).unwrap();
}

fn overwrite(_: &Path, file: &File) {
    file.write_all_at(b"other bytes", bytes().len() as u64 / 2).unwrap();
}

/// The same bytes are a write too.
fn write_the_same(_: &Path, file: &File) {
    file.write_all_at(&[0x3c], bytes().len() as u64 - 1).unwrap();
}

fn overwrite_and_set_back(path: &Path, file: &File) {
    overwrite(path, file);
    set_back(path);
}

#[cfg(target_os = "linux")]
fn punch(_: &Path, file: &File) {
    unsafe extern "C" {
        fn fallocate(fd: c_int, mode: c_int, offset: i64, len: i64) -> c_int;
    }
    const KEEP_SIZE_AND_PUNCH_HOLE: c_int = 1 | 2;
    let page = Mapping::page_size() as i64;
    // SAFETY: takes numbers alone.
    let status =
        unsafe { fallocate(file.as_raw_fd(), KEEP_SIZE_AND_PUNCH_HOLE, 6 * page, 8 * page) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

/// Elsewhere a hole is made in other ways, and no test of ours does it.
#[cfg(not(target_os = "linux"))]
fn punch(path: &Path, file: &File) {
    overwrite(path, file);
}

fn rename_over(path: &Path, _: &File) {
    let new = path.with_extension("new");
    fs::write(&new, bytes()).unwrap();
    fs::rename(new, path).unwrap();
}

fn unlink(path: &Path, _: &File) {
    fs::remove_file(path).unwrap();
}

fn rewrite(path: &Path, _: &File) {
    fs::write(path, bytes()).unwrap();
}

fn kind(outcome: Result<(), Error>) -> &'static str {
    match outcome.as_ref().map_err(Error::kind) {
        Ok(()) => "whole",
        Err(ErrorKind::Truncated { mapped: true, .. }) => "truncated",
        Err(ErrorKind::Shrank { .. }) => "shrank",
        Err(ErrorKind::Changed { what, .. }) => what,
        Err(_) => panic!("{outcome:?}"),
    }
}

#[test]
fn what_is_done_through_another_descriptor_is_noticed() {
    for (what, change, mapped, read) in [
        ("cut", cut as Change, "truncated", "shrank"),
        ("empty", empty, "truncated", "shrank"),
        ("cut a byte", cut_a_byte, "truncated", "shrank"),
        ("extend", extend, "length", "length"),
        ("cut and mend", cut_and_mend, "time of modification", "time of modification"),
        ("overwrite", overwrite, "time of modification", "time of modification"),
        ("write the same", write_the_same, "time of modification", "time of modification"),
        ("overwrite, set back", overwrite_and_set_back, "time of change", "time of change"),
        ("punch", punch, "time of modification", "time of modification"),
        ("rename over", rename_over, "whole", "whole"),
        ("unlink", unlink, "whole", "whole"),
        ("nothing", |_, _| (), "whole", "whole"),
    ] {
        let folder = Folder::new();
        let path = folder.model();
        let models = [map(&path).unwrap(), Model::read(&path).unwrap()];
        for model in &models {
            model.still_whole().unwrap();
        }
        change(&path, &writable(&path));
        let found = models.each_ref().map(|model| kind(model.still_whole()));
        assert_eq!(found, [mapped, read], "{what}");
        // It is the same if asked again, and of a copy nothing was lost.
        assert_eq!(kind(models[0].clone().still_whole()), mapped, "{what}");
        assert!(models[1].tensor("b").unwrap().bytes().iter().all(|&byte| byte == 0x3c));
    }
    Model::from_bytes(&bytes()).unwrap().still_whole().unwrap();
}

#[test]
fn the_loss_is_told_with_its_place() {
    let (folder, page) = (Folder::new(), Mapping::page_size() as u64);
    let path = folder.model();
    let model = map(&path).unwrap();
    for (len, tensor) in [(10 * page + 5, "b"), (2 * page, "a"), (3, "a")] {
        writable(&path).set_len(len).unwrap();
        let error = model.still_whole().unwrap_err();
        assert_eq!((error.tensor(), error.offset()), (Some(tensor), Some(len)), "{error}");
        assert_eq!(error.path(), Some(&*path));
        let data = bytes().len() as u64 - (page - 10);
        let ErrorKind::Truncated { expected, found, mapped: true } = *error.kind() else {
            panic!("{error}");
        };
        assert_eq!((expected, found), (data, len.saturating_sub(page - 10)));
    }
}

/// Note 08 lists them.
#[test]
fn what_cannot_be_noticed_is_not() {
    let folder = Folder::new();
    // 1. A store through a writable mapping, into a page that is dirty already. The kernel may
    //    clean it in between, which the next store would show: several are tried.
    let path = folder.model();
    let file = writable(&path);
    let len = bytes().len();
    const PROT_READ_WRITE: c_int = 3;
    const MAP_SHARED: c_int = 1;
    // SAFETY: free addresses, a file of our own.
    let address = unsafe {
        mmap(std::ptr::null_mut(), len, PROT_READ_WRITE, MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(address as usize, usize::MAX);
    let last = address.cast::<u8>().wrapping_add(len - 1);
    // SAFETY: the last byte of the mapping, to which there is no reference.
    let store = |byte| unsafe { last.write_volatile(byte) };
    let unnoticed = (0..20).any(|byte| {
        store(100);
        let model = map(&path).unwrap();
        store(byte);
        let mut now = [0];
        file.read_exact_at(&mut now, len as u64 - 1).unwrap();
        now == [byte] && model.still_whole().is_ok()
    });
    assert!(unnoticed, "every store was noticed");
    // SAFETY: the range that was mapped above.
    unsafe { munmap(address, len) };

    // 2. A time that was set back, if the number of names differs as well.
    let path = folder.model();
    let model = map(&path).unwrap();
    overwrite_and_set_back(&path, &writable(&path));
    fs::hard_link(&path, folder.0.join("another name")).unwrap();
    assert_eq!(kind(model.still_whole()), "whole");
}

#[test]
fn a_tensor_is_looked_for_before_it_is_touched() {
    let page = Mapping::page_size() as u64;
    for (len, of_a, of_b) in [
        (bytes().len() as u64, None, None),
        // A cut within the last page takes no page away.
        (bytes().len() as u64 - 1, None, Some(bytes().len() as u64 - 1)),
        (10 * page, None, Some(10 * page)),
        (10 * page + 1, None, Some(10 * page + 1)),
        (5 * page - 10, None, Some(5 * page - 10)),
        (2 * page, Some(2 * page), Some(5 * page - 10)),
        (0, Some(page - 10), Some(5 * page - 10)),
    ] {
        let folder = Folder::new();
        let path = folder.model();
        let (model, copy) = (map(&path).unwrap(), Model::read(&path).unwrap());
        writable(&path).set_len(len).unwrap();
        let lost = |tensor: TensorView<'_>| {
            let error = tensor.verify_present().err()?;
            assert!(matches!(error.kind(), ErrorKind::Truncated { mapped: true, .. }), "{error}");
            assert_eq!((error.tensor(), error.path()), (Some(tensor.name()), Some(&*path)));
            Some(error.offset().unwrap())
        };
        // The kernel names the page; the length, if no page is lost, the byte.
        let by_page = |at: u64| at.next_multiple_of(page);
        for (name, expected) in [("a", of_a), ("b", of_b)] {
            let found = lost(model.tensor(name).unwrap());
            let fits = found == expected || found == expected.map(by_page);
            assert!(fits, "{name} of {len}: {found:?}, expected {expected:?}");
            assert_eq!(lost(copy.tensor(name).unwrap()), None);
        }
    }
}

// Everything at once, and from another thread.

const ROUNDS: usize = 100;

/// So many rounds: the file is restored, then opened and used, and changed in the midst of that by
/// another thread, a little later each time.
fn under_attack(restore: Change, changes: &[Change], open: fn(&Path) -> Result<Model, Error>) {
    let folder = Folder::new();
    let path = folder.model();
    // Whoever panics lets go of its ends, so that the other does not wait for it.
    let (say_restored, restored) = mpsc::channel();
    let (say_used, used) = mpsc::channel();
    thread::scope(|scope| {
        let path = &path;
        scope.spawn(move || {
            for (round, change) in changes.iter().cycle().take(ROUNDS).enumerate() {
                // It may have lost its name.
                let _ = File::create_new(path);
                restore(path, &writable(path));
                say_restored.send(()).unwrap();
                used.recv().unwrap();
                let lateness = (round / changes.len() % 20) as u64;
                thread::sleep(Duration::from_micros(lateness * 60));
                change(path, &writable(path));
                used.recv().unwrap();
            }
        });
        for _ in 0..ROUNDS {
            restored.recv().unwrap();
            say_used.send(()).unwrap();
            if let Err(error) = open(path).and_then(|model| use_all(&model)) {
                assert_eq!(error.path(), Some(&**path), "{error}");
            }
            say_used.send(()).unwrap();
        }
    });
}

fn use_all(model: &Model) -> Result<(), Error> {
    for tensor in model.tensors() {
        let values = tensor.to_f32()?;
        assert_eq!(values.len(), tensor.len());
        let floats = tensor.floats()?;
        std::hint::black_box(floats.iter().sum::<f32>() + floats.dot(&values)?);
    }
    model.still_whole()
}

const EVERY_CHANGE: [Change; 10] = [
    cut,
    empty,
    cut_a_byte,
    cut_and_mend,
    extend,
    overwrite,
    overwrite_and_set_back,
    punch,
    rename_over,
    unlink,
];

const WHAT_TAKES_NO_PAGE: [Change; 4] = [extend, overwrite, punch, unlink];

#[test]
fn a_model_under_attack() {
    let [read, harmless, guarded] = each_in_a_child(
        "a_model_under_attack",
        [
            ("read", || under_attack(rewrite, &EVERY_CHANGE, |path| Model::read(path))),
            ("mapped, no page is taken", || under_attack(rename_over, &WHAT_TAKES_NO_PAGE, map)),
            ("mapped and guarded", || {
                if let Err(refused) = sigbus::install() {
                    return skip::skip("a guard against SIGBUS", &refused.to_string());
                }
                under_attack(rewrite, &EVERY_CHANGE, map);
            }),
        ],
    );
    read.assert_well("read");
    harmless.assert_well("mapped, no page is taken");
    guarded.assert_well("mapped and guarded");
}

#[test]
fn without_the_guard_a_cut_ends_the_process() {
    let [cut_once, attacked] = each_in_a_child(
        "without_the_guard_a_cut_ends_the_process",
        [
            ("once", || {
                let folder = Folder::new();
                let path = folder.model();
                let model = map(&path).unwrap();
                cut(&path, &writable(&path));
                drop(folder);
                let _ = use_all(&model);
            }),
            ("attacked", || {
                under_attack(rewrite, &[cut], map);
            }),
        ],
    );
    cut_once.assert_of_sigbus("once");
    attacked.assert_of_sigbus("attacked");
}
