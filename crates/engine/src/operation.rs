//! The trait of operations: an operation names the paths of a call and makes a plan from the files it reads. An
//! operation cannot write files. The module also decodes the JSON arguments of a call.

use std::ops::{Deref, Index, Range};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use stead_path::RelPath;

use crate::{
    approval::{Approval, ApprovalAnswer},
    buffers::{BufferStoreRequest, EditorBufferMetadata},
    call_context::CallContext,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    outcome::IntoCallOutcome,
    plan::{Plan, PlanTimeFileVersion},
    session_store::{SessionStoreReply, SessionStoreWriteRequest},
    version::BaseVersion,
    watches::{Watch, WatchBeginOrEndRequest},
    workspace::{CommitReceipt, FileStat, FinalSymlink, Lease, LeaseAcquireOrReleaseRequest},
};

/// The effect of an operation on files. The effect decides whether the call takes locks, how durable its writes are,
/// and which hints protocols send to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationEffectClass {
    /// The operation changes no file. The operation may still write database rows about sessions, alerts, watches or
    /// reviews.
    None,
    /// The operation creates or changes files; the previous content is retained.
    Write,
    /// The operation removes files; the previous content is retained for a limited time.
    Destroy,
}

/// A path argument that comes from the caller, or from a record of the server.
#[derive(Debug, Clone)]
pub(crate) enum CallerOrRecordedPath {
    /// The path as the caller wrote it.
    FromCaller(String),
    /// A path from the journal or the trash. It is not trusted, so it is resolved like a path from the caller.
    Recorded(RelPath),
}

/// The access that a call needs to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedPathAccessKind {
    Read,
    /// Create or change the file system entry at the path.
    Write,
    /// Remove the file system entry at the path.
    Remove,
    /// Read the file under a lock, so that no other call changes the file meanwhile.
    ReadLocked,
}

/// Whether a call affects only the entry at a path or the whole tree below the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryOrWholeTree {
    EntryOnly,
    /// The call affects the entry and everything below it, so every descendant is authorized too.
    WholeTree,
}

/// A path argument of a call, before it is resolved.
#[derive(Debug, Clone)]
pub(crate) struct RequestedPath {
    pub(crate) argument: CallerOrRecordedPath,
    pub(crate) access: RequestedPathAccessKind,
    pub(crate) final_symlink: FinalSymlink,
    pub(crate) reach: EntryOrWholeTree,
    pub(crate) base: Option<BaseVersion>,
}

impl RequestedPath {
    /// A path argument for reading; a symlink at the path is followed.
    pub(crate) fn read(spelling: &str) -> Self {
        Self::from_argument(spelling, RequestedPathAccessKind::Read, FinalSymlink::Follow)
    }

    /// A path argument for reading under a lock; a symlink at the path is followed.
    pub(crate) fn read_locked(spelling: &str) -> Self {
        Self::from_argument(spelling, RequestedPathAccessKind::ReadLocked, FinalSymlink::Follow)
    }

    /// A path argument for writing; a symlink at the path is followed if its target is within the workspace.
    pub(crate) fn write(spelling: &str) -> Self {
        Self::from_argument(spelling, RequestedPathAccessKind::Write, FinalSymlink::Follow)
    }

    pub(crate) fn from_argument(spelling: &str, access: RequestedPathAccessKind, final_symlink: FinalSymlink) -> Self {
        let argument = CallerOrRecordedPath::FromCaller(spelling.to_owned());
        Self { argument, access, final_symlink, reach: EntryOrWholeTree::EntryOnly, base: None }
    }

    pub(crate) fn from_recorded_path(path: RelPath, access: RequestedPathAccessKind) -> Self {
        Self { argument: CallerOrRecordedPath::Recorded(path), ..Self::from_argument("", access, FinalSymlink::Keep) }
    }

    pub(crate) fn including_subtree(mut self) -> Self {
        self.reach = EntryOrWholeTree::WholeTree;
        self
    }

    /// Adds the base version: the version that the caller claims to have seen.
    pub(crate) fn with_base(mut self, base: Option<&str>) -> Result<Self, Error> {
        self.base = base.map(BaseVersion::parse).transpose()?;
        Ok(self)
    }
}

/// The paths that a call needs, in the order in which its operation requests them.
#[derive(Debug, Default)]
pub(crate) struct RequestedPaths(Vec<RequestedPath>);

/// The position of one requested path in [`RequestedPaths`]. The resolved target of the path has the same position in
/// [`ResolvedTargets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestedPathIndex(usize);

/// The positions of adjacent requested paths in [`RequestedPaths`], see [`RequestedPathIndex`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedPathIndexRange(Range<usize>);

/// The positions in [`RequestedPaths`] of the source path and the destination path of a copy or move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FromAndToPathIndexes {
    pub(crate) from: RequestedPathIndex,
    pub(crate) to: RequestedPathIndex,
}

