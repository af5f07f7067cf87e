//! JSON-RPC over HTTP: one message a request, or a conversation over a WebSocket with everything that is pushed.

use std::sync::Arc;

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{
        State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    http::{HeaderMap, Response, StatusCode},
    response::IntoResponse,
};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::{
    bodies,
    guest::{Guest, Placed, Said},
    hall::Hall,
    limits::{SOCKET_SILENCE_MAX, STREAM_ALIVE},
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
    let mut alive = interval_at(Instant::now() + STREAM_ALIVE, STREAM_ALIVE);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Instant::now();
    // What has come and has no place yet. Until it has one nothing more is heard, but answers go out.
    let mut waiting: Option<Bytes> = None;
    loop {
        let placed = async {
            let place = messages.place().await;
            guest.allowance.pace().await;
            place
        };
        tokio::select! {
            () = stopping.begun() => break,
            // A client whose machine is gone says nothing more, not even that.
            _ = alive.tick() => {
                let is_silent = waiting.is_none() && heard.elapsed() > SOCKET_SILENCE_MAX;
                if is_silent || socket.send(Message::Ping(Bytes::new())).await.is_err() {
                    break;
                }
            }
            answer = from.recv() => {
                let Some(Ok(text)) = answer.map(String::from_utf8) else { break };
                if socket.send(Message::Text(text.into())).await.is_err() {
                    break;
                }
            }
            place = placed, if waiting.is_some() => {
                let (Some(message), Ok(place)) = (waiting.take(), place) else { break };
                notes::taking(Some(notes()), async { messages.take(&message, place) }).await;
                heard = Instant::now();
            }
            message = socket.recv(), if waiting.is_none() => match message {
                Some(Ok(Message::Text(text))) if hall.still_admits(guest) => waiting = Some(text.into()),
                Some(Ok(Message::Binary(bytes))) if hall.still_admits(guest) => waiting = Some(bytes),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => heard = Instant::now(),
                Some(Ok(Message::Text(_) | Message::Binary(_) | Message::Close(_)) | Err(_)) | None => break,
            },
        }
    }
    // What is still answered goes out. Where the client is gone it is taken all the same: a call that could not hand over its
    // answer would never end, nor would what it holds.
    let sending = async {
        let mut is_there = true;
        while let Some(answer) = from.recv().await {
            let Ok(text) = String::from_utf8(answer) else { continue };
            is_there = is_there && socket.send(Message::Text(text.into())).await.is_ok();
        }
        if is_there {
            drop(socket.send(Message::Close(None)).await);
        }
    };
    tokio::join!(messages.close(), sending);
}
