//! On what machine was that?
//!
//! A time means nothing without it. From `/proc` and `/sys`; what they do not tell is unknown.

use super::figures::number_behind;
use barest::Mapping;
use std::fs;
use std::path::Path;

/// What a reader needs to know to compare times.
#[derive(Default)]
pub struct Machine {
    pub processor: Option<String>,
    pub cores: Option<usize>,
    pub kernel: Option<String>,
    pub page_bytes: usize,
    pub memory_bytes: Option<u64>,
    pub file_system: Option<String>,
    /// Of the device below the file.
    pub read_ahead_bytes: Option<u64>,
}

impl Machine {
    /// The machine, and where on it a file lies.
    pub fn of(path: &Path) -> Machine {
        let mount = mount_of(path);
        let kib = |kib: u64| kib.checked_mul(1024);
        Machine {
            processor: processor(),
            cores: std::thread::available_parallelism().ok().map(usize::from),
            kernel: kernel(),
            page_bytes: Mapping::page_size(),
            memory_bytes: number_behind("/proc/meminfo", "MemTotal:").and_then(kib),
            read_ahead_bytes: mount.as_ref().and_then(|mount| read_ahead(&mount.device)),
            file_system: mount.map(|mount| mount.file_system),
        }
    }
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn kernel() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(format!("Linux {}", release.trim()))
}

fn read_ahead(device: &str) -> Option<u64> {
    let kib = fs::read_to_string(format!("/sys/class/bdi/{device}/read_ahead_kb")).ok()?;
    kib.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A line of `/proc/self/mountinfo`.
#[derive(PartialEq, Debug)]
struct Mount {
    /// `major:minor`.
    device: String,
    file_system: String,
}

fn mount_of(path: &Path) -> Option<Mount> {
    let path = fs::canonicalize(path).ok()?;
    mount_in(&fs::read_to_string("/proc/self/mountinfo").ok()?, &path)
}

/// The mount with the longest path that leads to the file; of equal ones the last, which hides those
/// before it.
fn mount_in(mounts: &str, path: &Path) -> Option<Mount> {
    let of_line = |line: &str| {
        let mut words = line.split(' ').skip(2);
        let (device, point) = (words.next()?, unescaped(words.nth(1)?));
        let file_system = line.split_once(" - ")?.1.split(' ').next()?;
        let mount = Mount { device: device.to_owned(), file_system: file_system.to_owned() };
        path.starts_with(&point).then_some((point.len(), mount))
    };
    let found = mounts.lines().filter_map(of_line).max_by_key(|&(len, _)| len);
    found.map(|(_, mount)| mount)
}

/// Blanks and backslashes of a mount point are written as three octal digits.
fn unescaped(point: &str) -> String {
    let blanks = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    blanks.iter().fold(point.to_owned(), |text, (code, sign)| text.replace(code, sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lies_on_the_mount_with_the_longest_path() {
        let mounts = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 7:1 / /a\\040b rw - xfs /dev/loop1 rw
31 27 7:2 / /a\\040b/c rw - ext2 /dev/loop2 rw
32 27 7:3 / /a\\040b/c rw - btrfs /dev/loop3 rw
";
        let found = |path: &str| {
            let mount = mount_in(mounts, Path::new(path)).unwrap();
            format!("{} {}", mount.device, mount.file_system)
        };
        assert_eq!(found("/x/y"), "254:0 ext4");
        assert_eq!(found("/a b/x"), "7:1 xfs");
        assert_eq!(found("/a b/c"), "7:3 btrfs");
        assert_eq!(found("/a bc"), "254:0 ext4");
        assert_eq!(mount_in("", Path::new("/")), None);
    }
}
