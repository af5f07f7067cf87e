//! The two sides of the power-cut rig as a program: `run` makes changes until it is killed, `judge` looks at what is left.
//! Both are told what to do in one line of JSON on their standard input. Never shipped.

use std::{
    io::{BufRead, Write},
    process::ExitCode,
};

use testkit::{
    crash::{Cut, judge_cut},
    rig::Fallible,
    workload::run_child,
};

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some("run") => run_child(),
        Some("judge") => judge(),
        Some(_) | None => Err("usage: workload run|judge".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell when even this fails.
            match writeln!(std::io::stderr(), "{error}") {
                Ok(()) | Err(_) => ExitCode::FAILURE,
            }
        }
    }
}

fn judge() -> Fallible<()> {
    let mut input = String::new();
    std::io::stdin().lock().read_line(&mut input)?;
    let cut: Cut = serde_json::from_str(&input)?;
    let survived = judge_cut(cut)?;
    Ok(writeln!(std::io::stdout(), "{}", serde_json::to_string(&survived)?)?)
}
