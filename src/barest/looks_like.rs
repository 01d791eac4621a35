//! What is this file, if it is no model?
//!
//! Asked only after a file was refused: nine of ten refused files are something else under a
//! model's name, and "header too large" helps nobody. A valid model is never asked, since its
//! length may happen to spell anything.

use super::error::{Error, ErrorKind};

/// Something that is not a safetensors file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Foreign {
    /// What it is, with its article.
    pub what: &'static str,
    /// The size in bytes that a Git LFS pointer promises.
    pub promised: Option<u64>,
    /// What to do about it.
    pub advice: &'static str,
}

impl Foreign {
    /// The error that this stands where `expected`, with its article, should be.
    pub fn instead_of(self, expected: &'static str) -> Error {
        let Foreign { what: found, promised, advice } = self;
        Error::new(ErrorKind::Foreign { expected, found, promised, advice })
    }
}

/// How many bytes are worth looking at.
pub const ENOUGH: usize = 4096;

const DOWNLOAD: &str = "download the file again and look at what the server answered";
const CONVERT: &str = "convert it to safetensors, or open it with its own loader";
const UNPACK: &str = "unpack it first";

/// What the first bytes of a refused file say it is; `None` if nothing known.
pub fn identify(first: &[u8]) -> Option<Foreign> {
    let first = &first[..first.len().min(ENOUGH)];
    let foreign = |what, advice| Some(Foreign { what, promised: None, advice });
    // 1. Formats that begin with a mark of their own.
    const MARKS: [(&[u8], &str, &str); 13] = [
        (b"PK\x03\x04", "a zip archive (a PyTorch checkpoint?)", CONVERT),
        (b"PK\x05\x06", "an empty zip archive", DOWNLOAD),
        (b"GGUF", "a GGUF model", CONVERT),
        (b"ggjt", "an old GGML model", CONVERT),
        (b"lmgg", "an old GGML model", CONVERT),
        (b"\x89HDF", "an HDF5 file (Keras?)", CONVERT),
        (b"\x93NUMPY", "a NumPy array", CONVERT),
        (b"\x1f\x8b", "a gzip archive", UNPACK),
        (b"\x28\xb5\x2f\xfd", "a zstd archive", UNPACK),
        (b"\xfd7zXZ", "an xz archive", UNPACK),
        (b"7z\xbc\xaf", "a 7z archive", UNPACK),
        (b"BZh", "a bzip2 archive", UNPACK),
        (b"\x7fELF", "a program", DOWNLOAD),
    ];
    for (mark, what, advice) in MARKS {
        if first.starts_with(mark) {
            return foreign(what, advice);
        }
    }
    // Protocol 2 to 5, and then an opcode that a pickled checkpoint can begin with.
    if let [0x80, 2..=5, b'}' | b']' | b'c' | b'(' | b'X' | b'\x8a' | b'\x8c' | b'\x95', ..] = first
    {
        return foreign("a Python pickle (an old PyTorch checkpoint?)", CONVERT);
    }
    // 2. A mark that stands far inside.
    if first.get(257..262) == Some(b"ustar") {
        return foreign("a tar archive", UNPACK);
    }
    // 3. Text; but a length below 4 GiB may spell a brace or two and be one all the same.
    if first.get(4..8) == Some(&[0; 4]) {
        return None;
    }
    if first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff") {
        return foreign("text in UTF-16", DOWNLOAD);
    }
    let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
    let pointers = ["version https://git-lfs.github.com/", "version https://hawser.github.com/"];
    if pointers.iter().any(|pointer| text.starts_with(pointer.as_bytes())) {
        return Some(Foreign {
            what: "a Git LFS pointer",
            promised: promised_size(text),
            advice: "fetch the file itself, for instance with `git lfs pull`",
        });
    }
    let begins = |tag: &str| {
        text.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag.as_bytes()))
    };
    if begins("<!doctype") || begins("<html") || begins("<head") {
        return foreign("an HTML page", DOWNLOAD);
    }
    if begins("<?xml") || begins("<error") {
        return foreign("an XML document (an error message of a server?)", DOWNLOAD);
    }
    if let [b'{' | b'[', ..] = text {
        return match contains(text, b"\"weight_map\"") {
            true => foreign(
                "the index of a sharded model (JSON text)",
                "open the directory it lies in, or give it a name that ends in .json",
            ),
            false => foreign("JSON text", DOWNLOAD),
        };
    }
    // 4. No mark, but readable: eight such bytes are a length that no header has.
    let readable = |c: char| matches!(c, '\t' | '\n' | '\r') || !c.is_control();
    let whole = match std::str::from_utf8(first) {
        Ok(text) => text,
        // A character that was cut off at the end is none of the text's fault.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&first[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => "",
    };
    if whole.len() >= 8 && whole.chars().all(readable) {
        return foreign("plain text", DOWNLOAD);
    }
    None
}

/// The number in the pointer's line `size N`.
fn promised_size(pointer: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(pointer).ok()?;
    text.lines().find_map(|line| line.strip_prefix("size ")?.trim().parse().ok())
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_mistake_for_a_model_is_named() {
        for (first, what) in [
            (&b"PK\x03\x04\x00\x00\x08\x08"[..], "zip"),
            (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P", "pickle"),
            (b"\x80\x04\x95\x0b\0\0\0\0\0\0\0", "pickle"),
            (b"GGUF\x03\0\0\0", "GGUF"),
            (b"<!DOCTYPE html>", "HTML"),
            (b"\n <HTML lang=en>", "HTML"),
            (b"\xef\xbb\xbf<html>", "HTML"),
            (b"<?xml version='1.0'?><Error>", "XML"),
            (b"{\"error\":\"Repository not found\"}", "JSON text"),
            (b"{\n  \"metadata\": {},\n  \"weight_map\": {}}", "index of a sharded model"),
            (b"Entry not found", "plain text"),
            (b"404: Not Found", "plain text"),
            ("Accès refusé à ce dépôt".as_bytes(), "plain text"),
            (b"\xef\xbb\xbfversion https://git-lfs.github.com/spec/v1\n", "Git LFS"),
            (b"\xff\xfe<\0h\0t\0m\0l\0", "UTF-16"),
            (b"\x93NUMPY\x01\0", "NumPy"),
        ] {
            let found = identify(first).expect(what);
            assert!(found.what.contains(what), "{} is not {what}", found.what);
        }
    }

    #[test]
    fn a_git_lfs_pointer_gives_its_size() {
        let pointer =
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9942981696\n";
        assert_eq!(identify(pointer).unwrap().promised, Some(9_942_981_696));
        assert_eq!(identify(&pointer[..50]).unwrap().promised, None);
    }

    /// Lengths that spell something: 31520 is a space and a brace, 123 a brace.
    #[test]
    fn a_length_that_a_header_can_have_is_no_text() {
        for len in [123u64, 91, 31_520, 0x3c20, 0x7b20_2020] {
            let mut first = len.to_le_bytes().to_vec();
            first.extend(b"{\"a\":{\"dtype\":\"BF16\"");
            assert_eq!(identify(&first), None, "{len}");
        }
    }

    #[test]
    fn nothing_is_made_of_what_says_nothing() {
        for first in [&b""[..], b"\0\0\0\0\0\0\0\0", b"short", b"\x80\x02", b"\x00\xfe\x00\x01"] {
            assert_eq!(identify(first), None, "{first:?}");
        }
    }
}
