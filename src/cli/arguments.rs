//! What did they write after the verb?

use super::End;
use barest::escape::Brief;
use std::ffi::{OsStr, OsString};

/// The arguments of one verb, taken one kind after the other: first flags and options by name,
/// then what is left by position.
pub struct Arguments {
    verb: &'static str,
    before_dashes: Vec<OsString>,
    /// Behind `--` everything is meant as it stands.
    behind_dashes: Vec<OsString>,
}

impl Arguments {
    pub fn new(verb: &'static str, mut all: Vec<OsString>) -> Arguments {
        let behind_dashes = match all.iter().position(|argument| argument == "--") {
            Some(dashes) => all.split_off(dashes).split_off(1),
            None => Vec::new(),
        };
        Arguments { verb, before_dashes: all, behind_dashes }
    }

    /// Takes a flag; true if it was there.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.before_dashes.len();
        self.before_dashes.retain(|argument| argument != name);
        self.before_dashes.len() < before
    }

    /// Takes an option with a value, written `NAME VALUE` or `NAME=VALUE`.
    pub fn option(&mut self, name: &str) -> Result<Option<String>, End> {
        let is_it = |argument: &OsString| {
            let text = argument.to_string_lossy();
            text == name || text.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
        };
        let Some(place) = self.before_dashes.iter().position(is_it) else {
            return Ok(None);
        };
        let argument = self.before_dashes.remove(place).to_string_lossy().into_owned();
        if self.before_dashes.iter().any(is_it) {
            return Err(self.usage(format!("{name} is given twice")));
        }
        if let Some((_, value)) = argument.split_once('=') {
            return Ok(Some(value.to_owned()));
        }
        match self.before_dashes.get(place) {
            Some(_) => Ok(Some(self.before_dashes.remove(place).to_string_lossy().into_owned())),
            None => Err(self.usage(format!("{name} needs a value"))),
        }
    }

    /// Takes an option that may be given many times, in the order given.
    pub fn options(&mut self, name: &str) -> Result<Vec<String>, End> {
        let mut values = Vec::new();
        let mut rest = std::mem::take(&mut self.before_dashes).into_iter();
        while let Some(argument) = rest.next() {
            let text = argument.to_string_lossy();
            if text == name {
                let value = rest.next();
                let value = value.ok_or_else(|| self.usage(format!("{name} needs a value")))?;
                values.push(self.text(name, value)?);
            } else if let Some(value) =
                text.strip_prefix(name).and_then(|rest| rest.strip_prefix('='))
            {
                let value = OsString::from(value);
                // What was not Unicode is no longer what it was.
                if argument.to_str().is_none() {
                    return Err(self.not_unicode(name));
                }
                values.push(self.text(name, value)?);
            } else {
                self.before_dashes.push(argument);
            }
        }
        Ok(values)
    }

    fn text(&self, name: &str, value: OsString) -> Result<String, End> {
        value.into_string().map_err(|_| self.not_unicode(name))
    }

    fn not_unicode(&self, name: &str) -> End {
        self.usage(format!("the value of {name} is not Unicode"))
    }

    /// What is left, by position. Anything that still looks like an option is one we do not have.
    pub fn positional(self) -> Result<Vec<OsString>, End> {
        let looks_like_an_option = |argument: &&OsString| {
            argument.as_encoded_bytes().starts_with(b"-") && *argument != "-"
        };
        if let Some(unknown) = self.before_dashes.iter().find(looks_like_an_option) {
            let unknown = show(unknown);
            return Err(self.usage(format!("there is no option `{unknown}`")));
        }
        Ok(self.before_dashes.into_iter().chain(self.behind_dashes).collect())
    }

    /// The error that the arguments were not understood.
    pub fn usage(&self, line: String) -> End {
        usage(self.verb, line)
    }
}

/// The error that the arguments of a verb were not understood.
pub fn usage(verb: &str, line: String) -> End {
    End::Usage(format!("{verb}: {line}; see barest {verb} --help"))
}

/// An argument as a message shows it.
pub fn show(argument: &OsStr) -> String {
    Brief(&argument.to_string_lossy()).to_string()
}
