//! Does what the notes and the README show come out so, here and today?
//!
//! Rust blocks are doctests (see `src/lib.rs`). Here the console blocks are replayed:
//!
//! ```text
//!   ```console                 1. each file has a scratch directory, made by `barest demo models`
//!   $ barest check x           2. each command is given to `sh -c`, in the order of the file
//!   good  x: 1 tensor, …       3. what it prints, on both outputs, must be what stands there
//!   ```
//! ```
//!
//! Before they are compared, addresses, times and process numbers are masked on both sides. In what
//! is expected, `…` stands for any text within a line, and alone for any number of lines.
//!
//! The rest holds the notes to one form, and `docs/FORMAT.md` to the tests that it names.

#[path = "../src/barest/skip.rs"]
mod skip;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

// --- The files ------------------------------------------------------------------------------

const NOTES: &str = "docs/learnings";

/// Path from the top of the repository, with slashes, and text.
struct Document {
    path: String,
    text: String,
}

impl Document {
    fn read(path: &str) -> Document {
        let text = fs::read_to_string(top().join(path));
        Document {
            path: path.to_owned(),
            text: text.unwrap_or_else(|error| panic!("{path}: {error}")),
        }
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a folder whose name ends so, in the order of their paths.
fn below(folder: &str, ending: &str) -> Vec<Document> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(top().join(&folder));
        for entry in entries.unwrap_or_else(|error| panic!("{folder}: {error}")) {
            let path = format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy());
            match top().join(&path).is_dir() {
                true if path.ends_with("/target") => {}
                true => folders.push(path),
                false if path.ends_with(ending) => paths.push(path),
                false => {}
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| Document::read(path)).collect()
}

fn notes() -> Vec<Document> {
    let is_note = |document: &Document| number_of(document.name()).is_some();
    let notes: Vec<Document> = below(NOTES, ".md").into_iter().filter(is_note).collect();
    assert!(notes.len() >= 5, "{NOTES} has {} notes", notes.len());
    notes
}

/// The two digits that a note's name begins with.
fn number_of(name: &str) -> Option<&str> {
    let (number, _) = name.split_once('-')?;
    (number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

fn assert_none(faults: Vec<String>) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

// --- Fences ---------------------------------------------------------------------------------

/// A fenced block: the line of its fence, what stands behind the fence, and its lines.
struct Fence<'a> {
    line: usize,
    language: &'a str,
    lines: Vec<(usize, &'a str)>,
}

/// The fenced blocks of a text, and the lines outside of them, numbered from 1.
fn fences(text: &str) -> (Vec<Fence<'_>>, Vec<(usize, &str)>) {
    let (mut fences, mut outside) = (Vec::new(), Vec::new());
    let mut open: Option<Fence<'_>> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => fences.extend(open.take()),
            (Some(language), None) => {
                open = Some(Fence { line: number, language, lines: Vec::new() });
            }
            (None, Some(fence)) => fence.lines.push((number, line)),
            (None, None) => outside.push((number, line)),
        }
    }
    fences.extend(open);
    (fences, outside)
}

// --- Replaying ------------------------------------------------------------------------------

/// A command, where it stands, and what it must print.
struct Step {
    line: usize,
    command: String,
    expected: Vec<(usize, String)>,
}

/// The steps of a console block: a line that begins with `$ ` is a command, one that ends in a
/// backslash goes on, and the rest is what the command before it prints.
fn steps(fence: &Fence<'_>) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for &(line, text) in &fence.lines {
        match (text.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step { line, command: command.to_owned(), expected: Vec::new() });
            }
            (None, Some(step)) if step.expected.is_empty() && step.command.ends_with('\\') => {
                step.command = format!("{}\n{text}", step.command);
            }
            (None, Some(step)) => step.expected.push((line, text.to_owned())),
            (None, None) => return Err(format!("{line}: output before the first command")),
        }
    }
    match steps.is_empty() {
        true => Err(format!("{}: a console block without a command", fence.line)),
        false => Ok(steps),
    }
}

/// What a command means here: the program is built already, and tests are not run within a test.
fn translated(command: &str) -> Option<String> {
    if command == "cargo test" || command.starts_with("cargo test ") {
        return None;
    }
    match command.strip_prefix("cargo run --release") {
        Some("") => Some("barest".to_owned()),
        Some(rest) if rest.starts_with(" -- ") => Some(format!("barest{}", &rest[3..])),
        _ => Some(command.to_owned()),
    }
}

