//! A place to try the binary: a workspace and a state directory that go away afterwards.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Bench {
    pub(crate) place: TempDir,
}

/// How a run ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.out.clone()).expect("text")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.out).expect("JSON")
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().expect("a place");
        std::fs::create_dir(place.path().join("ws")).expect("a workspace");
        Self { place }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.place.path().join("ws")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.place.path().join("state")
    }

    /// The binary with its place set.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
        command
            .args(arguments)
            .current_dir(self.workspace())
            .env("USER", "tester")
            .env("XDG_STATE_HOME", self.state())
            .env_remove("NO_COLOR");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, b"")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        Self::drive(&mut self.command(arguments), input)
    }

    /// Runs a command to its end.
    pub(crate) fn drive(command: &mut Command, input: &[u8]) -> Ran {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdin = child.stdin.take().expect("it has an input");
        // A command that needs no input may be gone already.
        drop(stdin.write_all(input));
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        Ran {
            code: output.status.code().expect("it was not killed"),
            out: output.stdout,
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// A run that must succeed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
        ran
    }
}
