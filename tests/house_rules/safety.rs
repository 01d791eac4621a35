//! Where may code be unsafe, and does it say why it is sound?

use super::VENDORED;
use super::source::{Kind, Token, code, tokens};

/// Foreign functions are declared in `sys/` alone. A function of ours that C calls is no
/// declaration.
pub fn foreign_declarations(path: &str, text: &str) -> Vec<String> {
    if path.starts_with("src/barest/sys/") {
        return Vec::new();
    }
    let code = code(text);
    let declares = |at: usize| {
        let before = at.checked_sub(1).map(|at| &code[at]);
        let opens = code[at + 1..].iter().find(|token| token.kind != Kind::Literal);
        opens.is_some_and(|token| token.is("{")) || before.is_some_and(|token| token.is("unsafe"))
    };
    let found = (0..code.len()).filter(|&at| code[at].is("extern") && declares(at));
    found.map(|at| format!("{path}:{}: foreign functions", code[at].line)).collect()
}

/// Every `unsafe` block and `unsafe impl` has a `SAFETY:` comment above it or above the statement
/// it stands in; every `unsafe fn` and `unsafe trait` a section `# Safety`. Where an `unsafe fn`
/// implements a trait's, the trait has it.
pub fn safety_comments(path: &str, text: &str) -> Vec<String> {
    let all = tokens(text);
    let mut faults = Vec::new();
    // For each open brace, whether it is that of an `impl … for`.
    let mut braces: Vec<bool> = Vec::new();
    // Code and comments since the last `;`, `{` or `}`: the item or statement so far.
    let mut statement: Vec<Token<'_>> = Vec::new();
    let mut ended_on_line = 0;
    for (at, &token) in all.iter().enumerate() {
        if token.is("unsafe") {
            let needed = match unsafe_item(&all[at + 1..]) {
                Some("{" | "impl") => Some("SAFETY:"),
                Some("fn") if braces.last() == Some(&true) => None,
                Some(_) => Some("# Safety"),
                None => None,
            };
            let above =
                |token: &&Token<'_>| token.kind == Kind::Comment && token.line > ended_on_line;
            let said =
                |what: &&str| statement.iter().filter(above).any(|token| token.text.contains(what));
            if let Some(needed) = needed.filter(|needed| !said(needed)) {
                faults.push(format!("{path}:{}: unsafe without `{needed}`", token.line));
            }
        }
        if token.is("{") {
            let has = |word: &str| statement.iter().any(|token| token.is(word));
            braces.push(has("impl") && has("for"));
        } else if token.is("}") {
            braces.pop();
        }
        if [";", "{", "}"].iter().any(|mark| token.is(mark)) {
            statement.clear();
            ended_on_line = token.line;
        } else {
            statement.push(token);
        }
    }
    faults
}

/// What `unsafe` makes unsafe, by what stands behind it: `{`, `impl`, `fn` or `trait`. `None` for
/// a type, an attribute, and a block of foreign functions.
fn unsafe_item<'a>(behind: &[Token<'a>]) -> Option<&'a str> {
    let mut code = behind.iter().filter(|token| token.kind != Kind::Comment);
    let first = code.next()?;
    if first.is("{") || first.is("impl") {
        return Some(first.text);
    }
    // `extern "C"` may stand between.
    let mut item = Some(first);
    while item.is_some_and(|token| token.is("extern") || token.kind == Kind::Literal) {
        item = code.next();
    }
    let item = item.filter(|item| item.is("fn") || item.is("trait"))?;
    let is_named = code.next()?.kind == Kind::Word;
    is_named.then_some(item.text)
}

/// Whether a file may hold unsafe code.
fn may_be_unsafe(path: &str) -> bool {
    const FILES: [&str; 5] =
        ["mapping/mod.rs", "mapping/steer.rs", "tensor/borrow.rs", "model.rs", "gpu/metal.rs"];
    match path.strip_prefix(VENDORED) {
        Some(inner) => {
            const FOLDERS: [&str; 3] = ["sys/", "decode/simd/", "sha256/simd/"];
            FILES.contains(&inner) || FOLDERS.iter().any(|folder| inner.starts_with(folder))
        }
        None => path.starts_with("src/cli/"),
    }
}