impl RequestedPaths {
    pub(crate) fn add(&mut self, request: RequestedPath) -> RequestedPathIndex {
        self.0.push(request);
        RequestedPathIndex(self.0.len() - 1)
    }

    pub(crate) fn add_all(&mut self, requests: Vec<RequestedPath>) -> RequestedPathIndexRange {
        let first = self.0.len();
        self.0.extend(requests);
        RequestedPathIndexRange(first..self.0.len())
    }
}

impl Deref for RequestedPaths {
    type Target = [RequestedPath];

    fn deref(&self) -> &[RequestedPath] {
        &self.0
    }
}

/// The resolved targets of a call, one for each requested path.
#[derive(Debug)]
pub(crate) struct ResolvedTargets(pub(crate) Vec<ResolvedTarget>);

impl Deref for ResolvedTargets {
    type Target = [ResolvedTarget];

    fn deref(&self) -> &[ResolvedTarget] {
        &self.0
    }
}

impl Index<RequestedPathIndex> for ResolvedTargets {
    type Output = ResolvedTarget;

    fn index(&self, index: RequestedPathIndex) -> &ResolvedTarget {
        &self.0[index.0]
    }
}

impl Index<RequestedPathIndexRange> for ResolvedTargets {
    type Output = [ResolvedTarget];

    fn index(&self, range: RequestedPathIndexRange) -> &[ResolvedTarget] {
        &self.0[range.0]
    }
}

/// A path of a call after it was resolved.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedTarget {
    /// The path in the workspace after symlinks were resolved.
    pub(crate) path: RelPath,
    /// The metadata of the file system entry at the resolved path; `None` if the path does not exist.
    pub(crate) stat: Option<FileStat>,
    /// The version that the file has now, to compare it with the base version; `None` if the call gave no base version.
    pub(crate) observed: Option<PlanTimeFileVersion>,
    /// The base version: the version that the caller claims to have seen.
    pub(crate) base: Option<BaseVersion>,
}

/// Builds the outcome of a change after its commit.
pub(crate) type BuildCommittedChangeOutcomeFn<O = CallOutcome> = Box<dyn FnOnce(&CommitReceipt) -> O>;

pub(crate) type LeaseToOutcomeFn<O = CallOutcome> = Box<dyn FnOnce(&Lease, &CommitReceipt) -> O>;

pub(crate) type BuildApprovalAnswerOutcomeFn<O = CallOutcome> = Box<dyn FnOnce(&Approval, &CommitReceipt) -> O>;

pub(crate) type BuildSessionCallOutcomeFn<O = CallOutcome> = Box<dyn FnOnce(&SessionStoreReply, &CommitReceipt) -> O>;

pub(crate) type BuildWatchOutcomeFn<O = CallOutcome> = Box<dyn FnOnce(&Watch, &CommitReceipt) -> O>;

pub(crate) type BuildBufferOutcomeFn<O = CallOutcome> = Box<dyn FnOnce(&EditorBufferMetadata, &CommitReceipt) -> O>;

/// The result of planning: an outcome, or the changes to commit before the outcome can be built.
pub(crate) enum OperationPlanningResult<O = CallOutcome> {
    /// The call changes nothing. The journal records the number of bytes read.
    Read { outcome: O, bytes: u64 },
    /// The call is a dry run and changes nothing.
    Preview(O),
    /// The call changes files.
    Files { plan: Plan, build_outcome: BuildCommittedChangeOutcomeFn<O> },
    /// The call acquires or releases a lease.
    Lease { request: LeaseAcquireOrReleaseRequest, build_outcome: LeaseToOutcomeFn<O> },
    /// The call answers an approval request.
    Approval { answer: ApprovalAnswer, build_outcome: BuildApprovalAnswerOutcomeFn<O> },
    /// The call writes to the session store.
    Session { request: SessionStoreWriteRequest, build_outcome: BuildSessionCallOutcomeFn<O> },
    /// The call begins or ends a watch.
    Watch { request: WatchBeginOrEndRequest, build_outcome: BuildWatchOutcomeFn<O> },
    /// The call opens, changes or closes an editor buffer.
    Buffer { request: BufferStoreRequest, build_outcome: BuildBufferOutcomeFn<O> },
}

impl<O: 'static> OperationPlanningResult<O> {
    /// Replaces the outcome, or the outcome that will be built after the commit, by its value under `convert`.
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
        }
    }
}

/// The result of planning the operation `T`.
pub(crate) type PlanResult<T> = Result<OperationPlanningResult<<T as Operation>::Outcome>, Error>;

/// An operation with its decoded arguments. An operation cannot write files: it names the paths that it needs and
/// returns a plan.
pub(crate) trait Operation {
    /// The values that `resolve` computes once and hands to `plan`: indexes of the paths, parsed arguments, the
    /// journal entry to revert.
    type Resolved;
    /// The result of a successful call.
    type Outcome: IntoCallOutcome + 'static;

