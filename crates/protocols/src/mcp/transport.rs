//! Transports MCP messages as lines and rejects invalid lines before the protocol library gets them. The transport
//! stops reading input while too many requests are pending or too many responses are unread.

use std::{io, sync::Arc};

use rmcp::{
    RoleServer,
    model::{
        ClientRequest, ContentBlock, ErrorData, Extensions, GetExtensions, GetMeta, JsonRpcMessage, ProtocolVersion,
        RequestId, ServerJsonRpcMessage, ServerResult,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
};

use super::message_check::{self, McpMessageError, McpMessageIdAndMethod};
use crate::{
    json_string::{LONG_TEXT_BYTES_MIN, append_escaped},
    limits::{LINES_UNREAD_MAX, REQUESTS_PENDING_MAX},
    lines::{LineReader, LineReaderEvent, Outbox, into_line},
};

pub(crate) type ClientClosedSignal = watch::Receiver<bool>;

/// Counts a request as pending; the permit is in the request's extensions, which are dropped after the response.
#[derive(Clone)]
struct McpIncomingRequestPermit(Arc<OwnedSemaphorePermit>);

/// Returns whether an MCP request is the client's only pending request. A single pending request can hold two permits,
/// because the transport takes the next request's permit in advance.
pub(super) fn is_only_request(extensions: &Extensions) -> bool {
    let taken = |pending: &McpIncomingRequestPermit| REQUESTS_PENDING_MAX - pending.0.semaphore().available_permits();
    extensions.get::<McpIncomingRequestPermit>().map(taken).is_some_and(|taken| taken <= 2)
}

/// Returns whether an MCP request came over the line transport.
pub(super) fn is_over_lines(extensions: &Extensions) -> bool {
    extensions.get::<McpIncomingRequestPermit>().is_some()
}

pub(super) struct McpLineTransport<R, W> {
    reader: LineReader<R>,
    outbox: Arc<Outbox<W>>,
    request_slots: Arc<Semaphore>,
    next_slot: Option<OwnedSemaphorePermit>,
    /// Whether the client has sent its handshake. Before the handshake, the MCP library ends the connection if it gets
    /// anything but a request.
    is_initialized: bool,
    close_sender: watch::Sender<bool>,
}

impl<R, W> McpLineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub(super) fn new(input: R, output: W) -> (Self, ClientClosedSignal) {
        let (closed, watcher) = watch::channel(false);
        let lines = Self {
            reader: LineReader::new(input),
            outbox: Arc::new(Outbox::new(output)),
            request_slots: Arc::new(Semaphore::new(REQUESTS_PENDING_MAX)),
            next_slot: None,
            is_initialized: false,
            close_sender: closed,
        };
        (lines, watcher)
    }

    fn parse_current_line(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let line = self.reader.message();
        if line.is_empty() {
            return None;
        }
        let header = match message_check::check_line(line) {
            Ok(header) => header,
            Err(error) => {
                self.reject(error);
                return None;
            }
        };
        match serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line) {
            Ok(message) => self.accept_message(message),
            Err(_) => {
                self.reject_shape(header);
                None
            }
        }
    }

    fn accept_message(&mut self, message: RxJsonRpcMessage<RoleServer>) -> Option<RxJsonRpcMessage<RoleServer>> {
        match message {
            JsonRpcMessage::Request(mut request) => {
                self.is_initialized |= is_handshake(&request.request);
                if let Some(slot) = self.next_slot.take() {
                    request.request.extensions_mut().insert(McpIncomingRequestPermit(Arc::new(slot)));
                }
                Some(JsonRpcMessage::Request(request))
            }
            other @ (JsonRpcMessage::Notification(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => {
                self.is_initialized.then_some(other)
            }
        }
    }

    fn reject_shape(&mut self, header: McpMessageIdAndMethod) {
        if header.method.is_some() && header.id.is_none() {
            return;
        }
        self.reject(McpMessageError::invalid_request(header.id, "the object is not a JSON-RPC 2.0 request"));
    }

    /// Sends an error response in its own task, because a read may be cancelled but a write must not be. The permit of
    /// the rejected request limits how many tasks a client that never reads can cause.
    fn reject(&mut self, error: McpMessageError) {
        let line = error_line(error.id.as_ref(), &error.error);
        let output = self.outbox.clone();
        let slot = self.next_slot.take();
        tokio::spawn(async move {
            // A send error means that the client has disconnected, which the next read reports.
            drop(output.send(line).await);
            drop(slot);
        });
    }
}

/// Returns whether the MCP library accepts `request` as the first request of a connection.
fn is_handshake(request: &ClientRequest) -> bool {
    if matches!(request, ClientRequest::InitializeRequest(_)) {
        return true;
    }
    let meta = request.get_meta();
    !matches!(request, ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_))
        && meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        && meta.protocol_version().is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
}

