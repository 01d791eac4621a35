//! Which limit has this process reached?
//!
//! "Too many open files" and "Cannot allocate memory" do not say how many there may be, nor who
//! decides. Asked only once a call has failed.

use std::ffi::c_int;
use std::fs::File;
use std::io::{Read, Result};

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

/// How many bytes this process may lock.
pub fn locked_memory() -> Option<u64> {
    soft_limit(RLIMIT_MEMLOCK)
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
    let group = cgroup_folders().iter().filter_map(|folder| left_in_cgroup(folder)).min();
    match group {
        Some(bytes) if bytes < machine.bytes => {
            Some(Available { bytes, limit: "memory left of the control group's limit" })
        }
        _ => Some(machine),
    }
}

/// The folders of this process's control group and of those around it, version 2 or 1.
fn cgroup_folders() -> Vec<std::path::PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let folder = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            _ if controllers.split(',').any(|name| name == "memory") => "/sys/fs/cgroup/memory",
            _ => return None,
        };
        let root = std::path::Path::new(root);
        let folder = root.join(path.trim_start_matches('/'));
        let below = |folder: &&std::path::Path| folder.starts_with(root);
        Some(folder.ancestors().take_while(below).map(ToOwned::to_owned).collect::<Vec<_>>())
    };
    text.lines().filter_map(folder).flatten().collect()
}

/// What a control group may still take. Its page cache counts, but is given up first: what cannot be
/// given up is the memory without a file.
fn left_in_cgroup(folder: &std::path::Path) -> Option<u64> {
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
    // 1. Mappings, which Linux counts.
    if let Some(limit) = number_in("/proc/sys/vm/max_map_count") {
        // Some are made and given back in between, also by counting.
        const NEARLY: u64 = 16;
        if lines_of("/proc/self/maps").is_some_and(|maps| maps + NEARLY >= limit) {
            return Some(Limit { what: "mappings", limit, advice: "sysctl vm.max_map_count" });
        }
    }
    // 2. Addresses; the largest number means that there is no limit.
    let limit = soft_limit(RLIMIT_AS).filter(|&limit| limit < i64::MAX as u64)?;
    let what = "bytes of address space";
    Some(Limit { what, limit, advice: "ulimit -v, which counts KiB" })
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
