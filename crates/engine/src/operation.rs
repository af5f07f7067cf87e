//! The trait of operations: an operation names the paths of a call and makes a plan from the files it reads. An
//! operation cannot write files. The module also decodes the JSON arguments of a call.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use stead_path::RelPath;

use crate::{
    approval::{Approval, ApprovalAnswer},
    buffers::{BufferStoreRequest, EditorBufferMetadata},
    call_context::CallContext,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    plan::{Plan, PlanTimeFileVersion},
    session_store::{SessionStoreReply, SessionStoreWriteRequest},
    version::BaseVersion,
    watches::{Watch, WatchRequest},
    workspace::{CommitReceipt, FileStat, FinalSymlink, Lease, LeaseRequest},
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
pub(crate) type BuildCommittedChangeOutcomeFn = Box<dyn FnOnce(&CommitReceipt) -> CallOutcome>;

pub(crate) type LeaseToOutcomeFn = Box<dyn FnOnce(&Lease, &CommitReceipt) -> CallOutcome>;

pub(crate) type BuildApprovalAnswerOutcomeFn = Box<dyn FnOnce(&Approval, &CommitReceipt) -> CallOutcome>;

pub(crate) type BuildSessionCallOutcomeFn = Box<dyn FnOnce(&SessionStoreReply, &CommitReceipt) -> CallOutcome>;

pub(crate) type BuildWatchOutcomeFn = Box<dyn FnOnce(&Watch, &CommitReceipt) -> CallOutcome>;

pub(crate) type BuildBufferOutcomeFn = Box<dyn FnOnce(&EditorBufferMetadata, &CommitReceipt) -> CallOutcome>;

/// The result of planning: the finished outcome, or a change to commit and a function that then builds the outcome.
pub(crate) enum OperationPlanningResult {
    /// The call changes nothing; `bytes` is the number of bytes read, which the journal records.
    Read { outcome: CallOutcome, bytes: u64 },
    /// The call is a dry run and changes nothing.
    Preview(CallOutcome),
    /// The call changes files.
    Files { plan: Plan, build_outcome: BuildCommittedChangeOutcomeFn },
    /// The call acquires or releases a lease.
    Lease { request: LeaseRequest, build_outcome: LeaseToOutcomeFn },
    /// The call answers an approval request.
    Approval { answer: ApprovalAnswer, build_outcome: BuildApprovalAnswerOutcomeFn },
    /// The call writes to the session store.
    Session { request: SessionStoreWriteRequest, build_outcome: BuildSessionCallOutcomeFn },
    /// The call begins or ends a watch.
    Watch { request: WatchRequest, build_outcome: BuildWatchOutcomeFn },
    /// The call opens, changes or closes an editor buffer.
    Buffer { request: BufferStoreRequest, build_outcome: BuildBufferOutcomeFn },
}

/// An operation with its decoded arguments.
pub(crate) trait Operation {
    /// The paths of the call, in the order in which `plan` receives their targets.
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error>;

    /// Plans the effect of the call on the current files. If the files change between planning and commit, the pipeline
    /// calls `plan` again.
    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<OperationPlanningResult, Error>;
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

/// Largest [`edit_distance`] between a given name and the name that is suggested in its place.
const SUGGESTION_EDITS_MAX: usize = 2;

/// The known name that is most similar to the given name; `None` if no name is similar. Names that contain the given
/// name or are contained in it come first, the longest before others; then the [`edit_distance`] decides.
pub(crate) fn nearest_name<'a>(given: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let given = given.to_lowercase();
    let overlaps = |name: &&str| given.contains(*name) || (given.len() > 1 && name.contains(given.as_str()));
    let by_edits = |name: &'a str| (edit_distance(given.as_bytes(), name.as_bytes()), name);
    let is_close = |(edits, name): &(usize, &str)| *edits <= SUGGESTION_EDITS_MAX && edits * 2 <= name.len();
    known
        .clone()
        .filter(overlaps)
        .max_by_key(|name| name.len())
        .or_else(|| known.map(by_edits).filter(is_close).min().map(|(_, name)| name))
}

/// The Levenshtein distance: the number of bytes to insert, delete or replace to turn one name into the other.
pub(crate) fn edit_distance(from: &[u8], to: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
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
