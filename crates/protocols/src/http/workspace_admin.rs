//! `/v1/workspaces`: creates, lists, shows and destroys workspaces and their tokens. Every request becomes one
//! [`AdminRequest`], which the [`WorkspaceAdmin`] executes.

use std::{
    io::{Read, Write},
    sync::Arc,
};

use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Path, RawQuery, Request, State, rejection::PathRejection},
    http::{Response, StatusCode, request::Parts},
};
use serde_json::{Map, Value};
use stead_engine::{Caller, Error};
use tokio::sync::Semaphore;

use super::{
    body,
    client_limits::ClientLimits,
    errors,
    host_check::HttpRejection,
    limits::{ADMIN_REQUESTS_MAX, ARCHIVES_MAX},
    middleware, operations,
    state::ServerState,
};

/// A request to the workspace administration.
#[derive(Debug, Clone, PartialEq)]
pub enum AdminRequest {
    /// Lists a page of workspaces: `cursor`, `limit`, `trash`.
    List(Map<String, Value>),
    /// Creates a workspace: `name` and its options.
    Create(Map<String, Value>),
    /// Shows a workspace.
    Show(String),
    /// Destroys a workspace.
    Destroy(String),
    /// Copies a workspace: `name` of the copy and its options.
    Fork(String, Map<String, Value>),
    /// Restores a workspace from the trash, optionally under another `name`.
    Restore(String, Map<String, Value>),
    /// Lists the tokens of a workspace.
    ListTokens(String),
    /// Creates a token for a workspace.
    CreateToken(String, Map<String, Value>),
    /// Revokes a token of a workspace.
    RevokeToken(String, String),
}

/// Facts about an archive, known before its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkspaceExportSummary {
    /// Number of links, pipes and other special files that the archive omits.
    pub omitted_files: u64,
}

/// Administers workspaces.
pub trait WorkspaceAdmin: Send + Sync + 'static {
    /// Executes one request. Called on a thread that may block.
    fn run_request(&self, caller: &Caller, request: AdminRequest) -> Result<Value, Error>;

    /// Writes a workspace as an archive. `begin` is called before the first byte.
    fn export_workspace(
        &self,
        caller: &Caller,
        name: &str,
        begin: &mut dyn FnMut(WorkspaceExportSummary),
        out: &mut dyn Write,
    ) -> Result<(), Error>;

    /// Creates a workspace from an archive.
    fn import_workspace(
        &self,
        caller: &Caller,
        name: &str,
        options: Map<String, Value>,
        archive: &mut dyn Read,
    ) -> Result<Value, Error>;
}

/// A client with an admin token.
pub(super) struct AdminClient {
    pub(super) caller: Caller,
    pub(super) limits: Arc<ClientLimits>,
}

/// Concurrency limits of administration.
pub(super) struct AdminLimits {
    requests: Arc<Semaphore>,
    pub(super) archives: Arc<Semaphore>,
}

impl Default for AdminLimits {
    fn default() -> Self {
        Self {
            requests: Arc::new(Semaphore::new(ADMIN_REQUESTS_MAX)),
            archives: Arc::new(Semaphore::new(ARCHIVES_MAX)),
        }
    }
}

/// The administration and its caller. Extraction fails on a server with a single workspace.
pub(super) struct AdminContext {
    pub(super) workspace_admin: Arc<dyn WorkspaceAdmin>,
    pub(super) caller: Caller,
}

impl FromRequestParts<Arc<ServerState>> for AdminContext {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ServerState>) -> Result<Self, Self::Rejection> {
        let admin = parts.extensions.get::<Arc<AdminClient>>();
        match (state.workspace_admin(), admin) {
            (Some(workspace_admin), Some(admin)) => {
                Ok(Self { workspace_admin: workspace_admin.clone(), caller: admin.caller.clone() })
            }
            (None, _) | (Some(_), None) => {
                let reason = "this server serves one workspace; start it with --workspaces to serve many";
                Err(errors::rejection_response(HttpRejection::new(StatusCode::NOT_FOUND, reason)))
            }
        }
    }
}