    /// Requests the paths of the call. If the files change between planning and commit, the pipeline calls `resolve`
    /// and `plan` again.
    fn resolve(&self, context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error>;

    /// Plans the effect of the call on the current files.
    fn plan(&self, context: &CallContext<'_>, resolved: Self::Resolved, targets: &ResolvedTargets) -> PlanResult<Self>;
}

/// The operation of a call, as the pipeline sees it: without the types of the operation, so that the pipeline is
/// compiled once.
pub(crate) trait PipelineOperation {
    /// Requests the paths of the call, and returns the function that plans the call with their targets.
    fn resolve_call(&self, context: &CallContext<'_>) -> Result<ResolvedCall<'_>, Error>;
}

/// The paths that a call requests, and the function that plans the call when these paths are resolved.
pub(crate) struct ResolvedCall<'a> {
    pub(crate) paths: RequestedPaths,
    pub(crate) plan: PlanCallFn<'a>,
}

type PlanCallFn<'a> =
    Box<dyn FnOnce(&CallContext<'_>, &ResolvedTargets) -> Result<OperationPlanningResult, Error> + 'a>;

impl<T: Operation> PipelineOperation for T
where
    T::Resolved: 'static,
{
    fn resolve_call(&self, context: &CallContext<'_>) -> Result<ResolvedCall<'_>, Error> {
        let mut paths = RequestedPaths::default();
        let resolved = self.resolve(context, &mut paths)?;
        let plan = move |context: &CallContext<'_>, targets: &ResolvedTargets| {
            let notation = context.options.call_notation;
            let planned = self.plan(context, resolved, targets)?;
            Ok(planned.map(move |outcome| outcome.into_call_outcome(notation)))
        };
        Ok(ResolvedCall { paths, plan: Box::new(plan) })
    }
}

/// Decodes the arguments of an operation. A decoding error names the invalid argument and suggests a known argument
/// with a similar name.
pub(crate) fn decode_arguments<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, Error> {
    T::deserialize(Value::Object(arguments.clone())).map_err(|error| {
        // Serde's message says "field", but callers know the word "argument".
        let message = error.to_string().replace("unknown field", "unknown argument");
        let message = message.replace("missing field", "missing argument");
        let message = match find_ill_typed_argument::<T>(arguments, &message) {
            Some(name) => format!("argument `{name}`: {message}"),
            None => message,
        };
        let hint = match suggest_argument(&message) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "check the argument names and types against the operation's definition".to_owned(),
        };
        Error::new(ErrorKind::BadRequest, message).with_next_step(hint)
    })
}

/// Finds the argument that causes a decoding error: decoding this argument alone gives the same message. Returns `None`
/// if the message already names the argument.
fn find_ill_typed_argument<'a, T: DeserializeOwned>(
    arguments: &'a Map<String, Value>,
    message: &str,
) -> Option<&'a String> {
    if ["unknown argument", "missing argument"].iter().any(|start| message.starts_with(start)) {
        return None;
    }
    let fails_alone = |(name, value): &(&'a String, &Value)| {
        let alone = Map::from_iter([((*name).clone(), (*value).clone())]);
        T::deserialize(Value::Object(alone)).is_err_and(|error| error.to_string() == message)
    };
    arguments.iter().find(fails_alone).map(|(name, _)| name)
}

/// The name of the known argument that is most similar to the unknown argument. The suggestion is taken from serde's
/// error message, which alone lists both the unknown and the known names. If serde changes the wording of its message,
/// only the suggestion is lost.
fn suggest_argument(message: &str) -> Option<&str> {
    let listed = message.strip_prefix("unknown argument ")?;
    let mut names = listed.split('`').skip(1).step_by(2);
    let given = names.next()?;
    nearest_name(given, names)
}

/// Largest edit distance between a given name and the name that is suggested in its place.
const SUGGESTION_EDITS_MAX: usize = 2;

/// The known name that is most similar to the given name; `None` if no name is similar. Names that contain the given
/// name or are contained in it come first, the longest before others; then the edit distance decides.
pub(crate) fn nearest_name<'a>(given: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn decode_error_names_ill_typed_argument() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct DecodeTestArgs {
            #[expect(dead_code, reason = "only decoded")]
            path: String,
            #[expect(dead_code, reason = "only decoded")]
            max: Option<u64>,
        }
        for (arguments, expected) in [
            (json!({ "path": 5 }), "argument `path`: invalid type: integer `5`, expected a string"),
            (json!({ "path": "a", "max": "b" }), "argument `max`: invalid type: string \"b\", expected u64"),
            (json!({ "max": 1 }), "missing argument `path`"),
            (json!({ "path": "a", "x": 1 }), "unknown argument `x`, expected `path` or `max`"),
        ] {
            let arguments = arguments.as_object().expect("an object");
            assert_eq!(decode_arguments::<DecodeTestArgs>(arguments).expect_err("a misfit").message, expected);
        }
    }

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
        assert_eq!(suggest_argument("unknown argument `pat`, expected `path`"), Some("path"));
        assert_eq!(suggest_argument("missing argument `path`"), None);
    }
}
