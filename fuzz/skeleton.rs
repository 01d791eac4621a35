//! What does a header look like before someone breaks it?
//!
//! Changes to seeds seldom make ten entries of one shape, and it is only from the second on that the
//! reader is in a hurry. Here they are made from nothing, in the manner of one writer or another,
//! with one thing wrong in half of them.

use crate::changes::Random;

/// Numbers that stand where a size should, and are none or too large.
const NUMBERS: [&str; 15] = [
    "00",
    "000000000",
    "012345678",
    "-0",
    "1.0",
    "1e3",
    "18446744073709551615",
    "18446744073709551616",
    "184467440737095516160",
    "9223372036854775808",
    "9999999999999999",
    "0123456789012345",
    "\"1\"",
    "[]",
    "null",
];

/// Names that mean something, or look like another.
const NAMES: [&str; 8] = [
    "__metadata__",
    "__metadat\\u0061__",
    "",
    "\\ud83e\\udd80",
    "\\ud83e",
    "é",
    "layer.0",
    "\\u006cayer.0",
];

/// A header of entries in one form, as the file of a model.
pub fn header(random: &mut Random) -> Vec<u8> {
    let [comma, colon] = random.pick(&[[",", ":"], [", ", ": "], [" ,\n\t", " : "]]);
    let dtypes: [(&str, usize); 6] =
        [("F32", 4), ("BF16", 2), ("U8", 1), ("F64", 8), ("F8_E4M3", 1), ("I64", 8)];
    let one = random.pick(&dtypes);
    let extra = random.pick(&["", "", "", "\"x\":1.5e3,", "\"x\":{\"y\":[null]},"]);
    let backwards = random.below(3) == 0;
    let mut end = 0;
    let mut members: Vec<String> = Vec::new();
    for number in 0..random.below(14) {
        let (dtype, bytes) = if random.below(6) == 0 { random.pick(&dtypes) } else { one };
        let shape: Vec<usize> =
            (0..random.below(4)).map(|_| random.pick(&[1, 1, 2, 3, 0, 11])).collect();
        let begin = end;
        end += shape.iter().product::<usize>() * bytes;
        if end > 800 {
            break;
        }
        let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
        let (shape, offsets) = (shape.join(comma), format!("{begin}{comma}{end}"));
        let dtype = format!("\"dtype\"{colon}\"{dtype}\"");
        let mut fields = [
            dtype,
            format!("\"shape\"{colon}[{shape}]"),
            format!("\"data_offsets\"{colon}[{offsets}]"),
        ];
        if backwards {
            fields.reverse();
        }
        members.push(format!("\"layer.{number}\"{colon}{{{extra}{}}}", fields.join(comma)));
    }
    if random.below(3) == 0 {
        members.insert(0, format!("\"__metadata__\"{colon}{{\"format\"{colon}\"pt\"}}"));
    }
    if random.below(4) == 0 && !members.is_empty() {
        let place = random.below(members.len());
        members.swap(0, place);
    }
    let mut text = format!("{{{}}}", members.join(comma));
    if random.below(2) == 0 {
        text = with_a_fault(text, random);
    }
    let data = vec![7; end.min(800)];
    [&(text.len() as u64).to_le_bytes(), text.as_bytes(), &data].concat()
}

/// One number or one name replaced by another.
fn with_a_fault(text: String, random: &mut Random) -> String {
    let (mark, others): (fn(char) -> bool, &[&str]) = match random.below(3) {
        0 => (|character| character == '"', &NAMES),
        _ => (|character| "[],: ".contains(character), &NUMBERS),
    };
    let mut parts: Vec<&str> = text.split_inclusive(mark).collect();
    let is_one = |part: &&str| match others.len() == NAMES.len() {
        true => part.starts_with("layer"),
        false => part.starts_with(|first: char| first.is_ascii_digit()),
    };
    let places: Vec<usize> = (0..parts.len()).filter(|&at| is_one(&parts[at])).collect();
    if places.is_empty() {
        return text;
    }
    let place = random.pick(&places);
    let end = parts[place].chars().next_back().map_or(0, char::len_utf8);
    let behind = &parts[place][parts[place].len() - end..];
    let other = format!("{}{behind}", random.pick(others));
    parts[place] = &other;
    parts.concat()
}
