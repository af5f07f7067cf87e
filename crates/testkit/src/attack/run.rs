//! Runs attack cases against a subject and checks every case for invariants. Nothing outside the workspace changes, no
//! reply contains outside data, and replies arrive in time. Every request has one journal entry, and a refused request
//! changes nothing.

use std::{
    collections::BTreeMap,
    io,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use super::{
    attacker_threads::AttackerThreads,
    case::{AttackCase, AttackTestCaseGroup, ExpectedAttackResult, PostAttackChecks},
    fixture::AttackFixture,
    journal_check, post_checks,
    request_timer::BusyMachineAdjustedTimer,
    setup_step::AttackSetupStep,
    subject::{
        AttackSubject, AttackSubjectClockOrPurgeAction, AttackSubjectOpenFn, AttackSubjectReply, AttackSubjectRequest,
        SubjectOptions,
    },
};

const DEFAULT_PRINCIPAL: &str = "agent:tester";
const REPLY_TIME_MAX: Duration = Duration::from_secs(2);
const RACE_DURATION: Duration = Duration::from_millis(250);
const RACE_ROUNDS_MAX: u64 = 2_000;

/// A problem that an attack case found.
#[derive(Debug, Clone)]
pub struct AttackCaseDetectedFault {
    /// The severity of the problem that the attack case found.
    pub severity: AttackFindingSeverity,
    /// The description of the problem that the attack case found.
    pub description: String,
}

/// The severity of a problem that an attack case found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackFindingSeverity {
    /// Data leaked, a file changed, a request hung, or a request succeeded that must fail.
    Harm,
    /// The request did no harm, but its result or error kind is not the expected one.
    WrongReason,
    /// The journal does not match the requests of the attack case.
    WrongJournal,
}

/// The result of one attack case.
#[derive(Debug, Clone)]
pub struct AttackVerdict {
    /// The id of the attack case that was run.
    pub id: String,
    /// The problems that the attack case found; the list is empty if the case passed.
    pub faults: Vec<AttackCaseDetectedFault>,
}

impl AttackVerdict {
    /// Returns whether the attack case found no problem.
    pub fn has_passed(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns the case's id and its problems as text.
    pub fn faults_text(&self) -> String {
        let faults: Vec<String> =
            self.faults.iter().map(|fault| format!("{:?}: {}", fault.severity, fault.description)).collect();
        format!("{}: {}", self.id, faults.join("; "))
    }

    /// Returns whether the attack case found a problem with the severity [`AttackFindingSeverity::Harm`].
    pub fn did_harm(&self) -> bool {
        self.faults.iter().any(|fault| fault.severity == AttackFindingSeverity::Harm)
    }
}

pub(crate) struct AttackRequestRecord {
    pub(crate) request: AttackSubjectRequest,
    pub(crate) refusal: Option<String>,
}

pub(crate) struct AttackRun<'a> {
    pub(crate) fixture: AttackFixture,
    group: &'a AttackTestCaseGroup,
    opener: AttackSubjectOpenFn<'a>,
    options: SubjectOptions,
    subject: Option<Box<dyn AttackSubject>>,
    principal: String,
    /// The values of placeholders in attack requests, such as `TRASH` for a trash id from an earlier reply.
    known_values: BTreeMap<&'static str, String>,
    sent: Vec<AttackRequestRecord>,
    attackers: Vec<super::setup_step::AttackerAction>,
    pub(crate) faults: Vec<AttackCaseDetectedFault>,
}

/// Runs one attack case on its own fixture.
pub fn run_case(
    group: &AttackTestCaseGroup,
    case: &AttackCase,
    opener: AttackSubjectOpenFn<'_>,
    resolver: stead_disk::PathResolutionMethod,
) -> io::Result<AttackVerdict> {
    let mut verdicts = run_sharing_fixture(group, std::slice::from_ref(case), opener, resolver)?;
    verdicts.pop().ok_or_else(|| io::Error::other("no verdict"))
}

