//! Which limit has this process reached?
//!
//! "Too many open files" and "Cannot allocate memory" do not say how many there may be, nor who
//! decides. Asked only once a call has failed.

use std::ffi::c_int;
use std::fs::File;
use std::io::{Read, Result};
use std::path::{Path, PathBuf};

/// A limit: how many there may be, of what, and how it is shown or raised.
pub struct Limit {
    pub what: &'static str,
    pub limit: u64,
    pub advice: &'static str,
}

/// `struct rlimit`: both numbers have 64 bits on every system of this file.
#[repr(C)]
pub struct Rlimit {
    pub current: u64,
    pub maximum: u64,
}

#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(any(target_arch = "mips64", target_arch = "mips64r6", target_arch = "sparc64"))
))]
mod resource {
    pub const RLIMIT_MEMLOCK: i32 = 8;
    pub const RLIMIT_NOFILE: i32 = 7;
    pub const RLIMIT_AS: i32 = 9;
}
#[cfg(any(target_arch = "mips64", target_arch = "mips64r6"))]
mod resource {
    pub const RLIMIT_MEMLOCK: i32 = 9;
    pub const RLIMIT_NOFILE: i32 = 5;
    pub const RLIMIT_AS: i32 = 6;
}
#[cfg(all(any(target_os = "linux", target_os = "android"), target_arch = "sparc64"))]
mod resource {
    pub const RLIMIT_MEMLOCK: i32 = 8;
    pub const RLIMIT_NOFILE: i32 = 6;
    pub const RLIMIT_AS: i32 = 9;
}
#[cfg(target_vendor = "apple")]
mod resource {
    pub const RLIMIT_MEMLOCK: i32 = 6;
    pub const RLIMIT_NOFILE: i32 = 8;
    pub const RLIMIT_AS: i32 = 5;
}
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
mod resource {
    pub const RLIMIT_MEMLOCK: i32 = 6;
    pub const RLIMIT_NOFILE: i32 = 8;
    // OpenBSD has none, and answers that the number is not valid.
    pub const RLIMIT_AS: i32 = 10;
}
pub use resource::{RLIMIT_AS, RLIMIT_MEMLOCK, RLIMIT_NOFILE};

// POSIX.1-2024.
unsafe extern "C" {
    fn getrlimit(resource: c_int, limit: *mut Rlimit) -> c_int;
}

const EPERM: i32 = 1;
#[cfg(any(target_os = "linux", target_os = "android"))]
const EAGAIN: i32 = 11;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const EAGAIN: i32 = 35;
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

/// The limit behind an error of `open`; `None` if it has another cause.
pub fn of_open_files(error: &std::io::Error) -> Option<Limit> {
    match error.raw_os_error()? {
        EMFILE => {
            let limit = soft_limit(RLIMIT_NOFILE)?;
            Some(Limit { what: "open files", limit, advice: "ulimit -n" })
        }
        ENFILE => {
            let limit = number_in("/proc/sys/fs/file-max")?;
            let what = "open files, together with all others on this machine";
            Some(Limit { what, limit, advice: "sysctl fs.file-max" })
        }
        _ => None,
    }
}

/// The limit behind an error of `mlock` for so many bytes, whole pages; `None` if it has another cause.
pub fn of_locked_memory(error: &std::io::Error, bytes: u64) -> Option<Limit> {
    let number = error.raw_os_error()?;
    if let Some(limit) = of_count_of_mappings().filter(|_| number == ENOMEM) {
        // A lock of a part makes three mappings of one.
        return Some(limit);
    }
    // The largest number means that there is no limit.
    let limit = soft_limit(RLIMIT_MEMLOCK).filter(|&limit| limit < i64::MAX as u64)?;
    let kib = number_behind("/proc/self/status", "VmLck:");
    let fits = kib.is_some_and(|kib| (kib * 1024).saturating_add(bytes) <= limit);
    let is_limit = match number {
        EPERM => true,
        ENOMEM | EAGAIN => !fits,
        _ => false,
    };
    let what = "bytes of locked memory";
    is_limit.then_some(Limit { what, limit, advice: "ulimit -l, which counts KiB" })
}

/// Memory that could be had without taking it from anybody.
pub struct Available {
    pub bytes: u64,
    /// Who decides.
    pub limit: &'static str,
}

