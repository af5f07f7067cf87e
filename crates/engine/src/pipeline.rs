//! The steps every call takes, from every face, in this order: decode, resolve, authorise, lock, check, plan, approve,
//! commit and record, announce. Announcing is reading the journal, so the last step is whoever waits on it. A call that
//! must wait for a person gives its locks back first, and starts over when the answer is there.
//!
//! Promises: whatever happens, a call leaves exactly one entry; nothing is written before everything is planned.

use std::time::Instant;

use path::RelPath;
use serde_json::{Map, Value};

use crate::{
    approval::{self, ALLOWED_BY_OPERATOR, ApprovalAnswer, Asking, Binding, Gate, Question, Say, Settled},
    authorise::{self, Judged},
    caller::Caller,
    engine::{Answer, Call, Held},
    failure::{Failure, Kind},
    limits,
    operation::{Effect, Need, Operation, Planned, Target},
    ops::{self, OperationRow},
    plan::{Change, Content, Expect, Mode, Plan},
    policy::{self, Action, Right, Tier, Verdict},
    quota,
    recall::Recall,
    resolve,
    terms::{Evidence, Making},
    unsaved,
    version::Version,
    view::View,
    workspace::{CommitError, Guard, LockAsk, Record, Want, Workspace},
};

/// Runs one call.
pub(crate) fn run(
    workspace: &dyn Workspace,
    asking: Asking,
    recall: &Recall,
    call: &Call<'_>,
) -> Result<Answer, Failure> {
    let row = ops::row(call.operation);
    let mut record = Record {
        caller: call.caller,
        operation: row.map_or("unknown", |row| row.name),
        tool: call.terms.tool.as_deref(),
        arguments: recorded_arguments(call, row),
        paths: Vec::new(),
        key: call.key,
        reason: None,
        tier: Tier::Autonomous,
        approval: None,
        policy: 0,
        quota: None,
        bytes: 0,
        started: Instant::now(),
    };
    let outcome = workspace.in_force().and_then(|in_force| {
        record.policy = in_force.policy.version();
        record.quota = in_force.policy.quota(&call.caller.principal);
        match (&call.terms.objection, row) {
            (Some(objection), _) => Err(objection.clone()),
            (None, Some(row)) => {
                let view = View::new(workspace, call, &in_force).recalling(recall);
                steps(&view, asking, call, row, &mut record)
            }
            (None, None) => Err(unknown_operation(call.operation)),
        }
    });
    match outcome {
        Ok(Done::Recorded(answer)) => Ok(answer),
        Ok(Done::Amended(failure)) => Err(failure),
        Ok(Done::Looked(answer)) => {
            workspace.note(&record)?;
            if call.terms.making != Making::Here {
                // It is made true as soon as this returns, so its record must not wait: asking for the head writes it.
                workspace.head()?;
            }
            Ok(answer)
        }
        Err(failure) => {
            record.reason = Some(failure.recorded(&call.caller.principal));
            if failure.kind == Kind::PolicyDenied {
                record.tier = Tier::Blocked;
            }
            // A refusal that cannot be recorded is still a refusal; the reason the caller sees stays the first one.
            match workspace.note(&record) {
                Ok(()) | Err(_) => Err(failure),
            }
        }
    }
}

/// Records the answer that a caller's client gave.
pub(crate) fn answer(
    workspace: &dyn Workspace,
    caller: &Caller,
    answer: &ApprovalAnswer,
) -> Result<(), Failure> {
    let operation = match answer.say {
        Say::Yes => "approve",
        Say::No => "deny",
    };
    let record = Record {
        caller,
        operation,
        tool: None,
        arguments: serde_json::json!({ "id": answer.id, "by": "client" }).to_string(),
        paths: Vec::new(),
        key: None,
        reason: None,
        tier: Tier::Autonomous,
        approval: None,
        policy: workspace.in_force()?.policy.version(),
        quota: None,
        bytes: 0,
        started: Instant::now(),
    };
    workspace.answer(answer, &record).map(|_| ())
}

/// How a call ended.
enum Done {
    /// Its entry exists.
    Recorded(Answer),
    /// Its entry exists, and another one that says why it was not made true.
    Amended(Failure),
    /// It changed nothing; its entry is still to be noted.
    Looked(Answer),
}

