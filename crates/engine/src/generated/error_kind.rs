// Generated from definitions/errors.yaml by cargo xtask generate; do not edit.

error_kinds! {
    /// The arguments are invalid for the operation.
    BadRequest = "bad_request", Refused;
    /// There is no operation with this name.
    UnknownOperation = "unknown_operation", Refused;
    /// The text is not a valid path below the workspace root.
    InvalidPath = "invalid_path", Refused;
    /// The whole path is too long.
    PathTooLong = "path_too_long", Refused;
    /// One name in the path is too long.
    NameTooLong = "name_too_long", Refused;
    /// The path has too many components.
    DepthLimit = "depth_limit", Refused;
    /// The new name is not valid on every common file system.
    InvalidName = "invalid_name", Refused;
    /// An existing name differs from the new name only in case or in invisible characters.
    NameCollision = "name_collision", Refused;
    /// A symbolic link leads out of the workspace.
    PathEscape = "path_escape", Refused;
    /// The path is on another file system that is not part of the workspace.
    CrossMount = "cross_mount", Refused;
    /// The path is reserved for stead, or other programs may execute its content (for example .git/hooks).
    ProtectedPath = "protected_path", Refused;
    /// The path is outside the directories that this caller may read or write.
    OutOfScope = "out_of_scope", Refused;
    /// The workspace, or this caller, is read-only.
    ReadOnly = "read_only", Refused;
    /// The lease, draft, session or other object belongs to another principal.
    NotOwner = "not_owner", Refused;
    /// Another principal holds a lease on the path.
    Locked = "locked", StateMismatch;
    /// The file, directory or object that the call names does not exist.
    NotFound = "not_found", StateMismatch;
    /// The path or object already exists.
    Exists = "exists", StateMismatch;
    /// The operation needs a directory, but the path is something else.
    NotDirectory = "not_dir", StateMismatch;
    /// The operation needs a file, but the path is a directory.
    IsDirectory = "is_dir", StateMismatch;
    /// The operation needs a regular file, but the path is a link, pipe, socket or device.
    NotRegular = "not_regular", Refused;
    /// The directory is not empty.
    NotEmpty = "not_empty", StateMismatch;
    /// The path leads through too many symbolic links, or through a cycle of links.
    LinkLoop = "link_loop", StateMismatch;
    /// The file is not text in the requested encoding.
    NotText = "not_text", StateMismatch;
    /// The quoted text is not in the file.
    TextNotFound = "text_not_found", StateMismatch;
    /// The quoted text occurs more than once, and the call does not say which occurrence it means.
    Ambiguous = "ambiguous", StateMismatch;
    /// Two changes of the same call overlap.
    Overlap = "overlap", Refused;
    /// The file already contains the change that the call requests.
    AlreadyApplied = "already_applied", StateMismatch;
    /// The patch cannot be parsed.
    MalformedPatch = "malformed_patch", Refused;
    /// The base version that the call gives is not the current version of the file.
    Stale = "stale", StateMismatch;
    /// The call would replace an existing file but gives no base version.
    BaseRequired = "base_required", StateMismatch;
    /// Another change, or unsaved text in an editor, conflicts with the change of this call.
    Conflict = "conflict", StateMismatch;
    /// The call has nothing to do: for example, there is no change to undo.
    NothingToDo = "nothing_to_do", StateMismatch;
    /// The requested version or trash item is no longer stored.
    Expired = "expired", StateMismatch;
    /// The cursor or entry number does not exist in this journal.
    HistoryLost = "history_lost", StateMismatch;
    /// A stored version does not match its hash.
    CorruptHistory = "corrupt_history", SystemFailure;
    /// The input or the result exceeds a size limit.
    TooLarge = "too_large", Refused;
    /// The call would exceed a limit on a number, such as the number of watches.
    TooMany = "too_many", Refused;
    /// The call would exceed a quota of the policy; the fields quota, limit, used and asked give the details. A caller over its quota can still remove and shorten files.
    QuotaExceeded = "quota", Refused;
    /// The caller made too many calls in a short time; retry after retry_after_ms milliseconds.
    RateLimited = "rate_limited", Refused;
    /// A rule of the policy blocks the call.
    PolicyDenied = "policy_denied", Refused;
    /// A person must approve this exact call. The call changed nothing and can be repeated after a person approves it.
    ApprovalPending = "approval_pending", Refused;
    /// A person denied this exact call.
    ApprovalDenied = "approval_denied", Refused;
    /// Files or the policy changed since the approval, so a new approval was requested.
    ApprovalStale = "approval_stale", StateMismatch;
    /// The disk is full.
    NoSpace = "no_space", SystemFailure;
    /// The operating system denied the server process access to the file.
    SystemDenied = "denied", SystemFailure;
    /// The path or resource is in use; retry the same call shortly.
    Busy = "busy", StateMismatch;
    /// The call exceeded its deadline. Nothing was changed.
    Deadline = "deadline", StateMismatch;
    /// The caller cancelled the call. Nothing was changed.
    Cancelled = "cancelled", StateMismatch;
    /// The journal cannot be written, so changes are refused.
    AuditUnavailable = "audit_unavailable", SystemFailure;
    /// The storage device reported an error.
    Io = "io_error", SystemFailure;
}
