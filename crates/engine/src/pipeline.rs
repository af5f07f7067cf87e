//! The steps of every call, in this order: decode, resolve, authorize, lock, check base versions, plan, approve, commit
//! and record. A call that waits for approval releases its locks first, and starts over when a person answers the
//! request. Every call leaves one journal entry, or two if its commit fails. No file changes before the whole plan is
//! known.

use serde_json::{Map, Value, json};
use stead_path::RelPath;

use crate::{
    approval::{
        self, ALLOWED_BY_OPERATOR, ApprovalAnswer, ApprovalBindingDigests, ApprovalCheckResult, ApprovalDecision,
        ApprovalMode, ApprovalWaitResult, MissingApproval,
    },
    authorization::{self, ReadAndWritePolicyVerdicts},
    call_context::CallContext,
    call_options::{BeforeAfterContentInclusion, ChangeApplierChoice},
    caller::Caller,
    engine::{BeforeAfterBytes, Call, CallOutcome},
    errors::{Error, ErrorKind},
    limits,
    operation::{
        OperationEffectClass, OperationPlanningResult, PipelineOperation, RequestedPath, RequestedPathAccessKind,
        ResolvedCall, ResolvedTarget,
    },
    ops::{self, OperationDefinition},
    plan::{CommitExpectation, FileModeSource, Plan, PlannedChange, PlannedContent},
    policy::{self, PathAccessRight, PolicyVerdict, RequiredPathAccess, SupervisionTier},
    quota, resolve,
    seen_files::SeenFileCache,
    unsaved,
    version::Version,
    workspace::{BytesToRead, CallLockGuard, CommitError, JournalCallRecord, PathLockRequest, Workspace},
};

pub(crate) fn run_call(
    workspace: &dyn Workspace,
    mode: ApprovalMode,
    seen_files: &SeenFileCache,
    call: &Call<'_>,
) -> Result<CallOutcome, Error> {
    let row = ops::find_operation(call.operation);
    let operation = row.map_or("unknown", |row| row.name);
    let mut record = JournalCallRecord {
        tool: call.options.tool.as_deref(),
        idempotency_key: call.idempotency_key,
        ..JournalCallRecord::new(call.caller, operation, recorded_arguments(call, row))
    };
    let outcome = workspace.active_policy().and_then(|active| {
        record.policy_version = active.policy.version();
        record.quota = active.policy.quota(&call.caller.principal);
        match (&call.options.argument_error, row) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(row)) => {
                let mut context = CallContext::new(workspace, call, &active);
                context.seen_files = Some(seen_files);
                run_rounds(&context, mode, call, row, &mut record)
            }
            (None, None) => Err(unknown_operation_error(call.operation)),
        }
    });
    match outcome {
        Ok(CallOutcomeAndJournalStatus::Recorded(outcome)) => Ok(outcome),
        Ok(CallOutcomeAndJournalStatus::RecordedThenFailed(error)) => Err(error),
        Ok(CallOutcomeAndJournalStatus::NotYetRecorded(outcome)) => {
            workspace.record_call(&record)?;
            if call.options.applied_by != ChangeApplierChoice::Workspace {
                // The editor applies the change after the call returns, so `head` first writes buffered entries to
                // disk.
                workspace.head()?;
            }
            Ok(outcome)
        }
        Err(error) => {
            record.error_kind = Some(error.recorded_kind(&call.caller.principal));
            if error.kind == ErrorKind::PolicyDenied {
                record.policy_tier = SupervisionTier::Blocked;
            }
            // If the failure cannot be recorded, the caller still gets the error of the call.
            match workspace.record_call(&record) {
                Ok(()) | Err(_) => Err(error),
            }
        }
    }
}

