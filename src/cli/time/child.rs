//! What does a fresh process do that is timed?
//!
//! It runs one strategy and prints one line of figures. The clock starts before the path is opened and
//! stops when the last page was touched; counters are read before and after.

use super::super::output::Output;
use super::super::{End, map};
use super::direct;
use super::figures::{Figure, Meter};
use super::strategy::Strategy;
use super::touch::{first_layers, random_rows, touch, touch_tensor};
use barest::escape::Shown;
use barest::{Advice, Index, Model, Pages, Prefetcher, TensorView};
use std::fs;
use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// What a process that shares says before it is weighed.
pub const TOUCHED: &str = "touched";

pub fn run(
    strategy: Strategy,
    path: &Path,
    threads: usize,
    output: &mut Output,
) -> Result<(), End> {
    let told = follow_parent();
    let meter = Meter::start();
    match strategy {
        Strategy::ShareMapped | Strategy::ShareRead => {
            let mut run = Run { meter, sum: 0, touched: 0 };
            let model = match strategy {
                Strategy::ShareMapped => map(path)?,
                _ => Model::read(path)?,
            };
            run.all_tensors(&model)?;
            run.meter.stop();
            model.still_whole()?;
            writeln!(output, "{TOUCHED}")?;
            output.flush()?;
            // All of them hold their memory while each is weighed.
            let _ = told.recv();
            run.tell(&model, output)?;
            let _ = told.recv();
            Ok(())
        }
        _ => Run { meter, sum: 0, touched: 0 }.run(strategy, path, threads, output),
    }
}

/// Passes on the parent's lines, and ends this process when the parent is gone: nobody would read
/// what it finds out.
fn follow_parent() -> Receiver<()> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            if line.is_err() || tell.send(()).is_err() {
                break;
            }
        }
        std::process::exit(1);
    });
    told
}

struct Run {
    meter: Meter,
    sum: u64,
    touched: u64,
}

impl Run {
    fn run(
        mut self,
        strategy: Strategy,
        path: &Path,
        threads: usize,
        output: &mut Output,
    ) -> Result<(), End> {
        match strategy {
            Strategy::StdRead => {
                let index = Index::open(path)?;
                let files = each_file(&index, |path, _| fs::read(path))?;
                self.copies(&index, &files, |file| file);
                self.tell(&(index, files), output)
            }
            Strategy::Direct => {
                let index = Index::open(path)?;
                let files = each_file(&index, direct::read)?;
                self.copies(&index, &files, direct::Aligned::bytes);
                self.tell(&(index, files), output)
            }
            Strategy::Disk => {
                let index = Index::open(path)?;
                each_file(&index, direct::read_through)?;
                self.touched = index.tensors().map(|(_, tensor)| tensor.byte_len()).sum();
                self.tell(&index, output)
            }
            Strategy::Read => {
                let model = Model::read(path)?;
                self.all_tensors(&model)?;
                self.tell(&model, output)
            }
            _ => {
                let model = map(path)?;
                self.mapped(strategy, &model, threads)?;
                self.meter.stop();
                model.still_whole()?;
                self.tell(&model, output)
            }
        }
    }

    fn mapped(&mut self, strategy: Strategy, model: &Model, threads: usize) -> Result<(), End> {
        let advice = match strategy {
            Strategy::Sequential => Some(Advice::Sequential),
            Strategy::WillNeed => Some(Advice::WillNeed),
            Strategy::Populate => Some(Advice::PopulateRead),
            Strategy::RandomRowsAdvised => Some(Advice::Random),
            _ => None,
        };
        if let Some(advice) = advice {
            model.pages().advise(advice)?;
        }
        match strategy {
            Strategy::Prefetch => {
                let prefetcher = model.pages().prefetch()?;
                self.tensors(model.tensors(), |tensor| prefetcher.wait(tensor))?;
            }
            Strategy::FirstOnDemand => self.tensors(first_layers(model).into_iter(), |_| Ok(()))?,
            Strategy::FirstPrefetch => {
                let wanted = first_layers(model);
                let mut pages = Pages::new();
                wanted.iter().for_each(|tensor| pages.add(tensor));
                let prefetcher = pages.prefetch()?;
                self.tensors(wanted.into_iter(), |tensor| prefetcher.wait(tensor))?;
            }
            Strategy::RandomRows | Strategy::RandomRowsAdvised => {
                self.meter.note(Figure::Ready);
                for (tensor, place) in random_rows(model) {
                    self.sum += u64::from(tensor.bytes()[place]);
                    self.touched += 1;
                    self.meter.note(Figure::First);
                }
            }
            Strategy::WorkersOnDemand => self.workers(model, threads, None)?,
            Strategy::WorkersPrefetch => {
                let prefetcher = model.pages().prefetch()?;
                self.workers(model, threads, Some(&prefetcher))?;
            }
            _ => self.all_tensors(model)?,
        }
        Ok(())
    }