fn steps(
    view: &View<'_>,
    asking: Asking,
    call: &Call<'_>,
    row: &OperationRow,
    record: &mut Record<'_>,
) -> Result<Done, Failure> {
    let workspace = view.workspace();
    let operation = (row.decode)(&call.arguments)?;
    if let Some(done) = replay(workspace, call)? {
        return Ok(done);
    }
    let rate = policy::rates::judge(view, row.effect)?;
    let turn = Turn { view, asking, call, row, operation: &*operation, rate };
    quota::prepare(view, row.effect)?;
    let mut room = Room::Unasked;
    for _ in 0..limits::REPLAN_MAX {
        call.control.check()?;
        let attempt = match turn.attempt(record) {
            Err(failure) if failure.kind == Kind::Quota && room == Room::Unasked => {
                // Others may have made room since it was counted.
                room = Room::Asked;
                quota::refresh(view)?;
                Attempt::Again
            }
            attempt => attempt?,
        };
        match attempt {
            Attempt::Done(done) => return Ok(done),
            Attempt::Again => {}
            Attempt::Ask(mut question) => {
                let evidence = question.evidence.take();
                record.tier = Tier::ApprovalRequired;
                match approval::settle(view, call, *question)? {
                    Settled::GoOn => {}
                    Settled::Refused(failure, approval) => {
                        record.approval = approval;
                        return Err(failure.about(evidence.map(|held| *held)));
                    }
                }
            }
        }
    }
    Err(Failure::new(Kind::Busy, "the place keeps changing while the call runs; nothing was changed")
        .hint("call again"))
}

/// Whether it was looked again how much is held, before a call is refused for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Unasked,
    Asked,
}

/// How one round of the pipeline ended.
enum Attempt {
    Done(Done),
    /// The world moved between planning and commit.
    Again,
    /// A person must be asked. The locks are given back.
    Ask(Box<Question>),
}

/// What every round of one call has in common.
struct Turn<'t> {
    view: &'t View<'t>,
    asking: Asking,
    call: &'t Call<'t>,
    row: &'t OperationRow,
    operation: &'t dyn Operation,
    /// What the rates say.
    rate: Verdict,
}