pub(crate) fn record_client_answer(
    workspace: &dyn Workspace,
    caller: &Caller,
    answer: &ApprovalAnswer,
) -> Result<(), Error> {
    let operation = match answer.decision {
        ApprovalDecision::Approve => "approve",
        ApprovalDecision::Deny => "deny",
    };
    let arguments = json!({ "id": answer.id, "by": "client" }).to_string();
    let policy_version = workspace.active_policy()?.policy.version();
    let record = JournalCallRecord { policy_version, ..JournalCallRecord::new(caller, operation, arguments) };
    workspace.answer_approval(answer, &record).map(|_| ())
}

enum CallOutcomeAndJournalStatus {
    Recorded(CallOutcome),
    /// The commit failed; the journal has the entry of the call and a second entry with the reason.
    RecordedThenFailed(Error),
    /// The call changed nothing, and its journal entry is not written yet.
    NotYetRecorded(CallOutcome),
}

fn run_rounds(
    context: &CallContext<'_>,
    approval_mode: ApprovalMode,
    call: &Call<'_>,
    row: &OperationDefinition,
    record: &mut JournalCallRecord<'_>,
) -> Result<CallOutcomeAndJournalStatus, Error> {
    let workspace = context.workspace();
    let operation = (row.decode)(&call.arguments)?;
    if let Some(completion) = find_completed_call(workspace, call)? {
        return Ok(completion);
    }
    let rate_verdict = policy::rate_limit::check_rate(context, row.effect)?;
    let pipeline = CallPlanningRoundRunner { context, approval_mode, call, row, rate_verdict };
    quota::ensure_usage_counted(context, row.effect)?;
    let mut usage_recounted = false;
    for _ in 0..limits::REPLAN_ATTEMPTS_MAX {
        call.control.check()?;
        let result = match pipeline.run_round(&*operation, record) {
            Err(error) if error.kind == ErrorKind::QuotaExceeded && !usage_recounted => {
                // Other callers may have freed space since usage was last counted.
                usage_recounted = true;
                quota::recount_usage(context)?;
                PlanningRoundResult::Retry
            }
            result => result?,
        };
        match result {
            PlanningRoundResult::Finished(completion) => return Ok(completion),
            PlanningRoundResult::Retry => {}
            PlanningRoundResult::NeedsApproval(mut missing) => {
                let before_after = missing.before_after.take();
                record.policy_tier = SupervisionTier::ApprovalRequired;
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
        .with_next_step("repeat the call"))
}

enum PlanningRoundResult {
    Finished(CallOutcomeAndJournalStatus),
    /// The call must be planned again, for example because files changed between planning and commit.
    Retry,
    /// The call needs approval and has released its locks.
    NeedsApproval(Box<MissingApproval>),
}

struct CallPlanningRoundRunner<'t> {
    context: &'t CallContext<'t>,
    approval_mode: ApprovalMode,
    call: &'t Call<'t>,
    row: &'t OperationDefinition,
    rate_verdict: PolicyVerdict,
}

impl CallPlanningRoundRunner<'_> {
    fn run_round(
        &self,
        operation: &dyn PipelineOperation,
        record: &mut JournalCallRecord<'_>,
    ) -> Result<PlanningRoundResult, Error> {
        let (context, row) = (self.context, self.row);
        let workspace = context.workspace();
        let ResolvedCall { paths: requests, plan } = operation.resolve_call(context)?;
        let mut targets = resolve::resolve_targets(workspace, &requests, &self.call.options.path_spelling)?;
        record.paths = targets.iter().map(|target| target.path.clone()).collect();
        let ReadAndWritePolicyVerdicts { reads, writes } =
            authorization::check_targets(context, row.effect, &requests, &targets)?;
        let reads = reads.stricter_of(self.rate_verdict);
        if row.effect == OperationEffectClass::None
            && let Some(missing) = self.require_approval(reads, record, &targets, None)?
        {
            return Ok(PlanningRoundResult::NeedsApproval(missing));
        }
        let _guard = lock_targets(workspace, row.effect, &requests, &targets, self.call)?;
        context.discard_buffer_snapshot();
        resolve::check_bases(context, &mut targets)?;
        let mut planned = plan(context, &targets)?;
        let written = contents_written(context, &planned);
        let notices = if let OperationPlanningResult::Files { plan, .. } = &mut planned {
            unsaved::rebase_plan_onto_disk(context, plan)?
        } else {
            Vec::new()
        };
        let verdict = match &planned {
            OperationPlanningResult::Read { .. } | OperationPlanningResult::Preview(_)
                if row.effect == OperationEffectClass::None =>
            {
                PolicyVerdict::UNRESTRICTED
            }
            OperationPlanningResult::Lease { request, .. } => reads.stricter_of(authorization::evaluate_policy(
                context,
                &RequiredPathAccess::new(PathAccessRight::Modify, request.path()),
            )?),
            OperationPlanningResult::Read { .. }
            | OperationPlanningResult::Preview(_)
            | OperationPlanningResult::Session { .. }
            | OperationPlanningResult::Buffer { .. } => reads,
            OperationPlanningResult::Approval { .. } | OperationPlanningResult::Watch { .. } => {
                PolicyVerdict::UNRESTRICTED
            }
            OperationPlanningResult::Files { plan, .. } => {
                reads.stricter_of(writes).stricter_of(authorization::check_plan(context, plan)?)
            }
        };
        if let Some(mut missing) = self.require_approval(verdict, record, &targets, Some(&planned))? {
            missing.before_after = proposed_before_after(context, planned).map(Box::new);
            return Ok(PlanningRoundResult::NeedsApproval(missing));
        }
        let Some(mut completion) = self.execute_planned(planned, record)? else {
            return Ok(PlanningRoundResult::Retry);
        };
        if let CallOutcomeAndJournalStatus::Recorded(outcome) | CallOutcomeAndJournalStatus::NotYetRecorded(outcome) =
            &mut completion
        {
            unsaved::add_unsaved_notices(context, &targets, &notices, outcome);
            for (path, version, bytes) in &written {
                context.remember(path, *version, Some(bytes));
            }
        }
        Ok(PlanningRoundResult::Finished(completion))
    }

    fn require_approval(
        &self,
        verdict: PolicyVerdict,
        record: &mut JournalCallRecord<'_>,
        targets: &[ResolvedTarget],
        planned: Option<&OperationPlanningResult>,
    ) -> Result<Option<Box<MissingApproval>>, Error> {
        record.policy_tier = record.policy_tier.max(verdict.tier);
        if verdict.tier < SupervisionTier::ApprovalRequired {
            return Ok(None);
        }
        let context = self.context;
        let call_digest = approval::digest_call(self.call);
        let plan = if let Some(OperationPlanningResult::Files { plan, .. }) = planned { Some(plan) } else { None };
        let plan_digest = match plan {
            Some(plan) => approval::digest_plan(context, &call_digest, plan)?,
            None => approval::digest_targets(context, &call_digest, targets),
        };
        let binding = ApprovalBindingDigests { call_digest, plan_digest };
        let preview = || plan.map_or_else(|| preview_reads(targets), |plan| approval::preview_plan(context, plan));
        match ApprovalCheckResult::check_approval(context, self.approval_mode, binding, verdict, preview)? {
            ApprovalCheckResult::Approved(approval) => record.approval = Some(approval),
            ApprovalCheckResult::AllowedByOperator => record.approval = Some(ALLOWED_BY_OPERATOR.to_owned()),
            ApprovalCheckResult::Missing(missing) => return Ok(Some(Box::new(missing))),
        }
        Ok(None)
    }

    /// Applies and records the planned effect; `None` means that the files changed since planning.
    fn execute_planned(
        &self,
        planned: OperationPlanningResult,
        record: &mut JournalCallRecord<'_>,
    ) -> Result<Option<CallOutcomeAndJournalStatus>, Error> {
        let workspace = self.context.workspace();
        let outcome = match planned {
            OperationPlanningResult::Read { outcome, bytes } => {
                record.bytes = bytes;
                if self.row.effect != OperationEffectClass::None {
                    add_recorded_field(&mut record.arguments, UNCHANGED_FIELD, outcome.json.get("version").cloned());
                }
                return Ok(Some(CallOutcomeAndJournalStatus::NotYetRecorded(outcome)));
            }
            OperationPlanningResult::Preview(outcome) => {
                return Ok(Some(CallOutcomeAndJournalStatus::NotYetRecorded(outcome)));
            }
            OperationPlanningResult::Lease { request, build_outcome } => {
                let (lease, receipt) = workspace.execute_lease_request(&request, record)?;
                build_outcome(&lease, &receipt)
            }
            OperationPlanningResult::Session { request, build_outcome } => {
                let (reply, receipt) = workspace.execute_session_request(&request, record)?;
                build_outcome(&reply, &receipt)
            }
            OperationPlanningResult::Approval { answer, build_outcome } => {
                let (approval, receipt) = workspace.answer_approval(&answer, record)?;
                build_outcome(&approval, &receipt)
            }
            OperationPlanningResult::Watch { request, build_outcome } => {
                let deadline = self.call.control.deadline();
                let (watch, receipt) = workspace.execute_watch_request(&request, record, deadline)?;
                build_outcome(&watch, &receipt)
            }
            OperationPlanningResult::Buffer { request, build_outcome } => {
                let (buffer, receipt) = workspace.execute_buffer_request(&request, record)?;
                build_outcome(&buffer, &receipt)
            }
            OperationPlanningResult::Files { plan, .. }
                if self.call.options.applied_by != ChangeApplierChoice::Workspace =>
            {
                add_recorded_field(&mut record.arguments, APPLIED_ELSEWHERE_FIELD, Some(plan.changes.len().into()));
                return Ok(Some(CallOutcomeAndJournalStatus::NotYetRecorded(outcome_for_editor(self.context, plan))));
            }
            OperationPlanningResult::Files { plan, build_outcome } => {
                self.call.control.check()?;
                add_recorded_field(&mut record.arguments, MOVED_FIELD, moved_paths_json(&plan));
                add_recorded_field(&mut record.arguments, BUFFERS_FIELD, buffers_json(&plan));
                match workspace.commit(&plan, record) {
                    Ok(receipt) => build_outcome(&receipt),
                    Err(CommitError::ExpectationFailed(_)) => return Ok(None),
                    Err(CommitError::KeyAlreadyUsed(number)) => {
                        let outcome = outcome_of_completed_call(workspace, number)?;
                        return Ok(Some(CallOutcomeAndJournalStatus::NotYetRecorded(outcome)));
                    }
                    Err(CommitError::RecordedThenFailed(error)) => {
                        return Ok(Some(CallOutcomeAndJournalStatus::RecordedThenFailed(error)));
                    }
                    Err(CommitError::Failed(error)) => return Err(error),
                }
            }
        };
        Ok(Some(CallOutcomeAndJournalStatus::Recorded(outcome)))
    }
}

