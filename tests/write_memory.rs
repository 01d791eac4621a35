//! How much memory does writing take, whatever the model's size?
//!
//! An allocator that counts; one test in a program of its own, so that no other counts in.

use barest::{Dtype, Model, Writer};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator; the counts touch no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that was allocated beyond what there was before.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let done = work();
    (done, MOST.load(Relaxed) - before)
}

#[test]
fn memory_stays_at_one_buffer() {
    let folder = std::env::temp_dir().join(format!("barest-memory-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (one, other) = (folder.join("one.safetensors"), folder.join("other.safetensors"));
    // Besides the buffer: the header and its proof, names, paths.
    let most = Writer::BUFFER + (64 << 10);
    let piece = vec![5u8; 100_000];
    let pieces = 400;

    let ((), streamed) = peak(|| {
        let mut writer = Writer::new();
        for name in ["a", "b"] {
            writer.stream(name, Dtype::U8, vec![100_000 * pieces], |to| {
                (0..pieces).try_for_each(|_| to.write_all(&piece))
            });
        }
        writer.save(&one).unwrap();
    });
    assert!(streamed < most, "{streamed} bytes for a stream");
    assert!(streamed > Writer::BUFFER / 4, "{streamed}: the counter does not count");

    // SAFETY: nobody changes the file.
    let model = unsafe { Model::open(&one).unwrap() };
    let ((), copied) = peak(|| {
        let mut writer = Writer::new();
        for view in model.tensors() {
            writer.copy(view.name(), view);
        }
        writer.save(&other).unwrap();
    });
    assert!(copied < most, "{copied} bytes for a copy");
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&other).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
}
