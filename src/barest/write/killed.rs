//! What is there after a process was killed between two calls, or a call has failed?
//!
//! The test runs itself as a child, which stops before the n-th step and says so; then it is killed.
//! For each way of saving, and each n until the child gets through.

use super::super::dtype::Dtype;
use super::super::skip::skip;
use super::super::sys;
use super::pipe::BUFFER;
use super::save::{Before, Step, Target};
use super::*;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// More than the buffer, so that there are several writes.
const LEN: usize = BUFFER + 5;

/// A way to write a file.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    /// Where nothing has the name.
    New,
    /// Over another file.
    Over,
    /// The same where files without a name do not exist.
    OverWithoutUnnamed,
    /// The same where they exist and can be given none.
    OverWithoutNaming,
    /// Changed metadata, file written anew.
    Edit,
    /// Changed metadata, in place.
    InPlace,
}

const WAYS: [Way; 6] =
    [Way::New, Way::Over, Way::OverWithoutUnnamed, Way::OverWithoutNaming, Way::Edit, Way::InPlace];

impl Way {
    /// What does not exist in this way, fails.
    fn lacks(self, step: Step) -> bool {
        match self {
            Way::OverWithoutUnnamed => step == Step::CreateUnnamed,
            Way::OverWithoutNaming => step == Step::NamePartial,
            _ => false,
        }
    }

    fn write(self, path: &Path, before: &mut Before) -> Result<()> {
        match self {
            Way::Edit => edit().save_step_by_step(path, before).map(drop),
            Way::InPlace => edit().in_place_step_by_step(path, before),
            _ => {
                let bytes = vec![7; LEN];
                let mut writer = writer(&bytes);
                writer.verify(true);
                let saved = writer.save_step_by_step(path, before);
                saved.map(drop)
            }
        }
    }
}

fn writer(bytes: &[u8]) -> Writer<'_> {
    let mut writer = Writer::new();
    writer.tensor("a", Dtype::U8, vec![LEN as u64], bytes);
    writer.tensor("b", Dtype::U8, vec![LEN as u64], bytes);
    writer.metadata("k", "value").align(512);
    writer
}

fn edit() -> EditMetadata {
    let mut edit = EditMetadata::new();
    edit.set("k", "other").set("l", "new");
    edit
}

/// A directory with a file in it, and what that becomes.
struct Stage {
    directory: PathBuf,
    path: PathBuf,
    old: Option<Vec<u8>>,
    new: Vec<u8>,
}

impl Stage {
    fn new(way: Way, name: &str) -> Stage {
        let process = std::process::id();
        let directory = std::env::temp_dir().join(format!("barest-{name}-{way:?}-{process}"));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("m.safetensors");
        let mut stage = Stage { directory, path, old: None, new: Vec::new() };
        // What comes of it if nothing goes wrong.
        stage.set(way);
        way.write(&stage.path, &mut nothing).unwrap();
        stage.new = fs::read(&stage.path).unwrap();
        assert_ne!(Some(&stage.new), stage.old.as_ref());
        stage
    }

    /// As before the first step.
    fn set(&mut self, way: Way) {
        for entry in fs::read_dir(&self.directory).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        if way != Way::New {
            writer(&vec![3; LEN]).save(&self.path).unwrap();
            self.old = Some(fs::read(&self.path).unwrap());
        }
    }

    fn now(&self) -> Option<Vec<u8>> {
        fs::read(&self.path).ok()
    }

