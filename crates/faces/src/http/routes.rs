//! Which address is served by whom.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{Response, StatusCode},
    middleware,
    routing::{any, delete, get, post, put},
};
use serde_json::json;

use super::{
    Steward, archive, enter, estate, events, files,
    guard::Turned,
    hall::Hall,
    mcp,
    metadata::{self, WELL_KNOWN},
    metrics, operations, problem, rpc,
};

/// A part of the server, as counters name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Route {
    Mcp,
    Rpc,
    Files,
    Operations,
    Workspaces,
    Document,
    Events,
    Health,
    Metrics,
    /// Which authorization server there is.
    Metadata,
    Elsewhere,
}

impl Route {
    /// Its name in counters.
    pub(super) fn word(self) -> &'static str {
        match self {
            Route::Mcp => "mcp",
            Route::Rpc => "rpc",
            Route::Files => "files",
            Route::Operations => "operations",
            Route::Workspaces => "workspaces",
            Route::Document => "document",
            Route::Events => "events",
            Route::Health => "health",
            Route::Metrics => "metrics",
            Route::Metadata => "metadata",
            Route::Elsewhere => "elsewhere",
        }
    }

    /// Whether it says nothing that needs a token.
    pub(super) fn is_open(self) -> bool {
        match self {
            Route::Health | Route::Metadata => true,
            Route::Mcp
            | Route::Rpc
            | Route::Files
            | Route::Operations
            | Route::Workspaces
            | Route::Document
            | Route::Events
            | Route::Metrics
            | Route::Elsewhere => false,
        }
    }

    /// Whether what is posted there is JSON.
    pub(super) fn takes_json(self) -> bool {
        match self {
            Route::Mcp | Route::Rpc | Route::Operations => true,
            // Some of it is archives: who takes JSON there looks for itself.
            Route::Workspaces
            | Route::Files
            | Route::Document
            | Route::Events
            | Route::Health
            | Route::Metrics
            | Route::Metadata
            | Route::Elsewhere => false,
        }
    }
}

/// Who may go somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// Everybody who is admitted.
    Anybody,
    /// A client of a workspace.
    Guest,
    /// Whoever administers workspaces.
    Overseer,
}

impl Route {
    /// Who may go there, where there are many workspaces and where there is one. Counters are about all of them together.
    pub(super) fn wants(self, steward: Option<&Arc<dyn Steward>>) -> Wants {
        match self {
            Route::Mcp | Route::Rpc | Route::Files | Route::Operations | Route::Events => Wants::Guest,
            Route::Workspaces | Route::Metrics if steward.is_some() => Wants::Overseer,
            Route::Workspaces
            | Route::Metrics
            | Route::Document
            | Route::Health
            | Route::Metadata
            | Route::Elsewhere => Wants::Anybody,
        }
    }
}

/// The part that a path belongs to.
pub(super) fn named(path: &str) -> Route {
    let mut parts = path.trim_start_matches('/').splitn(3, '/');
    match (parts.next(), parts.next()) {
        (Some("mcp"), _) => Route::Mcp,
        (Some("rpc"), None) => Route::Rpc,
        (Some("v1"), Some("files")) => Route::Files,
        (Some("v1"), Some("workspaces")) => Route::Workspaces,
        (Some("v1"), Some("openapi.json")) => Route::Document,
        (Some("v1"), Some(_)) => Route::Operations,
        (Some("events"), None) => Route::Events,
        (Some("health"), None) => Route::Health,
        (Some("metrics"), None) => Route::Metrics,
        (Some(".well-known"), Some("oauth-protected-resource")) => Route::Metadata,
        _ => Route::Elsewhere,
    }
}

/// Every address.
pub(super) fn router(hall: Arc<Hall>) -> Router {
    Router::new()
        .route("/mcp", any(mcp::usual))
        .route("/mcp/{dialect}", any(mcp::chosen))
        .route("/rpc", get(rpc::socket).post(rpc::post))
        .route("/v1/openapi.json", get(operations::document))
        .route("/v1/files/{*path}", get(files::get).put(files::put).delete(files::delete))
        .route("/v1/{operation}", post(operations::call))
        .route("/v1/workspaces", get(estate::list).post(estate::create))
        .route("/v1/workspaces/{name}", get(estate::show).delete(estate::destroy))
        .route("/v1/workspaces/{name}/fork", post(estate::fork))
        .route("/v1/workspaces/{name}/export", get(archive::export))
        .route("/v1/workspaces/{name}/import", put(archive::import))
        .route("/v1/workspaces/{name}/restore", post(estate::restore))
        .route("/v1/workspaces/{name}/tokens", get(estate::tokens).post(estate::make_token))
        .route("/v1/workspaces/{name}/tokens/{id}", delete(estate::revoke))
        .route("/events", get(events::stream))
        .route("/health", get(health))
        .route("/metrics", get(metrics::show))
        .route(WELL_KNOWN, get(metadata::whole))
        .route(&format!("{WELL_KNOWN}/{{*path}}"), get(metadata::one))
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(middleware::from_fn_with_state(hall.clone(), enter::enter))
        .with_state(hall)
}

async fn health(State(hall): State<Arc<Hall>>) -> Response<Body> {
    let stopping = *hall.stopping.borrow();
    let status = if stopping { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let word = if stopping { "stopping" } else { "ok" };
    problem::json_body(status, &json!({ "status": word, "version": env!("CARGO_PKG_VERSION") }))
}

async fn nowhere() -> Response<Body> {
    problem::turned(Turned::new(
        StatusCode::NOT_FOUND,
        "nothing is served here; there are /mcp, /rpc, /v1, /events, /health and /metrics",
    ))
}

async fn not_so() -> Response<Body> {
    problem::turned(Turned::new(StatusCode::METHOD_NOT_ALLOWED, "this address does not take that method"))
}
