//! The limits that apply to calls. A result that was shortened by a limit is marked as incomplete.

use std::time::Duration;

/// The maximum number of characters in one result of stead's own dialect; the rest follows on the next page.
pub const OUTCOME_PAGE_CHARS: usize = 40_000;
/// The maximum number of bytes that one `read` returns for an explicit byte range.
pub const READ_BYTES_MAX: u64 = 64 << 20;
/// The largest file that `read` returns as text, in bytes; a larger file can be read only by byte range.
pub const READ_WHOLE_BYTES_MAX: u64 = 64 << 20;
/// The largest file whose version `stat` computes, in bytes; computing it for larger files would be slow.
pub const STAT_VERSION_BYTES_MAX: u64 = 1 << 20;
/// The largest file, in bytes, that a host should read without starting another thread.
pub const INLINE_FILE_BYTES_MAX: u64 = 256 << 10;
/// The largest content of one `write` or `append` in bytes, and the largest file that these operations produce.
pub const WRITE_BYTES_MAX: u64 = 64 << 20;
/// The largest file whose lines `diff` compares, in bytes.
pub const DIFF_BYTES_MAX: u64 = 8 << 20;
/// The maximum number of lines of a diff in one result.
pub const DIFF_LINES_MAX: usize = 400;
/// The number of unchanged lines that a diff shows before and after a difference.
pub const DIFF_CONTEXT_LINES: usize = 3;
/// The maximum number of text edits in one call.
pub const EDITS_MAX: usize = 1_000;
/// The maximum number of older revisions in which `edit` searches for a quoted text that the file no longer contains.
pub const OLDER_REVISIONS_MAX: usize = 20;
/// The largest older revision that `edit` searches for a quoted text, in bytes.
pub const OLDER_REVISION_BYTES_MAX: u64 = 2 << 20;
/// The maximum number of file sections in one patch.
pub const PATCH_SECTIONS_MAX: usize = 1_000;
/// The maximum number of lines of a diff or a file that an error message quotes.
pub const ERROR_LINES_MAX: usize = 60;
/// The maximum number of places in a file that an error message lists.
pub const ERROR_LOCATIONS_MAX: usize = 20;
/// The maximum number of entries that are examined to suggest a similar path for a missing path.
pub const SUGGESTION_ENTRIES_MAX: usize = 2_000;
/// The maximum directory depth of one `list` call.
pub const LIST_DEPTH_MAX: usize = 32;
/// The maximum number of matches that one `find` call returns.
pub const FIND_MATCHES_MAX: usize = 1_000;
/// The default number of matches that one `find` call returns.
pub const FIND_MATCHES_DEFAULT: usize = 200;
/// The maximum number of names that `find` suggests when nothing matches.
pub const FIND_NEAREST_MAX: usize = 5;
/// The maximum number of hits that one `search` call returns.
pub const SEARCH_HITS_MAX: usize = 1_000;
/// The default number of hits that one `search` call returns.
pub const SEARCH_HITS_DEFAULT: usize = 100;
/// The maximum number of hits that `search` keeps for ranking; further hits are only counted.
pub const SEARCH_RANKED_HITS_MAX: usize = 2_000;
/// The default number of characters in one `search` result; the rest follows on the next page.
pub const SEARCH_BUDGET_CHARS_DEFAULT: usize = 8_000;
/// The default number of context lines around each `search` hit, which depends on the number of hits. Each pair is a
/// maximum number of hits and the number of context lines before and after each hit.
pub const SEARCH_AUTO_CONTEXT: &[(usize, usize)] = &[(1, 10), (3, 4)];
/// The maximum number of hits that `search` shows for a similar query if the original query has no hits.
pub const SEARCH_FALLBACK_HITS_MAX: usize = 30;
/// The maximum number of files that `search` suggests by name when nothing matches.
pub const SEARCH_SUGGESTED_FILES_MAX: usize = 5;
/// The maximum number of context lines before and after a `search` hit.
pub const SEARCH_CONTEXT_MAX: usize = 20;
/// The largest file that `search` loads into memory as a whole, in bytes; larger files are searched piece by piece.
pub const SEARCH_IN_MEMORY_BYTES_MAX: u64 = 4 << 20;
/// The largest file that `search` reads at all, in bytes; larger files are skipped.
pub const SEARCH_LARGE_BYTES_MAX: u64 = 4 << 30;
/// The maximum number of bytes that `search` examines in one line of a large file; the rest is skipped and reported.
pub const SEARCH_LINE_BYTES_MAX: usize = 16 << 20;
/// The maximum number of partially searched files that a `search` result names; further files are only counted.
pub const SEARCH_INCOMPLETE_NAMED_MAX: usize = 5;
/// The maximum number of characters of one line in a `search` result; longer lines are cut around the hit.
pub const SEARCH_LINE_CHARS_MAX: usize = 120;
/// The maximum size of a compiled `search` pattern in bytes.
pub const SEARCH_PATTERN_BYTES_MAX: usize = 8 << 20;
/// The largest compiled `search` pattern, in bytes, that counts as fast. With a slow pattern, `search` examines smaller
/// pieces of a text.
pub const SEARCH_LIGHT_REGEX_BYTES_MAX: usize = 256 << 10;
/// The maximum size in bytes of the lazy DFA cache of each search thread.
pub const SEARCH_DFA_BYTES_MAX: usize = 8 << 20;
/// The largest ignore file that a walk reads, in bytes.
pub const IGNORE_FILE_BYTES_MAX: u64 = 1 << 20;
/// The maximum number of lines of one ignore file that a walk uses.
pub const IGNORE_PATTERNS_MAX: usize = 10_000;
/// The maximum number of entries of a tree that one recursive operation processes.
pub const TREE_ENTRIES_MAX: u64 = 1_000_000;
/// The maximum number of bytes that one recursive copy writes.
pub const COPY_BYTES_MAX: u64 = 4 << 30;
/// The maximum number of file changes in one planned call.
pub const PLAN_CHANGES_MAX: usize = 100_000;
/// The maximum number of journal entries in one page of `history`.
pub const HISTORY_PAGE_ENTRIES: usize = 50;
/// The maximum number of changes of one journal entry that `history` shows.
pub const HISTORY_CHANGES_MAX: usize = 20;
/// The maximum number of journal entries that one call examines, including filtered ones, before it returns a cursor.
pub const ENTRIES_SCANNED_MAX: usize = 10_000;
/// The maximum number of events in one page of `changes`.
pub const CHANGES_PAGE_EVENTS: usize = 200;
/// The maximum number of bytes of text that one `changes` call compares to find the changed lines.
pub const CHANGES_DIFF_BYTES_MAX: u64 = 4 << 20;
/// The maximum number of changed line ranges in one `changes` event; the last range includes all further changed lines.
pub const CHANGES_RANGES_MAX: usize = 32;
/// The maximum number of paths that one result of `copy`, `undo` or `redo` names; further paths are only counted.
pub const REPORTED_PATHS_MAX: usize = 100;
/// The longest time that `changes` waits for an event, in milliseconds.
pub const CHANGES_WAIT_MS_MAX: u64 = 60_000;
/// The maximum number of file watches of one principal.
pub const WATCHES_PER_PRINCIPAL_MAX: usize = 2_000;
/// The time in milliseconds that a file watch stays active while nobody fetches its events.
pub const WATCH_IDLE_MS_MAX: i64 = 7 * 24 * 60 * 60 * 1000;
/// The maximum number of sessions to which the engine reports changes of files that they have read.
pub const TRACKED_SESSIONS_MAX: usize = 256;
/// The maximum number of files per session that the engine remembers as read, to report their changes.
pub const SESSION_TRACKED_FILES_MAX: usize = 500;
/// The maximum number of files that one result reports as changed since the session read them.
pub const STALE_NOTICES_MAX: usize = 20;
/// The longest duration of a lease in seconds.
pub const LEASE_SECONDS_MAX: u64 = 24 * 60 * 60;
/// The default duration of a lease in seconds.
pub const LEASE_SECONDS_DEFAULT: u64 = 15 * 60;
/// The maximum number of leases that one principal holds.
pub const LEASES_PER_PRINCIPAL_MAX: usize = 1_000;
/// The longest text of an alert or of a response to an alert, in characters.
pub const ALERT_CHARS_MAX: usize = 4_000;
/// The maximum number of alerts in one result.
pub const ALERTS_LISTED_MAX: usize = 200;
/// The maximum number of unanswered alerts of one principal.
pub const ALERTS_OPEN_MAX: usize = 100;
/// The maximum number of open sessions of one principal.
pub const SESSIONS_OPEN_MAX: usize = 1_000;
/// The time in milliseconds that ended sessions and answered alerts are kept.
pub const SESSION_RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// The maximum number of bytes of file content that the cache of last-seen files holds for all sessions together.
pub const SEEN_FILES_BYTES_MAX: u64 = 64 << 20;
/// The largest file whose content the cache of last-seen files holds, in bytes.
pub const SEEN_FILE_BYTES_MAX: u64 = 2 << 20;
/// The maximum number of files in the cache of last-seen files, for all sessions together.
pub const SEEN_FILES_MAX: usize = 20_000;
/// The maximum number of files in one `review`.
pub const REVIEW_FILES_MAX: usize = 200;
/// The maximum number of hunks of one file in a `review`.
pub const REVIEW_HUNKS_MAX: usize = 200;
/// The maximum number of changes of one file that `review` examines to find the author of each line. `review` gives the
/// author `outside` to lines that were written before the examined changes.
pub const REVIEW_BLAME_CHANGES_MAX: usize = 200;
/// The largest text of an open buffer, in bytes.
pub const BUFFER_BYTES_MAX: u64 = 8 << 20;
/// The maximum number of buffers and drafts of one principal.
pub const BUFFERS_PER_PRINCIPAL_MAX: usize = 500;
/// The maximum number of bytes in all buffers and drafts of one principal.
pub const BUFFERS_BYTES_MAX: u64 = 128 << 20;
/// The maximum number of open buffers in one result.
pub const BUFFERS_LISTED_MAX: usize = 200;
/// The maximum number of drafts that are listed when an editor opens a file.
pub const DRAFTS_SHOWN_MAX: usize = 10;
/// The maximum number of files and directories that a call keeps open to look at them again.
pub const OPEN_ENTRIES_MAX: usize = 16;
/// The maximum number of times that a call is planned if its files keep changing before the commit.
pub const REPLAN_ATTEMPTS_MAX: usize = 8;
/// The time after which a call fails, unless the caller sets another deadline.
pub const DEFAULT_CALL_DEADLINE: Duration = Duration::from_secs(60);
/// The longest argument that the journal records as text, in bytes; of a longer argument it records only the size.
pub const RECORDED_ARGUMENT_CHARS_MAX: usize = 512;
/// The longest idempotency key of a call, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 200;
/// The default time in milliseconds that files removed by users stay in the trash.
pub const USER_TRASH_RETENTION_MS: i64 = 168 * 60 * 60 * 1000;
/// The default time in milliseconds that files removed by agents stay in the trash.
pub const AGENT_TRASH_RETENTION_MS: i64 = 24 * 60 * 60 * 1000;
/// The time in milliseconds during which an approval request can be answered and its approval used.
pub const APPROVAL_VALID_MS: i64 = 24 * 60 * 60 * 1000;
/// The maximum number of pending approval requests of one principal.
pub const APPROVALS_PENDING_MAX: usize = 100;
/// The maximum number of approvals in one result.
pub const APPROVALS_LISTED_MAX: usize = 100;
/// The maximum number of earlier approvals of a call that the engine compares with the call's current plan.
pub const APPROVALS_PER_CALL_MAX: usize = 20;
/// The maximum number of planned changes in an approval preview; further changes are only counted.
pub const APPROVAL_CHANGES_SHOWN_MAX: usize = 200;
/// The maximum number of files of a removed directory in an approval preview.
pub const APPROVAL_FILES_SHOWN_MAX: usize = 100;
/// The maximum number of diff lines in an approval preview.
pub const APPROVAL_DIFF_LINES_MAX: usize = 1_000;
/// The largest file for which an approval preview contains a diff, in bytes.
pub const APPROVAL_DIFF_BYTES_MAX: u64 = 1 << 20;
/// The interval at which a call that waits for approval looks for the answer.
pub const APPROVAL_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The longest time that a call waits for approval, in milliseconds.
pub const APPROVAL_WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// The longest reason in the answer to an approval request, in characters.
pub const APPROVAL_REASON_CHARS_MAX: usize = 500;

/// The maximum number of bytes in the name of a principal.
pub const PRINCIPAL_BYTES_MAX: usize = 128;
/// The maximum number of bytes in a policy.
pub const POLICY_BYTES_MAX: u64 = 1 << 20;
/// The maximum number of rules in a policy.
pub const POLICY_RULES_MAX: usize = 1_000;
/// The maximum number of changed line ranges in an edit's outcome; the last range includes all further changed lines.
pub const EDIT_RANGES_MAX: usize = 32;
/// The longest time that a search spends on one line; slower lines are skipped and reported.
pub const SEARCH_LINE_TIME_MAX: Duration = Duration::from_secs(5);
/// The length in bytes from which a line counts as very long for the search index. A search always reads a file with a
/// very long line, because the result must report skipped parts of the line.
pub const INDEXED_LINE_BYTES_MAX: usize = 16 << 10;
/// The number of journal entries that `log.show` returns by default.
pub const LOG_ENTRIES_DEFAULT: u64 = 50;
/// The number of journal entries that one call of `log.show` returns at most.
pub const LOG_ENTRIES_PER_PAGE: usize = 500;
