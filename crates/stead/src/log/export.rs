//! `stead log export`: the journal as lines, into a new file or down a pipe whose reader may go away.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use crate::{
    outside,
    show::{self, Exit, Outcome, Problem},
    wire::Opened,
};

/// Writes the journal to a file that does not exist yet, or to standard output.
pub(super) fn run(opened: &Opened, file: Option<&Path>) -> Outcome {
    let lines = match file {
        Some(path) => {
            let mut out = outside::create(path)?;
            let lines = opened.local.export_log(&mut out)?;
            out.flush().map_err(|error| outside::problem(path, &error))?;
            lines
        }
        None => {
            let mut out = Pipe { out: BufWriter::new(io::stdout().lock()), reader: Reader::There };
            let exported = opened.local.export_log(&mut out);
            // The journal knows only that it could not write; why is known here.
            let lines = match (exported, out.reader) {
                (Err(_), Reader::Gone) => return Err(Problem::Closed),
                (exported, _) => exported?,
            };
            out.flush()?;
            lines
        }
    };
    show::remark(&format!("{lines} lines exported"));
    Ok(Exit::Fine)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

/// Writes on, and remembers when the reader has gone.
struct Pipe<W> {
    out: W,
    reader: Reader,
}

impl<W> Pipe<W> {
    fn noted<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.reader = Reader::Gone;
        }
        outcome
    }
}

impl<W: Write> Write for Pipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outcome = self.out.write(bytes);
        self.noted(outcome)
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.out.flush();
        self.noted(outcome)
    }
}