    /// What stands beside the file.
    fn beside(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.directory).unwrap();
        entries.map(|entry| entry.unwrap().path()).filter(|path| *path != self.path).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn a_failing_step_changes_nothing_and_leaves_nothing() {
    for way in WAYS {
        let mut stage = Stage::new(way, "failing");
        for number in 0.. {
            stage.set(way);
            let (outcome, steps) = fail_at(way, &stage.path, number);
            let Some(&failed) = steps.get(number) else {
                assert!(number > 3, "{way:?} has {number} steps");
                break;
            };
            let context = format!("{way:?} with {failed:?} failing, step {number}");
            assert!(stage.beside().is_empty(), "{context}");
            match outcome {
                Ok(()) => assert_eq!(stage.now().as_ref(), Some(&stage.new), "{context}"),
                Err(error) => {
                    assert_eq!(stage.now(), stage.old, "{context}: {error}");
                    assert!(error.to_string().contains("no luck"), "{context}: {error}");
                }
            }
            // What comes after the file has its name cannot be taken back; what can be done in
            // another way is.
            let may_pass =
                [Step::CreateUnnamed, Step::Name, Step::NamePartial, Step::SyncDirectory];
            let passed = stage.now().as_ref() == Some(&stage.new);
            assert!(!passed || may_pass.contains(&failed) || way == Way::Edit, "{context}");
        }
    }
}

/// Writes with the step of that number failing; gives the steps too.
fn fail_at(way: Way, path: &Path, number: usize) -> (Result<()>, Vec<Step>) {
    let steps = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = std::rc::Rc::clone(&steps);
    let mut before = move |step: Step| {
        seen.borrow_mut().push(step);
        match seen.borrow().len() == number + 1 || way.lacks(step) {
            true => Err(io::Error::other("no luck")),
            false => Ok(()),
        }
    };
    let outcome = way.write(path, &mut before);
    let steps = steps.borrow().clone();
    (outcome, steps)
}

/// How the child is told what to do: `WAY STEP PATH`.
const ORDERS: &str = "BAREST_TEST_KILLED";

const HERE: &str = "before the step: ";

/// Under an emulator a program often cannot start itself.
fn children_run() -> bool {
    let child = Command::new(std::env::current_exe().unwrap()).arg("--list").output();
    let runs = child.is_ok_and(|child| child.status.success());
    if !runs {
        skip("a process that starts itself", "nobody to kill");
    }
    runs
}

#[test]
fn a_killed_process_leaves_the_old_file_or_the_new_one() {
    if !children_run() {
        return;
    }
    for way in WAYS {
        let mut stage = Stage::new(way, "killed");
        let mut number = 0;
        loop {
            stage.set(way);
            let Some(step) = kill_child_at(way, number, &stage.path) else { break };
            let context = format!("{way:?} killed before {step}, step {number}");
            judge(way, &stage, &context);
            if way == Way::InPlace && ["Overwrite", "Remove"].contains(&&*step) {
                let left = left_in(&stage.directory).unwrap();
                assert_eq!(left[0].kind(), LeftKind::HeaderBackup, "{context}");
            }
            number += 1;
        }
        assert!(number > 3, "{way:?} has {number} steps");
        assert_eq!(stage.now().as_ref(), Some(&stage.new), "{way:?}");
    }
}

fn judge(way: Way, stage: &Stage, context: &str) {
    let beside = stage.beside();
    let left = left_in(&stage.directory).unwrap();
    let now = stage.now();
    assert!(beside.len() <= 1, "{context}: {beside:?}");
    assert_eq!(left.len(), beside.len(), "{context}: {beside:?} are not recognised");
    assert!(left.iter().all(|left| left.of() == stage.path), "{context}: {left:?}");
    assert!(now == stage.old || now.as_ref() == Some(&stage.new), "{context}");

    let Some(left) = left.first() else { return };
    if way == Way::InPlace && left.kind() == LeftKind::HeaderBackup {
        // Even of a file whose header was half written the backup makes the old one.
        let old = stage.old.as_ref().unwrap();
        let backup = fs::read(left.path()).unwrap();
        let mut torn = now.unwrap();
        torn[20..60].fill(b'#');
        torn[..backup.len()].copy_from_slice(&backup);
        assert!(&torn == old, "{context}");
        let refused = way.write(&stage.path, &mut nothing).unwrap_err();
        assert!(refused.to_string().contains(".m.safetensors.header-backup"), "{refused}");
        return;
    }
    // The next save works, and tells.
    let bytes = vec![7; LEN];
    let saved = writer(&bytes).save(&stage.path).unwrap();
    assert_eq!(saved.left(), std::slice::from_ref(left), "{context}");
    assert!(saved.left()[0].to_string().contains("remove it"), "{context}");
}

/// Kills a child before a step and gives the step's name; `None` if it has not so many steps.
fn kill_child_at(way: Way, number: usize, path: &Path) -> Option<String> {
    // The name of this module as the harness knows it: without the crate.
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::child"), "--nocapture"])
        .env(ORDERS, format!("{way:?} {number} {}", path.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let step = lines.map(|line| line.unwrap()).find_map(|line| {
        let (_, step) = line.split_once(HERE)?;
        Some(step.to_owned())
    });
    // For the kernel this is SIGKILL: nothing of the child runs any more.
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(step.is_some() || status.success() || status.code().is_none(), "{status}");
    step
}

/// Not a test of its own: what the child does.
#[test]
fn child() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let [way, number, path] = orders.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{orders}")
    };
    let way = *WAYS.iter().find(|known| format!("{known:?}") == way).unwrap();
    let number: usize = number.parse().unwrap();
    let mut count = 0;
    let mut before = move |step: Step| {
        if count == number {
            // `eprintln!` would be captured.
            let _ = writeln!(io::stderr(), "{HERE}{step:?}");
            loop {
                std::thread::park();
            }
        }
        count += 1;
        match way.lacks(step) {
            true => Err(io::Error::other("not here")),
            false => Ok(()),
        }
    };
    way.write(Path::new(path), &mut before).unwrap();
}

#[test]
fn a_new_file_without_a_name_leaves_nothing_when_killed() {
    let mut stage = Stage::new(Way::New, "unnamed");
    stage.set(Way::New);
    let target = Target::of(&stage.path).unwrap();
    if sys::open_unnamed(&target.directory, 0o600).is_err() {
        return skip("O_TMPFILE", "this file system has no files without a name");
    }
    if !children_run() {
        return;
    }
    let mut number = 0;
    while kill_child_at(Way::New, number, &stage.path).is_some() {
        assert!(stage.beside().is_empty(), "step {number}");
        let _ = fs::remove_file(&stage.path);
        number += 1;
    }
    assert!(number > 3);
}

/// Who writes to a file while its metadata is changed keeps what was written.
#[test]
fn a_file_that_somebody_writes_to_meanwhile_is_not_replaced() {
    let mut stage = Stage::new(Way::Edit, "meanwhile");
    stage.set(Way::Edit);
    let path = stage.path.clone();
    let mut before = move |step| {
        if step == Step::SyncFile || step == Step::Write {
            let mut file = fs::OpenOptions::new().append(true).open(&path)?;
            let modified = file.metadata()?.modified()?;
            file.write_all(b"!")?;
            file.set_modified(modified + std::time::Duration::from_secs(1))?;
        }
        Ok(())
    };
    let error = edit().save_step_by_step(&stage.path, &mut before).unwrap_err();
    assert!(matches!(error.kind(), super::super::error::ErrorKind::Changed { .. }), "{error}");
    let now = stage.now().unwrap();
    let old = stage.old.clone().unwrap();
    assert!(now.starts_with(&old) && now.len() > old.len());
    assert!(stage.beside().is_empty(), "{:?}", stage.beside());
}