/// The least of what the machine has left and what the control groups of this process allow; `None`
/// where nobody tells.
pub fn available_memory() -> Option<Available> {
    let kib = number_behind("/proc/meminfo", "MemAvailable:")?;
    let machine = Available { bytes: kib.saturating_mul(1024), limit: "memory available" };
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    match least_left(&groups, Path::new("/sys/fs/cgroup")) {
        Some(bytes) if bytes < machine.bytes => {
            Some(Available { bytes, limit: "memory left of the control group's limit" })
        }
        _ => Some(machine),
    }
}

/// The least that any of a process's control groups may still take.
fn least_left(groups: &str, mount: &Path) -> Option<u64> {
    cgroup_folders(groups, mount).iter().filter_map(|folder| left_in_cgroup(folder)).min()
}

/// The folders of a process's control group and of those around it, version 2 or 1, from what
/// `/proc/self/cgroup` says and where the groups are mounted. In a container the path may be another's:
/// what is left of it then is the mount itself.
fn cgroup_folders(groups: &str, mount: &Path) -> Vec<PathBuf> {
    let folders_of = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let root = match controllers {
            "" => mount.to_owned(),
            _ if controllers.split(',').any(|name| name == "memory") => mount.join("memory"),
            _ => return None,
        };
        let folder = root.join(path.trim_start_matches('/'));
        let below = |folder: &&Path| folder.starts_with(&root);
        Some(folder.ancestors().take_while(below).map(Path::to_owned).collect::<Vec<_>>())
    };
    groups.lines().filter_map(folders_of).flatten().collect()
}

/// What a control group may still take. Its page cache counts, but is given up first: what cannot be
/// given up is the memory without a file.
fn left_in_cgroup(folder: &Path) -> Option<u64> {
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let limit = number_in(&file("memory.max"))
        .or_else(|| number_in(&file("memory.limit_in_bytes")))
        // Version 1 says "no limit" by a number near 2^63.
        .filter(|&limit| limit < 1 << 60)?;
    let stat = file("memory.stat");
    let held = number_behind(&stat, "anon ").or_else(|| number_behind(&stat, "total_rss "));
    Some(limit.saturating_sub(held.unwrap_or(0)))
}

/// The number in the line of a file that begins with a word.
fn number_behind(path: &str, word: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(word))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The limit behind an error of `mmap`; `None` if it has another cause.
pub fn of_mappings(error: &std::io::Error) -> Option<Limit> {
    if error.raw_os_error() != Some(ENOMEM) {
        return None;
    }
    if let Some(limit) = of_count_of_mappings() {
        return Some(limit);
    }
    // Addresses; the largest number means that there is no limit.
    let limit = soft_limit(RLIMIT_AS).filter(|&limit| limit < i64::MAX as u64)?;
    let what = "bytes of address space";
    Some(Limit { what, limit, advice: "ulimit -v, which counts KiB" })
}

/// The limit of mappings, which Linux counts, if this process has about as many.
fn of_count_of_mappings() -> Option<Limit> {
    // Some are made and given back in between, also by counting.
    const NEARLY: u64 = 16;
    let limit = number_in("/proc/sys/vm/max_map_count")?;
    let maps = lines_of("/proc/self/maps")?;
    let advice = "sysctl vm.max_map_count";
    (maps + NEARLY >= limit).then_some(Limit { what: "mappings", limit, advice })
}

fn soft_limit(resource: c_int) -> Option<u64> {
    let mut limit = Rlimit { current: 0, maximum: 0 };
    // SAFETY: `limit` is a writable `struct rlimit`; a test holds its size against C's.
    let status = unsafe { getrlimit(resource, &mut limit) };
    (status == 0).then_some(limit.current)
}

