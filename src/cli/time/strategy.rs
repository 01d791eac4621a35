//! In which ways do a model's bytes get into memory?

/// A way, and what it is about.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Strategy {
    Read,
    StdRead,
    OnDemand,
    Sequential,
    WillNeed,
    Prefetch,
    Populate,
    FirstOnDemand,
    FirstPrefetch,
    RandomRows,
    RandomRowsAdvised,
    Direct,
    Disk,
    WorkersOnDemand,
    WorkersPrefetch,
    ShareMapped,
    ShareRead,
}

/// Which part of the model is touched.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Part {
    All,
    FirstLayers,
    Rows,
}

impl Strategy {
    /// Those of the table, in its order.
    pub const TABLE: [Strategy; 13] = [
        Strategy::Read,
        Strategy::StdRead,
        Strategy::OnDemand,
        Strategy::Sequential,
        Strategy::WillNeed,
        Strategy::Populate,
        Strategy::Prefetch,
        Strategy::Direct,
        Strategy::Disk,
        Strategy::FirstOnDemand,
        Strategy::FirstPrefetch,
        Strategy::RandomRows,
        Strategy::RandomRowsAdvised,
    ];

    pub const WORKERS: [Strategy; 2] = [Strategy::WorkersOnDemand, Strategy::WorkersPrefetch];

    pub const SHARING: [Strategy; 2] = [Strategy::ShareMapped, Strategy::ShareRead];

    pub fn name(self) -> &'static str {
        match self {
            Strategy::Read => "read",
            Strategy::StdRead => "std-read",
            Strategy::OnDemand => "on-demand",
            Strategy::Sequential => "sequential",
            Strategy::WillNeed => "will-need",
            Strategy::Prefetch => "prefetch",
            Strategy::Populate => "populate",
            Strategy::FirstOnDemand => "first-on-demand",
            Strategy::FirstPrefetch => "first-prefetch",
            Strategy::RandomRows => "random-rows",
            Strategy::RandomRowsAdvised => "random-rows-advised",
            Strategy::Direct => "direct",
            Strategy::Disk => "disk",
            Strategy::WorkersOnDemand => "workers-on-demand",
            Strategy::WorkersPrefetch => "workers-prefetch",
            Strategy::ShareMapped => "mapped",
            Strategy::ShareRead => "read-by-each",
        }
    }

    /// Any of them, by its name.
    pub fn from_name(name: &str) -> Option<Strategy> {
        let [table, workers, sharing] =
            [&Strategy::TABLE[..], &Strategy::WORKERS, &Strategy::SHARING];
        let mut all = table.iter().chain(workers).chain(sharing);
        all.find(|strategy| strategy.name() == name).copied()
    }

    pub fn part(self) -> Part {
        match self {
            Strategy::FirstOnDemand | Strategy::FirstPrefetch => Part::FirstLayers,
            Strategy::RandomRows | Strategy::RandomRowsAdvised => Part::Rows,
            _ => Part::All,
        }
    }

    /// Whether it takes memory for a copy of all bytes.
    pub fn copies(self) -> bool {
        matches!(self, Strategy::Read | Strategy::StdRead | Strategy::Direct | Strategy::ShareRead)
    }

    /// Whether it asks the disk whatever the page cache has, so that warm means nothing to it.
    pub fn passes_the_cache_by(self) -> bool {
        matches!(self, Strategy::Direct | Strategy::Disk)
    }
}
