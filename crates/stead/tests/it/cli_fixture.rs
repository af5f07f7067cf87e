//! A temporary workspace and state directory in which tests run the binary.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;
use testkit::session_fixture::SessionFixture;

pub(crate) struct CliFixture {
    pub(crate) directory: TempDir,
}

pub(crate) struct CliTestCommandOutput {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl CliTestCommandOutput {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("text")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).expect("JSON")
    }
}

impl CliFixture {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(directory.path().join("ws")).expect("a workspace");
        Self { directory }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("ws")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
        command
            .args(arguments)
            .current_dir(self.workspace())
            .env("USER", "tester")
            .env("XDG_STATE_HOME", self.state())
            .env_remove("NO_COLOR")
            // The help texts are wrapped at the width that this variable names.
            .env_remove("COLUMNS");
        command
    }

    /// Starts a server such as `stead mcp`, and connects to its standard input and output.
    pub(crate) fn connect(&self, arguments: &[&str]) -> SessionFixture {
        SessionFixture::start(&mut self.command(arguments))
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CliTestCommandOutput {
        self.run_with_input(arguments, b"")
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> CliTestCommandOutput {
        Self::run_command(&mut self.command(arguments), input)
    }

    pub(crate) fn run_command(command: &mut Command, input: &[u8]) -> CliTestCommandOutput {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        // A command that needs no input may already have exited.
        drop(stdin.write_all(input));
        drop(stdin);
        let output = child.wait_with_output().expect("the command exits");
        CliTestCommandOutput {
            code: output.status.code().expect("the command was not killed"),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    pub(crate) fn run_successfully(&self, arguments: &[&str]) -> CliTestCommandOutput {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        ran
    }
}