/// Runs attack cases on one fixture that the first case sets up. Cases that share a fixture must change nothing.
pub fn run_sharing_fixture(
    group: &AttackTestCaseGroup,
    cases: &[AttackCase],
    opener: AttackSubjectOpenFn<'_>,
    resolver: stead_disk::PathResolutionMethod,
) -> io::Result<Vec<AttackVerdict>> {
    let Some(first) = cases.first() else { return Ok(Vec::new()) };
    let steps = parse_setup(group, &first.setup)?;
    let mut fight = AttackRun::prepare(group, opener, resolver, &steps)?;
    let mut verdicts = Vec::new();
    for case in cases {
        fight.run_one(case)?;
        verdicts.push(AttackVerdict { id: case.id.clone(), faults: std::mem::take(&mut fight.faults) });
    }
    let went = std::mem::take(&mut fight.sent);
    let ledger = match fight.subject.take() {
        Some(subject) => subject.finish(&fight.fixture.workspace)?,
        None => None,
    };
    if let (Some(ledger), Some(last)) = (ledger, verdicts.last_mut()) {
        last.faults.extend(journal_check::compare_with_journal(&went, &ledger));
    }
    if let Some(last) = verdicts.last_mut()
        && cases.iter().any(|case| case.check.trash_empty)
        && fight.fixture.has_trash()
    {
        last.faults.push(AttackCaseDetectedFault {
            severity: AttackFindingSeverity::Harm,
            description: "something is left in the trash".to_owned(),
        });
    }
    Ok(verdicts)
}

/// Divides attack cases into batches that can share a fixture: adjacent cases with equal setup that change nothing.
pub fn split_shareable(cases: &[AttackCase]) -> Vec<&[AttackCase]> {
    let still = |case: &AttackCase| {
        matches!(case.expect.result, ExpectedAttackResult::Deny | ExpectedAttackResult::Error)
            && !case.check.trash_empty
            && case.only.is_none()
            && case.within_ms.is_none()
    };
    cases.chunk_by(|one, next| one.setup == next.setup && still(one) && still(next)).collect()
}

pub(crate) fn parse_setup(group: &AttackTestCaseGroup, setup: &[Value]) -> io::Result<Vec<AttackSetupStep>> {
    let mut steps = Vec::new();
    for value in setup {
        match value.as_str().and_then(|text| text.strip_prefix("tree ")) {
            Some(name) => {
                let tree = group.trees.get(name);
                let tree = tree.ok_or_else(|| io::Error::other(format!("no tree {name}")))?;
                steps.extend(parse_setup(group, tree)?);
            }
            None => steps.push(AttackSetupStep::parse(value)?),
        }
    }
    Ok(steps)
}

impl<'a> AttackRun<'a> {
    fn prepare(
        group: &'a AttackTestCaseGroup,
        opener: AttackSubjectOpenFn<'a>,
        resolver: stead_disk::PathResolutionMethod,
        steps: &[AttackSetupStep],
    ) -> io::Result<Self> {
        let ground = AttackFixture::new()?;
        let opening = SubjectOptions {
            workspace: ground.workspace.clone(),
            state: ground.state.clone(),
            mounts: Vec::new(),
            resolver,
        };
        let mut fight = Self {
            fixture: ground,
            group,
            opener,
            options: opening,
            subject: None,
            principal: DEFAULT_PRINCIPAL.to_owned(),
            known_values: BTreeMap::new(),
            sent: Vec::new(),
            attackers: Vec::new(),
            faults: Vec::new(),
        };
        for step in steps {
            fight.apply_step(step)?;
        }
        fight.open_subject()?;
        Ok(fight)
    }

    fn apply_step(&mut self, step: &AttackSetupStep) -> io::Result<()> {
        if self.fixture.apply_step(step)? {
            self.options.state.clone_from(&self.fixture.state);
            return Ok(());
        }
        match step {
            AttackSetupStep::AllowMountInside(name) => self.options.mounts.push(name.clone()),
            AttackSetupStep::SetPrincipal(principal) => self.principal.clone_from(principal),
            AttackSetupStep::AdvanceClocks(by_ms) => {
                self.open_subject()?.maintain(AttackSubjectClockOrPurgeAction::AdvanceClocks(*by_ms))?
            }
            AttackSetupStep::ShiftWallClock(by_ms) => {
                self.open_subject()?.maintain(AttackSubjectClockOrPurgeAction::ShiftWallClock(*by_ms))?
            }
            AttackSetupStep::PurgeExpired => {
                self.open_subject()?.maintain(AttackSubjectClockOrPurgeAction::PurgeExpired)?
            }
            AttackSetupStep::StartAttacker(attacker) => self.attackers.push(attacker.clone()),
            AttackSetupStep::Call { operation, arguments, principal, expected_refusal: refused } => {
                let reply = self.send_request(operation, arguments, principal.as_deref(), None)?;
                if reply.refusal.is_none() && refused.is_some() {
                    self.add_harm(format!("setup: {operation} was done: {}", reply.text));
                } else if reply.refusal != *refused {
                    let (ended, text) = (reply.refusal, reply.text);
                    return Err(io::Error::other(format!("setup: {operation} ended with {ended:?}: {text}")));
                }
            }
            AttackSetupStep::OpenWorkspace => {
                self.open_subject()?;
            }
            // The fixture has already run the steps that concern files.
            AttackSetupStep::File(..)
            | AttackSetupStep::Directory(_)
            | AttackSetupStep::Link(..)
            | AttackSetupStep::HardLink(..)
            | AttackSetupStep::Fifo(_)
            | AttackSetupStep::Socket(_)
            | AttackSetupStep::Device(..)
            | AttackSetupStep::OutsideFile(..)
            | AttackSetupStep::OutsideDirectory(_)
            | AttackSetupStep::OutsideFifo(_)
            | AttackSetupStep::OutsideSocket(_)
            | AttackSetupStep::OutsideLink(..)
            | AttackSetupStep::SiblingFile(..)
            | AttackSetupStep::SetMode(..)
            | AttackSetupStep::SparseFile(..)
            | AttackSetupStep::PolicyFile(_)
            | AttackSetupStep::Remove(_)
            | AttackSetupStep::DeepDirectories(..)
            | AttackSetupStep::LinkChain(..)
            | AttackSetupStep::MountFilesystem(..)
            | AttackSetupStep::BindMount(..)
            | AttackSetupStep::WorkspaceMount
            | AttackSetupStep::ReadOnlyWorkspaceMount
            | AttackSetupStep::StateInWorkspace(_)
            | AttackSetupStep::ReplaceRoot => {}
        }
        Ok(())
    }

