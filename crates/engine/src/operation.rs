//! The trait of operations: an operation names the paths of a call and makes a plan, but cannot write files.

use std::{cell::Cell, rc::Rc};

use stead_path::RelPath;

use crate::{
    administration::{AdministrationCall, AdministrationStore},
    approval::{Approval, ApprovalAnswer},
    buffers::{BufferStoreRequest, EditorBufferMetadata},
    call_context::CallContext,
    errors::Error,
    outcome::{FileShownInOutcome, OperationOutcome},
    plan::{Plan, PlanTimeFileVersion},
    session_store::{SessionStoreReply, SessionStoreWriteRequest},
    tree::{FileStat, FinalSymlink},
    version::{BaseVersion, Version},
    watches::{Watch, WatchBeginOrEndRequest},
    workspace::{CommitReceipt, Lease, LeaseAcquireOrReleaseRequest},
};

/// The effect of an operation on files, which decides its locks, the durability of its writes, and the hints for
/// clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationEffectClass {
    /// The operation changes no file, but may write database rows about sessions, alerts, watches or reviews.
    None,
    /// The operation creates or changes files; the previous content is retained.
    Write,
    /// The operation removes files; the previous content is retained for a limited time.
    Destroy,
}

#[derive(Debug, Clone)]
pub(crate) enum CallerOrRecordedPath {
    FromCaller(String),
    /// A recorded path is not trusted, so it is resolved like a path from the caller.
    Recorded(RelPath),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedAccessKind {
    Read,
    Write,
    Remove,
    /// The file is read under a lock, so that no other call changes the file meanwhile.
    ReadLocked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryOrWholeTree {
    EntryOnly,
    /// A call on a whole tree must be authorized for every entry below the path.
    WholeTree,
}

#[derive(Debug, Clone)]
pub(crate) struct PathAccessRequest {
    pub(crate) argument: CallerOrRecordedPath,
    pub(crate) access: RequestedAccessKind,
    pub(crate) final_symlink: FinalSymlink,
    pub(crate) reach: EntryOrWholeTree,
    pub(crate) base: Option<BaseVersion>,
}

impl PathAccessRequest {
    pub(crate) fn read(spelling: &str) -> Self {
        Self::from_argument(spelling, RequestedAccessKind::Read, FinalSymlink::Follow)
    }

    pub(crate) fn read_locked(spelling: &str) -> Self {
        Self::from_argument(spelling, RequestedAccessKind::ReadLocked, FinalSymlink::Follow)
    }

    pub(crate) fn write(spelling: &str) -> Self {
        Self::from_argument(spelling, RequestedAccessKind::Write, FinalSymlink::Follow)
    }

    pub(crate) fn from_argument(spelling: &str, access: RequestedAccessKind, final_symlink: FinalSymlink) -> Self {
        let argument = CallerOrRecordedPath::FromCaller(spelling.to_owned());
        Self { argument, access, final_symlink, reach: EntryOrWholeTree::EntryOnly, base: None }
    }

    pub(crate) fn from_recorded_path(path: RelPath, access: RequestedAccessKind) -> Self {
        Self { argument: CallerOrRecordedPath::Recorded(path), ..Self::from_argument("", access, FinalSymlink::Keep) }
    }

    pub(crate) fn including_subtree(mut self) -> Self {
        self.reach = EntryOrWholeTree::WholeTree;
        self
    }

    /// The base version is the version that the caller claims to have seen.
    pub(crate) fn with_base(mut self, base: Option<&str>) -> Result<Self, Error> {
        self.base = base.map(BaseVersion::parse).transpose()?;
        Ok(self)
    }
}

/// The paths that an operation requests. The pipeline resolves and authorizes them, and `plan` gets their targets.
pub(crate) trait RequestedPaths: 'static {
    type Targets<'t>;

    fn requests(&self) -> Vec<PathAccessRequest>;

    /// Takes the targets of the requests from the start of `resolved`, where they are in the order of the requests.
    fn take_targets<'t>(self, resolved: &mut &'t [ResolvedTarget]) -> Self::Targets<'t>;
}

