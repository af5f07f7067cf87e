//! The part of `xtask` that the benchmarks also use: starting programs, and installing the tools of the tests.
#![expect(clippy::print_stdout, reason = "a tool for people at a terminal")]

pub mod needs;

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

/// The version of the stead project.
pub const PROJECT_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the root directory of the repository.
pub fn repository_root() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).map_or_else(|| own.clone(), PathBuf::from)
}

/// Runs a program in the repository root with inherited output, and fails if the program fails.
pub fn run_program(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.current_dir(repository_root()).status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
}

/// Whether the program can be started with these arguments and succeeds.
pub fn is_installed(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
