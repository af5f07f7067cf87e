//! Every limit of a call, in one place. A result always says when a limit was reached.

use std::time::Duration;

/// Characters of text in one native result; the rest follows in the next page.
pub const OUTCOME_PAGE_CHARS: usize = 40_000;
/// Most bytes one `read` returns when a byte range is given explicitly.
pub const READ_BYTES_MAX: u64 = 64 << 20;
/// Largest file that `read` accepts as text without a byte range; beyond it a range must be given.
pub const READ_WHOLE_BYTES_MAX: u64 = 64 << 20;
/// Largest file whose version `stat` computes, to keep it cheap.
pub const STAT_VERSION_BYTES_MAX: u64 = 1 << 20;
/// Largest file that is read on the calling thread.
pub const INLINE_FILE_BYTES_MAX: u64 = 256 << 10;
/// Largest content of one `write` or `append`, and the largest resulting file.
pub const WRITE_BYTES_MAX: u64 = 64 << 20;
/// Largest file whose lines `diff` compares.
pub const DIFF_BYTES_MAX: u64 = 8 << 20;
/// Most lines of diff in one result.
pub const DIFF_LINES_MAX: usize = 400;
/// Lines of context around a difference.
pub const DIFF_CONTEXT_LINES: usize = 3;
/// Most edits in one call.
pub const EDITS_MAX: usize = 1_000;
/// Most older revisions searched for a quoted text that is missing.
pub const OLDER_REVISIONS_MAX: usize = 20;
/// Largest older revision searched for a quoted text.
pub const OLDER_REVISION_BYTES_MAX: u64 = 2 << 20;
/// Most files in one patch.
pub const PATCH_SECTIONS_MAX: usize = 1_000;
/// Most lines of a diff or a file in an error.
pub const ERROR_LINES_MAX: usize = 60;
/// Most locations in an error.
pub const ERROR_LOCATIONS_MAX: usize = 20;
/// Entries examined to suggest a path.
pub const SUGGESTION_ENTRIES_MAX: usize = 2_000;
/// Largest depth of `list`.
pub const LIST_DEPTH_MAX: usize = 32;
/// Most matches of one `find`.
pub const FIND_MATCHES_MAX: usize = 1_000;
/// Default number of matches of one `find`.
pub const FIND_MATCHES_DEFAULT: usize = 200;
/// Most names that `find` suggests when nothing matches.
pub const FIND_NEAREST_MAX: usize = 5;
/// Most hits of one `search`.
pub const SEARCH_HITS_MAX: usize = 1_000;
/// Default number of hits of one `search`.
pub const SEARCH_HITS_DEFAULT: usize = 100;
/// Hits that `search` keeps for ranking; all are counted.
pub const SEARCH_RANKED_HITS_MAX: usize = 2_000;
/// Default characters of text in one `search`; the rest follows in the next page.
pub const SEARCH_BUDGET_CHARS_DEFAULT: usize = 8_000;
/// Context lines added without request: up to this many hits, each with this many lines on both sides.
pub const SEARCH_AUTO_CONTEXT: &[(usize, usize)] = &[(1, 10), (3, 4)];
/// Hits of an alternative query shown when the original query has none.
pub const SEARCH_FALLBACK_HITS_MAX: usize = 30;
/// Files suggested by name when nothing matches.
pub const SEARCH_SUGGESTED_FILES_MAX: usize = 5;
/// Most lines of context around a hit.
pub const SEARCH_CONTEXT_MAX: usize = 20;
/// Largest file that `search` loads whole; larger files are read in pieces.
pub const SEARCH_IN_MEMORY_BYTES_MAX: u64 = 4 << 20;
/// Largest file that `search` reads at all.
pub const SEARCH_LARGE_BYTES_MAX: u64 = 4 << 30;
/// Bytes of one line of a large file that `search` examines; the rest is skipped and reported.
pub const SEARCH_LINE_BYTES_MAX: usize = 16 << 20;
/// Partially searched files that are named; all are counted.
pub const SEARCH_INCOMPLETE_NAMED_MAX: usize = 5;
/// Characters of one line in a `search` result; a longer line is cut around its hit.
pub const SEARCH_LINE_CHARS_MAX: usize = 120;
/// Largest compiled pattern.
pub const SEARCH_PATTERN_BYTES_MAX: usize = 8 << 20;
/// Largest compiled pattern that counts as light; heavier patterns process less text at once.
pub const SEARCH_LIGHT_REGEX_BYTES_MAX: usize = 256 << 10;
/// Lazy DFA cache of one thread.
pub const SEARCH_DFA_BYTES_MAX: usize = 8 << 20;
/// Largest ignore file that a walk reads.
pub const IGNORE_FILE_BYTES_MAX: u64 = 1 << 20;
/// Most lines of one ignore file.
pub const IGNORE_PATTERNS_MAX: usize = 10_000;
/// Most entries of a recursive operation.
pub const TREE_ENTRIES_MAX: u64 = 1_000_000;
/// Most bytes of a recursive copy.
pub const COPY_BYTES_MAX: u64 = 4 << 30;
/// Most changes in one plan.
pub const PLAN_CHANGES_MAX: usize = 100_000;
/// Entries in one page of `history`.
pub const HISTORY_PAGE_ENTRIES: usize = 50;
/// Changes of one entry shown by `history`.
pub const HISTORY_CHANGES_MAX: usize = 20;
/// Entries that one call scans for visible ones before it returns a cursor.
pub const ENTRIES_SCANNED_MAX: usize = 10_000;
/// Events in one page of `changes`.
pub const CHANGES_PAGE_EVENTS: usize = 200;
/// Bytes of old and new text that one `changes` compares for line ranges; later events have none.
pub const CHANGES_DIFF_BYTES_MAX: u64 = 4 << 20;
/// Line ranges in one event; the last one covers the rest.
pub const CHANGES_RANGES_MAX: usize = 32;
/// Paths named in one result of `copy`, `undo` or `redo`; the rest are counted.
pub const REPORTED_PATHS_MAX: usize = 100;
/// Longest wait of `changes`.
pub const CHANGES_WAIT_MS_MAX: u64 = 60_000;
/// Most watches of one principal.
pub const WATCHES_PER_PRINCIPAL_MAX: usize = 2_000;
/// Lifetime of a watch whose events nobody fetches.
pub const WATCH_IDLE_MS_MAX: i64 = 7 * 24 * 60 * 60 * 1000;
/// Sessions whose reads are tracked.
pub const TRACKED_SESSIONS_MAX: usize = 256;
/// Files tracked per session.
pub const SESSION_TRACKED_FILES_MAX: usize = 500;
/// Stale files reported in one result.
pub const STALE_NOTICES_MAX: usize = 20;
/// Longest lease.
pub const LEASE_SECONDS_MAX: u64 = 24 * 60 * 60;
/// Lease length when none is given.
pub const LEASE_SECONDS_DEFAULT: u64 = 15 * 60;
/// Most leases of one principal.
pub const LEASES_PER_PRINCIPAL_MAX: usize = 1_000;
/// Longest alert, and longest response to one.
pub const ALERT_CHARS_MAX: usize = 4_000;
/// Alerts in one result.
pub const ALERTS_LISTED_MAX: usize = 200;
/// Most unanswered alerts of one principal.
pub const ALERTS_OPEN_MAX: usize = 100;
/// Most open sessions of one principal.
pub const SESSIONS_OPEN_MAX: usize = 1_000;
/// Retention of ended sessions and answered alerts.
pub const SESSION_RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// Bytes of last-seen file contents, over all sessions.
pub const SEEN_FILES_BYTES_MAX: u64 = 64 << 20;
/// Largest last-seen content that is cached; for larger files only the version is.
pub const SEEN_FILE_BYTES_MAX: u64 = 2 << 20;
/// Last-seen files, over all sessions.
pub const SEEN_FILES_MAX: usize = 20_000;
/// Files in one `review`.
pub const REVIEW_FILES_MAX: usize = 200;
/// Hunks of one file in a `review`.
pub const REVIEW_HUNKS_MAX: usize = 200;
/// Changes of one file that `review` examines for blame; older lines count as original.
pub const REVIEW_BLAME_CHANGES_MAX: usize = 200;
/// Largest text of an open buffer.
pub const BUFFER_BYTES_MAX: u64 = 8 << 20;
/// Most buffers and drafts of one principal.
pub const BUFFERS_PER_PRINCIPAL_MAX: usize = 500;
/// Bytes in all buffers and drafts of one principal.
pub const BUFFERS_BYTES_MAX: u64 = 128 << 20;
/// Buffers in one result.
pub const BUFFERS_LISTED_MAX: usize = 200;
/// Drafts listed when a file is opened.
pub const DRAFTS_SHOWN_MAX: usize = 10;
/// Attempts to resolve a path whose symlinks change meanwhile.
pub const LOCATE_RETRIES_MAX: usize = 16;
/// Attempts to plan when files change between planning and commit.
pub const REPLAN_ATTEMPTS_MAX: usize = 8;
/// Default deadline of a call.
pub const DEFAULT_CALL_DEADLINE: Duration = Duration::from_secs(60);
/// Longest argument text in the journal.
pub const RECORDED_ARGUMENT_CHARS_MAX: usize = 512;
/// Longest idempotency key.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 200;
/// Trash retention for users.
pub const USER_TRASH_RETENTION_MS: i64 = 168 * 60 * 60 * 1000;
/// Trash retention for agents.
pub const AGENT_TRASH_RETENTION_MS: i64 = 24 * 60 * 60 * 1000;
/// Validity of an approval request.
pub const APPROVAL_VALID_MS: i64 = 24 * 60 * 60 * 1000;
/// Most pending approval requests of one principal.
pub const APPROVALS_PENDING_MAX: usize = 100;
/// Approvals in one result.
pub const APPROVALS_LISTED_MAX: usize = 100;
/// Approvals of one call examined for a match.
pub const APPROVALS_PER_CALL_MAX: usize = 20;
/// Changes of a plan in an approval preview; the rest are counted.
pub const APPROVAL_CHANGES_SHOWN_MAX: usize = 200;
/// Files of a removed directory in an approval preview.
pub const APPROVAL_FILES_SHOWN_MAX: usize = 100;
/// Diff lines in an approval preview.
pub const APPROVAL_DIFF_LINES_MAX: usize = 1_000;
/// Largest file with a diff in an approval preview.
pub const APPROVAL_DIFF_BYTES_MAX: u64 = 1 << 20;
/// Interval at which a waiting call polls for its answer, besides new journal entries.
pub const APPROVAL_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Longest wait for an approval.
pub const APPROVAL_WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// Longest reason of an approval answer.
pub const APPROVAL_REASON_CHARS_MAX: usize = 500;
