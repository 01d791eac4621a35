//! Is a file still the one that was opened?
//!
//! What the system tells of a file costs one call and no look at its bytes: length, time of the last
//! modification, device and inode. Who writes, truncates or punches holes through a descriptor
//! changes one of them. A store through a writable mapping may change none, a time can be set back,
//! and a clock has ticks: note 08 of the documentation shows what goes unnoticed.
//!
//! The time of the last *change* tells more and too much: replacing a file by `rename`, which harms
//! nobody, changes it for the old file too. But then the old file has lost a name. So it counts as
//! long as the number of names is the same.

use super::error::{Error, ErrorKind, Result};
use std::fs::{File, Metadata};
use std::time::{SystemTime, UNIX_EPOCH};

/// What an open file looked like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    len: u64,
    modified: Option<SystemTime>,
    identity: Option<Identity>,
}

/// What Unix tells besides.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Identity {
    device: u64,
    inode: u64,
    links: u64,
    /// Seconds and nanoseconds since 1970.
    changed: (i64, i64),
}

impl Seen {
    /// What the system has just told of a file.
    pub fn of(metadata: &Metadata) -> Seen {
        Seen {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            identity: identity(metadata),
        }
    }

    /// Looks again: [`Shrank`](ErrorKind::Shrank) for a file that is shorter,
    /// [`Changed`](ErrorKind::Changed) for another difference.
    pub fn compare(&self, file: &File) -> Result<()> {
        let metadata = file.metadata().map_err(|error| Error::io("look at the file", error))?;
        let now = Seen::of(&metadata);
        let (expected, found) = (self.len, now.len);
        if found < expected {
            return Err(Error::at_file(ErrorKind::Shrank { expected, found }, found));
        }
        same("length", expected, found)?;
        if let (Some(then), Some(now)) = (&self.identity, &now.identity) {
            same("device", then.device, now.device)?;
            same("inode", then.inode, now.inode)?;
        }
        if self.modified != now.modified {
            return changed("time of modification", seconds(self.modified), seconds(now.modified));
        }
        match (&self.identity, &now.identity) {
            (Some(then), Some(now)) if then.links == now.links && then.changed != now.changed => {
                let seconds = |(seconds, nanos): (i64, i64)| format!("{seconds}.{nanos:09} s");
                changed("time of change", seconds(then.changed), seconds(now.changed))
            }
            _ => Ok(()),
        }
    }
}

fn same(what: &'static str, expected: u64, found: u64) -> Result<()> {
    match expected == found {
        true => Ok(()),
        false => changed(what, expected.to_string(), found.to_string()),
    }
}

fn changed(what: &'static str, expected: String, found: String) -> Result<()> {
    Err(Error::new(ErrorKind::Changed { what, expected, found }))
}

fn seconds(time: Option<SystemTime>) -> String {
    let since = |time: SystemTime| match time.duration_since(UNIX_EPOCH) {
        Ok(after) => format!("{}.{:09} s", after.as_secs(), after.subsec_nanos()),
        Err(before) => format!("{:?} before 1970", before.duration()),
    };
    time.map_or("unknown".to_owned(), since)
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    Some(Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
        links: metadata.nlink(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<Identity> {
    None
}
