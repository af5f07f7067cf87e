//! JSON-RPC over HTTP: one message a request, or a conversation over a WebSocket with everything that is pushed.

use std::sync::Arc;

use axum::{
    Extension,
    body::Body,
    extract::{
        State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    http::{HeaderMap, Response, StatusCode},
    response::IntoResponse,
};
use tokio::sync::mpsc;

use super::{
    bodies,
    guest::{Guest, Placed, Said},
    hall::Hall,
    log::{self, RequestId},
    problem,
};
use crate::{
    limits::MESSAGE_BYTES_MAX,
    notes,
    rpc::{Conversation, Messages},
};

/// Answers that wait to be sent; more wait where they are held against their room.
const ANSWERS_WAITING_MAX: usize = 1;

/// `POST /rpc`: a request, a notification, or a batch.
pub(super) async fn post(
    State(hall): State<Arc<Hall>>,
    Placed { guest, place: _place }: Placed,
    headers: HeaderMap,
    given: Body,
) -> Response<Body> {
    let message = match bodies::read(&guest.allowance, given).await {
        Ok(message) => message,
        Err(turned) => return problem::turned(turned),
    };
    let (session, key) = Said::read(&headers).parts();
    let conversation = Arc::new(Conversation::of(session, key));
    let rpc = match guest.rpc(&hall.settings) {
        Ok(rpc) => rpc,
        Err(turned) => return problem::turned(turned),
    };
    match rpc.answer(&message.bytes, &conversation.admit()).await {
        Some(answer) => problem::json_body(StatusCode::OK, &answer),
        None => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
    }
}

/// `GET /rpc` with an upgrade.
pub(super) async fn socket(
    State(hall): State<Arc<Hall>>,
    Extension(guest): Extension<Arc<Guest>>,
    Extension(id): Extension<RequestId>,
    upgrade: WebSocketUpgrade,
) -> Response<Body> {
    let place = match guest.stream() {
        Ok(place) => place,
        Err(turned) => return problem::turned(turned),
    };
    upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .on_upgrade(move |socket| async move {
            hall.metrics.stream_opened();
            converse(&hall, &guest, &id, socket).await;
            hall.metrics.stream_closed();
            drop(place);
        })
        .into_response()
}

/// Carries messages in and out until either side ends.
async fn converse(hall: &Hall, guest: &Guest, id: &RequestId, mut socket: WebSocket) {
    let (to, mut from) = mpsc::channel(ANSWERS_WAITING_MAX);
    let Ok(rpc) = guest.rpc(&hall.settings) else { return };
    let mut messages = Messages::new(rpc, to);
    let mut stopping = hall.stopping();
    let notes = || log::message(hall.keeping.log.as_ref(), id.text(), guest);
    loop {
        tokio::select! {
            () = stopping.begun() => break,
            answer = from.recv() => {
                let Some(Ok(text)) = answer.map(String::from_utf8) else { break };
                if socket.send(Message::Text(text.into())).await.is_err() {
                    break;
                }
            }
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) if hall.still_admits(guest) => {
                    guest.allowance.pace().await;
                    notes::taking(Some(notes()), messages.take(text.as_bytes())).await;
                }
                Some(Ok(Message::Binary(bytes))) if hall.still_admits(guest) => {
                    guest.allowance.pace().await;
                    notes::taking(Some(notes()), messages.take(&bytes)).await;
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Text(_) | Message::Binary(_) | Message::Close(_)) | Err(_)) | None => break,
            },
        }
    }
    messages.close().await;
    // What was still answered goes out; a client that is gone does not matter.
    while let Ok(answer) = from.try_recv() {
        let Ok(text) = String::from_utf8(answer) else { continue };
        if socket.send(Message::Text(text.into())).await.is_err() {
            return;
        }
    }
    drop(socket.send(Message::Close(None)).await);
}
