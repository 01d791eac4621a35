//! How is a model written so that nothing is lost when it goes wrong?
//!
//! ```text
//!   names, dtypes, shapes, sources ──plan──▶ header, proved by our own reader      no byte written yet
//!                                              │
//!            a file without a name  ◀──────────┘ header, then data, one buffer
//!                    │ fsync
//!                    ▼
//!            .NAME.PID.partial ──rename──▶ NAME, fsync of the directory
//! ```
//!
//! Whatever is wrong with the plan is an error before a byte is written, and whatever goes wrong
//! later leaves what had the name before as it was: also when it is the very file that is mapped.

mod edit;
#[cfg(test)]
mod killed;
mod left;
mod locate;
mod pipe;
mod plan;
mod save;
mod text;

pub use edit::EditMetadata;
pub use left::{Left, LeftKind, left_in};
pub use plan::Plan;
pub use save::Saved;

use super::bytes::Backing;
use super::dtype::Dtype;
use super::error::reserve::no_memory;
use super::error::{Error, Result};
use super::header::DEFAULT_HEADER_CAP;
use super::seen::Seen;
use super::shard::Shard;
use super::tensor::TensorView;
use pipe::{Pipe, Source, To};
use save::{Before, nothing, replace};
use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::path::Path;

/// In which order tensors and metadata are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// As the reference writer does: the widest dtypes first, in the reverse order of
    /// [`Dtype::ALL`], and by name among those of one dtype, so that most elements lie where a CPU
    /// likes them; metadata by its keys, which the reference leaves to chance. Names and keys
    /// are compared byte by byte.
    Reference,
    /// As they were added.
    AsGiven,
}

/// Writes a model: say what shall be in it, then save it or write it somewhere.
///
/// ```text
///   let mut writer = Writer::new();
///   writer.tensor("weight", Dtype::F32, &[2, 3], &bytes).metadata("format", "pt");
///   writer.save("model.safetensors")?;
/// ```
///
/// Bytes are borrowed, or come from a callback while they are written; nothing is copied into
/// memory but one buffer of at most [`BUFFER`](Writer::BUFFER) bytes, and the header. The same input
/// gives the same bytes.
pub struct Writer<'a> {
    tensors: Vec<Planned<'a>>,
    metadata: Option<Vec<(Cow<'a, str>, Cow<'a, str>)>>,
    order: Order,
    alignment: u64,
    header_cap: u32,
    verify: bool,
    progress: Option<Box<Progress<'a>>>,
}

/// Told how many bytes of how many are done.
type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// A tensor that shall be written.
struct Planned<'a> {
    name: Cow<'a, str>,
    dtype: Dtype,
    shape: Cow<'a, [u64]>,
    source: Source<'a>,
}

impl<'a> Writer<'a> {
    /// Bytes that are held in memory at most, whatever the model's size, besides the header.
    pub const BUFFER: usize = pipe::BUFFER * 2;

