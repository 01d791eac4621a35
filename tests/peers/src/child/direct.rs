//! How fast is the disk itself?
//!
//! Reads that pass the page cache by, several at a time: once into memory for all of the file, as a
//! loader would that has no use for a page cache, and once into the same few buffers again and again,
//! which nothing that keeps what it reads can undercut.

use super::cold::Cold;
use super::parts::{PAGE, Part};
use memmap2::MmapMut;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// One request. Larger ones were no faster, and the first would be there later.
const PIECE: usize = 4 << 20;

/// Into memory for all of it.
pub fn kept(path: &Path, threads: usize) -> Cold {
    let started = Instant::now();
    let (file, len) = open(path);
    let mut memory = pages(len);
    let pieces = Mutex::new(memory.chunks_mut(PIECE).enumerate());
    let clock = Clock::new(started, len);
    on_threads(threads, || {
        loop {
            let next = pieces.lock().expect("no panic").next();
            let Some((number, piece)) = next else { return };
            clock.fill(&file, piece, number);
        }
    });
    clock.end()
}

/// Into one buffer for each thread.
pub fn reused(path: &Path, threads: usize) -> Cold {
    let started = Instant::now();
    let (file, len) = open(path);
    let next = AtomicU64::new(0);
    let clock = Clock::new(started, len);
    on_threads(threads, || {
        let mut piece = pages(PIECE);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed) as usize;
            if number * PIECE >= len {
                return;
            }
            let wanted = PIECE.min(len.next_multiple_of(PAGE as usize) - number * PIECE);
            clock.fill(&file, &mut piece[..wanted], number);
        }
    });
    clock.end()
}

/// Whether the file system has direct reads.
pub fn is_there(path: &Path) -> bool {
    options().is_some_and(|options| options.open(path).is_ok())
}

fn open(path: &Path) -> (File, usize) {
    let file = options().and_then(|options| options.open(path).ok()).expect("direct reads");
    let len = file.metadata().expect("a length").len();
    (file, len as usize)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn options() -> Option<OpenOptions> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32);
    Some(options)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn options() -> Option<OpenOptions> {
    None
}

/// Fresh memory that begins with a page, as direct reads want it, and ends with one. In huge pages,
/// where there are any: a request in thousands of pieces keeps the processor busy instead of the disk.
fn pages(len: usize) -> MmapMut {
    let memory = MmapMut::map_anon(len.next_multiple_of(PAGE as usize)).expect("memory");
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    memory
}

fn on_threads(threads: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(&work))));
}

struct Clock {
    started: Instant,
    len: usize,
    /// Pieces that hold the first hundredth and are not there yet.
    missing: AtomicU64,
    /// Nanoseconds until they were.
    first: AtomicU64,
    sum: AtomicU64,
}

impl Clock {
    fn new(started: Instant, len: usize) -> Clock {
        let pieces = (len / 100).div_ceil(PIECE) as u64;
        let missing = AtomicU64::new(pieces);
        Clock { started, len, missing, first: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    /// Reads a piece up to the end of the file, and looks at each of its pages.
    fn fill(&self, file: &File, piece: &mut [u8], number: usize) {
        let start = number * PIECE;
        let wanted = piece.len().min(self.len - start);
        let mut done = 0;
        while done < wanted {
            done += match read_at(file, &mut piece[done..], (start + done) as u64) {
                Ok(0) => panic!("the file has become shorter"),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => panic!("{error}"),
            };
        }
        let part = Part { start: start as u64, bytes: &piece[..wanted] };
        self.sum.fetch_add(part.touch(), Ordering::Relaxed);
        let in_first = start < self.len / 100;
        if in_first && self.missing.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.first.store(self.started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    }

    fn end(self) -> Cold {
        Cold {
            first: self.first.into_inner() as f64 / 1e9,
            all: self.started.elapsed().as_secs_f64(),
            sum: self.sum.into_inner(),
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
