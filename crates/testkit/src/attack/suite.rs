//! Runs a whole group of attack cases on one subject. No case is skipped silently: a case that cannot run on this
//! machine is reported with the reason.

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

/// The environment variable that limits a run to the attack cases whose id starts with the value of the variable.
const FILTER_VARIABLE: &str = "STEAD_ATTACK_ONLY";
/// The environment variable that marks a test process as running in its own mount namespace.
const NAMESPACE_VARIABLE: &str = "STEAD_ATTACK_MOUNTS";

/// Where cases run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackCaseProcessIsolation {
    /// In this process.
    ThisProcess,
    /// In a process with its own mount namespace.
    MountNamespace,
}

/// Runs groups of attack cases on one subject, opened with each of several path resolution methods.
pub struct AttackSuiteRunner<'a> {
    /// `engine` or `mcp`.
    pub subject: &'a str,
    /// Opens the subject.
    pub opener: AttackSubjectOpenFn<'a>,
    /// Every case runs once with each of these path resolution methods.
    pub resolvers: &'a [PathResolutionMethod],
}

/// The result of a group of attack cases.
#[derive(Debug, Default)]
pub struct AttackTestSuiteReport {
    /// The number of cases that ran.
    pub ran: usize,
    /// The ids of the cases that could not run, with the reason.
    pub skipped: Vec<String>,
    /// Problems.
    pub failures: Vec<String>,
}

impl AttackSuiteRunner<'_> {
    /// The cases of a group that this subject can run in this environment.
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

/// Whether and where a test that needs a mount namespace ran.
#[derive(Debug)]
pub enum TestMountNamespaceOutcome {
    /// This process has a mount namespace, so the test continues.
    Inside,
    /// The test ran in a child process with a mount namespace; the value is the output of the child.
    Child(Output),
    /// The machine does not allow mount namespaces, so the test did not run.
    Unavailable,
}

/// Runs the named test of this test binary again, in a child process with a mount namespace.
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
