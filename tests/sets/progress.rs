//! Can a long call be watched, and ended?

use crate::files::{Folder, INDEX, index};
use barest::{ErrorKind, Index, Model, OpenOptions, Progress, Result};
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

/// A set of so many shards, each with a tensor of so many bytes.
fn set(count: usize, bytes: usize) -> Folder {
    let folder = Folder::new();
    let names: Vec<String> = (0..count).map(|number| format!("{number:04}")).collect();
    let data = vec![7; bytes];
    for name in &names {
        folder.shard(name, &[(name, &data)]);
    }
    let entries: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &**name)).collect();
    folder.file(INDEX, index(&entries));
    folder
}

fn with(progress: &Progress, threads: usize) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.progress(progress).read_threads(NonZeroUsize::new(threads).unwrap());
    options
}

#[test]
fn shards_and_bytes_are_counted_to_the_last() {
    let folder = set(30, 1000);
    for threads in [1, 4] {
        let progress = Progress::new();
        assert_eq!((progress.shards(), progress.bytes()), ((0, 0), (0, 0)));
        let index = with(&progress, threads).index(&folder.0).unwrap();
        assert_eq!((progress.shards(), progress.bytes()), ((30, 30), (0, 0)));
        let all: u64 = index.shards().iter().map(|file| file.header().model_len()).sum();
        index.read().unwrap();
        assert_eq!((progress.shards(), progress.bytes()), ((30, 30), (all, all)));
    }
    // Of one file too, by its own path or as a part of another.
    let path = folder.path("0000");
    let len = std::fs::metadata(&path).unwrap().len();
    let progress = Progress::new();
    with(&progress, 1).read(&path).unwrap();
    assert_eq!((progress.shards(), progress.bytes()), ((1, 1), (len, len)));
    let progress = Progress::new();
    with(&progress, 1).index_range(&path, 0..len).unwrap();
    assert_eq!(progress.shards(), (1, 1));
    // What is mapped is not read.
    let progress = Progress::new();
    // SAFETY: the files lie in a folder of this test, which does not change them meanwhile.
    unsafe { with(&progress, 1).map(&folder.0) }.unwrap();
    assert_eq!((progress.shards(), progress.bytes()), ((30, 30), (0, 0)));
}

#[test]
fn a_shard_that_is_bad_is_counted_like_the_others() {
    let folder = set(20, 1);
    std::fs::remove_file(folder.path("0003")).unwrap();
    let progress = Progress::new();
    with(&progress, 2).index(&folder.0).unwrap_err();
    assert_eq!(progress.shards(), (20, 20));
}

fn is_cancelled<T>(outcome: Result<T>) -> bool {
    outcome.err().is_some_and(|error| matches!(error.kind(), ErrorKind::Cancelled))
}

#[test]
fn what_was_cancelled_before_it_began_does_nothing() {
    let folder = set(30, 1000);
    let paths: Vec<_> = (0..30).map(|number| folder.path(&format!("{number:04}"))).collect();
    let progress = Progress::new();
    progress.cancel();
    assert!(progress.is_cancelled() && progress.clone().is_cancelled());
    for threads in [1, 4] {
        let options = with(&progress, threads);
        assert!(is_cancelled(options.index(&folder.0)));
        assert!(is_cancelled(options.index_files(&paths)));
        assert!(is_cancelled(options.read(&folder.0)));
        // SAFETY: the files lie in a folder of this test, which does not change them meanwhile.
        assert!(is_cancelled(unsafe { options.map(&folder.0) }));
        // SAFETY: as above.
        assert!(is_cancelled(unsafe { options.open(&folder.0) }));
        assert!(is_cancelled(options.index(&paths[0])));
        assert!(is_cancelled(options.index_range(&paths[0], 0..9)));
    }
    assert_eq!((progress.shards().0, progress.bytes().0), (0, 0));
    assert_eq!(options_error(&folder.0, &progress), "cancelled");

    // Between the headers and the bytes.
    let progress = Progress::new();
    let index = with(&progress, 2).index(&folder.0).unwrap();
    progress.cancel();
    assert!(is_cancelled(index.read()));
    assert_eq!(progress.bytes().0, 0);
}

fn options_error(path: &Path, progress: &Progress) -> String {
    with(progress, 1).index(path).unwrap_err().to_string()
}

#[test]
fn another_thread_can_cancel_at_any_moment() {
    let folder = set(200, 10);
    let whole = Index::open(&folder.0).unwrap().len();
    let mut ended = 0;
    for moment in 0..40 {
        let progress = Progress::new();
        let options = with(&progress, 2);
        let outcome: Result<Model> = thread::scope(|scope| {
            let worker = scope.spawn(|| options.read(&folder.0));
            // The later half is cancelled after so many headers.
            while progress.shards().0 < 5 * moment && !worker.is_finished() {
                thread::yield_now();
            }
            progress.cancel();
            worker.join().unwrap()
        });
        match outcome {
            Ok(model) => assert_eq!(model.len(), whole),
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Cancelled), "{error}");
                ended += 1;
            }
        }
        assert!(progress.shards().0 <= 200);
    }
    assert!(ended > 0, "no call was ended");
}
