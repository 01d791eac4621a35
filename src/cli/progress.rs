//! How far is it?
//!
//! Told on standard error if that is a terminal, for what takes longer than a moment, and taken
//! away at the end.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How far something is.
pub struct Progress {
    what: &'static str,
    all: u64,
    done: u64,
    next: Instant,
    shown: bool,
    terminal: bool,
}

impl Progress {
    /// Of so many bytes none are done.
    pub fn new(what: &'static str, all: u64) -> Progress {
        let next = Instant::now() + Duration::from_millis(500);
        Progress { what, all, done: 0, next, shown: false, terminal: io::stderr().is_terminal() }
    }

    /// So many more bytes are done.
    pub fn advance(&mut self, bytes: u64) {
        self.reach(self.done.saturating_add(bytes), self.all);
    }

    /// So many bytes of so many are done.
    pub fn reach(&mut self, done: u64, all: u64) {
        (self.done, self.all) = (done, all);
        if self.terminal && Instant::now() >= self.next {
            self.next += Duration::from_millis(200);
            self.shown = true;
            let percent = (done as f64 * 100.0 / all.max(1) as f64).min(100.0);
            let _ = write!(io::stderr(), "\r{}: {percent:3.0} %", self.what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r{:40}\r", "");
        }
    }
}
