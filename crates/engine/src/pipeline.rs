//! The steps of every call, in this order: decode, resolve, authorize, lock, check base versions, plan, approve, commit
//! and record. A call that waits for approval releases its locks first, and starts over when a person answers the
//! request. Every call leaves one journal entry, or two if its commit fails. No file changes before the whole plan is
//! known.

use stead_journal::JournalEntryDetails;
use stead_path::RelPath;

use crate::{
    administration::{self, AdministrationCall, AdministrationStore, RequiredAuthority},
    approval::{
        self, ALLOWED_BY_OPERATOR, ApprovalAnswer, ApprovalBindingDigests, ApprovalCheckResult, ApprovalDecision,
        ApprovalMode, ApprovalWaitResult, MissingApproval,
    },
    authorization::{self, CallReadWritePolicyVerdicts},
    call_context::CallContext,
    call_options::{BeforeAfterContentInclusion, ChangeApplierChoice},
    caller::Caller,
    engine::{BeforeAfterBytes, CallMetadata},
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{
        OperationEffectClass, OperationPlanningResult, PathAccessRequest, RequestedAccessKind, RequestedPathsAndPlanFn,
        ResolvedTarget, TypeErasedOperation,
    },
    ops::{OperationDefinition, ReplayedCallOutcome},
    plan::{CommitExpectation, Plan, PlannedChange, PlannedContent},
    policy::{self, PathAccessRight, PolicyVerdict, RequiredPathAccess, SupervisionTier},
    quota,
    recorded_arguments::{self, UnredactedCallArguments},
    resolve,
    rows::RowFamily,
    seen_files::SeenFileCache,
    transaction::Expectation,
    tree::BytesToRead,
    unsaved::{self, UnsavedAndDraftNotices},
    version::Version,
    workspace::{CallLockGuard, CommitError, JournalCallRecord, PathLockRequest, Workspace},
    workspace_reader::WorkspaceReader,
};

/// The call that the pipeline runs: an operation with its row of the operation table, its arguments as the journal
/// records them, and the other data of the call.
pub(crate) struct PipelineCall<'a> {
    pub(crate) metadata: &'a CallMetadata<'a>,
    pub(crate) definition: &'static OperationDefinition,
    pub(crate) operation: &'a dyn TypeErasedOperation,
    pub(crate) arguments: &'a UnredactedCallArguments,
}

/// How a call ended, with the notices that the pipeline adds to its outcome.
#[derive(Debug, Default)]
pub(crate) struct PipelineReply {
    pub(crate) end: SuccessfulCallOutcomeSource,
    /// The journal entry of the change that the call made.
    pub(crate) entry: Option<u64>,
    pub(crate) notices: UnsavedAndDraftNotices,
}

/// Where the outcome of a successful call is.
#[derive(Debug, Default)]
pub(crate) enum SuccessfulCallOutcomeSource {
    #[default]
    Done,
    AlreadyDone(Box<ReplayedCallOutcome>),
    LeftToEditor(Vec<BeforeAfterBytes>),
}

pub(crate) fn run_call(
    workspace: &dyn Workspace,
    administration: Option<&dyn AdministrationStore>,
    mode: ApprovalMode,
    seen_files: &SeenFileCache,
    call: &PipelineCall<'_>,
) -> Result<PipelineReply, Error> {
    let metadata = call.metadata;
    let arguments = call.arguments.redacted(call.definition.content_arguments);
    let mut record = new_record(metadata, call.definition.name, arguments);
    let status = workspace.active_policy().and_then(|active| {
        record.policy_version = active.policy.version();
        record.quota = active.policy.quota(&metadata.caller.principal);
        let mut context = CallContext::new(WorkspaceReader::new(workspace), metadata, call.definition.name, &active);
        context.seen_files = Some(seen_files);
        administration::check_authority(call.definition, metadata.caller, metadata.options.secrets, administration)?;
        let runner = CallPlanAndCommitRoundRunner { context: &context, workspace, approval_mode: mode, call };
        let status = match administration.filter(|_| call.definition.authority != RequiredAuthority::Use) {
            Some(store) => administer(&context, store, call),
            None => runner.run_rounds(&mut record),
        };
        status.map_err(|error| {
            // A refusal because of a source replaces the whole error, but the journal gets the true one.
            record.error_kind = Some(error.recorded_kind(&metadata.caller.principal));
            context.release_reply(error).unwrap_or_else(|refusal| refusal)
        })
    });
    match status {
        Ok(CallJournalStatus::Recorded(reply)) => Ok(reply),
        Ok(CallJournalStatus::RecordedThenFailed(error)) => Err(error),
        Ok(CallJournalStatus::NotYetRecorded(reply)) => {
            workspace.record_call(&record)?;
            if metadata.options.applied_by != ChangeApplierChoice::Workspace {
                // The editor applies the change as soon as the call returns, so the journal entry must already be on
                // disk. `head` writes buffered entries to disk.
                workspace.head()?;
            }
            Ok(reply)
        }
        Err(error) => Err(record_failure(workspace, record, error)),
    }
}

