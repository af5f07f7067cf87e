//! `cargo xtask deny` checks licences, versions and sources of dependencies with cargo-deny. Security advisories are
//! not checked, because they change without a change of the project.

use std::process::Command;

use xtask_tools::needs;

/// An exception in `deny.toml` that is not needed is an error.
const UNNEEDED_EXCEPTION_LINTS: &[&str] = &["-D", "unmatched-skip", "-D", "unnecessary-skip"];

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.first() {
        return Err(format!("unexpected argument '{unknown}'"));
    }
    let mut command = Command::new(needs::require_cargo_deny()?);
    command.args(["--locked", "check"]).args(UNNEEDED_EXCEPTION_LINTS).args(["licenses", "bans", "sources"]);
    crate::run_program(&mut command)
}
