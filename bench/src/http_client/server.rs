//! A server process for a benchmark or the soak test.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

/// A server process, which is killed when dropped.
pub(crate) struct HttpServerProcess {
    child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Drop for HttpServerProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl HttpServerProcess {
    /// Starts a server with the given command, which makes it listen at `address`.
    pub(crate) fn start(command: &mut Command, address: String) -> Result<Self, String> {
        let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        Ok(Self { child, address, token: String::new() })
    }

    /// Starts stead with one workspace.
    pub(crate) fn start_stead(binary: &Path, workspace: &Path, state: &Path) -> Result<Self, String> {
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--print-token", "--workspace"]).arg(workspace);
        Self::start_printing_address(command.arg("--state").arg(state))
    }

    /// Starts stead with a workspace registry.
    pub(crate) fn start_stead_registry(binary: &Path, directory: &Path, flags: &[&str]) -> Result<Self, String> {
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--print-token", "--workspaces"]).arg(directory);
        Self::start_printing_address(command.args(flags))
    }

    /// Starts stead and reads its address and token from its output.
    fn start_printing_address(command: &mut Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = Self::start(command, String::new())?;
        let mut lines = BufReader::new(server.child.stderr.take().ok_or("no standard error")?).lines();
        while server.address.is_empty() || server.token.is_empty() {
            let line = lines.next().ok_or("the server ended")?.map_err(|error| error.to_string())?;
            let word = |after: &str| {
                let (_, rest) = line.split_once(after)?;
                rest.split([' ', ',']).next().map(|word| word.trim_end_matches(':').to_owned())
            };
            if let Some(address) = word("on http://") {
                server.address = address;
            }
            if let Some(token) = word("(valid until the server stops): ") {
                server.token = token;
            }
        }
        // Later output must not fill the pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(server)
    }

    /// Starts a server that prints its address on the first line.
    pub(crate) fn start_with_first_line_address(command: &mut Command) -> Result<Self, String> {
        let mut server = Self::start(command.stdin(Stdio::null()).stdout(Stdio::piped()), String::new())?;
        let stdout = server.child.stdout.take().ok_or("no standard output")?;
        BufReader::new(stdout).read_line(&mut server.address).map_err(|error| error.to_string())?;
        server.address.truncate(server.address.trim_end().len());
        Ok(server)
    }

    /// The resident memory of the server in kilobytes.
    pub(crate) fn resident_kb(&self) -> Result<u64, String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.map_err(|error| error.to_string())?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        line.trim().trim_end_matches(" kB").parse().map_err(|_| format!("not a number: '{line}'"))
    }

    /// The head of an HTTP request with the access token, without the final empty line.
    pub(crate) fn request_head(&self, line: &str) -> String {
        let token = match self.token.as_str() {
            "" => String::new(),
            token => format!("Authorization: Bearer {token}\r\n"),
        };
        format!("{line} HTTP/1.1\r\nHost: {}\r\n{token}", self.address)
    }

    /// Sends SIGTERM and waits for the exit.
    pub(crate) fn terminate(mut self) -> Result<(), String> {
        crate::run_program(Command::new("kill").arg(self.child.id().to_string()))?;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}")) }
    }
}
