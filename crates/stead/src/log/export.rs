//! `stead log export`: writes the journal as JSON lines to a new file or to standard output.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use crate::{
    host_files,
    open_workspace::CommandWorkspace,
    output::{self, CommandError, CommandExit, CommandResult},
};

pub(super) fn run(opened: &CommandWorkspace, file: Option<&Path>) -> CommandResult {
    let lines = match file {
        Some(path) => {
            let mut out = host_files::create_new(path)?;
            let lines = opened.local.export_journal(&mut out)?;
            out.flush().map_err(|error| host_files::file_error(path, &error))?;
            lines
        }
        None => {
            let mut out =
                ExportPipe { output: BufWriter::new(io::stdout().lock()), reader: PipeReaderState::Connected };
            let exported = opened.local.export_journal(&mut out);
            // The journal reports only a write error; a closed pipe is detected here.
            let lines = match (exported, out.reader) {
                (Err(_), PipeReaderState::Disconnected) => return Err(CommandError::OutputClosed),
                (exported, _) => exported?,
            };
            out.flush()?;
            lines
        }
    };
    output::print_note(&format!("{lines} lines exported"));
    Ok(CommandExit::Success)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PipeReaderState {
    Connected,
    Disconnected,
}

/// A writer that remembers whether the reader closed the pipe.
struct ExportPipe<W> {
    output: W,
    reader: PipeReaderState,
}

impl<W> ExportPipe<W> {
    fn note_closed_pipe<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.reader = PipeReaderState::Disconnected;
        }
        outcome
    }
}

impl<W: Write> Write for ExportPipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outcome = self.output.write(bytes);
        self.note_closed_pipe(outcome)
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.output.flush();
        self.note_closed_pipe(outcome)
    }
}
