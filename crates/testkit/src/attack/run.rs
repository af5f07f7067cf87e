//! Runs cases against a subject and judges what came of them. What must always hold is checked for every case: the
//! outside is as it was, nothing of it is in a reply, every request is one entry, a refused change changed nothing, and
//! it was over in time.

use std::{
    collections::BTreeMap,
    io,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use super::{
    case::{Case, Checks, Ending, Group},
    check,
    ground::Ground,
    ledger,
    race::Attackers,
    step::Step,
    subject::{Asked, Chore, Opener, Opening, Reply, Subject},
    time::Watch,
};

/// Who asks when a case does not say.
const USUAL: &str = "agent:tester";
/// The longest time of one request.
const WITHIN: Duration = Duration::from_secs(2);
/// How long a case is repeated while attackers work.
const RACE: Duration = Duration::from_millis(250);
/// At most this often.
const RACE_ROUNDS_MAX: u64 = 2_000;

/// What is wrong with one case.
#[derive(Debug, Clone)]
pub struct Fault {
    /// How bad it is.
    pub weight: Weight,
    /// In words.
    pub what: String,
}

/// How bad a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Something leaked, changed, hung, or was done that must not be.
    Harm,
    /// Nothing happened, but the reason given is not the right one.
    Reason,
    /// The journal does not say what happened.
    Journal,
}

/// What came of one case.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Its id.
    pub id: String,
    /// What is wrong; empty when it passed.
    pub faults: Vec<Fault>,
}

impl Verdict {
    /// Whether the case passed.
    pub fn passed(&self) -> bool {
        self.faults.is_empty()
    }

    /// The faults in words.
    pub fn told(&self) -> String {
        let faults: Vec<String> =
            self.faults.iter().map(|fault| format!("{:?}: {}", fault.weight, fault.what)).collect();
        format!("{}: {}", self.id, faults.join("; "))
    }

    /// Whether harm was done.
    pub fn harmed(&self) -> bool {
        self.faults.iter().any(|fault| fault.weight == Weight::Harm)
    }
}

/// One request as it went.
pub(crate) struct Went {
    pub(crate) asked: Asked,
    pub(crate) refused: Option<String>,
}

/// A case or several on one ground.
pub(crate) struct Fight<'a> {
    pub(crate) ground: Ground,
    group: &'a Group,
    opener: Opener<'a>,
    opening: Opening,
    subject: Option<Box<dyn Subject>>,
    principal: String,
    /// What calls answered: `TRASH`, `ENTRY`, `VERSION`, `APPROVAL`; and the round, `N`.
    known: BTreeMap<&'static str, String>,
    went: Vec<Went>,
    attackers: Vec<super::step::Attacker>,
    pub(crate) faults: Vec<Fault>,
}

/// Runs one case on a ground of its own.
pub fn run(group: &Group, case: &Case, opener: Opener<'_>, resolver: disk::Resolver) -> io::Result<Verdict> {
    let mut verdicts = run_together(group, std::slice::from_ref(case), opener, resolver)?;
    verdicts.pop().ok_or_else(|| io::Error::other("no verdict"))
}

/// Runs cases that change nothing one after another on one ground; the setup is that of the first.
pub fn run_together(
    group: &Group,
    cases: &[Case],
    opener: Opener<'_>,
    resolver: disk::Resolver,
) -> io::Result<Vec<Verdict>> {
    let Some(first) = cases.first() else { return Ok(Vec::new()) };
    let steps = steps_of(group, &first.setup)?;
    let mut fight = Fight::prepare(group, opener, resolver, &steps)?;
    let mut verdicts = Vec::new();
    for case in cases {
        fight.one(case)?;
        verdicts.push(Verdict { id: case.id.clone(), faults: std::mem::take(&mut fight.faults) });
    }
    let went = std::mem::take(&mut fight.went);
    let ledger = match fight.subject.take() {
        Some(subject) => subject.finish(&fight.ground.workspace)?,
        None => None,
    };
    if let (Some(ledger), Some(last)) = (ledger, verdicts.last_mut()) {
        last.faults.extend(ledger::compare(&went, &ledger));
    }
    if let Some(last) = verdicts.last_mut()
        && cases.iter().any(|case| case.check.trash_empty)
        && fight.ground.trash_holds_something()
    {
        last.faults.push(Fault { weight: Weight::Harm, what: "something is left in the trash".to_owned() });
    }
    Ok(verdicts)
}

/// Cases in portions that may share one ground: those that must change nothing, when they are built on the same setup.
pub fn portions(cases: &[Case]) -> Vec<&[Case]> {
    let still = |case: &Case| {
        matches!(case.expect.result, Ending::Deny | Ending::Error)
            && !case.check.trash_empty
            && case.only.is_none()
            && case.within_ms.is_none()
    };
    cases.chunk_by(|one, next| one.setup == next.setup && still(one) && still(next)).collect()
}