/// The file contents that the caller's session counts as having seen after the commit.
fn contents_written(context: &CallContext<'_>, planned: &OperationPlanningResult) -> Vec<(RelPath, Version, Vec<u8>)> {
    let OperationPlanningResult::Files { plan, .. } = planned else { return Vec::new() };
    let written = |change: &PlannedChange| {
        let PlannedChange::Put { path, content: PlannedContent::Bytes(bytes), version, .. } = change else {
            return None;
        };
        if bytes.len() as u64 > limits::SEEN_FILE_BYTES_MAX || !context.may_read(path) {
            return None;
        }
        let (version, bytes) = context.content_known_to_caller(path, *version, bytes);
        Some((path.clone(), version, bytes))
    };
    plan.changes.iter().filter_map(written).collect()
}

fn preview_reads(targets: &[ResolvedTarget]) -> Value {
    let paths: Vec<String> = targets.iter().map(|target| target.path.to_string()).collect();
    json!({ "changes": [], "places": paths })
}

/// Locks the changed paths in sorted order. A path that is only read needs no lock, because files are replaced
/// atomically.
fn lock_targets(
    workspace: &dyn Workspace,
    effect: OperationEffectClass,
    requests: &[RequestedPath],
    targets: &[ResolvedTarget],
    call: &Call<'_>,
) -> Result<Option<Box<dyn CallLockGuard>>, Error> {
    if effect == OperationEffectClass::None {
        return Ok(None);
    }
    let mut locks: Vec<PathLockRequest> = requests
        .iter()
        .zip(targets)
        .filter(|(request, _)| request.access != RequestedPathAccessKind::Read)
        .map(|(_, target)| PathLockRequest { path: target.path.clone() })
        .collect();
    locks.sort();
    locks.dedup();
    workspace.lock(&locks, call.control.deadline()).map(Some)
}

