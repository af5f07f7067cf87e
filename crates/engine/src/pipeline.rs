//! The steps of every call, in this order: decode, resolve, authorize, lock, check bases, plan, approve, commit and
//! record. Notification needs no step: listeners read the journal. A call that waits for approval releases its locks
//! first and starts over once it is answered.
//!
//! Every call leaves exactly one journal entry, and nothing is written before everything is planned.

use std::time::Instant;

use serde_json::{Map, Value};
use stead_path::RelPath;

use crate::{
    approval::{
        self, ALLOWED_BY_OPERATOR, ApprovalAnswer, ApprovalBinding, ApprovalCheck, ApprovalDecision, ApprovalMode,
        ApprovalWaitResult, MissingApproval,
    },
    authorization::{self, TargetVerdicts},
    call_context::CallContext,
    call_options::{AppliedBy, BeforeAfterInclusion},
    caller::Caller,
    engine::{BeforeAfterBytes, Call, CallOutcome},
    errors::{Error, ErrorKind},
    limits,
    operation::{FileEffect, Operation, PathAccess, PlannedEffect, ResolvedTarget},
    ops::{self, OperationRow},
    plan::{CommitExpectation, FileModeSource, Plan, PlannedChange, PlannedContent},
    policy::{self, AccessRight, PolicyAction, PolicyTier, PolicyVerdict},
    quota, resolve,
    seen_files::SeenFileCache,
    unsaved,
    version::Version,
    workspace::{BytesToRead, CallLockGuard, CallRecord, CommitError, PathLockRequest, Workspace},
};

pub(crate) fn run_call(
    workspace: &dyn Workspace,
    mode: ApprovalMode,
    seen_files: &SeenFileCache,
    call: &Call<'_>,
) -> Result<CallOutcome, Error> {
    let row = ops::find_operation(call.operation);
    let mut record = CallRecord {
        caller: call.caller,
        operation: row.map_or("unknown", |row| row.name),
        tool: call.options.tool.as_deref(),
        arguments: recorded_arguments(call, row),
        paths: Vec::new(),
        idempotency_key: call.idempotency_key,
        error_kind: None,
        policy_tier: PolicyTier::Autonomous,
        approval: None,
        policy_version: 0,
        quota: None,
        bytes: 0,
        started: Instant::now(),
    };
    let outcome = workspace.active_policy().and_then(|active| {
        record.policy_version = active.policy.version();
        record.quota = active.policy.quota(&call.caller.principal);
        match (&call.options.argument_error, row) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(row)) => {
                let context = CallContext::new(workspace, call, &active).with_seen_files(seen_files);
                run_rounds(&context, mode, call, row, &mut record)
            }
            (None, None) => Err(unknown_operation_error(call.operation)),
        }
    });
    match outcome {
        Ok(CallCompletion::Recorded(answer)) => Ok(answer),
        Ok(CallCompletion::RecordedThenFailed(error)) => Err(error),
        Ok(CallCompletion::NotYetRecorded(answer)) => {
            workspace.record_call(&record)?;
            if call.options.applied_by != AppliedBy::Workspace {
                // The editor applies the change as soon as this returns, so the record must be durable: `head` writes
                // it.
                workspace.head()?;
            }
            Ok(answer)
        }
        Err(error) => {
            record.error_kind = Some(error.recorded_kind(&call.caller.principal));
            if error.kind == ErrorKind::PolicyDenied {
                record.policy_tier = PolicyTier::Blocked;
            }
            // A refusal that cannot be recorded is still a refusal; the caller sees the first error.
            match workspace.record_call(&record) {
                Ok(()) | Err(_) => Err(error),
            }
        }
    }
}

/// Records a client's answer to an approval.
pub(crate) fn record_client_answer(
    workspace: &dyn Workspace,
    caller: &Caller,
    answer: &ApprovalAnswer,
) -> Result<(), Error> {
    let operation = match answer.decision {
        ApprovalDecision::Approve => "approve",
        ApprovalDecision::Deny => "deny",
    };
    let record = CallRecord {
        caller,
        operation,
        tool: None,
        arguments: serde_json::json!({ "id": answer.id, "by": "client" }).to_string(),
        paths: Vec::new(),
        idempotency_key: None,
        error_kind: None,
        policy_tier: PolicyTier::Autonomous,
        approval: None,
        policy_version: workspace.active_policy()?.policy.version(),
        quota: None,
        bytes: 0,
        started: Instant::now(),
    };
    workspace.answer_approval(answer, &record).map(|_| ())
}

