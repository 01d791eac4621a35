//! How fast is the disk itself?
//!
//! Reads that pass the page cache by (`O_DIRECT`). They want memory, offsets and lengths on the
//! boundaries of the device's blocks, and not every file system has them.

use barest::prefer_huge_pages;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Multiples of this suit every device.
const BLOCK: usize = 4096;

/// One request. Larger ones were no faster.
const PIECE: usize = 4 << 20;

/// The size of a huge page on most machines, and of the boundaries they lie on.
const HUGE_PAGE: usize = 2 << 20;

/// Requests at a time.
const THREADS: usize = 2;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod flag {
    #[cfg(any(target_arch = "arm", target_arch = "aarch64"))]
    pub const O_DIRECT: Option<i32> = Some(0x10000);
    #[cfg(any(target_arch = "powerpc", target_arch = "powerpc64"))]
    pub const O_DIRECT: Option<i32> = Some(0x20000);
    #[cfg(any(
        target_arch = "x86",
        target_arch = "x86_64",
        target_arch = "riscv64",
        target_arch = "s390x",
        target_arch = "loongarch64"
    ))]
    pub const O_DIRECT: Option<i32> = Some(0x4000);
    #[cfg(not(any(
        target_arch = "arm",
        target_arch = "aarch64",
        target_arch = "powerpc",
        target_arch = "powerpc64",
        target_arch = "x86",
        target_arch = "x86_64",
        target_arch = "riscv64",
        target_arch = "s390x",
        target_arch = "loongarch64"
    )))]
    pub const O_DIRECT: Option<i32> = None;
}

/// Opens a file for direct reads. Fails where the system or the file system has none.
fn open(path: &Path) -> io::Result<File> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(flag) = flag::O_DIRECT {
        use std::os::unix::fs::OpenOptionsExt;
        return std::fs::OpenOptions::new().read(true).custom_flags(flag).open(path);
    }
    let _ = path;
    Err(io::Error::new(io::ErrorKind::Unsupported, "this program knows no direct reads here"))
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Bytes on a boundary of blocks and of huge pages, made out of a longer piece of memory. In huge pages,
/// where there are any: a request in thousands of pieces keeps the processor busy instead of the disk.
pub struct Aligned {
    memory: Vec<u8>,
    lead: usize,
    len: usize,
}

impl Aligned {
    fn zeroed(len: usize) -> io::Result<Aligned> {
        let all = len.checked_next_multiple_of(BLOCK).and_then(|len| len.checked_add(HUGE_PAGE));
        let all = all.ok_or(io::ErrorKind::OutOfMemory)?;
        // Zeros that the system gives, so that no page of them is touched yet.
        let mut memory = vec![0; all];
        let lead = memory.as_ptr().align_offset(HUGE_PAGE);
        prefer_huge_pages(&mut memory[lead..]);
        Ok(Aligned { memory, lead, len })
    }

    /// Whole blocks, the last of which may reach behind the end.
    fn blocks(&mut self) -> &mut [u8] {
        let len = self.len.next_multiple_of(BLOCK);
        &mut self.memory[self.lead..self.lead + len]
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.lead..self.lead + self.len]
    }
}

/// Reads a whole file into memory.
pub fn read(path: &Path, len: u64) -> io::Result<Aligned> {
    let file = open(path)?;
    let mut memory =
        Aligned::zeroed(usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?)?;
    let pieces = Mutex::new(memory.blocks().chunks_mut(PIECE).enumerate());
    on_threads(|| {
        loop {
            let next = pieces.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            let Some((number, piece)) = next else { return Ok(()) };
            fill(&file, piece, (number * PIECE) as u64, len)?;
        }
    })?;
    Ok(memory)
}

/// Reads a whole file and keeps nothing.
pub fn read_through(path: &Path, len: u64) -> io::Result<()> {
    let file = open(path)?;
    let next = AtomicU64::new(0);
    on_threads(|| {
        let mut piece = Aligned::zeroed(PIECE)?;
        loop {
            let offset = next.fetch_add(PIECE as u64, Ordering::Relaxed);
            if offset >= len {
                return Ok(());
            }
            fill(&file, piece.blocks(), offset, len)?;
        }
    })
}

/// Reads from one position up to the end of the buffer or of the file.
fn fill(file: &File, piece: &mut [u8], offset: u64, file_len: u64) -> io::Result<()> {
    let wanted = (piece.len() as u64).min(file_len - offset) as usize;
    let mut done = 0;
    while done < wanted {
        match read_at(file, &mut piece[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn on_threads(work: impl Fn() -> io::Result<()> + Sync) -> io::Result<()> {
    let work = &work;
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..THREADS)
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut outcome = work();
        for helper in helpers {
            let theirs = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and(theirs);
        }
        outcome
    })
}
