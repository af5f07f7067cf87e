//! Power-cut test: simulates a power failure by copying the image of a mounted disk. The copy has everything that was
//! synced, plus any part of the other data that the kernel had already written.
//!
//! The test `cargo xtask powercut [--rounds N] [--fs LIST]` needs root, loop devices and the tools of each file system.
//! Every acknowledged change is checked after every simulated power cut. A control run without syncs must lose a
//! change; otherwise the test proves nothing.

mod disk_image;
mod workload_process;

use std::{path::PathBuf, process::Command, time::Instant};

use disk_image::{PowerCutDiskImageHostFilesystem, PowerCutTestDiskImage};
use serde_json::{Value, json};
use workload_process::{PowerCutWorkloadProcess, PowercutWorkloadBinary};

/// The environment variable that marks the child process in its own mount namespace.
const INSIDE_VARIABLE: &str = "STEAD_POWERCUT_INSIDE";
/// The number of simulated power cuts per file system.
const ROUNDS_DEFAULT: u64 = 40;
const FILE_SYSTEMS_DEFAULT: &str = "ext4,xfs,btrfs";
/// The number of simulated power cuts of a disk before a new disk is created.
const ROUNDS_PER_DISK: u64 = 20;
/// The most power cuts of the control run without syncs, which ends with the first lost change.
const CONTROL_ROUNDS: u64 = 5;
/// The most acknowledged changes before a simulated power cut.
const CHANGES_MAX: u64 = 60;
/// The longest delay between the last acknowledged change and the power cut, in microseconds.
const CUT_DELAY_MAX_US: u64 = 8_000;

#[derive(Default)]
struct PowerCutStatistics {
    rounds: u64,
    acknowledged: u64,
    in_flight_at_cut: u64,
    in_flight_applied: u64,
    replayed_steps: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PowerCutWorkloadSyncMode {
    Full,
    None,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (rounds, file_systems) = parse_arguments(arguments)?;
    if std::env::var_os(INSIDE_VARIABLE).is_none() {
        return rerun_in_mount_namespace(arguments);
    }
    for name in &file_systems {
        disk_image::install_tools(name)?;
    }
    disk_image::install_tools(disk_image::OUTER_FILE_SYSTEM)?;
    let binary = PowercutWorkloadBinary::build()?;
    let outer = PowerCutDiskImageHostFilesystem::create()?;
    run_control(&outer, &binary)?;
    println!("file system: cuts, acknowledged changes, cuts with a change in flight, how many of those were applied,");
    println!("steps recovery had to do, seconds per cut");
    for name in &file_systems {
        let started = Instant::now();
        let figures = run_cuts(&outer, &binary, name, rounds)?;
        println!(
            "{name:<6} {:>6} {:>8} {:>6} {:>6} {:>6} {:>6.2}",
            figures.rounds,
            figures.acknowledged,
            figures.in_flight_at_cut,
            figures.in_flight_applied,
            figures.replayed_steps,
            started.elapsed().as_secs_f64() / figures.rounds.max(1) as f64,
        );
    }
    println!("powercut: no acknowledged change was lost and none was half done");
    Ok(())
}

/// Runs this program again in a private mount namespace, because a copy of the mount in another namespace would keep
/// the disk mounted after the power cut.
fn rerun_in_mount_namespace(arguments: &[String]) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(own).arg("powercut").args(arguments);
    crate::run_program(command.env(INSIDE_VARIABLE, "1"))
}

fn parse_arguments(arguments: &[String]) -> Result<(u64, Vec<String>), String> {
    let (mut rounds, mut file_systems) = (ROUNDS_DEFAULT, FILE_SYSTEMS_DEFAULT.to_owned());
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--rounds" => rounds = value.parse().map_err(|_| format!("'{value}' is not a number"))?,
            "--fs" => file_systems = value.clone(),
            _ => return Err(format!("unknown argument '{name}'; usage: --rounds N and --fs LIST")),
        }
    }
    let known: Vec<&str> = FILE_SYSTEMS_DEFAULT.split(',').collect();
    let wanted: Vec<String> = file_systems.split(',').map(str::to_owned).collect();
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(format!("unknown file system '{unknown}'; known: {FILE_SYSTEMS_DEFAULT}")),
        None => Ok((rounds, wanted)),
    }
}

