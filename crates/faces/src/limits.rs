//! Every number that bounds a face, in one place.

use std::time::Duration;

/// Longest message. The largest content one write takes fits in base64, with room for the rest of the message.
pub const MESSAGE_BYTES_MAX: usize = 96 << 20;
/// Room kept for lines between messages; what a larger message needed is given back.
pub const LINE_BUFFER_BYTES_KEPT: usize = 1 << 20;
/// Bytes asked of the input at once.
pub const READ_CHUNK_BYTES: usize = 64 << 10;
/// Deepest nesting of a message.
pub const MESSAGE_DEPTH_MAX: usize = 64;
/// Longest request id that is echoed.
pub const ID_BYTES_MAX: usize = 256;
/// Requests in one batch.
pub const BATCH_REQUESTS_MAX: usize = 256;
/// Requests read and not yet answered; beyond it the input is left unread until one is answered.
pub const REQUESTS_PENDING_MAX: usize = 1_024;
/// Calls that work at the same time.
pub const CALLS_WORKING_MAX: usize = 16;
/// Calls that wait for something to happen at the same time.
pub const CALLS_WAITING_MAX: usize = 16;
/// Threads that calls may occupy.
pub const CALL_THREADS_MAX: usize = CALLS_WORKING_MAX + CALLS_WAITING_MAX;
/// How often progress is told.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Longest name of a client kept as its session.
pub const SESSION_CHARS_MAX: usize = 64;
/// How long a closing server waits for calls that still run.
pub const SHUTDOWN_WAIT: Duration = Duration::from_secs(2);
/// Longest question that is put before a client's person, in characters; the rest is said to be elsewhere.
pub const QUESTION_CHARS_MAX: usize = 8_000;
/// Largest difference that is put before an editor's person, both texts together.
pub const QUESTION_DIFF_BYTES_MAX: usize = 4 << 20;
/// Sessions of agents that are open at the same time behind one editor.
pub const SESSIONS_MAX: usize = 1_024;
/// Texts of files that one session of an agent remembers, in bytes.
pub const SEEN_BYTES_MAX: usize = 64 << 20;
/// Files that one session of an agent remembers.
pub const SEEN_FILES_MAX: usize = 4_096;
/// Texts that one session of an agent gave to an editor, before and after, in bytes.
pub const MADE_BYTES_MAX: usize = 64 << 20;
/// Texts that one answer about a session's work holds, in bytes; beyond it they are left out, and that is said.
pub const REVIEW_TEXT_BYTES_MAX: usize = 16 << 20;
/// How long a prompt waits to be marked, where its agent can change files behind our back.
pub const MARK_WAIT: Duration = Duration::from_secs(2);
/// How long a client's person may take to answer.
pub const QUESTION_WAIT: Duration = Duration::from_secs(10 * 60);
