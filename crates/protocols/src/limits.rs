//! Limits that all protocols share, and those of ACP sessions. HTTP has its own in `http::limits`.

use std::time::Duration;

/// Longest message. The largest content of one write fits into it in base64, with room for the rest of the message.
pub const MESSAGE_BYTES_MAX: usize = 96 << 20;
/// Size of the line buffer that is kept between messages; the rest of a larger buffer is freed.
pub const LINE_BUFFER_RETAINED_BYTES: usize = 1 << 20;
/// Buffer space in bytes that one read from the input can fill.
pub const READ_CHUNK_BYTES: usize = 64 << 10;
/// Deepest nesting of objects and arrays in a message.
pub const MESSAGE_DEPTH_MAX: usize = 64;
/// Longest request id, in bytes, that is accepted and returned in the response.
pub const ID_BYTES_MAX: usize = 256;
/// Requests in one batch.
pub const BATCH_REQUESTS_MAX: usize = 256;
/// Requests that were read and not yet answered. At this limit no more input is read until one is answered.
pub const REQUESTS_PENDING_MAX: usize = 1_024;
/// Concurrent calls of one client that work on files.
pub const CALLS_WORKING_MAX: usize = 16;
/// Concurrent calls of one client that wait for an event.
pub const CALLS_WAITING_MAX: usize = 16;
/// Threads that the calls of one client may occupy.
pub const CALL_THREADS_MAX: usize = CALLS_WORKING_MAX + CALLS_WAITING_MAX;
/// Minimum time between two progress notifications of one call.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Longest client name that is used as a session name.
pub const CLIENT_NAME_CHARS_MAX: usize = 64;
/// How long a shutdown waits for running calls.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest approval question shown to a client's user, in characters. A longer question is cut and refers to a command
/// that shows everything.
pub const ELICITATION_CHARS_MAX: usize = 8_000;
/// Largest diff shown to an editor's user, in bytes of the old and the new text together.
pub const PERMISSION_DIFF_BYTES_MAX: usize = 4 << 20;
/// Open ACP sessions per editor.
pub const ACP_SESSIONS_MAX: usize = 1_024;
/// Bytes of file text that one ACP session remembers.
pub const SESSION_SEEN_BYTES_MAX: usize = 64 << 20;
/// Files whose text one ACP session remembers.
pub const SESSION_SEEN_FILES_MAX: usize = 4_096;
/// Bytes of text that one ACP session remembers of writes through the editor: the text before and after each write.
pub const EDITOR_WRITES_BYTES_MAX: usize = 64 << 20;
/// Bytes of text in one review; longer texts are omitted, and the review says so.
pub const REVIEW_TEXT_BYTES_MAX: usize = 16 << 20;
/// How long a prompt waits until its turn is recorded, if the agent also writes through an MCP server.
pub const TURN_MARK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the user of a client may take to answer an approval question.
pub const PERMISSION_TIMEOUT: Duration = Duration::from_secs(10 * 60);
