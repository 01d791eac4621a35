//! How is work shared by a few threads?

use super::error::Result;

/// Runs `work` on so many threads, the calling one among them, until each has returned; `work` takes
/// piece after piece from where all take theirs. The calling thread does `first` before. Gives what
/// `first` gave, or the first failure, in the order of the threads. A system that gives no more threads
/// only makes it slower.
pub fn share<T>(
    threads: usize,
    work: impl Fn() -> Result<()> + Sync,
    first: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads)
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let outcome = first();
        let mut worked = work();
        for helper in helpers {
            let theirs = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            worked = worked.and(theirs);
        }
        outcome.and_then(|outcome| worked.map(|()| outcome))
    })
}
