//! What would keep the folder from being copied into another crate?

use super::source::{Kind, Token, code, tokens};
use std::collections::BTreeSet;

/// The vendored folder knows `super`, `self` and std: its paths begin with one of these, or with
/// what the file itself declares or imports. Never with `crate` or with the name of a crate.
pub fn own_paths(path: &str, text: &str) -> Vec<String> {
    const ALWAYS: [&str; 6] = ["use", "super", "self", "std", "clippy", "rustfmt"];
    const PRIMITIVES: [&str; 18] = [
        "bool", "char", "str", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32",
        "i64", "i128", "isize", "f32", "f64", "pointer",
    ];
    let code = code(text);
    let mut known: BTreeSet<&str> = ALWAYS.into_iter().chain(PRIMITIVES).collect();
    for (at, token) in code.iter().enumerate() {
        let Some(next) = code.get(at + 1) else { break };
        if token.is("mod") {
            known.insert(next.text);
        } else if token.is("use") {
            let statement = code[at + 1..].iter().take_while(|token| !token.is(";"));
            let words = statement.filter(|token| token.kind == Kind::Word);
            // Not the first: that one is what has to be known already.
            known.extend(words.skip(1).map(|token| token.text));
        }
    }
    let is = |at: Option<usize>, text: &str| {
        let token = at.and_then(|at| code.get(at));
        token.is_some_and(|token| token.is(text))
    };
    let begins_a_path = |at: usize| {
        let (before, ahead) = (at.checked_sub(1), Some(at + 1));
        let begins = match is(before, "::") {
            true => is(at.checked_sub(2), "use"),
            false => !is(before, "$") && !is(before, "."),
        };
        let leads_on = is(before, "use") || is(ahead, "::") && !is(Some(at + 2), "<");
        begins && leads_on
    };
    let is_foreign = |token: &Token<'_>| {
        let is_lowercase = token.text.starts_with(|first: char| !first.is_uppercase());
        token.kind == Kind::Word && is_lowercase && !known.contains(token.text)
    };
    let foreign = (0..code.len()).filter(|&at| is_foreign(&code[at]) && begins_a_path(at));
    let fault =
        |Token { line, text, .. }| format!("{path}:{line}: a path that begins with `{text}`");
    foreign.map(|at| fault(code[at])).collect()
}

/// The vendored folder asks nothing of the crate around it: no variable of the build, no file
/// beside it, no feature, no crate attribute, no documentation that names the crate.
pub fn asks_nothing_of_its_host(path: &str, text: &str) -> Vec<String> {
    const MACROS: [&str; 5] = ["env", "option_env", "include", "include_str", "include_bytes"];
    const ATTRIBUTES: [&str; 6] =
        ["no_std", "no_main", "feature", "crate_name", "crate_type", "recursion_limit"];
    const NAMES_OF_THE_CRATE: [&str; 3] = ["barest::", "use barest", "extern crate"];
    let mut found: Vec<(usize, String)> = Vec::new();
    let code = code(text);
    for (at, token) in code.iter().enumerate() {
        let name = token.text;
        let next =
            |ahead: usize, text: &str| code.get(at + ahead).is_some_and(|next| next.is(text));
        let text_follows = || code.get(at + 2).is_some_and(|next| next.kind == Kind::Literal);
        if MACROS.contains(&name) && next(1, "!") {
            found.push((token.line, format!("`{name}!`")));
        }
        if token.is("feature") && next(1, "=") && text_follows() {
            found.push((token.line, "a feature".to_owned()));
        }
        let opens_the_crate = at >= 3 && code[at - 3].is("#") && code[at - 2].is("!");
        if ATTRIBUTES.contains(&name) && opens_the_crate {
            found.push((token.line, format!("the crate attribute `{name}`")));
        }
    }
    for comment in tokens(text) {
        for name in NAMES_OF_THE_CRATE {
            if comment.kind == Kind::Comment && comment.text.contains(name) {
                found.push((comment.line, format!("`{name}` in a comment")));
            }
        }
    }
    let faults = found.iter().map(|(line, what)| format!("{path}:{line}: {what}"));
    faults.collect()
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_path_out_of_the_folder_is_found() {
        for (text, expected) in [
            ("use std::fmt;\nfn f() -> fmt::Result { u8::try_from(1).map(Vec::<u8>::new) }", ""),
            ("mod inner;\nuse inner::Thing;\nfn f() { inner::f(); Self::g(); Thing::h() }", ""),
            ("use super::sys::{self, Advice};\nfn f() { sys::open(); size_of::<u8>() }", ""),
            ("#[rustfmt::skip] fn f() { x.collect::<Vec<_>>(); $name::f() }", ""),
            ("// crate::x\nfn f() -> &str { \"crate::x\" }", ""),
            ("pub(crate) fn f() {}", ""),
            ("use crate::escape;", "1: a path that begins with `crate`"),
            ("fn f() {\n    crate::f() }", "2: a path that begins with `crate`"),
            ("use barest::Model;", "1: a path that begins with `barest`"),
            ("use ::libc::mmap;", "1: a path that begins with `libc`"),
            ("use libc;", "1: a path that begins with `libc`"),
            ("mod tests { proptest::proptest! {} }", "1: a path that begins with `proptest`"),
            ("use core::fmt;", "1: a path that begins with `core`"),
        ] {
            assert_eq!(planted(own_paths, "a.rs", text), expected, "{text}");
        }
    }

    #[test]
    fn a_need_for_the_host_is_found() {
        let doc = "/// ```\n/// use barest::Model;\n/// ```\nfn f() {}";
        for (text, expected) in [
            ("#![allow(dead_code)]\nuse std::env;\nfn f() { env::var(\"env!\") }", ""),
            ("const A: &str = env!(\"CARGO_PKG_NAME\");", "1: `env!`"),
            ("\nconst A: &str = include_str!(\"a\");", "2: `include_str!`"),
            ("#[cfg(feature = \"x\")] fn f() {}", "1: a feature"),
            ("fn f() { if cfg!(feature = \"x\") {} }", "1: a feature"),
            ("#[target_feature(enable = \"avx2\")] fn f() { feature == 1; }", ""),
            ("#![no_std]", "1: the crate attribute `no_std`"),
            (doc, "2: `barest::` in a comment; 2: `use barest` in a comment"),
        ] {
            assert_eq!(planted(asks_nothing_of_its_host, "a.rs", text), expected, "{text}");
        }
    }
}
