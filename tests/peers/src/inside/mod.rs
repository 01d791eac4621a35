//! Parts of barest that nobody can reach from outside of it, compiled once more from the same files.
//!
//! A file there uses only what stands above it, so that it is soon alone.

pub mod error;
pub mod header;
