//! How is work shared by a few threads?

use super::error::Result;

/// Runs `work` on so many threads, the calling one among them, until each has returned; `work` takes
/// piece after piece from where all take theirs. Gives the first failure in the threads' order. A
/// system that gives no more threads only makes it slower.
pub fn share(threads: usize, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    let work = &work;
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads)
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut outcome = work();
        for helper in helpers {
            let theirs = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and(theirs);
        }
        outcome
    })
}
