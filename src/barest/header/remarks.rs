//! Where does a valid file leave the written format, or surprise a reader?
//!
//! None of this is an error: real writers do all of it, and the reference reads it.

use super::Header;
use std::fmt::{self, Display, Formatter};

/// Something to know about a valid file.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Remark {
    /// White space before `{`. The format wants the brace first.
    LeadingBlanks {
        /// Bytes of it.
        bytes: usize,
    },
    /// Tab, carriage return or line feed after `}`. The format names the space alone.
    TrailingBlanksOtherThanSpace,
    /// `"__metadata__": null`, as MLX writes it. The format wants an object or nothing.
    MetadataIsNull,
    /// Entries with fields besides dtype, shape and data_offsets, which are ignored.
    ExtraFields {
        /// Entries that have them.
        entries: usize,
    },
    /// A header length that is no multiple of 8, so that the data section starts at an odd place.
    UnpaddedHeader {
        /// Bytes of the header.
        header_len: u64,
    },
    /// The header does not list the tensors in the order of their data.
    OutOfOrder,
    /// Tensors at file offsets that are no multiple of their element: typed borrows will fail.
    Misaligned {
        /// How many.
        tensors: usize,
        /// The first of them in file order.
        first: String,
    },
    /// Tensors without elements.
    Empty {
        /// How many.
        tensors: usize,
    },
}

impl Display for Remark {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let s = |count: usize| if count == 1 { "" } else { "s" };
        match self {
            Remark::LeadingBlanks { bytes } => write!(
                f,
                "{bytes} byte{} of white space before `{{`, which the format wants first",
                s(*bytes)
            ),
            Remark::TrailingBlanksOtherThanSpace => {
                f.write_str("the header is padded with more than spaces")
            }
            Remark::MetadataIsNull => {
                f.write_str("`__metadata__` is null: the format wants an object or nothing")
            }
            Remark::ExtraFields { entries } => {
                let (y, has) = if *entries == 1 { ("y", "has") } else { ("ies", "have") };
                write!(f, "{entries} entr{y} {has} fields that are ignored")
            }
            Remark::UnpaddedHeader { header_len } => {
                write!(f, "the header length {header_len} is not a multiple of 8")
            }
            Remark::OutOfOrder => f.write_str("entries are not in the order of their data"),
            Remark::Misaligned { tensors, first } => {
                let first = super::super::escape::Brief(first);
                write!(
                    f,
                    "{tensors} tensor{} not aligned to the element, first `{first}`",
                    s(*tensors)
                )
            }
            Remark::Empty { tensors } => write!(f, "{tensors} empty tensor{}", s(*tensors)),
        }
    }
}

pub fn find(header: &Header) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let text = header.text();
    // 1. The text.
    let bytes = text.len() - text.trim_ascii_start().len();
    if bytes > 0 {
        remarks.push(Remark::LeadingBlanks { bytes });
    }
    let padding = &text[text.trim_ascii_end().len()..];
    if padding.bytes().any(|byte| byte != b' ') {
        remarks.push(Remark::TrailingBlanksOtherThanSpace);
    }
    if header.departures.metadata_is_null {
        remarks.push(Remark::MetadataIsNull);
    }
    if header.departures.extra_fields > 0 {
        remarks.push(Remark::ExtraFields { entries: header.departures.extra_fields });
    }
    // 2. The layout.
    if header.header_len() % 8 != 0 {
        remarks.push(Remark::UnpaddedHeader { header_len: header.header_len() });
    }
    if header.departures.out_of_order {
        remarks.push(Remark::OutOfOrder);
    }
    let mut misaligned = header.tensors().filter(|tensor| {
        let alignment = tensor.dtype().natural_alignment() as u64;
        tensor.byte_len() > 0 && tensor.file_range().start % alignment != 0
    });
    if let Some(first) = misaligned.next() {
        let (tensors, first) = (1 + misaligned.count(), first.name().to_owned());
        remarks.push(Remark::Misaligned { tensors, first });
    }
    let empty = header.tensors().filter(|tensor| tensor.byte_len() == 0).count();
    if empty > 0 {
        remarks.push(Remark::Empty { tensors: empty });
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remark on alignment for a header of 2 bytes of padding more than a multiple of 8.
    fn misaligned(entries: &str) -> Option<(usize, String)> {
        let mut text = format!("{{{entries}}}");
        text += &" ".repeat(10 - text.len() % 8);
        let header = Header::from_copy(text.into_bytes(), None).unwrap();
        header.remarks().into_iter().find_map(|remark| match remark {
            Remark::Misaligned { tensors, first } => Some((tensors, first)),
            _ => None,
        })
    }

    #[test]
    fn what_stands_at_an_odd_place_is_counted_and_the_first_named() {
        let entry = |name: &str, dtype: &str, shape: &str, offsets: &str| {
            format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}"#)
        };
        // Two bytes behind a multiple of 8: fine for bytes and pairs, and for what has no bytes.
        let fine = [
            entry("a", "F64", "[0]", "[0,0]"),
            entry("b", "U8", "[2]", "[0,2]"),
            entry("c", "BF16", "[1]", "[2,4]"),
        ];
        assert_eq!(misaligned(&fine.join(",")), None);
        let odd = [entry("d", "F32", "[1]", "[4,8]"), entry("e", "I64", "[1]", "[8,16]")];
        let all = [&fine[..], &odd[..]].concat().join(",");
        assert_eq!(misaligned(&all), Some((2, "d".to_owned())));
    }
}
