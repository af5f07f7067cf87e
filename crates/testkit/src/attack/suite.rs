//! Runs whole groups of attack cases on one subject. A case that this machine cannot run is reported with the reason,
//! never skipped silently.

use std::{
    io,
    path::Path,
    process::{Command, Output},
};

use stead_disk::PathResolutionMethod;

use super::{
    case::{AttackCase, AttackTestCaseGroup},
    fixture::can_make_devices,
    run::{case_requirements, run_sharing_fixture, split_shareable},
    subject::AttackSubjectOpenFn,
};

/// The environment variable that limits a run to the attack cases whose id starts with its value.
const FILTER_VARIABLE: &str = "STEAD_ATTACK_ONLY";
const NAMESPACE_VARIABLE: &str = "STEAD_ATTACK_MOUNTS";

/// The process in which attack cases run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackCaseProcessIsolation {
    /// The attack cases run in the current process.
    ThisProcess,
    /// The attack cases run in a process with its own mount namespace.
    MountNamespace,
}

/// Runs groups of attack cases on one subject, opened with each of several path resolution methods.
pub struct AttackSuiteRunner<'a> {
    /// The name of the attacked subject, such as `engine` or `mcp`.
    pub subject: &'a str,
    /// The function that opens the attacked subject.
    pub opener: AttackSubjectOpenFn<'a>,
    /// The path resolution methods to test; every attack case runs once with each method.
    pub resolvers: &'a [PathResolutionMethod],
}

/// The result of running a group of attack cases.
#[derive(Debug, Default)]
pub struct AttackTestSuiteReport {
    /// The number of attack cases that ran.
    pub ran: usize,
    /// The ids of the attack cases that could not run, with the reasons.
    pub skipped: Vec<String>,
    /// The descriptions of the attack cases that failed.
    pub failures: Vec<String>,
}

impl AttackSuiteRunner<'_> {
    /// Selects the attack cases of a group that the subject can run with the given process isolation.
    pub fn runnable_cases(
        &self,
        group: &AttackTestCaseGroup,
        place: AttackCaseProcessIsolation,
        report: &mut AttackTestSuiteReport,
    ) -> io::Result<Vec<AttackCase>> {
        let devices = can_make_devices();
        let filter = std::env::var(FILTER_VARIABLE).unwrap_or_default();
        let mut fitting = Vec::new();
        for case in &group.cases {
            let needs = case_requirements(group, case)?;
            let other = case.only.as_ref().is_some_and(|only| only.subject != self.subject);
            let elsewhere = needs.mounts != (place == AttackCaseProcessIsolation::MountNamespace);
            let far = needs.in_process && self.subject != "engine";
            if other || elsewhere || far || !case.id.starts_with(&filter) {
                continue;
            }
            if needs.devices && !devices {
                report.skipped.push(format!("{}: this process may not make devices", case.id));
            } else {
                fitting.push(case.clone());
            }
        }
        Ok(fitting)
    }

    /// Runs a group of attack cases with every path resolution method.
    pub fn run_group(
        &self,
        group: &AttackTestCaseGroup,
        place: AttackCaseProcessIsolation,
    ) -> io::Result<AttackTestSuiteReport> {
        let mut report = AttackTestSuiteReport::default();
        let cases = self.runnable_cases(group, place, &mut report)?;
        report.ran = cases.len();
        for &resolver in self.resolvers {
            for portion in split_shareable(&cases) {
                match run_sharing_fixture(group, portion, self.opener, resolver) {
                    Ok(verdicts) => {
                        for verdict in verdicts.iter().filter(|verdict| !verdict.has_passed()) {
                            report.failures.push(format!("{resolver:?} {}", verdict.faults_text()));
                        }
                    }
                    Err(error) => {
                        let id = portion.first().map_or("", |case| case.id.as_str());
                        report.failures.push(format!("{resolver:?} {id}: {error}"));
                    }
                }
            }
        }
        Ok(report)
    }
}

/// The outcome of starting a test that needs a mount namespace.
#[derive(Debug)]
pub enum TestMountNamespaceOutcome {
    /// The current process already has its own mount namespace, so the test continues.
    Inside,
    /// The output of the child process with a mount namespace in which the test ran.
    Child(Output),
    /// The machine does not allow mount namespaces, so the test did not run.
    Unavailable,
}

/// Runs a test of the current test binary in a child process with its own mount namespace.
pub fn run_in_mount_namespace(test: &str) -> io::Result<TestMountNamespaceOutcome> {
    if std::env::var_os(NAMESPACE_VARIABLE).is_some() {
        return Ok(TestMountNamespaceOutcome::Inside);
    }
    let root = rustix::process::geteuid().is_root();
    let words: &[&str] = if root { &["-m", "--propagation", "private"] } else { &["-Urm", "--propagation", "private"] };
    let unshare = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(words).arg(program);
        command
    };
    if !unshare(Path::new("true")).output()?.status.success() {
        return Ok(TestMountNamespaceOutcome::Unavailable);
    }
    let mut command = unshare(&std::env::current_exe()?);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(NAMESPACE_VARIABLE, "1");
    command.output().map(TestMountNamespaceOutcome::Child)
}
