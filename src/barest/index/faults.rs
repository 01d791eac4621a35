//! What is wrong with a set of files, all at once?
//!
//! Whoever repairs a download wants to know every file that is bad, not the first one. A hostile
//! index may have millions of faults: from some number on they are only counted.

use super::super::error::{Error, ErrorKind, Result};
use std::path::Path;

/// Faults found so far.
#[derive(Default)]
pub struct Faults {
    list: Vec<Error>,
    more: usize,
}

/// How many are kept in full.
pub const MOST: usize = 1000;

impl Faults {
    /// Keeps a fault, or counts it.
    pub fn push(&mut self, fault: Error) {
        match self.are_many() {
            true => self.more += 1,
            false => self.list.push(fault),
        }
    }

    /// Counts a fault that is not worth describing any more.
    pub fn count(&mut self) {
        self.more += 1;
    }

    /// Counts so many of them.
    pub fn count_all(&mut self, more: usize) {
        self.more += more;
    }

    /// Whether further ones are only counted.
    pub fn are_many(&self) -> bool {
        self.list.len() >= MOST
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len() + self.more
    }

    /// Nothing, or the one fault there is, or all of them in one error of so many shards at `path`. A
    /// fault that names no path is `path`'s own.
    pub fn into_result(self, path: Option<&Path>, shards: usize) -> Result<()> {
        let all = self.len();
        let Faults { list, more } = self;
        let here = |error: Error| match path {
            Some(path) => error.in_file(path),
            None => error,
        };
        let mut faults: Vec<Error> = list.into_iter().map(here).collect();
        match all {
            0 => Ok(()),
            1 => Err(faults.remove(0)),
            _ => Err(here(Error::new(ErrorKind::Faults { faults, more, shards }))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_are_kept_and_all_are_counted() {
        let mut faults = Faults::default();
        for _ in 0..MOST + 5 {
            faults.push(Error::new(ErrorKind::NoHeader));
        }
        faults.count();
        // As many again as are kept: a difference would be none.
        faults.count_all(MOST - 6);
        assert!(faults.are_many());
        assert_eq!(faults.len(), 2 * MOST);
        let error = faults.into_result(None, 7).unwrap_err();
        let ErrorKind::Faults { faults, more, shards } = error.kind() else { panic!("{error}") };
        assert_eq!((faults.len(), *more, *shards), (MOST, MOST, 7));
    }
}
