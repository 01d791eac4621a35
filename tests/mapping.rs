//! What a mapped or a read model takes from the system, keeps while it lives, and gives back.
//!
//! The kernel is the witness: `/proc/self/maps` lists what is mapped, `/proc/self/fd` what is open.
#![cfg(all(unix, target_pointer_width = "64"))]

#[path = "../src/barest/skip.rs"]
mod skip;

use barest::{
    Advice, Backing, Error, ErrorKind, Header, Mapping, Mmap, Model, OpenOptions, Tensor,
};
use skip::skip;
use std::any::Any;
use std::fs::{self, DirEntry, File, Permissions};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A folder of one test alone.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("barest-mapping-{}-{number}", process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        // The kernel names a file by its path without symlinks.
        Folder(path.canonicalize().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A file with the two tensors of [`two_tensors`].
    fn model(&self, name: &str) -> PathBuf {
        self.file(name, &two_tensors())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

const A: &[u8] = b"twelve bytes";
const B: &[u8] = b"and six";

fn two_tensors() -> Vec<u8> {
    let header = r#"{"a":{"dtype":"U8","shape":[12],"data_offsets":[0,12]},"b":{"dtype":"U8","shape":[7],"data_offsets":[12,19]}}"#;
    safetensors(header, &[A, B].concat())
}

fn map(path: &Path) -> Result<Model, Error> {
    // SAFETY: the file lies in a folder of this test, which does not change it while it is mapped.
    unsafe { Model::map(path) }
}

fn open(path: &Path) -> Result<Model, Error> {
    // SAFETY: as in `map`.
    unsafe { Model::open(path) }
}

fn mmap(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: as in `map`.
    unsafe { Mmap::map(&file) }
}

fn bytes_of<'a>(model: &'a Model, name: &str) -> &'a [u8] {
    model.tensor(name).unwrap().bytes()
}

type Attempt = fn(&Path) -> Result<(), Error>;

/// Every way from a path to tensors or their description.
const WAYS: [(&str, Attempt); 4] = [
    ("map", |path| map(path).map(drop)),
    ("open", |path| open(path).map(drop)),
    ("read", |path| Model::read(path).map(drop)),
    ("header", |path| Header::open(path).map(drop)),
];

/// How often a file is mapped into this process, and how many descriptors it has open.
fn held(path: &Path) -> (usize, usize) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path_text = path.to_str().unwrap();
    let mapped = maps.lines().filter(|line| line.contains(path_text)).count();
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let opened = descriptors
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.to_str().is_some_and(|target| target.contains(path_text)))
        .count();
    (mapped, opened)
}

/// What may be done with the page at an address: `r--` if it can only be read.
fn permissions(address: *const u8) -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let number = |hex: &str| usize::from_str_radix(hex, 16).unwrap();
    let mut areas = maps.lines().filter_map(|line| line.split_once(' '));
    let (_, rest) = areas
        .find(|(range, _)| {
            let (start, end) = range.split_once('-').unwrap();
            (number(start)..number(end)).contains(&address.addr())
        })
        .expect("it is mapped");
    rest[..3].to_owned()
}

fn the_kernel_tells() -> bool {
    let tells = cfg!(any(target_os = "linux", target_os = "android"));
    if !tells {
        skip("/proc/self/maps", "this system does not list what a process holds");
    }
    tells
}

// What is held, and given back.

