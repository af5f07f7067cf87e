//! The second wall: Landlock. After it stands, the thread that raised it and every thread it starts can reach files only
//! beneath the given places, whatever the code above does wrong. Best effort: the report says what holds. It does not
//! cover looking at metadata, changing modes by path, or handles opened before.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

/// The newest rules this code knows; the kernel takes the part that it knows too.
const NEWEST: ABI = ABI::V9;
/// What stays readable besides: the kernel's view of this very process.
const OWN_PROCESS: &str = "/proc/self";

/// How much of the wall stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Every rule we know holds.
    Full,
    /// The rules that this kernel knows hold.
    Partial,
    /// Nothing holds.
    None,
}

/// What came of raising the wall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WallReport {
    /// How much of it stands.
    pub standing: Standing,
    /// The version of the kernel's interface, if it has one.
    pub abi: Option<i32>,
    /// Why less than everything stands.
    pub reason: Option<String>,
}

/// Raises the wall around `read_write`. Call it before the first thread is started: threads that run already stay
/// outside on kernels before interface version 8.
pub fn raise(read_write: &[&Path]) -> WallReport {
    raise_beside(read_write, &[])
}

/// The same, with places that stay readable.
pub fn raise_beside(read_write: &[&Path], read_only: &[&Path]) -> WallReport {
    match restrict(read_write, read_only) {
        Ok(status) => report(&status),
        Err(error) => WallReport { standing: Standing::None, abi: None, reason: Some(error.to_string()) },
    }
}

fn restrict(read_write: &[&Path], read_only: &[&Path]) -> Result<RestrictionStatus, WallError> {
    let all = AccessFs::from_all(NEWEST);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    for place in read_write {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(place)?, all))?;
    }
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    for place in read_only {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(place)?, read))?;
    }
    if let Ok(own) = PathFd::new(OWN_PROCESS) {
        rules = rules.add_rule(PathBeneath::new(own, read))?;
    }
    Ok(rules.restrict_self()?)
}

/// Why the wall could not be raised; never shows a path.
#[derive(Debug, thiserror::Error)]
enum WallError {
    #[error("the kernel refused a rule")]
    Rule(#[from] RulesetError),
    #[error("a place could not be opened")]
    Place(#[from] landlock::PathFdError),
}

fn report(status: &RestrictionStatus) -> WallReport {
    let (abi, missing) = match status.landlock {
        LandlockStatus::NotEnabled => (None, Some("Landlock is not enabled in this kernel")),
        LandlockStatus::NotImplemented => (None, Some("this kernel has no Landlock")),
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            (Some(kernel_abi.unwrap_or(effective_abi as i32)), None)
        }
    };
    let (standing, reason) = match status.ruleset {
        RulesetStatus::FullyEnforced => (Standing::Full, None),
        RulesetStatus::PartiallyEnforced => {
            (Standing::Partial, Some("this kernel knows only a part of the rules"))
        }
        RulesetStatus::NotEnforced => (Standing::None, missing.or(Some("the kernel enforced nothing"))),
    };
    WallReport { standing, abi, reason: reason.map(str::to_owned) }
}
