//! Asking the person at the terminal for something that must not be shown. Talks to the controlling terminal itself, so
//! that a program which holds standard input cannot answer.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::fd::AsFd,
};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// Longest line that is read.
const LINE_BYTES_MAX: usize = 4096;

/// What Ctrl-C, Ctrl-\ and Ctrl-Z send.
const INTERRUPTS: [u8; 3] = [0x03, 0x1c, 0x1a];

/// Shows a question on the terminal and reads one line without showing it. Whoever interrupts it gets
/// [`io::ErrorKind::Interrupted`], and a terminal that shows again what is typed.
pub fn ask_hidden(question: &str) -> io::Result<String> {
    hidden(&OpenOptions::new().read(true).write(true).open("/dev/tty")?, question)
}

/// Shows a question on the terminal and reads one line.
pub fn ask(question: &str) -> io::Result<String> {
    line(&OpenOptions::new().read(true).write(true).open("/dev/tty")?, question)
}

fn hidden(terminal: &File, question: &str) -> io::Result<String> {
    let shown = tcgetattr(terminal.as_fd()).map_err(io::Error::from)?;
    let mut hidden = shown.clone();
    // A signal would end the program before the terminal is as it was. The two keys that a person gives up with end the
    // line instead.
    hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    hidden.special_codes[SpecialCodeIndex::VEOL] = INTERRUPTS[0];
    hidden.special_codes[SpecialCodeIndex::VEOL2] = INTERRUPTS[1];
    let restore = Restore { terminal, shown };
    tcsetattr(terminal.as_fd(), OptionalActions::Flush, &hidden).map_err(io::Error::from)?;
    let answer = line(terminal, question);
    drop(restore);
    drop((&*terminal).write_all(b"\n"));
    match answer {
        Ok(answer) if answer.bytes().any(|byte| INTERRUPTS.contains(&byte)) => {
            Err(io::ErrorKind::Interrupted.into())
        }
        Ok(_) | Err(_) => answer,
    }
}

/// One line as the terminal gives it: a read ends where the terminal says that the line does, with or without a line feed.
fn line(mut terminal: &File, question: &str) -> io::Result<String> {
    terminal.write_all(question.as_bytes())?;
    terminal.flush()?;
    let mut answer = vec![0; LINE_BYTES_MAX];
    let length = terminal.read(&mut answer)?;
    answer.truncate(length);
    let answer = String::from_utf8(answer).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
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

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::{
        fs::OFlags,
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    };

    use super::*;

    /// Types at a terminal, and tells what was answered and whether the terminal shows what is typed afterwards.
    fn typed(keys: &[u8]) -> (io::Result<String>, bool) {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keyboard).expect("grant");
        unlockpt(&keyboard).expect("unlock");
        let name = ptsname(&keyboard, Vec::new()).expect("name");
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let screen: File = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).expect("open").into();
        let mut keyboard = File::from(keyboard);
        let answer = thread::scope(|scope| {
            let answer = scope.spawn(|| hidden(&screen, "secret: "));
            let mut asked = [0; 8];
            keyboard.read_exact(&mut asked).expect("the question");
            assert_eq!(&asked, b"secret: ");
            keyboard.write_all(keys).expect("type");
            answer.join().expect("an answer")
        });
        let shows = tcgetattr(&screen).expect("modes").local_modes.contains(LocalModes::ECHO);
        (answer, shows)
    }

    #[test]
    fn a_line_is_read_without_showing_it() {
        let (answer, shows) = typed(b"correct h\xc3\xb6rse\n");
        assert_eq!(answer.expect("an answer"), "correct hörse");
        assert!(shows);
    }

    #[test]
    fn whoever_gives_up_has_a_terminal_that_shows_again() {
        // The line feed is for a reader that does not know the keys: it must not wait for ever.
        for keys in [&b"half\x03\n"[..], b"\x03\n", b"half\x1c\n", b"half\x1a\n"] {
            let (answer, shows) = typed(keys);
            assert_eq!(answer.expect_err("an interrupt").kind(), io::ErrorKind::Interrupted, "{keys:?}");
            assert!(shows, "{keys:?}");
        }
    }
}