/// The instructions of a setup, with named trees put in.
pub(crate) fn steps_of(group: &Group, setup: &[Value]) -> io::Result<Vec<Step>> {
    let mut steps = Vec::new();
    for value in setup {
        match value.as_str().and_then(|text| text.strip_prefix("tree ")) {
            Some(name) => {
                let tree = group.trees.get(name);
                let tree = tree.ok_or_else(|| io::Error::other(format!("no tree {name}")))?;
                steps.extend(steps_of(group, tree)?);
            }
            None => steps.push(Step::parse(value)?),
        }
    }
    Ok(steps)
}

impl<'a> Fight<'a> {
    fn prepare(
        group: &'a Group,
        opener: Opener<'a>,
        resolver: disk::Resolver,
        steps: &[Step],
    ) -> io::Result<Self> {
        let ground = Ground::new()?;
        let opening = Opening {
            workspace: ground.workspace.clone(),
            state: ground.state.clone(),
            mounts: Vec::new(),
            resolver,
        };
        let mut fight = Self {
            ground,
            group,
            opener,
            opening,
            subject: None,
            principal: USUAL.to_owned(),
            known: BTreeMap::new(),
            went: Vec::new(),
            attackers: Vec::new(),
            faults: Vec::new(),
        };
        for step in steps {
            fight.step(step)?;
        }
        fight.subject()?;
        Ok(fight)
    }

    fn step(&mut self, step: &Step) -> io::Result<()> {
        if self.ground.apply(step)? {
            self.opening.state.clone_from(&self.ground.state);
            return Ok(());
        }
        match step {
            Step::AllowMount(name) => self.opening.mounts.push(name.clone()),
            Step::Principal(principal) => self.principal.clone_from(principal),
            Step::Later(by_ms) => self.subject()?.tend(Chore::Later(*by_ms))?,
            Step::WallJump(by_ms) => self.subject()?.tend(Chore::WallJump(*by_ms))?,
            Step::Expire => self.subject()?.tend(Chore::Expire)?,
            Step::Concurrent(attacker) => self.attackers.push(attacker.clone()),
            Step::Call { operation, arguments, principal, refused } => {
                let reply = self.ask(operation, arguments, principal.as_deref(), None)?;
                if reply.refused.is_none() && refused.is_some() {
                    self.harm(format!("setup: {operation} was done: {}", reply.text));
                } else if reply.refused != *refused {
                    let (ended, text) = (reply.refused, reply.text);
                    return Err(io::Error::other(format!("setup: {operation} ended with {ended:?}: {text}")));
                }
            }
            Step::Open => {
                self.subject()?;
            }
            // What is about files the ground has done.
            Step::File(..)
            | Step::Directory(_)
            | Step::Link(..)
            | Step::HardLink(..)
            | Step::Fifo(_)
            | Step::Socket(_)
            | Step::Device(..)
            | Step::OutFile(..)
            | Step::OutDirectory(_)
            | Step::OutFifo(_)
            | Step::OutSocket(_)
            | Step::OutLink(..)
            | Step::Sibling(..)
            | Step::Mode(..)
            | Step::Sparse(..)
            | Step::Policy(_)
            | Step::Gone(_)
            | Step::Deep(..)
            | Step::Chain(..)
            | Step::Mount(..)
            | Step::Bind(..)
            | Step::OwnMount
            | Step::ReadOnlyMount
            | Step::StateInside(_)
            | Step::SwapRoot => {}
        }
        Ok(())
    }

    fn subject(&mut self) -> io::Result<&mut Box<dyn Subject>> {
        if self.subject.is_none() {
            self.subject = Some((self.opener)(&self.opening)?);
        }
        self.subject.as_mut().ok_or_else(|| io::Error::other("not open"))
    }

    fn ask(
        &mut self,
        operation: &str,
        arguments: &Map<String, Value>,
        principal: Option<&str>,
        raw: Option<Vec<u8>>,
    ) -> io::Result<Reply> {
        let arguments = match self.filled(&Value::Object(arguments.clone()))? {
            Value::Object(arguments) => arguments,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        };
        let principal = principal.unwrap_or(&self.principal).to_owned();
        let asked = Asked { principal, operation: operation.to_owned(), arguments, raw };
        let reply = self.subject()?.ask(&asked)?;
        for (name, field) in [("TRASH", "trash"), ("ENTRY", "entry"), ("VERSION", "version")] {
            match reply.json.get(field) {
                Some(Value::String(text)) => drop(self.known.insert(name, text.clone())),
                Some(Value::Number(number)) => drop(self.known.insert(name, format!("r{number}"))),
                Some(_) | None => {}
            }
        }
        if let Some(Value::String(id)) = reply.json.pointer("/error/approval") {
            self.known.insert("APPROVAL", id.clone());
        }
        self.went.push(Went { asked, refused: reply.refused.clone() });
        Ok(reply)
    }