/// Finds an earlier call with the same idempotency key, so that its change is not applied twice.
fn find_completed_call(
    workspace: &dyn Workspace,
    call: &Call<'_>,
) -> Result<Option<CallOutcomeAndJournalStatus>, Error> {
    let Some(key) = call.idempotency_key else { return Ok(None) };
    if key.is_empty() || key.len() > limits::IDEMPOTENCY_KEY_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::BadRequest,
            format!("an idempotency key must have 1 to {} bytes", limits::IDEMPOTENCY_KEY_BYTES_MAX),
        )
        .with_next_step("pass another key, or none"));
    }
    match workspace.entry_for_idempotency_key(&call.caller.principal, key)? {
        Some(number) => {
            refuse_other_call(workspace, call, number)?;
            Ok(Some(CallOutcomeAndJournalStatus::NotYetRecorded(outcome_of_completed_call(workspace, number)?)))
        }
        None => Ok(None),
    }
}

/// Refuses an idempotency key that an earlier, different call used.
fn refuse_other_call(workspace: &dyn Workspace, call: &Call<'_>, number: u64) -> Result<(), Error> {
    let Some(stored) = workspace.entry(number)? else { return Ok(()) };
    let original_arguments = |text: &str| {
        let mut fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
        fields.retain(|name, _| {
            ![UNCHANGED_FIELD, MOVED_FIELD, BUFFERS_FIELD, APPLIED_ELSEWHERE_FIELD].contains(&name.as_str())
        });
        fields
    };
    let arguments = recorded_arguments(call, ops::find_operation(call.operation));
    if stored.entry.operation == call.operation
        && original_arguments(&stored.entry.arguments) == original_arguments(&arguments)
    {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::BadRequest,
        format!("this idempotency key was already used for a different call (r{number})"),
    )
    .with_next_step("use a new key for a new call"))
}

