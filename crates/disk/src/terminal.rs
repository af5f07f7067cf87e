//! Prompts for secrets on the controlling terminal, so that a program connected to standard input cannot answer.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::fd::AsFd,
};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

const LINE_BYTES_MAX: usize = 4096;

/// The control characters of Ctrl-C, Ctrl-\ and Ctrl-Z.
const INTERRUPT_KEYS: [u8; 3] = [0x03, 0x1c, 0x1a];

/// Prompts on the terminal and reads one line without echo, such as a password. If the user presses Ctrl-C, the prompt
/// restores the echo and fails with [`io::ErrorKind::Interrupted`].
pub fn prompt_hidden(question: &str) -> io::Result<String> {
    read_hidden_line(&OpenOptions::new().read(true).write(true).open("/dev/tty")?, question)
}

/// Prompts on the terminal and reads one line with echo.
pub fn prompt(question: &str) -> io::Result<String> {
    read_line(&OpenOptions::new().read(true).write(true).open("/dev/tty")?, question)
}

fn read_hidden_line(terminal: &File, question: &str) -> io::Result<String> {
    let original_settings = tcgetattr(terminal.as_fd()).map_err(io::Error::from)?;
    let mut hidden = original_settings.clone();
    // A signal would end the program before the terminal is restored. So the interrupt keys end the line and send no
    // signal.
    hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    hidden.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT_KEYS[0];
    hidden.special_codes[SpecialCodeIndex::VEOL2] = INTERRUPT_KEYS[1];
    let restore = TerminalEchoGuard { terminal, original_settings };
    tcsetattr(terminal.as_fd(), OptionalActions::Flush, &hidden).map_err(io::Error::from)?;
    let answer = read_line(terminal, question);
    drop(restore);
    drop((&*terminal).write_all(b"\n"));
    match answer {
        Ok(answer) if answer.bytes().any(|byte| INTERRUPT_KEYS.contains(&byte)) => {
            Err(io::ErrorKind::Interrupted.into())
        }
        Ok(_) | Err(_) => answer,
    }
}

/// One read call is enough, because a read from a terminal ends at the end of a line.
fn read_line(mut terminal: &File, question: &str) -> io::Result<String> {
    terminal.write_all(question.as_bytes())?;
    terminal.flush()?;
    let mut answer = vec![0; LINE_BYTES_MAX];
    let length = terminal.read(&mut answer)?;
    answer.truncate(length);
    let answer = String::from_utf8(answer).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(answer.trim_end_matches(['\n', '\r']).to_owned())
}

struct TerminalEchoGuard<'t> {
    terminal: &'t File,
    original_settings: Termios,
}

impl Drop for TerminalEchoGuard<'_> {
    fn drop(&mut self) {
        // An error means that the terminal is closed; then there are no modes to restore.
        match tcsetattr(self.terminal.as_fd(), OptionalActions::Flush, &self.original_settings) {
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

    fn type_keys(keys: &[u8]) -> (io::Result<String>, bool) {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keyboard).expect("grant");
        unlockpt(&keyboard).expect("unlock");
        let name = ptsname(&keyboard, Vec::new()).expect("name");
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let screen: File = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).expect("open").into();
        let mut keyboard = File::from(keyboard);
        let answer = thread::scope(|scope| {
            let answer = scope.spawn(|| read_hidden_line(&screen, "secret: "));
            let mut result = [0; 8];
            keyboard.read_exact(&mut result).expect("the question");
            assert_eq!(&result, b"secret: ");
            keyboard.write_all(keys).expect("type");
            answer.join().expect("an answer")
        });
        let echoes = tcgetattr(&screen).expect("modes").local_modes.contains(LocalModes::ECHO);
        (answer, echoes)
    }

    #[test]
    fn hidden_prompt_reads_a_line_and_restores_the_echo() {
        let (answer, echoes) = type_keys(b"correct h\xc3\xb6rse\n");
        assert_eq!(answer.expect("an answer"), "correct hörse");
        assert!(echoes);
    }

    #[test]
    fn echo_is_restored_after_an_interrupt() {
        // The line feed ends the test even if the interrupt keys are not recognised.
        for keys in [&b"half\x03\n"[..], b"\x03\n", b"half\x1c\n", b"half\x1a\n"] {
            let (answer, echoes) = type_keys(keys);
            assert_eq!(answer.expect_err("an interrupt").kind(), io::ErrorKind::Interrupted, "{keys:?}");
            assert!(echoes, "{keys:?}");
        }
    }
}
