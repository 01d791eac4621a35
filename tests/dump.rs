//! Does `dump` show what is in the file, whatever its dtype and whichever part is asked for?
//!
//! Held against the answers that are known of a file with every dtype (`BAREST_FIXTURES` names the
//! folder that has `known-answers/`), and against those of NumPy that `slices.rs` has recorded.

#[path = "../src/barest/skip.rs"]
mod skip;

#[path = "common/program.rs"]
mod program;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

fn dump(arguments: &[&str]) -> (String, String, i32) {
    program::run(&[&["dump"], arguments].concat())
}

/// What `--json` writes.
#[derive(PartialEq, Debug)]
struct Dumped {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    /// As they are written: numbers, or strings with their quotes.
    values: Vec<String>,
    raw: Vec<String>,
}

impl Dumped {
    /// Reads the one form that the program writes, and no other JSON.
    fn read(text: &str) -> Option<Dumped> {
        let rest = text.strip_prefix("{\"name\": \"")?.strip_suffix("]}\n")?;
        let (name, rest) = rest.split_once("\", \"dtype\": \"")?;
        let (dtype, rest) = rest.split_once("\", \"shape\": [")?;
        let (shape, rest) = rest.split_once("],\n\"values\": [")?;
        let (values, raw) = rest.split_once("],\n\"raw\": [")?;
        let unquoted = |text: String| Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned());
        Some(Dumped {
            name: name.to_owned(),
            dtype: dtype.to_owned(),
            shape: numbers(shape),
            values: items(values),
            raw: items(raw).into_iter().map(unquoted).collect::<Option<Vec<String>>>()?,
        })
    }
}

/// Members of a list. Within them, as between the parts of a complex number, no blank stands.
fn items(list: &str) -> Vec<String> {
    list.split(", ").filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn numbers(list: &str) -> Vec<u64> {
    let numbers = list.split(',').map(str::trim).filter(|number| !number.is_empty());
    numbers.map(|number| number.parse().unwrap()).collect()
}

fn dumped(arguments: &[&str]) -> Dumped {
    let (out, err, status) = dump(&[arguments, &["--json"]].concat());
    assert_eq!((&*err, status), ("", 0), "{arguments:?}");
    Dumped::read(&out).unwrap_or_else(|| panic!("{arguments:?}: {out}"))
}

// Every dtype.

fn known_answers() -> Option<PathBuf> {
    let named = env::var_os("BAREST_FIXTURES").map(PathBuf::from);
    let beside = || {
        let repository = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
        Some(repository.join("../shared/fixtures")).filter(|path| path.is_dir())
    };
    let folder = named.or_else(beside).map(|fixtures| fixtures.join("known-answers"));
    if folder.is_none() {
        skip::skip("BAREST_FIXTURES", "it should name the folder of real files and known answers");
    }
    folder
}

/// An element, or a part of a complex one, as `answers.tsv` has it.
struct Answer<'a> {
    dtype: &'a str,
    raw: &'a str,
    class: &'a str,
    as_f64: &'a str,
    value: &'a str,
}

impl Answer<'_> {
    /// The table has the bits as one number; the file has its bytes the other way round.
    fn raw(&self) -> String {
        match self.dtype {
            "F4" | "F6_E2M3" | "F6_E3M2" => self.raw.to_owned(),
            _ => self.raw.as_bytes().rchunks(2).flatten().map(|&digit| char::from(digit)).collect(),
        }
    }

    fn is_shown_as(&self, text: &str) -> bool {
        match (self.class, self.as_f64) {
            ("nan", _) => text == "\"NaN\"",
            ("inf", bits) => {
                text == if bits.starts_with('f') { "\"-Infinity\"" } else { "\"Infinity\"" }
            }
            // Read as JSON is, so as an F64, it is that number to the last bit, and its sign.
            (_, bits) if !bits.is_empty() => {
                let read = text.parse::<f64>().map(f64::to_bits);
                is_json_number(text) && read == Ok(u64::from_str_radix(bits, 16).unwrap())
            }
            ("invalid", _) => {
                let byte = u8::from_str_radix(self.raw, 16).unwrap();
                text.starts_with('"') && text.contains(&format!("{byte}"))
            }
            _ => text == self.value,
        }
    }
}

