//! Where does the text go, and how wide may it be?
//!
//! Standard output, buffered. No colours. Lines are fitted to a terminal; what goes into a file or
//! a pipe is never cut.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

/// Standard output.
pub struct Output {
    writer: BufWriter<Stdout>,
    columns: Option<usize>,
}

impl Output {
    pub fn new() -> Output {
        let stdout = io::stdout();
        let columns = stdout.is_terminal().then(terminal_columns);
        Output { writer: BufWriter::with_capacity(64 << 10, stdout), columns }
    }

    /// Characters of a line on the terminal; `None` if the output goes elsewhere.
    pub fn columns(&self) -> Option<usize> {
        self.columns
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// What the terminal says; else what the environment says; else what terminals used to have.
fn terminal_columns() -> usize {
    let from_environment = || std::env::var("COLUMNS").ok()?.parse().ok();
    barest::terminal_columns().or_else(from_environment).unwrap_or(80).max(20)
}
