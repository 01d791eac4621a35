//! How is JSON read without building a tree?
//!
//! A cursor walks over the text once and is asked for what should come next; what comes is
//! returned as a range of the text or as a number, and what is not wanted is skipped, checked all
//! the same. Nothing recurses, nothing is allocated, and every failure knows its byte.
//!
//! ```text
//!   {"dtype":"BF16","shape":[576,1536], …
//!    ▲string       ▲expect  ▲unsigned        a Cursor is the text and one position
//! ```
//!
//! The text is a `str`, validated once by std: what is left to check are JSON's own rules
//! (RFC 8259) and the limits that the reference reader has.

mod cursor;
mod escapes;
mod number;
mod string;

pub use cursor::Cursor;
pub use number::digits;
pub use string::{Text, next_special};
