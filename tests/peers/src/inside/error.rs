//! Memory for it, and what stands for the errors of barest.

#![allow(dead_code)]

#[path = "../../../../src/barest/error/reserve.rs"]
pub mod reserve;

/// All that `reserve.rs` needs of one.
#[derive(Debug)]
pub struct Error;

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn io(_: &str, _: std::io::Error) -> Error {
        Error
    }
}
