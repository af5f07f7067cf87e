//! MCP over Streamable HTTP, in both eras: the protocol library carries the messages, after each has been checked as
//! strictly as a line of standard input. Sessions of the earlier era belong to the client that began them: each client
//! has its own, so that nobody can go on in another's.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    extract::{Path, Request, State, rejection::PathRejection},
    http::{Method, Response, StatusCode, header},
};
use engine::Caller;
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde_json::json;

use super::{
    bodies,
    guard::Turned,
    guest::Placed,
    hall::Hall,
    limits::{BODY_BYTES_MAX, STREAM_ALIVE},
    problem,
};
use crate::{
    dialect::{self, DialectError, Dialects},
    mcp::{Blueprint, Server, inspect},
    run::Runner,
};

/// A client's MCP server.
pub(super) type Served = StreamableHttpService<Arc<Server>, LocalSessionManager>;

/// Makes one.
pub(super) fn serve(runner: &Arc<Runner>, caller: &Caller, dialects: Dialects, hall: &Hall) -> Served {
    let own = Blueprint::new(runner.clone(), caller.clone(), dialects);
    let blueprint = Arc::new(match &hall.keeping.annex {
        Some(annex) => own.with_annex(annex.clone()),
        None => own,
    });
    let config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_sse_keep_alive(Some(STREAM_ALIVE))
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        // The way in has judged both already.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let stopping = hall.stopping.clone();
    StreamableHttpService::new(
        move || Ok(Arc::new(Server::of(blueprint.clone(), stopping.subscribe()))),
        Arc::new(LocalSessionManager::default()),
        config,
    )
}

/// `/mcp`: the dialects that the operator chose.
pub(super) async fn usual(State(hall): State<Arc<Hall>>, placed: Placed, request: Request) -> Response<Body> {
    let dialects = hall.settings.mcp_dialects.clone();
    carry(&hall, placed, &dialects, request).await
}

/// `/mcp/{dialect}`: one dialect.
pub(super) async fn chosen(
    State(hall): State<Arc<Hall>>,
    placed: Placed,
    dialect: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response<Body> {
    match dialect {
        Ok(Path(dialect)) if dialect::names().contains(&dialect.as_str()) => {
            carry(&hall, placed, &[dialect], request).await
        }
        Ok(_) | Err(_) => problem::turned(Turned::new(StatusCode::NOT_FOUND, "there is no such dialect")),
    }
}

async fn carry(hall: &Hall, placed: Placed, dialects: &[String], request: Request) -> Response<Body> {
    let Placed { guest, place } = placed;
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
    let (head, body) = request.into_parts();
    let mut message = match bodies::read(&guest.allowance, body).await {
        Ok(message) => message,
        Err(turned) => return problem::turned(turned),
    };
    if head.method == Method::POST
        && let Err(refused) = inspect(&message.bytes)
    {
        let id = refused.id.map(|id| id.into_json_value());
        let answer = json!({ "jsonrpc": "2.0", "id": id, "error": refused.error });
        return problem::json_body(StatusCode::BAD_REQUEST, &answer);
    }
    let bytes = Bytes::from(std::mem::take(&mut message.bytes));
    let ends_session = head.method == Method::DELETE;
    let mut response = served.handle(Request::from_parts(head, Full::new(bytes))).await;
    if ends_session && response.status() == StatusCode::ACCEPTED {
        // The session is over and not only about to be; clients take anything else for a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    let said = response.headers().get(header::CONTENT_TYPE);
    let is_stream = said.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if !is_stream {
        return response.map(Body::new);
    }
    // The place is taken until the last of the stream is out.
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _taken = &place;
            frame
        }))
    })
}