fn outcome_for_editor(context: &CallContext<'_>, plan: Plan) -> CallOutcome {
    let text = "allowed and recorded; the editor applies the change".to_owned();
    let before_after =
        plan.changes.into_iter().find_map(|change| before_and_after(context, change)).into_iter().collect();
    CallOutcome { json: Map::new(), text, before_after, session_switch: None }
}

fn proposed_before_after(context: &CallContext<'_>, planned: OperationPlanningResult) -> Option<BeforeAfterBytes> {
    let OperationPlanningResult::Files { plan, .. } = planned else { return None };
    match context.options.before_after {
        BeforeAfterContentInclusion::Include => {
            plan.changes.into_iter().find_map(|change| before_and_after(context, change))
        }
        BeforeAfterContentInclusion::Omit => None,
    }
}

fn before_and_after(context: &CallContext<'_>, change: PlannedChange) -> Option<BeforeAfterBytes> {
    let PlannedChange::Put { path, expectation, content: PlannedContent::Bytes(after), .. } = change else {
        return None;
    };
    let whole = BytesToRead::Whole { limit_bytes: limits::WRITE_BYTES_MAX };
    let before = match &context.options.applied_by {
        ChangeApplierChoice::Editor(text) => text.as_ref().map(|text| text.as_bytes().to_vec()),
        ChangeApplierChoice::Workspace if expectation == CommitExpectation::Absent => None,
        // If the caller may not read the file, or if the file no longer exists, the old content is omitted.
        ChangeApplierChoice::Workspace => context.read(&path, whole).ok().map(|file| file.bytes),
    };
    Some(BeforeAfterBytes { path, before, after: Some(after) })
}

