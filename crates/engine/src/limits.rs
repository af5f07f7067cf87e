//! Every number that bounds a call, in one place. A limit that is reached is always visible in the answer.

use std::time::Duration;

/// Characters of text in one native answer; the rest follows by the named next call.
pub const PAGE_CHARS: usize = 40_000;
/// Most bytes one `read` returns when a byte range is given explicitly.
pub const READ_BYTES_MAX: u64 = 64 << 20;
/// Largest file that `read` accepts as text without a byte range; beyond it a range must be given.
pub const READ_WHOLE_BYTES_MAX: u64 = 64 << 20;
/// Largest file whose version `stat` tells: it must stay cheap.
pub const STAT_VERSION_BYTES_MAX: u64 = 1 << 20;
/// Largest file that is looked at on the thread that asked.
pub const BRIEF_BYTES_MAX: u64 = 256 << 10;
/// Largest content one `write` or `append` takes, and the largest file they leave behind.
pub const WRITE_BYTES_MAX: u64 = 64 << 20;
/// Largest file whose lines `diff` compares.
pub const DIFF_BYTES_MAX: u64 = 8 << 20;
/// Most lines of diff in one answer.
pub const DIFF_LINES_MAX: usize = 400;
/// Lines of context around a difference.
pub const DIFF_CONTEXT_LINES: usize = 3;
/// Most edits in one call.
pub const EDITS_MAX: usize = 1_000;
/// Most older revisions that are searched for a quote that is not there.
pub const OLDER_REVISIONS_MAX: usize = 20;
/// Largest older revision that is searched for a quote.
pub const OLDER_BYTES_MAX: u64 = 2 << 20;
/// Most files one patch names.
pub const PATCH_SECTIONS_MAX: usize = 1_000;
/// Most lines of diff, or of a file, that a failure shows.
pub const FAILURE_LINES_MAX: usize = 60;
/// Most places that a failure lists.
pub const FAILURE_PLACES_MAX: usize = 20;
/// Entries looked at to find the path that was meant.
pub const CLOSEST_ENTRIES_MAX: usize = 2_000;
/// Deepest `list`.
pub const LIST_DEPTH_MAX: usize = 32;
/// Most matches one `find` answers.
pub const FIND_MATCHES_MAX: usize = 1_000;
/// Matches one `find` answers when nothing is said.
pub const FIND_MATCHES_DEFAULT: usize = 200;
/// Most names that `find` suggests when nothing matches.
pub const FIND_NEAREST_MAX: usize = 5;
/// Most hits one `search` answers.
pub const SEARCH_HITS_MAX: usize = 1_000;
/// Hits one `search` answers when nothing is said.
pub const SEARCH_HITS_DEFAULT: usize = 100;
/// Hits that `search` keeps to find the best among them; all are counted.
pub const SEARCH_KEPT_MAX: usize = 2_000;
/// Characters of text one `search` answers when nothing is said; the rest follows by the named next call.
pub const SEARCH_BUDGET_CHARS_DEFAULT: usize = 8_000;
/// Hits that are shown with the lines around them unasked: at most so many, each with so many lines on both sides.
pub const SEARCH_FEW: &[(usize, usize)] = &[(1, 10), (3, 4)];
/// Hits of another reading that are shown when nothing was found.
pub const SEARCH_NEAREST_MAX: usize = 30;
/// Files that are named when nothing was found but their names are alike.
pub const SEARCH_NAMES_MAX: usize = 5;
/// Most lines of context around a hit.
pub const SEARCH_CONTEXT_MAX: usize = 20;
/// Largest file that `search` holds whole; a larger one is read piece by piece.
pub const SEARCH_FILE_BYTES_MAX: u64 = 4 << 20;
/// Largest file that `search` looks into at all.
pub const SEARCH_LARGE_BYTES_MAX: u64 = 4 << 30;
/// Bytes of one line of a large file that `search` looks into; the rest of the line is passed over, and said.
pub const SEARCH_LINE_BYTES_MAX: usize = 16 << 20;
/// Files that `search` did not look into as a whole and names; all are counted.
pub const SEARCH_LEFT_MAX: usize = 5;
/// Characters of one line that `search` shows; a longer one is cut around its hit.
pub const SEARCH_LINE_CHARS_MAX: usize = 120;
/// Largest compiled pattern.
pub const SEARCH_PATTERN_BYTES_MAX: usize = 8 << 20;
/// Largest compiled pattern that counts as light; with a heavier one, less is looked at in one go.
pub const SEARCH_LIGHT_BYTES_MAX: usize = 256 << 10;
/// Memory in which one thread keeps what a pattern has shown about a text.
pub const SEARCH_MEMO_BYTES_MAX: usize = 8 << 20;
/// Largest file of ignore patterns that a walk obeys.
pub const IGNORE_FILE_BYTES_MAX: u64 = 1 << 20;
/// Most lines of one file of ignore patterns.
pub const IGNORE_PATTERNS_MAX: usize = 10_000;
/// Most entries a recursive operation touches in one call.
pub const TREE_ENTRIES_MAX: u64 = 1_000_000;
/// Most bytes a recursive copy makes in one call.
pub const COPY_BYTES_MAX: u64 = 4 << 30;
/// Most changes in one plan.
pub const PLAN_CHANGES_MAX: usize = 100_000;
/// Entries in one page of `history`.
pub const HISTORY_PAGE: usize = 50;
/// Changes of one entry that `history` shows.
pub const HISTORY_CHANGES_MAX: usize = 20;
/// Entries one call looks through for those its caller may see, before it answers with a cursor.
pub const ENTRIES_SCANNED_MAX: usize = 10_000;
/// Events in one page of `changes`.
pub const CHANGES_PAGE: usize = 200;
/// Bytes of old and new text one `changes` compares to tell line ranges; beyond it events come without them.
pub const CHANGES_COMPARED_BYTES_MAX: u64 = 4 << 20;
/// Line ranges in one event; the last one covers the rest.
pub const CHANGES_RANGES_MAX: usize = 32;
/// Paths that one answer of `copy`, `undo` or `redo` names; the rest is counted.
pub const REPORTED_PATHS_MAX: usize = 100;
/// Longest wait of `changes`.
pub const CHANGES_WAIT_MS_MAX: u64 = 60_000;
/// Most watches one principal may have.
pub const WATCHES_PER_PRINCIPAL_MAX: usize = 2_000;
/// How long a watch lasts of which nobody asks for events.
pub const WATCH_UNHEARD_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Sessions for which it is remembered what they read.
pub const REMINDED_SESSIONS_MAX: usize = 256;
/// Files for which it is remembered, for each session, which version it read.
pub const REMINDED_FILES_MAX: usize = 500;
/// Files of which one answer says that they changed since they were read.
pub const REMINDED_AT_ONCE_MAX: usize = 20;
/// Longest lease.
pub const LEASE_SECONDS_MAX: u64 = 24 * 60 * 60;
/// Lease length when none is given.
pub const LEASE_SECONDS_DEFAULT: u64 = 15 * 60;
/// Most leases one principal may hold.
pub const LEASES_PER_PRINCIPAL_MAX: usize = 1_000;
/// Longest alert, and longest answer to one.
pub const ALERT_CHARS_MAX: usize = 4_000;
/// Alerts in one answer.
pub const ALERTS_LISTED_MAX: usize = 200;
/// Most alerts of one principal that nobody has answered.
pub const ALERTS_OPEN_MAX: usize = 100;
/// Most sessions of one principal that have not ended.
pub const SESSIONS_OPEN_MAX: usize = 1_000;
/// How long ended sessions and answered alerts are kept.
pub const DESK_KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// Bytes of texts that are remembered as last seen, over all sessions.
pub const RECALLED_BYTES_MAX: u64 = 64 << 20;
/// Largest text that is remembered; of a larger one only the version is.
pub const RECALLED_FILE_BYTES_MAX: u64 = 2 << 20;
/// Files that are remembered as last seen, over all sessions.
pub const RECALLED_FILES_MAX: usize = 20_000;
/// Files that one `review` shows.
pub const REVIEW_FILES_MAX: usize = 200;
/// Hunks of one file that `review` shows.
pub const REVIEW_HUNKS_MAX: usize = 200;
/// Changes of one file that `review` looks back on to tell who wrote a line; older ones count as there from the start.
pub const REVIEW_TURNS_MAX: usize = 200;
/// Largest text of an open buffer.
pub const BUFFER_BYTES_MAX: u64 = 8 << 20;
/// Most buffers and drafts of one principal.
pub const BUFFERS_PER_PRINCIPAL_MAX: usize = 500;
/// Bytes of all buffers and drafts of one principal.
pub const BUFFERS_BYTES_MAX: u64 = 128 << 20;
/// Buffers in one answer.
pub const BUFFERS_LISTED_MAX: usize = 200;
/// Drafts that opening a file tells of.
pub const DRAFTS_SHOWN_MAX: usize = 10;
/// How often a place is looked at again when a link turns up where every link was followed.
pub const LOOKS_MAX: usize = 16;
/// How often a plan is made again when the world moves between planning and commit.
pub const REPLAN_MAX: usize = 8;
/// Time one call may take when the caller gives no deadline.
pub const CALL_DEADLINE: Duration = Duration::from_secs(60);
/// Longest argument text kept in the journal.
pub const RECORDED_ARGUMENT_CHARS: usize = 512;
/// Longest idempotency key.
pub const KEY_BYTES_MAX: usize = 200;
/// How long removed things of a user stay recoverable.
pub const TRASH_USER_MS: i64 = 168 * 60 * 60 * 1000;
/// How long removed things of an agent stay recoverable.
pub const TRASH_AGENT_MS: i64 = 24 * 60 * 60 * 1000;
/// How long a question to a person stands.
pub const APPROVAL_LASTS_MS: i64 = 24 * 60 * 60 * 1000;
/// Most questions of one principal that wait for an answer.
pub const APPROVALS_PENDING_MAX: usize = 100;
/// Most approvals one answer lists.
pub const APPROVALS_PAGE: usize = 100;
/// Approvals of one call that are looked through for one that fits.
pub const APPROVALS_PER_CALL_MAX: usize = 20;
/// Changes of a plan that a question shows; the rest is counted.
pub const APPROVAL_CHANGES_SHOWN: usize = 200;
/// Files of a removed directory that are shown to whoever is asked.
pub const APPROVAL_FILES_SHOWN: usize = 100;
/// Lines of differences that a question shows in all.
pub const APPROVAL_DIFF_LINES_MAX: usize = 1_000;
/// Largest file whose difference a question shows.
pub const APPROVAL_DIFF_BYTES_MAX: u64 = 1 << 20;
/// How often a waiting call looks for its answer, besides when the journal grows.
pub const APPROVAL_LOOK_EVERY: Duration = Duration::from_millis(250);
/// Longest time a call may wait for a person.
pub const APPROVAL_HOLD_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// Longest reason that an answer carries.
pub const APPROVAL_REASON_CHARS_MAX: usize = 500;