impl Turn<'_> {
    fn attempt(&self, record: &mut Record<'_>) -> Result<Attempt, Failure> {
        let (view, row) = (self.view, self.row);
        let workspace = view.workspace();
        let asks = self.operation.asks(view)?;
        let mut targets = resolve::targets(workspace, &asks, &self.call.terms.reading)?;
        record.paths = targets.iter().map(|target| target.path.clone()).collect();
        let Judged { looks, changes } = authorise::judge(view, row.effect, &asks, &targets)?;
        let looks = looks.stricter(self.rate);
        if row.effect == Effect::Read
            && let Some(question) = self.gate(looks, record, &targets, None)?
        {
            return Ok(Attempt::Ask(question));
        }
        let _guard = lock(workspace, row.effect, &asks, &targets, self.call)?;
        view.locked();
        resolve::check(view, &mut targets)?;
        let mut planned = self.operation.plan(view, &targets)?;
        let written = written(view, &planned);
        let marks = match &mut planned {
            Planned::Change { plan, .. } => unsaved::settle(view, plan)?,
            Planned::Read { .. }
            | Planned::Preview(_)
            | Planned::Lease { .. }
            | Planned::Keep { .. }
            | Planned::Answer { .. }
            | Planned::Watch { .. }
            | Planned::Buffer { .. } => Vec::new(),
        };
        let verdict = match &planned {
            Planned::Read { .. } | Planned::Preview(_) if row.effect == Effect::Read => Verdict::FREE,
            Planned::Read { .. } | Planned::Preview(_) => looks,
            Planned::Lease { ask, .. } => {
                looks.stricter(authorise::ruled(view, &Action::new(Right::Modify, ask.path()))?)
            }
            Planned::Keep { .. } | Planned::Buffer { .. } => looks,
            Planned::Answer { .. } | Planned::Watch { .. } => Verdict::FREE,
            Planned::Change { plan, .. } => {
                looks.stricter(changes).stricter(authorise::judge_plan(view, plan)?)
            }
        };
        if let Some(mut question) = self.gate(verdict, record, &targets, Some(&planned))? {
            question.evidence = proposed(view, planned).map(Box::new);
            return Ok(Attempt::Ask(question));
        }
        let mut attempt = self.finish(planned, record)?;
        if let Attempt::Done(Done::Recorded(answer) | Done::Looked(answer)) = &mut attempt {
            unsaved::mark(view, &targets, &marks, answer);
            for (path, version, bytes) in &written {
                view.remember(path, *version, Some(bytes));
            }
        }
        Ok(attempt)
    }

    /// Lets a call through, or says what must be asked.
    fn gate(
        &self,
        verdict: Verdict,
        record: &mut Record<'_>,
        targets: &[Target],
        planned: Option<&Planned>,
    ) -> Result<Option<Box<Question>>, Failure> {
        record.tier = record.tier.max(verdict.tier);
        if verdict.tier < Tier::ApprovalRequired {
            return Ok(None);
        }
        let view = self.view;
        let call = approval::of_call(self.call);
        let changes = match planned {
            Some(Planned::Change { plan, .. }) => Some(plan),
            Some(
                Planned::Read { .. }
                | Planned::Preview(_)
                | Planned::Lease { .. }
                | Planned::Keep { .. }
                | Planned::Watch { .. }
                | Planned::Buffer { .. }
                | Planned::Answer { .. },
            )
            | None => None,
        };
        let plan = match changes {
            Some(plan) => approval::of_plan(view, &call, plan)?,
            None => approval::of_targets(view, &call, targets),
        };
        let shown = || changes.map_or_else(|| looked(targets), |plan| approval::shown(view, plan));
        match Gate::check(view, self.asking, Binding { call, plan }, verdict, shown)? {
            Gate::Open(approval) => record.approval = Some(approval),
            Gate::OperatorOpened => record.approval = Some(ALLOWED_BY_OPERATOR.to_owned()),
            Gate::Closed(question) => return Ok(Some(Box::new(question))),
        }
        Ok(None)
    }

    /// Makes it true and records it.
    fn finish(&self, planned: Planned, record: &mut Record<'_>) -> Result<Attempt, Failure> {
        let workspace = self.view.workspace();
        let outcome = match planned {
            Planned::Read { answer, bytes } => {
                record.bytes = bytes;
                if self.row.effect != Effect::Read {
                    add_fact(&mut record.arguments, UNCHANGED, answer.json.get("version").cloned());
                }
                return Ok(Attempt::Done(Done::Looked(answer)));
            }
            Planned::Preview(answer) => return Ok(Attempt::Done(Done::Looked(answer))),
            Planned::Lease { ask, finish } => {
                let (lease, committed) = workspace.lease(&ask, record)?;
                return Ok(Attempt::Done(Done::Recorded(finish(&lease, &committed))));
            }
            Planned::Keep { ask, finish } => {
                let (kept, committed) = workspace.keep(&ask, record)?;
                return Ok(Attempt::Done(Done::Recorded(finish(&kept, &committed))));
            }
            Planned::Answer { answer, finish } => {
                let (approval, committed) = workspace.answer(&answer, record)?;
                return Ok(Attempt::Done(Done::Recorded(finish(&approval, &committed))));
            }
            Planned::Watch { ask, finish } => {
                let (watch, committed) = workspace.watch(&ask, record, self.call.control.deadline())?;
                return Ok(Attempt::Done(Done::Recorded(finish(&watch, &committed))));
            }
            Planned::Buffer { ask, finish } => {
                let (buffer, committed) = workspace.change_buffer(&ask, record)?;
                return Ok(Attempt::Done(Done::Recorded(finish(&buffer, &committed))));
            }
            Planned::Change { plan, .. } if self.call.terms.making != Making::Here => {
                add_fact(&mut record.arguments, ELSEWHERE, Some(plan.changes.len().into()));
                return Ok(Attempt::Done(Done::Looked(left_to_others(self.view, plan))));
            }
            Planned::Change { plan, finish } => {
                self.call.control.check()?;
                add_fact(&mut record.arguments, MOVED, moved(&plan));
                add_fact(&mut record.arguments, BUFFERS, moved_buffers(&plan));
                workspace.commit(&plan, record).map(|committed| finish(&committed))
            }
        };
        match outcome {
            Ok(answer) => Ok(Attempt::Done(Done::Recorded(answer))),
            Err(CommitError::Moved(_)) => Ok(Attempt::Again),
            Err(CommitError::Replayed(number)) => {
                Ok(Attempt::Done(Done::Looked(replayed(workspace, number)?)))
            }
            Err(CommitError::Amended(failure)) => Ok(Attempt::Done(Done::Amended(failure))),
            Err(CommitError::Failed(failure)) => Err(failure),
        }
    }
}