    /// Nothing to write yet; [`Order::Reference`], data on a multiple of 8.
    pub fn new() -> Writer<'a> {
        Writer {
            tensors: Vec::new(),
            metadata: None,
            order: Order::Reference,
            alignment: 8,
            header_cap: DEFAULT_HEADER_CAP,
            verify: false,
            progress: None,
        }
    }

    /// Adds a tensor whose bytes are at hand: little-endian, in C order, elements below 8 bits
    /// packed. They are borrowed.
    pub fn tensor(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        dtype: Dtype,
        shape: impl Into<Cow<'a, [u64]>>,
        bytes: &'a [u8],
    ) -> &mut Writer<'a> {
        self.add(name.into(), dtype, shape.into(), Source::Bytes(bytes))
    }

    /// Adds a tensor whose bytes `give` writes when their turn comes: exactly as many as dtype and
    /// shape ask for, in pieces of any size. Writing more or fewer is an error, and so is an error
    /// that it returns. It is called again if the model is written again.
    pub fn stream(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        dtype: Dtype,
        shape: impl Into<Cow<'a, [u64]>>,
        give: impl FnMut(&mut dyn io::Write) -> io::Result<()> + 'a,
    ) -> &mut Writer<'a> {
        self.add(name.into(), dtype, shape.into(), Source::Stream(Box::new(give)))
    }

    /// Adds a tensor of a model, under this name. When a file is saved, the bytes of a mapped model
    /// go from file to file within the kernel, where it can do that.
    pub fn copy(&mut self, name: impl Into<Cow<'a, str>>, view: TensorView<'a>) -> &mut Writer<'a> {
        self.add(name.into(), view.dtype(), Cow::Borrowed(view.shape()), Source::View(view))
    }

    fn add(
        &mut self,
        name: Cow<'a, str>,
        dtype: Dtype,
        shape: Cow<'a, [u64]>,
        source: Source<'a>,
    ) -> &mut Writer<'a> {
        self.tensors.push(Planned { name, dtype, shape, source });
        self
    }

    /// Adds a pair to `__metadata__`; a key that is there already takes the new value.
    pub fn metadata(
        &mut self,
        key: impl Into<Cow<'a, str>>,
        value: impl Into<Cow<'a, str>>,
    ) -> &mut Writer<'a> {
        self.metadata_pairs([(key.into(), value.into())])
    }

    /// The same for many pairs. If there are none, the file has an empty `__metadata__`, which is
    /// not the same as none.
    pub fn metadata_pairs<K, V>(
        &mut self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Writer<'a>
    where
        K: Into<Cow<'a, str>>,
        V: Into<Cow<'a, str>>,
    {
        let known = self.metadata.get_or_insert_with(Vec::new);
        known.extend(pairs.into_iter().map(|(key, value)| (key.into(), value.into())));
        self
    }

    /// The order of tensors and metadata.
    pub fn order(&mut self, order: Order) -> &mut Writer<'a> {
        self.order = order;
        self
    }

    /// Begins the data section on a multiple of so many bytes, a power of two: 64 for cache lines,
    /// 4096 for pages, 16384 for Metal. The header is padded with spaces to get there, at least to
    /// a multiple of 8. Of the tensors it moves the first alone: they touch, as the format wants it.
    pub fn align(&mut self, bytes: u64) -> &mut Writer<'a> {
        self.alignment = bytes;
        self
    }

    /// Lets the header grow to `bytes` bytes with its padding. Readers refuse what is over their own
    /// cap, which is [`DEFAULT_HEADER_CAP`] nearly everywhere.
    pub fn header_cap(&mut self, bytes: u32) -> &mut Writer<'a> {
        self.header_cap = bytes;
        self
    }

    /// Reads what was saved and compares every byte with its source, before the file gets its name:
    /// for file systems that are not trusted with copying, and for sources that may have changed.
    /// Callbacks are called once more. What is read may come from the page cache. A difference is
    /// [`NotAsWritten`](super::ErrorKind::NotAsWritten). [`Writer::write_to`] does not verify.
    pub fn verify(&mut self, verify: bool) -> &mut Writer<'a> {
        self.verify = verify;
        self
    }

    /// Calls `tell` with the bytes that are done and the bytes there are, at least once for each
    /// 16 MiB. If the file is verified, its bytes count twice.
    pub fn progress(&mut self, tell: impl FnMut(u64, u64) + 'a) -> &mut Writer<'a> {
        self.progress = Some(Box::new(tell));
        self
    }

    /// Finds out what would be written, and whether it can be. Writes nothing, calls no callback,
    /// touches no byte of a tensor.
    ///
    /// Fails with [`NameGivenTwice`](super::ErrorKind::NameGivenTwice),
    /// [`ReservedName`](super::ErrorKind::ReservedName),
    /// [`WrongDataLength`](super::ErrorKind::WrongDataLength) for bytes that do not match dtype and
    /// shape, [`PartialByte`](super::ErrorKind::PartialByte), [`Overflow`](super::ErrorKind::Overflow),
    /// [`TooMuchData`](super::ErrorKind::TooMuchData),
    /// [`HeaderTooLong`](super::ErrorKind::HeaderTooLong) and
    /// [`BadAlignment`](super::ErrorKind::BadAlignment).
    pub fn plan(&self) -> Result<Plan> {
        Plan::of(self)
    }

    /// Writes the model to anything that takes bytes, and gives their number. What stands there if
    /// this fails, after the plan, is the beginning of a model; [`Writer::save`] leaves none.
    ///
    /// Fails as [`Writer::plan`] does; with [`Io`](super::ErrorKind::Io); with
    /// [`WrongDataLength`](super::ErrorKind::WrongDataLength) for a callback; and with
    /// [`Shrank`](super::ErrorKind::Shrank), [`Truncated`](super::ErrorKind::Truncated) or
    /// [`Changed`](super::ErrorKind::Changed) if a mapped file that tensors are
    /// [copied](Writer::copy) from changes meanwhile.
    pub fn write_to(&mut self, mut to: impl io::Write) -> Result<u64> {
        let plan = self.plan()?;
        self.pour(&plan, To::Anything(&mut to), &mut nothing, (0, plan.file_len()))?;
        Ok(plan.file_len())
    }

    /// Saves the model as a file. Until all of it is on the disk nothing has the name, or what had
    /// it before; from then on the new file has it. The directory must be writable.
    ///
    /// - A new file has the mode `0666` without the umask; one that replaces another has the
    ///   other's mode.
    /// - A symbolic link stays one: the file that it leads to is replaced, or made.
    /// - The file may be the one that the tensors are mapped from: their views keep the old bytes.
    /// - If it returns an error, nothing has changed and no temporary file is left. A process that
    ///   is killed may leave `.NAME.PID.partial`: see [`left_in`], and [`Saved::left`].
    ///
    /// Fails as [`Writer::write_to`] does, and with [`NotAFile`](super::ErrorKind::NotAFile) if
    /// something else has the name.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<Saved> {
        let path = path.as_ref();
        self.save_step_by_step(path, &mut nothing).map_err(|error| error.in_file(path))
    }

    fn save_step_by_step(&mut self, path: &Path, before: &mut Before) -> Result<Saved> {
        let plan = self.plan()?;
        let len = plan.file_len();
        let all = if self.verify { len.saturating_mul(2) } else { len };
        replace(path, before, &mut |file, before| {
            self.pour(&plan, To::File(file), before, (0, all))?;
            match self.verify {
                true => self.pour(&plan, To::Against(file), before, (len, all)),
                false => Ok(()),
            }
        })
    }

    /// Header, then data. `done` is what was done before, and all there is to do.
    fn pour(
        &mut self,
        plan: &Plan,
        to: To<'_>,
        before: &mut Before,
        done: (u64, u64),
    ) -> Result<()> {
        let (start, all) = done;
        let sources = self.sources()?;
        let mut tell = |done| {
            if let Some(progress) = &mut self.progress {
                progress(start + done, all);
            }
        };
        let mut pipe = Pipe::new(to, plan.file_len(), before, &mut tell)?;
        pipe.put(plan.header_bytes())?;
        for (&number, info) in plan.order().iter().zip(plan.header().tensors()) {
            let Planned { name, dtype, shape, source } = &mut self.tensors[number];
            source
                .pour(info.byte_len(), &mut pipe)
                .map_err(|failed| failed.said_of(name, *dtype, shape))?;
        }
        pipe.finish()?;
        sources.iter().try_for_each(|(shard, seen)| shard.still_looks(seen))
    }

    /// The files that the kernel copies from, and what they look like now. That nobody changes them
    /// was promised; a model that is half of one and half of another should not get a name.
    fn sources(&self) -> Result<Vec<(&'a Shard, Seen)>> {
        let mut sources: Vec<(&Shard, Seen)> = Vec::new();
        for tensor in &self.tensors {
            let Source::View(TensorView { shard, .. }) = tensor.source else { continue };
            let is_known = sources.last().is_some_and(|(last, _)| std::ptr::eq(*last, &**shard));
            let (Some(file), Backing::Mapped, false) = (shard.file(), shard.backing(), is_known)
            else {
                continue;
            };
            let metadata = file.metadata().map_err(|error| Error::io("look at the file", error));
            let metadata = metadata.map_err(|error| shard.source.error(error))?;
            sources.try_reserve(1).map_err(|_| no_memory())?;
            sources.push((shard, Seen::of(&metadata)));
        }
        Ok(sources)
    }
}

impl Default for Writer<'_> {
    fn default() -> Self {
        Writer::new()
    }
}

impl Debug for Writer<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({} tensors, {:?})", self.tensors.len(), self.order)
    }
}
