//! MCP over Streamable HTTP, in both eras: the protocol library carries the messages, after each has been checked as
//! strictly as a line of standard input. Sessions of the earlier era belong to the client that began them: each client
//! has its own, so that nobody can go on in another's.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    Extension,
    body::{Body, Bytes, HttpBody},
    extract::{Path, Request, State, rejection::PathRejection},
    http::{Method, Response, StatusCode},
};
use engine::Caller;
use http_body_util::{Full, combinators::BoxBody};
use hyper::body::{Frame, SizeHint};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::{
    guard::Turned,
    guest::Guest,
    hall::Hall,
    limits::{BODY_BYTES_MAX, STREAM_ALIVE},
    operations, problem,
};
use crate::{
    dialect::{self, DialectError, Dialects},
    mcp::{Blueprint, Server, inspect},
    run::Runner,
};

/// A client's MCP server.
pub(super) type Served = StreamableHttpService<Arc<Server>, LocalSessionManager>;

/// Makes one.
pub(super) fn serve(
    runner: &Arc<Runner>,
    caller: &Caller,
    dialects: Dialects,
    stopping: &watch::Sender<bool>,
) -> Served {
    let blueprint = Arc::new(Blueprint::new(runner.clone(), caller.clone(), dialects));
    let config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_sse_keep_alive(Some(STREAM_ALIVE))
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        // The way in has judged both already.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let stopping = stopping.clone();
    StreamableHttpService::new(
        move || Ok(Arc::new(Server::of(blueprint.clone(), stopping.subscribe()))),
        Arc::new(LocalSessionManager::default()),
        config,
    )
}

/// `/mcp`: the dialects that the operator chose.
pub(super) async fn usual(
    State(hall): State<Arc<Hall>>,
    Extension(guest): Extension<Arc<Guest>>,
    request: Request,
) -> Response<Body> {
    let dialects = hall.settings.mcp_dialects.clone();
    carry(&hall, &guest, &dialects, request).await
}

/// `/mcp/{dialect}`: one dialect.
pub(super) async fn chosen(
    State(hall): State<Arc<Hall>>,
    Extension(guest): Extension<Arc<Guest>>,
    dialect: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response<Body> {
    match dialect {
        Ok(Path(dialect)) if dialect::names().contains(&dialect.as_str()) => {
            carry(&hall, &guest, &[dialect], request).await
        }
        Ok(_) | Err(_) => problem::turned(Turned::new(StatusCode::NOT_FOUND, "there is no such dialect")),
    }
}

async fn carry(hall: &Hall, guest: &Guest, dialects: &[String], request: Request) -> Response<Body> {
    let served = match guest.mcp(dialects, hall) {
        Ok(served) => served,
        Err(
            DialectError::Broken(_)
            | DialectError::Unknown(_)
            | DialectError::Clash { .. }
            | DialectError::Reach(_)
            | DialectError::Setting(_),
        ) => {
            let reason = "the server cannot serve what it was set to";
            return problem::turned(Turned::new(StatusCode::INTERNAL_SERVER_ERROR, reason));
        }
    };
    let place = match guest.request() {
        Ok(place) => place,
        Err(turned) => return problem::turned(turned),
    };
    let (head, body) = request.into_parts();
    let message = match operations::body(body).await {
        Ok(message) => message,
        Err(turned) => return problem::turned(turned),
    };
    if head.method == Method::POST
        && let Err(refused) = inspect(&message)
    {
        let id = refused.id.map(|id| id.into_json_value());
        let answer = json!({ "jsonrpc": "2.0", "id": id, "error": refused.error });
        return problem::json_body(StatusCode::BAD_REQUEST, &answer);
    }
    let response = served.handle(Request::from_parts(head, Full::new(Bytes::from(message)))).await;
    response.map(|body| Body::new(Placed { body, _place: place }))
}

/// An answer whose place is taken until the last of it is out.
struct Placed {
    body: BoxBody<Bytes, Infallible>,
    _place: OwnedSemaphorePermit,
}

impl HttpBody for Placed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
