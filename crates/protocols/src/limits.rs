//! Limits that all protocols share, and the limits of ACP sessions. The limits of HTTP are in `http::limits`.

use std::time::Duration;

/// Largest message in bytes. A message of this size can contain the largest content of one write, encoded in base64,
/// and the rest of the request.
pub const MESSAGE_BYTES_MAX: usize = 96 << 20;
/// Size of the line buffer that is kept between messages. If the buffer is larger after a message, it is shrunk to this
/// size.
pub const LINE_BUFFER_RETAINED_BYTES: usize = 1 << 20;
/// Free space in bytes that the line buffer has, at least, before each read from the input.
pub const READ_CHUNK_BYTES: usize = 64 << 10;
/// Deepest nesting of objects and arrays in a message.
pub const MESSAGE_DEPTH_MAX: usize = 64;
/// Longest request id, in bytes, that is accepted and returned in the response.
pub const ID_BYTES_MAX: usize = 256;
/// Maximum number of requests in one batch.
pub const BATCH_REQUESTS_MAX: usize = 256;
/// Maximum number of requests that were read and not yet answered. At this limit, no more input is read until a request
/// is answered.
pub const REQUESTS_PENDING_MAX: usize = 1_024;
/// Maximum number of concurrent calls of one client that work on files.
pub const CALLS_WORKING_MAX: usize = 16;
/// Maximum number of concurrent calls of one client that wait for an event.
pub const CALLS_WAITING_MAX: usize = 16;
/// Maximum number of threads that the calls of one client occupy.
pub const CALL_THREADS_MAX: usize = CALLS_WORKING_MAX + CALLS_WAITING_MAX;
/// Minimum time between two progress notifications of one call.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Longest client name that is used as a session name.
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
/// Maximum number of bytes of text that one ACP session remembers about writes through the editor. The session
/// remembers the text before and after each write.
pub const EDITOR_WRITES_BYTES_MAX: usize = 64 << 20;
/// Maximum number of bytes of text in one review. Texts beyond this limit are omitted, and the review says that they
/// are omitted.
pub const REVIEW_TEXT_BYTES_MAX: usize = 16 << 20;
/// The longest time that a prompt waits for its turn to be recorded. Only the prompts of an agent that also writes
/// through an MCP server wait.
pub const TURN_MARK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the user of a client may take to answer an approval question.
pub const PERMISSION_TIMEOUT: Duration = Duration::from_secs(10 * 60);