#[test]
fn each_way_holds_what_it_must_and_dropping_gives_all_of_it_back() {
    if !the_kernel_tells() {
        return;
    }
    type Obtain = fn(&Path) -> Box<dyn Any>;
    let rows: [(&str, Obtain, (usize, usize)); 7] = [
        (
            "Mapping::open",
            |path| Box::new(Mapping::open(&File::open(path).unwrap()).unwrap()),
            (1, 0),
        ),
        ("Mmap::map", |path| Box::new(mmap(path).unwrap()), (1, 0)),
        ("Model::map", |path| Box::new(map(path).unwrap()), (1, 1)),
        ("Model::open", |path| Box::new(open(path).unwrap()), (1, 1)),
        ("Model::read", |path| Box::new(Model::read(path).unwrap()), (0, 1)),
        (
            "Model::from_bytes",
            |path| Box::new(Model::from_bytes(&fs::read(path).unwrap()).unwrap()),
            (0, 0),
        ),
        ("Header::open", |path| Box::new(Header::open(path).unwrap()), (0, 0)),
    ];
    let folder = Folder::new();
    for (number, (way, obtain, expected)) in rows.into_iter().enumerate() {
        let path = folder.model(&format!("{number}.safetensors"));
        let held_by_it = obtain(&path);
        assert_eq!(held(&path), expected, "{way}");
        drop(held_by_it);
        assert_eq!(held(&path), (0, 0), "after {way}");
    }
}

/// A stray write ends the program instead of changing a weight.
#[test]
fn nobody_can_write_to_what_a_model_holds() {
    if !the_kernel_tells() {
        return;
    }
    let folder = Folder::new();
    let path = folder.model("m");
    let copied = Model::from_bytes(&two_tensors()).unwrap();
    let models = [map(&path).unwrap(), Model::read(&path).unwrap(), copied];
    for (way, model) in ["map", "read", "from_bytes"].iter().zip(models) {
        let bytes = model.tensors().next().unwrap().bytes();
        assert_eq!(permissions(bytes.as_ptr()), "r--", "{way}");
    }
}

#[test]
fn a_refused_file_is_not_held() {
    if !the_kernel_tells() {
        return;
    }
    let folder = Folder::new();
    for (name, bytes) in [
        ("no-header", &[0; 64][..]),
        ("cut", &two_tensors()[..two_tensors().len() - 1]),
        ("not-json", &safetensors("{]", b"")),
        ("empty", b""),
    ] {
        let path = folder.file(name, bytes);
        for (way, attempt) in WAYS {
            attempt(&path).unwrap_err();
            assert_eq!(held(&path), (0, 0), "{way} of {name}");
        }
    }
}

#[test]
fn a_tensor_keeps_the_pages_until_the_last_of_them_goes() {
    let folder = Folder::new();
    let path = folder.model("kept.safetensors");
    let model = map(&path).unwrap();
    let a = model.tensor("a").unwrap().share();
    let b = model.clone().tensor("b").unwrap().share();
    let again = a.clone();
    drop(model);
    assert_eq!((a.view().bytes(), b.view().bytes()), (A, B));
    drop((a, b));
    // A Tensor has no lifetime: another thread may have the last word.
    let last = thread::spawn(move || {
        assert_eq!(again.view().bytes(), A);
        again
    });
    let last = last.join().unwrap();
    if the_kernel_tells() {
        assert_eq!(held(&path), (1, 1));
        drop(last);
        assert_eq!(held(&path), (0, 0));
    }
}

/// `mmap` refuses an empty range, and any mapping of a file that is open for writing alone. So an
/// empty file that is can only be mapped by not asking.
#[test]
fn an_empty_file_is_mapped_without_a_call() {
    let folder = Folder::new();
    let path = folder.file("empty", b"");
    let write_only = File::options().write(true).open(&path).unwrap();
    let mapping = Mapping::open(&write_only).unwrap();
    assert_eq!((mapping.len(), mapping.is_empty()), (0, true));
    assert!(!mapping.as_ptr().is_null());
    assert_eq!(mmap(&path).unwrap().as_slice(), b"");
    for (way, attempt) in WAYS {
        let error = attempt(&path).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TooShort { found: 0, .. }), "{way}: {error}");
    }

    fs::write(&path, b"x").unwrap();
    let refused = Mapping::open(&write_only).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn a_mapping_says_what_it_is() {
    let folder = Folder::new();
    let map = mmap(&folder.model("m")).unwrap();
    let bytes: &[u8] = map.as_ref();
    assert_eq!(bytes, two_tensors());
    assert!(map.mapping().is_of_file());
    let (address, len) = (map.as_ptr(), two_tensors().len());
    assert_eq!(format!("{map:?}"), format!("Mmap(Mapping({address:p}, {len} bytes))"));
}

