//! What must hold, and what is tried against it? Shared by the fuzz targets; `tests/corpus.rs` of the
//! root package takes the files that need no other crate.

pub mod changes;
pub mod mutator;
pub mod skeleton;
pub mod tape;

#[path = "properties/decode.rs"]
pub mod decode;
#[path = "properties/differential.rs"]
pub mod differential;
#[path = "properties/header.rs"]
pub mod header;
#[path = "properties/index.rs"]
pub mod index;
#[path = "properties/json.rs"]
pub mod json;
#[path = "properties/roundtrip.rs"]
pub mod roundtrip;
#[path = "properties/slice.rs"]
pub mod slice;