fn number_in(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Counted piece by piece: there may be tens of thousands.
fn lines_of(path: &str) -> Option<u64> {
    let mut file = File::open(path).ok()?;
    let mut piece = [0; 8192];
    let mut lines = 0;
    loop {
        match file.read(&mut piece) as Result<usize> {
            Ok(0) => return Some(lines),
            Ok(len) => lines += piece[..len].iter().filter(|&&byte| byte == b'\n').count() as u64,
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder of one test, with these files.
    fn mounted(test: &str, files: &[(&str, &str)]) -> PathBuf {
        let mount = std::env::temp_dir().join(format!("barest-{test}-{}", std::process::id()));
        for (name, text) in files {
            let path = mount.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        mount
    }

    #[test]
    fn a_control_group_is_found_with_all_that_hold_it() {
        let mount = Path::new("/mount");
        let rows: [(&str, &[&str]); 8] = [
            ("0::/a/b c:d\n", &["/mount/a/b c:d", "/mount/a", "/mount"]),
            ("0::/\n", &["/mount"]),
            ("4:memory:/a\n", &["/mount/memory/a", "/mount/memory"]),
            ("4:cpu,memory:/\n1:cpu:/a\n", &["/mount/memory"]),
            ("2:cpu:/a\n3:name=systemd:/a\n", &[]),
            ("9:memory:/a\n0::/b\n", &["/mount/memory/a", "/mount/memory", "/mount/b", "/mount"]),
            ("", &[]),
            ("garbage\n::\n0:\n\u{fffd}", &["/mount"]),
        ];
        for (groups, expected) in rows {
            let expected: Vec<&Path> = expected.iter().map(Path::new).collect();
            assert_eq!(cgroup_folders(groups, mount), expected, "{groups:?}");
        }
    }

    #[test]
    fn what_a_control_group_has_left_is_its_limit_without_what_it_cannot_give_up() {
        /// A name of ours, the files with their texts, what is left.
        type Row = (&'static str, &'static [(&'static str, &'static str)], Option<u64>);
        let rows: [Row; 11] = [
            ("2", &[("memory.max", "1000\n"), ("memory.stat", "anon 300\nfile 600\n")], Some(700)),
            ("2-full", &[("memory.max", "100"), ("memory.stat", "file 1\nanon 300\n")], Some(0)),
            ("2-none", &[("memory.max", "max\n"), ("memory.stat", "anon 300\n")], None),
            ("2-bare", &[("memory.max", "1000\n")], Some(1000)),
            (
                "2-near",
                &[("memory.max", "1000"), ("memory.stat", "anon_thp 9\nanon 2\n")],
                Some(998),
            ),
            (
                "1",
                &[
                    ("memory.limit_in_bytes", "1000\n"),
                    ("memory.stat", "rss 400\ntotal_rss 600\n"),
                ],
                Some(400),
            ),
            ("1-none", &[("memory.limit_in_bytes", "9223372036854771712\n")], None),
            ("garbage", &[("memory.max", "a lot"), ("memory.limit_in_bytes", "-1")], None),
            ("too-long", &[("memory.max", "99999999999999999999999")], None),
            ("stat", &[("memory.max", "9"), ("memory.stat", "anon many\nanon \n\u{0}")], Some(9)),
            ("empty", &[("other", "")], None),
        ];
        for (name, files, expected) in rows {
            let folder = mounted(&format!("group-{name}"), files);
            assert_eq!(left_in_cgroup(&folder), expected, "{name}");
            fs::remove_dir_all(folder).unwrap();
        }
        assert_eq!(left_in_cgroup(Path::new("/nowhere")), None);
    }

    #[test]
    fn the_tightest_of_nested_groups_decides() {
        let files = [
            ("memory.stat", "anon 7\n"),
            ("outer/memory.max", "500\n"),
            ("outer/memory.stat", "anon 450\n"),
            ("outer/inner/memory.max", "200\n"),
            ("outer/inner/memory.stat", "anon 10\n"),
        ];
        let mount = mounted("nested-groups", &files);
        let least = |groups: &str| least_left(groups, &mount);
        assert_eq!(least("0::/outer/inner"), Some(50));
        assert_eq!(least("0::/outer/elsewhere"), Some(50));
        assert_eq!(least("0::/"), None);
        fs::write(mount.join("outer/inner/memory.max"), "40\n").unwrap();
        assert_eq!(least("0::/outer/inner"), Some(30));
        fs::write(mount.join("outer/memory.max"), "max\n").unwrap();
        assert_eq!(least("0::/outer/inner"), Some(30));
        fs::write(mount.join("outer/inner/memory.max"), "max\n").unwrap();
        assert_eq!(least("0::/outer/inner"), None);
        fs::remove_dir_all(mount).unwrap();
    }

    #[test]
    fn this_machine_has_memory_left_and_no_more_than_it_has() {
        let Some(Available { bytes, limit }) = available_memory() else {
            return assert!(!Path::new("/proc/meminfo").exists());
        };
        let total = number_behind("/proc/meminfo", "MemTotal:").unwrap() * 1024;
        assert!(0 < bytes && bytes < total, "{bytes} of {total}: {limit}");
    }
}
