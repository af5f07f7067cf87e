//! `stead serve` in a process of its own, over a scratch workspace or whatever a test serves: started, listened to, ended.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_stead");
/// Nothing here takes longer unless something hangs.
pub(crate) const LINE_TIMEOUT: Duration = Duration::from_secs(60);

/// What a server has said so far on standard error.
#[derive(Default)]
struct StderrLines {
    lines: Mutex<Vec<String>>,
    line_added: Condvar,
}

/// How the command line is told what the server serves.
pub(crate) type CommandBuilderFn = fn(&Path, &[&str]) -> Command;

/// A server.
pub(crate) struct ServerProcess {
    pub(crate) child: Child,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) address: String,
    command_line: CommandBuilderFn,
    stderr: Arc<StderrLines>,
}

impl ServerProcess {
    /// Over a scratch workspace that holds `a.txt`.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_at(tempfile::tempdir().unwrap(), flags, &[])
    }

    /// In this place, which may hold more, with these variables.
    pub(crate) fn start_at(place: tempfile::TempDir, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        std::fs::create_dir_all(place.path().join("ws")).unwrap();
        std::fs::write(place.path().join("ws/a.txt"), "one\n").unwrap();
        let mut command = stead_command(place.path(), &["serve"]);
        command.args(flags).envs(variables.iter().copied());
        let server = Self::start_command(place, command, stead_command);
        let said = server.stderr_lines();
        let first: Vec<&String> = said.iter().take_while(|line| !is_listening_line(line)).collect();
        assert!(!first.iter().any(|line| line.contains("stead_run_")), "a secret in a log: {first:?}");
        server
    }

    /// As this command starts it, with a command line that means the same; takes connections when this returns.
    pub(crate) fn start_command(
        place: tempfile::TempDir,
        mut command: Command,
        command_line: CommandBuilderFn,
    ) -> Self {
        let mut child = command
            // The settings of whoever runs the tests are not the tests'.
            .env("XDG_CONFIG_HOME", place.path().join("config"))
            .env_remove("STEAD_LONG")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let heard = Arc::new(StderrLines::default());
        collect_stderr(&mut child, &heard);
        let mut server = Self { child, directory: place, address: String::new(), command_line, stderr: heard };
        let line = server.wait_for_line(is_listening_line);
        if let Some((_, rest)) = line.split_once("://") {
            server.address = rest.split(':').take(2).collect::<Vec<_>>().join(":");
        }
        server
    }

    /// The first line on standard error that fits, once it is there.
    pub(crate) fn wait_for_line(&self, mut fits: impl FnMut(&str) -> bool) -> String {
        let mut seen = 0;
        let mut lines = self.stderr.lines.lock().unwrap();
        loop {
            if let Some(line) = lines[seen..].iter().find(|line| fits(line)) {
                return line.clone();
            }
            seen = lines.len();
            let (next, waited) = self.stderr.line_added.wait_timeout(lines, LINE_TIMEOUT).unwrap();
            lines = next;
            assert!(!waited.timed_out() || lines.len() > seen, "it never came: {lines:?}");
        }
    }

    /// Everything it has said on standard error so far.
    pub(crate) fn stderr_lines(&self) -> Vec<String> {
        self.stderr.lines.lock().unwrap().clone()
    }

    /// A request as it is written here, on a connection of its own; the answer, head and body.
    pub(crate) fn send_raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LINE_TIMEOUT)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A request with these headers and this body.
    pub(crate) fn send_request(&self, line: &str, headers: &[&str], body: &str) -> String {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        self.send_raw(&format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            self.address,
            body.len()
        ))
    }

    /// What the command line answers.
    pub(crate) fn run_cli(&self, arguments: &[&str]) -> String {
        let output = (self.command_line)(self.directory.path(), arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn get(&self, path: &str, headers: &str) -> (u16, String) {
        exchange_http(TcpStream::connect(&self.address).unwrap(), &self.address, path, headers)
    }

    /// Sends a signal.
    pub(crate) fn send_signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name]).arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
    }

    /// Asks it to end, as a service manager does.
    pub(crate) fn terminate(mut self) {
        self.send_signal("TERM");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Only when a test broke off.
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Whether this is what a server says when it listens.
fn is_listening_line(line: &str) -> bool {
    line.contains("on http://") || line.contains("on https://") || line.contains("on the socket ")
}

fn collect_stderr(child: &mut Child, heard: &Arc<StderrLines>) {
    let (lines, heard) = (BufReader::new(child.stderr.take().unwrap()).lines(), heard.clone());
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            heard.lines.lock().unwrap().push(line);
            heard.line_added.notify_all();
        }
    });
}

pub(crate) fn stead_command(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).arg("--workspace").arg(place.join("ws")).arg("--state").arg(place.join("state"));
    command
}

pub(crate) fn exchange_http(mut stream: impl Read + Write, host: &str, path: &str, headers: &str) -> (u16, String) {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}
