//! How does a test do what may end its process?
//!
//! In a process of its own: the test's own program, started again to run that one test, with the
//! case it shall do in a variable.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, exit};

const CASE: &str = "BAREST_TEST_CASE";

pub const SIGBUS: i32 = if cfg!(any(target_os = "linux", target_os = "android")) { 7 } else { 10 };

/// How a child ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit status, if it came to one.
    pub status: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// What it wrote on standard error.
    pub said: String,
}

impl Ended {
    pub fn assert_well(&self, case: &str) {
        assert_eq!((self.status, self.signal), (Some(0), None), "{case}: {}", self.said);
    }

    pub fn assert_of_sigbus(&self, case: &str) {
        assert_eq!((self.status, self.signal), (None, Some(SIGBUS)), "{case}: {}", self.said);
    }
}

/// Does each case in a process of its own, and tells how they ended; in such a process, does the
/// one that is asked for, and ends it with 0 if the case returns. `test` is the function that calls.
pub fn each_in_a_child<const N: usize>(test: &str, cases: [(&str, fn()); N]) -> [Ended; N] {
    if let Some(asked) = std::env::var_os(CASE) {
        for (case, work) in cases {
            if asked == case {
                work();
                exit(0);
            }
        }
        panic!("{test} has no case {asked:?}");
    }
    // For its files, which it may not live to remove.
    let folder = std::env::temp_dir().join(format!("barest-{test}-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let ended = cases.map(|(case, _)| {
        let output = own_program()
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(CASE, case)
            .env("TMPDIR", &folder)
            // The sanitizer would put its own handler there, and local variables elsewhere.
            .env("ASAN_OPTIONS", "handle_sigbus=0:detect_stack_use_after_return=0")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ended { status: output.status.code(), signal: output.status.signal(), said }
    });
    std::fs::remove_dir_all(folder).unwrap();
    ended
}

/// The test's own program, or what runs it: the kernel may not be able to start it by itself, and then
/// the variable says how (`.ci/all` sets it).
fn own_program() -> Command {
    let own = std::env::current_exe().unwrap();
    let runner = std::env::var("BAREST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    match words.next() {
        None => Command::new(own),
        Some(program) => {
            let mut command = Command::new(program);
            command.args(words).arg(own);
            command
        }
    }
}