/// Runs an operation that administers. It names no path, so no rule about paths applies to it.
fn administer(
    context: &CallContext<'_>,
    store: &dyn AdministrationStore,
    call: &PipelineCall<'_>,
) -> Result<CallJournalStatus, Error> {
    let RequestedPathsAndPlanFn { plan, .. } = call.operation.resolve_call(context)?;
    if let OperationPlanningResult::Administration(run) = plan(context, &[])? {
        let (caller, control) = (context.caller, context.control);
        run(store, &AdministrationCall { caller, control, operation: call.definition.name })?;
    }
    Ok(match call.definition.effect {
        OperationEffectClass::None => CallJournalStatus::NotYetRecorded(PipelineReply::default()),
        OperationEffectClass::Write | OperationEffectClass::Destroy => {
            CallJournalStatus::Recorded(PipelineReply::default())
        }
    })
}

/// Records a call that does not reach its operation, because its name or its arguments are invalid.
pub(crate) fn refuse_call(
    workspace: &dyn Workspace,
    call: &CallMetadata<'_>,
    operation: &'static str,
    arguments: String,
    error: Error,
) -> Error {
    let mut record = new_record(call, operation, arguments);
    match workspace.active_policy() {
        Ok(active) => {
            record.policy_version = active.policy.version();
            record.quota = active.policy.quota(&call.caller.principal);
            record_failure(workspace, record, error)
        }
        Err(policy_error) => record_failure(workspace, record, policy_error),
    }
}

fn new_record<'a>(call: &'a CallMetadata<'_>, operation: &'static str, arguments: String) -> JournalCallRecord<'a> {
    JournalCallRecord {
        tool: call.options.tool.as_deref(),
        idempotency_key: call.idempotency_key,
        ..JournalCallRecord::new(call.caller, operation, arguments)
    }
}

/// If the failure cannot be recorded, the caller still gets the error of the call.
fn record_failure(workspace: &dyn Workspace, mut record: JournalCallRecord<'_>, error: Error) -> Error {
    let kind = *record.error_kind.get_or_insert_with(|| error.recorded_kind(&record.caller.principal));
    if kind == ErrorKind::PolicyDenied {
        record.policy_tier = SupervisionTier::Blocked;
    }
    match workspace.record_call(&record) {
        Ok(()) | Err(_) => error,
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
    let arguments = recorded_arguments::client_answer_arguments(&answer.id);
    let policy_version = workspace.active_policy()?.policy.version();
    let record = JournalCallRecord { policy_version, ..JournalCallRecord::new(caller, operation, arguments) };
    workspace.answer_approval(answer, &record).map(|_| ())
}

/// Whether the journal has the entry of a call.
enum CallJournalStatus {
    Recorded(PipelineReply),
    /// The commit of the call failed; the journal has the entry of the call and a second entry with the reason.
    RecordedThenFailed(Error),
    /// The call changed nothing.
    NotYetRecorded(PipelineReply),
}

enum PlanningRoundResult {
    Finished(CallJournalStatus),
    /// The call must be planned again, for example because files changed between planning and commit.
    Retry,
    /// The call needs approval and has released its locks.
    NeedsApproval(Box<MissingApproval>),
}

struct CallPlanAndCommitRoundRunner<'t> {
    context: &'t CallContext<'t>,
    /// The only access to the methods of the workspace that write.
    workspace: &'t dyn Workspace,
    approval_mode: ApprovalMode,
    call: &'t PipelineCall<'t>,
}

