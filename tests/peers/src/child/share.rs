//! What do several processes cost that have the same model at the same time?
//!
//! The kernel divides what is shared among those who have it (PSS), so that the sum over all processes
//! is the memory that they take together.

use super::Way;
use super::parts::{Part, of_barest, of_safetensors};
use barest::Model;
use barest_peers::peers::{by_safetensors, map};
use std::fs;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

pub fn barest(path: &Path) {
    // SAFETY: whoever starts this child leaves the file alone meanwhile.
    let model = unsafe { Model::map(path).expect("a model") };
    hold(&of_barest(&model));
}

pub fn memmap2(path: &Path) {
    let map = map(path);
    hold(&of_safetensors(&map, &by_safetensors(&map)));
}

pub fn read(path: &Path) {
    let file = fs::read(path).expect("the file");
    hold(&of_safetensors(&file, &by_safetensors(&file)));
}

/// Touches everything, says so, and waits; is weighed, says the weight, and waits again.
fn hold(parts: &[Part<'_>]) {
    black_box(parts.iter().map(Part::touch).sum::<u64>());
    let mut told = io::stdin().lock().lines();
    println!("touched");
    let _ = told.next();
    println!("{}", share().expect("a system that tells a process's share of memory"));
    let _ = told.next();
    black_box(parts);
}

/// Bytes: the memory of this process alone, and its part of what it shares.
fn share() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Bytes that so many processes take together, each of which has touched all of the model.
pub fn weigh(what: &'static str, path: &Path, processes: usize) -> io::Result<u64> {
    let mut all = Vec::new();
    for _ in 0..processes {
        all.push(Holder::start(what, path)?);
    }
    for holder in &mut all {
        holder.line()?;
    }
    let mut sum = 0;
    for holder in &mut all {
        holder.child.stdin.as_mut().expect("a pipe").write_all(b"weigh\n")?;
        sum += holder.line()?.parse::<u64>().map_err(io::Error::other)?;
    }
    Ok(sum)
}

/// A process that has the model. Dropped, it is ended and waited for.
struct Holder {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Holder {
    fn start(what: &'static str, path: &Path) -> io::Result<Holder> {
        let mut child = Way::Itself(what)
            .command(path)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        Ok(Holder { child, said })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.said.read_line(&mut line)? {
            0 => Err(io::Error::other("a process that holds the model has ended")),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