/// The texts that a plan leaves, as its caller knows them.
fn written(view: &View<'_>, planned: &Planned) -> Vec<(RelPath, Version, Vec<u8>)> {
    let Planned::Change { plan, .. } = planned else { return Vec::new() };
    let put = |change: &Change| match change {
        Change::Put { path, content: Content::Bytes(bytes), version, .. }
            if bytes.len() as u64 <= limits::RECALLED_FILE_BYTES_MAX && view.may_read(path) =>
        {
            let (version, bytes) = view.knows_of(path, *version, bytes);
            Some((path.clone(), version, bytes))
        }
        Change::Put { .. }
        | Change::MakeDirectory { .. }
        | Change::MakeLink { .. }
        | Change::Move { .. }
        | Change::Remove { .. }
        | Change::RemoveDirectory { .. }
        | Change::Restore { .. } => None,
    };
    plan.changes.iter().filter_map(put).collect()
}

/// What a person is shown of a call that changes nothing.
fn looked(targets: &[Target]) -> Value {
    let places: Vec<String> = targets.iter().map(|target| target.path.to_string()).collect();
    serde_json::json!({ "changes": [], "places": places })
}

/// Locks what will change, in sorted order. Looking takes no lock: every file is replaced whole.
fn lock(
    workspace: &dyn Workspace,
    effect: Effect,
    asks: &[crate::operation::Ask],
    targets: &[Target],
    call: &Call<'_>,
) -> Result<Option<Box<dyn Guard>>, Failure> {
    if effect == Effect::Read {
        return Ok(None);
    }
    let mut wanted: Vec<LockAsk> = asks
        .iter()
        .zip(targets)
        .filter(|(ask, _)| ask.need != Need::Read)
        .map(|(_, target)| LockAsk { path: target.path.clone() })
        .collect();
    wanted.sort();
    wanted.dedup();
    workspace.lock(&wanted, call.control.deadline()).map(Some)
}

/// A repeated idempotency key is answered from the entry it made, never applied twice.
fn replay(workspace: &dyn Workspace, call: &Call<'_>) -> Result<Option<Done>, Failure> {
    let Some(key) = call.key else { return Ok(None) };
    if key.is_empty() || key.len() > limits::KEY_BYTES_MAX {
        return Err(Failure::new(
            Kind::BadRequest,
            format!("an idempotency key has 1 to {} bytes", limits::KEY_BYTES_MAX),
        ));
    }
    match workspace.replayed(&call.caller.principal, key)? {
        Some(number) => {
            refuse_other_call(workspace, call, number)?;
            Ok(Some(Done::Looked(replayed(workspace, number)?)))
        }
        None => Ok(None),
    }
}

/// A key names one call. What the engine added to the recorded arguments is no part of them.
fn refuse_other_call(workspace: &dyn Workspace, call: &Call<'_>, number: u64) -> Result<(), Failure> {
    let Some(stored) = workspace.entry(number)? else { return Ok(()) };
    let asked = |text: &str| {
        let mut fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
        fields.retain(|name, _| ![UNCHANGED, MOVED, BUFFERS, ELSEWHERE].contains(&name.as_str()));
        fields
    };
    let now = recorded_arguments(call, ops::row(call.operation));
    if stored.entry.operation == call.operation && asked(&stored.entry.arguments) == asked(&now) {
        return Ok(());
    }
    Err(Failure::new(Kind::BadRequest, format!("this idempotency key was used for another call, r{number}"))
        .hint("use a new key for a new call"))
}

/// The answer to a change that somebody else makes true: what they are to make of which file.
fn left_to_others(view: &View<'_>, plan: Plan) -> Answer {
    let text = "allowed and recorded; somebody else makes it true".to_owned();
    let evidence = plan.changes.into_iter().find_map(|change| put(view, change)).into_iter().collect();
    Answer { json: Map::new(), text, evidence, switch: None }
}

/// What a file holds and would hold, for a face that puts it before a person itself.
fn proposed(view: &View<'_>, planned: Planned) -> Option<Held> {
    match (view.terms.evidence, planned) {
        (Evidence::Bytes, Planned::Change { plan, .. }) => {
            plan.changes.into_iter().find_map(|change| put(view, change))
        }
        (Evidence::None | Evidence::Bytes, _) => None,
    }
}