/// The field of the recorded arguments with the number of changes that the editor applies.
const APPLIED_ELSEWHERE_FIELD: &str = "made_elsewhere";
const UNCHANGED_FIELD: &str = "unchanged";
/// The field of the recorded arguments with the old and new paths of files that the call moves and also changes.
const MOVED_FIELD: &str = "moved";
const BUFFERS_FIELD: &str = "buffers";

fn outcome_of_completed_call(workspace: &dyn Workspace, number: u64) -> Result<CallOutcome, Error> {
    let stored = workspace.entry(number)?.ok_or_else(|| {
        Error::new(
            ErrorKind::HistoryLost,
            format!("this idempotency key was used for entry r{number}, which is no longer in the journal"),
        )
        .with_next_step("read the files to see whether the change was made, then use a new key")
    })?;
    Ok(ops::outcome_from_entry(&stored))
}

fn unknown_operation_error(name: &str) -> Error {
    let known: Vec<&str> = ops::OPERATIONS.iter().map(|row| row.name).collect();
    let start: String = name.chars().take(64).collect();
    Error::new(ErrorKind::UnknownOperation, format!("there is no operation '{start}'"))
        .with_next_step(format!("operations: {}", known.join(", ")))
}

fn moved_paths_json(plan: &Plan) -> Option<Value> {
    let pair = |change: &PlannedChange| {
        let PlannedChange::Put { path, mode: FileModeSource::CopyFrom(from, _), .. } = change else { return None };
        Some((from.to_string(), path.to_string().into()))
    };
    let moved: Map<String, Value> = plan.changes.iter().filter_map(pair).collect();
    (!moved.is_empty()).then_some(Value::Object(moved))
}

fn buffers_json(plan: &Plan) -> Option<Value> {
    let ids: Vec<&str> = plan.buffers.iter().map(|change| change.id.as_str()).collect();
    (!ids.is_empty()).then(|| ids.into())
}

fn add_recorded_field(arguments: &mut String, name: &str, value: Option<Value>) {
    let Some(value) = value else { return };
    if let Ok(Value::Object(mut fields)) = serde_json::from_str(arguments) {
        fields.insert(name.to_owned(), value);
        *arguments = Value::Object(fields).to_string();
    }
}

/// The journal records the size of file content and of long texts instead of the text.
fn recorded_arguments(call: &Call<'_>, row: Option<&OperationDefinition>) -> String {
    let contents = row.map_or(&[][..], |row| row.content_arguments);
    // Arguments that a dialect could not translate have unknown meanings, so each of them may be content.
    let may_be_content = |name: &str| call.options.argument_error.is_some() && !name.to_lowercase().contains("path");
    let recorded = call.arguments.iter().map(|(name, value)| {
        let recorded = match value {
            Value::String(text)
                if contents.contains(&name.as_str())
                    || may_be_content(name)
                    || text.len() > limits::RECORDED_ARGUMENT_CHARS_MAX =>
            {
                Value::String(format!("<{} bytes>", text.len()))
            }
            Value::Array(_) | Value::Object(_) => Value::String("<nested>".to_owned()),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        };
        (name.clone(), recorded)
    });
    Value::Object(recorded.take(32).collect()).to_string()
}
