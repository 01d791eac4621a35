//! The table of names.

#[path = "../../../../src/barest/header/names.rs"]
pub mod names;
