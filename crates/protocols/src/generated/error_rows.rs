// Generated from definitions/errors.yaml by cargo xtask generate; do not edit.
// kind: http, rpc, exit, retry, comma, krux, acp

error_rows! {
    BadRequest: BAD_REQUEST, INVALID_PARAMS, Usage, Never, CommandFailed, InvalidInput, InvalidParams;
    UnknownOperation: NOT_FOUND, METHOD_NOT_FOUND, Usage, Never, Unknown, InvalidInput, InvalidParams;
    InvalidPath: BAD_REQUEST, CALL_FAILED, Refused, Never, OutsideWorkspace, PathOutOfScope, NotFound;
    PathTooLong: BAD_REQUEST, CALL_FAILED, Refused, Never, CommandFailed, InvalidInput, NotFound;
    NameTooLong: BAD_REQUEST, CALL_FAILED, Refused, Never, CommandFailed, InvalidInput, NotFound;
    DepthLimit: BAD_REQUEST, CALL_FAILED, Refused, Never, CommandFailed, InvalidInput, NotFound;
    InvalidName: BAD_REQUEST, CALL_FAILED, Refused, Never, CommandFailed, InvalidInput, InternalError;
    NameCollision: CONFLICT, CALL_FAILED, Refused, Never, AlreadyExists, InvalidInput, InternalError;
    PathEscape: FORBIDDEN, CALL_FAILED, Refused, Never, OutsideWorkspace, PathOutOfScope, NotFound;
    CrossMount: FORBIDDEN, CALL_FAILED, Refused, Never, OutsideWorkspace, PathOutOfScope, NotFound;
    ProtectedPath: FORBIDDEN, CALL_FAILED, Refused, Never, PermissionDenied, PermissionDenied, InternalError;
    OutOfScope: FORBIDDEN, CALL_FAILED, Refused, Never, PermissionDenied, PathOutOfScope, InternalError;
    ReadOnly: FORBIDDEN, CALL_FAILED, Refused, Never, PermissionDenied, PermissionDenied, InternalError;
    NotOwner: FORBIDDEN, CALL_FAILED, Refused, Never, PermissionDenied, PermissionDenied, InternalError;
    Locked: LOCKED, CALL_FAILED, Failed, AfterOthers, CommandFailed, Conflict, InternalError;
    NotFound: NOT_FOUND, CALL_FAILED, Failed, Never, NotFound, FileNotFound, NotFound;
    Exists: CONFLICT, CALL_FAILED, Failed, Never, AlreadyExists, DestinationExists, InternalError;
    NotDirectory: CONFLICT, CALL_FAILED, Failed, Never, NotFound, NotADirectory, NotFound;
    IsDirectory: CONFLICT, CALL_FAILED, Failed, Never, NotFound, IsADirectory, InternalError;
    NotRegular: FORBIDDEN, CALL_FAILED, Refused, Never, NotFound, NotAFile, InternalError;
    NotEmpty: CONFLICT, CALL_FAILED, Failed, Never, CommandFailed, DirectoryNotEmpty, InternalError;
    LinkLoop: CONFLICT, CALL_FAILED, Failed, Never, NotFound, NotAFile, NotFound;
    NotText: UNPROCESSABLE_ENTITY, CALL_FAILED, Failed, Never, BinaryFile, EncodingError, InternalError;
    TextNotFound: UNPROCESSABLE_ENTITY, CALL_FAILED, Failed, Never, OldTextNotFound, InvalidInput, InternalError;
    Ambiguous: UNPROCESSABLE_ENTITY, CALL_FAILED, Failed, Never, MultipleMatches, InvalidInput, InternalError;
    Overlap: UNPROCESSABLE_ENTITY, CALL_FAILED, Refused, Never, OverlappingEdits, InvalidInput, InternalError;
    AlreadyApplied: CONFLICT, CALL_FAILED, Failed, Never, PatchApplyError, InvalidInput, InternalError;
    MalformedPatch: UNPROCESSABLE_ENTITY, CALL_FAILED, Refused, Never, PatchParseError, InvalidInput, InternalError;
    Stale: PRECONDITION_FAILED, CALL_FAILED, Stale, Never, StaleFile, Conflict, InternalError;
    BaseRequired: PRECONDITION_REQUIRED, CALL_FAILED, Stale, Never, StaleFile, Conflict, InternalError;
    Conflict: CONFLICT, CALL_FAILED, Stale, AfterOthers, StaleFile, Conflict, InternalError;
    NothingToDo: CONFLICT, CALL_FAILED, Failed, Never, CommandFailed, InvalidInput, InternalError;
    Expired: GONE, CALL_FAILED, Failed, Never, NotFound, TrashEntryExpired, InternalError;
    HistoryLost: GONE, CALL_FAILED, Stale, Never, CommandFailed, InvalidInput, InternalError;
    CorruptHistory: INTERNAL_SERVER_ERROR, INTERNAL_ERROR, Failed, Never, CommandFailed, InternalError, InternalError;
    TooLarge: PAYLOAD_TOO_LARGE, CALL_FAILED, Refused, Never, FileTooLarge, ResourceExhausted, InternalError;
    TooMany: CONFLICT, CALL_FAILED, Refused, Never, CommandFailed, ResourceExhausted, InternalError;
    QuotaExceeded: INSUFFICIENT_STORAGE, CALL_FAILED, Refused, Never, CommandFailed, ResourceExhausted, InternalError;
    RateLimited: TOO_MANY_REQUESTS, RATE_LIMITED, Refused, Soon, CommandFailed, RateLimited, InternalError;
    PolicyDenied: FORBIDDEN, POLICY_DENIED, Refused, Never, PermissionDenied, PolicyDenied, InternalError;
    ApprovalPending: FORBIDDEN, APPROVAL_PENDING, Refused, AfterApproval, PermissionDenied, ApprovalPending, InternalError;
    ApprovalDenied: FORBIDDEN, CALL_FAILED, Refused, Never, PermissionDenied, ApprovalRejected, InternalError;
    ApprovalStale: CONFLICT, APPROVAL_PENDING, Stale, AfterApproval, PermissionDenied, ApprovalPending, InternalError;
    NoSpace: INSUFFICIENT_STORAGE, INTERNAL_ERROR, Failed, Later, CommandFailed, DiskFull, InternalError;
    SystemDenied: INTERNAL_SERVER_ERROR, INTERNAL_ERROR, Failed, Never, PermissionDenied, PermissionDenied, InternalError;
    Busy: SERVICE_UNAVAILABLE, CALL_FAILED, Failed, Soon, CommandFailed, Conflict, InternalError;
    Deadline: GATEWAY_TIMEOUT, CALL_FAILED, Failed, Later, Timeout, Timeout, InternalError;
    Cancelled: SERVICE_UNAVAILABLE, CALL_FAILED, Failed, Later, CommandFailed, Cancelled, Cancelled;
    AuditUnavailable: SERVICE_UNAVAILABLE, INTERNAL_ERROR, Failed, AfterRepair, CommandFailed, InternalError, InternalError;
    Io: INTERNAL_SERVER_ERROR, INTERNAL_ERROR, Failed, Never, CommandFailed, InternalError, InternalError;
}