impl CallPlanAndCommitRoundRunner<'_> {
    fn run_rounds(&self, record: &mut JournalCallRecord<'_>) -> Result<CallJournalStatus, Error> {
        let (context, call) = (self.context, self.call);
        if let Some(completion) = find_completed_call(self.workspace, call)? {
            return Ok(completion);
        }
        let rate_verdict = policy::rate_limit::check_rate(context, call.definition.effect)?;
        quota::ensure_usage_counted(context, call.definition.effect)?;
        let mut usage_recounted = false;
        for _ in 0..limits::REPLAN_ATTEMPTS_MAX {
            context.control.check()?;
            let result = match self.run_round(rate_verdict, record) {
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
                    match approval::request_and_wait(context, self.workspace, *missing)? {
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
            .with_next_step(NextStep::repeat()))
    }

    fn run_round(
        &self,
        rate_verdict: PolicyVerdict,
        record: &mut JournalCallRecord<'_>,
    ) -> Result<PlanningRoundResult, Error> {
        let (context, row) = (self.context, self.call.definition);
        context.begin_round();
        let RequestedPathsAndPlanFn { paths: requests, plan } = self.call.operation.resolve_call(context)?;
        if row.effect == OperationEffectClass::None && !requests.is_empty() {
            context.take_buffer_snapshot()?;
        }
        let mut targets = resolve::resolve_targets(context.workspace(), &requests, &context.options.path_spelling)?;
        record.paths = targets.iter().map(|target| target.path.clone()).collect();
        let CallReadWritePolicyVerdicts { reads, writes, lease_generation } =
            authorization::check_targets(context, row.effect, &requests, &targets)?;
        let reads = reads.stricter_of(rate_verdict);
        if row.effect == OperationEffectClass::None
            && let Some(missing) = self.require_approval(reads, record, &targets, None)?
        {
            return Ok(PlanningRoundResult::NeedsApproval(missing));
        }
        let _guard = self.lock_targets(&requests, &targets)?;
        resolve::check_bases(context, &mut targets)?;
        let mut planned = context.release_reply(plan(context, &targets)?)?;
        let written = contents_written(context, &planned);
        let notices = if let OperationPlanningResult::Files { plan, .. } = &mut planned {
            // A lease that another caller takes between this check and the commit makes the commit fail.
            plan.expect.extend(
                lease_generation.map(|generation| Expectation::Family { family: RowFamily::Lease, generation }),
            );
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
            OperationPlanningResult::Approval { .. }
            | OperationPlanningResult::Watch { .. }
            | OperationPlanningResult::Administration(_) => PolicyVerdict::UNRESTRICTED,
            OperationPlanningResult::Files { plan, .. } => {
                reads.stricter_of(writes).stricter_of(authorization::check_plan(context, plan)?)
            }
        };
        if let Some(mut missing) = self.require_approval(verdict, record, &targets, Some(&planned))? {
            missing.before_after = proposed_before_after(context, planned).map(Box::new);
            return Ok(PlanningRoundResult::NeedsApproval(missing));
        }
        let executed = self.execute_planned(planned, record)?;
        context.workspace().forget_open_entries();
        let Some(mut status) = executed else { return Ok(PlanningRoundResult::Retry) };
        if let CallJournalStatus::Recorded(reply) | CallJournalStatus::NotYetRecorded(reply) = &mut status {
            reply.notices = unsaved::mark_unsaved_files(context, &targets, &notices, self.call.operation);
            for (path, version, bytes) in &written {
                context.remember(path, *version, Some(bytes));
            }
        }
        Ok(PlanningRoundResult::Finished(status))
    }

    fn require_approval(
        &self,
        verdict: PolicyVerdict,
        record: &mut JournalCallRecord<'_>,
        targets: &[ResolvedTarget],
        planned: Option<&OperationPlanningResult<()>>,
    ) -> Result<Option<Box<MissingApproval>>, Error> {
        record.policy_tier = record.policy_tier.max(verdict.tier);
        if verdict.tier < SupervisionTier::ApprovalRequired {
            return Ok(None);
        }
        let context = self.context;
        let call_digest = approval::digest_call(context, self.call.arguments);
        record.details.call = Some(call_digest);
        let plan = if let Some(OperationPlanningResult::Files { plan, .. }) = planned { Some(plan) } else { None };
        let plan_digest = match plan {
            Some(plan) => approval::digest_plan(context, &call_digest, plan)?,
            None => approval::digest_targets(context, &call_digest, targets),
        };
        let binding = ApprovalBindingDigests { call_digest, plan_digest };
        let preview = || match plan {
            Some(plan) => approval::preview_plan(context, plan),
            None => approval::preview_reads(targets),
        };
        match ApprovalCheckResult::check_approval(context, self.approval_mode, binding, verdict, preview)? {
            ApprovalCheckResult::Approved(approval) => record.approval = Some(approval),
            ApprovalCheckResult::AllowedByOperator => record.approval = Some(ALLOWED_BY_OPERATOR.to_owned()),
            ApprovalCheckResult::Missing(missing) => return Ok(Some(Box::new(missing))),
        }
        Ok(None)
    }

    /// Locks the changed paths in sorted order. A path that is only read needs no lock, because files are replaced
    /// atomically.
    fn lock_targets(
        &self,
        requests: &[PathAccessRequest],
        targets: &[ResolvedTarget],
    ) -> Result<Option<Box<dyn CallLockGuard>>, Error> {
        if self.call.definition.effect == OperationEffectClass::None {
            return Ok(None);
        }
        let mut locks: Vec<PathLockRequest> = requests
            .iter()
            .zip(targets)
            .filter(|(request, _)| request.access != RequestedAccessKind::Read)
            .map(|(_, target)| PathLockRequest { path: target.path.clone() })
            .collect();
        locks.sort();
        locks.dedup();
        let guard = self.workspace.lock(&locks, self.context.control.deadline())?;
        self.context.look_again_under_locks()?;
        Ok(Some(guard))
    }

    /// Applies and records the planned effect; `None` means that the files changed since planning.
    fn execute_planned(
        &self,
        planned: OperationPlanningResult<()>,
        record: &mut JournalCallRecord<'_>,
    ) -> Result<Option<CallJournalStatus>, Error> {
        let workspace = self.workspace;
        record.details = JournalEntryDetails { call: record.details.call, ..JournalEntryDetails::default() };
        let receipt = match planned {
            OperationPlanningResult::Read { outcome: (), bytes } => {
                record.bytes = bytes;
                if self.call.definition.effect != OperationEffectClass::None {
                    record.details.unchanged = self.call.operation.main_version().map(|version| version.0);
                }
                return Ok(Some(CallJournalStatus::NotYetRecorded(PipelineReply::default())));
            }
            OperationPlanningResult::Preview(()) => {
                return Ok(Some(CallJournalStatus::NotYetRecorded(PipelineReply::default())));
            }
            OperationPlanningResult::Lease { request, build_outcome } => {
                let (lease, receipt) = workspace.execute_lease_request(&request, record)?;
                build_outcome(&lease, &receipt);
                receipt
            }
            OperationPlanningResult::Session { request, build_outcome } => {
                let (reply, receipt) = workspace.execute_session_request(&request, record)?;
                build_outcome(&reply, &receipt);
                receipt
            }
            OperationPlanningResult::Approval { answer, build_outcome } => {
                let (approval, receipt) = workspace.answer_approval(&answer, record)?;
                build_outcome(&approval, &receipt);
                receipt
            }
            OperationPlanningResult::Watch { request, build_outcome } => {
                let deadline = self.context.control.deadline();
                let (watch, receipt) = workspace.execute_watch_request(&request, record, deadline)?;
                build_outcome(&watch, &receipt);
                receipt
            }
            OperationPlanningResult::Buffer { request, build_outcome } => {
                let (buffer, receipt) = workspace.execute_buffer_request(&request, record)?;
                build_outcome(&buffer, &receipt);
                receipt
            }
            OperationPlanningResult::Administration(_) => {
                return Err(administration::unknown_here_error(self.call.definition.name));
            }
            OperationPlanningResult::Files { plan, .. }
                if self.context.options.applied_by != ChangeApplierChoice::Workspace =>
            {
                record.details.applied_by_editor = Some(plan.changes.len() as u64);
                let end = SuccessfulCallOutcomeSource::LeftToEditor(changes_for_editor(self.context, plan));
                let reply = PipelineReply { end, ..PipelineReply::default() };
                return Ok(Some(CallJournalStatus::NotYetRecorded(reply)));
            }
            OperationPlanningResult::Files { plan, build_outcome } => {
                self.context.control.check()?;
                record.details.moved = plan.moved_files();
                record.details.buffers = plan.buffers.iter().map(|change| change.id.clone()).collect();
                match workspace.commit(&plan, record) {
                    Ok(receipt) => {
                        build_outcome(&receipt);
                        receipt
                    }
                    Err(CommitError::ExpectationFailed(_)) => return Ok(None),
                    Err(CommitError::KeyAlreadyUsed(number)) => return completed_call(workspace, number).map(Some),
                    Err(CommitError::RecordedThenFailed(error)) => {
                        return Ok(Some(CallJournalStatus::RecordedThenFailed(error)));
                    }
                    Err(CommitError::Failed(error)) => return Err(error),
                }
            }
        };
        Ok(Some(CallJournalStatus::Recorded(PipelineReply { entry: Some(receipt.entry), ..PipelineReply::default() })))
    }
}

fn contents_written(
    context: &CallContext<'_>,
    planned: &OperationPlanningResult<()>,
) -> Vec<(RelPath, Version, Vec<u8>)> {
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

/// The outcome of an earlier call with the same idempotency key, if any, so that its change is not applied twice.
fn find_completed_call(workspace: &dyn Workspace, call: &PipelineCall<'_>) -> Result<Option<CallJournalStatus>, Error> {
    let Some(key) = call.metadata.idempotency_key else { return Ok(None) };
    if key.is_empty() || key.len() > limits::IDEMPOTENCY_KEY_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::BadRequest,
            format!("an idempotency key must have 1 to {} bytes", limits::IDEMPOTENCY_KEY_BYTES_MAX),
        )
        .with_next_step("pass another key, or none"));
    }
    let Some(number) = workspace.entry_for_idempotency_key(&call.metadata.caller.principal, key)? else {
        return Ok(None);
    };
    refuse_other_call(workspace, call, number)?;
    completed_call(workspace, number).map(Some)
}