#[test]
fn the_mapping_needs_no_descriptor() {
    let folder = Folder::new();
    let path = folder.file("closed", A);
    let file = File::open(&path).unwrap();
    // SAFETY: as in `map`.
    let mmap = unsafe { Mmap::map(&file) }.unwrap();
    drop(file);
    fs::remove_file(&path).unwrap();
    assert_eq!(&mmap[..], A);
    assert_eq!(mmap.mapping().len(), A.len());
}

#[test]
fn after_a_rename_over_it_the_old_bytes_stay() {
    let folder = Folder::new();
    let path = folder.model("model.safetensors");
    let (mapped, pages) = (map(&path).unwrap(), mmap(&path).unwrap());
    let mut other = two_tensors();
    let start = other.len() - A.len() - B.len();
    other[start..].fill(b'!');
    fs::rename(folder.file("new.safetensors", &other), &path).unwrap();
    assert_eq!((bytes_of(&mapped, "a"), bytes_of(&mapped, "b")), (A, B));
    assert_eq!(&pages[..], two_tensors());
    assert_eq!(bytes_of(&map(&path).unwrap(), "a"), b"!!!!!!!!!!!!");
}

#[test]
fn one_model_is_read_from_many_threads() {
    fn shared_between_threads<T: Send + Sync + 'static>() {}
    shared_between_threads::<Model>();
    shared_between_threads::<Tensor>();
    shared_between_threads::<Mapping>();
    shared_between_threads::<Mmap>();

    let folder = Folder::new();
    let path = folder.model("model.safetensors");
    for model in [map(&path).unwrap(), Model::read(&path).unwrap()] {
        let by_reference = &model;
        thread::scope(|scope| {
            for _ in 0..4 {
                let clone = model.clone();
                scope.spawn(move || {
                    for _ in 0..100 {
                        assert_eq!(bytes_of(by_reference, "a"), A);
                        assert_eq!(bytes_of(&clone, "b"), B);
                    }
                });
            }
        });
    }
}

// What is no file, or cannot be opened.

/// The outcome of something that must not wait for anybody.
fn at_once<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    let outcome = receiver.recv_timeout(Duration::from_secs(20));
    outcome.unwrap_or_else(|_| panic!("{what} waits"))
}

fn fifo(folder: &Folder) -> Option<PathBuf> {
    let path = folder.path("fifo");
    match Command::new("mkfifo").arg(&path).status() {
        Ok(status) if status.success() => Some(path),
        _ => {
            skip("mkfifo", "there is no FIFO to open");
            None
        }
    }
}

/// Any, whether this process may open it or not.
fn block_device() -> Option<PathBuf> {
    let devices = fs::read_dir("/dev").into_iter().flatten().flatten();
    let is_block = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_block_device());
    let path = devices.filter(is_block).map(|entry| entry.path()).min();
    if path.is_none() {
        skip("a block device in /dev", "there is none to open");
    }
    path
}

#[test]
fn what_is_no_regular_file_is_named_and_not_waited_for() {
    let folder = Folder::new();
    let socket = folder.path("socket");
    // A socket's path has about 100 bytes at most.
    let listener = UnixListener::bind(&socket).ok();
    let rows = [
        (fifo(&folder), "a FIFO (named pipe)"),
        (Some("/dev/null".into()), "a character device"),
        (block_device(), "a block device"),
        (listener.as_ref().map(|_| socket), "a socket"),
    ];
    for (path, expected) in rows {
        let Some(path) = path else { continue };
        for (way, attempt) in WAYS {
            let asked = path.clone();
            let error = at_once(expected, move || attempt(&asked)).unwrap_err();
            let ErrorKind::NotAFile { found } = *error.kind() else {
                panic!("{way} of {expected}: {error}");
            };
            assert_eq!(found, expected, "{way}");
            assert_eq!(error.path(), Some(&*path), "{way}");
            let text = error.to_string();
            assert!(text.starts_with(path.to_str().unwrap()) && text.ends_with(expected), "{text}");
        }
    }
}

