//! How far is it, for whoever waits at a terminal?

use super::ls::size_in_words;
use barest::Progress;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// What takes less is not worth a line.
const PATIENCE: Duration = Duration::from_millis(500);

const BETWEEN: Duration = Duration::from_millis(200);

/// Does some work, and shows `line` now and then on a terminal meanwhile: on standard error, where it
/// leaves nothing behind.
pub fn watched<T>(line: impl Fn() -> String + Sync, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, ended) = channel::<()>();
    thread::scope(|scope| {
        let line = &line;
        // A system that gives no thread shows no progress.
        let _shown = thread::Builder::new().spawn_scoped(scope, move || {
            let mut wait = PATIENCE;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(wait) {
                // If standard error is closed, nobody waits.
                let _ = write!(io::stderr(), "\r{:<60}", line());
                wait = BETWEEN;
            }
            if wait == BETWEEN {
                let _ = write!(io::stderr(), "\r{:60}\r", "");
            }
        });
        let outcome = work();
        drop(done);
        outcome
    })
}

/// `reading headers: 17 of 163`.
pub fn headers(progress: &Progress) -> String {
    let (done, all) = progress.shards();
    format!("reading headers: {done} of {all}")
}

/// `reading: 12.0 MiB of 1.9 GiB`.
pub fn bytes((done, all): (u64, u64)) -> String {
    format!("reading: {} of {}", size_in_words(done), size_in_words(all))
}