/// JSON is stricter than Rust: no sign but a minus, digits on both sides of a point.
fn is_json_number(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let mantissa = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_short = whole == "0" || !whole.starts_with('0');
    is_short && digits(whole) && digits(fraction) && digits(exponent)
}

#[test]
fn every_element_of_every_dtype_is_shown_as_it_is_known_to_be() {
    let Some(folder) = known_answers() else { return };
    let table = fs::read_to_string(folder.join("answers.tsv")).unwrap();
    let mut tensors: BTreeMap<(&str, &str), Vec<Answer>> = BTreeMap::new();
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, tensor, dtype, _, _, raw, class, as_f64, _, value] = cells[..] else {
            panic!("{line:?} has not ten cells");
        };
        let answer = Answer { dtype, raw, class, as_f64, value };
        tensors.entry((file, tensor)).or_default().push(answer);
    }
    let mut dtypes = Vec::new();
    for ((file, tensor), answers) in &tensors {
        let path = folder.join(file);
        let dumped = dumped(&[path.to_str().unwrap(), tensor, "999999"]);
        let dtype = answers[0].dtype;
        assert_eq!((&*dumped.name, &*dumped.dtype), (*tensor, dtype));
        let mut values = dumped.values;
        if dtype == "C64" {
            let parts = |pair: &String| -> Vec<String> {
                let pair = pair.strip_prefix('[').unwrap().strip_suffix(']').unwrap();
                pair.split(',').map(str::to_owned).collect()
            };
            values = values.iter().flat_map(parts).collect();
        }
        assert_eq!(values.len(), answers.len(), "{tensor}");
        for (index, (text, answer)) in values.iter().zip(answers).enumerate() {
            assert!(answer.is_shown_as(text), "{tensor} {index}: {text}, not {}", answer.value);
        }
        let raw: Vec<String> = answers.iter().map(Answer::raw).collect();
        let parts = if dtype == "C64" { 2 } else { 1 };
        let raw: Vec<String> = raw.chunks(parts).map(|parts| parts.concat()).collect();
        assert_eq!(dumped.raw, raw, "{tensor}");
        dtypes.push(dtype);
    }
    dtypes.sort();
    dtypes.dedup();
    assert_eq!(dtypes.len(), 22, "{dtypes:?}");
    let all = folder.join("all_dtypes.safetensors");
    let empty = dumped(&[all.to_str().unwrap(), "f32.empty", "5"]);
    assert_eq!((empty.shape, empty.values.len(), empty.raw.len()), (vec![0, 3], 0, 0));
}

// Any part.

/// A file that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    /// Tensors of I32, each element its own number; of F4, each pattern in turn.
    fn new(test: &str, tensors: &[(&str, &str, &[u64])]) -> Scratch {
        let (mut entries, mut data) = (Vec::new(), Vec::new());
        for (name, dtype, shape) in tensors {
            let begin = data.len();
            let elements: u64 = shape.iter().product();
            match *dtype {
                "I32" => data.extend((0..elements as u32).flat_map(u32::to_le_bytes)),
                _ => data.extend(
                    (0..elements as u8 / 2).map(|at| (2 * at % 16) | (2 * at % 16 + 1) << 4),
                ),
            }
            entries.push(format!(
                r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{begin},{}]}}"#,
                data.len()
            ));
        }
        let header = format!("{{{}}}", entries.join(","));
        let name = format!("barest-dump-{test}-{}.safetensors", std::process::id());
        let path = env::temp_dir().join(name);
        let len = (header.len() as u64).to_le_bytes();
        fs::write(&path, [&len, header.as_bytes(), &data].concat()).unwrap();
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The rows that NumPy was asked for, where they stand.
fn numpy() -> Vec<[&'static str; 4]> {
    let (_, table) = include_str!("slices.rs").split_once("const NUMPY: &str = \"\\\n").unwrap();
    let (table, _) = table.split_once("\";").unwrap();
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        cells.try_into().unwrap_or_else(|_| panic!("{line:?} has not four cells"))
    };
    table.lines().map(row).collect()
}

