//! Does each module use only what stands above it?

use super::VENDORED;
use super::source::{Kind, Token, code};

/// A module of the vendored folder, as its `mod.rs` declares it.
#[derive(PartialEq, Debug)]
pub struct Module {
    name: String,
    for_tests: bool,
}

/// The `mod` lines, in their order, which is the order of the data.
pub fn modules(mod_rs: &str) -> Vec<Module> {
    let code = code(mod_rs);
    let declares =
        |three: &[Token<'_>]| three[0].is("mod") && three[1].kind == Kind::Word && three[2].is(";");
    let declarations = code.windows(3).enumerate().filter(|(_, three)| declares(three));
    let module = |(at, three): (usize, &[Token<'_>])| Module {
        name: three[1].text.to_owned(),
        for_tests: is_for_tests(&code[item_start(&code, at)..at]),
    };
    declarations.map(module).collect()
}

fn is_for_tests(attributes: &[Token<'_>]) -> bool {
    let cfg_test = ["cfg", "(", "test", ")"];
    let same = |four: &[Token<'_>]| four.iter().zip(cfg_test).all(|(token, text)| token.is(text));
    attributes.windows(4).any(same)
}

/// Where the item or statement begins that the token stands in.
fn item_start(code: &[Token<'_>], at: usize) -> usize {
    let ends = |token: &Token<'_>| [";", "{", "}"].iter().any(|mark| token.is(mark));
    code[..at].iter().rposition(ends).map_or(0, |end| end + 1)
}

/// A module of the vendored folder uses, by `super::`, only modules declared above it in `mod.rs`.
/// Within a folder anything goes; what is declared for tests alone, tests may use anywhere.
pub fn one_way(path: &str, text: &str, order: &[Module]) -> Vec<String> {
    let inner = path.strip_prefix(VENDORED).expect("a vendored file");
    let parts = inner.trim_end_matches(".rs").split('/');
    let place: Vec<&str> = parts.filter(|&part| part != "mod").collect();
    let rank = |name: &str| order.iter().position(|module| module.name == name);
    let own_rank = match place.first() {
        // `mod.rs` itself stands below all of them.
        None => order.len(),
        Some(own) => match rank(own) {
            Some(own_rank) => own_rank,
            None => return vec![format!("{path}:1: a module that mod.rs does not declare")],
        },
    };
    let judge = |name: &str| match rank(name) {
        None => Some(format!("uses `{name}`, which is no module of mod.rs")),
        Some(rank) if rank > own_rank && !order[rank].for_tests => {
            Some(format!("uses `{name}`, which stands below it in mod.rs"))
        }
        Some(_) => None,
    };

    let code = code(text);
    let is = |at: usize, text: &str| code.get(at).is_some_and(|token| token.is(text));
    let mut faults = Vec::new();
    // For each open brace, whether it is that of a module.
    let mut braces: Vec<bool> = Vec::new();
    let mut at = 0;
    while let Some(token) = code.get(at) {
        at += 1;
        if token.is("{") {
            braces.push(at >= 3 && is(at - 3, "mod"));
        } else if token.is("}") {
            braces.pop();
        } else if token.is("super") {
            let mut climbs = 1;
            while is(at, "::") && is(at + 1, "super") {
                climbs += 1;
                at += 2;
            }
            let depth = place.len() + braces.iter().filter(|&&module| module).count();
            if !is(at, "::") {
                // `pub(super)` shows something; it uses nothing.
            } else if climbs > depth {
                let line = token.line;
                faults.push(format!("{path}:{line}: `super` leads out of the folder"));
            } else if climbs == depth {
                for name in branches(&code[at + 1..]) {
                    let fault = judge(name.text);
                    faults.extend(fault.map(|fault| format!("{path}:{}: {fault}", name.line)));
                }
            }
        }
    }
    faults
}

/// The first words of what stands behind `super::`: one, or those of a group.
fn branches<'a, 'b>(code: &'b [Token<'a>]) -> Vec<&'b Token<'a>> {
    let mut branches = Vec::new();
    let mut depth = 0;
    let mut begins = true;
    for token in code {
        let opens = token.is("{");
        if begins && !opens && !token.is("}") {
            branches.push(token);
        }
        depth += i32::from(opens) - i32::from(token.is("}"));
        begins = depth == 1 && (opens || token.is(","));
        if depth == 0 {
            break;
        }
    }
    branches
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn the_order_is_that_of_the_mod_lines() {
        let module = |name: &str, for_tests| Module { name: name.to_owned(), for_tests };
        assert_eq!(
            modules(
                "//! mod no;\npub mod a; // mod b;\nmod c;\n#[cfg(test)]\nmod t;\npub use a::A;\nmod d;\nmod e {}"
            ),
            [module("a", false), module("c", false), module("t", true), module("d", false)]
        );
    }

    #[test]
    fn a_use_against_the_stream_is_found() {
        let order = modules("mod a; mod b; mod folder; mod z; #[cfg(test)] mod t;");
        let rule = |path: &str, text: &str| one_way(path, text, &order);
        for (path, text, expected) in [
            ("b.rs", "use super::a::A;\nuse std::io;", ""),
            ("b.rs", "use super::z::Z;", "1: uses `z`, which stands below it in mod.rs"),
            ("b.rs", "\nfn f() { super::z::f() }", "2: uses `z`, which stands below it in mod.rs"),
            ("b.rs", "use super::{a::{z, A}, z};", "1: uses `z`, which stands below it in mod.rs"),
            ("b.rs", "// super::z\n/// [`Z`](super::z::Z)\nfn f() -> &str { \"super::z\" }", ""),
            ("b.rs", "use super::Z;", "1: uses `Z`, which is no module of mod.rs"),
            ("b.rs", "use super::*;", "1: uses `*`, which is no module of mod.rs"),
            ("b.rs", "use super::super::host;", "1: `super` leads out of the folder"),
            ("b.rs", "pub(super) fn f() {}\npub(in super::super) fn g() {}", ""),
            ("b.rs", "mod tests { use super::*; use super::super::a::A; }", ""),
            (
                "b.rs",
                "mod tests { use super::super::z::Z; }",
                "1: uses `z`, which stands below it in mod.rs",
            ),
            ("b.rs", "mod tests { use super::super::t::help; }", ""),
            ("b.rs", "mod tests {}\nuse super::z;", "2: uses `z`, which stands below it in mod.rs"),
            ("folder/mod.rs", "use super::b; mod inner;", ""),
            ("folder/mod.rs", "use super::z;", "1: uses `z`, which stands below it in mod.rs"),
            (
                "folder/inner.rs",
                "use super::other; use super::super::a; use super::super::folder::X;",
                "",
            ),
            (
                "folder/inner.rs",
                "use super::super::z;",
                "1: uses `z`, which stands below it in mod.rs",
            ),
            ("mod.rs", "use super::host;", "1: `super` leads out of the folder"),
            ("stray.rs", "", "1: a module that mod.rs does not declare"),
        ] {
            let path = format!("{VENDORED}{path}");
            assert_eq!(planted(rule, &path, text), expected, "{path}: {text}");
        }
    }
}
