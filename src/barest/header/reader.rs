//! How is a header read in one walk?
//!
//! Member by member: metadata at most once, and tensors. Each entry is first tried with the texts
//! of earlier ones (`template.rs`); the general path reads what they do not fit, and is the only
//! one that fails.

use super::super::error::{Error, ErrorKind, Result};
use super::super::json::{Cursor, Text};
use super::super::names::hash;
use super::entry::{self, Entry};
use super::metadata::{self, Pair};
use super::strings::{Name, Resolved};
use super::template::{Template, plain_name_end};
use super::{Record, room};

/// What the walk brings home.
#[derive(Default)]
pub struct Parts {
    pub records: Vec<Record>,
    pub dims: Vec<u64>,
    pub metadata: Option<Vec<Pair>>,
    pub resolved: Resolved,
    pub departures: Departures,
}

/// What remarks cannot see in the records.
#[derive(Default)]
pub struct Departures {
    pub metadata_is_null: bool,
    pub out_of_order: bool,
    pub extra_fields: usize,
}

/// The key that names no tensor.
const METADATA_KEY: &str = "__metadata__";

/// What an entry takes at least: a name, three fields, two numbers.
const SHORTEST_ENTRY: usize = 48;

/// What an entry takes mostly: more room than this guess is made when it is needed.
const USUAL_ENTRY: usize = 96;

/// A file has few kinds of entries: its dtypes, in one style of writing.
const TEMPLATES: usize = 4;

struct Reader<'a> {
    text: &'a str,
    cursor: Cursor<'a>,
    /// Those used last stand first.
    templates: Vec<Template>,
    parts: Parts,
}

/// Reads the text of a header. Whether it is true is for others to prove.
pub fn read(text: &str) -> Result<Parts> {
    let entries = text.len() / USUAL_ENTRY;
    let parts = Parts {
        records: Vec::with_capacity(entries),
        dims: Vec::with_capacity(entries * 2),
        ..Parts::default()
    };
    let templates = Vec::with_capacity(TEMPLATES);
    Reader { text, cursor: Cursor::new(text), templates, parts }.read()
}

impl Reader<'_> {
    fn read(mut self) -> Result<Parts> {
        // 1. White space and a brace: some writers pad in front.
        let begin = match self.text.starts_with('\u{feff}') {
            true => "`{` to begin the header, not a byte order mark",
            false => "`{` to begin the header",
        };
        self.cursor.expect(b'{', begin)?;
        self.cursor.skip_blanks();
        // 2. Members: metadata at most once, and tensors.
        let mut metadata_key = None;
        let mut more = !self.cursor.take(b'}');
        while more {
            self.like_earlier_ones();
            let key = self.cursor.string("a name in quotes")?;
            self.cursor.expect(b':', "`:` after the name")?;
            self.cursor.skip_blanks();
            let name = key.resolve(self.text);
            let mut entry = None;
            if name == METADATA_KEY {
                if let Some(first) = metadata_key.replace(key.start as usize) {
                    let kind = ErrorKind::DuplicateMetadata { first: Error::offset_of(first) };
                    return Err(Error::at_header(kind, key.start as usize));
                }
                let pairs = metadata::read(&mut self.cursor, self.text, &mut self.parts.resolved)?;
                self.parts.departures.metadata_is_null = pairs.is_none();
                self.parts.metadata = pairs;
            } else {
                entry = Some(self.tensor(key, &name).map_err(|error| error.in_tensor(&name))?);
            }
            more = self.cursor.another(b'}', "`,` or `}` between entries")?;
            if let Some(entry) = entry.filter(|_| self.cursor.peek() == Some(b'"')) {
                self.learn(key, &entry);
            }
        }
        // 3. Nothing but white space up to the end.
        self.cursor.skip_blanks();
        match self.cursor.peek() {
            None => Ok(self.parts),
            Some(_) => Err(self.cursor.unexpected("nothing but white space after the header")),
        }
    }

    fn tensor(&mut self, key: Text, name: &str) -> Result<Entry> {
        let dims_start = self.parts.dims.len();
        let entry = entry::read(&mut self.cursor, self.text, &mut self.parts.dims)?;
        let name_kept = self.parts.resolved.keep(key, self.text);
        let left = self.text.len() - self.cursor.position();
        self.parts.push(&entry, name_kept, hash(name), dims_start, left);
        Ok(entry)
    }

    fn learn(&mut self, key: Text, entry: &Entry) {
        let next = self.cursor.position();
        let template = Template::learn(self.text.as_bytes(), key.range().end, entry, next);
        if let Some(template) = template {
            self.templates.truncate(TEMPLATES - 1);
            self.templates.insert(0, template);
        }
    }

    /// Reads entries for as long as they are like earlier ones, from opening quote to opening
    /// quote, and leaves the cursor at the first that is not.
    fn like_earlier_ones(&mut self) {
        let text = self.text.as_bytes();
        let mut quote = self.cursor.position();
        while text.get(quote) == Some(&b'"') {
            let Some(name_end) = plain_name_end(text, quote + 1) else { break };
            let name = &self.text[quote + 1..name_end];
            if name == METADATA_KEY {
                break;
            }
            let dims_start = self.parts.dims.len();
            let mut attempts = self.templates.iter();
            let found = attempts.find_map(|template| {
                let quick = template.read(text, quote + 1..name_end, &mut self.parts.dims);
                if quick.is_none() {
                    self.parts.dims.truncate(dims_start);
                }
                quick
            });
            let place = self.templates.len() - attempts.len();
            match found {
                Some(quick) => {
                    let kept = Name::plain(quick.name.clone());
                    let left = text.len() - quick.next;
                    self.parts.push(&quick.entry, kept, hash(name), dims_start, left);
                    quote = quick.next;
                    if place > 1 {
                        self.templates.swap(0, place - 1);
                    }
                }
                None => break,
            }
        }
        self.cursor.move_to(quote);
    }
}

impl Parts {
    /// Keeps an entry whose dimensions are at the end of the arena, where the header has `left`
    /// more bytes.
    #[inline]
    fn push(&mut self, entry: &Entry, name: Name, hash: u32, dims_start: usize, left: usize) {
        self.departures.extra_fields += usize::from(entry.extra);
        room(&mut self.records, left, SHORTEST_ENTRY);
        self.records.push(Record {
            begin: entry.begin,
            end: entry.end,
            name,
            dims_start: dims_start as u32,
            rank: entry.rank as u32,
            hash,
            dtype: entry.dtype,
        });
    }
}
