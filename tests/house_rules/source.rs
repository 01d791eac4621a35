//! What in a Rust file is code, and what is comment or text?
//!
//! A rule that is looked for in the plain text finds itself in comments and in strings. So a file
//! is cut into tokens first: roughly as the compiler does it, and without an error for what the
//! compiler would refuse anyway.

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An identifier or a keyword.
    Word,
    /// `::`, or one character of what else is neither word nor literal.
    Mark,
    /// A string, a character, a number, a lifetime.
    Literal,
    /// With its slashes; documentation too.
    Comment,
}

#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    /// From 1.
    pub line: usize,
}

impl Token<'_> {
    /// Whether it is this word or mark.
    pub fn is(&self, text: &str) -> bool {
        self.text == text && matches!(self.kind, Kind::Word | Kind::Mark)
    }
}

/// All tokens of a file.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let (kind, len) = if first.is_whitespace() {
            (None, first.len_utf8())
        } else {
            let (kind, len) = first_token(rest);
            (Some(kind), len)
        };
        let (token, after) = rest.split_at(len);
        tokens.extend(kind.map(|kind| Token { kind, text: token, line }));
        line += token.matches('\n').count();
        rest = after;
    }
    tokens
}

/// The tokens that the compiler looks at.
pub fn code(text: &str) -> Vec<Token<'_>> {
    let mut tokens = tokens(text);
    tokens.retain(|token| token.kind != Kind::Comment);
    tokens
}

/// The first token of a text that begins with one, and its length in bytes.
fn first_token(text: &str) -> (Kind, usize) {
    let first = text.chars().next().expect("a text that begins with a token");
    if text.starts_with("//") {
        return (Kind::Comment, text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return (Kind::Comment, block_comment(text));
    }
    if let Some(len) = string(text) {
        return (Kind::Literal, len);
    }
    if first == '\'' {
        return (Kind::Literal, character_or_lifetime(text));
    }
    let word = run(text, |character| character.is_alphanumeric() || character == '_');
    if first.is_ascii_digit() {
        return (Kind::Literal, word);
    }
    if word > 0 {
        // A raw identifier, `r#match`: a raw string was seen to above.
        let raw = text.strip_prefix("r#").map_or(0, |name| run(name, char::is_alphanumeric));
        return (Kind::Word, if raw > 0 { raw + 2 } else { word });
    }
    (Kind::Mark, if text.starts_with("::") { 2 } else { first.len_utf8() })
}

/// Bytes of the longest beginning whose characters all pass.
fn run(text: &str, passes: impl Fn(char) -> bool) -> usize {
    text.find(|character| !passes(character)).unwrap_or(text.len())
}

/// Bytes of a block comment, with those inside it.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Bytes of a string of any sort, if the text begins with one.
fn string(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(['"', '#']))
    })?;
    let after = &text[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = &after[..run(after, |character| character == '#')];
        let body = after[hashes.len()..].strip_prefix('"')?;
        let close = format!("\"{hashes}");
        let len = body.find(&close).map_or(body.len(), |end| end + close.len());
        return Some(prefix.len() + hashes.len() + 1 + len);
    }
    let body = after.strip_prefix('"')?;
    Some(prefix.len() + 1 + closed_by(body, '"'))
}

/// `'x'`, `'\n'`, `b'x'` without its b, or `'a`.
fn character_or_lifetime(text: &str) -> usize {
    let body = &text[1..];
    let mut characters = body.chars();
    match (characters.next(), characters.next()) {
        (Some('\\'), _) => 1 + closed_by(body, '\''),
        (Some(character), Some('\'')) => 1 + character.len_utf8() + 1,
        _ => 1 + run(body, |character| character.is_alphanumeric() || character == '_'),
    }
}

/// Bytes up to the closing mark and with it, over escapes.
fn closed_by(body: &str, mark: char) -> usize {
    let mut escaped = false;
    let end = body.find(|character| {
        let closes = character == mark && !escaped;
        escaped = character == '\\' && !escaped;
        closes
    });
    end.map_or(body.len(), |end| end + mark.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_comments_and_strings() {
        use Kind::{Comment, Literal, Mark, Word};
        let text = "a::b // unsafe\n/* x /* y */ z */ 'c' '\\'' 'l \"q\\\"q\" r#\"\"x\"\"# b'x' br\"\\\" r#fn 1_u8 é";
        let found: Vec<(Kind, &str)> =
            tokens(text).iter().map(|token| (token.kind, token.text)).collect();
        let expected = [
            (Word, "a"),
            (Mark, "::"),
            (Word, "b"),
            (Comment, "// unsafe"),
            (Comment, "/* x /* y */ z */"),
            (Literal, "'c'"),
            (Literal, "'\\''"),
            (Literal, "'l"),
            (Literal, "\"q\\\"q\""),
            (Literal, "r#\"\"x\"\"#"),
            (Word, "b"),
            (Literal, "'x'"),
            (Literal, "br\"\\\""),
            (Word, "r#fn"),
            (Literal, "1_u8"),
            (Word, "é"),
        ];
        assert_eq!(found, expected);
        let lines: Vec<usize> =
            tokens("a\n/* \n */ b \"\n\" c").iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 3, 3, 4]);
    }
}
