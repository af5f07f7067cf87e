//! A Landlock sandbox: the calling thread and the threads that it starts can open files only below the given paths. The
//! sandbox enforces as much as the kernel supports, and a report says how much that is. The sandbox does not restrict
//! reading metadata, changing modes by path, or the use of handles that are already open.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

/// An older kernel enforces only the rules of its own Landlock ABI.
const NEWEST_ABI: ABI = ABI::V9;
const PROC_SELF: &str = "/proc/self";

/// How many of the sandbox rules the kernel enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandlockOutcome {
    Full,
    /// The kernel enforces only the rules that it supports.
    Partial,
    None,
}

/// The result of activating the Landlock sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandlockReport {
    pub status: LandlockOutcome,
    /// The Landlock ABI of the kernel; `None` if the kernel has no Landlock.
    pub abi: Option<i32>,
    /// The reason why the kernel does not enforce all sandbox rules; `None` if it enforces all of them.
    pub reason: Option<String>,
}

/// Restricts the file access of the process to the paths `read_write`, and also lets it read the paths `read_only`. A
/// program must restrict itself before it starts threads, because Landlock up to ABI 7 does not restrict running
/// threads.
pub fn restrict_process(read_write: &[&Path], read_only: &[&Path]) -> LandlockReport {
    match apply_ruleset(read_write, read_only) {
        Ok(status) => landlock_report(&status),
        Err(error) => LandlockReport { status: LandlockOutcome::None, abi: None, reason: Some(error.to_string()) },
    }
}

fn apply_ruleset(read_write: &[&Path], read_only: &[&Path]) -> Result<RestrictionStatus, LandlockError> {
    let all = AccessFs::from_all(NEWEST_ABI);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(NEWEST_ABI))?
        .create()?;
    for path in read_write {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, all))?;
    }
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    for path in read_only {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, read))?;
    }
    if let Ok(proc_self) = PathFd::new(PROC_SELF) {
        rules = rules.add_rule(PathBeneath::new(proc_self, read))?;
    }
    Ok(rules.restrict_self()?)
}

#[derive(Debug, thiserror::Error)]
enum LandlockError {
    #[error("the kernel refused a Landlock rule")]
    Ruleset(#[from] RulesetError),
    #[error("a path of the Landlock rules could not be opened")]
    OpenPath(#[from] landlock::PathFdError),
}

fn landlock_report(status: &RestrictionStatus) -> LandlockReport {
    let (abi, missing) = match status.landlock {
        LandlockStatus::NotEnabled => (None, Some("Landlock is not enabled in this kernel")),
        LandlockStatus::NotImplemented => (None, Some("this kernel has no Landlock")),
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            (Some(kernel_abi.unwrap_or(effective_abi as i32)), None)
        }
    };
    let (outcome, reason) = match status.ruleset {
        RulesetStatus::FullyEnforced => (LandlockOutcome::Full, None),
        RulesetStatus::PartiallyEnforced => {
            (LandlockOutcome::Partial, Some("this kernel supports only part of the rules"))
        }
        RulesetStatus::NotEnforced => (LandlockOutcome::None, missing.or(Some("the kernel enforced nothing"))),
    };
    LandlockReport { status: outcome, abi, reason: reason.map(str::to_owned) }
}
