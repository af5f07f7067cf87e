//! The limits of connections that a client can notice. The engine's `limits.rs` contains the limits of single calls.

use std::time::Duration;

/// The maximum size in bytes of one message that a client sends. A message of the maximum size can hold the largest
/// content of one write in base64.
pub const MESSAGE_BYTES_MAX: usize = 96 << 20;
/// The capacity in bytes to which a line reader shrinks its buffer after a large message.
pub const LINE_BUFFER_RETAINED_BYTES: usize = 1 << 20;
/// The minimum free space in bytes that a line reader's buffer has before each read from the input.
pub const READ_CHUNK_BYTES: usize = 64 << 10;
/// The maximum depth of nested objects and arrays in a JSON message.
pub const MESSAGE_DEPTH_MAX: usize = 64;
/// The maximum size in bytes of a request id that the server accepts.
pub const ID_BYTES_MAX: usize = 256;
/// The maximum number of requests in one JSON-RPC batch.
pub const BATCH_REQUESTS_MAX: usize = 256;
/// The maximum number of unanswered requests of one connection, at which the server stops reading from it.
pub const REQUESTS_PENDING_MAX: usize = 1_024;
/// The maximum number of concurrent calls of one client that work on files.
pub const CALLS_WORKING_MAX: usize = 16;
/// The maximum number of concurrent calls of one client that wait for an event.
pub const CALLS_WAITING_MAX: usize = 16;
/// The maximum number of threads that the calls of one client occupy.
pub const CALL_THREADS_MAX: usize = CALLS_WORKING_MAX + CALLS_WAITING_MAX;
/// The minimum time between two progress notifications of one call.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum number of characters of a client's name that the server uses as the session name.
pub const CLIENT_NAME_CHARS_MAX: usize = 64;
/// The maximum time that the server waits for running calls when it shuts down.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of characters in an approval question that an MCP client shows to its user.
pub const ELICITATION_CHARS_MAX: usize = 8_000;
/// The maximum size in bytes of a diff in an editor's permission request, old and new text together.
pub const PERMISSION_DIFF_BYTES_MAX: usize = 4 << 20;
/// The maximum number of open ACP sessions of one editor.
pub const ACP_SESSIONS_MAX: usize = 1_024;
/// The maximum total size in bytes of the file texts that one ACP session remembers.
pub const SESSION_SEEN_BYTES_MAX: usize = 64 << 20;
/// The maximum number of files whose text one ACP session remembers.
pub const SESSION_SEEN_FILES_MAX: usize = 4_096;
/// The maximum total size in bytes of the texts that one ACP session remembers of writes through the editor.
pub const EDITOR_WRITES_BYTES_MAX: usize = 64 << 20;
/// The maximum total size in bytes of the file texts in one review of an agent's changes. A review omits and reports
/// file texts beyond the maximum.
pub const REVIEW_TEXT_BYTES_MAX: usize = 16 << 20;
/// The maximum time that the ACP proxy delays a prompt while the turn of the prompt is being recorded. The proxy delays
/// prompts in sessions with an MCP server because the proxy cannot delay that server's writes.
pub const TURN_MARK_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum time that a client's user has to answer an approval question.
pub const PERMISSION_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The maximum number of watch events that the server queues for a slow client.
pub const QUEUED_EVENTS_MAX: usize = 256;
/// The maximum total size in bytes of unread responses that a framed connection holds.
pub const UNREAD_RESPONSE_BYTES_MAX: usize = 64 << 20;
/// The maximum number of output lines that an MCP client has not read before the server stops reading its input.
pub const LINES_UNREAD_MAX: u64 = REQUESTS_PENDING_MAX as u64;
/// The maximum number of open approval questions of one MCP client.
pub const OPEN_ELICITATIONS_MAX: usize = 256;
/// The maximum number of resources to which one MCP connection can subscribe.
pub const SUBSCRIPTION_URIS_MAX: usize = 1_000;
/// The maximum number of members in a JSON object that the ACP proxy searches for one member.
pub const ACP_OBJECT_MEMBERS_MAX: usize = 1_024;
/// The maximum number of calls of one request that the request log lists; further calls are only counted.
pub const LOGGED_CALLS_PER_REQUEST_MAX: usize = 16;
/// The maximum size in bytes of an X-Request-Id header that the server accepts from a client.
pub const HTTP_REQUEST_ID_BYTES_MAX: usize = 64;
/// The maximum size in bytes of an administration request's body.
pub const ADMIN_BODY_BYTES_MAX: usize = 1 << 20;

