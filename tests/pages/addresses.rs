//! Do large files lie where huge pages fit, and is nothing left lying about?

use crate::common::{Folder, MIB, map, on_linux};
use barest::{Index, Model};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

const HUGE_PAGE: usize = 2 * MIB;

/// The mappings of this process that are not private: the threads of other tests come and go with
/// stacks of their own.
fn lines_with(text: &str) -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

/// Whether each byte of the model lies on the address that its place in the file asks for.
fn assert_suits(model: &Model) {
    let shard = model.shards().next().unwrap();
    let at = shard.header().model_start() as usize;
    let end = at + shard.byte_len() as usize;
    let in_mapping = shard.in_mapping(at as u64..end as u64);
    let address = shard.mapping().as_ptr() as usize + in_mapping.start;
    assert_eq!(address % HUGE_PAGE, at % HUGE_PAGE, "{address:#x} for {at:#x}");
    assert_eq!(in_mapping.end, shard.mapping().len());
}

fn open_range(path: &Path, start: u64, len: u64) -> Model {
    let index = Index::open_range(path, start..start + len).unwrap();
    // SAFETY: nobody changes the file.
    unsafe { index.map() }.unwrap()
}

#[test]
fn a_large_file_lies_where_huge_pages_fit() {
    if !on_linux() {
        return;
    }
    // Each file system of the kernel's chooses in its own way.
    let in_memory = Path::new("/dev/shm");
    let folders = [Some(Folder::new()), in_memory.exists().then(|| Folder::within(in_memory))];
    folders.into_iter().flatten().for_each(|folder| large_files_suit(&folder));
}

fn large_files_suit(folder: &Folder) {
    for len in [64 * MIB, 64 * MIB + 1, 65 * MIB + 4097, 100 * MIB + 5] {
        let path = folder.sparse(&format!("large-{len}"), &[("t", len)]);
        let name = path.to_str().unwrap();
        // Several at once, so that the addresses cannot all suit by chance.
        let models: Vec<Model> = (0..4).map(|_| map(&path)).collect();
        models.iter().for_each(assert_suits);
        assert_eq!(lines_with(name).len(), 4);
        let tensor = models[3].tensor("t").unwrap();
        assert_eq!((tensor.bytes()[0], tensor.bytes()[len - 1]), (0, 0));
        drop(models);
        assert!(lines_with(name).is_empty());
    }
}

#[test]
fn a_part_of_a_file_that_begins_anywhere_does_too() {
    if !on_linux() {
        return;
    }
    let folder = Folder::new();
    let inner = folder.sparse("inner", &[("t", 64 * MIB)]);
    let file = File::options().read(true).write(true).open(&inner).unwrap();
    let len = file.metadata().unwrap().len();
    let mut head = vec![0; 4096];
    file.read_exact_at(&mut head, 0).unwrap();
    for start in [1, 4095, 4096, 12_345, HUGE_PAGE as u64 - 1, HUGE_PAGE as u64 + 7] {
        let outer = folder.path(&format!("outer-{start}"));
        let file = File::create(&outer).unwrap();
        file.write_all_at(&head, start).unwrap();
        let end = start + len;
        file.write_all_at(&[7], end - 1).unwrap();
        file.write_all_at(&[8], end).unwrap();
        let model = open_range(&outer, start, len);
        assert_suits(&model);
        let tensor = model.tensor("t").unwrap();
        assert_eq!(tensor.bytes().last(), Some(&7));
        drop(model);
        assert!(lines_with(outer.to_str().unwrap()).is_empty());
    }
}

/// A reservation that was not given back would be a private mapping without a right.
#[test]
fn choosing_an_address_leaves_nothing_behind() {
    if !on_linux() {
        return;
    }
    let folder = Folder::new();
    let path = folder.sparse("again", &[("t", 70 * MIB + 3)]);
    // Stacks of other tests' threads have guard pages of the same kind, but are smaller.
    let reserved = || {
        let sizes = lines_with("---p").into_iter().filter_map(|line| {
            let (start, end) = line.split(' ').next()?.split_once('-')?;
            let address = |text| usize::from_str_radix(text, 16).unwrap();
            Some(address(end) - address(start))
        });
        // Arenas of the allocator reserve up to 64 MiB.
        sizes.filter(|size| *size > 64 * MIB).count()
    };
    let before = reserved();
    let models: Vec<Model> = (0..50).map(|_| map(&path)).collect();
    assert_eq!(reserved(), before);
    drop(models);
    assert_eq!(reserved(), before);
    assert!(lines_with(path.to_str().unwrap()).is_empty());
}