fn refuse_other_call(workspace: &dyn Workspace, call: &PipelineCall<'_>, number: u64) -> Result<(), Error> {
    let Some(stored) = workspace.entry(number)? else { return Ok(()) };
    let arguments = call.arguments.redacted(call.definition.content_arguments);
    if stored.entry.operation == call.definition.name && recorded_arguments::has_arguments(&stored.entry, &arguments) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::BadRequest,
        format!("this idempotency key was already used for a different call (r{number})"),
    )
    .with_next_step("use a new key for a new call"))
}

fn completed_call(workspace: &dyn Workspace, number: u64) -> Result<CallJournalStatus, Error> {
    let stored = workspace.entry(number)?.ok_or_else(|| {
        Error::new(
            ErrorKind::HistoryLost,
            format!("this idempotency key was used for entry r{number}, which is no longer in the journal"),
        )
        .with_next_step("read the files to see whether the change was made, then use a new key")
    })?;
    let end = SuccessfulCallOutcomeSource::AlreadyDone(Box::new(ReplayedCallOutcome::from(&stored)));
    Ok(CallJournalStatus::NotYetRecorded(PipelineReply { end, entry: Some(number), ..PipelineReply::default() }))
}

/// The file content before and after the change that the editor applies.
fn changes_for_editor(context: &CallContext<'_>, plan: Plan) -> Vec<BeforeAfterBytes> {
    plan.changes.into_iter().find_map(|change| before_and_after(context, change)).into_iter().collect()
}

fn proposed_before_after(context: &CallContext<'_>, planned: OperationPlanningResult<()>) -> Option<BeforeAfterBytes> {
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
