//! How are the tables in `tests/cases` read?
//!
//! A table is a list of cases: a file's bytes in printable ASCII, a verdict, and what else must come
//! of them. The head of `conformance.txt` describes the notation. Nothing here knows the crate under
//! test, so that a fault in one cannot hide a fault in the other.

use std::fmt::{self, Display, Formatter};

/// One file, and what a reader must make of it.
pub struct Case {
    pub name: String,
    pub accepted: bool,
    pub file: Vec<u8>,
    /// Where the error must point.
    mark: Option<u64>,
    /// Why, for people.
    note: String,
    /// The reference accepts what is refused here.
    pub stricter: bool,
    /// The tensors that the error is about.
    blames: Vec<String>,
    /// Fragments of the error's text.
    says: Vec<String>,
    pub tensors: Vec<Tensor>,
    pub metadata: Option<Vec<(String, String)>>,
}

#[derive(Debug, PartialEq)]
pub struct Tensor {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<u64>,
    pub data_offsets: (u64, u64),
    pub bytes: Vec<u8>,
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.note.is_empty() { Ok(()) } else { write!(f, " ({})", self.note) }
    }
}

/// Reads a whole table. The error names the line.
pub fn cases(table: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for (index, line) in table.lines().enumerate() {
        let at_line = |why: String| format!("line {}: {why}", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(fact) = line.strip_prefix("  ") {
            let case = cases.last_mut().ok_or("a fact before the first case".to_owned());
            case.and_then(|case| case.learn(fact)).map_err(at_line)?;
            continue;
        }
        let case = Case::from_line(line).map_err(at_line)?;
        if cases.iter().any(|other| other.name == case.name) {
            return Err(at_line(format!("`{}` stands twice", case.name)));
        }
        cases.push(case);
    }
    Ok(cases)
}

impl Case {
    fn from_line(line: &str) -> Result<Case, String> {
        let parts: Vec<&str> = line.split('\t').collect();
        let [name, verdict, bytes] = parts[..] else {
            return Err("a case is a name, a verdict and the bytes, with tabs between".to_owned());
        };
        let accepted = match verdict {
            "accept" => true,
            "reject" => false,
            other => {
                return Err(format!("the verdict `{other}` is neither accept nor reject"));
            }
        };
        let Decoded { bytes, mark } = decode(bytes)?;
        if accepted && mark.is_some() {
            return Err("a mark in an accepted file".to_owned());
        }
        Ok(Case {
            name: name.to_owned(),
            accepted,
            file: bytes,
            mark: mark.map(|mark| mark as u64),
            note: String::new(),
            stricter: false,
            blames: Vec::new(),
            says: Vec::new(),
            tensors: Vec::new(),
            metadata: None,
        })
    }

    /// Where the data begin, if the file holds its whole header.
    pub fn header_end(&self) -> Option<usize> {
        let length = u64::from_le_bytes(self.file.get(..8)?.try_into().ok()?);
        let end = usize::try_from(length.checked_add(8)?).ok()?;
        (end <= self.file.len()).then_some(end)
    }

    /// What is wrong with an error that this file gave.
    pub fn faults_of(&self, text: &str, offset: Option<u64>, tensor: Option<&str>) -> Vec<String> {
        let mut faults = Vec::new();
        if text.chars().any(char::is_control) {
            faults.push("it is not one plain line".to_owned());
        }
        if offset.is_some_and(|offset| offset > self.file.len() as u64) {
            faults.push(format!("its offset {offset:?} lies outside the file"));
        }
        if self.mark.is_some() && offset != self.mark {
            faults.push(format!("its offset should be {:?}, is {offset:?}", self.mark));
        }
        if !self.blames.is_empty() && !self.blames.iter().any(|name| Some(&name[..]) == tensor) {
            faults
                .push(format!("it should be about one of {:?}, is about {tensor:?}", self.blames));
        }
        let blamed = self.blames.iter().map(|name| format!("`{name}`"));
        for fragment in blamed.chain(self.says.iter().cloned()) {
            if !has_words(text, &fragment) {
                faults.push(format!("it should say {fragment:?}"));
            }
        }
        faults.iter_mut().for_each(|fault| *fault += &format!(": {text:?}"));
        faults
    }

    fn learn(&mut self, fact: &str) -> Result<(), String> {
        let (keyword, rest) = fact.split_once(' ').unwrap_or((fact, ""));
        match (keyword, self.accepted) {
            ("note", _) => self.note = rest.to_owned(),
            ("stricter", false) => self.stricter = true,
            ("blames", false) => self.blames = quoted(rest)?,
            ("says", false) => self.says = quoted(rest)?,
            ("tensor", true) => self.tensors.push(self.tensor(rest, None)?),
            ("metadata", true) => {
                let pairs = self.metadata.get_or_insert_default();
                match unquoted(rest).and_then(|pair| pair.split_once("\" = \"")) {
                    Some((key, value)) => pairs.push((text(key, None)?, text(value, None)?)),
                    None if rest == "{}" => {}
                    None => return Err(format!("{rest:?} is no pair of metadata")),
                }
            }
            (count, true) if rest.starts_with("tensors ") => {
                let rounds = count.parse::<u64>().map_err(|_| format!("{count:?} is no count"))?;
                for round in 0..rounds {
                    self.tensors.push(self.tensor(&rest["tensors ".len()..], Some(round))?);
                }
            }
            _ => return Err(format!("`{keyword}` is no fact about such a case")),
        }
        Ok(())
    }

    /// `"NAME" DTYPE SHAPE BEGIN..END`, and perhaps ` = BYTES`.
    fn tensor(&self, fact: &str, round: Option<u64>) -> Result<Tensor, String> {
        let malformed = || format!("{fact:?} is no tensor");
        let (place, stated) = match fact.split_once(" = ") {
            Some((place, bytes)) => (place, Some(decode(bytes)?.bytes)),
            None => (fact, None),
        };
        // From the right, because a name may hold spaces.
        let parts: Vec<&str> = place.rsplitn(4, ' ').collect();
        let [range, shape, dtype, name] = parts[..] else {
            return Err(malformed());
        };
        let shape = text(shape, round)?;
        let shape = shape.strip_prefix('[').and_then(|shape| shape.strip_suffix(']'));
        let range = text(range, round)?;
        let (begin, end) = range.split_once("..").ok_or_else(malformed)?;
        let size = |digits: &str| digits.parse::<u64>().map_err(|_| malformed());
        let (begin, end) = (size(begin)?, size(end)?);

        let data = &self.file[self.header_end().ok_or("the file has no whole header")?..];
        let bytes = data.get(begin as usize..end as usize).ok_or("the file has no such bytes")?;
        if stated.is_some_and(|stated| stated != bytes) {
            return Err(format!("the file has {bytes:?} there"));
        }
        Ok(Tensor {
            name: text(unquoted(name).ok_or_else(malformed)?, round)?,
            dtype: dtype.to_owned(),
            shape: match shape.ok_or_else(malformed)? {
                "" => Vec::new(),
                sizes => sizes.split(',').map(size).collect::<Result<_, _>>()?,
            },
            data_offsets: (begin, end),
            bytes: bytes.to_vec(),
        })
    }
}

/// `"a" "b"`
fn quoted(list: &str) -> Result<Vec<String>, String> {
    let list = unquoted(list).ok_or_else(|| format!("{list:?} is no list of quoted texts"))?;
    list.split("\" \"").map(|item| text(item, None)).collect()
}

/// What stands between the first quote and the last; those within need no escape.
fn unquoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

/// Whether the fragment stands in the text, not as a part of a longer word or number.
fn has_words(text: &str, fragment: &str) -> bool {
    let joined = |a: Option<char>, b: Option<char>| {
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        is_word(a) && is_word(b)
    };
    text.match_indices(fragment).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + fragment.len()..]);
        !joined(before.chars().next_back(), fragment.chars().next())
            && !joined(fragment.chars().next_back(), after.chars().next())
    })
}

