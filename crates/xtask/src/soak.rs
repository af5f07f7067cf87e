//! `cargo xtask soak`: the server for an hour under clients that break off and a disk that fills up.
//!
//! Everything happens on a small disk in memory, mounted where only this process sees it. Promises to fail when a write that
//! was acknowledged is not there, when a refused one is, when the journal does not verify, when memory grows, and when the
//! disk was never full: a soak that met no trouble proves nothing.

mod clients;
mod trouble;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::web::Server;
use clients::Tally;

/// Where the small disk is, once there is one.
const DISK: &str = "STEAD_SOAK_DISK";
/// Its size.
const DISK_SIZE: &str = "size=1g";
const MINUTES_DEFAULT: u64 = 60;
/// How often memory is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Memory may grow by this share from the second quarter of the run to the last.
const GROWTH_MAX: f64 = 1.25;

/// Runs it.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let minutes: u64 = match arguments {
        [] => MINUTES_DEFAULT,
        [flag, given] if flag == "--minutes" => given
            .parse()
            .ok()
            .filter(|minutes| *minutes > 0)
            .ok_or_else(|| format!("'{given}' is no number of minutes"))?,
        _ => return Err("knows --minutes N".to_owned()),
    };
    match env::var_os(DISK) {
        Some(disk) => on_disk(Path::new(&disk), Duration::from_secs(minutes * 60)),
        None => mounted(minutes),
    }
}

/// Runs itself again where a small disk is mounted.
fn mounted(minutes: u64) -> Result<(), String> {
    crate::succeed(Command::new("cargo").args(["build", "--release", "--locked", "-p", "stead"]))?;
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let script = format!("mount -t tmpfs -o {DISK_SIZE} soak \"$1\" && shift && exec \"$@\"");
    let mut inside = Command::new("unshare");
    inside.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]).arg(place.path()).arg(own);
    inside.args(["soak", "--minutes", &minutes.to_string()]).env(DISK, place.path());
    crate::succeed(&mut inside)
}

fn on_disk(disk: &Path, length: Duration) -> Result<(), String> {
    let binary: PathBuf = crate::needs::target_directory().join("release").join("stead");
    let (workspace, state) = (disk.join("files"), disk.join("state"));
    std::fs::create_dir(&workspace).map_err(|error| error.to_string())?;
    let server = Server::stead(&binary, &workspace, &state)?;
    let (over, end) = (AtomicBool::new(false), Instant::now() + length);
    let (tally, full, memory) = thread::scope(|scope| {
        let clients = scope.spawn(|| clients::run(&server, &over));
        let trouble = scope.spawn(|| trouble::run(disk, length, &over));
        let memory = watch(&server, end, || clients.is_finished());
        over.store(true, Ordering::Relaxed);
        let broke_off = || "a thread broke off".to_owned();
        let tally = clients.join().map_err(|_| broke_off())??;
        let full = trouble.join().map_err(|_| broke_off())??;
        Ok::<_, String>((tally, full, memory?))
    })?;
    server.end()?;
    let mut verify = Command::new(&binary);
    verify.arg("--workspace").arg(&workspace).arg("--state").arg(&state).args(["log", "verify"]);
    crate::succeed(&mut verify)?;
    judge(&tally, full, &memory)
}

/// Looks at the memory until the end, or until there is nothing left to serve.
fn watch(server: &Server, end: Instant, is_over: impl Fn() -> bool) -> Result<Vec<u64>, String> {
    let mut memory = Vec::new();
    while Instant::now() < end && !is_over() {
        thread::sleep(LOOK_EVERY);
        memory.push(server.resident_kb()?);
    }
    Ok(memory)
}

/// Says what happened, and whether it was as it must be.
fn judge(tally: &Tally, full: u64, memory: &[u64]) -> Result<(), String> {
    let quarter = memory.len() / 4;
    let (early, late) = (middle(&memory[quarter..2 * quarter]), middle(&memory[3 * quarter..]));
    println!(
        "soak: {} writes acknowledged, {} refused, {} broken off (of which {} came true), {} reads, {} streams; the disk was full \
         {full} times; memory {} MB early, {} MB late; the journal verifies",
        tally.acknowledged,
        tally.refused,
        tally.broken_off,
        tally.came_true,
        tally.reads,
        tally.streams,
        early / 1_000,
        late / 1_000
    );
    if full == 0 || tally.refused == 0 || tally.broken_off == 0 {
        return Err("it met no trouble".to_owned());
    }
    #[expect(clippy::cast_precision_loss, reason = "kilobytes")]
    let growth = late as f64 / early as f64;
    if growth > GROWTH_MAX {
        return Err(format!("memory grew by a factor of {growth:.2}"));
    }
    Ok(())
}

fn middle(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn troubled() -> Tally {
        Tally { acknowledged: 1, refused: 1, broken_off: 1, ..Tally::default() }
    }

    #[test]
    fn growth_and_a_quiet_run_fail() {
        let flat = [10_000; 16];
        let mut growing = flat;
        growing[12..].fill(20_000);
        assert!(judge(&troubled(), 1, &flat).is_ok());
        assert!(judge(&troubled(), 1, &growing).is_err());
        assert!(judge(&troubled(), 0, &flat).is_err());
        assert!(judge(&Tally::default(), 1, &flat).is_err());
    }
}