    fn all_tensors(&mut self, model: &Model) -> Result<(), End> {
        self.tensors(model.tensors(), |_| Ok(()))
    }

    /// Touches tensors, each after having waited for it.
    fn tensors<'m>(
        &mut self,
        tensors: impl Iterator<Item = TensorView<'m>>,
        wait: impl Fn(&TensorView<'m>) -> barest::Result<()>,
    ) -> Result<(), End> {
        self.meter.note(Figure::Ready);
        for tensor in tensors {
            wait(&tensor)?;
            self.sum += touch_tensor(&tensor);
            self.touched += tensor.byte_len() as u64;
            if !tensor.is_empty() {
                self.meter.note(Figure::First);
            }
        }
        Ok(())
    }

    /// Touches the tensors in copies of the files.
    fn copies<T>(&mut self, index: &Index, files: &[T], bytes: impl Fn(&T) -> &[u8]) {
        self.meter.note(Figure::Ready);
        for (shard, tensor) in index.tensors() {
            let range = tensor.file_range();
            let file = bytes(&files[shard]);
            self.sum += touch(&file[range.start as usize..range.end as usize], range.start);
            self.touched += tensor.byte_len();
            if !range.is_empty() {
                self.meter.note(Figure::First);
            }
        }
    }

    /// Threads that take one tensor after the other in file order.
    fn workers(
        &mut self,
        model: &Model,
        threads: usize,
        loader: Option<&Prefetcher>,
    ) -> Result<(), End> {
        self.meter.note(Figure::Ready);
        let tensors: Vec<TensorView<'_>> = model.tensors().collect();
        let (next, first) = (AtomicUsize::new(0), AtomicU64::new(u64::MAX));
        let meter = &self.meter;
        let work = || -> barest::Result<(u64, u64)> {
            let (mut sum, mut touched) = (0, 0);
            while let Some(tensor) = tensors.get(next.fetch_add(1, Ordering::Relaxed)) {
                loader.map_or(Ok(()), |loader| loader.wait(tensor))?;
                sum += touch_tensor(tensor);
                touched += tensor.byte_len() as u64;
                if !tensor.is_empty() {
                    let now = u64::try_from(meter.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    first.fetch_min(now, Ordering::Relaxed);
                }
            }
            Ok((sum, touched))
        };
        let outcomes: Vec<barest::Result<(u64, u64)>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|_| std::thread::Builder::new().spawn_scoped(scope, work))
                .collect::<io::Result<_>>()
                .map_err(|error| End::Bad(format!("cannot start a worker: {error}")))?;
            let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            Ok::<_, End>(workers.into_iter().map(join).collect())
        })?;
        for outcome in outcomes {
            let (sum, touched) = outcome?;
            self.sum += sum;
            self.touched += touched;
        }
        let first = first.into_inner();
        if first < u64::MAX {
            self.meter.note_at(Figure::First, Duration::from_nanos(first));
        }
        Ok(())
    }

    /// Prints the figures; `held` is what the process has in memory meanwhile.
    fn tell<T>(mut self, held: &T, output: &mut Output) -> Result<(), End> {
        self.meter.stop();
        self.meter.weigh();
        black_box(held);
        self.meter.count(Figure::Sum, self.sum);
        self.meter.count(Figure::Touched, self.touched);
        writeln!(output, "{}", self.meter.figures().line())?;
        Ok(output.flush()?)
    }
}

/// Does something with each file of a model, given its length.
fn each_file<T>(index: &Index, work: impl Fn(&Path, u64) -> io::Result<T>) -> Result<Vec<T>, End> {
    let files = index.shards().iter().map(|shard| {
        let path = shard.path().unwrap_or(Path::new(""));
        let header = shard.header();
        work(path, header.model_start() + header.model_len()).map_err(|error| {
            let shown = path.to_string_lossy();
            End::Bad(format!("{}: {error}", Shown(&shown)))
        })
    });
    files.collect()
}