    /// Arguments with real places and known ids put in.
    fn filled(&self, value: &Value) -> io::Result<Value> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix("$VERSION:") {
                Some(path) => Value::String(self.ground.version_of(path)?),
                None => {
                    Value::String(self.known.iter().fold(self.ground.fill(text), |text, (name, known)| {
                        text.replace(&format!("${name}"), known)
                    }))
                }
            },
            Value::Object(object) if object.contains_key("$repeat") => {
                let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
                let times = object.get("times").and_then(Value::as_u64).unwrap_or_default();
                let times = usize::try_from(times).map_err(io::Error::other)?;
                Value::String(format!("{}{}{}", text("first"), text("$repeat").repeat(times), text("then")))
            }
            Value::Object(object) => {
                let filled = object.iter().map(|(name, value)| Ok((name.clone(), self.filled(value)?)));
                Value::Object(filled.collect::<io::Result<_>>()?)
            }
            Value::Array(values) => {
                Value::Array(values.iter().map(|value| self.filled(value)).collect::<io::Result<_>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    /// Asks one case and judges it.
    fn one(&mut self, case: &Case) -> io::Result<()> {
        let outside = self.ground.look_outside()?;
        let inside = self.ground.look_inside()?;
        let within = case.within_ms.map_or(WITHIN, Duration::from_millis);
        if self.attackers.is_empty() {
            let (reply, took) = self.timed(case)?;
            self.judge(case, &reply);
            self.late(took, within);
            let refused = case.expect.result == Ending::Deny || case.expect.result == Ending::Error;
            if refused || case.check.unchanged {
                for change in inside.changes(&self.ground.look_inside()?) {
                    self.harm(format!("inside: {change}"));
                }
            }
            check::after(self, &case.check, &reply)?;
        } else {
            self.race(case, within)?;
            let calm = Reply { refused: None, json: Value::Null, text: String::new() };
            check::after(self, &Checks { answer: Map::new(), ..case.check.clone() }, &calm)?;
        }
        for change in outside.changes(&self.ground.look_outside()?) {
            self.harm(format!("outside: {change}"));
        }
        Ok(())
    }

    fn timed(&mut self, case: &Case) -> io::Result<(Reply, Duration)> {
        let watch = Watch::start();
        let raw = case.raw.as_ref().map(super::case::Raw::bytes).transpose()?;
        let reply = self.ask(&case.operation, &case.arguments, case.principal.as_deref(), raw)?;
        Ok((reply, watch.took()))
    }

    /// Repeats a case while attackers work.
    fn race(&mut self, case: &Case, within: Duration) -> io::Result<()> {
        let then = steps_of(self.group, &case.then)?;
        let mut attackers = Attackers::default();
        for attacker in self.attackers.clone() {
            attackers.start(&self.ground, &attacker)?;
        }
        let started = Instant::now();
        let mut rounds = 0;
        while rounds < RACE_ROUNDS_MAX && started.elapsed() < RACE && self.faults.is_empty() {
            rounds += 1;
            self.known.insert("N", rounds.to_string());
            let (reply, took) = self.timed(case)?;
            self.judge(case, &reply);
            self.late(took, within);
            for step in &then {
                if let Step::Call { operation, arguments, principal, .. } = step {
                    let reply = self.ask(operation, arguments, principal.as_deref(), None)?;
                    check::leaks(self, &reply);
                }
            }
        }
        if attackers.any() && attackers.stop() == 0 {
            return Err(io::Error::other(format!("{}: the attacker never got to work", case.id)));
        }
        if self.ground.limbo_holds_something() {
            self.harm("a directory that was moved out could not come back".to_owned());
        }
        Ok(())
    }

    /// Judges how a request ended.
    fn judge(&mut self, case: &Case, reply: &Reply) {
        check::leaks(self, reply);
        let wanted = case.expect.kind.list();
        match (case.expect.result, &reply.refused) {
            (Ending::Ok | Ending::Safe, None) => {}
            (Ending::Ok, Some(kind)) => self.reason(format!("refused as {kind}: {}", reply.text)),
            (Ending::Deny | Ending::Error, None) => self.harm(format!("was done: {}", reply.text)),
            (Ending::Deny | Ending::Error | Ending::Safe, Some(kind)) => {
                if kind == super::naive::HUNG {
                    self.harm("hung".to_owned());
                } else if !wanted.contains(&kind.as_str()) {
                    self.reason(format!("refused as {kind} instead of {wanted:?}: {}", reply.text));
                }
            }
        }
    }

    fn late(&mut self, took: Duration, within: Duration) {
        if took > within {
            self.harm(format!("took {} ms", took.as_millis()));
        }
    }

    pub(crate) fn harm(&mut self, what: String) {
        self.faults.push(Fault { weight: Weight::Harm, what });
    }

    fn reason(&mut self, what: String) {
        self.faults.push(Fault { weight: Weight::Reason, what });
    }
}

/// What a case needs from the machine and from its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// A mount namespace of its own.
    pub mounts: bool,
    /// The right to make devices.
    pub devices: bool,
    /// A subject in this process, whose clock and configuration can be reached.
    pub inside: bool,
}

/// What this case needs.
pub fn needs(group: &Group, case: &Case) -> io::Result<Needs> {
    let steps = steps_of(group, &case.setup)?;
    Ok(Needs {
        mounts: steps.iter().any(Step::needs_mounts),
        devices: steps.iter().any(Step::needs_devices),
        inside: steps.iter().any(Step::needs_inside),
    })
}
