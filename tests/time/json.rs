//! Is this text JSON, and what does it say?

use std::ops::Index;

/// A value; numbers as they are written.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Null,
    Number(String),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Value::Number(_))
    }

    /// A whole number.
    pub fn number(&self) -> u64 {
        match self {
            Value::Number(number) => number.parse().expect("a whole number"),
            other => panic!("{other:?} is no number"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }

    pub fn list(&self) -> &[Value] {
        match self {
            Value::List(list) => list,
            other => panic!("{other:?} is no list"),
        }
    }
}

impl Index<&str> for Value {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        match self {
            Value::Object(pairs) => match pairs.iter().find(|(name, _)| name == key) {
                Some((_, value)) => value,
                None => panic!("no {key} in {self:?}"),
            },
            other => panic!("{other:?} is no object"),
        }
    }
}

/// The value that the text is; or the byte where it stops being one.
pub fn parse(text: &str) -> Result<Value, usize> {
    let mut reader = Reader { text: text.as_bytes(), at: 0 };
    let value = reader.value()?;
    reader.blanks();
    if reader.at == text.len() { Ok(value) } else { Err(reader.at) }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        self.blanks();
        let takes = self.text[self.at..].starts_with(word.as_bytes());
        self.at += if takes { word.len() } else { 0 };
        takes
    }

    fn must(&mut self, word: &str) -> Result<(), usize> {
        if self.takes(word) { Ok(()) } else { Err(self.at) }
    }

    fn value(&mut self) -> Result<Value, usize> {
        if self.takes("null") {
            return Ok(Value::Null);
        }
        if self.takes("[") {
            return self.items("]", Reader::value).map(Value::List);
        }
        if self.takes("{") {
            let pair = |reader: &mut Self| {
                reader.must("\"")?;
                let name = reader.string()?;
                reader.must(":")?;
                Ok((name, reader.value()?))
            };
            return self.items("}", pair).map(Value::Object);
        }
        if self.takes("\"") {
            return self.string().map(Value::Text);
        }
        let rest = &self.text[self.at..];
        let len = rest.iter().take_while(|byte| b"+-.0123456789eE".contains(byte)).count();
        let number = String::from_utf8_lossy(&rest[..len]).into_owned();
        match number.parse::<f64>() {
            Ok(_) => {
                self.at += len;
                Ok(Value::Number(number))
            }
            Err(_) => Err(self.at),
        }
    }

    fn items<T>(
        &mut self,
        end: &str,
        item: impl Fn(&mut Self) -> Result<T, usize>,
    ) -> Result<Vec<T>, usize> {
        let mut items = Vec::new();
        if self.takes(end) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.takes(end) {
                return Ok(items);
            }
            self.must(",")?;
        }
    }

    /// Behind its first quote. Of escapes those that stand for one character themselves.
    fn string(&mut self) -> Result<String, usize> {
        let mut bytes = Vec::new();
        loop {
            match self.text.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') if self.text.get(self.at + 1).is_some_and(|c| b"\"\\/".contains(c)) => {
                    bytes.push(self.text[self.at + 1]);
                    self.at += 1;
                }
                Some(b'\\') | None => return Err(self.at),
                Some(&byte) if byte < b' ' => return Err(self.at),
                Some(&byte) => bytes.push(byte),
            }
            self.at += 1;
        }
        self.at += 1;
        String::from_utf8(bytes).map_err(|_| self.at)
    }
}

#[test]
fn what_is_no_json_is_found() {
    let value = parse(" {\"a\": [1, -2.5e3, \"b\\\"\"], \"c\": {}, \"d\": null}\n").unwrap();
    assert_eq!(value["a"].list()[0].number(), 1);
    assert_eq!(value["a"].list()[2].text(), "b\"");
    for broken in ["", "{", "[1,]", "[1 2]", "{\"a\"}", "{\"a\":1,}", "\"a", "nul", "1 2", "-"] {
        assert!(parse(broken).is_err(), "{broken}");
    }
}
