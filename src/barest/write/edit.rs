//! How is metadata changed without touching a byte of a tensor?
//!
//! ```text
//!   anew        new header, data copied by the kernel, rename      safe; the file is written once more
//!   in place    header copied to .NAME.header-backup, fsync        only if the new header fits the
//!               overwrite, fsync, remove the backup                old one's place, padding included
//! ```
//!
//! All else in the header stays as its writer spelled it.

use super::super::bytes::read_exact_at;
use super::super::error::reserve::zeros;
use super::super::error::{Error, ErrorKind, Result};
use super::super::header::{DEFAULT_HEADER_CAP, Header, PREFIX};
use super::super::seen::Seen;
use super::left::{Left, backup_name};
use super::locate::{Place, metadata};
use super::pipe::{Pipe, To};
use super::plan::{head, proved, read_back};
use super::save::{Before, Directory, Saved, Step, Target, Temporary, nothing, replace, step};
use super::text::{METADATA, Pairs, Quoted};
use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Changes to the `__metadata__` of a file: say which, then save.
#[derive(Clone, Default, Debug)]
pub struct EditMetadata {
    changes: Vec<(String, Option<String>)>,
}

/// A header before and after the changes.
struct Edited {
    old: Header,
    /// The first bytes of the file, up to the end of the header.
    old_head: Vec<u8>,
    /// The new header, not padded.
    text: String,
}

impl EditMetadata {
    /// No changes yet.
    pub fn new() -> EditMetadata {
        EditMetadata::default()
    }

    /// Gives a key a value; a new key goes to the end.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) -> &mut EditMetadata {
        self.changes.push((key.into(), Some(value.into())));
        self
    }

    /// Removes a key, which must be there when its turn comes.
    pub fn unset(&mut self, key: impl Into<String>) -> &mut EditMetadata {
        self.changes.push((key.into(), None));
        self
    }

    /// Writes the file anew with the changes, as [`Writer::save`](super::Writer::save) does, with
    /// its promises. Data goes from file to file within the kernel where that is possible, and
    /// begins on a multiple of the same power of two as before, up to 16384.
    ///
    /// Fails as [`Header::open`] does, with [`NoSuchKey`](ErrorKind::NoSuchKey), with
    /// [`HeaderTooLong`](ErrorKind::HeaderTooLong), with [`LeftBackup`](ErrorKind::LeftBackup), with
    /// [`Shrank`](ErrorKind::Shrank) or [`Changed`](ErrorKind::Changed) if somebody writes to the file
    /// meanwhile, and if it cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<Saved> {
        let path = path.as_ref();
        self.save_step_by_step(path, &mut nothing).map_err(|error| error.in_file(path))
    }

    /// Overwrites the header. Whoever maps the file sees the new one; data is neither read nor
    /// written. A process that is killed meanwhile leaves `.NAME.header-backup` beside the file,
    /// with the first bytes of the file as they were: see [`left_in`](super::left_in). An error
    /// that is returned leaves the file as it was, unless the disk refuses the old header too: then
    /// that backup stays.
    ///
    /// Fails as [`EditMetadata::save`] does, and with [`NoRoomInPlace`](ErrorKind::NoRoomInPlace).
    pub fn save_in_place(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.in_place_step_by_step(path, &mut nothing).map_err(|error| error.in_file(path))
    }

    pub(super) fn save_step_by_step(&self, path: &Path, before: &mut Before) -> Result<Saved> {
        no_backup(path)?;
        let Edited { old, old_head, text } = self.edited(path)?;
        let old_len = old.header_len();
        let new_head = match text.len() as u64 <= old_len {
            // Data stays where it is: on whatever boundary somebody put it.
            true => {
                let new_head = head(&text, old_len)?;
                read_back(&new_head, old.data_len(), u32::MAX)?;
                new_head
            }
            false => {
                const MOST: u64 = 16384;
                let alignment = 1 << (old.data_start() | MOST).trailing_zeros().max(3);
                proved(text, alignment, old.data_len(), DEFAULT_HEADER_CAP)?.0
            }
        };
        let source = File::open(path).map_err(|error| Error::io("open", error))?;
        let look = source.metadata().map_err(|error| Error::io("look at the file", error));
        let seen = Seen::of(&look?);
        is_still(&source, &old_head, &old)?;
        replace(path, before, &mut |file, before| {
            let mut tell = |_| ();
            let mut pipe = Pipe::new(To::File(file), old.data_len(), before, &mut tell)?;
            pipe.put(&new_head)?;
            pipe.range(&source, old.data_start()..old.data_start() + old.data_len(), None)?;
            pipe.finish()?;
            seen.compare(&source)
        })
    }

    pub(super) fn in_place_step_by_step(&self, path: &Path, before: &mut Before) -> Result<()> {
        // 1. All that can be known beforehand. A header that is half written is best told so.
        let (target, backup) = no_backup(path)?;
        let Edited { old, old_head, text } = self.edited(path)?;
        let (expected, found) = (text.len() as u64, old.header_len());
        if expected > found {
            return Err(Error::new(ErrorKind::NoRoomInPlace { expected, found }));
        }
        let new_head = head(&text, found)?;
        read_back(&new_head, old.data_len(), u32::MAX)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = options.open(&target.path).map_err(|error| Error::io("open", error))?;
        is_still(&file, &old_head, &old)?;

        // 2. The old header on the disk, under its own name.
        let directory = Directory::open(&target.directory)?;
        let temporary = Temporary::create(&target, before)?;
        step(before, Step::Write, "write the backup of the header", || {
            (&temporary.file).write_all(&old_head)
        })?;
        temporary.sync(before)?;
        temporary.take(&backup, before)?;
        let synced = step(before, Step::SyncDirectory, "flush the directory", || directory.sync());

        // 3. The new header in its place, and nobody needs the backup any more; or, if something
        //    fails, the old header again.
        let outcome = synced.and_then(|()| overwrite(&file, &new_head, before)).and_then(|()| {
            step(before, Step::Remove, "remove the backup of the header", || {
                fs::remove_file(&backup)
            })
        });
        if outcome.is_err() {
            if overwrite(&file, &old_head, &mut nothing).is_ok() {
                let _ = fs::remove_file(&backup);
            }
            return outcome;
        }
        // Should the backup come back after a power failure, it is told, and holds the old metadata.
        let _ = before(Step::SyncDirectory).and_then(|()| directory.sync());
        Ok(())
    }

    /// The header of a file, and what becomes of it.
    fn edited(&self, path: &Path) -> Result<Edited> {
        let old = Header::open(path)?;
        let old_head = head(old.text(), old.header_len())?;
        let pairs = self.applied_to(&old)?;
        let pairs = pairs.iter().map(|(key, value)| (&**key, &**value)).collect();
        let (value, old_text) = (Pairs(pairs), old.text().trim_end());
        let text = match metadata(old_text)? {
            Place::Value(Range { start, end }) => {
                format!("{}{value}{}", &old_text[..start], &old_text[end..])
            }
            Place::Absent(front) => {
                let comma = if old.is_empty() { "" } else { "," };
                let (head, tail) = old_text.split_at(front);
                format!("{head}{}:{value}{comma}{tail}", Quoted(METADATA))
            }
        };
        Ok(Edited { old, old_head, text })
    }

    /// The pairs of a header after the changes, in the header's order.
    fn applied_to<'h>(&'h self, header: &'h Header) -> Result<Vec<(Cow<'h, str>, Cow<'h, str>)>> {
        let mut pairs: Vec<(Cow<'h, str>, Cow<'h, str>)> = Vec::new();
        if let Some(metadata) = header.metadata() {
            pairs.extend(metadata.iter().map(|(key, value)| (Cow::Borrowed(key), value)));
        }
        for (key, value) in &self.changes {
            let place = pairs.iter().position(|(known, _)| known == key);
            match (place, value) {
                (Some(place), Some(value)) => pairs[place].1 = Cow::Borrowed(value),
                (None, Some(value)) => pairs.push((Cow::Borrowed(key), Cow::Borrowed(value))),
                (Some(place), None) => drop(pairs.remove(place)),
                (None, None) => {
                    return Err(Error::new(ErrorKind::NoSuchKey { key: key.clone() }));
                }
            }
        }
        Ok(pairs)
    }
}

