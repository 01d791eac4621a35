//! How far is it, for whoever waits at a terminal?

use barest::Progress;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// What takes less is not worth a line.
const PATIENCE: Duration = Duration::from_millis(500);

const BETWEEN: Duration = Duration::from_millis(200);

/// Does some work that counts into a `Progress`, and shows `line` of it on a terminal meanwhile: on
/// standard error, where it leaves nothing behind.
pub fn watched<T>(line: fn(&Progress) -> String, work: impl FnOnce(&Progress) -> T) -> T {
    let progress = Progress::new();
    if !io::stderr().is_terminal() {
        return work(&progress);
    }
    let (done, ended) = channel::<()>();
    thread::scope(|scope| {
        let progress = &progress;
        let shown = thread::Builder::new().spawn_scoped(scope, move || {
            let mut wait = PATIENCE;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(wait) {
                // If standard error is closed, nobody waits.
                let _ = write!(io::stderr(), "\r{:<60}", line(progress));
                wait = BETWEEN;
            }
            if wait == BETWEEN {
                let _ = write!(io::stderr(), "\r{:60}\r", "");
            }
        });
        let outcome = work(progress);
        drop(done);
        // A system that gives no thread shows no progress.
        drop(shown);
        outcome
    })
}

/// `reading headers: 17 of 163`.
pub fn headers(progress: &Progress) -> String {
    let (done, all) = progress.shards();
    format!("reading headers: {done} of {all}")
}