#[derive(Debug, PartialEq)]
pub struct Decoded {
    pub bytes: Vec<u8>,
    /// How many bytes stand before `\^`.
    pub mark: Option<usize>,
}

/// Turns the notation into bytes. The error names the column.
pub fn decode(notation: &str) -> Result<Decoded, String> {
    decode_in_round(notation, None)
}

fn text(notation: &str, round: Option<u64>) -> Result<String, String> {
    let decoded = decode_in_round(notation, round)?;
    String::from_utf8(decoded.bytes).map_err(|_| format!("{notation:?} is not UTF-8"))
}

fn decode_in_round(notation: &str, round: Option<u64>) -> Result<Decoded, String> {
    let mut decoder =
        Decoder { rest: notation, bytes: Vec::new(), mark: None, header: None, depth: 0 };
    let end = decoder.run(round).and_then(|()| match decoder.header {
        Some(_) => Err("`\\N` lacks its `\\|`".to_owned()),
        None => Ok(()),
    });
    match end {
        Ok(()) => Ok(Decoded { bytes: decoder.bytes, mark: decoder.mark }),
        Err(why) => {
            let column = notation.len() - decoder.rest.len();
            Err(format!("{why} (column {column} of {notation:?})"))
        }
    }
}

struct Decoder<'a> {
    rest: &'a str,
    bytes: Vec<u8>,
    mark: Option<usize>,
    /// Where the open header began.
    header: Option<usize>,
    /// How many repetitions are open.
    depth: u32,
}