/// Elements written as first+count*step.
fn progressions(text: &str) -> Vec<u64> {
    let of_one = |text: &str| {
        let (first, rest) = text.split_once('+').unwrap_or((text, "1*1"));
        let (count, step) = rest.split_once('*').unwrap();
        let [first, count, step] =
            [first, count, step].map(|digits| digits.parse::<u64>().unwrap());
        (0..count).map(move |at| first + at * step)
    };
    text.split_whitespace().flat_map(of_one).collect()
}

#[test]
fn a_slice_is_written_and_answered_as_numpy_does() {
    let rows = numpy();
    assert!(rows.len() > 50);
    let shapes: Vec<Vec<u64>> = rows.iter().map(|row| numbers(row[0])).collect();
    let names: Vec<String> = (0..rows.len()).map(|row| format!("t{row}")).collect();
    let tensors: Vec<(&str, &str, &[u64])> =
        names.iter().zip(&shapes).map(|(name, shape)| (&**name, "I32", &shape[..])).collect();
    let model = Scratch::new("numpy", &tensors);
    for (name, [shape, slice, left, elements]) in names.iter().zip(rows) {
        // All of a tensor is no slice: it is asked for by a number of elements.
        let question = match slice {
            "" => vec![model.path(), name, "1000"],
            _ => vec![model.path(), name, "--slice", slice],
        };
        let dumped = dumped(&question);
        let elements = progressions(elements);
        let case = format!("[{slice}] of [{shape}]");
        assert_eq!(dumped.shape, numbers(left), "{case}");
        let values: Vec<String> = elements.iter().map(u64::to_string).collect();
        assert_eq!(dumped.values, values, "{case}");
        let raw: Vec<String> =
            elements.iter().map(|n| format!("{:08x}", (*n as u32).swap_bytes())).collect();
        assert_eq!(dumped.raw, raw, "{case}");
    }
}

/// The table for people has the same elements, each at its place in the file.
#[test]
fn a_slice_as_a_table_has_indices_offsets_and_a_rest() {
    let model = Scratch::new("table", &[("t", "I32", &[2, 3, 4])]);
    let start = fs::metadata(&model.0).unwrap().len() - 96;
    let (out, err, status) = dump(&[model.path(), "t", "5", "--slice", ":,1:,::3"]);
    assert_eq!((&*err, status), ("", 0));
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    for (row, element) in [4, 7, 8, 11, 16].into_iter().enumerate() {
        let index = format!("[{},{},{}]", element / 12, element / 4 % 3, element % 4);
        let offset = (start + 4 * element).to_string();
        let raw = format!("{element:02x}000000");
        let expected = [&*index, &*offset, &*raw, &*element.to_string()];
        assert!(rows.iter().any(|row| row[..] == expected), "row {row}, {expected:?}:\n{out}");
    }
    assert!(out.contains("slice [:,1:,::3]: [2,2,2]"), "{out}");
    assert!(out.ends_with("… 3 more elements\n"), "{out}");
    let (out, ..) = dump(&[model.path(), "t", "--slice", "1:1"]);
    assert!(out.contains("[0,3,4]") && out.ends_with("no elements\n"), "{out}");
}

