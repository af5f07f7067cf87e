//! JSON-RPC over HTTP: one message per POST request, or a WebSocket connection with server notifications.

use std::sync::Arc;

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{
        State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::{
    body,
    client::{AuthenticatedHttpClient, CallHeaders, ClientRequestPermit},
    errors::{self, HttpResult},
    request_log::{self, HttpRequestId},
    state::HttpServerState,
};
use crate::{
    call_recorder,
    limits::{MESSAGE_BYTES_MAX, STREAM_KEEPALIVE_INTERVAL, WEBSOCKET_IDLE_TIMEOUT},
    rpc::{FramedRpcConnection, RpcConnection},
};

/// The maximum number of JSON-RPC responses that are queued for a WebSocket. Responses beyond the maximum wait in the
/// [`FramedRpcConnection`], which limits their total size.
const QUEUED_RESPONSES_MAX: usize = 1;

/// The body of `POST /rpc` is a request, a notification, or a batch.
pub(super) async fn serve_post(
    State(state): State<Arc<HttpServerState>>,
    ClientRequestPermit { client, permit: _permit }: ClientRequestPermit,
    headers: HeaderMap,
    body: Body,
) -> HttpResult {
    let message = body::read_body(&client.limits, body).await?;
    let (session, key) = CallHeaders::from_headers(&headers).into_parts();
    let connection = Arc::new(RpcConnection::for_single_request(session, key));
    let rpc = client.rpc_server(&state.config)?;
    Ok(match rpc.answer_message(&message.bytes, &connection.accept_message()).await {
        Some(response) => errors::json_text_response(StatusCode::OK, response),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

pub(super) async fn upgrade_websocket(
    State(state): State<Arc<HttpServerState>>,
    Extension(client): Extension<Arc<AuthenticatedHttpClient>>,
    Extension(id): Extension<HttpRequestId>,
    upgrade: WebSocketUpgrade,
) -> HttpResult {
    let permit = client.acquire_stream_permit()?;
    let response = upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .on_upgrade(move |socket| async move {
            state.metrics.stream_opened();
            serve_websocket(&state, &client, &id, socket).await;
            state.metrics.stream_closed();
            drop(permit);
        })
        .into_response();
    Ok(response)
}

async fn serve_websocket(
    state: &HttpServerState,
    client: &AuthenticatedHttpClient,
    id: &HttpRequestId,
    mut socket: WebSocket,
) {
    let (sender, mut receiver) = mpsc::channel(QUEUED_RESPONSES_MAX);
    let Ok(rpc) = client.rpc_server(&state.config) else { return };
    let mut messages = FramedRpcConnection::new(rpc, sender);
    let mut shutdown = state.shutdown_signal();
    let recorder = || request_log::recorder_for_message(state.options.request_logger.as_ref(), id.as_str(), client);
    let mut keepalive = interval_at(Instant::now() + STREAM_KEEPALIVE_INTERVAL, STREAM_KEEPALIVE_INTERVAL);
    keepalive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_received = Instant::now();
    // A received message that waits for a free slot. While a message waits, no further message is read, but responses
    // are sent.
    let mut waiting: Option<Bytes> = None;
    loop {
        let slot = async {
            let permit = messages.acquire_slot().await;
            client.limits.wait_for_rate().await;
            permit
        };
        tokio::select! {
            () = shutdown.until_shutdown() => break,
            // A client that lost its network does not close the connection. The server detects such a client because it
            // sends no pongs.
            _ = keepalive.tick() => {
                let is_silent = waiting.is_none() && last_received.elapsed() > WEBSOCKET_IDLE_TIMEOUT;
                if is_silent || socket.send(Message::Ping(Bytes::new())).await.is_err() {
                    break;
                }
            }
            response = receiver.recv() => {
                let Some(Ok(text)) = response.map(String::from_utf8) else { break };
                if socket.send(Message::Text(text.into())).await.is_err() {
                    break;
                }
            }
            permit = slot, if waiting.is_some() => {
                let (Some(message), Ok(permit)) = (waiting.take(), permit) else { break };
                call_recorder::record_during(Some(recorder()), async { messages.accept(&message, permit) }).await;
                last_received = Instant::now();
            }
            message = socket.recv(), if waiting.is_none() => match message {
                Some(Ok(Message::Text(text))) if state.is_still_valid(client) => waiting = Some(text.into()),
                Some(Ok(Message::Binary(bytes))) if state.is_still_valid(client) => waiting = Some(bytes),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => last_received = Instant::now(),
                Some(Ok(Message::Text(_) | Message::Binary(_) | Message::Close(_)) | Err(_)) | None => break,
            },
        }
    }
    // Sends the remaining responses. If the client has disconnected, the responses are still taken from the queue.
    // Otherwise a call that cannot queue its response would never end and never release its permits.
    let sending = async {
        let mut is_connected = true;
        while let Some(response) = receiver.recv().await {
            let Ok(text) = String::from_utf8(response) else { continue };
            is_connected = is_connected && socket.send(Message::Text(text.into())).await.is_ok();
        }
        if is_connected {
            drop(socket.send(Message::Close(None)).await);
        }
    };
    tokio::join!(messages.close(), sending);
}