/// Unsafe code stands in a closed list of files, and in one file of the program: where it opens
/// the model.
pub fn unsafe_files(files: &[(String, String)]) -> Vec<String> {
    let unsafe_in = |(path, text): &(String, String)| {
        let line = code(text).iter().find(|token| token.is("unsafe"))?.line;
        Some((path.clone(), line))
    };
    let found: Vec<(String, usize)> = files.iter().filter_map(unsafe_in).collect();
    let in_program = |path: &str| !path.starts_with(VENDORED) && may_be_unsafe(path);
    let doors = found.iter().filter(|(path, _)| in_program(path)).count();
    let misplaced =
        found.iter().filter(|(path, _)| !may_be_unsafe(path) || in_program(path) && doors > 1);
    misplaced.map(|(path, line)| format!("{path}:{line}: unsafe code")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_foreign_declaration_elsewhere_is_found() {
        let block = "unsafe extern \"C\" {\n    fn munmap();\n}";
        let closure = "extern \"C\" fn called_back() {} // extern \"C\" {";
        for (path, text, expected) in [
            ("src/barest/sys/posix.rs", block, ""),
            ("src/barest/model.rs", block, "1: foreign functions"),
            ("src/main.rs", "\nextern \"C\" { fn f(); }", "2: foreign functions"),
            ("src/main.rs", "extern { fn f(); }", "1: foreign functions"),
            ("src/main.rs", "type F = unsafe extern \"C\" fn();", "1: foreign functions"),
            ("src/barest/gpu/metal.rs", closure, ""),
            ("src/barest/model.rs", "const A: &str = \"extern {\";", ""),
        ] {
            assert_eq!(planted(foreign_declarations, path, text), expected, "{text}");
        }
    }

    #[test]
    fn an_undocumented_unsafe_is_found() {
        for (text, expected) in [
            ("fn f() {\n    // SAFETY: of course.\n    unsafe { g() }\n}", ""),
            (
                "fn f() {\n    // SAFETY: a\n    // longer one.\n    let a = h(unsafe { g() });\n}",
                "",
            ),
            ("fn f() {\n    h(\n        // SAFETY: within.\n        unsafe { g() },\n    )\n}", ""),
            ("// SAFETY: no threads.\n#[cfg(unix)]\nunsafe impl Send for A {}", ""),
            ("fn f() {\n    unsafe { g() }\n}", "2: unsafe without `SAFETY:`"),
            (
                "// SAFETY: far away.\nfn f() {\n    unsafe { g() }\n}",
                "3: unsafe without `SAFETY:`",
            ),
            (
                "fn f() {\n    // SAFETY: of the first.\n    unsafe { g() };\n    unsafe { g() }\n}",
                "4: unsafe without `SAFETY:`",
            ),
            (
                "fn f() {\n    h(); // SAFETY: of h.\n    unsafe { g() }\n}",
                "3: unsafe without `SAFETY:`",
            ),
            ("unsafe impl Send for A {}", "1: unsafe without `SAFETY:`"),
            ("/// # Safety\n///\n/// Alive.\npub(super) unsafe fn f() {}", ""),
            ("/// Does it.\npub unsafe fn f() {}", "2: unsafe without `# Safety`"),
            ("unsafe extern \"C\" fn f() {}", "1: unsafe without `# Safety`"),
            ("unsafe trait T {}", "1: unsafe without `# Safety`"),
            (
                "/// # Safety\n/// A.\nunsafe fn f() {}\nunsafe fn g() {}",
                "4: unsafe without `# Safety`",
            ),
            ("type F = unsafe fn(u8);\ntype G = unsafe extern \"C\" fn(u8);", ""),
            ("// SAFETY: as the system's.\nunsafe impl Alloc for A {\n    unsafe fn a() {}\n}", ""),
            ("impl A {\n    unsafe fn a() {}\n}", "2: unsafe without `# Safety`"),
            ("#[unsafe(no_mangle)]\nfn f() { \"unsafe {\"; 'u'; /* unsafe { */ }", ""),
        ] {
            assert_eq!(planted(safety_comments, "a.rs", text), expected, "{text}");
        }
    }

    #[test]
    fn unsafe_code_in_a_safe_file_is_found() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let door = file("src/cli/mod.rs", "fn open() { unsafe { open() } }");
        let second = file("src/cli/ls.rs", "fn open() {\n unsafe { open() } }");
        let safe = file("src/barest/json/mod.rs", "// unsafe {\n#![forbid(unsafe_code)]");
        let kernel = file("src/barest/sys/posix.rs", "unsafe fn f() {}");
        let header = file("src/barest/header/mod.rs", "\n#[unsafe(no_mangle)] fn f() {}");
        let main = file("src/main.rs", "unsafe fn f() {}");
        let none: [&str; 0] = [];
        assert_eq!(unsafe_files(&[door.clone(), safe, kernel]), none);
        assert_eq!(
            unsafe_files(&[door.clone(), second]),
            ["src/cli/mod.rs:1: unsafe code", "src/cli/ls.rs:2: unsafe code"]
        );
        assert_eq!(
            unsafe_files(&[door, header, main]),
            ["src/barest/header/mod.rs:2: unsafe code", "src/main.rs:1: unsafe code"]
        );
    }
}