impl<'a> Decoder<'a> {
    /// Decodes to the end of the text or, within a repetition, of its body.
    fn run(&mut self, round: Option<u64>) -> Result<(), String> {
        while let Some(character) = self.next() {
            match character {
                '\\' => match self.next() {
                    Some(')') if self.depth > 0 => return Ok(()),
                    escape => self.escape(escape, round)?,
                },
                ' '..='~' => self.bytes.push(character as u8),
                _ => return Err(format!("{character:?} must be written as an escape")),
            }
        }
        if self.depth > 0 { Err("`\\*` lacks its `\\)`".to_owned()) } else { Ok(()) }
    }

    fn escape(&mut self, escape: Option<char>, round: Option<u64>) -> Result<(), String> {
        match escape {
            Some('\\') => self.bytes.push(b'\\'),
            Some('n') => self.bytes.push(b'\n'),
            Some('r') => self.bytes.push(b'\r'),
            Some('t') => self.bytes.push(b'\t'),
            Some('0') => self.bytes.push(0),
            Some('x') => {
                let digit = |digit: Option<char>| digit.and_then(|digit| digit.to_digit(16));
                let (high, low) = (digit(self.next()), digit(self.next()));
                let byte = high.zip(low).map(|(high, low)| high * 16 + low);
                self.bytes.push(byte.ok_or("`\\x` wants two hex digits")? as u8);
            }
            Some('u') => {
                let digits = self.between('{', '}')?;
                let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                let character = code.ok_or("`\\u` wants the hex digits of a character")?;
                self.bytes.extend(character.encode_utf8(&mut [0; 4]).bytes());
            }
            Some('N') => {
                if self.header.replace(self.bytes.len()).is_some() {
                    return Err("`\\N` within a header".to_owned());
                }
                self.bytes.extend([0; 8]);
            }
            Some('|') => {
                let start = self.header.take().ok_or("`\\|` without `\\N`")?;
                let length = (self.bytes.len() - start - 8) as u64;
                self.bytes[start..start + 8].copy_from_slice(&length.to_le_bytes());
            }
            Some('*') => self.repetition()?,
            Some('#') => {
                let width = self.digits();
                let number = number(self.between('(', ')')?, round)?;
                match width {
                    "" => self.bytes.extend(number.to_string().bytes()),
                    "16" => {
                        let small = u16::try_from(number).map_err(|_| "more than 16 bits")?;
                        self.bytes.extend(small.to_le_bytes());
                    }
                    "64" => self.bytes.extend(number.to_le_bytes()),
                    _ => return Err("a number has 16 or 64 bits".to_owned()),
                }
            }
            Some('~') => {
                let length = self.count()?;
                self.bytes.extend((0..length).map(|i| (7 * i + 1) as u8));
            }
            Some('^') => {
                if self.mark.replace(self.bytes.len()).is_some() {
                    return Err("`\\^` stands twice".to_owned());
                }
            }
            Some(other) => return Err(format!("`\\{other}` is no escape")),
            None => return Err("a backslash at the end".to_owned()),
        }
        Ok(())
    }

    fn repetition(&mut self) -> Result<(), String> {
        let rounds = self.count()?;
        if rounds == 0 || self.next() != Some('(') {
            return Err("`\\*` wants a count and `(`".to_owned());
        }
        let body = self.rest;
        self.depth += 1;
        for round in 0..rounds {
            self.rest = body;
            self.run(Some(round))?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    fn between(&mut self, open: char, close: char) -> Result<&'a str, String> {
        let inner = self.rest.strip_prefix(open).and_then(|rest| rest.split_once(close));
        let (inner, rest) = inner.ok_or_else(|| format!("expected {open}…{close}"))?;
        self.rest = rest;
        Ok(inner)
    }

    fn digits(&mut self) -> &'a str {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        digits
    }

    fn count(&mut self) -> Result<u64, String> {
        self.digits().parse().map_err(|_| "expected a count".to_owned())
    }
}

/// `7`, `i`, `2i` or `2i+7`.
fn number(expression: &str, round: Option<u64>) -> Result<u64, String> {
    let malformed = || format!("`{expression}` is no number");
    let plain = |digits: &str| digits.parse::<u64>().map_err(|_| malformed());
    let Some((factor, rest)) = expression.split_once('i') else {
        return plain(expression);
    };
    let round = round.ok_or("`i` outside of a repetition")?;
    let factor = if factor.is_empty() { 1 } else { plain(factor)? };
    let offset = match rest.strip_prefix('+') {
        Some(digits) => plain(digits)?,
        None if rest.is_empty() => 0,
        None => return Err(malformed()),
    };
    let product = factor.checked_mul(round);
    product.and_then(|product| product.checked_add(offset)).ok_or_else(malformed)
}
