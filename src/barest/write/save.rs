//! How does a new file get an old name, with nothing lost on the way?
//!
//! ```text
//!   1  a file without a name            or .NAME.PID.partial where the system has none such
//!   2  the old file's mode
//!   3  write, write, write
//!   4  fsync                            from here on all of it is on the disk
//!   5  .NAME.PID.partial                the name is free: NAME at once, and that is all
//!   6  rename to NAME                   in one step: before it the old file, after it the new one
//!   7  fsync of the directory           the name is on the disk too
//! ```
//!
//! An error up to 6 leaves the name as it was, and what was made is removed. POSIX says of
//! [`rename`](https://pubs.opengroup.org/onlinepubs/9799919799/functions/rename.html) that a file of
//! the new name is there throughout.

use super::super::error::{Error, ErrorKind, Result};
use super::super::sys;
use super::left::{Left, left_in, partial_name};
use super::pipe::{Pipe, To};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::path::{Path, PathBuf};

/// What is about to be done: tests stop here, or report an error instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    CreateUnnamed,
    CreatePartial,
    SetMode,
    Write,
    SyncFile,
    Name,
    NamePartial,
    Rename,
    SyncDirectory,
    Overwrite,
    Remove,
}

/// Called before each step; an error of it is an error of the step.
pub type Before = dyn FnMut(Step) -> io::Result<()>;

/// The one that does nothing.
pub fn nothing(_: Step) -> io::Result<()> {
    Ok(())
}

/// Does one step.
pub fn step<T>(
    before: &mut Before,
    step: Step,
    action: &'static str,
    call: impl FnOnce() -> io::Result<T>,
) -> Result<T> {
    before(step).and_then(|()| call()).map_err(|error| Error::io(action, error))
}

/// How a file was saved.
#[derive(Debug)]
pub struct Saved {
    path: PathBuf,
    left: Vec<Left>,
    unsynced: Option<io::Error>,
}

impl Saved {
    /// The file that was written: where the path led to, if that is a symbolic link.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What earlier attempts to write this file, cut off before they ended, have left beside it.
    pub fn left(&self) -> &[Left] {
        &self.left
    }

    /// Why the directory could not be flushed to the disk: the file is whole and has its name, but
    /// after a power failure the name might be that of the old file again. `None` if it could.
    pub fn unsynced(&self) -> Option<&io::Error> {
        self.unsynced.as_ref()
    }
}

/// Where a file shall be, links followed.
pub struct Target {
    pub path: PathBuf,
    pub name: OsString,
    pub directory: PathBuf,
    /// Of the file that is there.
    pub permissions: Option<Permissions>,
}

/// Links in a row that are followed, as Linux does.
const MOST_LINKS: usize = 40;

impl Target {
    /// Where a path leads to: a file, or a free name.
    pub fn of(path: &Path) -> Result<Target> {
        let mut place = path.to_owned();
        for _ in 0..MOST_LINKS {
            match fs::symlink_metadata(&place) {
                Ok(found) if found.is_symlink() => {
                    let to = fs::read_link(&place).map_err(|error| Error::io("follow", error))?;
                    place = directory_of(&place).join(to);
                }
                Ok(found) if found.is_file() => {
                    return Target::at(place, Some(found.permissions()));
                }
                Ok(found) => {
                    let found = if found.is_dir() { "a directory" } else { "something else" };
                    return Err(Error::new(ErrorKind::NotAFile { found }));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Target::at(place, None);
                }
                Err(error) => return Err(Error::io("look at", error)),
            }
        }
        Err(Error::io("follow", io::Error::other("too many symbolic links")))
    }

    fn at(path: PathBuf, permissions: Option<Permissions>) -> Result<Target> {
        let no_name = || Error::io("write", io::Error::other("the path has no file name"));
        let name = path.file_name().ok_or_else(no_name)?.to_owned();
        let directory = directory_of(&path);
        Ok(Target { path, name, directory, permissions })
    }

    /// The name beside it that a hidden file of ours would have.
    pub fn beside(&self, name: OsString) -> PathBuf {
        self.directory.join(name)
    }
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => PathBuf::from("."),
    }
}

/// Writes a new file by `fill` and gives it the name. See the module's text.
pub fn replace(
    path: &Path,
    before: &mut Before,
    fill: &mut dyn FnMut(&File, &mut Before) -> Result<()>,
) -> Result<Saved> {
    let target = Target::of(path)?;
    let directory = Directory::open(&target.directory)?;
    let temporary = Temporary::create(&target, before)?;
    fill(&temporary.file, before)?;
    temporary.sync(before)?;
    temporary.replace(&target, before)?;
    let unsynced = before(Step::SyncDirectory).and_then(|()| directory.sync()).err();
    let left = left_in(&target.directory).unwrap_or_default().into_iter();
    let beside_it = left.filter(|left| left.of().file_name() == Some(&target.name));
    let left = beside_it.map(Left::of_replaced).collect();
    Ok(Saved { path: target.path, left, unsynced })
}