#[test]
fn what_is_no_slice_or_none_of_this_tensor_is_refused() {
    let tensors: [(&str, &str, &[u64]); 3] =
        [("t", "I32", &[2, 3]), ("scalar", "I32", &[]), ("f4", "F4", &[4, 3])];
    let model = Scratch::new("refused", &tensors);
    // The status says whether the question was not understood (2) or has no answer (1).
    for (tensor, slice, status, words) in [
        ("t", "2", 1, "below 2, found 2"),
        ("t", "18446744073709551615", 1, "below 2, found 18446744073709551615"),
        ("t", ":,3", 1, "below 3, found 3"),
        ("t", "0:3", 1, "0..3"),
        ("t", "2:1", 1, "2..1"),
        ("t", ":,::0", 1, "steps of 0"),
        ("t", ":,:,:", 1, "there is no axis 2"),
        ("scalar", "0", 1, "scalar"),
        ("scalar", ":", 1, "there is no axis 0"),
        ("f4", "1", 1, "would begin or end within"),
        ("f4", ":,1", 1, "would begin or end within"),
        ("t", "", 2, "no slice"),
        ("t", "-1", 2, "no slice"),
        ("t", "::-1", 2, "no slice"),
        ("t", "...", 2, "no slice"),
        ("t", "1,,2", 2, "no slice"),
        ("t", "0:1:2:3", 2, "no slice"),
        ("t", "18446744073709551616", 2, "no slice"),
        ("t", "x", 2, "no slice"),
        ("t", "None", 2, "no slice"),
    ] {
        let option = format!("--slice={slice}");
        for json in [&[][..], &["--json"]] {
            let (out, err, found) = dump(&[&[model.path(), tensor, &option], json].concat());
            assert_eq!((&*out, found), ("", status), "{tensor} [{slice}]: {err}");
            assert!(err.contains(words) && err.lines().count() == 1, "{tensor} [{slice}]: {err}");
        }
    }
    let (_, err, status) = dump(&[model.path(), "t", "--slice", "0", "--row", "0"]);
    assert!(status == 2 && err.contains("exclude each other"), "{err}");
}

/// Below 8 bits an element is its pattern, and the low bits stand first.
#[test]
fn a_part_of_elements_below_8_bits_is_shown_by_pattern() {
    let model = Scratch::new("narrow", &[("t", "F4", &[2, 4, 2])]);
    for (slice, shape, patterns) in [
        ("1", &[4, 2][..], "89abcdef"),
        (":,::2", &[2, 2, 2], "014589cd"),
        ("0,3", &[2], "67"),
        ("1:,1:3,:", &[1, 2, 2], "abcd"),
    ] {
        let dumped = dumped(&[model.path(), "t", "--slice", slice]);
        assert_eq!(
            (&dumped.shape[..], dumped.raw.concat()),
            (shape, patterns.to_owned()),
            "{slice}"
        );
        let numbers = ["0.0", "0.5", "1.0", "1.5", "2.0", "3.0", "4.0", "6.0"];
        let value = |pattern: char| {
            let pattern = pattern.to_digit(16).unwrap() as usize;
            ["", "-"][pattern / 8].to_owned() + numbers[pattern % 8]
        };
        assert_eq!(dumped.values, patterns.chars().map(value).collect::<Vec<_>>(), "{slice}");
    }
}

/// A reader that takes anything would prove nothing.
#[test]
fn the_reader_of_the_output_sees_what_is_out_of_form() {
    let good = concat!(
        r#"{"name": "t", "dtype": "C64", "shape": [2],"#,
        "\n",
        r#""values": [[1.0,-0.0], ["NaN",2.0]],"#,
        "\n",
        r#""raw": ["00", "01"]}"#,
        "\n",
    );
    let read = Dumped::read(good).unwrap();
    assert_eq!((&*read.name, &*read.dtype, &read.shape[..]), ("t", "C64", &[2][..]));
    assert_eq!(read.values, ["[1.0,-0.0]", "[\"NaN\",2.0]"]);
    assert_eq!(read.raw, ["00", "01"]);
    for (part, other) in [("]}\n", "]}"), ("\"00\"", "00"), ("values", "value"), ("{", "")] {
        assert_eq!(Dumped::read(&good.replacen(part, other, 1)), None, "{part}");
    }
    for (text, is_one) in [
        ("0", true),
        ("-0.0", true),
        ("10.25e-7", true),
        ("1e300", true),
        ("", false),
        ("+1", false),
        ("01", false),
        (".5", false),
        ("1.", false),
        ("1e", false),
        ("inf", false),
        ("NaN", false),
    ] {
        assert_eq!(is_json_number(text), is_one, "{text}");
    }
}
