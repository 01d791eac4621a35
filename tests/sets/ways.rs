//! Every way from a path to tensors. They must all say the same, also if they fail.

use barest::{Error, Index, Model, OpenOptions, Result, Summary};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What can be known of a model.
#[derive(PartialEq, Debug)]
pub struct Told {
    pub tensors: Vec<Tensor>,
    pub shards: Vec<PathBuf>,
    pub index: Option<PathBuf>,
    pub ignored: Vec<PathBuf>,
    pub unassigned: usize,
    pub total_size: Option<u64>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    pub name: String,
    pub shard: usize,
    pub range: Range<u64>,
    pub bytes: Vec<u8>,
}

impl Told {
    /// The bytes of a tensor.
    pub fn bytes(&self, name: &str) -> &[u8] {
        &self.tensors.iter().find(|tensor| tensor.name == name).unwrap().bytes
    }

    pub fn names(&self) -> Vec<&str> {
        self.tensors.iter().map(|tensor| &*tensor.name).collect()
    }

    pub fn shard_names(&self) -> Vec<String> {
        file_names(&self.shards)
    }

    pub fn ignored_names(&self) -> Vec<String> {
        file_names(&self.ignored)
    }
}

pub fn file_names(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

fn told(shards: Vec<PathBuf>, tensors: Vec<Tensor>, summary: &Summary) -> Told {
    let Summary { index, ignored, unassigned, total_size, .. } = summary.clone();
    Told { tensors, shards, index, ignored, unassigned, total_size }
}

/// What an index says, with bytes that [`Index::read_into`] read.
pub fn of_index(index: &Index) -> Told {
    let shards = index.shards().iter().map(|file| file.path().unwrap().to_owned()).collect();
    let tensors = index.tensors().map(|(shard, info)| {
        let mut bytes = vec![0xee; info.byte_len() as usize];
        index.read_into(info.name(), &mut bytes).unwrap();
        let (again, found) = index.tensor(info.name()).unwrap();
        assert_eq!((again, found.file_range()), (shard, info.file_range()));
        Tensor { name: info.name().to_owned(), shard, range: info.file_range(), bytes }
    });
    assert_eq!(index.tensors().len(), index.len());
    told(shards, tensors.collect(), index.summary())
}

/// What a model says.
pub fn of_model(model: &Model) -> Told {
    let shards = model.shards().map(|shard| shard.path().unwrap().to_owned()).collect();
    let tensors = model.tensors().map(|view| {
        let found = model.tensor(view.name()).unwrap();
        assert_eq!((found.shard(), found.file_range()), (view.shard(), view.file_range()));
        Tensor {
            name: view.name().to_owned(),
            shard: view.shard(),
            range: view.file_range(),
            bytes: view.bytes().to_owned(),
        }
    });
    assert_eq!(model.tensors().len(), model.len());
    told(shards, tensors.collect(), model.summary())
}

/// What all ways to a path say.
pub fn open(path: &Path) -> Result<Told> {
    let options = OpenOptions::new();
    let model = |model: Result<Model>| model.map(|model| of_model(&model));
    let index = |index: Result<Index>| index.map(|index| of_index(&index));
    // SAFETY: the files lie in a folder of one test, which does not change them meanwhile.
    let mapped = unsafe {
        [
            Model::map(path),
            Model::open(path),
            options.map(path),
            options.open(path),
            Index::open(path).and_then(|index| index.map()),
            Index::open(path).and_then(|index| index.map_or_read()),
        ]
    };
    let read = [Model::read(path), options.read(path), Index::open(path).and_then(Index::read)];
    let indexes = [Index::open(path), options.index(path)];
    let models = mapped.into_iter().chain(read).map(model);
    all_the_same(indexes.into_iter().map(index).chain(models))
}

/// What all ways to these files say.
pub fn open_files(paths: &[PathBuf]) -> Result<Told> {
    let opened = || Index::open_files(paths);
    let indexes = [opened(), OpenOptions::new().index_files(paths)];
    // SAFETY: as in `open`.
    let mapped = unsafe {
        [opened().and_then(|index| index.map()), opened().and_then(|index| index.map_or_read())]
    };
    let models = mapped.into_iter().chain([opened().and_then(Index::read)]);
    let indexes = indexes.into_iter().map(|index| index.map(|index| of_index(&index)));
    all_the_same(indexes.chain(models.map(|model| model.map(|model| of_model(&model)))))
}

fn all_the_same(outcomes: impl Iterator<Item = Result<Told>>) -> Result<Told> {
    let mut outcomes = outcomes.collect::<Vec<_>>().into_iter();
    let first = outcomes.next().unwrap();
    for other in outcomes {
        match (&first, &other) {
            (Ok(first), Ok(other)) => assert_eq!(first, other),
            (Err(first), Err(other)) => assert_eq!(lines(first), lines(other)),
            _ => panic!("{first:?}\n{other:?}"),
        }
    }
    first
}

/// What is wrong, each by itself.
pub fn lines(error: &Error) -> Vec<String> {
    error.faults().iter().map(Error::to_string).collect()
}
