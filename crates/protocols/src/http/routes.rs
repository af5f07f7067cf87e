//! The routes of the HTTP server, and the role that each route requires.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{Response, StatusCode},
    middleware,
    routing::{any, get, post},
};
use serde_json::json;

use super::{
    declared_routes,
    errors::{self, HttpRejection},
    event_stream, mcp, metrics, middleware as http_middleware,
    oauth_metadata::{self, METADATA_PATH},
    operations, rpc,
    state::HttpServerState,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum HttpRouteGroup {
    Mcp,
    Rpc,
    Files,
    Operations,
    Workspaces,
    OpenApi,
    Events,
    Health,
    Metrics,
    OAuthMetadata,
    Unknown,
}

impl HttpRouteGroup {
    pub(super) fn name(self) -> &'static str {
        match self {
            HttpRouteGroup::Mcp => "mcp",
            HttpRouteGroup::Rpc => "rpc",
            HttpRouteGroup::Files => "files",
            HttpRouteGroup::Operations => "operations",
            HttpRouteGroup::Workspaces => "workspaces",
            HttpRouteGroup::OpenApi => "document",
            HttpRouteGroup::Events => "events",
            HttpRouteGroup::Health => "health",
            HttpRouteGroup::Metrics => "metrics",
            HttpRouteGroup::OAuthMetadata => "metadata",
            HttpRouteGroup::Unknown => "elsewhere",
        }
    }

    pub(super) fn needs_no_token(self) -> bool {
        matches!(self, HttpRouteGroup::Health | HttpRouteGroup::OAuthMetadata)
    }

    /// Requests to `/v1/workspaces` may contain archives, so their handlers check the content type themselves.
    pub(super) fn expects_json(self) -> bool {
        matches!(self, HttpRouteGroup::Mcp | HttpRouteGroup::Rpc | HttpRouteGroup::Operations)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpRouteRequiredRole {
    Any,
    UseFiles,
    Administer,
}

impl HttpRouteGroup {
    /// If the server hosts several workspaces, the metrics cover all of them and require an administrator. The engine
    /// checks the right to each operation.
    pub(super) fn required_role(self, state: &HttpServerState) -> HttpRouteRequiredRole {
        let is_shared = matches!(self, HttpRouteGroup::Workspaces | HttpRouteGroup::Metrics);
        if matches!(self, HttpRouteGroup::Files | HttpRouteGroup::Events) {
            HttpRouteRequiredRole::UseFiles
        } else if is_shared && state.hosts_workspaces() {
            HttpRouteRequiredRole::Administer
        } else {
            HttpRouteRequiredRole::Any
        }
    }
}

pub(super) fn route_of_path(path: &str) -> HttpRouteGroup {
    let mut parts = path.trim_start_matches('/').splitn(3, '/');
    match (parts.next(), parts.next()) {
        (Some("mcp"), _) => HttpRouteGroup::Mcp,
        (Some("rpc"), None) => HttpRouteGroup::Rpc,
        (Some("v1"), Some("files")) => HttpRouteGroup::Files,
        (Some("v1"), Some("workspaces")) => HttpRouteGroup::Workspaces,
        (Some("v1"), Some("openapi.json")) => HttpRouteGroup::OpenApi,
        (Some("v1"), Some(_)) => HttpRouteGroup::Operations,
        (Some("events"), None) => HttpRouteGroup::Events,
        (Some("health"), None) => HttpRouteGroup::Health,
        (Some("metrics"), None) => HttpRouteGroup::Metrics,
        (Some(".well-known"), Some("oauth-protected-resource")) => HttpRouteGroup::OAuthMetadata,
        _ => HttpRouteGroup::Unknown,
    }
}

pub(super) fn build_router(state: Arc<HttpServerState>) -> Router {
    declared_routes::add_declared_routes(Router::new())
        .route("/mcp", any(mcp::serve_default_dialects))
        .route("/mcp/{dialect}", any(mcp::serve_named_dialect))
        .route("/rpc", get(rpc::upgrade_websocket).post(rpc::serve_post))
        .route("/v1/openapi.json", get(operations::serve_openapi))
        .route("/v1/files/{*path}", get(operations::get_file).put(operations::put_file).delete(operations::delete_file))
        .route("/v1/{operation}", post(operations::call_operation))
        .route("/events", get(event_stream::serve_event_stream))
        .route("/health", get(serve_health))
        .route("/metrics", get(metrics::serve_metrics))
        .route(METADATA_PATH, get(oauth_metadata::server_metadata))
        .route(&format!("{METADATA_PATH}/{{*path}}"), get(oauth_metadata::route_metadata))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(state.clone(), http_middleware::authenticate_and_log))
        .with_state(state)
}

async fn serve_health(State(state): State<Arc<HttpServerState>>) -> Response<Body> {
    let stopping = *state.shutdown.borrow();
    let status = if stopping { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let text = if stopping { "stopping" } else { "ok" };
    errors::json_response(status, &json!({ "status": text, "version": env!("CARGO_PKG_VERSION") }))
}

async fn not_found() -> HttpRejection {
    HttpRejection::not_found(
        "there is no such endpoint; available: /mcp, /mcp/DIALECT, /rpc, /v1/OPERATION, /v1/files/PATH, /v1/openapi.json, /events, /health, /metrics",
    )
}

async fn method_not_allowed() -> HttpRejection {
    HttpRejection::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this endpoint does not support the request method; the Allow header lists the methods",
    )
}
