//! Is the picture of a file true, and can every browser read it?
//!
//! The sample's two pictures are compared with `tests/golden/`; after a change that is meant,
//! `BAREST_GOLDEN=write cargo test --test layout` writes them anew, to be looked at in a browser.

#[path = "../src/barest/skip.rs"]
mod skip;

#[path = "layout/xml.rs"]
mod xml;

#[path = "common/program.rs"]
mod program;

use program::{good, run};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let name = format!("barest-layout-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// A file with this header and so many bytes of data.
    fn model(&self, name: &str, header: &str, data: usize) -> String {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend(std::iter::repeat_n(7, data));
        fs::write(self.0.join(name), bytes).unwrap();
        self.path(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_sample_is_drawn_as_it_was_looked_at() {
    let scratch = Scratch::new("golden");
    good(&["demo", &scratch.path("")]);
    let model = scratch.path("sample.safetensors");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, arguments) in
        [("layout.txt", &["layout", &model][..]), ("layout.svg", &["layout", &model, "--svg", "-"])]
    {
        let (drawn, path) = (good(arguments), golden.join(name));
        if std::env::var("BAREST_GOLDEN").as_deref() == Ok("write") {
            fs::write(&path, &drawn).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap();
        let differs = drawn.lines().zip(expected.lines()).position(|(one, other)| one != other);
        assert!(
            drawn == expected,
            "tests/golden/{name} differs from line {differs:?} on:\n{drawn}"
        );
    }
}

fn entry(name: &str, dtype: &str, shape: &str, begin: usize, end: usize) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
}

/// Names as a header would hold them that wants to break a terminal or a browser.
const HOSTILE: [&str; 12] = [
    "\\u0000\\u001b[2J\\u0007\\n",
    "]]><script>alert(1)</script>",
    "&amp; & &#0; \\\" ' <!-- --> <![CDATA[",
    "\\u0301\\u20dd",
    "\u{301}raw",
    "\u{202e}\u{5d0}\u{5d1} \u{645}\u{631} \u{2066}",
    "\\ufffe\\uffff\u{fffe}\u{ffff}\u{fffd}",
    "\u{7f}\u{85}\u{9b}31m",
    "\\ud83e\\udd80 \u{fdfd}\u{12031}",
    "",
    "  ",
    "\u{e000}\u{feff}\\\\u0000",
];

/// Files, their bytes of data, and lines of their pictures.
fn odd_files() -> Vec<(&'static str, String, usize, Vec<&'static str>)> {
    let hostile: Vec<String> =
        HOSTILE.iter().enumerate().map(|(at, name)| entry(name, "U8", "[1]", at, at + 1)).collect();
    let long = entry(&"\\u202e".repeat(100_000), "U8", "[1]", 0, 1);
    let many: Vec<String> =
        (0..5000).map(|at| entry(&format!("t{at}.w"), "I16", "[3]", at * 6, at * 6 + 6)).collect();
    let layers: Vec<String> = (0..40)
        .map(|at| entry(&format!("h.{}.w{}", at / 4, at % 4), "U8", "[10]", at * 10, at * 10 + 10))
        .collect();
    let misaligned = [
        entry("a", "U8", "[3]", 0, 3),
        entry("b", "F32", "[1]", 3, 7),
        entry("c", "F64", "[1]", 7, 15),
        entry("e", "F64", "[0]", 15, 15),
    ];
    vec![
        ("smallest", "{}".into(), 0, vec!["none", "8 + N = 10, no multiple of 8"]),
        (
            "nothing",
            "{}      ".into(),
            0,
            vec!["20 20 20 20 20 20", "6 bytes of white space, counted in N"],
        ),
        ("metadata", r#"{"__metadata__":{"]]>":"&\u0000"}}"#.into(), 0, vec!["none"]),
        (
            "hollow",
            format!("{{{},{}}}", entry("a", "F32", "[0]", 0, 0), entry("b", "I8", "[2,0]", 0, 0)),
            0,
            vec!["2 of them empty", "The tensors; all are empty:", "2 tensors, none joined"],
        ),
        (
            "one",
            format!("{:<120}", format!("{{{}}}", entry("only", "BF16", "[4,8]", 0, 64))),
            64,
            vec![
                "1 tensor, none joined",
                "a  only     128     64  100 %",
                "59 bytes of white space, counted in N",
                "counted from 128: bytes 128..192 of the file",
                "  0 of 1  64 bytes",
                "  1 of 1  4096 bytes",
            ],
        ),
        (
            "many",
            format!("{{{}}}", many.join(",")),
            30_000,
            vec!["5000 tensors in 16 runs of about one size", "+++++"],
        ),
        (
            "layers",
            format!("{{{}}}", layers.join(",")),
            400,
            vec![
                "40 tensors in 10 runs, joined by the first 2 parts of their names",
                "a  h.0.w0            +3",
            ],
        ),
        (
            "hostile",
            format!("{{{}}}", hostile.join(",")),
            12,
            vec!["\\0\\u{1b}[2J\\u{7}\\n", "\"\"", "\"  \""],
        ),
        ("long", format!("{{{long}}}"), 1, vec!["…"]),
        (
            "blanks",
            format!("\n\t  {{{}}} \t\r\n", entry("a", "U8", "[1]", 0, 1)),
            1,
            vec!["\\n\\t  {\"a\"", "(4 bytes of white space in front)", "20 09 0d 0a"],
        ),
        (
            "misaligned",
            format!("{{{}}} ", misaligned.join(",")),
            15,
            vec!["1 of them empty", "  2 of 3  their element", "  2 of 3  4 bytes"],
        ),
    ]
}

#[test]
fn of_odd_files_the_numbers_are_right_and_the_xml_is_whole() {
    let scratch = Scratch::new("odd");
    let mut pictures = Vec::new();
    for (name, header, data, told) in odd_files() {
        let model = scratch.model(&format!("{name} & 'co' \u{202e}.safetensors"), &header, data);
        let out = good(&["layout", &model]);
        // 1. What the file says of itself, from its bytes.
        let (n, file) = (header.len(), 8 + header.len() + data);
        let sum = out.lines().skip_while(|line| !line.starts_with("8 +")).nth(1).unwrap();
        let numbers: Vec<&str> = sum.split_whitespace().collect();
        let expected = ["8", "+", &n.to_string(), "+", &data.to_string(), "=", &file.to_string()];
        assert_eq!(numbers, expected, "{name}");
        assert_eq!(fs::metadata(&model).unwrap().len(), file as u64);
        for line in [&format!("N = {n:#x} = {n}")[..]].iter().chain(&told) {
            assert!(out.contains(line), "{name}: {line} is missing:\n{out}");
        }
        let raw = out.chars().find(|&c| c != '\n' && (c.is_control() || c == '\u{202e}'));
        assert_eq!(raw, None, "{name}: {out:?}");
        assert!(out.lines().count() < 80, "{name}: {out}");
        // 2. The same for a browser.
        let svg = good(&["layout", &model, "--svg", "-"]);
        xml::whole(&svg).unwrap_or_else(|fault| panic!("{name}: {fault}:\n{svg}"));
        for words in [
            format!("8 + {n} + {data} = {file}."),
            format!(">N = {n:#x} = {n}<"),
            format!(">8 + N = {}<", 8 + n),
        ] {
            assert!(svg.contains(&words), "{name}: {words} is missing:\n{svg}");
        }
        let from_elsewhere = ["<script", "href", "url(", "@import", "<image", "<foreign"];
        let body = svg.split_once("</desc>").unwrap().1;
        for word in from_elsewhere {
            assert!(!body.contains(word), "{name}: {word}");
        }
        assert!(svg.len() < 100_000, "{name}: {} bytes", svg.len());
        let path = scratch.path(&format!("{name}.svg"));
        fs::write(&path, svg).unwrap();
        pictures.push(path);
    }
    // 3. And another parser agrees.
    let parse =
        "import sys, xml.etree.ElementTree as tree\nfor path in sys.argv[1:]: tree.parse(path)";
    match Command::new("python3").args(["-c", parse]).args(&pictures).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip::skip("python3", "its XML parser does not look at the pictures");
        }
        output => {
            let output = output.unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn nothing_but_a_picture_of_ours_is_overwritten() {
    let scratch = Scratch::new("keep");
    let model = scratch.model("a.safetensors", "{}", 0);
    let drawn = good(&["layout", &model, "--svg", "-"]);
    let picture = scratch.path("a.svg");
    let told = good(&["layout", &model, "--svg", &picture]);
    assert_eq!(told, format!("{picture}  {} bytes, for a browser\n", drawn.len()));
    assert_eq!(fs::read_to_string(&picture).unwrap(), drawn);
    // 1. One of ours, longer than the new one; and an empty file.
    for before in [format!("{drawn}{drawn}"), String::new()] {
        fs::write(&picture, before).unwrap();
        good(&["layout", &model, &format!("--svg={picture}")]);
        assert_eq!(fs::read_to_string(&picture).unwrap(), drawn);
    }
    // 2. Anything else, above all the model, also under another name.
    let (other, link) = (scratch.path("other.svg"), scratch.path("link.svg"));
    fs::write(&other, "<svg xmlns=\"http://www.w3.org/2000/svg\"/>").unwrap();
    fs::hard_link(&model, &link).unwrap();
    for file in [&model, &other, &link, &scratch.path(""), &scratch.path("no/such.svg")] {
        let before = fs::read(file).ok();
        let (out, err, status) = run(&["layout", &model, "--svg", file]);
        assert_eq!((out.as_str(), status), ("", 1), "{file}: {err}");
        assert!(err.starts_with("barest: cannot write "), "{file}: {err}");
        assert_eq!(fs::read(file).ok(), before, "{file}");
    }
    // 3. Of a bad file there is no picture.
    let (bad, none) = (scratch.model("bad.safetensors", "{]", 0), scratch.path("none.svg"));
    let (out, err, status) = run(&["layout", &bad, "--svg", &none]);
    assert_eq!((out.as_str(), status), ("", 1));
    assert!(err.contains("bad.safetensors") && err.contains('^'), "{err}");
    assert!(!Path::new(&none).exists());
}

#[test]
fn help_and_misuse_end_as_they_should() {
    assert!(good(&["layout", "--help"]).starts_with("usage: barest layout PATH"));
    for arguments in [
        &["layout"][..],
        &["layout", "a", "b"],
        &["layout", "a", "--svg"],
        &["layout", "a", "--svg="],
        &["layout", "a", "--svg", "\u{fffd}"],
        &["layout", "a", "--json"],
    ] {
        let (out, err, status) = run(arguments);
        assert_eq!((out.as_str(), status), ("", 2), "{arguments:?}: {err}");
        assert!(err.ends_with("see barest layout --help\n"), "{arguments:?}: {err}");
    }
}