/// How a call ended.
enum CallCompletion {
    /// Its entry is in the journal.
    Recorded(CallOutcome),
    /// Its entry is in the journal, followed by an entry with the reason why it could not be applied.
    RecordedThenFailed(Error),
    /// It changed nothing, and its entry is not written yet.
    NotYetRecorded(CallOutcome),
}

fn run_rounds(
    context: &CallContext<'_>,
    mode: ApprovalMode,
    call: &Call<'_>,
    row: &OperationRow,
    record: &mut CallRecord<'_>,
) -> Result<CallCompletion, Error> {
    let workspace = context.workspace();
    let operation = (row.decode)(&call.arguments)?;
    if let Some(done) = find_completed_call(workspace, call)? {
        return Ok(done);
    }
    let rate = policy::rate_limit::check_rate(context, row.effect)?;
    let pipeline = CallPipeline {
        context,
        approval_mode: mode,
        call,
        operation_row: row,
        operation: &*operation,
        rate_verdict: rate,
    };
    quota::ensure_usage_counted(context, row.effect)?;
    let mut recheck = QuotaRecheck::NotDone;
    for _ in 0..limits::REPLAN_ATTEMPTS_MAX {
        call.control.check()?;
        let attempt = match pipeline.run_round(record) {
            Err(error) if error.kind == ErrorKind::QuotaExceeded && recheck == QuotaRecheck::NotDone => {
                // Others may have freed space since the last count.
                recheck = QuotaRecheck::Done;
                quota::recount_usage(context)?;
                PlanningRoundResult::Retry
            }
            attempt => attempt?,
        };
        match attempt {
            PlanningRoundResult::Finished(done) => return Ok(done),
            PlanningRoundResult::Retry => {}
            PlanningRoundResult::NeedsApproval(mut missing) => {
                let before_after = missing.before_after.take();
                record.policy_tier = PolicyTier::ApprovalRequired;
                match approval::request_and_wait(context, call, *missing)? {
                    ApprovalWaitResult::Retry => {}
                    ApprovalWaitResult::Refused(error, approval) => {
                        record.approval = approval;
                        return Err(error.with_before_after(before_after.map(|bytes| *bytes)));
                    }
                }
            }
        }
    }
    Err(Error::new(ErrorKind::Busy, "the files keep changing while the call runs; nothing was changed")
        .with_next_step("call again"))
}

/// Whether usage was already recounted before a quota refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuotaRecheck {
    NotDone,
    Done,
}

enum PlanningRoundResult {
    Finished(CallCompletion),
    /// The files changed between planning and commit.
    Retry,
    /// Approval is required. The locks are released.
    NeedsApproval(Box<MissingApproval>),
}

/// The state shared by all rounds of one call.
struct CallPipeline<'t> {
    context: &'t CallContext<'t>,
    approval_mode: ApprovalMode,
    call: &'t Call<'t>,
    operation_row: &'t OperationRow,
    operation: &'t dyn Operation,
    rate_verdict: PolicyVerdict,
}