impl RequestedPaths for PathAccessRequest {
    type Targets<'t> = &'t ResolvedTarget;

    fn requests(&self) -> Vec<PathAccessRequest> {
        vec![self.clone()]
    }

    fn take_targets<'t>(self, resolved: &mut &'t [ResolvedTarget]) -> &'t ResolvedTarget {
        let (target, rest) = (&resolved[0], &resolved[1..]);
        *resolved = rest;
        target
    }
}

impl<P: RequestedPaths> RequestedPaths for Option<P> {
    type Targets<'t> = Option<P::Targets<'t>>;

    fn requests(&self) -> Vec<PathAccessRequest> {
        self.iter().flat_map(P::requests).collect()
    }

    fn take_targets<'t>(self, resolved: &mut &'t [ResolvedTarget]) -> Self::Targets<'t> {
        self.map(|paths| paths.take_targets(resolved))
    }
}

impl RequestedPaths for Vec<PathAccessRequest> {
    type Targets<'t> = &'t [ResolvedTarget];

    fn requests(&self) -> Vec<PathAccessRequest> {
        self.clone()
    }

    fn take_targets<'t>(self, resolved: &mut &'t [ResolvedTarget]) -> &'t [ResolvedTarget] {
        let (targets, rest) = resolved.split_at(self.len());
        *resolved = rest;
        targets
    }
}

impl<P: RequestedPaths, Q: RequestedPaths> RequestedPaths for (P, Q) {
    type Targets<'t> = (P::Targets<'t>, Q::Targets<'t>);

    fn requests(&self) -> Vec<PathAccessRequest> {
        [self.0.requests(), self.1.requests()].concat()
    }

    fn take_targets<'t>(self, resolved: &mut &'t [ResolvedTarget]) -> Self::Targets<'t> {
        (self.0.take_targets(resolved), self.1.take_targets(resolved))
    }
}

/// A value that `resolve` computes once and hands to `plan` beside the targets, such as parsed arguments.
pub(crate) struct ValueForPlan<T>(pub(crate) T);

