//! Limits that all protocols share, and the limits of ACP sessions. The limits of HTTP are in `http::limits`.

use std::time::Duration;

/// Largest message in bytes. The limit leaves room for the largest content of one write, encoded in base64.
pub const MESSAGE_BYTES_MAX: usize = 96 << 20;
/// Size in bytes to which the line buffer is shrunk after a large message.
pub const LINE_BUFFER_RETAINED_BYTES: usize = 1 << 20;
/// Minimum free space of the line buffer, in bytes, before each read from the input.
pub const READ_CHUNK_BYTES: usize = 64 << 10;
/// Deepest nesting of objects and arrays in a message.
pub const MESSAGE_DEPTH_MAX: usize = 64;
/// Longest request id, in bytes, that is accepted and returned in the response.
pub const ID_BYTES_MAX: usize = 256;
/// Maximum number of requests in one batch.
pub const BATCH_REQUESTS_MAX: usize = 256;
/// Maximum number of requests that were read and not yet answered. While this many requests are pending, the server
/// reads no more input.
pub const REQUESTS_PENDING_MAX: usize = 1_024;
/// Maximum number of concurrent calls of one client that work on files.
pub const CALLS_WORKING_MAX: usize = 16;
/// Maximum number of concurrent calls of one client that wait for an event.
pub const CALLS_WAITING_MAX: usize = 16;
/// Maximum number of threads that the calls of one client occupy.
pub const CALL_THREADS_MAX: usize = CALLS_WORKING_MAX + CALLS_WAITING_MAX;
/// Minimum time between two progress notifications of one call.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of characters of a client name that become the name of its session.
pub const CLIENT_NAME_CHARS_MAX: usize = 64;
/// How long a shutdown waits for running calls.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest approval question shown to a client's user, in characters. A longer question is cut, and names a command
/// that shows the full question.
pub const ELICITATION_CHARS_MAX: usize = 8_000;
/// Largest diff shown to an editor's user, in bytes of the old and the new text together.
pub const PERMISSION_DIFF_BYTES_MAX: usize = 4 << 20;
/// Maximum number of open ACP sessions per editor.
pub const ACP_SESSIONS_MAX: usize = 1_024;
/// Maximum number of bytes of file text that one ACP session remembers.
pub const SESSION_SEEN_BYTES_MAX: usize = 64 << 20;
/// Maximum number of files whose text one ACP session remembers.
pub const SESSION_SEEN_FILES_MAX: usize = 4_096;
/// One ACP session remembers the old and the new text of each write through the editor, up to this many bytes in total.
pub const EDITOR_WRITES_BYTES_MAX: usize = 64 << 20;
/// Maximum number of bytes of file text in one review of an agent's changes. The review omits and reports texts beyond
/// the maximum.
pub const REVIEW_TEXT_BYTES_MAX: usize = 16 << 20;
/// Maximum time that the ACP proxy delays a prompt until the turn of the prompt is recorded. The proxy delays prompts
/// only in sessions with an MCP server, because it cannot delay the writes of that server instead.
pub const TURN_MARK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the user of a client may take to answer an approval question.
pub const PERMISSION_TIMEOUT: Duration = Duration::from_secs(10 * 60);
