//! From a safetensors file on disk to a tensor you can compute with, and nothing in between.
//!
//! The way in is [`Model`]: [`Model::read`] is safe and copies, [`Model::map`] copies nothing and
//! asks for a promise. A [`TensorView`] borrows from it, a [`Tensor`] keeps it alive. An [`Index`] has
//! read the headers alone: of a file, or of all shards of a model.
//! [`Header::parse`] needs no file at all. Everything is in one folder, `src/barest/`, which can be
//! copied into another crate.

mod barest;

pub use barest::*;

// gpu/metal.rs against a fake of Apple's libraries, which the folder that is copied does not have.
#[cfg(all(test, unix, target_pointer_width = "64", not(target_vendor = "apple")))]
#[path = "../tests/metal/mod.rs"]
mod metal;

// The README's code, and that of the notes, is compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/01-three-regions.md")]
struct Note01;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/02-a-shape-is-a-promise.md")]
struct Note02;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/03-parse-without-a-tree.md")]
struct Note03;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/04-prove-the-tiling.md")]
struct Note04;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/05-errors-that-point.md")]
struct Note05;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/06-calling-the-kernel-by-hand.md")]
struct Note06;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/07-an-address-is-not-memory.md")]
struct Note07;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/08-who-may-write-to-your-bytes.md")]
struct Note08;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/09-the-file-shrinks.md")]
struct Note09;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/10-a-picture-of-residency.md")]
struct Note10;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/11-cold-starts.md")]
struct Note11;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/12-a-haircut.md")]
struct Note12;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/13-odd-addresses.md")]
struct Note13;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/14-one-model-many-files.md")]
struct Note14;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/15-writing-without-destroying.md")]
struct Note15;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/16-vendor-it.md")]
struct Note16;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/17-one-memory-two-processors.md")]
struct Note17;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/18-let-the-machine-attack-it.md")]
struct Note18;

#[cfg(doctest)]
#[doc = include_str!("../docs/learnings/19-eight-bits-and-fewer.md")]
struct Note19;
