//! Which pages of a model are in memory, and do they come, stay and go as asked?
//!
//! The witness is the kernel: a second mapping of the file, which touches nothing, is asked which
//! pages are in the page cache, and `/proc/self/smaps` what this process has.
#![cfg(all(unix, target_pointer_width = "64"))]

#[path = "../src/barest/skip.rs"]
mod skip;

#[path = "pages/common.rs"]
mod common;

#[path = "pages/count.rs"]
mod count;

#[path = "pages/evict.rs"]
mod evict;

#[path = "pages/prefetch.rs"]
mod prefetch;

#[path = "pages/lock.rs"]
mod lock;

#[path = "pages/memory.rs"]
mod memory;

#[path = "pages/addresses.rs"]
mod addresses;

#[path = "pages/advise.rs"]
mod advise;

#[path = "pages/races.rs"]
mod races;
