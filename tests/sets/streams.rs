//! Is a header read from a stream without taking what is not its own?

use crate::counting::peak_of;
use crate::files::{safetensors, shard};
use barest::{ErrorKind, Header};
use std::io::{self, Cursor, Read};

fn read(bytes: &[u8]) -> barest::Result<(Header, Vec<u8>)> {
    let mut stream = Cursor::new(bytes);
    let header = Header::read_from(&mut stream)?;
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    Ok((header, rest))
}

/// A header of more than one piece.
fn long() -> Vec<u8> {
    let names: Vec<String> = (0..4000).map(|number| format!("tensor.{number}")).collect();
    let tensors: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &[5][..])).collect();
    shard(&tensors)
}

#[test]
fn the_stream_is_left_where_the_data_begins() {
    for model in [shard(&[("a", &[1, 2, 3]), ("b", &[])]), long(), shard(&[])] {
        let expected = Header::parse(&model, model.len() as u64).unwrap();
        let (header, rest) = read(&model).unwrap();
        assert_eq!(rest, model[expected.data_start() as usize..]);
        assert_eq!(header.text(), expected.text());
        let ranges = |header: &Header| -> Vec<_> {
            header.tensors().map(|t| (t.name().to_owned(), t.file_range())).collect()
        };
        assert_eq!(ranges(&header), ranges(&expected));
        assert_eq!(
            (header.data_start(), header.model_len()),
            (expected.data_start(), expected.model_len())
        );
    }
}

#[test]
fn how_much_data_follows_cannot_be_known() {
    let model = shard(&[("a", &[1, 2, 3])]);
    let (header, rest) = read(&model[..model.len() - 3]).unwrap();
    assert_eq!((header.data_len(), rest.len()), (3, 0));
    let (header, rest) = read(&[&model[..], b"more"].concat()).unwrap();
    assert_eq!((header.data_len(), rest.len()), (3, 7));
}

#[test]
fn a_stream_that_ends_inside_the_header_says_how_much_came() {
    for model in [shard(&[("a", &[1])]), long()] {
        let header_len = u64::from_le_bytes(model[..8].try_into().unwrap());
        for found in [0, 1, header_len / 2, header_len - 1] {
            let error = read(&model[..8 + found as usize]).unwrap_err();
            let ErrorKind::HeaderCut { expected, found: told } = *error.kind() else {
                panic!("{error}")
            };
            assert_eq!((expected, told, error.offset()), (header_len, found, Some(0)));
        }
    }
    for len in 0..8 {
        let error = read(&[1; 8][..len]).unwrap_err();
        let ErrorKind::TooShort { expected: 10, found } = *error.kind() else { panic!("{error}") };
        assert_eq!(found, len as u64);
    }
}

/// What a stream says when it is asked: so many bytes at most, or an error.
struct Slowly<'a> {
    bytes: &'a [u8],
    at_once: usize,
    /// After so many bytes every further request fails with this.
    fails: Option<(usize, io::ErrorKind)>,
    interrupts: bool,
    taken: usize,
    requests: usize,
}

impl<'a> Slowly<'a> {
    fn new(bytes: &'a [u8], at_once: usize) -> Slowly<'a> {
        Slowly { bytes, at_once, fails: None, interrupts: false, taken: 0, requests: 0 }
    }
}

impl Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.requests += 1;
        if self.interrupts && self.requests % 2 == 1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if let Some((_, kind)) = self.fails.filter(|(after, _)| self.taken >= *after) {
            return Err(kind.into());
        }
        let left = &self.bytes[self.taken..];
        let count = left.len().min(buffer.len()).min(self.at_once);
        buffer[..count].copy_from_slice(&left[..count]);
        self.taken += count;
        Ok(count)
    }
}

#[test]
fn a_stream_that_gives_little_at_a_time_or_is_interrupted_is_read_all_the_same() {
    let model = long();
    let expected = Header::parse(&model, model.len() as u64).unwrap();
    for at_once in [1, 7, 65_537, usize::MAX] {
        for interrupts in [false, true] {
            let mut stream = Slowly { interrupts, ..Slowly::new(&model, at_once) };
            let header = Header::read_from(&mut stream).unwrap();
            assert_eq!(header.text(), expected.text());
            assert_eq!(stream.taken as u64, expected.data_start(), "{at_once}");
        }
    }
}

#[test]
fn an_error_of_the_stream_is_passed_on() {
    let model = shard(&[("a", &[1])]);
    for after in [0, 3, 8, 20] {
        let fails = Some((after, io::ErrorKind::ConnectionReset));
        let error = Header::read_from(&mut Slowly { fails, ..Slowly::new(&model, 1) }).unwrap_err();
        let ErrorKind::Io { action: "read", source } = error.kind() else { panic!("{error}") };
        assert_eq!(source.kind(), io::ErrorKind::ConnectionReset);
    }
}

#[test]
fn what_is_refused_is_named_and_read_a_little_further_at_most() {
    let page = [&b"<!DOCTYPE html><html>"[..], &[b' '; 100_000]].concat();
    let mut stream = Slowly::new(&page, 10);
    let error = Header::read_from(&mut stream).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Foreign { found: "an HTML page", .. }), "{error}");
    assert_eq!(stream.taken, 4096);
    let error = read(b"version https://git-lfs.github.com/spec/v1\nsize 77\n").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Foreign { promised: Some(77), .. }), "{error}");
    let error = read(&[0; 20]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoHeader), "{error}");
    let error = read(&[0xff; 20]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::HeaderTooLong { found: u64::MAX, .. }), "{error}");
    // What a header can be but is not.
    let error = read(&safetensors("{\"a\":1}", b"")).unwrap_err();
    assert_eq!((error.tensor(), error.offset()), (Some("a"), Some(13)));
}

#[test]
fn a_claim_costs_nothing_before_it_is_met() {
    let claim = |came: usize| [&100_000_000_u64.to_le_bytes()[..], &vec![b' '; came]].concat();
    for (came, most) in [(20, 200_000), (300_000, 1_000_000)] {
        let bytes = claim(came);
        let (outcome, peak) = peak_of(|| Header::read_from(&mut &bytes[..]));
        let ErrorKind::HeaderCut { expected: 100_000_000, found } = *outcome.unwrap_err().kind()
        else {
            panic!("the claim is not met");
        };
        assert_eq!(found as usize, came);
        assert!(peak < most, "{peak} bytes for {came}");
    }
}
