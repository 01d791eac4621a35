//! Files far beyond 4 GiB, of which nearly all is a hole.

use crate::files::{Folder, INDEX, index};
use crate::skip::skip;
use barest::{Index, Model};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Writes a model of two tensors, `big` with so many bytes of U8 and `tail` of two F32, and gives
/// where its data begins.
fn sparse(path: &Path, prefix: &str, big: u64) -> io::Result<u64> {
    let header = format!(
        "{{\"{prefix}big\":{{\"dtype\":\"U8\",\"shape\":[{big}],\"data_offsets\":[0,{big}]}},\
         \"{prefix}tail\":{{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[{big},{}]}}}}",
        big + 8
    );
    let data = 8 + header.len() as u64;
    let file = File::create(path)?;
    file.write_all_at(&(header.len() as u64).to_le_bytes(), 0)?;
    file.write_all_at(header.as_bytes(), 8)?;
    file.set_len(data + big + 8)?;
    for (value, at) in [(1.0_f32, 0), (-1.0, 4)] {
        file.write_all_at(&value.to_le_bytes(), data + big + at)?;
    }
    Ok(data)
}

fn mapped(path: &Path) -> Model {
    // SAFETY: the file lies in a folder of one test, which does not change it meanwhile.
    unsafe { Model::map(path) }.unwrap()
}

/// B62
#[test]
fn places_beyond_4_gib_are_right() {
    const BIG: u64 = 1 << 32;
    let folder = Folder::new();
    let path = folder.path("over4g.safetensors");
    let data = match sparse(&path, "", BIG) {
        Ok(data) => data,
        Err(error) => return skip("a sparse file of 4 GiB", &error.to_string()),
    };
    let marks = [(0, 0x11), ((1 << 31) - 1, 0x22), (1 << 31, 0x33), (BIG - 1, 0x44)];
    let file = File::options().write(true).open(&path).unwrap();
    for (at, mark) in marks {
        file.write_all_at(&[mark], data + at).unwrap();
    }
    let model = mapped(&path);
    let big = model.tensor("big").unwrap();
    assert_eq!((big.len() as u64, big.file_range()), (BIG, data..data + BIG));
    let bytes = big.bytes();
    for (at, mark) in marks {
        assert_eq!(bytes[at as usize], mark, "{at}");
        assert_eq!(bytes[(at as usize + 7) % (1 << 32)], 0, "behind {at}");
    }
    let tail = model.tensor("tail").unwrap();
    assert_eq!(tail.to_f32().unwrap(), [1.0, -1.0]);
    assert_eq!(tail.file_range().start, data + BIG);
    let mut bytes = [0; 8];
    Index::open(&path).unwrap().read_into("tail", &mut bytes).unwrap();
    assert_eq!(bytes, *tail.bytes());
}

#[test]
fn shards_of_300_gib_open_and_their_ends_are_right() {
    const BIG: u64 = 300 << 30;
    let folder = Folder::new();
    let paths: [PathBuf; 2] = ["a", "b"].map(|name| folder.path(&format!("{name}.safetensors")));
    for (path, prefix) in paths.iter().zip(["a.", "b."]) {
        if let Err(error) = sparse(path, prefix, BIG) {
            return skip("a sparse file of 300 GiB", &error.to_string());
        }
    }
    folder.file(
        INDEX,
        index(&[
            ("b.big", "b.safetensors"),
            ("a.tail", "a.safetensors"),
            ("b.tail", "b.safetensors"),
            ("a.big", "a.safetensors"),
        ]),
    );
    let model = mapped(&folder.0);
    assert_eq!(model.len(), 4);
    let index = Index::open(&folder.0).unwrap();
    for prefix in ["a", "b"] {
        let tail = model.tensor(&format!("{prefix}.tail")).unwrap();
        assert_eq!(tail.to_f32().unwrap(), [1.0, -1.0]);
        assert!(tail.file_range().start > BIG);
        let mut bytes = [0; 8];
        index.read_into(tail.name(), &mut bytes).unwrap();
        assert_eq!(bytes, *tail.bytes());
        let big = model.tensor(&format!("{prefix}.big")).unwrap().bytes();
        assert_eq!((big.len() as u64, big[big.len() - 1]), (BIG, 0));
    }
}
