//! JSON as a program of another language would read it: the whole of a text, or an error.

/// A value; numbers as they are written.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads one value and nothing behind it but white space.
    pub fn read(text: &str) -> Json {
        let mut rest = text;
        let value = value(&mut rest);
        assert_eq!(rest.trim_start(), "", "behind the value");
        value
    }

    /// A member of an object, which must have it.
    pub fn get(&self, key: &str) -> &Json {
        let Json::Object(members) = self else { panic!("{self:?} is no object") };
        let found = members.iter().find(|(name, _)| name == key);
        &found.unwrap_or_else(|| panic!("no {key} in {self:?}")).1
    }

    pub fn keys(&self) -> Vec<&str> {
        let Json::Object(members) = self else { panic!("{self:?} is no object") };
        members.iter().map(|(name, _)| &**name).collect()
    }

    pub fn list(&self) -> &[Json] {
        let Json::List(items) = self else { panic!("{self:?} is no list") };
        items
    }

    pub fn text(&self) -> &str {
        let Json::Text(text) = self else { panic!("{self:?} is no text") };
        text
    }

    pub fn number(&self) -> u64 {
        let Json::Number(number) = self else { panic!("{self:?} is no number") };
        number.parse().unwrap()
    }
}

fn value(rest: &mut &str) -> Json {
    *rest = rest.trim_start();
    for (word, value) in
        [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))]
    {
        if take(rest, word) {
            return value;
        }
    }
    match rest.chars().next() {
        Some('"') => Json::Text(string(rest)),
        Some('[') => Json::List(members(rest, "[", "]", value)),
        Some('{') => Json::Object(members(rest, "{", "}", |rest| {
            *rest = rest.trim_start();
            let key = string(rest);
            *rest = rest.trim_start();
            assert!(take(rest, ":"), "no `:` at {rest:?}");
            (key, value(rest))
        })),
        _ => {
            let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (number, behind) = rest.split_at(end);
            assert!(number.parse::<f64>().is_ok(), "no value at {rest:?}");
            *rest = behind;
            Json::Number(number.to_owned())
        }
    }
}

fn members<T>(rest: &mut &str, open: &str, close: &str, member: impl Fn(&mut &str) -> T) -> Vec<T> {
    assert!(take(rest, open));
    let mut members = Vec::new();
    *rest = rest.trim_start();
    if take(rest, close) {
        return members;
    }
    loop {
        members.push(member(rest));
        *rest = rest.trim_start();
        if take(rest, close) {
            return members;
        }
        assert!(take(rest, ","), "no `,` at {rest:?}");
    }
}

fn string(rest: &mut &str) -> String {
    assert!(take(rest, "\""), "no text at {rest:?}");
    let mut text = String::new();
    let mut units: Vec<u16> = Vec::new();
    loop {
        let character = rest.chars().next().expect("the text ends");
        *rest = &rest[character.len_utf8()..];
        let escaped = match character {
            '\\' => rest.chars().next().expect("the text ends"),
            _ => '\0',
        };
        if escaped == 'u' {
            units.push(u16::from_str_radix(&rest[1..5], 16).expect("four digits"));
            *rest = &rest[5..];
            continue;
        }
        // Halves of a character come in pairs.
        text += &String::from_utf16(&units).expect("whole characters");
        units.clear();
        match (character, escaped) {
            ('"', _) => return text,
            ('\\', escaped) => {
                *rest = &rest[escaped.len_utf8()..];
                text.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    '"' | '\\' | '/' => escaped,
                    other => panic!("\\{other} is no escape"),
                });
            }
            (control, _) if control < ' ' => panic!("{control:?} stands in a text"),
            (plain, _) => text.push(plain),
        }
    }
}

fn take(rest: &mut &str, word: &str) -> bool {
    match rest.strip_prefix(word) {
        Some(behind) => {
            *rest = behind;
            true
        }
        None => false,
    }
}