impl CallPipeline<'_> {
    fn run_round(&self, record: &mut CallRecord<'_>) -> Result<PlanningRoundResult, Error> {
        let (context, row) = (self.context, self.operation_row);
        let workspace = context.workspace();
        let requests = self.operation.requested_paths(context)?;
        let mut targets = resolve::resolve_targets(workspace, &requests, &self.call.options.path_spelling)?;
        record.paths = targets.iter().map(|target| target.path.clone()).collect();
        let TargetVerdicts { reads, writes: changes } =
            authorization::check_targets(context, row.effect, &requests, &targets)?;
        let reads = reads.stricter_of(self.rate_verdict);
        if row.effect == FileEffect::None
            && let Some(missing) = self.require_approval(reads, record, &targets, None)?
        {
            return Ok(PlanningRoundResult::NeedsApproval(missing));
        }
        let _guard = lock_targets(workspace, row.effect, &requests, &targets, self.call)?;
        context.discard_buffer_snapshot();
        resolve::check_bases(context, &mut targets)?;
        let mut planned = self.operation.plan(context, &targets)?;
        let written = contents_written(context, &planned);
        let notices = match &mut planned {
            PlannedEffect::Files { plan, .. } => unsaved::rebase_plan_onto_disk(context, plan)?,
            PlannedEffect::Read { .. }
            | PlannedEffect::Preview(_)
            | PlannedEffect::Lease { .. }
            | PlannedEffect::Session { .. }
            | PlannedEffect::Approval { .. }
            | PlannedEffect::Watch { .. }
            | PlannedEffect::Buffer { .. } => Vec::new(),
        };
        let verdict = match &planned {
            PlannedEffect::Read { .. } | PlannedEffect::Preview(_) if row.effect == FileEffect::None => {
                PolicyVerdict::UNRESTRICTED
            }
            PlannedEffect::Read { .. } | PlannedEffect::Preview(_) => reads,
            PlannedEffect::Lease { request, .. } => reads.stricter_of(authorization::evaluate_policy(
                context,
                &PolicyAction::new(AccessRight::Modify, request.path()),
            )?),
            PlannedEffect::Session { .. } | PlannedEffect::Buffer { .. } => reads,
            PlannedEffect::Approval { .. } | PlannedEffect::Watch { .. } => PolicyVerdict::UNRESTRICTED,
            PlannedEffect::Files { plan, .. } => {
                reads.stricter_of(changes).stricter_of(authorization::check_plan(context, plan)?)
            }
        };
        if let Some(mut missing) = self.require_approval(verdict, record, &targets, Some(&planned))? {
            missing.before_after = proposed_before_after(context, planned).map(Box::new);
            return Ok(PlanningRoundResult::NeedsApproval(missing));
        }
        let mut attempt = self.execute_planned(planned, record)?;
        if let PlanningRoundResult::Finished(
            CallCompletion::Recorded(answer) | CallCompletion::NotYetRecorded(answer),
        ) = &mut attempt
        {
            unsaved::add_unsaved_notices(context, &targets, &notices, answer);
            for (path, version, bytes) in &written {
                context.remember(path, *version, Some(bytes));
            }
        }
        Ok(attempt)
    }

    /// Lets a call pass, or returns the approval it lacks.
    fn require_approval(
        &self,
        verdict: PolicyVerdict,
        record: &mut CallRecord<'_>,
        targets: &[ResolvedTarget],
        planned: Option<&PlannedEffect>,
    ) -> Result<Option<Box<MissingApproval>>, Error> {
        record.policy_tier = record.policy_tier.max(verdict.tier);
        if verdict.tier < PolicyTier::ApprovalRequired {
            return Ok(None);
        }
        let context = self.context;
        let call = approval::digest_call(self.call);
        let changes = match planned {
            Some(PlannedEffect::Files { plan, .. }) => Some(plan),
            Some(
                PlannedEffect::Read { .. }
                | PlannedEffect::Preview(_)
                | PlannedEffect::Lease { .. }
                | PlannedEffect::Session { .. }
                | PlannedEffect::Watch { .. }
                | PlannedEffect::Buffer { .. }
                | PlannedEffect::Approval { .. },
            )
            | None => None,
        };
        let plan = match changes {
            Some(plan) => approval::digest_plan(context, &call, plan)?,
            None => approval::digest_targets(context, &call, targets),
        };
        let shown = || changes.map_or_else(|| preview_reads(targets), |plan| approval::preview_plan(context, plan));
        match ApprovalCheck::check_approval(
            context,
            self.approval_mode,
            ApprovalBinding { call_digest: call, plan_digest: plan },
            verdict,
            shown,
        )? {
            ApprovalCheck::Approved(approval) => record.approval = Some(approval),
            ApprovalCheck::AllowedByOperator => record.approval = Some(ALLOWED_BY_OPERATOR.to_owned()),
            ApprovalCheck::Missing(missing) => return Ok(Some(Box::new(missing))),
        }
        Ok(None)
    }

    /// Commits and records the planned effect.
    fn execute_planned(
        &self,
        planned: PlannedEffect,
        record: &mut CallRecord<'_>,
    ) -> Result<PlanningRoundResult, Error> {
        let workspace = self.context.workspace();
        let outcome = match planned {
            PlannedEffect::Read { outcome: answer, bytes } => {
                record.bytes = bytes;
                if self.operation_row.effect != FileEffect::None {
                    add_recorded_field(&mut record.arguments, UNCHANGED_FIELD, answer.json.get("version").cloned());
                }
                return Ok(PlanningRoundResult::Finished(CallCompletion::NotYetRecorded(answer)));
            }
            PlannedEffect::Preview(answer) => {
                return Ok(PlanningRoundResult::Finished(CallCompletion::NotYetRecorded(answer)));
            }
            PlannedEffect::Lease { request, build_outcome } => {
                let (lease, committed) = workspace.execute_lease_request(&request, record)?;
                return Ok(PlanningRoundResult::Finished(CallCompletion::Recorded(build_outcome(&lease, &committed))));
            }
            PlannedEffect::Session { request, build_outcome } => {
                let (reply, committed) = workspace.execute_session_request(&request, record)?;
                return Ok(PlanningRoundResult::Finished(CallCompletion::Recorded(build_outcome(&reply, &committed))));
            }
            PlannedEffect::Approval { answer, build_outcome } => {
                let (approval, committed) = workspace.answer_approval(&answer, record)?;
                return Ok(PlanningRoundResult::Finished(CallCompletion::Recorded(build_outcome(
                    &approval, &committed,
                ))));
            }
            PlannedEffect::Watch { request, build_outcome } => {
                let (watch, committed) =
                    workspace.execute_watch_request(&request, record, self.call.control.deadline())?;
                return Ok(PlanningRoundResult::Finished(CallCompletion::Recorded(build_outcome(&watch, &committed))));
            }
            PlannedEffect::Buffer { request, build_outcome } => {
                let (buffer, committed) = workspace.execute_buffer_request(&request, record)?;
                return Ok(PlanningRoundResult::Finished(CallCompletion::Recorded(build_outcome(&buffer, &committed))));
            }
            PlannedEffect::Files { plan, .. } if self.call.options.applied_by != AppliedBy::Workspace => {
                add_recorded_field(&mut record.arguments, APPLIED_ELSEWHERE_FIELD, Some(plan.changes.len().into()));
                return Ok(PlanningRoundResult::Finished(CallCompletion::NotYetRecorded(outcome_for_editor(
                    self.context,
                    plan,
                ))));
            }
            PlannedEffect::Files { plan, build_outcome } => {
                self.call.control.check()?;
                add_recorded_field(&mut record.arguments, MOVED_FIELD, moved_paths_json(&plan));
                add_recorded_field(&mut record.arguments, BUFFERS_FIELD, buffers_json(&plan));
                workspace.commit(&plan, record).map(|committed| build_outcome(&committed))
            }
        };
        match outcome {
            Ok(answer) => Ok(PlanningRoundResult::Finished(CallCompletion::Recorded(answer))),
            Err(CommitError::ExpectationFailed(_)) => Ok(PlanningRoundResult::Retry),
            Err(CommitError::KeyAlreadyUsed(number)) => Ok(PlanningRoundResult::Finished(
                CallCompletion::NotYetRecorded(outcome_of_completed_call(workspace, number)?),
            )),
            Err(CommitError::RecordedThenFailed(error)) => {
                Ok(PlanningRoundResult::Finished(CallCompletion::RecordedThenFailed(error)))
            }
            Err(CommitError::Failed(error)) => Err(error),
        }
    }
}