/// Their length is 0 or means something else: to give an empty mapping would be to lie.
#[test]
fn a_mapping_of_what_has_no_pages_is_refused() {
    let folder = Folder::new();
    let writable = |path: &Path| File::options().read(true).write(true).open(path).unwrap();
    let rows = [
        ("a directory", Some(File::open(&folder.0).unwrap())),
        // Also for writing: then nobody waits for another end.
        ("a FIFO", fifo(&folder).map(|path| writable(&path))),
        ("a character device", Some(writable(Path::new("/dev/null")))),
    ];
    let taken: Vec<&str> = rows
        .iter()
        .filter(|(_, file)| file.as_ref().is_some_and(|file| Mapping::open(file).is_ok()))
        .map(|(what, _)| *what)
        .collect();
    assert!(taken.is_empty(), "mapped: {taken:?}");
}

#[test]
fn a_path_that_leads_nowhere_is_the_system_s_error_with_the_path() {
    let folder = Folder::new();
    symlink(folder.path("two"), folder.path("one")).unwrap();
    symlink(folder.path("one"), folder.path("two")).unwrap();
    symlink(folder.path("missing"), folder.path("dangling")).unwrap();
    let file = folder.model("file");
    let loop_error = File::open(folder.path("one")).unwrap_err().raw_os_error();
    let rows = [
        (folder.path("one"), loop_error),
        (folder.path("missing"), Some(2)),
        (file.join("below-a-file"), Some(20)),
    ];
    for (path, number) in rows {
        for (way, attempt) in WAYS {
            let error = attempt(&path).unwrap_err();
            let ErrorKind::Io { action: "open", source } = error.kind() else {
                panic!("{way}: {error}");
            };
            assert_eq!(source.raw_os_error(), number, "{way}: {error}");
            assert_eq!(error.path(), Some(&*path), "{way}");
        }
    }
    let dangling = folder.path("dangling");
    for (way, attempt) in WAYS {
        let error = attempt(&dangling).unwrap_err();
        let ErrorKind::DanglingLink { target } = error.kind() else { panic!("{way}: {error}") };
        assert_eq!((target, error.path()), (&folder.path("missing"), Some(&*dangling)), "{way}");
    }
    // One that leads to a file is followed: the caches of model hubs consist of them.
    symlink(&file, folder.path("link")).unwrap();
    assert_eq!(bytes_of(&map(&folder.path("link")).unwrap(), "b"), B);
}

#[test]
fn what_may_not_be_read_is_the_system_s_error_with_the_path() {
    let folder = Folder::new();
    let (path, directory) = (folder.model("secret"), folder.path("shut"));
    fs::create_dir(&directory).unwrap();
    for path in [&path, &directory] {
        fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
    }
    if File::open(&path).is_ok() {
        return skip("a user who is not root", "no file is unreadable");
    }
    for (way, attempt) in WAYS {
        let error = attempt(&path).unwrap_err();
        let ErrorKind::Io { action: "open", source } = error.kind() else {
            panic!("{way}: {error}");
        };
        assert_eq!(source.kind(), io::ErrorKind::PermissionDenied, "{way}");
        assert_eq!(error.path(), Some(&*path), "{way}");
    }
    // Of a directory a model is made, and a header is not.
    for (way, attempt) in &WAYS[..3] {
        let error = attempt(&directory).unwrap_err();
        let ErrorKind::Io { action: "read the directory", source } = error.kind() else {
            panic!("{way}: {error}");
        };
        assert_eq!(source.kind(), io::ErrorKind::PermissionDenied, "{way}");
        assert_eq!(error.path(), Some(&*directory), "{way}");
    }
    fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
}

// What is read is what is mapped.

const PIECE: u64 = 8 << 20;

