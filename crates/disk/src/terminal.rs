//! Asking the person at the terminal for something that must not be shown. Talks to the controlling terminal itself, so
//! that a program which holds standard input cannot answer.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::fd::AsFd,
};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Longest line that is read.
const LINE_BYTES_MAX: u64 = 4096;

/// Shows a question on the terminal and reads one line without showing it.
pub fn ask_hidden(question: &str) -> io::Result<String> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let shown = tcgetattr(terminal.as_fd()).map_err(io::Error::from)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    let restore = Restore { terminal: &terminal, shown };
    tcsetattr(terminal.as_fd(), OptionalActions::Flush, &hidden).map_err(io::Error::from)?;
    let answer = line(&terminal, question);
    drop(restore);
    drop((&terminal).write_all(b"\n"));
    answer
}

/// Shows a question on the terminal and reads one line.
pub fn ask(question: &str) -> io::Result<String> {
    line(&OpenOptions::new().read(true).write(true).open("/dev/tty")?, question)
}

fn line(mut terminal: &File, question: &str) -> io::Result<String> {
    terminal.write_all(question.as_bytes())?;
    terminal.flush()?;
    let mut answer = String::new();
    BufReader::new(io::Read::take(terminal, LINE_BYTES_MAX)).read_line(&mut answer)?;
    Ok(answer.trim_end_matches(['\n', '\r']).to_owned())
}

/// Shows again what is typed, whatever happens in between.
struct Restore<'t> {
    terminal: &'t File,
    shown: Termios,
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        // A terminal that is gone has nothing to show again.
        match tcsetattr(self.terminal.as_fd(), OptionalActions::Flush, &self.shown) {
            Ok(()) | Err(_) => {}
        }
    }
}