/// Returns an error response as a line. JSON-RPC requires a null id if the id of the request is unknown.
fn error_line(id: Option<&RequestId>, error: &ErrorData) -> Vec<u8> {
    let id = id.map_or(serde_json::Value::Null, |id| id.clone().into_json_value());
    into_line(serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
}

impl<R, W> Transport<RoleServer> for McpLineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let output = self.outbox.clone();
        async move {
            // The message may be large, so encoding frees it before the line waits for a slow client.
            let line = encode_line(item)?;
            output.send(line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.next_slot.is_none() {
                self.next_slot = Some(self.request_slots.clone().acquire_owned().await.ok()?);
            }
            // The protocol library spawns a task for each response after the request has released its slot. Without
            // this limit, a client that never reads could cause any number of tasks.
            self.outbox.wait_for_room(LINES_UNREAD_MAX).await;
            match self.reader.next().await {
                LineReaderEvent::Line => {
                    if let Some(message) = self.parse_current_line() {
                        return Some(message);
                    }
                }
                LineReaderEvent::Oversized(id) => {
                    let id = id.as_ref().and_then(message_check::request_id);
                    self.reject(McpMessageError::invalid_request(id, "the message is too long"));
                }
                LineReaderEvent::End => {
                    self.close_sender.send_replace(true);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.outbox.flush().await
    }
}

/// The JSON of the parts of a tool result that are written into the message after the rest of it, in this order.
const EMPTY_TEXT: &str = r#""text":"""#;
const EMPTY_OBJECT: &str = r#""structuredContent":"""#;

/// Encodes a message as a line. The structured result of a tool is the text of its JSON, and a long text is escaped
/// faster than the JSON library does it.
fn encode_line(mut item: ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let (text, object) = take_text_and_object(&mut item);
    let rest = serde_json::to_string(&item)?;
    let mut rest = rest.as_str();
    let mut line = Vec::with_capacity(rest.len() + object.len() + text.len() + text.len() / 8 + 1);
    // Quotes inside of strings are escaped, so an empty member occurs first where its value was taken.
    let mut copy_until = |line: &mut Vec<u8>, member: &str, kept: usize| {
        if let Some(start) = rest.find(member) {
            line.extend_from_slice(&rest.as_bytes()[..start + member.len() - kept]);
            rest = &rest[start + member.len()..];
        }
    };
    if !text.is_empty() {
        copy_until(&mut line, EMPTY_TEXT, 1);
        append_escaped(&text, &mut line);
        line.push(b'"');
    }
    if !object.is_empty() {
        copy_until(&mut line, EMPTY_OBJECT, 2);
        line.extend_from_slice(object.as_bytes());
    }
    line.extend_from_slice(rest.as_bytes());
    line.push(b'\n');
    Ok(line)
}

/// Takes the long text and the structured result out of a tool result.
fn take_text_and_object(item: &mut ServerJsonRpcMessage) -> (String, String) {
    let JsonRpcMessage::Response(response) = item else { return Default::default() };
    let ServerResult::CallToolResult(result) = &mut response.result else { return Default::default() };
    let text = match result.content.as_mut_slice() {
        [ContentBlock::Text(block)] if block.text.len() >= LONG_TEXT_BYTES_MIN => std::mem::take(&mut block.text),
        _ => String::new(),
    };
    let object = match &mut result.structured_content {
        Some(Value::String(json)) => std::mem::take(json),
        Some(_) | None => String::new(),
    };
    (text, object)
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, EmptyResult, NumberOrString};
    use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream};

    use super::*;

    const REQUESTS: usize = 3 * REQUESTS_PENDING_MAX;

    #[test]
    fn tool_result_is_encoded_like_any_other_message() {
        let long = "\"text\":\"\" \"structuredContent\":\"\" \n".repeat(LONG_TEXT_BYTES_MIN);
        for (text, object) in [
            (long.as_str(), serde_json::json!({ "text": "" })),
            ("", serde_json::json!({ "structuredContent": "", "content": long })),
            ("short", serde_json::json!("a string of another server")),
            (long.as_str(), serde_json::Value::Null),
        ] {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(object.clone());
            let id = NumberOrString::String(r#""structuredContent":"","text":"""#.into());
            let item: ServerJsonRpcMessage =
                JsonRpcMessage::response(ServerResult::CallToolResult(result.clone()), id.clone());
            let expected = serde_json::to_string(&item).unwrap() + "\n";
            result.structured_content = Some(Value::String(object.to_string()));
            let item = JsonRpcMessage::response(ServerResult::CallToolResult(result), id);
            assert_eq!(String::from_utf8(encode_line(item).unwrap()).unwrap(), expected);
        }
    }

    fn pings() -> Vec<u8> {
        let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
        let ping = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        std::iter::once(format!("{initialize}\n")).chain((1..REQUESTS).map(ping)).collect::<String>().into()
    }

    /// A fake MCP server that, like the MCP library, drops a finished request and sends its response in a new task.
    struct FakeMcpSdkServer<'a> {
        transport: McpLineTransport<&'a [u8], DuplexStream>,
        answered: usize,
    }

    impl FakeMcpSdkServer<'_> {
        async fn answer_all(&mut self) {
            while let Some(message) = self.transport.receive().await {
                let JsonRpcMessage::Request(request) = message else { panic!("only requests were sent") };
                let result = ServerResult::EmptyResult(EmptyResult {});
                let response = self.transport.send(JsonRpcMessage::response(result, request.id));
                tokio::spawn(response);
                self.answered += 1;
                tokio::task::yield_now().await;
            }
        }

        async fn answer_until_throttled(&mut self) -> usize {
            let idle = async {
                for _ in 0..100 * REQUESTS {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                () = self.answer_all() => {}
                () = idle => {}
            }
            self.answered
        }
    }

    fn serve(input: &[u8]) -> (FakeMcpSdkServer<'_>, DuplexStream) {
        let (near, far) = tokio::io::duplex(64);
        let (transport, _) = McpLineTransport::new(input, near);
        (FakeMcpSdkServer { transport, answered: 0 }, far)
    }

    #[tokio::test]
    async fn a_client_that_never_reads_is_throttled_and_gets_every_response_once_it_reads() {
        let input = pings();
        let (mut server, far) = serve(&input);
        let answered = server.answer_until_throttled().await;
        assert!((REQUESTS_PENDING_MAX..=REQUESTS_PENDING_MAX + 16).contains(&answered), "{answered}");
        let reading = tokio::spawn(async move {
            let mut lines = BufReader::new(far).lines();
            let mut count = 0;
            while lines.next_line().await.unwrap().is_some() {
                count += 1;
            }
            count
        });
        server.answer_all().await;
        assert_eq!(server.answered, REQUESTS);
        // The output closes when the last pending response is written.
        drop(server);
        assert_eq!(reading.await.unwrap(), REQUESTS);
    }

    #[tokio::test]
    async fn reading_continues_when_the_client_has_disconnected() {
        let input = pings();
        let (mut server, far) = serve(&input);
        assert!(server.answer_until_throttled().await < REQUESTS);
        drop(far);
        server.answer_all().await;
        assert_eq!(server.answered, REQUESTS);
    }
}