/// The bytes of a change, before and after it.
fn put(view: &View<'_>, change: Change) -> Option<Held> {
    match change {
        Change::Put { path, expect, content: Content::Bytes(after), .. } => {
            let want = Want::Whole { limit_bytes: limits::WRITE_BYTES_MAX };
            let before = match (&view.terms.making, expect) {
                (Making::Elsewhere(held), _) => held.as_ref().map(|text| text.as_bytes().to_vec()),
                (Making::Here, Expect::Absent) => None,
                // What may not be seen, or is gone again, is not shown.
                (Making::Here, Expect::File(_) | Expect::Node(_)) if !view.may_read(&path) => None,
                (Making::Here, Expect::File(_) | Expect::Node(_)) => {
                    view.read_for_change(&path, want).ok().map(|file| file.bytes)
                }
            };
            Some(Held { path, before, after: Some(after) })
        }
        Change::Put { .. }
        | Change::MakeDirectory { .. }
        | Change::MakeLink { .. }
        | Change::Move { .. }
        | Change::Remove { .. }
        | Change::RemoveDirectory { .. }
        | Change::Restore { .. } => None,
    }
}

/// How many changes were left to somebody else.
const ELSEWHERE: &str = "made_elsewhere";
/// The version that a call found, when it changed nothing.
const UNCHANGED: &str = "unchanged";
/// Which file that went is which one that came.
const MOVED: &str = "moved";
/// Which open buffers went along.
const BUFFERS: &str = "buffers";

fn replayed(workspace: &dyn Workspace, number: u64) -> Result<Answer, Failure> {
    let stored = workspace
        .entry(number)?
        .ok_or_else(|| Failure::new(Kind::HistoryLost, format!("entry {number} is not in the journal")))?;
    Ok(ops::answer_from_entry(&stored))
}

fn unknown_operation(name: &str) -> Failure {
    let known: Vec<&str> = ops::OPERATIONS.iter().map(|row| row.name).collect();
    let shown: String = name.chars().take(64).collect();
    Failure::new(Kind::UnknownOperation, format!("there is no operation '{shown}'"))
        .hint(format!("operations: {}", known.join(", ")))
}

/// Which file that went is which one that came, for a plan that moves files and changes them.
fn moved(plan: &Plan) -> Option<Value> {
    let pair = |change: &Change| match change {
        Change::Put { path, mode: Mode::Like(from, _), .. } => {
            Some((from.to_string(), path.to_string().into()))
        }
        Change::Put { .. }
        | Change::MakeDirectory { .. }
        | Change::MakeLink { .. }
        | Change::Move { .. }
        | Change::Remove { .. }
        | Change::RemoveDirectory { .. }
        | Change::Restore { .. } => None,
    };
    let moved: Map<String, Value> = plan.changes.iter().filter_map(pair).collect();
    (!moved.is_empty()).then_some(Value::Object(moved))
}

/// Which open buffers go along with a plan.
fn moved_buffers(plan: &Plan) -> Option<Value> {
    let ids: Vec<&str> = plan.buffers.iter().map(|step| step.id.as_str()).collect();
    (!ids.is_empty()).then(|| ids.into())
}

/// Adds to the recorded arguments what the engine found out. Hardly any call has something to add.
fn add_fact(arguments: &mut String, name: &str, fact: Option<Value>) {
    let Some(fact) = fact else { return };
    if let Ok(Value::Object(mut fields)) = serde_json::from_str(arguments) {
        fields.insert(name.to_owned(), fact);
        *arguments = Value::Object(fields).to_string();
    }
}

/// The arguments as the journal keeps them: contents by their size, long texts cut, secrets of no use to anyone.
fn recorded_arguments(call: &Call<'_>, row: Option<&OperationRow>) -> String {
    let contents = row.map_or(&[][..], |row| row.contents);
    // Arguments that a dialect objects to are still in its own words, and any of them may be content.
    let is_foreign = |name: &str| call.terms.objection.is_some() && !name.to_lowercase().contains("path");
    let kept = call.arguments.iter().map(|(name, value)| {
        let shown = match value {
            Value::String(text) if contents.contains(&name.as_str()) || is_foreign(name) => {
                Value::String(format!("<{} bytes>", text.len()))
            }
            Value::String(text) if text.len() > limits::RECORDED_ARGUMENT_CHARS => {
                Value::String(format!("<{} bytes>", text.len()))
            }
            Value::Array(_) | Value::Object(_) => Value::String("<nested>".to_owned()),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        };
        (name.clone(), shown)
    });
    Value::Object(kept.take(32).collect()).to_string()
}