/// The maximum number of concurrent HTTP connections; further connections wait to be accepted.
pub const CONNECTIONS_MAX: usize = 16_384;
/// The maximum number of unauthenticated HTTP connections from one address. The server closes unauthenticated
/// connections beyond the maximum at once.
pub const UNAUTHENTICATED_PER_ADDRESS_MAX: usize = 256;
/// The maximum size in bytes of an HTTP request head.
pub const HEAD_BYTES_MAX: usize = 32 << 10;
/// The maximum number of headers in an HTTP request.
pub const HEADERS_MAX: usize = 64;
/// The maximum time that the HTTP server spends on reading a request head.
pub const HEAD_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time that a TLS handshake takes before the server closes the connection.
pub const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time that the HTTP server spends on reading a request body.
pub const BODY_READ_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size in bytes of an HTTP request body.
pub const BODY_BYTES_MAX: usize = MESSAGE_BYTES_MAX;
/// The maximum time that an HTTP client reads nothing while the server has data to send.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum total size in bytes of one principal's request and response bodies in memory.
pub const RESERVED_BYTES_PER_CLIENT_MAX: usize = 256 << 20;
/// The maximum total size in bytes of all principals' request and response bodies in memory.
pub const RESERVED_BYTES_MAX: usize = 1 << 30;
/// The maximum total size in bytes of the files that running calls of one principal load. A call that would exceed the
/// principal's maximum waits.
pub const CALL_BYTES_PER_CLIENT_MAX: usize = 64 << 20;
/// The maximum total size in bytes of the files that running calls of all principals load.
pub const CALL_BYTES_MAX: usize = 256 << 20;
/// The maximum number of calls of all principals that wait for an event.
pub const CALLS_WAITING_TOTAL_MAX: usize = 256;
/// The maximum number of concurrent HTTP requests of one principal. The server answers requests beyond the maximum with
/// status 429.
pub const REQUESTS_PER_CLIENT_MAX: usize = 256;
/// The maximum number of concurrent HTTP streams of one principal.
pub const STREAMS_PER_CLIENT_MAX: usize = 16_384;
/// The maximum number of concurrent archive imports and exports of all clients. The server answers imports and exports
/// beyond the maximum with status 429.
pub const ARCHIVES_MAX: usize = 4;
/// The maximum size in bytes of an archive that a client imports.
pub const UPLOADED_ARCHIVE_BYTES_MAX: u64 = 16 << 30;
/// The maximum number of archive chunks that are queued between the client and the disk.
pub const ARCHIVE_CHUNKS_MAX: usize = 4;
/// The size in bytes of one chunk of an archive.
pub const ARCHIVE_CHUNK_BYTES: usize = 256 << 10;
/// The number of cached clients that the server evicts at once when too many workspaces are open.
pub const EVICTION_BATCH_SIZE: usize = 64;
/// The default number of seconds in the Retry-After header.
pub const RETRY_AFTER_SECONDS: u64 = 1;
/// The maximum number of clients that the HTTP server caches. A full cache evicts the least recently used client first.
pub const CACHED_CLIENTS_MAX: usize = 10_000;
/// The time between two keep-alive messages on an idle HTTP stream.
pub const STREAM_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// The maximum time that a WebSocket client sends nothing, not even a pong, before the server disconnects.
pub const WEBSOCKET_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum time that the HTTP server waits for in-flight requests when it shuts down.
pub const HTTP_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of characters of an unknown name that an error message repeats.
pub const ECHOED_NAME_CHARS_MAX: usize = 64;
/// The maximum number of entries in a directory listing of the jettson, krux and weaver dialects.
pub const DIALECT_LIST_ENTRIES_MAX: usize = 100_000;
/// The maximum size in bytes of the content that one jettson read returns (1 MB in the jettson document).
pub const JETTSON_READ_BYTES_MAX: usize = 1_048_576;
/// The maximum size in bytes of the content that one jettson write accepts (5 MB in the jettson document).
pub const JETTSON_WRITE_BYTES_MAX: usize = 5_242_880;
/// The maximum number of characters of invalid arguments that a comma error message repeats.
pub const COMMA_ECHOED_ARGS_CHARS_MAX: usize = 2000;
/// The maximum number of matches that a comma content search returns.
pub const COMMA_SEARCH_MATCHES_MAX: usize = 100;
/// The maximum number of paths that a comma name search returns.
pub const COMMA_GLOB_PATHS_MAX: usize = 1000;
/// The maximum number of directory levels in a recursive comma listing.
pub const COMMA_LIST_DEPTH_MAX: u64 = 32;
/// The maximum number of entries in a comma listing.
pub const COMMA_LIST_ENTRIES_MAX: usize = 5000;
/// The maximum size in bytes of a file for which the weaver dialect shows a diff.
pub const WEAVER_DIFF_BYTES_MAX: usize = 64 * 1024;
/// The maximum number of lines of a file for which the weaver dialect shows a diff.
pub const WEAVER_DIFF_LINES_MAX: usize = 2000;
/// The maximum size in bytes of a diff that the weaver dialect shows.
pub const WEAVER_DIFF_PREVIEW_BYTES_MAX: usize = 16 * 1024;
