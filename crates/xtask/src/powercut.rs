//! The power-cut rig: a disk image inside a file system that can copy a file in an instant. The copy is what a disk
//! holds when the power goes: everything that was synced, and of the rest whatever the kernel had written so far.
//!
//! Needs root, loop devices and the tools of each file system. Opt-in: `cargo xtask powercut [--rounds N] [--fs LIST]`.
//! Promises: every acknowledged change is looked for after every cut; a control without syncs must lose some, or the
//! rig proves nothing; nothing stays mounted.

mod image;
mod life;

use std::{path::PathBuf, process::Command, time::Instant};

use image::{Disk, Outer};
use life::{Binary, Life};
use serde_json::{Value, json};

/// Set when it runs with mounts of its own.
const INSIDE: &str = "STEAD_POWERCUT_INSIDE";
/// Cuts for each file system when nothing is said.
const ROUNDS: u64 = 40;
/// File systems when nothing is said.
const FILE_SYSTEMS: &str = "ext4,xfs,btrfs";
/// Cuts of one disk before a new one is made.
const ROUNDS_TOGETHER: u64 = 20;
/// Cuts of the control; one that loses something is enough.
const CONTROL_ROUNDS: u64 = 5;
/// Acknowledged changes before a cut, at most.
const CHANGES_MAX: u64 = 60;
/// Longest wait between the last of them and the cut, in microseconds.
const WAIT_MAX_US: u64 = 8_000;

/// What is measured.
#[derive(Default)]
struct Figures {
    rounds: u64,
    acknowledged: u64,
    open_at_cut: u64,
    came_true: u64,
    replayed: u64,
}

/// Whether changes are synced before they are acknowledged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syncs {
    Full,
    None,
}

/// Runs the rig.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (rounds, file_systems) = parse(arguments)?;
    if std::env::var_os(INSIDE).is_none() {
        return run_apart(arguments);
    }
    for name in &file_systems {
        image::install_tools(name)?;
    }
    image::install_tools(image::OUTER)?;
    let binary = Binary::build()?;
    let outer = Outer::make()?;
    control(&outer, &binary)?;
    println!(
        "file system: cuts, acknowledged changes, cuts with a change under way, changes of those that came true,"
    );
    println!("steps recovery had to do, seconds per cut");
    for name in &file_systems {
        let started = Instant::now();
        let figures = cut_often(&outer, &binary, name, rounds)?;
        println!(
            "{name:<6} {:>6} {:>8} {:>6} {:>6} {:>6} {:>6.2}",
            figures.rounds,
            figures.acknowledged,
            figures.open_at_cut,
            figures.came_true,
            figures.replayed,
            started.elapsed().as_secs_f64() / figures.rounds.max(1) as f64,
        );
    }
    println!("powercut: no acknowledged change was lost and none was half done");
    Ok(())
}

/// Runs itself where nobody else sees our mounts: whoever copied them would keep a disk alive after its power was cut.
fn run_apart(arguments: &[String]) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(own).arg("powercut").args(arguments);
    crate::succeed(command.env(INSIDE, "1"))
}

fn parse(arguments: &[String]) -> Result<(u64, Vec<String>), String> {
    let (mut rounds, mut file_systems) = (ROUNDS, FILE_SYSTEMS.to_owned());
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--rounds" => rounds = value.parse().map_err(|_| format!("'{value}' is not a number"))?,
            "--fs" => file_systems = value.clone(),
            _ => return Err(format!("knows --rounds N and --fs LIST, not '{name}'")),
        }
    }
    let known: Vec<&str> = FILE_SYSTEMS.split(',').collect();
    let wanted: Vec<String> = file_systems.split(',').map(str::to_owned).collect();
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(format!("knows {FILE_SYSTEMS}, not '{unknown}'")),
        None => Ok((rounds, wanted)),
    }
}

