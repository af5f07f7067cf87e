//! Limits of the protocols.

use std::time::Duration;

/// Longest message. Fits the largest content of one write in base64, with room for the rest of the message.
pub const MESSAGE_BYTES_MAX: usize = 96 << 20;
/// Line buffer retained between messages; a larger buffer is freed.
pub const LINE_BUFFER_RETAINED_BYTES: usize = 1 << 20;
/// Bytes per read from the input.
pub const READ_CHUNK_BYTES: usize = 64 << 10;
/// Deepest nesting of a message.
pub const MESSAGE_DEPTH_MAX: usize = 64;
/// Longest request id that is echoed.
pub const ID_BYTES_MAX: usize = 256;
/// Requests in one batch.
pub const BATCH_REQUESTS_MAX: usize = 256;
/// Requests read and not yet answered; at this limit the input is not read until one is answered.
pub const REQUESTS_PENDING_MAX: usize = 1_024;
/// Concurrent working calls.
pub const CALLS_WORKING_MAX: usize = 16;
/// Concurrent calls that wait for an event.
pub const CALLS_WAITING_MAX: usize = 16;
/// Threads that calls may occupy.
pub const CALL_THREADS_MAX: usize = CALLS_WORKING_MAX + CALLS_WAITING_MAX;
/// Minimum time between two progress notifications.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Longest client name that is used as a session name.
pub const CLIENT_NAME_CHARS_MAX: usize = 64;
/// How long a shutdown waits for running calls.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest approval question shown to a client's user, in characters; a longer one is cut and refers to the command
/// line.
pub const ELICITATION_CHARS_MAX: usize = 8_000;
/// Largest diff shown to an editor's user, both texts together.
pub const PERMISSION_DIFF_BYTES_MAX: usize = 4 << 20;
/// Open agent sessions per editor.
pub const ACP_SESSIONS_MAX: usize = 1_024;
/// Bytes of file text that one agent session remembers.
pub const SESSION_SEEN_BYTES_MAX: usize = 64 << 20;
/// Files that one agent session remembers.
pub const SESSION_SEEN_FILES_MAX: usize = 4_096;
/// Bytes of text, before and after, that one agent session wrote to the editor.
pub const EDITOR_WRITES_BYTES_MAX: usize = 64 << 20;
/// Bytes of text in one review; longer texts are omitted, and the review says so.
pub const REVIEW_TEXT_BYTES_MAX: usize = 16 << 20;
/// How long a prompt waits for its turn mark, if its agent can change files outside stead.
pub const TURN_MARK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a client's user may take to answer.
pub const PERMISSION_TIMEOUT: Duration = Duration::from_secs(10 * 60);