/// Control run: checks that a power cut loses an acknowledged change if the server does not sync.
fn run_control(outer: &PowerCutDiskImageHostFilesystem, binary: &PowercutWorkloadBinary) -> Result<(), String> {
    for round in 1..=CONTROL_ROUNDS {
        let disk = PowerCutTestDiskImage::create(outer, "ext4")?;
        let lost = run_one_cut(
            &disk,
            binary,
            PowerCutWorkloadSyncMode::None,
            &mut empty_model(),
            round,
            &mut PowerCutStatistics::default(),
        );
        if let Err(text) = lost {
            println!("powercut: the control (no syncs) lost something in cut {round}, as it must: {text}");
            return Ok(());
        }
    }
    Err("the control without syncs lost nothing, so the cuts are none".to_owned())
}

fn run_cuts(
    outer: &PowerCutDiskImageHostFilesystem,
    binary: &PowercutWorkloadBinary,
    name: &str,
    rounds: u64,
) -> Result<PowerCutStatistics, String> {
    let mut figures = PowerCutStatistics::default();
    while figures.rounds < rounds {
        let disk = PowerCutTestDiskImage::create(outer, name)?;
        let mut model = empty_model();
        for _ in 0..ROUNDS_PER_DISK.min(rounds - figures.rounds) {
            let boot = figures.rounds;
            if let Err(text) =
                run_one_cut(&disk, binary, PowerCutWorkloadSyncMode::Full, &mut model, boot, &mut figures)
            {
                let saved = disk.save_images().unwrap_or_else(|error| format!("lost: {error}"));
                return Err(format!("{name}, cut {}: {text} (the disk is {saved})", boot + 1));
            }
            figures.rounds += 1;
        }
    }
    Ok(figures)
}

/// Runs the workload, copies the disk as if the power failed, checks the copy, and continues with the copy as the disk.
fn run_one_cut(
    disk: &PowerCutTestDiskImage<'_>,
    binary: &PowercutWorkloadBinary,
    syncs: PowerCutWorkloadSyncMode,
    model: &mut Value,
    boot: u64,
    figures: &mut PowerCutStatistics,
) -> Result<(), String> {
    let at = disk.mount()?;
    let place = at.path();
    std::fs::create_dir_all(place.join("ws")).map_err(|error| format!("{}: {error}", place.display()))?;
    let work = |boot: u64, model: &Value| {
        json!({
            "workspace": place.join("ws"), "state": place.join("state"), "full": syncs == PowerCutWorkloadSyncMode::Full,
            "seed": random_u64(), "boot": format!("boot-{boot}"), "steps": u64::from(u32::MAX), "model": model,
        })
    };
    let mut life = PowerCutWorkloadProcess::start(binary, &work(boot, model))?;
    let certain = life.wait_for_changes(1 + random_u64() % CHANGES_MAX, random_u64() % CUT_DELAY_MAX_US)?;
    disk.copy_now()?;
    let messages = life.kill()?;
    drop(at);
    disk.replace_with_copy()?;
    let _at = disk.mount()?;
    let (certain, possible) = workload_process::split_changes(&messages, certain)?;
    figures.acknowledged += certain.len() as u64;
    figures.in_flight_at_cut += u64::from(!possible.is_empty());
    let cut = json!({ "work": work(boot + 1, model), "certain": certain, "possible": possible });
    let survived = binary.check_power_cut(&cut)?;
    let number = |name: &str| survived.get(name).and_then(Value::as_u64).unwrap_or_default();
    figures.in_flight_applied += number("of_possible");
    figures.replayed_steps += number("replayed");
    *model = survived.get("model").cloned().ok_or("the judge gave no model")?;
    Ok(())
}

fn empty_model() -> Value {
    json!({ "tree": {}, "trash": [], "past": [], "undone": [], "serial": 0 })
}

fn random_u64() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Instant::now()) >> 1
}

fn work_directory() -> PathBuf {
    crate::needs::target_directory().join("powercut")
}

/// Runs a program without showing its output; its error output becomes part of the error.
fn run_quietly(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed_and_wrong_ones_rejected() {
        let read = |words: &[&str]| parse_arguments(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&[]).unwrap().1.len(), 3);
        assert_eq!(read(&["--rounds", "7", "--fs", "xfs"]).unwrap(), (7, vec!["xfs".to_owned()]));
        for bad in [&["--rounds"][..], &["--rounds", "x"], &["--fs", "ntfs"], &["--what", "1"]] {
            assert!(read(bad).is_err());
        }
    }
}