/// A directory whose names can be flushed to the disk.
pub struct Directory(Option<File>);

impl Directory {
    pub fn open(path: &Path) -> Result<Directory> {
        // Elsewhere directories cannot be opened as files, and names are the system's own care.
        match cfg!(unix) {
            true => {
                let open = File::open(path);
                Ok(Directory(Some(open.map_err(|error| Error::io("open the directory", error))?)))
            }
            false => Ok(Directory(None)),
        }
    }

    pub fn sync(&self) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), File::sync_all)
    }
}

/// A file that is being written. What has a name and is not wanted in the end loses it.
pub struct Temporary {
    pub file: File,
    name: Option<PathBuf>,
}

impl Temporary {
    /// Without a name where that is possible; with the mode that the target has or will have.
    pub fn create(target: &Target, before: &mut Before) -> Result<Temporary> {
        let mode = mode_of(target);
        let unnamed = before(Step::CreateUnnamed)
            .and_then(|()| sys::open_unnamed(&target.directory, mode))
            .map(|file| Temporary { file, name: None });
        let temporary = match unnamed {
            Ok(temporary) => temporary,
            Err(_) => Temporary::named(target, before)?,
        };
        temporary.set_mode(target, before)?;
        Ok(temporary)
    }

    fn named(target: &Target, before: &mut Before) -> Result<Temporary> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode_of(target));
        let create = || first_free(target, |path| options.open(path));
        let (file, name) =
            step(before, Step::CreatePartial, "create a temporary file beside it", create)?;
        Ok(Temporary { file, name: Some(name) })
    }

    /// Exactly the old file's mode, whatever the umask.
    fn set_mode(&self, target: &Target, before: &mut Before) -> Result<()> {
        match &target.permissions {
            // Elsewhere permissions are a mark against writing, and this file shall be written.
            Some(old) if cfg!(unix) => {
                let set = || self.file.set_permissions(old.clone());
                step(before, Step::SetMode, "set the mode", set)
            }
            _ => Ok(()),
        }
    }

    pub fn sync(&self, before: &mut Before) -> Result<()> {
        step(before, Step::SyncFile, "flush to the disk", || self.file.sync_all())
    }

    /// Takes the target's name, whoever has it.
    fn replace(mut self, target: &Target, before: &mut Before) -> Result<()> {
        if self.name.is_none() {
            if target.permissions.is_none() {
                let name = before(Step::Name);
                if name.and_then(|()| sys::give_name(&self.file, &target.path)).is_ok() {
                    return Ok(());
                }
                // Taken meanwhile; or it cannot be named, and the next attempt says so.
            }
            let name = || first_free(target, |path| sys::give_name(&self.file, path));
            match before(Step::NamePartial).and_then(|()| name()) {
                Ok(((), name)) => self.name = Some(name),
                Err(_) => self = self.copied(target, before)?,
            }
        }
        let Some(name) = &self.name else { return Ok(()) };
        step(before, Step::Rename, "rename the temporary file", || fs::rename(name, &target.path))?;
        self.name = None;
        Ok(())
    }

    /// A file that cannot get a name, in one that has a name.
    fn copied(&self, target: &Target, before: &mut Before) -> Result<Temporary> {
        let named = Temporary::named(target, before)?;
        named.set_mode(target, before)?;
        let metadata = self.file.metadata();
        let len = metadata.map_err(|error| Error::io("ask for the length", error))?.len();
        let mut tell = |_| ();
        let mut pipe = Pipe::new(To::File(&named.file), len, before, &mut tell)?;
        pipe.range(&self.file, 0..len, None)?;
        pipe.finish()?;
        named.sync(before)?;
        Ok(named)
    }

    /// Takes a name that must be free.
    pub fn take(self, path: &Path, before: &mut Before) -> Result<()> {
        step(before, Step::Name, "name the temporary file", || match &self.name {
            None => sys::give_name(&self.file, path),
            Some(name) => fs::hard_link(name, path),
        })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // There is nobody to tell, and an error is on its way already.
            let _ = fs::remove_file(name);
        }
    }
}

/// The mode to create a file with, before the umask: nobody shall read more than of the old file.
fn mode_of(target: &Target) -> u32 {
    #[cfg(unix)]
    if let Some(old) = &target.permissions {
        return std::os::unix::fs::PermissionsExt::mode(old) & 0o666;
    }
    let _ = target;
    0o666
}

/// How many names are tried.
const MOST_NAMES: u32 = 1000;

/// Does something under the first name for a partial file that is free. Another thread may be
/// saving the same file, and so may a process of the same number on another machine: their files
/// are left alone.
fn first_free<T>(
    target: &Target,
    mut attempt: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let mut number = 0;
    loop {
        let path = target.beside(partial_name(&target.name, number));
        match attempt(&path) {
            Ok(done) => return Ok((done, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MOST_NAMES => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}