/// Without syncs something acknowledged must be gone after a cut.
fn control(outer: &Outer, binary: &Binary) -> Result<(), String> {
    for round in 1..=CONTROL_ROUNDS {
        let disk = Disk::make(outer, "ext4")?;
        let lost = one_cut(&disk, binary, Syncs::None, &mut empty_model(), round, &mut Figures::default());
        if let Err(text) = lost {
            println!("powercut: the control (no syncs) lost something in cut {round}, as it must: {text}");
            return Ok(());
        }
    }
    Err("the control without syncs lost nothing, so the cuts are none".to_owned())
}

fn cut_often(outer: &Outer, binary: &Binary, name: &str, rounds: u64) -> Result<Figures, String> {
    let mut figures = Figures::default();
    while figures.rounds < rounds {
        let disk = Disk::make(outer, name)?;
        let mut model = empty_model();
        for _ in 0..ROUNDS_TOGETHER.min(rounds - figures.rounds) {
            let boot = figures.rounds;
            if let Err(text) = one_cut(&disk, binary, Syncs::Full, &mut model, boot, &mut figures) {
                let saved = disk.save().unwrap_or_else(|error| format!("lost: {error}"));
                return Err(format!("{name}, cut {}: {text} (the disk is {saved})", boot + 1));
            }
            figures.rounds += 1;
        }
    }
    Ok(figures)
}

/// One life, one cut, one judgement. The copy becomes the disk.
fn one_cut(
    disk: &Disk<'_>,
    binary: &Binary,
    syncs: Syncs,
    model: &mut Value,
    boot: u64,
    figures: &mut Figures,
) -> Result<(), String> {
    let at = disk.mount()?;
    let place = at.path();
    std::fs::create_dir_all(place.join("ws")).map_err(|error| format!("{}: {error}", place.display()))?;
    let work = |boot: u64, model: &Value| {
        json!({
            "workspace": place.join("ws"), "state": place.join("state"), "full": syncs == Syncs::Full,
            "seed": random(), "boot": format!("boot-{boot}"), "steps": u64::from(u32::MAX), "model": model,
        })
    };
    let mut life = Life::start(binary, &work(boot, model))?;
    let certain = life.wait_for(1 + random() % CHANGES_MAX, random() % WAIT_MAX_US)?;
    disk.copy()?;
    let said = life.kill()?;
    drop(at);
    disk.become_copy()?;
    let _at = disk.mount()?;
    let (certain, possible) = life::split(&said, certain)?;
    figures.acknowledged += certain.len() as u64;
    figures.open_at_cut += u64::from(!possible.is_empty());
    let cut = json!({ "work": work(boot + 1, model), "certain": certain, "possible": possible });
    let survived = binary.judge(&cut)?;
    let number = |name: &str| survived.get(name).and_then(Value::as_u64).unwrap_or_default();
    figures.came_true += number("of_possible");
    figures.replayed += number("replayed");
    *model = survived.get("model").cloned().ok_or("the judge gave no model")?;
    Ok(())
}

fn empty_model() -> Value {
    json!({ "tree": {}, "trash": [], "past": [], "undone": [], "serial": 0 })
}

/// A number nobody can foresee; cuts need no repeating, because time cannot be repeated.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Instant::now()) >> 1
}

/// Where the rig works: beside what cargo builds.
fn home() -> PathBuf {
    target().join("powercut")
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from)
}

/// Runs a program quietly; what it said comes with the failure.
fn quiet(command: &mut Command) -> Result<(), String> {
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
    fn arguments_are_read_and_wrong_ones_refused() {
        let read = |words: &[&str]| parse(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&[]).unwrap().1.len(), 3);
        assert_eq!(read(&["--rounds", "7", "--fs", "xfs"]).unwrap(), (7, vec!["xfs".to_owned()]));
        for bad in [&["--rounds"][..], &["--rounds", "x"], &["--fs", "ntfs"], &["--what", "1"]] {
            assert!(read(bad).is_err());
        }
    }
}
