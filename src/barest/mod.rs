//! How does a path become a tensor, with `std` alone?
//!
//! The whole way is here. This folder can be copied into another crate as it is; each file uses
//! only what stands above it in this list.
//!
//! ```text
//!  path ──open──▶ files ──pread──▶ header bytes ──json──▶ Header ──tiling proof──▶ Index ──look-up──▶ TensorView ──▶ f32
//!                  │               (private copies)                                                    ▲
//!                  └───────────────mmap (or read into private memory)──▶ Bytes ────────────────────────┘
//!                                                                          └──windows──▶ MTLBuffer (macOS, iOS)
//! ```
//!
//! What was checked, the private copy of the header, is what is used. A file that changes later can
//! give wrong numbers, never a view outside of it.

// A program that uses half of this should not be told about the other half.
#![allow(dead_code, unused_imports)]
// What a newer clippy would have us write is younger than the oldest Rust this is for.
#![allow(clippy::manual_is_multiple_of)]
// `to_f32(&self)` and `from_bytes(&self, …)` are the names that people look for.
#![allow(clippy::wrong_self_convention)]

// Each uses only what stands above it.

pub mod escape; // how names are shown, on a terminal and in JSON

mod dtype; // the one table of the 22 dtypes

mod error; // what went wrong, where, and with which numbers

mod progress; // how far a long call is, and how it is ended

mod workers; // a few threads that share work

mod sys; // the kernel: the only foreign functions

mod mapping; // who owns mapped pages, and when they become `&[u8]`

mod bytes; // a file's own pages, or a copy of them

mod json; // a pull reader: no tree, no recursion

mod looks_like; // what a refused file is instead

mod nearest; // which name did they mean?

mod header; // the header, proved

mod options; // what can be chosen when a model is opened

mod seen; // is a file still the one that was opened?

mod index; // which files a model consists of, and which of them holds a tensor

mod decode; // what number an element stands for

mod slice; // which bytes belong to a part of a tensor

mod shard; // one file of a model, and its bytes

mod whole; // are its bytes still those that were opened?

mod tensor; // views of a tensor, borrowed or kept

mod model; // from a path to a model

mod scope; // names below a prefix, and a checklist of what was asked for

mod pages; // which pages are in memory; to bring, keep and drop them

mod sha256; // which bytes are the same bytes

mod write; // how a file is made or changed without losing another

pub mod gpu; // the same pages as buffers of a GPU

#[cfg(test)]
mod skip;

pub use bytes::{Backing, ReadReason};
pub use decode::{
    Bf16, Bool, C64, Element, F4, F6E2M3, F6E3M2, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0,
    F16, Float, LANES, Plain,
};
pub use dtype::Dtype;
pub use error::{Error, ErrorKind, Result};
pub use header::{DEFAULT_HEADER_CAP, Header, Metadata, Remark, TensorInfo};
pub use index::{Index, ShardFile, Summary};
pub use mapping::{Mapping, Mmap, Residency};
pub use model::Model;
pub use options::OpenOptions;
pub use pages::{Eviction, Locked, Memory, PageCount, Pages, Prefetcher};
pub use progress::Progress;
pub use scope::{Checklist, Scope};
pub use sha256::{Sha256, Sha256Digest};
pub use shard::Shard;
pub use slice::Select;
pub use sys::{Advice, PageFaults, page_faults, prefer_huge_pages, sigbus, terminal_columns};
pub use tensor::{Bf16View, Elements, Floats, Sliced, Tensor, TensorView};
pub use write::{EditMetadata, Left, LeftKind, Order, Plan, Saved, Writer, left_in};