/// Executes one request and builds the response.
async fn run_admin_request(
    state: &ServerState,
    context: AdminContext,
    request: AdminRequest,
    success: StatusCode,
) -> Response<Body> {
    let AdminContext { workspace_admin, caller } = context;
    let shutting_down = || {
        errors::rejection_response(HttpRejection::new(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down"))
    };
    let Ok(permit) = state.admin_limits.requests.clone().acquire_owned().await else {
        return shutting_down();
    };
    let task = tokio::task::spawn_blocking(move || {
        let result = workspace_admin.run_request(&caller, request);
        drop(permit);
        result
    });
    match task.await {
        Ok(result) => admin_response(result, success),
        Err(_) => errors::rejection_response(HttpRejection::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal error: the request was aborted",
        )),
    }
}

pub(super) fn admin_response(result: Result<Value, Error>, success: StatusCode) -> Response<Body> {
    match result {
        Ok(value) => errors::json_response(success, &value),
        Err(error) => errors::error_response(&error, &error.to_json()),
    }
}

pub(super) type WorkspaceNamePath = Result<Path<String>, PathRejection>;

/// The workspace name in the URL; empty if it is not UTF-8, which [`WorkspaceAdmin`] rejects.
pub(super) fn workspace_name(name: WorkspaceNamePath) -> String {
    name.map(|Path(name)| name).unwrap_or_default()
}

/// The JSON object in a request body.
pub(super) struct AdminBody(Map<String, Value>);

impl<S: Sync> FromRequest<S> for AdminBody {
    type Rejection = Response<Body>;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Self::Rejection> {
        let (head, body) = request.into_parts();
        middleware::require_json(&head.headers).map_err(errors::rejection_response)?;
        let read = body::read_short_body(body).await.and_then(|bytes| operations::parse_arguments(&bytes));
        read.map(Self).map_err(errors::rejection_response)
    }
}

/// Parses query parameters; numbers and booleans become JSON numbers and booleans.
pub(super) fn parse_query(query: Option<&str>) -> Map<String, Value> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let value = match (value, value.parse::<u64>()) {
                (_, Ok(number)) => Value::from(number),
                ("true", _) => Value::from(true),
                ("false", _) => Value::from(false),
                (text, Err(_)) => Value::from(percent_decode(text)),
            };
            (key.to_owned(), value)
        })
        .collect()
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = escaped
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, first) {
            (Some(byte), _) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (None, b'+') => {
                bytes.push(b' ');
                rest = after;
            }
            (None, other) => {
                bytes.push(*other);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `GET /v1/workspaces`.
pub(super) async fn list_workspaces(
    State(state): State<Arc<ServerState>>,
    context: AdminContext,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    let options = parse_query(query.as_deref());
    run_admin_request(&state, context, AdminRequest::List(options), StatusCode::OK).await
}

/// `POST /v1/workspaces`.
pub(super) async fn create_workspace(
    State(state): State<Arc<ServerState>>,
    context: AdminContext,
    AdminBody(options): AdminBody,
) -> Response<Body> {
    run_admin_request(&state, context, AdminRequest::Create(options), StatusCode::CREATED).await
}

/// `GET /v1/workspaces/{name}`.
pub(super) async fn show_workspace(
    State(state): State<Arc<ServerState>>,
    context: AdminContext,
    name: WorkspaceNamePath,
) -> Response<Body> {
    run_admin_request(&state, context, AdminRequest::Show(workspace_name(name)), StatusCode::OK).await
}

/// `DELETE /v1/workspaces/{name}`.
pub(super) async fn destroy_workspace(
    State(state): State<Arc<ServerState>>,
    context: AdminContext,
    name: WorkspaceNamePath,
) -> Response<Body> {
    run_admin_request(&state, context, AdminRequest::Destroy(workspace_name(name)), StatusCode::OK).await
}

/// `POST /v1/workspaces/{name}/fork`.
pub(super) async fn fork_workspace(
    State(state): State<Arc<ServerState>>,
    context: AdminContext,
    name: WorkspaceNamePath,
    AdminBody(options): AdminBody,
) -> Response<Body> {
    run_admin_request(&state, context, AdminRequest::Fork(workspace_name(name), options), StatusCode::CREATED).await
}

/// `POST /v1/workspaces/{name}/restore`.
pub(super) async fn restore_workspace(
    State(state): State<Arc<ServerState>>,
    context: AdminContext,
    name: WorkspaceNamePath,
    AdminBody(options): AdminBody,
) -> Response<Body> {
    run_admin_request(&state, context, AdminRequest::Restore(workspace_name(name), options), StatusCode::OK).await
}

/// `GET /v1/workspaces/{name}/tokens`.
pub(super) async fn list_tokens(
    State(state): State<Arc<ServerState>>,
    context: AdminContext,
    name: WorkspaceNamePath,
) -> Response<Body> {
    run_admin_request(&state, context, AdminRequest::ListTokens(workspace_name(name)), StatusCode::OK).await
}

/// `POST /v1/workspaces/{name}/tokens`.
pub(super) async fn create_token(
    State(state): State<Arc<ServerState>>,
    context: AdminContext,
    name: WorkspaceNamePath,
    AdminBody(options): AdminBody,
) -> Response<Body> {
    run_admin_request(&state, context, AdminRequest::CreateToken(workspace_name(name), options), StatusCode::CREATED)
        .await
}

/// `DELETE /v1/workspaces/{name}/tokens/{id}`.
pub(super) async fn revoke_token(
    State(state): State<Arc<ServerState>>,
    context: AdminContext,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Response<Body> {
    let (name, id) = path.map(|Path(path)| path).unwrap_or_default();
    run_admin_request(&state, context, AdminRequest::RevokeToken(name, id), StatusCode::OK).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_query_parameters() {
        let read = parse_query(Some("limit=3&cursor=a%2Eb+c&trash&label=%zz&x=%"));
        let expected = json!({ "limit": 3, "cursor": "a.b c", "trash": true, "label": "%zz", "x": "%" });
        assert_eq!(Value::Object(read), expected);
        assert_eq!(parse_query(None), Map::new());
    }
}