/// One tensor of a bit more than three pieces. Sparse, with its own place written at every 64 KiB
/// and on both sides of every border between pieces.
fn large(folder: &Folder) -> PathBuf {
    let len = 3 * PIECE + 12_345;
    let header = format!(r#"{{"t":{{"dtype":"U8","shape":[{len}],"data_offsets":[0,{len}]}}}}"#);
    let path = folder.file("large.safetensors", &safetensors(&header, b""));
    let file = File::options().write(true).open(&path).unwrap();
    let start = 8 + header.len() as u64;
    let end = start + len;
    file.set_len(end).unwrap();
    let borders = (1..=3).flat_map(|piece| [piece * PIECE - 8, piece * PIECE]);
    let inside = (1..).map(|number| number << 16).take_while(|at| at + 8 < end);
    for at in borders.chain(inside).chain([start, end - 8]) {
        file.write_all_at(&at.to_le_bytes(), at).unwrap();
    }
    path
}

#[test]
fn reading_gives_what_mapping_gives_with_any_number_of_threads() {
    let folder = Folder::new();
    let path = large(&folder);
    let mapped = map(&path).unwrap();
    assert_eq!(mapped.backing(0), Some(&Backing::Mapped));
    let expected = fs::read(&path).unwrap();
    let start = expected.len() - mapped.tensor("t").unwrap().byte_len();
    assert!(bytes_of(&mapped, "t") == &expected[start..], "mapping gives other bytes");
    let rows: [Option<usize>; 5] = [None, Some(1), Some(2), Some(7), Some(usize::MAX)];
    for threads in rows {
        let mut options = OpenOptions::new();
        if let Some(threads) = threads.and_then(NonZeroUsize::new) {
            options.read_threads(threads);
        }
        let read = options.read(&path).unwrap();
        assert!(matches!(read.backing(0), Some(Backing::Read { .. })));
        assert!(bytes_of(&read, "t") == &expected[start..], "{threads:?} threads give other bytes");
    }
}

#[test]
fn a_file_cut_short_is_refused_with_its_numbers() {
    let whole = two_tensors();
    let start = whole.len() - A.len() - B.len();
    let folder = Folder::new();
    for (len, tensor, found) in
        [(start, "a", 0), (start + 11, "a", 11), (start + 12, "b", 12), (start + 18, "b", 18)]
    {
        let path = folder.file("cut.safetensors", &whole[..len]);
        for (way, attempt) in WAYS {
            let error = attempt(&path).unwrap_err();
            let ErrorKind::Truncated { expected: 19, found: data, mapped: false } = *error.kind()
            else {
                panic!("{way} of {len}: {error}");
            };
            assert_eq!((data, error.tensor()), (found, Some(tensor)), "{way} of {len}");
            assert_eq!((error.offset(), error.path()), (Some(len as u64), Some(&*path)));
        }
    }
    for len in [9, start - 1] {
        let path = folder.file("cut.safetensors", &whole[..len]);
        for (way, attempt) in WAYS {
            let error = attempt(&path).unwrap_err();
            let ErrorKind::HeaderCut { expected, found } = *error.kind() else {
                panic!("{way} of {len}: {error}");
            };
            assert_eq!((expected, found), (start as u64 - 8, len as u64 - 8), "{way}");
        }
    }
}

/// Between two looks at it: the header is whole and true, and then the data are gone.
#[test]
fn a_file_that_is_cut_while_it_is_read_is_refused_and_not_waited_for() {
    let folder = Folder::new();
    let path = large(&folder);
    let file = File::options().write(true).open(&path).unwrap();
    let whole = file.metadata().unwrap().len();
    let short = whole - 2 * PIECE;
    let read_until_it_shrinks = || {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(60) {
            match Model::read(&path) {
                Ok(_) => {}
                Err(error) => match *error.kind() {
                    ErrorKind::Shrank { expected, found } => return Ok((expected, found)),
                    ErrorKind::Truncated { .. } => {}
                    _ => return Err(error.to_string()),
                },
            }
        }
        Err("the file was never found shorter".to_owned())
    };
    let done = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                file.set_len(short).unwrap();
                file.set_len(whole).unwrap();
            }
        });
        // Nothing may panic before the other thread was told to end.
        let outcome = catch_unwind(AssertUnwindSafe(read_until_it_shrinks));
        done.store(true, Ordering::Relaxed);
        outcome
    });
    let (expected, found) = outcome.expect("it panics").unwrap();
    assert!(short <= found && found < expected && expected <= whole, "{found} of {expected}");
}