    fn open_subject(&mut self) -> io::Result<&mut Box<dyn AttackSubject>> {
        if self.subject.is_none() {
            self.subject = Some((self.opener)(&self.options)?);
        }
        self.subject.as_mut().ok_or_else(|| io::Error::other("not open"))
    }

    fn send_request(
        &mut self,
        operation: &str,
        arguments: &Map<String, Value>,
        principal: Option<&str>,
        raw: Option<Vec<u8>>,
    ) -> io::Result<AttackSubjectReply> {
        let arguments = match self.substitute_values(&Value::Object(arguments.clone()))? {
            Value::Object(arguments) => arguments,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
        };
        let principal = principal.unwrap_or(&self.principal).to_owned();
        let request = AttackSubjectRequest { principal, operation: operation.to_owned(), arguments, raw };
        let reply = self.open_subject()?.send(&request)?;
        for (name, field) in [("TRASH", "trash"), ("ENTRY", "entry"), ("VERSION", "version")] {
            match reply.json.get(field) {
                Some(Value::String(text)) => drop(self.known_values.insert(name, text.clone())),
                Some(Value::Number(number)) => drop(self.known_values.insert(name, format!("r{number}"))),
                Some(_) | None => {}
            }
        }
        if let Some(Value::String(id)) = reply.json.pointer("/error/approval") {
            self.known_values.insert("APPROVAL", id.clone());
        }
        self.sent.push(AttackRequestRecord { request, refusal: reply.refusal.clone() });
        Ok(reply)
    }

