//! The limits of calls. If a limit shortens a result, the result says that it is incomplete.

use std::time::Duration;

/// Most characters of text in one result of stead's own dialect; the rest follows in the next page.
pub const OUTCOME_PAGE_CHARS: usize = 40_000;
/// Most bytes that one `read` returns for an explicit byte range.
pub const READ_BYTES_MAX: u64 = 64 << 20;
/// Largest file that `read` returns as text without a byte range. To read a larger file, the caller must give a byte
/// range.
pub const READ_WHOLE_BYTES_MAX: u64 = 64 << 20;
/// Largest file whose version `stat` computes. For a larger file `stat` returns no version, because `stat` must be
/// fast.
pub const STAT_VERSION_BYTES_MAX: u64 = 1 << 20;
/// Largest file that a host should read on the current thread. For a larger file the host should use another thread.
pub const INLINE_FILE_BYTES_MAX: u64 = 256 << 10;
/// Largest content of one `write` or `append`, and the largest file that these operations may produce.
pub const WRITE_BYTES_MAX: u64 = 64 << 20;
/// Largest file whose lines `diff` compares.
pub const DIFF_BYTES_MAX: u64 = 8 << 20;
/// Most diff lines in one result.
pub const DIFF_LINES_MAX: usize = 400;
/// Unchanged lines shown before and after a difference.
pub const DIFF_CONTEXT_LINES: usize = 3;
/// Most edits in one call.
pub const EDITS_MAX: usize = 1_000;
/// Most older revisions that `edit` searches for a quoted text that the current version lacks.
pub const OLDER_REVISIONS_MAX: usize = 20;
/// Largest older revision that `edit` searches for a quoted text.
pub const OLDER_REVISION_BYTES_MAX: u64 = 2 << 20;
/// Most file sections in one patch.
pub const PATCH_SECTIONS_MAX: usize = 1_000;
/// Most lines of a diff or a file that an error quotes.
pub const ERROR_LINES_MAX: usize = 60;
/// Most file locations that an error lists.
pub const ERROR_LOCATIONS_MAX: usize = 20;
/// Most entries examined to suggest a similar path when a path does not exist.
pub const SUGGESTION_ENTRIES_MAX: usize = 2_000;
/// Largest directory depth of one `list`.
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
/// Most hits that `search` keeps for ranking; further hits are only counted.
pub const SEARCH_RANKED_HITS_MAX: usize = 2_000;
/// Default number of characters in one `search` result; the rest follows in the next page.
pub const SEARCH_BUDGET_CHARS_DEFAULT: usize = 8_000;
/// Context lines that `search` adds if the call does not request a number of context lines. Each pair is a number of
/// hits and a number of lines: a result with at most that many hits gets that many lines before and after each hit.
pub const SEARCH_AUTO_CONTEXT: &[(usize, usize)] = &[(1, 10), (3, 4)];
/// Most hits that `search` shows for an alternative query if the original query has no hits.
pub const SEARCH_FALLBACK_HITS_MAX: usize = 30;
/// Most files that `search` suggests by name when nothing matches.
pub const SEARCH_SUGGESTED_FILES_MAX: usize = 5;
/// Most lines of context before and after a hit.
pub const SEARCH_CONTEXT_MAX: usize = 20;
/// Largest file that `search` loads into memory as a whole. Larger files are read in pieces.
pub const SEARCH_IN_MEMORY_BYTES_MAX: u64 = 4 << 20;
/// Largest file that `search` reads at all.
pub const SEARCH_LARGE_BYTES_MAX: u64 = 4 << 30;
/// Most bytes that `search` examines in one line of a large file. The rest of the line is skipped, and the result
/// reports the skipped part.
pub const SEARCH_LINE_BYTES_MAX: usize = 16 << 20;
/// Most files that a `search` result names as partially searched. Further such files are only counted.
pub const SEARCH_INCOMPLETE_NAMED_MAX: usize = 5;
/// Most characters of one line in a `search` result. A longer line is shortened to the part around its hit.
pub const SEARCH_LINE_CHARS_MAX: usize = 120;
/// Largest size of a compiled `search` pattern.
pub const SEARCH_PATTERN_BYTES_MAX: usize = 8 << 20;
/// Largest compiled pattern that `search` treats as fast. If the compiled pattern is larger, `search` matches it with
/// smaller pieces of text.
pub const SEARCH_LIGHT_REGEX_BYTES_MAX: usize = 256 << 10;
/// Size of the lazy DFA cache that one search thread uses.
pub const SEARCH_DFA_BYTES_MAX: usize = 8 << 20;
/// Largest ignore file that a walk reads.
pub const IGNORE_FILE_BYTES_MAX: u64 = 1 << 20;
/// Most lines of one ignore file that a walk uses.
pub const IGNORE_PATTERNS_MAX: usize = 10_000;
/// Most entries of a tree that one recursive operation processes.
pub const TREE_ENTRIES_MAX: u64 = 1_000_000;
/// Most bytes that one recursive copy writes.
pub const COPY_BYTES_MAX: u64 = 4 << 30;
/// Most changes in one plan.
pub const PLAN_CHANGES_MAX: usize = 100_000;
/// Most entries in one page of `history`.
pub const HISTORY_PAGE_ENTRIES: usize = 50;
/// Most changes of one entry that `history` shows.
pub const HISTORY_CHANGES_MAX: usize = 20;
/// Most journal entries that one call examines before it returns a cursor. Entries that the call filters out count as
/// examined.
pub const ENTRIES_SCANNED_MAX: usize = 10_000;
/// Most events in one page of `changes`.
pub const CHANGES_PAGE_EVENTS: usize = 200;
/// Most bytes of old and new text that one `changes` call compares. Events beyond this limit have no line ranges.
pub const CHANGES_DIFF_BYTES_MAX: u64 = 4 << 20;
/// Most line ranges in one event; the last range covers all further differences.
pub const CHANGES_RANGES_MAX: usize = 32;
/// Most paths that one result of `copy`, `undo` or `redo` names; further paths are only counted.
pub const REPORTED_PATHS_MAX: usize = 100;
/// Longest time that `changes` waits for an event.
pub const CHANGES_WAIT_MS_MAX: u64 = 60_000;
/// Most watches of one principal.
pub const WATCHES_PER_PRINCIPAL_MAX: usize = 2_000;
/// If the events of a watch are not fetched for this time, the watch ends.
pub const WATCH_IDLE_MS_MAX: i64 = 7 * 24 * 60 * 60 * 1000;
/// Most sessions for which the engine tracks files that changed since they were read.
pub const TRACKED_SESSIONS_MAX: usize = 256;
/// Most files of one session for which the engine tracks changes.
pub const SESSION_TRACKED_FILES_MAX: usize = 500;
/// Most changed files that one result reports as stale.
pub const STALE_NOTICES_MAX: usize = 20;
/// Longest duration of a lease.
pub const LEASE_SECONDS_MAX: u64 = 24 * 60 * 60;
/// Duration of a lease if the call gives none.
pub const LEASE_SECONDS_DEFAULT: u64 = 15 * 60;
/// Most leases of one principal.
pub const LEASES_PER_PRINCIPAL_MAX: usize = 1_000;
/// Longest text of an alert or of a response to an alert.
pub const ALERT_CHARS_MAX: usize = 4_000;
/// Most alerts in one result.
pub const ALERTS_LISTED_MAX: usize = 200;
/// Most unanswered alerts of one principal.
pub const ALERTS_OPEN_MAX: usize = 100;
/// Most open sessions of one principal.
pub const SESSIONS_OPEN_MAX: usize = 1_000;
/// How long ended sessions and answered alerts are kept.
pub const SESSION_RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// Most bytes of file content that the cache of last-seen files holds for all sessions together.
pub const SEEN_FILES_BYTES_MAX: u64 = 64 << 20;
/// Largest file whose content the cache of last-seen files holds. For a larger file the cache holds only the version.
pub const SEEN_FILE_BYTES_MAX: u64 = 2 << 20;
/// Most files in the cache of last-seen files, for all sessions together.
pub const SEEN_FILES_MAX: usize = 20_000;
/// Most files in one `review`.
pub const REVIEW_FILES_MAX: usize = 200;
/// Most hunks of one file in a `review`.
pub const REVIEW_HUNKS_MAX: usize = 200;
/// Most changes of one file that `review` examines to attribute the lines of the file. Lines from earlier changes count
/// as original lines.
pub const REVIEW_BLAME_CHANGES_MAX: usize = 200;
/// Largest text of an open buffer.
pub const BUFFER_BYTES_MAX: u64 = 8 << 20;
/// Most buffers and drafts of one principal.
pub const BUFFERS_PER_PRINCIPAL_MAX: usize = 500;
/// Most bytes in all buffers and drafts of one principal.
pub const BUFFERS_BYTES_MAX: u64 = 128 << 20;
/// Most buffers in one result.
pub const BUFFERS_LISTED_MAX: usize = 200;
/// Most drafts listed when an editor opens a file.
pub const DRAFTS_SHOWN_MAX: usize = 10;
/// Most attempts to resolve a path whose symlinks keep changing.
pub const LOCATE_RETRIES_MAX: usize = 16;
/// Most attempts to plan a call whose files keep changing between planning and commit.
pub const REPLAN_ATTEMPTS_MAX: usize = 8;
/// Default deadline of a call.
pub const DEFAULT_CALL_DEADLINE: Duration = Duration::from_secs(60);
/// Longest argument that the journal records as text. For a longer argument the journal records only the size.
pub const RECORDED_ARGUMENT_CHARS_MAX: usize = 512;
/// Longest idempotency key.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 200;
/// How long files that users remove stay in the trash by default.
pub const USER_TRASH_RETENTION_MS: i64 = 168 * 60 * 60 * 1000;
/// How long files that agents remove stay in the trash by default.
pub const AGENT_TRASH_RETENTION_MS: i64 = 24 * 60 * 60 * 1000;
/// How long an approval request can be answered and used.
pub const APPROVAL_VALID_MS: i64 = 24 * 60 * 60 * 1000;
/// Most pending approval requests of one principal.
pub const APPROVALS_PENDING_MAX: usize = 100;
/// Most approvals in one result.
pub const APPROVALS_LISTED_MAX: usize = 100;
/// Most earlier approvals of a call that are compared with the plan of the call.
pub const APPROVALS_PER_CALL_MAX: usize = 20;
/// Most changes of a plan in an approval preview; further changes are only counted.
pub const APPROVAL_CHANGES_SHOWN_MAX: usize = 200;
/// Most files of a removed directory in an approval preview.
pub const APPROVAL_FILES_SHOWN_MAX: usize = 100;
/// Most diff lines in an approval preview.
pub const APPROVAL_DIFF_LINES_MAX: usize = 1_000;
/// Largest file for which an approval preview contains a diff.
pub const APPROVAL_DIFF_BYTES_MAX: u64 = 1 << 20;
/// A call that waits for approval looks for the answer at this interval, and whenever the journal has a new entry.
pub const APPROVAL_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Longest time that a call waits for approval.
pub const APPROVAL_WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// Longest reason in the answer to an approval request.
pub const APPROVAL_REASON_CHARS_MAX: usize = 500;