// What is asked about pages, and advised.

#[test]
fn a_page_that_was_touched_is_resident() {
    const PAGES: usize = 64;
    let page = Mapping::page_size();
    let folder = Folder::new();

    // 1. Holes, which nobody has read yet.
    let path = folder.file("holes", b"");
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len((PAGES * page) as u64).unwrap();
    let mapped = mmap(&path).unwrap();
    let residency = |range| mapped.mapping().residency(range);
    let before = match residency(0..mapped.len()) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            return skip("mincore", "this system does not tell what is resident");
        }
        before => before.unwrap(),
    };
    assert_eq!((before.pages(), before.first_page()), (PAGES, 0));
    assert!(before.resident() < PAGES, "{before:?}");

    // 2. One of them.
    assert_eq!(std::hint::black_box(mapped[40 * page]), 0);
    assert_eq!(residency(0..mapped.len()).unwrap().iter().nth(40), Some(true));
    let one = residency(40 * page + 1..40 * page + 2).unwrap();
    assert_eq!((one.first_page(), one.pages(), one.resident()), (40, 1, 1));

    // 3. All pages of a file that was written and is read.
    let mapped = mmap(&folder.file("full", &vec![7; PAGES * page])).unwrap();
    assert!(mapped.iter().all(|&byte| byte == 7));
    let after = mapped.mapping().residency(0..mapped.len()).unwrap();
    assert_eq!((after.pages(), after.resident()), (PAGES, PAGES));
    assert!(after.iter().all(|resident| resident));
}

const ADVICE: [Advice; 7] = [
    Advice::Normal,
    Advice::Sequential,
    Advice::Random,
    Advice::WillNeed,
    Advice::Cold,
    Advice::HugePage,
    Advice::PopulateRead,
];

#[test]
fn each_advice_is_taken_or_unknown_and_changes_no_byte() {
    let folder = Folder::new();
    let path = large(&folder);
    let expected = fs::read(&path).unwrap();
    for model in [map(&path).unwrap(), Model::read(&path).unwrap()] {
        let shard = model.shards().next().unwrap();
        let backing = shard.backing();
        for advice in ADVICE {
            // HugePage needs a kernel with large pages, the last two one that is not old.
            let everywhere =
                !matches!(advice, Advice::Cold | Advice::HugePage | Advice::PopulateRead);
            match shard.mapping().advise(0..expected.len(), advice) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported && !everywhere => {}
                Err(error) => panic!("{advice:?}, {backing}: {error}"),
            }
        }
        let view = model.tensor("t").unwrap();
        let start = view.file_range().start as usize;
        assert!(view.bytes() == &expected[start..], "{backing}: advice changed the bytes");
    }
}

/// Touching such a page would end the process with SIGBUS; the advice only says no.
#[test]
fn to_populate_pages_that_the_file_has_lost_is_an_error() {
    let page = Mapping::page_size();
    let folder = Folder::new();
    let path = folder.file("shrinks", &vec![7; 4 * page]);
    let mapping = Mapping::open(&File::open(&path).unwrap()).unwrap();
    match mapping.advise(0..4 * page, Advice::PopulateRead) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            return skip("MADV_POPULATE_READ", "the kernel is older than Linux 5.14, or no Linux");
        }
        outcome => outcome.unwrap(),
    }
    File::options().write(true).open(&path).unwrap().set_len(page as u64).unwrap();
    mapping.advise(0..page, Advice::PopulateRead).unwrap();
    for lost in [page..2 * page, 0..4 * page, 4 * page - 1..4 * page] {
        let error = mapping.advise(lost.clone(), Advice::PopulateRead).unwrap_err();
        assert_ne!(error.kind(), io::ErrorKind::Unsupported, "{lost:?}: {error}");
    }
}
