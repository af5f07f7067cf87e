//! MCP over Streamable HTTP, in the protocol versions with and without sessions. The library `rmcp` transports the MCP
//! messages, and each message is first checked as strictly as over stdio. Each client has its own list of sessions, so
//! that no client can use a session of another client.

use std::sync::{Arc, LazyLock};

use axum::{
    body::Bytes,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{Method, StatusCode},
};
use http_body_util::Full;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde_json::json;
use stead_engine::Caller;

use super::{
    body,
    client::ClientRequestPermit,
    errors::{self, HttpRejection, HttpResult},
    state::HttpServerState,
};
use crate::{
    call_executor::CallExecutor,
    dialect::{self, DialectSet},
    limits::{BODY_BYTES_MAX, STREAM_KEEPALIVE_INTERVAL},
    mcp::{McpClientRequestHandler, McpSharedState, check_line},
};

pub(super) type McpHttpService = StreamableHttpService<Arc<McpClientRequestHandler>, LocalSessionManager>;

pub(super) fn build_service(
    executor: &Arc<CallExecutor>,
    caller: &Caller,
    dialects: DialectSet,
    state: &HttpServerState,
) -> McpHttpService {
    let mut shared = McpSharedState::new(executor.clone(), caller.clone(), dialects);
    state.options.mcp_extension.iter().for_each(|extension| shared.add_extension(extension));
    let shared = Arc::new(shared);
    let config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_sse_keep_alive(Some(STREAM_KEEPALIVE_INTERVAL))
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        // The middleware has already checked Host and Origin.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let shutdown = state.shutdown.clone();
    StreamableHttpService::new(
        move || Ok(Arc::new(McpClientRequestHandler::new(shared.clone(), shutdown.subscribe()))),
        Arc::new(LocalSessionManager::default()),
        config,
    )
}

pub(super) async fn serve_default_dialects(
    State(state): State<Arc<HttpServerState>>,
    request_permit: ClientRequestPermit,
    request: Request,
) -> HttpResult {
    let dialects = state.config.mcp_dialects.clone();
    forward_to_service(&state, request_permit, &dialects, request).await
}

pub(super) async fn serve_named_dialect(
    State(state): State<Arc<HttpServerState>>,
    request_permit: ClientRequestPermit,
    dialect: Result<Path<String>, PathRejection>,
    request: Request,
) -> HttpResult {
    match dialect {
        Ok(Path(dialect)) if dialect::dialect_names().contains(&dialect.as_str()) => {
            forward_to_service(&state, request_permit, &[dialect], request).await
        }
        Ok(_) | Err(_) => Err(HttpRejection::not_found(UNKNOWN_DIALECT.as_str()).into()),
    }
}

static UNKNOWN_DIALECT: LazyLock<String> = LazyLock::new(|| {
    let endpoints: Vec<String> = dialect::dialect_names().iter().map(|name| format!("/mcp/{name}")).collect();
    format!("unknown dialect; available: {}", endpoints.join(", "))
});

async fn forward_to_service(
    state: &HttpServerState,
    request_permit: ClientRequestPermit,
    dialects: &[String],
    request: Request,
) -> HttpResult {
    let ClientRequestPermit { client, permit } = request_permit;
    let service = client.mcp_service(dialects, state)?;
    let (head, body) = request.into_parts();
    let mut message = body::read_body(&client.limits, body).await?;
    if head.method == Method::POST
        && let Err(malformed) = check_line(&message.bytes)
    {
        let id = malformed.id.map(|id| id.into_json_value());
        let response_json = json!({ "jsonrpc": "2.0", "id": id, "error": malformed.error });
        return Ok(errors::json_response(StatusCode::BAD_REQUEST, &response_json));
    }
    let bytes = Bytes::from(std::mem::take(&mut message.bytes));
    let ends_session = head.method == Method::DELETE;
    let mut response = service.handle(Request::from_parts(head, Full::new(bytes))).await;
    if ends_session && response.status() == StatusCode::ACCEPTED {
        // The session has ended. The status 202 is replaced, because some clients treat it as a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    Ok(body::hold_while_streaming(response, permit))
}
