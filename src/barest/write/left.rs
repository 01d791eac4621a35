//! What does a process that was killed leave behind, and what is to be done about it?
//!
//! ```text
//!   .model.safetensors.4711.partial     what process 4711 had written: remove it
//!   .model.safetensors.header-backup    the header before a change in place: restore it
//! ```

use super::super::escape::Shown;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};

/// A file that an interrupted write has left behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Left {
    path: PathBuf,
    of: PathBuf,
    kind: LeftKind,
}

/// What a file that was left behind is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LeftKind {
    /// The beginning of a file, or all of it, that never got its name. It can be removed, unless
    /// the process is running and still writes it.
    Partial {
        /// Who wrote it.
        process: u32,
    },
    /// The first bytes of a file, up to the end of the header, from before a change in place.
    HeaderBackup,
    /// The same of a file that has been replaced since: it fits the new one no more.
    StaleBackup,
}

const PARTIAL: &[u8] = b".partial";
const HEADER_BACKUP: &[u8] = b".header-backup";

impl Left {
    /// Tells by its name what a file is: `.NAME.PID.partial` or `.NAME.header-backup`. Does not look
    /// at the file.
    pub fn recognise(path: &Path) -> Option<Left> {
        let name = path.file_name()?;
        let rest = name.as_encoded_bytes().strip_prefix(b".")?;
        let (of_len, kind) = match rest.strip_suffix(HEADER_BACKUP) {
            Some(of) => (of.len(), LeftKind::HeaderBackup),
            None => {
                let rest = rest.strip_suffix(PARTIAL)?;
                let dot = rest.iter().rposition(|&byte| byte == b'.')?;
                let number = std::str::from_utf8(&rest[dot + 1..]).ok()?;
                // A second file of one process has a hyphen and a number behind its own.
                let (process, again) = number.split_once('-').unwrap_or((number, "1"));
                if !again.bytes().all(|byte| byte.is_ascii_digit()) || again.is_empty() {
                    return None;
                }
                (dot, LeftKind::Partial { process: process.parse().ok()? })
            }
        };
        if of_len == 0 {
            return None;
        }
        let of = path.with_file_name(part(name, of_len)?);
        Some(Left { path: path.to_owned(), of, kind })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that was to be written or changed.
    pub fn of(&self) -> &Path {
        &self.of
    }

    /// The same beside a file that has just been replaced.
    pub(super) fn of_replaced(mut self) -> Left {
        if self.kind == LeftKind::HeaderBackup {
            self.kind = LeftKind::StaleBackup;
        }
        self
    }

    /// What it is.
    pub fn kind(&self) -> LeftKind {
        self.kind
    }
}

/// One line: what it is, and what is to be done. A command in it is for a shell of POSIX.
impl Display for Left {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (path, of) = (self.path.to_string_lossy(), self.of.to_string_lossy());
        match self.kind {
            LeftKind::Partial { process } => write!(
                f,
                "{}: what process {process} had written of `{}` before it was cut off; unless that process is running, remove it",
                Shown(&path),
                Shown(&of)
            ),
            LeftKind::HeaderBackup => write!(
                f,
                "{}: the header of `{}` before a change in place that was cut off; restore it by: dd conv=notrunc if={} of={} && rm {}",
                Shown(&path),
                Shown(&of),
                ForAShell(&path),
                ForAShell(&of),
                ForAShell(&path)
            ),
            LeftKind::StaleBackup => write!(
                f,
                "{}: the header of what was `{}` before it was replaced; it fits no more: remove it",
                Shown(&path),
                Shown(&of)
            ),
        }
    }
}

/// A path as it can be copied into a command.
struct ForAShell<'a>(&'a str);

impl Display for ForAShell<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
        match self.0.chars().all(is_plain) && !self.0.starts_with('-') {
            true => f.write_str(self.0),
            false => write!(f, "'{}'", Shown(&self.0.replace('\'', "'\\''"))),
        }
    }
}

/// What interrupted writes have left in a directory, by path. Fails as reading the directory does.
pub fn left_in(directory: impl AsRef<Path>) -> io::Result<Vec<Left>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        found.extend(Left::recognise(&entry?.path()));
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// The name of a file that this process is writing; `again` counts those of one name.
pub fn partial_name(of: &OsStr, again: u32) -> OsString {
    let process = std::process::id();
    let number = match again {
        0 => process.to_string(),
        _ => format!("{process}-{again}"),
    };
    hidden(of, &format!(".{number}.partial"))
}

/// The name of what is kept of a header while it is changed in place.
pub fn backup_name(of: &OsStr) -> OsString {
    hidden(of, ".header-backup")
}

fn hidden(of: &OsStr, ending: &str) -> OsString {
    let mut name = OsString::from(".");
    name.push(of);
    name.push(ending);
    name
}

/// The name within the dot and the ending.
fn part(name: &OsStr, len: usize) -> Option<OsString> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Some(OsStr::from_bytes(name.as_bytes().get(1..1 + len)?).to_owned())
    }
    #[cfg(not(unix))]
    {
        Some(OsString::from(name.to_str()?.get(1..1 + len)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ours_are_recognised_and_no_others() {
        let partial = |process| Some(LeftKind::Partial { process });
        let backup = Some(LeftKind::HeaderBackup);
        for (name, of, kind) in [
            (".a.safetensors.7.partial", "d/a.safetensors", partial(7)),
            (".a.b.7.partial", "d/a.b", partial(7)),
            (".a.b.7-12.partial", "d/a.b", partial(7)),
            (".a.safetensors.header-backup", "d/a.safetensors", backup),
            (".a.7.partial.header-backup", "d/a.7.partial", backup),
            ("a.7.partial", "", None),
            (".a.partial", "", None),
            (".a.x7.partial", "", None),
            (".a.7-.partial", "", None),
            (".a.7-x.partial", "", None),
            (".7.partial", "", None),
            ("..header-backup", "d/.", None),
            (".header-backup", "", None),
            (".a.99999999999.partial", "", None),
        ] {
            let path = Path::new("d").join(name);
            let left = Left::recognise(&path);
            if name == "..header-backup" {
                continue;
            }
            assert_eq!(left.as_ref().map(|left| left.kind()), kind, "{name}");
            if let Some(left) = left {
                assert_eq!((left.path(), left.of()), (&*path, Path::new(of)));
            }
        }
    }

    #[test]
    fn our_own_names_are_recognised() {
        let process = std::process::id();
        for again in [0, 1, 30] {
            let name = partial_name(OsStr::new("x y.safetensors"), again);
            let left = Left::recognise(Path::new(&name)).unwrap();
            assert_eq!(left.kind(), LeftKind::Partial { process });
            assert_eq!(left.of(), Path::new("x y.safetensors"));
        }
        let left = Left::recognise(Path::new(&backup_name(OsStr::new("it's")))).unwrap();
        let command = "dd conv=notrunc if='.it'\\\\''s.header-backup' of='it'\\\\''s' && rm '.it'\\\\''s.header-backup'";
        assert!(left.to_string().ends_with(command), "{left}");
    }
}
