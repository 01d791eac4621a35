//! Which of them is faster, on a machine that does other things as well?
//!
//! ```text
//!   round 1   A B C        each contender once in a round, for some milliseconds
//!   round 2   C A B        in an order drawn anew: nobody always has the same one before him,
//!   round 3   B C A        whose leftovers in heap and caches he finds
//!             └ ratios are taken inside a round; median, p10 and p90 of those over all rounds
//! ```
//!
//! What slows the machine down for a while slows down all contenders of a round, and falls out of
//! their ratio.

use cpu_time::ProcessTime;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a contender works in one round, if one piece of work does not take longer.
const SAMPLE: Duration = Duration::from_millis(4);

/// How many rounds a race has.
#[derive(Clone, Copy)]
pub enum Rounds {
    Exactly(usize),
    /// And fewer, but not below [`FEWEST`], once so much time has gone by.
    AtMost(usize, Duration),
}

const FEWEST: usize = 7;

impl Rounds {
    /// As many times as many, for rounds that are short; in no more time.
    pub fn times(self, more: usize) -> Rounds {
        match self {
            Rounds::Exactly(rounds) => Rounds::Exactly(rounds * more),
            Rounds::AtMost(most, time) => Rounds::AtMost(most * more, time),
        }
    }

    pub fn are_over(self, done: usize, spent: Duration) -> bool {
        match self {
            Rounds::Exactly(rounds) => done >= rounds,
            Rounds::AtMost(most, time) => done >= most || done >= FEWEST && spent >= time,
        }
    }
}

static BY_PROCESSOR: AtomicBool = AtomicBool::new(false);

/// From now on, what counts is the time for which processors worked for this process, on all of its
/// threads together; not the time that went by. What other processes take does not count then.
pub fn count_processor_time() {
    BY_PROCESSOR.store(true, Ordering::Relaxed);
}

enum Start {
    Wall(Instant),
    Processor(ProcessTime),
}

impl Start {
    fn now() -> Start {
        match BY_PROCESSOR.load(Ordering::Relaxed) {
            false => Start::Wall(Instant::now()),
            true => Start::Processor(ProcessTime::now()),
        }
    }

    fn elapsed(&self) -> Duration {
        match self {
            Start::Wall(start) => start.elapsed(),
            Start::Processor(start) => start.elapsed(),
        }
    }
}

/// Stopped by the contender when its result is ready: what it drops after that is not timed.
pub struct Watch {
    started: Start,
    elapsed: Option<Duration>,
}

impl Watch {
    /// The result is there.
    pub fn ready<T: ?Sized>(&mut self, result: &T) {
        black_box(result);
        self.elapsed = Some(self.started.elapsed());
    }
}

type Work<'a> = Box<dyn FnMut(&mut Watch) + 'a>;

/// One way to do a piece of work.
pub struct Contender<'a> {
    work: Work<'a>,
    /// Seconds for one piece of work, a number for each round.
    seconds: Vec<f64>,
}

impl<'a> Contender<'a> {
    /// `work` does one piece and calls [`Watch::ready`].
    pub fn new(work: impl FnMut(&mut Watch) + 'a) -> Contender<'a> {
        Contender { work: Box::new(work), seconds: Vec::new() }
    }

    /// Seconds for one piece: the median of as many as there is time for. Once in a while another
    /// process takes the processor in the middle of a piece; a mean would be about that process.
    fn sample(&mut self) -> f64 {
        let began = Instant::now();
        let mut pieces = Vec::new();
        while pieces.is_empty() || began.elapsed() < SAMPLE {
            let mut watch = Watch { started: Start::now(), elapsed: None };
            (self.work)(&mut watch);
            let elapsed = watch.elapsed.expect("a contender says when it is ready");
            pieces.push(elapsed.as_secs_f64());
        }
        Spread::of(pieces).median
    }
}

/// Lets them run beside each other; gives the seconds that one piece of work took, contender by
/// contender, a number for each round.
pub fn race<const N: usize>(mut contenders: [Contender<'_>; N], rounds: Rounds) -> [Vec<f64>; N] {
    // The first time is not like the others.
    for contender in &mut contenders {
        contender.sample();
    }
    let (began, mut round) = (Instant::now(), 0);
    let mut order: [usize; N] = std::array::from_fn(|number| number);
    while !rounds.are_over(round, began.elapsed()) {
        fastrand::shuffle(&mut order);
        for number in order {
            let seconds = contenders[number].sample();
            contenders[number].seconds.push(seconds);
        }
        round += 1;
    }
    contenders.map(|contender| contender.seconds)
}

/// The middle and the usual range of what was measured.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub p10: f64,
    pub median: f64,
    pub p90: f64,
}

impl Spread {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| sorted[((sorted.len() - 1) as f64 * part).round() as usize];
        Spread { p10: at(0.1), median: at(0.5), p90: at(0.9) }
    }

    /// How many times as long the first took, round by round.
    pub fn of_ratios(longer: &[f64], shorter: &[f64]) -> Spread {
        Spread::of(longer.iter().zip(shorter).map(|(longer, shorter)| longer / shorter))
    }

    /// The same measure of a part: a pass over a thousand names becomes one name.
    pub fn divided_by(self, parts: usize) -> Spread {
        let share = |whole: f64| whole / parts as f64;
        Spread { p10: share(self.p10), median: share(self.median), p90: share(self.p90) }
    }
}
