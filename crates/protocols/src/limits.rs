//! The limits of connections that a client can notice: the limits that all protocols share, those of single protocols,
//! and those that the documents of the dialects set. The limits of calls are in `limits.rs` of the engine.

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

// Single protocols.

/// Maximum number of watch events that are queued for a slow client.
pub const QUEUED_EVENTS_MAX: usize = 256;
/// Maximum number of bytes of responses that a framed connection holds until the client reads them.
pub const UNREAD_RESPONSE_BYTES_MAX: usize = 64 << 20;
/// Maximum number of output lines that the client has not read yet. At the maximum, the server reads no more input.
pub const LINES_UNREAD_MAX: u64 = REQUESTS_PENDING_MAX as u64;
/// Maximum number of open approval questions per MCP connection.
pub const OPEN_ELICITATIONS_MAX: usize = 256;
/// Maximum number of resources to which one MCP connection subscribes.
pub const SUBSCRIPTION_URIS_MAX: usize = 1_000;
/// Maximum number of members of an object that the ACP proxy searches for a member.
pub const ACP_OBJECT_MEMBERS_MAX: usize = 1_024;
/// Maximum number of calls of one request that the request log lists; further calls are only counted.
pub const LOGGED_CALLS_PER_REQUEST_MAX: usize = 16;
/// Longest value of the X-Request-Id header that is accepted from a client, in bytes.
pub const HTTP_REQUEST_ID_BYTES_MAX: usize = 64;
/// Maximum size of the request body of an administration request, in bytes.
pub const ADMIN_BODY_BYTES_MAX: usize = 1 << 20;

// The HTTP server and its clients.

/// Maximum number of concurrent connections; further connections wait to be accepted.
pub const CONNECTIONS_MAX: usize = 16_384;
/// Maximum number of unauthenticated connections per address; further connections are closed at once.
pub const UNAUTHENTICATED_PER_ADDRESS_MAX: usize = 256;
/// Maximum size of a request head in bytes.
pub const HEAD_BYTES_MAX: usize = 32 << 10;
/// Maximum number of headers of a request.
pub const HEADERS_MAX: usize = 64;
/// Timeout for reading a request head.
pub const HEAD_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the TLS handshake.
pub const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for reading a request body.
pub const BODY_READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a request body in bytes.
pub const BODY_BYTES_MAX: usize = MESSAGE_BYTES_MAX;
/// Timeout for a client that reads nothing while the server has data to send.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of bytes of request and response bodies in memory, per principal.
pub const RESERVED_BYTES_PER_CLIENT_MAX: usize = 256 << 20;
/// Maximum number of bytes of request and response bodies in memory, for all principals together.
pub const RESERVED_BYTES_MAX: usize = 1 << 30;
/// Maximum number of bytes of files that running calls load into memory, per principal. Further calls wait.
pub const CALL_BYTES_PER_CLIENT_MAX: usize = 64 << 20;
/// Maximum number of bytes of files that running calls load into memory, for all principals together.
pub const CALL_BYTES_MAX: usize = 256 << 20;
/// Maximum number of calls that wait for an event, for all principals together.
pub const CALLS_WAITING_TOTAL_MAX: usize = 256;
/// Maximum number of concurrent requests per principal; further requests get status 429.
pub const REQUESTS_PER_CLIENT_MAX: usize = 256;
/// Maximum number of concurrent streams per principal.
pub const STREAMS_PER_CLIENT_MAX: usize = 16_384;
/// Maximum number of concurrent administration requests of all clients. Further requests wait.
pub const ADMIN_REQUESTS_MAX: usize = 8;
/// Maximum number of concurrent imports and exports of all clients; further ones get status 429.
pub const ARCHIVES_MAX: usize = 4;
/// Maximum size of an imported archive in bytes.
pub const UPLOADED_ARCHIVE_BYTES_MAX: u64 = 16 << 30;
/// Maximum number of archive chunks that are queued for the client or for the disk.
pub const ARCHIVE_CHUNKS_MAX: usize = 4;
/// Size of an archive chunk in bytes.
pub const ARCHIVE_CHUNK_BYTES: usize = 256 << 10;
/// Number of clients that are evicted at once when too many workspaces are open.
pub const EVICTION_BATCH_SIZE: usize = 64;
/// Default value of the Retry-After header, in seconds.
pub const RETRY_AFTER_SECONDS: u64 = 1;
/// Maximum number of cached clients; the least recently used client is evicted first.
pub const CACHED_CLIENTS_MAX: usize = 10_000;
/// Interval of keep-alive messages on an idle stream.
pub const STREAM_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Timeout for a WebSocket client that sends nothing, not even pongs.
pub const WEBSOCKET_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time that a shutdown waits for in-flight requests.
pub const HTTP_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

// Dialects.

/// Maximum number of characters of an unknown name that an error message repeats.
pub const ECHOED_NAME_CHARS_MAX: usize = 64;
/// Maximum number of entries in a listing of jettson, krux and weaver. The last line of a listing of weaver says if
/// the directory has more entries.
pub const DIALECT_LIST_ENTRIES_MAX: usize = 100_000;
/// Largest content that one read of jettson returns, in bytes (1 MB in its document).
pub const JETTSON_READ_BYTES_MAX: usize = 1_048_576;
/// Largest content that one write of jettson accepts, in bytes (5 MB in its document).
pub const JETTSON_WRITE_BYTES_MAX: usize = 5_242_880;
/// Maximum number of characters of invalid arguments that an error message of comma repeats.
pub const COMMA_ECHOED_ARGS_CHARS_MAX: usize = 2000;
/// Maximum number of matches in a result of comma that searches content.
pub const COMMA_SEARCH_MATCHES_MAX: usize = 100;
/// Maximum number of paths in a result of comma that searches names.
pub const COMMA_GLOB_PATHS_MAX: usize = 1000;
/// Maximum depth of a recursive listing of comma, in levels.
pub const COMMA_LIST_DEPTH_MAX: u64 = 32;
/// Maximum number of entries in a listing of comma.
pub const COMMA_LIST_ENTRIES_MAX: usize = 5000;
/// Largest file whose diff weaver shows, in bytes.
pub const WEAVER_DIFF_BYTES_MAX: usize = 64 * 1024;
/// Largest file whose diff weaver shows, in lines.
pub const WEAVER_DIFF_LINES_MAX: usize = 2000;
/// Maximum size of a diff that weaver shows, in bytes.
pub const WEAVER_DIFF_PREVIEW_BYTES_MAX: usize = 16 * 1024;
