//! What do the program that compares and the small ones that it starts have in common?
//!
//! `main.rs` makes the tables. Each file in `bin/` opens one model in one way and does nothing else: what
//! opening costs a process the first time depends on how much else its program is.

pub mod first;
pub mod peers;
