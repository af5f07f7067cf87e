//! The stream of a command that exports or imports: a file that the person names, or standard input and output.

use std::{
    io::{self, BufWriter, Read, Write},
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use stead_engine::CallByteStream;
use stead_protocols::definition::ToolStreamDirection;

use crate::{
    host_files,
    output::{self, CommandError},
};

pub(crate) struct CommandStream {
    input: Mutex<Box<dyn Read + Send>>,
    output: Mutex<Box<dyn Write + Send>>,
    /// Whether the program that reads the output has closed the pipe.
    is_closed: AtomicBool,
}

impl CommandStream {
    pub(crate) fn open(direction: ToolStreamDirection, file: Option<&Path>) -> Result<Self, CommandError> {
        let (input, output): (Box<dyn Read + Send>, Box<dyn Write + Send>) = match (direction, file) {
            (ToolStreamDirection::Input, Some(file)) => (Box::new(host_files::open(file)?), Box::new(io::sink())),
            (ToolStreamDirection::Input, None) => (Box::new(io::stdin()), Box::new(io::sink())),
            (ToolStreamDirection::Output, Some(file)) => {
                (Box::new(io::empty()), Box::new(host_files::create_new(file)?))
            }
            (ToolStreamDirection::Output, None) => (Box::new(io::empty()), Box::new(BufWriter::new(io::stdout()))),
        };
        Ok(Self { input: Mutex::new(input), output: Mutex::new(output), is_closed: AtomicBool::new(false) })
    }

    /// Writes what is buffered. A closed pipe is no error of the command.
    pub(crate) fn finish(&self) -> Result<(), CommandError> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(CommandError::OutputClosed);
        }
        Ok(self.output.lock().unwrap_or_else(PoisonError::into_inner).flush()?)
    }
}

impl CallByteStream for CommandStream {
    fn begin_output(&self, left_out: u64) {
        if left_out > 0 {
            output::print_note(&format!("omitted {left_out} links, pipes or devices, which archives cannot contain"));
        }
    }

    fn write_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let written = self.output.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes);
        if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        written
    }

    fn read_bytes(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).read(buffer)
    }
}
