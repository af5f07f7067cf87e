//! Starts a `stead serve` process for tests, collects its standard error and stops it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_stead");
pub(crate) const LINE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Default)]
struct StderrLines {
    lines: Mutex<Vec<String>>,
    line_added: Condvar,
}

pub(crate) type TestServerCommandBuilderFn = fn(&Path, &[&str]) -> Command;

pub(crate) struct ServerProcess {
    pub(crate) child: Child,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) address: String,
    command_line: TestServerCommandBuilderFn,
    stderr: Arc<StderrLines>,
}

impl ServerProcess {
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_at(tempfile::tempdir().unwrap(), flags, &[])
    }

    pub(crate) fn start_at(directory: tempfile::TempDir, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        std::fs::create_dir_all(directory.path().join("ws")).unwrap();
        std::fs::write(directory.path().join("ws/a.txt"), "one\n").unwrap();
        let mut command = stead_command(directory.path(), &["serve"]);
        command.args(flags).envs(variables.iter().copied());
        let server = Self::start_command(directory, command, stead_command);
        let printed = server.stderr_lines();
        let first: Vec<&String> = printed.iter().take_while(|line| !is_listening_line(line)).collect();
        assert!(!first.iter().any(|line| line.contains("stead_run_")), "a secret in a log: {first:?}");
        server
    }

    pub(crate) fn start_command(
        directory: tempfile::TempDir,
        mut command: Command,
        command_line: TestServerCommandBuilderFn,
    ) -> Self {
        let mut child = command
            // The configuration of the user who runs the tests must not apply.
            .env("XDG_CONFIG_HOME", directory.path().join("config"))
            .env_remove("STEAD_LONG")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = Arc::new(StderrLines::default());
        collect_stderr(&mut child, &stderr);
        let mut server = Self { child, directory, address: String::new(), command_line, stderr };
        let line = server.wait_for_line(is_listening_line);
        if let Some((_, rest)) = line.split_once("://") {
            server.address = rest.split(':').take(2).collect::<Vec<_>>().join(":");
        }
        server
    }

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

    pub(crate) fn stderr_lines(&self) -> Vec<String> {
        self.stderr.lines.lock().unwrap().clone()
    }

    pub(crate) fn send_raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LINE_TIMEOUT)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub(crate) fn send_request(&self, line: &str, headers: &[&str], body: &str) -> String {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        self.send_raw(&format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            self.address,
            body.len()
        ))
    }

    pub(crate) fn run_cli(&self, arguments: &[&str]) -> String {
        let output = (self.command_line)(self.directory.path(), arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn get(&self, path: &str, headers: &str) -> (u16, String) {
        exchange_http(TcpStream::connect(&self.address).unwrap(), &self.address, path, headers)
    }

    pub(crate) fn send_signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name]).arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn terminate(mut self) {
        self.send_signal("TERM");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

fn is_listening_line(line: &str) -> bool {
    line.contains("on http://") || line.contains("on https://") || line.contains("on the socket ")
}

fn collect_stderr(child: &mut Child, collected: &Arc<StderrLines>) {
    let (lines, collected) = (BufReader::new(child.stderr.take().unwrap()).lines(), collected.clone());
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            collected.lines.lock().unwrap().push(line);
            collected.line_added.notify_all();
        }
    });
}

pub(crate) fn stead_command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).arg("--workspace").arg(directory.join("ws")).arg("--state").arg(directory.join("state"));
    command
}

pub(crate) fn exchange_http(mut stream: impl Read + Write, host: &str, path: &str, headers: &str) -> (u16, String) {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}