    fn substitute_values(&self, value: &Value) -> io::Result<Value> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix("$VERSION:") {
                Some(path) => Value::String(self.fixture.version_of(path)?),
                None => Value::String(
                    self.known_values.iter().fold(self.fixture.substitute_places(text), |text, (name, known)| {
                        text.replace(&format!("${name}"), known)
                    }),
                ),
            },
            Value::Object(object) if object.contains_key("$repeat") => {
                let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
                let times = object.get("times").and_then(Value::as_u64).unwrap_or_default();
                let times = usize::try_from(times).map_err(io::Error::other)?;
                Value::String(format!("{}{}{}", text("first"), text("$repeat").repeat(times), text("then")))
            }
            Value::Object(object) => {
                let filled = object.iter().map(|(name, value)| Ok((name.clone(), self.substitute_values(value)?)));
                Value::Object(filled.collect::<io::Result<_>>()?)
            }
            Value::Array(values) => {
                Value::Array(values.iter().map(|value| self.substitute_values(value)).collect::<io::Result<_>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    fn run_one(&mut self, case: &AttackCase) -> io::Result<()> {
        let outside = self.fixture.snapshot_outside()?;
        let inside = self.fixture.snapshot_workspace()?;
        let within = case.within_ms.map_or(REPLY_TIME_MAX, Duration::from_millis);
        if self.attackers.is_empty() {
            let (reply, took) = self.send_timed(case)?;
            self.judge_reply(case, &reply);
            self.check_time(took, within);
            let refused =
                case.expect.result == ExpectedAttackResult::Deny || case.expect.result == ExpectedAttackResult::Error;
            if refused || case.check.unchanged {
                for change in inside.describe_changes(&self.fixture.snapshot_workspace()?) {
                    self.add_harm(format!("inside: {change}"));
                }
            }
            post_checks::check_after(self, &case.check, &reply)?;
        } else {
            self.race_case(case, within)?;
            let calm = AttackSubjectReply { refusal: None, json: Value::Null, text: String::new() };
            post_checks::check_after(self, &PostAttackChecks { answer: Map::new(), ..case.check.clone() }, &calm)?;
        }
        for change in outside.describe_changes(&self.fixture.snapshot_outside()?) {
            self.add_harm(format!("outside: {change}"));
        }
        Ok(())
    }

    fn send_timed(&mut self, case: &AttackCase) -> io::Result<(AttackSubjectReply, Duration)> {
        let watch = BusyMachineAdjustedTimer::start();
        let raw = case.raw.as_ref().map(super::case::AttackCaseArgumentBytes::bytes).transpose()?;
        let reply = self.send_request(&case.operation, &case.arguments, case.principal.as_deref(), raw)?;
        Ok((reply, watch.elapsed()))
    }

    fn race_case(&mut self, case: &AttackCase, within: Duration) -> io::Result<()> {
        let then = parse_setup(self.group, &case.then)?;
        let mut attackers = AttackerThreads::default();
        for attacker in self.attackers.clone() {
            attackers.start(&self.fixture, &attacker)?;
        }
        let started = Instant::now();
        let mut rounds = 0;
        while rounds < RACE_ROUNDS_MAX && started.elapsed() < RACE_DURATION && self.faults.is_empty() {
            rounds += 1;
            self.known_values.insert("N", rounds.to_string());
            let (reply, took) = self.send_timed(case)?;
            self.judge_reply(case, &reply);
            self.check_time(took, within);
            for step in &then {
                if let AttackSetupStep::Call { operation, arguments, principal, .. } = step {
                    let reply = self.send_request(operation, arguments, principal.as_deref(), None)?;
                    post_checks::check_leaks(self, &reply);
                }
            }
        }
        if attackers.has_any() && attackers.stop_all() == 0 {
            return Err(io::Error::other(format!("{}: the attacker never got to work", case.id)));
        }
        if self.fixture.is_attacker_scratch_used() {
            self.add_harm("a directory that was moved out could not come back".to_owned());
        }
        Ok(())
    }

    fn judge_reply(&mut self, case: &AttackCase, reply: &AttackSubjectReply) {
        post_checks::check_leaks(self, reply);
        let wanted = case.expect.kind.as_list();
        match (case.expect.result, &reply.refusal) {
            (ExpectedAttackResult::Ok | ExpectedAttackResult::Safe, None) => {}
            (ExpectedAttackResult::Ok, Some(kind)) => {
                self.add_wrong_reason(format!("refused as {kind}: {}", reply.text))
            }
            (ExpectedAttackResult::Deny | ExpectedAttackResult::Error, None) => {
                self.add_harm(format!("was done: {}", reply.text))
            }
            (ExpectedAttackResult::Deny | ExpectedAttackResult::Error | ExpectedAttackResult::Safe, Some(kind)) => {
                if kind == super::naive_server::HUNG_KIND {
                    self.add_harm("hung".to_owned());
                } else if !wanted.contains(&kind.as_str()) {
                    self.add_wrong_reason(format!("refused as {kind} instead of {wanted:?}: {}", reply.text));
                }
            }
        }
    }

    fn check_time(&mut self, took: Duration, within: Duration) {
        if took > within {
            self.add_harm(format!("took {} ms", took.as_millis()));
        }
    }

    pub(crate) fn add_harm(&mut self, what: String) {
        self.faults.push(AttackCaseDetectedFault { severity: AttackFindingSeverity::Harm, description: what });
    }

    fn add_wrong_reason(&mut self, what: String) {
        self.faults.push(AttackCaseDetectedFault { severity: AttackFindingSeverity::WrongReason, description: what });
    }
}

/// What an attack case requires of the machine and of its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttackCaseRequirements {
    /// Whether the attack case requires a mount namespace.
    pub mounts: bool,
    /// Whether the attack case requires the right to create device files.
    pub devices: bool,
    /// Whether the attack case runs only on a server in the test process, whose clock the test can change.
    pub in_process: bool,
}

/// Derives the requirements of an attack case from its setup steps.
pub fn case_requirements(group: &AttackTestCaseGroup, case: &AttackCase) -> io::Result<AttackCaseRequirements> {
    let steps = parse_setup(group, &case.setup)?;
    Ok(AttackCaseRequirements {
        mounts: steps.iter().any(AttackSetupStep::needs_mounts),
        devices: steps.iter().any(AttackSetupStep::needs_devices),
        in_process: steps.iter().any(AttackSetupStep::needs_in_process),
    })
}