/// What a block may use besides the program and the shell.
const TOOLS: [&str; 17] = [
    "cat", "cp", "cut", "dd", "head", "ls", "mv", "od", "printf", "rm", "seq", "sort", "tail",
    "tr", "truncate", "wc", "xxd",
];

/// Words of the shell that stand where a command could.
const SHELL: [&str; 19] = [
    "barest", "cargo", "cd", "do", "done", "echo", "else", "exit", "false", "fi", "for", "if",
    "test", "then", "trap", "true", "ulimit", "umask", "while",
];

/// The words that stand where a command can, outside of quotes.
fn programs(command: &str) -> Vec<&str> {
    let outside_of_quotes = command.split(['\'', '"']).step_by(2);
    let pieces = outside_of_quotes.flat_map(|plain| {
        // What follows a quoted text is no command, so the first piece counts where it begins one.
        let begins = plain.as_ptr() == command.as_ptr();
        plain.split(['|', ';', '&', '(', '{']).skip(usize::from(!begins))
    });
    let is_word = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    pieces.filter_map(|piece| piece.split_whitespace().next().filter(is_word)).collect()
}

/// What came of a document.
#[derive(Default)]
struct Replayed {
    faults: Vec<String>,
    /// Blocks that were not run, each with the tool that is missing.
    left_out: Vec<(String, String)>,
}