/// The contents that a plan writes, as the caller knows them.
fn contents_written(context: &CallContext<'_>, planned: &PlannedEffect) -> Vec<(RelPath, Version, Vec<u8>)> {
    let PlannedEffect::Files { plan, .. } = planned else { return Vec::new() };
    let put = |change: &PlannedChange| match change {
        PlannedChange::Put { path, content: PlannedContent::Bytes(bytes), version, .. }
            if bytes.len() as u64 <= limits::SEEN_FILE_BYTES_MAX && context.may_read(path) =>
        {
            let (version, bytes) = context.content_known_to_caller(path, *version, bytes);
            Some((path.clone(), version, bytes))
        }
        PlannedChange::Put { .. }
        | PlannedChange::MakeDirectory { .. }
        | PlannedChange::MakeLink { .. }
        | PlannedChange::Move { .. }
        | PlannedChange::Remove { .. }
        | PlannedChange::RemoveDirectory { .. }
        | PlannedChange::Restore { .. } => None,
    };
    plan.changes.iter().filter_map(put).collect()
}

/// The approval preview of a call that changes nothing.
fn preview_reads(targets: &[ResolvedTarget]) -> Value {
    let places: Vec<String> = targets.iter().map(|target| target.path.to_string()).collect();
    serde_json::json!({ "changes": [], "places": places })
}

