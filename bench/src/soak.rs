//! `cargo xtask soak` runs the server for an hour with clients that disconnect in the middle of requests and a disk
//! that fills up.
//!
//! The test runs on a small tmpfs in a private mount namespace. The test fails if an acknowledged write is missing, if
//! a refused write was applied, if the journal does not verify, if memory grows, or if the disk was never full.

mod clients;
mod disk_filler;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::http_client::HttpServerProcess;
use clients::SoakTally;

/// The environment variable that tells the child process the mount point of the tmpfs.
const DISK_VARIABLE: &str = "STEAD_SOAK_DISK";
const DISK_SIZE: &str = "size=1g";
const MINUTES_DEFAULT: u64 = 60;
const MEMORY_SAMPLE_INTERVAL: Duration = Duration::from_secs(2);
/// The most memory that the server may use in the last quarter of the run, relative to the second quarter.
const MEMORY_GROWTH_MAX: f64 = 1.25;

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let minutes: u64 = match arguments {
        [] => MINUTES_DEFAULT,
        [flag, given] if flag == "--minutes" => given
            .parse()
            .ok()
            .filter(|minutes| *minutes > 0)
            .ok_or_else(|| format!("invalid number of minutes: '{given}'"))?,
        _ => return Err("usage: --minutes N".to_owned()),
    };
    match env::var_os(DISK_VARIABLE) {
        Some(disk) => soak_on_disk(Path::new(&disk), Duration::from_secs(minutes * 60)),
        None => rerun_on_mounted_disk(minutes),
    }
}

/// Runs this program again in a private mount namespace with a mounted tmpfs.
fn rerun_on_mounted_disk(minutes: u64) -> Result<(), String> {
    crate::build_release_binary()?;
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let script = format!("mount -t tmpfs -o {DISK_SIZE} soak \"$1\" && shift && exec \"$@\"");
    let mut inside = Command::new("unshare");
    inside.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]).arg(place.path()).arg(own);
    inside.args(["soak", "--minutes", &minutes.to_string()]).env(DISK_VARIABLE, place.path());
    crate::run_program(&mut inside)
}

fn soak_on_disk(disk: &Path, length: Duration) -> Result<(), String> {
    let binary: PathBuf = crate::needs::target_directory().join("release").join("stead");
    let (workspace, state) = (disk.join("files"), disk.join("state"));
    std::fs::create_dir(&workspace).map_err(|error| error.to_string())?;
    let server = HttpServerProcess::start_stead(&binary, &workspace, &state)?;
    let (over, end) = (AtomicBool::new(false), Instant::now() + length);
    let (tally, full, memory) = thread::scope(|scope| {
        let clients = scope.spawn(|| clients::run_clients(&server, &over));
        let trouble = scope.spawn(|| disk_filler::fill_repeatedly(disk, length, &over));
        let memory = sample_memory(&server, end, || clients.is_finished());
        over.store(true, Ordering::Relaxed);
        let panicked = || "a thread panicked".to_owned();
        let tally = clients.join().map_err(|_| panicked())??;
        let full = trouble.join().map_err(|_| panicked())??;
        Ok::<_, String>((tally, full, memory?))
    })?;
    server.terminate()?;
    let mut verify = Command::new(&binary);
    verify.arg("--workspace").arg(&workspace).arg("--state").arg(&state).args(["log", "verify"]);
    crate::run_program(&mut verify)?;
    check_results(&tally, full, &memory)
}

/// Samples the memory of the server until the end of the run or of the clients.
fn sample_memory(server: &HttpServerProcess, end: Instant, is_over: impl Fn() -> bool) -> Result<Vec<u64>, String> {
    let mut memory = Vec::new();
    while Instant::now() < end && !is_over() {
        thread::sleep(MEMORY_SAMPLE_INTERVAL);
        memory.push(server.resident_kb()?);
    }
    Ok(memory)
}

/// Prints the results of the soak test and checks them.
fn check_results(tally: &SoakTally, full: u64, memory: &[u64]) -> Result<(), String> {
    let quarter = memory.len() / 4;
    let (early, late) = (median(&memory[quarter..2 * quarter]), median(&memory[3 * quarter..]));
    println!(
        "soak: {} writes acknowledged, {} refused, {} aborted ({} of them applied), {} reads, {} streams; the disk was full \
         {full} times; memory {} MB early, {} MB late; the journal verifies",
        tally.acknowledged,
        tally.refused,
        tally.aborted,
        tally.aborted_but_applied,
        tally.reads,
        tally.streams,
        early / 1_000,
        late / 1_000
    );
    if full == 0 || tally.refused == 0 || tally.aborted == 0 {
        return Err("the run met no full disk, refused write or aborted request".to_owned());
    }
    #[expect(clippy::cast_precision_loss, reason = "kilobytes")]
    let growth = late as f64 / early as f64;
    if growth > MEMORY_GROWTH_MAX {
        return Err(format!("memory grew by a factor of {growth:.2}"));
    }
    Ok(())
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_tally() -> SoakTally {
        SoakTally { acknowledged: 1, refused: 1, aborted: 1, ..SoakTally::default() }
    }

    #[test]
    fn memory_growth_and_idle_runs_fail() {
        let flat = [10_000; 16];
        let mut growing = flat;
        growing[12..].fill(20_000);
        assert!(check_results(&sample_tally(), 1, &flat).is_ok());
        assert!(check_results(&sample_tally(), 1, &growing).is_err());
        assert!(check_results(&sample_tally(), 0, &flat).is_err());
        assert!(check_results(&SoakTally::default(), 1, &flat).is_err());
    }
}
