//! The programs of the power-cut test: `run` makes changes until it is killed, and `judge` checks the workspace
//! afterwards. The commands `run` and `judge` read their instructions as one line of JSON from standard input.

use std::{
    io::{BufRead, Write},
    process::ExitCode,
};

use testkit::{
    crash::{PowerCutExpectedChanges, check_power_cut},
    stress::Fallible,
    workload::run_child,
};

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some("run") => run_child(),
        Some("judge") => print_power_cut_check(),
        Some(_) | None => Err("usage: workload run|judge".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If this write fails too, nothing can be reported.
            match writeln!(std::io::stderr(), "{error}") {
                Ok(()) | Err(_) => ExitCode::FAILURE,
            }
        }
    }
}

fn print_power_cut_check() -> Fallible<()> {
    let mut input = String::new();
    std::io::stdin().lock().read_line(&mut input)?;
    let cut: PowerCutExpectedChanges = serde_json::from_str(&input)?;
    let survived = check_power_cut(cut)?;
    Ok(writeln!(std::io::stdout(), "{}", serde_json::to_string(&survived)?)?)
}
