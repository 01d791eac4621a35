//! Is it told what a model costs this process, and what it costs the machine?

use crate::common::{Folder, MIB, child, make_cold, map, on_linux, part, touch};
use barest::{Mapping, Model};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

#[test]
fn resident_is_what_was_touched() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.model("touched", &[("a", 4 * MIB), ("b", 4 * MIB)]);
    let model = map(&path);
    make_cold(&model.pages());
    let page = Mapping::page_size() as u64;
    let whole = File::open(&path).unwrap().metadata().unwrap().len().next_multiple_of(page);
    let memory = model.memory().unwrap();
    assert_eq!((memory.mapped, memory.resident, memory.locked, memory.huge), (whole, 0, 0, 0));

    touch(&model.tensor("a").unwrap().bytes()[..1]);
    let one = model.memory().unwrap();
    assert!(page <= one.resident && one.resident < whole, "{one:?}");

    model.tensors().for_each(|tensor| touch(tensor.bytes()));
    let all = model.memory().unwrap();
    // All but the header's page, which lies before the first tensor's unless it shares it.
    assert!(whole - page <= all.resident && all.resident <= whole, "{all:?}");
    assert_eq!(all.proportional, all.resident, "nobody else has it");
    assert_eq!(all.mapped, whole);

    // Two models of one process have it twice, and each page is halved.
    let other = map(&path);
    other.tensors().for_each(|tensor| touch(tensor.bytes()));
    let (one, two) = (model.memory().unwrap(), other.memory().unwrap());
    assert!(one.proportional <= one.resident / 2 + 4096 && one.resident == all.resident, "{one:?}");
    assert_eq!(one.proportional, two.proportional);

    model.pages().evict().unwrap();
    assert_eq!(model.memory().unwrap().resident, 0);
}

/// The kernel makes one mapping of neighbours that are alike.
#[test]
fn models_that_were_read_are_told_apart() {
    if !on_linux() {
        return;
    }
    let folder = Folder::new();
    let page = Mapping::page_size() as u64;
    let paths: Vec<_> = [1_u64, 3, 5]
        .map(|pages| folder.model(&format!("read-{pages}"), &[("t", (pages * 64 * page) as usize)]))
        .into();
    let models: Vec<Model> = paths.iter().map(|path| Model::read(path).unwrap()).collect();
    for (model, path) in models.iter().zip(&paths) {
        let len = File::open(path).unwrap().metadata().unwrap().len().next_multiple_of(page);
        let memory = model.memory().unwrap();
        assert_eq!((memory.mapped, memory.resident), (len, len), "{path:?}");
    }
}

#[test]
fn two_processes_share_what_both_have_mapped() {
    let test = "memory::two_processes_share_what_both_have_mapped";
    if let Some(path) = part() {
        return hold_until_told(Path::new(&path));
    }
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.model("shared", &[("t", 8 * MIB)]);
    let model = map(&path);
    touch(model.tensor("t").unwrap().bytes());
    let alone = model.memory().unwrap();
    assert_eq!(alone.proportional, alone.resident);

    let mut command = child(test, path.to_str().unwrap());
    let mut other = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let ready = lines.find_map(|line| line.unwrap().contains("touched").then_some(()));
    ready.expect("the other process has touched it");
    let shared = model.memory().unwrap();
    other.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(other.wait().unwrap().success());

    assert_eq!(shared.resident, alone.resident);
    let half = alone.resident / 2;
    assert!(shared.proportional.abs_diff(half) <= half / 50, "{shared:?}");
    assert_eq!(model.memory().unwrap(), alone);
}

fn hold_until_told(path: &Path) {
    let model = map(path);
    touch(model.tensor("t").unwrap().bytes());
    println!("touched");
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
    drop(model);
}

#[test]
fn huge_pages_are_counted_among_the_resident() {
    let Some(folder) = Folder::on_a_disk() else { return };
    let path = folder.model("huge", &[("t", 72 * MIB)]);
    let model = map(&path);
    make_cold(&model.pages());
    model.pages().prefetch().unwrap().wait_all().unwrap();
    let memory = model.memory().unwrap();
    assert!(memory.huge <= memory.resident && memory.resident <= memory.mapped, "{memory:?}");
    if memory.huge == 0 {
        crate::skip::skip("a file system with huge pages", "none was mapped");
    }
    assert_eq!(memory.huge % (2 * MIB as u64), 0);
}