/// The file that a path leads to, and where a backup of its header would be. Fails if there is one.
fn no_backup(path: &Path) -> Result<(Target, PathBuf)> {
    let target = Target::of(path)?;
    let backup = target.beside(backup_name(&target.name));
    if fs::symlink_metadata(&backup).is_ok() {
        let advice = Left::recognise(&backup).map_or(String::new(), |left| left.to_string());
        return Err(Error::new(ErrorKind::LeftBackup { backup, advice }));
    }
    Ok((target, backup))
}

/// Fails if the file is not the one whose header was read.
fn is_still(file: &File, old_head: &[u8], old: &Header) -> Result<()> {
    let len = file.metadata().map_err(|error| Error::io("ask for the length", error))?.len();
    let mut now = zeros(old_head.len())?;
    if len >= old_head.len() as u64 {
        read_exact_at(file, &mut now, 0)?;
    }
    match now == old_head && len == old.data_start() + old.data_len() {
        true => Ok(()),
        false => {
            Err(Error::io("change the metadata", io::Error::other("the file changed meanwhile")))
        }
    }
}

/// Writes a header where another of the same length stands, and flushes it to the disk.
fn overwrite(mut file: &File, head: &[u8], before: &mut Before) -> Result<()> {
    step(before, Step::Overwrite, "overwrite the header", || {
        file.seek(SeekFrom::Start(PREFIX as u64))?;
        file.write_all(&head[PREFIX..])
    })?;
    step(before, Step::SyncFile, "flush to the disk", || file.sync_all())
}