/// Locks the paths that will change, in sorted order. Reads take no lock, because files are replaced atomically.
fn lock_targets(
    workspace: &dyn Workspace,
    effect: FileEffect,
    requests: &[crate::operation::RequestedPath],
    targets: &[ResolvedTarget],
    call: &Call<'_>,
) -> Result<Option<Box<dyn CallLockGuard>>, Error> {
    if effect == FileEffect::None {
        return Ok(None);
    }
    let mut wanted: Vec<PathLockRequest> = requests
        .iter()
        .zip(targets)
        .filter(|(request, _)| request.access != PathAccess::Read)
        .map(|(_, target)| PathLockRequest { path: target.path.clone() })
        .collect();
    wanted.sort();
    wanted.dedup();
    workspace.lock(&wanted, call.control.deadline()).map(Some)
}

/// A repeated idempotency key returns the outcome of its first entry; it is never applied twice.
fn find_completed_call(workspace: &dyn Workspace, call: &Call<'_>) -> Result<Option<CallCompletion>, Error> {
    let Some(key) = call.idempotency_key else { return Ok(None) };
    if key.is_empty() || key.len() > limits::IDEMPOTENCY_KEY_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::BadRequest,
            format!("an idempotency key must have 1 to {} bytes", limits::IDEMPOTENCY_KEY_BYTES_MAX),
        ));
    }
    match workspace.entry_for_idempotency_key(&call.caller.principal, key)? {
        Some(number) => {
            refuse_other_call(workspace, call, number)?;
            Ok(Some(CallCompletion::NotYetRecorded(outcome_of_completed_call(workspace, number)?)))
        }
        None => Ok(None),
    }
}

/// A key belongs to one call. Fields that the engine added to the recorded arguments are not compared.
fn refuse_other_call(workspace: &dyn Workspace, call: &Call<'_>, number: u64) -> Result<(), Error> {
    let Some(stored) = workspace.entry(number)? else { return Ok(()) };
    let original_arguments = |text: &str| {
        let mut fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
        fields.retain(|name, _| {
            ![UNCHANGED_FIELD, MOVED_FIELD, BUFFERS_FIELD, APPLIED_ELSEWHERE_FIELD].contains(&name.as_str())
        });
        fields
    };
    let now = recorded_arguments(call, ops::find_operation(call.operation));
    if stored.entry.operation == call.operation
        && original_arguments(&stored.entry.arguments) == original_arguments(&now)
    {
        return Ok(());
    }
    Err(Error::new(ErrorKind::BadRequest, format!("this idempotency key was used for another call, r{number}"))
        .with_next_step("use a new key for a new call"))
}

/// The outcome of a change that the editor applies: the content before and after.
fn outcome_for_editor(context: &CallContext<'_>, plan: Plan) -> CallOutcome {
    let text = "allowed and recorded; the editor applies the change".to_owned();
    let before_after =
        plan.changes.into_iter().find_map(|change| before_and_after(context, change)).into_iter().collect();
    CallOutcome { json: Map::new(), text, before_after, session_switch: None }
}

/// The content before and after, for a protocol that shows it to a person.
fn proposed_before_after(context: &CallContext<'_>, planned: PlannedEffect) -> Option<BeforeAfterBytes> {
    match (context.options.before_after, planned) {
        (BeforeAfterInclusion::Include, PlannedEffect::Files { plan, .. }) => {
            plan.changes.into_iter().find_map(|change| before_and_after(context, change))
        }
        (BeforeAfterInclusion::Omit | BeforeAfterInclusion::Include, _) => None,
    }
}