impl<T: 'static> RequestedPaths for ValueForPlan<T> {
    type Targets<'t> = T;

    fn requests(&self) -> Vec<PathAccessRequest> {
        Vec::new()
    }

    fn take_targets(self, _resolved: &mut &[ResolvedTarget]) -> T {
        self.0
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ResolvedTarget {
    pub(crate) path: RelPath,
    pub(crate) stat: Option<FileStat>,
    /// The current version of the file; `None` if the call gave no base version.
    pub(crate) observed: Option<PlanTimeFileVersion>,
    pub(crate) base: Option<BaseVersion>,
}

pub(crate) type BuildCommittedChangeOutcomeFn<O> = Box<dyn FnOnce(&CommitReceipt) -> O>;

pub(crate) type LeaseToOutcomeFn<O> = Box<dyn FnOnce(&Lease, &CommitReceipt) -> O>;

pub(crate) type BuildApprovalAnswerOutcomeFn<O> = Box<dyn FnOnce(&Approval, &CommitReceipt) -> O>;

pub(crate) type BuildSessionCallOutcomeFn<O> = Box<dyn FnOnce(&SessionStoreReply, &CommitReceipt) -> O>;

pub(crate) type BuildWatchOutcomeFn<O> = Box<dyn FnOnce(&Watch, &CommitReceipt) -> O>;

pub(crate) type BuildBufferOutcomeFn<O> = Box<dyn FnOnce(&EditorBufferMetadata, &CommitReceipt) -> O>;

pub(crate) type AdministerFn<O> =
    Box<dyn FnOnce(&dyn AdministrationStore, &AdministrationCall<'_>) -> Result<O, Error>>;

pub(crate) enum OperationPlanningResult<O> {
    /// The journal records `bytes`, the number of bytes that the call read.
    Read {
        outcome: O,
        bytes: u64,
    },
    /// The call is a dry run and changes nothing.
    Preview(O),
    Files {
        plan: Plan,
        build_outcome: BuildCommittedChangeOutcomeFn<O>,
    },
    Lease {
        request: LeaseAcquireOrReleaseRequest,
        build_outcome: LeaseToOutcomeFn<O>,
    },
    Approval {
        answer: ApprovalAnswer,
        build_outcome: BuildApprovalAnswerOutcomeFn<O>,
    },
    Session {
        request: SessionStoreWriteRequest,
        build_outcome: BuildSessionCallOutcomeFn<O>,
    },
    Watch {
        request: WatchBeginOrEndRequest,
        build_outcome: BuildWatchOutcomeFn<O>,
    },
    Buffer {
        request: BufferStoreRequest,
        build_outcome: BuildBufferOutcomeFn<O>,
    },
    Administration(AdministerFn<O>),
}

impl<O: 'static> OperationPlanningResult<O> {
    fn map<U>(self, convert: impl FnOnce(O) -> U + 'static) -> OperationPlanningResult<U> {
        use OperationPlanningResult as Result;
        match self {
            Self::Read { outcome, bytes } => Result::Read { outcome: convert(outcome), bytes },
            Self::Preview(outcome) => Result::Preview(convert(outcome)),
            Self::Files { plan, build_outcome: build } => {
                Result::Files { plan, build_outcome: Box::new(|receipt| convert(build(receipt))) }
            }
            Self::Lease { request, build_outcome: build } => {
                Result::Lease { request, build_outcome: Box::new(|lease, receipt| convert(build(lease, receipt))) }
            }
            Self::Approval { answer, build_outcome: build } => Result::Approval {
                answer,
                build_outcome: Box::new(|answered, receipt| convert(build(answered, receipt))),
            },
            Self::Session { request, build_outcome: build } => {
                Result::Session { request, build_outcome: Box::new(|reply, receipt| convert(build(reply, receipt))) }
            }
            Self::Watch { request, build_outcome: build } => {
                Result::Watch { request, build_outcome: Box::new(|watch, receipt| convert(build(watch, receipt))) }
            }
            Self::Buffer { request, build_outcome: build } => {
                Result::Buffer { request, build_outcome: Box::new(|buffer, receipt| convert(build(buffer, receipt))) }
            }
            Self::Administration(administer) => {
                Result::Administration(Box::new(|store, call| administer(store, call).map(convert)))
            }
        }
    }
}

/// What the duration of a call depends on, so that a host can choose a thread for the call before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallDurationFactor<'a> {
    FileSize {
        path: &'a str,
        /// The range of bytes that the call reads, such as `0-99`; `None` if it reads the whole file.
        bytes: Option<&'a str>,
    },
    /// The call writes this many bytes.
    ContentBytes(usize),
    /// The call waits for an event for up to this many milliseconds.
    WaitMs(Option<u64>),
    Unknown,
}

pub(crate) type PlanResult<T> = Result<OperationPlanningResult<<T as Operation>::Outcome>, Error>;

/// An operation with its decoded arguments, which names the paths that it needs and returns a plan.
pub(crate) trait Operation {
    type Paths: RequestedPaths;
    type Outcome: OperationOutcome;

    /// If the files change between planning and commit, the pipeline calls `resolve` and `plan` again.
    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error>;

    fn plan(
        &self,
        context: &CallContext<'_>,
        targets: <Self::Paths as RequestedPaths>::Targets<'_>,
    ) -> PlanResult<Self>;

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        CallDurationFactor::Unknown
    }
}

/// An operation that names no path.
pub(crate) trait PathlessOperation {
    type Outcome: OperationOutcome;

    fn plan(&self, context: &CallContext<'_>) -> Result<OperationPlanningResult<Self::Outcome>, Error>;

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        CallDurationFactor::Unknown
    }
}

impl<O: PathlessOperation> Operation for O {
    type Paths = ValueForPlan<()>;
    type Outcome = O::Outcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<ValueForPlan<()>, Error> {
        Ok(ValueForPlan(()))
    }

    fn plan(&self, context: &CallContext<'_>, (): ()) -> PlanResult<Self> {
        PathlessOperation::plan(self, context)
    }

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        PathlessOperation::duration_factor(self)
    }
}