/// Runs the blocks of a document.
fn replay(document: &Document, missing: &[&str]) -> Replayed {
    let at = |fault: String| format!("{}:{fault}", document.path);
    let scratch = Scratch::new(&document.path);
    let Replayed { mut faults, mut left_out } = Replayed::default();
    let mut lacks = None;
    for fence in fences(&document.text).0.iter().filter(|fence| fence.language == "console") {
        let steps = match steps(fence) {
            Ok(steps) => steps,
            Err(fault) => {
                faults.push(at(fault));
                continue;
            }
        };
        // 1. Tools. A block behind one that was left out may need what that one made.
        for step in &steps {
            for program in programs(&step.command) {
                if missing.contains(&program) {
                    lacks = lacks.or_else(|| Some(program.to_owned()));
                } else if !TOOLS.contains(&program) && !SHELL.contains(&program) {
                    faults.push(at(format!("{}: `{program}` is not among the tools", step.line)));
                }
            }
        }
        if let Some(tool) = &lacks {
            left_out.push((tool.clone(), at(fence.line.to_string())));
            continue;
        }
        // 2. One command after the other.
        for step in &steps {
            match translated(&step.command) {
                Some(command) => {
                    let found = scratch.run(&command);
                    faults.extend(compare(step, &found).map(at));
                }
                None if step.expected.is_empty() => {}
                None => faults.push(at(format!("{}: what tests print is not replayed", step.line))),
            }
        }
    }
    Replayed { faults, left_out }
}

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(path: &str) -> Scratch {
        let name: String = path.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let path = std::env::temp_dir().join(format!("barest-notes-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let scratch = Scratch(path);
        scratch.run("barest demo models");
        scratch
    }

    /// What a command prints, on both outputs, as a terminal would show it.
    fn run(&self, command: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_barest")).parent().unwrap();
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let paths = [program.to_owned()].into_iter().chain(std::env::split_paths(&paths));
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("exec 2>&1\n{command}"))
            .current_dir(&self.0)
            .env("PATH", std::env::join_paths(paths).unwrap())
            .env("LC_ALL", "C")
            .env_remove("TMPDIR")
            .stdin(Stdio::null())
            .output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The fault of a step, if what it prints is not what stands there.
fn compare(step: &Step, found: &str) -> Option<String> {
    let found: Vec<String> = found.lines().map(masked).collect();
    let expected: Vec<String> = step.expected.iter().map(|(_, line)| masked(line)).collect();
    let mut furthest = (0, 0);
    if lines_match(&expected, &found, (0, 0), &mut furthest) {
        return None;
    }
    let (here, there) = furthest;
    let line = step.expected.get(here).or(step.expected.last()).map_or(step.line, |at| at.0);
    let show = |line: Option<&String>| match line {
        Some(line) => format!("`{line}`"),
        None => "the end of the output".to_owned(),
    };
    let (expected, found) = (show(expected.get(here)), show(found.get(there)));
    Some(format!("{line}: expected {expected}, found {found}, of `{}`", step.command))
}

/// Whether all lines match from some place on; and the furthest place at which one did not.
fn lines_match(
    expected: &[String],
    found: &[String],
    at: (usize, usize),
    furthest: &mut (usize, usize),
) -> bool {
    match (expected.get(at.0), found.get(at.1)) {
        (None, None) => return true,
        (Some(any), _) if any.trim() == "…" => {
            let mut rest = at.1..=found.len();
            return rest.any(|there| lines_match(expected, found, (at.0 + 1, there), furthest));
        }
        (Some(here), Some(there)) if line_matches(here, there) => {
            return lines_match(expected, found, (at.0 + 1, at.1 + 1), furthest);
        }
        _ => {}
    }
    *furthest = at.max(*furthest);
    false
}

/// Whether a line is what is expected, in which `…` stands for any text.
fn line_matches(expected: &str, found: &str) -> bool {
    let mut pieces = expected.split('…');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = found.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(place) => rest = &rest[place + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A line with what differs from run to run replaced by words for it.
fn masked(line: &str) -> String {
    // An address has 12 digits on a 64-bit system, of which 8 would also fit an f32 as bits.
    let shortest_address = if usize::BITS == 64 { 9 } else { 8 };
    let mut masked = String::new();
    let mut rest = line;
    let count = |text: &str, digit: fn(&char) -> bool| {
        text.chars().take_while(digit).map(char::len_utf8).sum::<usize>()
    };
    let decimal = |text: &str| count(text, char::is_ascii_digit);
    while let Some(character) = rest.chars().next() {
        let goes_on = masked.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
        let hex = rest.strip_prefix("0x").map_or(0, |rest| count(rest, char::is_ascii_hexdigit));
        if !goes_on && hex >= shortest_address {
            masked += "<address>";
            rest = &rest[2 + hex..];
        } else if let Some(number) = rest.strip_prefix("barest-tour-") {
            masked += "barest-tour-<process>";
            rest = &number[decimal(number)..];
        } else if let Some(len) = time_len(rest).filter(|_| !goes_on) {
            masked += "<time>";
            rest = &rest[len..];
        } else {
            masked.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    masked
}

/// Bytes of the time that a text begins with: a number, a space, a unit.
fn time_len(text: &str) -> Option<usize> {
    const UNITS: [&str; 8] =
        ["ns", "us", "ms", "s", "microseconds", "milliseconds", "seconds", "nanoseconds"];
    let number = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let unit = text.get(number..)?.strip_prefix(' ').filter(|_| number > 0)?;
    let len = unit.bytes().take_while(u8::is_ascii_alphabetic).count();
    UNITS.contains(&&unit[..len]).then_some(number + 1 + len)
}

/// The tools that are not there; `None`, and said so, where nothing can be replayed.
fn missing_tools() -> Option<Vec<&'static str>> {
    let there = |tool: &str| {
        let ask = format!("command -v {tool}");
        let asked = Command::new("sh").args(["-c", &ask]).stdout(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    if !there("sh") {
        skip::skip("sh", "the notes are not replayed");
        return None;
    }
    if !cfg!(target_os = "linux") || barest::Mapping::page_size() != 4096 {
        skip::skip("Linux with pages of 4096 bytes", "the notes show what is printed there");
        return None;
    }
    Some(TOOLS.into_iter().filter(|tool| !there(tool)).collect())
}

#[test]
fn every_block_shows_what_is_printed() {
    let Some(missing) = &missing_tools() else { return };
    let documents: Vec<Document> =
        below(NOTES, ".md").into_iter().chain([Document::read("README.md")]).collect();
    let replayed: Vec<Replayed> = thread::scope(|scope| {
        let of_one = |document| scope.spawn(move || replay(document, missing));
        let threads: Vec<_> = documents.iter().map(of_one).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (tool, place) in replayed.iter().flat_map(|document| &document.left_out) {
        skip::skip(tool, &format!("a block is not replayed: {place}"));
    }
    assert_none(replayed.into_iter().flat_map(|document| document.faults).collect());
}

// --- The form -------------------------------------------------------------------------------

const SECTIONS: [&str; 10] = [
    "Claim",
    "Predict",
    "Picture",
    "Run it",
    "In the code",
    "Proof",
    "Trap",
    "Exercise",
    "Questions",
    "Links",
];

/// Where a note leaves the form that all of them have.
fn form(document: &Document) -> Vec<String> {
    let mut faults: Vec<(usize, String)> = Vec::new();
    let (fences, outside) = fences(&document.text);
    // 1. Its size.
    let count = document.text.lines().count();
    if !(100..=220).contains(&count) {
        faults.push((count, format!("{count} lines, not 100 to 220")));
    }
    let console = fences.iter().filter(|fence| fence.language == "console");
    let printed: BTreeSet<usize> =
        console.flat_map(|fence| fence.lines.iter().map(|line| line.0)).collect();
    for (number, line) in (1..).zip(document.text.lines()) {
        let width = line.chars().count();
        if width > 120 && !printed.contains(&number) {
            faults.push((number, format!("{width} characters, not 120 at most")));
        }
    }
    // 2. What stands above the sections.
    let title = document.text.lines().next().unwrap_or_default();
    let number = number_of(document.name()).unwrap_or_default();
    if !title.strip_prefix("# ").is_some_and(|rest| rest.starts_with(&format!("{number} "))) {
        faults.push((1, format!("the title does not begin with `# {number} `")));
    }
    let head: Vec<&str> =
        outside.iter().map(|&(_, line)| line).take_while(|line| !line.starts_with("## ")).collect();
    for (begin, what) in [("| proves |", "what it proves"), ("> ", "the model to keep")] {
        if !head.iter().any(|line| line.starts_with(begin)) {
            faults.push((1, format!("{what} (`{begin}…`) does not stand above the first section")));
        }
    }
    for word in ["needs", "minutes"] {
        if !head.iter().any(|line| line.starts_with('|') && line.contains(word)) {
            faults.push((1, format!("the table does not say `{word}`")));
        }
    }
    // 3. The sections, in order.
    let section = |line: &(usize, &str)| Some((line.0, line.1.strip_prefix("## ")?.to_owned()));
    let sections: Vec<(usize, String)> = outside.iter().filter_map(section).collect();
    let place = (0..SECTIONS.len().max(sections.len())).find(|&place| {
        sections.get(place).map(|(_, name)| &name[..]) != SECTIONS.get(place).copied()
    });
    if let Some(place) = place {
        let expected = SECTIONS.get(place).unwrap_or(&"no more sections");
        let found = sections.get(place).map_or("none", |(_, name)| name);
        let line = sections.get(place).map_or(count, |section| section.0);
        faults.push((line, format!("expected section `{expected}`, found `{found}`")));
    } else {
        faults.extend(contents(&fences, &outside, &sections));
    }
    // 4. The fences.
    for fence in &fences {
        let parts: Vec<&str> = fence.language.split(',').collect();
        let known = ["console", "rust", "text"].contains(&parts[0]);
        if !known || parts.contains(&"ignore") || parts.contains(&"no_run") {
            let fault = format!("a block of `{}`: not replayed and not run", fence.language);
            faults.push((fence.line, fault));
        }
    }
    faults.sort();
    faults.into_iter().map(|(line, fault)| format!("{}:{line}: {fault}", document.path)).collect()
}

/// What must stand in some of the sections.
fn contents(
    fences: &[Fence<'_>],
    outside: &[(usize, &str)],
    sections: &[(usize, String)],
) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let range = |name: &str| {
        let place = SECTIONS.iter().position(|&section| section == name).unwrap_or_default();
        sections[place].0..sections.get(place + 1).map_or(usize::MAX, |next| next.0)
    };
    for (name, language) in [("Picture", "text"), ("Run it", "console"), ("Proof", "rust")] {
        let range = range(name);
        let of_language = |fence: &Fence<'_>| fence.language.split(',').next() == Some(language);
        if !fences.iter().any(|fence| of_language(fence) && range.contains(&fence.line)) {
            faults.push((range.start, format!("section `{name}` has no {language} block")));
        }
    }
    let lines = |name: &str| {
        let range = range(name);
        outside.iter().filter(move |(line, _)| range.contains(line)).map(|&(_, text)| text)
    };
    let cites = |text: &str| {
        let numbers = text.split('#').skip(1);
        numbers.into_iter().any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if !lines("Trap").any(cites) {
        faults.push((range("Trap").start, "the trap cites no project#number".to_owned()));
    }
    let item = |line: &&str| {
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with("- ") || (number.len() < line.len() && number.starts_with(". "))
    };
    for (name, least, most) in [("Predict", 2, 4), ("Questions", 2, 3)] {
        let items = lines(name).filter(item).count();
        if !(least..=most).contains(&items) {
            let fault = format!("section `{name}` asks {items} questions, not {least} to {most}");
            faults.push((range(name).start, fault));
        }
    }
    faults
}

#[test]
fn every_note_has_the_form() {
    assert_none(notes().iter().flat_map(form).collect());
}

// --- Who leads to whom ----------------------------------------------------------------------

/// A line without its code spans, in which brackets are no links.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The targets of a text's links, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in fences(text).1 {
        let line = without_code(line);
        for rest in line.split("](").skip(1) {
            links.extend(rest.split_once(')').map(|(target, _)| (number, target.to_owned())));
        }
    }
    links
}

/// Links that lead to no file of the repository. `exists` is asked for a path from its top.
fn dead_links(document: &Document, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let elsewhere = |target: &str| target.contains("://") || target.starts_with('#');
    let mut faults = Vec::new();
    for (line, target) in links(&document.text).into_iter().filter(|link| !elsewhere(&link.1)) {
        let mut parts: Vec<&str> = document.path.split('/').collect();
        parts.pop();
        for part in target.split('#').next().unwrap_or_default().split('/') {
            match part {
                "." | "" => {}
                ".." => drop(parts.pop()),
                name => parts.push(name),
            }
        }
        if !exists(&parts.join("/")) {
            faults.push(format!("{}:{line}: a link leads to no file: {target}", document.path));
        }
    }
    faults
}

/// Notes that the path does not lead to, or whose Rust is not run.
fn lost(notes: &[&str], path: &Document, crate_face: &Document) -> Vec<String> {
    let mut faults = Vec::new();
    let linked: BTreeSet<String> = links(&path.text).into_iter().map(|link| link.1).collect();
    for note in notes {
        if !linked.contains(*note) {
            faults.push(format!("{}:1: no link to {note}", path.path));
        }
        let included = format!("#[doc = include_str!(\"../{NOTES}/{note}\")]");
        if !crate_face.text.lines().any(|line| line.trim() == included) {
            faults.push(format!("{}:1: lacks {included}", crate_face.path));
        }
    }
    faults
}

#[test]
fn every_link_leads_to_a_file() {
    let documents = below("docs", ".md").into_iter().chain([Document::read("README.md")]);
    let exists = |path: &str| top().join(path).exists();
    assert_none(documents.flat_map(|document| dead_links(&document, exists)).collect());
}

#[test]
fn every_note_is_on_the_path_and_its_rust_is_run() {
    let path = Document::read(&format!("{NOTES}/README.md"));
    let notes = notes();
    let names: Vec<&str> = notes.iter().map(Document::name).collect();
    assert_none(lost(&names, &path, &Document::read("src/lib.rs")));
}

// --- The format's text ----------------------------------------------------------------------

/// The functions of a Rust text that are tests.
fn tests_in(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let behind = |place: usize| {
        lines[place + 1..].iter().find_map(|line| line.strip_prefix("fn ")?.split('(').next())
    };
    (0..lines.len()).filter(|&place| lines[place] == "#[test]").filter_map(behind).collect()
}

/// The names of a table of cases.
fn cases_in(table: &str) -> Vec<&str> {
    let cases = table.lines().filter(|line| !line.starts_with(['#', ' ']));
    cases.filter_map(|line| line.split_once('\t').map(|(name, _)| name)).collect()
}

/// The rules of a text: the line, and all of the text, of each item of its lists.
fn rules_in(text: &str) -> Vec<(usize, String)> {
    let mut rules: Vec<(usize, String)> = Vec::new();
    for (number, line) in fences(text).1 {
        if let Some(rule) = line.strip_prefix("- ") {
            rules.push((number, rule.to_owned()));
        } else if let Some(rule) = rules.last_mut().filter(|_| line.starts_with("  ")) {
            rule.1 += &line[1..];
        }
    }
    rules
}

/// Rules that name no test behind `Held by`, or one that is not known.
fn unheld(document: &Document, known: &BTreeSet<&str>) -> Vec<String> {
    let mut faults = Vec::new();
    for (line, rule) in rules_in(&document.text) {
        let held = rule.split_once(" Held by ").map_or("", |(_, names)| names);
        let names: Vec<&str> = held.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            faults.push(format!("{}:{line}: a rule without a test", document.path));
        }
        for name in names.into_iter().filter(|name| !known.contains(name)) {
            faults.push(format!("{}:{line}: there is no test `{name}`", document.path));
        }
    }
    faults
}

#[test]
fn every_rule_of_the_format_is_held_by_tests_that_exist() {
    let rust: Vec<Document> =
        ["src/barest", "tests"].iter().flat_map(|f| below(f, ".rs")).collect();
    let tables = below("tests/cases", ".txt");
    let mut known: BTreeSet<&str> = rust.iter().flat_map(|d| tests_in(&d.text)).collect();
    known.extend(tables.iter().flat_map(|table| cases_in(&table.text)));
    assert!(known.len() > 400, "{} tests and cases were found", known.len());
    let format = Document::read("docs/FORMAT.md");
    let rules = rules_in(&format.text).len();
    assert!(rules > 30, "{rules} rules were found");
    assert_none(unheld(&format, &known));
}

// --- Planted faults -------------------------------------------------------------------------

fn document(path: &str, text: &str) -> Document {
    Document { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn what_differs_from_run_to_run_is_masked_and_nothing_else() {
    for (line, expected) in [
        ("bytes at 0x7f5b6b7c2000,", "bytes at <address>,"),
        ("0x3b4a0000 = 0.0030822754", "0x3b4a0000 = 0.0030822754"),
        ("took 39.1 microseconds", "took <time>"),
        ("in 20 ns: BF16", "in <time>: BF16"),
        ("5 minor faults, 4.3 microseconds", "5 minor faults, <time>"),
        ("39 tensors", "39 tensors"),
        ("1.0 million", "1.0 million"),
        ("0.5 s and 3 sections", "<time> and 3 sections"),
        ("x17 ns", "x17 ns"),
        ("/tmp/barest-tour-26023/sample", "/tmp/barest-tour-<process>/sample"),
        ("é … 7 ms", "é … <time>"),
        ("00000000: 4810 0000", "00000000: 4810 0000"),
    ] {
        assert_eq!(masked(line), expected, "{line}");
    }
}

#[test]
fn dots_stand_for_any_text_and_nothing_else_does() {
    for (expected, found, matches) in [
        ("same", "same", true),
        ("same", "same ", false),
        ("", "x", false),
        ("…", "", true),
        ("a…", "abc", true),
        ("a…c", "abc", true),
        ("a…c", "abcd", false),
        ("a…b…c", "a--b--c", true),
        ("a…b…c", "a--c--b", false),
        ("…z", "a", false),
        ("a…a", "a", false),
        ("… 12 more elements", "… 12 more elements", true),
    ] {
        assert_eq!(line_matches(expected, found), matches, "{expected} {found}");
    }
}

#[test]
fn output_that_differs_is_named_with_its_line() {
    for (expected, found, fault) in [
        ("one\ntwo", "one\ntwo\n", None),
        ("one\n…", "one\ntwo\nthree\n", None),
        ("…\nthree", "one\ntwo\nthree\n", None),
        ("…\ntwo\n…", "one\ntwo\nthree\n", None),
        ("one", "two\n", Some("11: expected `one`, found `two`")),
        ("one\ntwo", "one\n", Some("12: expected `two`, found the end of the output")),
        ("one", "one\ntwo\n", Some("11: expected the end of the output, found `two`")),
        ("…\nfour", "one\ntwo\n", Some("12: expected `four`, found the end of the output")),
        ("one\n…\ntwo\nsix", "one\n1\ntwo\n6\n", Some("14: expected `six`, found `6`")),
        ("took 3 ns", "took 4 seconds\n", None),
    ] {
        let expected = (11..).zip(expected.lines().map(str::to_owned)).collect();
        let step = Step { line: 10, command: "x".to_owned(), expected };
        let fault = fault.map(|fault| format!("{fault}, of `x`"));
        assert_eq!(compare(&step, found), fault);
    }
    let silent = Step { line: 10, command: "x".to_owned(), expected: Vec::new() };
    assert_eq!(compare(&silent, ""), None);
    let fault = "10: expected the end of the output, found `bad`, of `x`".to_owned();
    assert_eq!(compare(&silent, "bad\n"), Some(fault));
}

#[test]
fn programs_are_found_where_commands_stand() {
    for (command, expected) in [
        ("barest check x", "barest"),
        ("xxd -l 8 x | tr a-z A-Z > y && wc -c < y; cat y", "xxd tr wc cat"),
        ("printf '%s | grep' \"a; awk\" > x; ls", "printf ls"),
        ("{ printf a; cat 'b'; } > c", "printf cat"),
        ("echo $((8 + 4))", "echo"),
        ("for i in 1 2; do", "for do"),
        ("cat x \\\n  x", "cat"),
        ("grep x y", "grep"),
    ] {
        assert_eq!(programs(command).join(" "), expected, "{command}");
    }
}

#[test]
fn commands_are_translated() {
    for (command, expected) in [
        ("cargo run --release", Some("barest")),
        ("cargo run --release -- ls x", Some("barest ls x")),
        ("cargo test", None),
        ("cargo test --doc", None),
        ("barest ls x", Some("barest ls x")),
    ] {
        assert_eq!(translated(command).as_deref(), expected, "{command}");
    }
}

#[test]
fn a_block_that_lies_is_found() {
    let Some(missing) = missing_tools() else { return };
    for (block, faults) in [
        ("$ printf 'a\\nb\\n'\na\nb", &[][..]),
        ("$ barest --version\nbarest …\n$ cargo test --doc", &[]),
        ("$ printf a > x\n$ cat x \\\n  x\naa", &[]),
        ("$ barest check models/sample.safetensors\nbad", &["4: expected `bad`, found `good  "]),
        ("$ barest check models/broken-cut.safetensors\n…\nbarest: …", &[]),
        ("$ barest frobnicate", &["3: expected the end of the output, found `barest: there is no"]),
        ("$ echo 1\n2\n$ echo 3\n4", &["4: expected `2`, found `1`", "6: expected `4`, found `3`"]),
        ("$ ls\nmodels\n$ ls models/sample.safetensors\nmodels/sample.safetensors", &[]),
        ("$ awk 1 x | cat\n…", &["3: `awk` is not among the tools"]),
        ("$ cargo test\ntest result: ok", &["3: what tests print is not replayed"]),
        ("lonely", &["3: output before the first command"]),
    ] {
        let text = format!("text\n```console\n{block}\n```\n```text\n$ not this\n```\n");
        let found = replay(&document("planted", &text), &missing).faults;
        assert_eq!(found.len(), faults.len(), "{block}: {found:?}");
        for (found, fault) in found.iter().zip(faults) {
            assert!(found.starts_with(&format!("planted:{fault}")), "{block}: {found}");
        }
    }
    let empty = replay(&document("planted", "```console\n```\n"), &missing).faults;
    assert_eq!(empty, ["planted:1: a console block without a command"]);
    // A tool that is not there: neither its block is run nor what comes behind it.
    let text = "```console\n$ printf 1\n1\n```\n```console\n$ cat x | wc\n```\n```console\n$ echo 1\n2\n```\n";
    let lacking = replay(&document("planted", text), &["cat"]);
    let places: Vec<&str> = lacking.left_out.iter().map(|(_, place)| &place[..]).collect();
    assert_eq!((lacking.faults.len(), &places[..]), (0, &["planted:5", "planted:8"][..]));
    let lying = replay(&document("planted", text), &missing);
    assert_eq!((lying.faults.len(), lying.left_out.len()), (2, 0));
}

/// A note that has the form.
fn formed() -> String {
    let mut text = String::from(
        "# 07 A title\n\n| proves | it |\n| --- | --- |\n| needs | 01 |\n| minutes | 5 |\n\n> Keep.\n",
    );
    for section in SECTIONS {
        text += &format!("\n## {section}\n\n");
        text += match section {
            "Predict" | "Questions" => "1. one\n2. two\n",
            "Picture" => "```text\n/ \\\n```\n",
            "Run it" => "```console\n$ ls\n```\n",
            "Proof" => "```rust\n# fn main() {}\n```\n",
            "Trap" => "project#12\n",
            _ => "words\n",
        };
    }
    let more = 110 - text.lines().count();
    text + &"more\n".repeat(more)
}

#[test]
fn a_note_that_leaves_the_form_is_found() {
    let name = "docs/learnings/07-planted.md";
    assert_eq!(form(&document(name, &formed())), [""; 0]);
    let long = "x".repeat(121);
    for (from, to, fault) in [
        ("# 07 A", "# 06 A", "1: the title does not begin with `# 07 `"),
        ("| proves", "| claims", "1: what it proves (`| proves |…`)"),
        ("> Keep.", "Keep.", "1: the model to keep"),
        ("| needs", "| wants", "1: the table does not say `needs`"),
        ("| minutes", "| hours", "1: the table does not say `minutes`"),
        ("## Predict", "## Foresee", "14: expected section `Predict`, found `Foresee`"),
        ("## Claim\n\nwords\n\n", "", "10: expected section `Claim`, found `Predict`"),
        ("## Links", "Links", "110: expected section `Links`, found `none`"),
        ("more", "## More", "57: expected section `no more sections`, found `More`"),
        ("1. one\n", "one\n", "14: section `Predict` asks 1 questions, not 2 to 4"),
        ("```text", "```", "21: a block of ``: not replayed"),
        ("```rust", "```rust,ignore", "37: a block of `rust,ignore`"),
        ("```rust", "```rust,no_run", "37: a block of `rust,no_run`"),
        ("```console", "```text", "25: section `Run it` has no console block"),
        ("project#12", "project", "41: the trap cites no project#number"),
        ("words", &long[..], "12: 121 characters"),
    ] {
        let text = formed().replacen(from, to, 1);
        assert_ne!(text, formed(), "{from} does not occur");
        let found = form(&document(name, &text));
        let expected = format!("{name}:{fault}");
        assert!(found.iter().any(|found| found.starts_with(&expected)), "{fault}: {found:?}");
    }
    let printed = formed().replacen("$ ls", &format!("$ ls\n{long}"), 1);
    assert_eq!(form(&document(name, &printed)), [""; 0], "what is printed may be long");
    let short = formed().replacen(&"more\n".repeat(20), "", 1);
    assert_eq!(form(&document(name, &short)), [format!("{name}:90: 90 lines, not 100 to 220")]);
    let long = formed() + &"more\n".repeat(111);
    assert_eq!(form(&document(name, &long)).len(), 1);
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let text = "[a](02-b.md) [b](../WHY.md#top)\n`[c](d)` [e](https://e.example/x)\n\
                ```text\n[f](g)\n```\n[h](i/j.md) [k](#here)\n[l](../../README.md)";
    let known = ["docs/learnings/02-b.md", "docs/WHY.md", "README.md"];
    let found = dead_links(&document("docs/learnings/01-a.md", text), |path| known.contains(&path));
    assert_eq!(found, ["docs/learnings/01-a.md:6: a link leads to no file: i/j.md"]);
    assert_eq!(dead_links(&document("docs/learnings/01-a.md", text), |_| false).len(), 4);
}

#[test]
fn a_note_that_nothing_leads_to_is_found() {
    let path = document("docs/learnings/README.md", "[one](01-a.md)\n[two](02-b.md)");
    let face = "#[doc = include_str!(\"../docs/learnings/01-a.md\")]\nstruct Note01;\n";
    let face = document("src/lib.rs", face);
    assert_eq!(lost(&["01-a.md"], &path, &face), [""; 0]);
    let found = lost(&["01-a.md", "02-b.md", "03-c.md"], &path, &face);
    assert_eq!(
        found,
        [
            "src/lib.rs:1: lacks #[doc = include_str!(\"../docs/learnings/02-b.md\")]",
            "docs/learnings/README.md:1: no link to 03-c.md",
            "src/lib.rs:1: lacks #[doc = include_str!(\"../docs/learnings/03-c.md\")]",
        ]
    );
}

#[test]
fn a_rule_without_a_test_is_found() {
    let rust =
        "#[test]\nfn one() {}\n\nfn two() {}\n#[test]\n#[cfg(unix)]\n/// Said.\nfn three(x: u8) {}";
    assert_eq!(tests_in(rust), ["one", "three"]);
    assert_eq!(
        cases_in("# a\tb\nB01/x\taccept\t{}\n  says \"\\t\"\n\ny\treject\t"),
        ["B01/x", "y"]
    );
    let known = BTreeSet::from(["one", "B01/x"]);
    let text = "- `N` is.\n  Held by `one`,\n  `B01/x`.\n- `one`\n  is.\n  Held by `two`, `one`.\n\n\
                - Not `one`.\n\n`x`\n";
    assert_eq!(
        unheld(&document("F.md", text), &known),
        ["F.md:4: there is no test `two`", "F.md:8: a rule without a test"]
    );
}