fn before_and_after(context: &CallContext<'_>, change: PlannedChange) -> Option<BeforeAfterBytes> {
    match change {
        PlannedChange::Put { path, expectation: expect, content: PlannedContent::Bytes(after), .. } => {
            let want = BytesToRead::Whole { limit_bytes: limits::WRITE_BYTES_MAX };
            let before = match (&context.options.applied_by, expect) {
                (AppliedBy::Editor(held), _) => held.as_ref().map(|text| text.as_bytes().to_vec()),
                (AppliedBy::Workspace, CommitExpectation::Absent) => None,
                // Unreadable or vanished content is omitted.
                (AppliedBy::Workspace, CommitExpectation::File(_) | CommitExpectation::SameEntry(_))
                    if !context.may_read(&path) =>
                {
                    None
                }
                (AppliedBy::Workspace, CommitExpectation::File(_) | CommitExpectation::SameEntry(_)) => {
                    context.read_for_change(&path, want).ok().map(|file| file.bytes)
                }
            };
            Some(BeforeAfterBytes { path, before, after: Some(after) })
        }
        PlannedChange::Put { .. }
        | PlannedChange::MakeDirectory { .. }
        | PlannedChange::MakeLink { .. }
        | PlannedChange::Move { .. }
        | PlannedChange::Remove { .. }
        | PlannedChange::RemoveDirectory { .. }
        | PlannedChange::Restore { .. } => None,
    }
}

/// The number of changes left to the editor.
const APPLIED_ELSEWHERE_FIELD: &str = "made_elsewhere";
/// The current version, if a call changed nothing.
const UNCHANGED_FIELD: &str = "unchanged";
/// Old and new paths of moved files.
const MOVED_FIELD: &str = "moved";
/// The open buffers that changed with the files.
const BUFFERS_FIELD: &str = "buffers";

fn outcome_of_completed_call(workspace: &dyn Workspace, number: u64) -> Result<CallOutcome, Error> {
    let stored = workspace
        .entry(number)?
        .ok_or_else(|| Error::new(ErrorKind::HistoryLost, format!("entry {number} is not in the journal")))?;
    Ok(ops::outcome_from_entry(&stored))
}

fn unknown_operation_error(name: &str) -> Error {
    let known: Vec<&str> = ops::OPERATIONS.iter().map(|row| row.name).collect();
    let shown: String = name.chars().take(64).collect();
    Error::new(ErrorKind::UnknownOperation, format!("there is no operation '{shown}'"))
        .with_next_step(format!("operations: {}", known.join(", ")))
}

/// Old and new paths, for a plan that moves and changes files.
fn moved_paths_json(plan: &Plan) -> Option<Value> {
    let pair = |change: &PlannedChange| match change {
        PlannedChange::Put { path, mode: FileModeSource::CopyFrom(from, _), .. } => {
            Some((from.to_string(), path.to_string().into()))
        }
        PlannedChange::Put { .. }
        | PlannedChange::MakeDirectory { .. }
        | PlannedChange::MakeLink { .. }
        | PlannedChange::Move { .. }
        | PlannedChange::Remove { .. }
        | PlannedChange::RemoveDirectory { .. }
        | PlannedChange::Restore { .. } => None,
    };
    let moved: Map<String, Value> = plan.changes.iter().filter_map(pair).collect();
    (!moved.is_empty()).then_some(Value::Object(moved))
}

fn buffers_json(plan: &Plan) -> Option<Value> {
    let ids: Vec<&str> = plan.buffers.iter().map(|step| step.id.as_str()).collect();
    (!ids.is_empty()).then(|| ids.into())
}

/// Adds a field to the recorded arguments. Few calls need one.
fn add_recorded_field(arguments: &mut String, name: &str, fact: Option<Value>) {
    let Some(fact) = fact else { return };
    if let Ok(Value::Object(mut fields)) = serde_json::from_str(arguments) {
        fields.insert(name.to_owned(), fact);
        *arguments = Value::Object(fields).to_string();
    }
}

/// The arguments as recorded in the journal: contents by their size, long texts cut.
fn recorded_arguments(call: &Call<'_>, row: Option<&OperationRow>) -> String {
    let contents = row.map_or(&[][..], |row| row.content_arguments);
    // Arguments that a dialect rejected are untranslated, and any of them may be content.
    let is_foreign = |name: &str| call.options.argument_error.is_some() && !name.to_lowercase().contains("path");
    let recorded = call.arguments.iter().map(|(name, value)| {
        let shown = match value {
            Value::String(text) if contents.contains(&name.as_str()) || is_foreign(name) => {
                Value::String(format!("<{} bytes>", text.len()))
            }
            Value::String(text) if text.len() > limits::RECORDED_ARGUMENT_CHARS_MAX => {
                Value::String(format!("<{} bytes>", text.len()))
            }
            Value::Array(_) | Value::Object(_) => Value::String("<nested>".to_owned()),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        };
        (name.clone(), shown)
    });
    Value::Object(recorded.take(32).collect()).to_string()
}