/// The pipeline sees an operation without its types, so that the pipeline is compiled only once.
pub(crate) trait TypeErasedOperation {
    fn resolve_call(&self, context: &CallContext<'_>) -> Result<RequestedPathsAndPlanFn<'_>, Error>;

    /// Visits the files that the outcome shows. Before the outcome is built, there are none.
    fn visit_shown_files(&self, visit: &mut dyn FnMut(FileShownInOutcome<'_>));

    /// The version of the file that the outcome is about.
    fn main_version(&self) -> Option<Version>;
}

pub(crate) struct RequestedPathsAndPlanFn<'a> {
    pub(crate) paths: Vec<PathAccessRequest>,
    pub(crate) plan: PlanCallFn<'a>,
}

type PlanCallFn<'a> =
    Box<dyn FnOnce(&CallContext<'_>, &[ResolvedTarget]) -> Result<OperationPlanningResult<()>, Error> + 'a>;

/// An operation in the pipeline, and its outcome as soon as it is built.
pub(crate) struct OperationRun<O: Operation> {
    operation: O,
    outcome: Rc<Cell<Option<O::Outcome>>>,
}

impl<O: Operation> OperationRun<O> {
    pub(crate) fn new(operation: O) -> Self {
        Self { operation, outcome: Rc::default() }
    }

    pub(crate) fn into_outcome(self) -> Option<O::Outcome> {
        self.outcome.take()
    }

    fn with_outcome<T>(&self, visit: impl FnOnce(&mut O::Outcome) -> T) -> Option<T> {
        let mut outcome = self.outcome.take()?;
        let visited = visit(&mut outcome);
        self.outcome.set(Some(outcome));
        Some(visited)
    }
}

impl<O: Operation> TypeErasedOperation for OperationRun<O> {
    fn resolve_call(&self, context: &CallContext<'_>) -> Result<RequestedPathsAndPlanFn<'_>, Error> {
        let requested = self.operation.resolve(context)?;
        let (paths, built) = (requested.requests(), self.outcome.clone());
        let plan = move |context: &CallContext<'_>, mut targets: &[ResolvedTarget]| {
            let planned = self.operation.plan(context, requested.take_targets(&mut targets))?;
            Ok(planned.map(move |outcome| built.set(Some(outcome))))
        };
        Ok(RequestedPathsAndPlanFn { paths, plan: Box::new(plan) })
    }

    fn visit_shown_files(&self, visit: &mut dyn FnMut(FileShownInOutcome<'_>)) {
        self.with_outcome(|outcome| outcome.shown_files().into_iter().for_each(visit));
    }

    fn main_version(&self) -> Option<Version> {
        self.with_outcome(|outcome| Some(outcome.main_file()?.version?.0)).flatten()
    }
}

const SUGGESTION_EDITS_MAX: usize = 2;

/// The most similar name contains the given name or is contained in it; otherwise the edit distance decides.
pub fn nearest_name<'a>(given: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let given = given.to_lowercase();
    let overlaps = |name: &&str| given.contains(*name) || (given.len() > 1 && name.contains(given.as_str()));
    let by_edits = |name: &'a str| (strsim::levenshtein(&given, name), name);
    let is_close = |(edits, name): &(usize, &str)| *edits <= SUGGESTION_EDITS_MAX && edits * 2 <= name.len();
    known
        .clone()
        .filter(overlaps)
        .max_by_key(|name| name.len())
        .or_else(|| known.map(by_edits).filter(is_close).min().map(|(_, name)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_argument_gets_nearest_suggestion() {
        let known = ["path", "lines", "bytes", "as"];
        for (given, expected) in [
            ("file_path", Some("path")),
            ("PATH", Some("path")),
            ("pth", Some("path")),
            ("line", Some("lines")),
            ("byte_range", None),
            ("x", None),
            ("encoding", None),
        ] {
            assert_eq!(nearest_name(given, known.into_iter()), expected, "{given}");
        }
    }
}
