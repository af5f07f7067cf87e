//! A whole group on one subject: which of its cases can be asked here, and what came of them. Nothing is left out in
//! silence: a case that cannot be built on this machine is named with the reason.

use std::{
    io,
    path::Path,
    process::{Command, Output},
};

use disk::Resolver;

use super::{
    case::{Case, Group},
    ground::may_make_devices,
    run::{needs, portions, run_together},
    subject::Opener,
};

/// Runs only cases whose id starts with this, when it is set.
const FILTER: &str = "STEAD_ATTACK_ONLY";
/// Says to a test that it runs in a mount namespace of its own.
const MARK: &str = "STEAD_ATTACK_MOUNTS";

/// Where cases are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// In this process as it is.
    Here,
    /// In a mount namespace of its own.
    Mounted,
}

/// One subject and how it is opened.
pub struct Suite<'a> {
    /// `engine` or `mcp`.
    pub subject: &'a str,
    /// Opens it.
    pub opener: Opener<'a>,
    /// The ways of resolving, one after the other.
    pub resolvers: &'a [Resolver],
}

/// What came of a group.
#[derive(Debug, Default)]
pub struct Report {
    /// How many cases ran.
    pub ran: usize,
    /// What could not be run here, and why.
    pub not_run: Vec<String>,
    /// What went wrong.
    pub wrong: Vec<String>,
}

impl Suite<'_> {
    /// The cases of a group that this subject can be asked in such a place.
    pub fn cases(&self, group: &Group, place: Where, report: &mut Report) -> io::Result<Vec<Case>> {
        let devices = may_make_devices();
        let filter = std::env::var(FILTER).unwrap_or_default();
        let mut fitting = Vec::new();
        for case in &group.cases {
            let needs = needs(group, case)?;
            let other = case.only.as_ref().is_some_and(|only| only.subject != self.subject);
            let elsewhere = needs.mounts != (place == Where::Mounted);
            let far = needs.inside && self.subject != "engine";
            if other || elsewhere || far || !case.id.starts_with(&filter) {
                continue;
            }
            if needs.devices && !devices {
                report.not_run.push(format!("{}: this process may not make devices", case.id));
            } else {
                fitting.push(case.clone());
            }
        }
        Ok(fitting)
    }

    /// Runs a group with every resolver.
    pub fn run(&self, group: &Group, place: Where) -> io::Result<Report> {
        let mut report = Report::default();
        let cases = self.cases(group, place, &mut report)?;
        report.ran = cases.len();
        for &resolver in self.resolvers {
            for portion in portions(&cases) {
                match run_together(group, portion, self.opener, resolver) {
                    Ok(verdicts) => {
                        for verdict in verdicts.iter().filter(|verdict| !verdict.passed()) {
                            report.wrong.push(format!("{resolver:?} {}", verdict.told()));
                        }
                    }
                    Err(error) => {
                        let id = portion.first().map_or("", |case| case.id.as_str());
                        report.wrong.push(format!("{resolver:?} {id}: {error}"));
                    }
                }
            }
        }
        Ok(report)
    }
}

/// What became of a test that asked for a mount namespace.
#[derive(Debug)]
pub enum Namespace {
    /// This process is in one: go on.
    Inside,
    /// A child was, and this is what it said.
    Child(Output),
    /// There is none to be had.
    None,
}

/// Runs the named test of this binary again in a mount namespace of its own.
pub fn in_a_namespace(test: &str) -> io::Result<Namespace> {
    if std::env::var_os(MARK).is_some() {
        return Ok(Namespace::Inside);
    }
    let root = rustix::process::geteuid().is_root();
    let words: &[&str] =
        if root { &["-m", "--propagation", "private"] } else { &["-Urm", "--propagation", "private"] };
    let unshare = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(words).arg(program);
        command
    };
    if !unshare(Path::new("true")).output()?.status.success() {
        return Ok(Namespace::None);
    }
    let mut command = unshare(&std::env::current_exe()?);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(MARK, "1");
    command.output().map(Namespace::Child)
}
