//! The routes `/v1/workspaces` create, list, show and destroy workspaces and their tokens. Every request becomes one
//! [`WorkspaceAdminRequest`], which the [`WorkspaceRegistryAdmin`] executes.

use std::{
    convert::Infallible,
    io::{Read, Write},
    sync::Arc,
};

use axum::{
    extract::{FromRequest, FromRequestParts, Path, RawQuery, Request, rejection::PathRejection},
    http::{StatusCode, request::Parts},
};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use stead_engine::{Caller, Error};
use tokio::sync::Semaphore;

use super::{
    body,
    client_limits::HttpClientLimiter,
    errors::{self, HttpRejection, HttpResult},
    middleware, operations,
    state::HttpServerState,
};
use crate::limits::{ADMIN_REQUESTS_MAX, ARCHIVES_MAX};

/// A request to the workspace administration.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkspaceAdminRequest {
    /// The administration request lists one page of workspaces; its map may contain `cursor`, `limit` and `trash`.
    List(Map<String, Value>),
    /// The administration request creates a workspace; its map contains the `name` and the options.
    Create(Map<String, Value>),
    /// The administration request shows the named workspace.
    Show(String),
    /// The administration request destroys the named workspace.
    Destroy(String),
    /// The administration request copies a workspace; its map contains the `name` and the options of the copy.
    Fork(String, Map<String, Value>),
    /// The administration request restores a workspace from the trash; its map may contain a new `name`.
    Restore(String, Map<String, Value>),
    /// The administration request lists the tokens of the named workspace.
    ListTokens(String),
    /// The administration request creates a token for a workspace; its map contains the options of the token.
    CreateToken(String, Map<String, Value>),
    /// The administration request revokes a token, given by the workspace name and the id of the token.
    RevokeToken(String, String),
}

/// Information about a workspace export that is known before the first byte of the archive is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkspaceExportStartInfo {
    /// The number of links, pipes and other special files that the exported archive omits.
    pub omitted_files: u64,
}

/// A workspace registry admin executes administration requests for workspaces.
pub trait WorkspaceRegistryAdmin: Send + Sync + 'static {
    /// Executes one administration request, on a thread that may block.
    fn run_request(&self, caller: &Caller, request: WorkspaceAdminRequest) -> Result<Value, Error>;

    /// Exports a workspace as an archive to `out`, and calls `begin` before the first byte is written.
    fn export_workspace(
        &self,
        caller: &Caller,
        name: &str,
        begin: &mut dyn FnMut(WorkspaceExportStartInfo),
        out: &mut dyn Write,
    ) -> Result<(), Error>;

    /// Creates a workspace from the files in an archive.
    fn import_workspace(
        &self,
        caller: &Caller,
        name: &str,
        options: Map<String, Value>,
        archive: &mut dyn Read,
    ) -> Result<Value, Error>;
}

pub(super) struct AuthenticatedAdminCaller {
    pub(super) caller: Caller,
    pub(super) limits: Arc<HttpClientLimiter>,
}

pub(super) struct AdminConcurrencyLimits {
    requests: Arc<Semaphore>,
    pub(super) archives: Arc<Semaphore>,
}

impl Default for AdminConcurrencyLimits {
    fn default() -> Self {
        Self {
            requests: Arc::new(Semaphore::new(ADMIN_REQUESTS_MAX)),
            archives: Arc::new(Semaphore::new(ARCHIVES_MAX)),
        }
    }
}

/// A server with a single workspace has no administration, and rejects administration requests.
pub(super) struct AdminRequestContext {
    pub(super) state: Arc<HttpServerState>,
    pub(super) workspace_admin: Arc<dyn WorkspaceRegistryAdmin>,
    pub(super) caller: Caller,
}

impl FromRequestParts<Arc<HttpServerState>> for AdminRequestContext {
    type Rejection = HttpRejection;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpServerState>) -> Result<Self, Self::Rejection> {
        let admin = parts.extensions.get::<Arc<AuthenticatedAdminCaller>>();
        let single = "this server serves one workspace; start it with --workspaces to serve many";
        let (workspace_admin, admin) =
            state.workspace_admin().zip(admin).ok_or_else(|| HttpRejection::not_found(single))?;
        Ok(Self { state: state.clone(), workspace_admin: workspace_admin.clone(), caller: admin.caller.clone() })
    }
}

impl AdminRequestContext {
    async fn run_request(self, request: WorkspaceAdminRequest, success: StatusCode) -> HttpResult {
        let AdminRequestContext { state, workspace_admin, caller } = self;
        let shutting_down = HttpRejection::unavailable("the server is shutting down; retry when it runs again");
        let permit = state.admin_limits.requests.clone().acquire_owned().await.map_err(|_| shutting_down)?;
        let task = tokio::task::spawn_blocking(move || {
            let result = workspace_admin.run_request(&caller, request);
            drop(permit);
            result
        });
        let aborted = HttpRejection::internal_error(
            "internal error: the request was aborted; GET /v1/workspaces shows what was done",
        );
        let value = task.await.map_err(|_| aborted)??;
        Ok(errors::json_response(success, &value))
    }
}

/// A workspace name that is not UTF-8 becomes empty, and [`WorkspaceRegistryAdmin`] rejects an empty workspace name.
pub(super) struct WorkspaceNameInUrl(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for WorkspaceNameInUrl {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let name = Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(name.map(|Path(name)| name).unwrap_or_default()))
    }
}

pub(super) struct AdminBody(Map<String, Value>);

impl<S: Sync> FromRequest<S> for AdminBody {
    type Rejection = HttpRejection;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Self::Rejection> {
        let (head, body) = request.into_parts();
        middleware::require_json(&head.headers)?;
        operations::parse_arguments(&body::read_short_body(body).await?).map(Self)
    }
}

/// Numbers and booleans in the query become JSON numbers and booleans. A query parameter without a value becomes
/// `true`.
pub(super) fn parse_query(query: Option<&str>) -> Map<String, Value> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let value = match (value, value.parse::<u64>()) {
                (_, Ok(number)) => Value::from(number),
                ("true", _) => Value::from(true),
                ("false", _) => Value::from(false),
                (text, Err(_)) => Value::from(decode_query_value(text)),
            };
            (key.to_owned(), value)
        })
        .collect()
}

/// Invalid escapes in a query parameter, such as `%zz`, stay unchanged.
fn decode_query_value(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

pub(super) async fn list_workspaces(context: AdminRequestContext, RawQuery(query): RawQuery) -> HttpResult {
    context.run_request(WorkspaceAdminRequest::List(parse_query(query.as_deref())), StatusCode::OK).await
}

pub(super) async fn create_workspace(context: AdminRequestContext, AdminBody(options): AdminBody) -> HttpResult {
    context.run_request(WorkspaceAdminRequest::Create(options), StatusCode::CREATED).await
}

pub(super) async fn show_workspace(
    context: AdminRequestContext,
    WorkspaceNameInUrl(name): WorkspaceNameInUrl,
) -> HttpResult {
    context.run_request(WorkspaceAdminRequest::Show(name), StatusCode::OK).await
}

pub(super) async fn destroy_workspace(
    context: AdminRequestContext,
    WorkspaceNameInUrl(name): WorkspaceNameInUrl,
) -> HttpResult {
    context.run_request(WorkspaceAdminRequest::Destroy(name), StatusCode::OK).await
}

pub(super) async fn fork_workspace(
    context: AdminRequestContext,
    WorkspaceNameInUrl(name): WorkspaceNameInUrl,
    AdminBody(options): AdminBody,
) -> HttpResult {
    context.run_request(WorkspaceAdminRequest::Fork(name, options), StatusCode::CREATED).await
}

pub(super) async fn restore_workspace(
    context: AdminRequestContext,
    WorkspaceNameInUrl(name): WorkspaceNameInUrl,
    AdminBody(options): AdminBody,
) -> HttpResult {
    context.run_request(WorkspaceAdminRequest::Restore(name, options), StatusCode::OK).await
}

pub(super) async fn list_tokens(
    context: AdminRequestContext,
    WorkspaceNameInUrl(name): WorkspaceNameInUrl,
) -> HttpResult {
    context.run_request(WorkspaceAdminRequest::ListTokens(name), StatusCode::OK).await
}

pub(super) async fn create_token(
    context: AdminRequestContext,
    WorkspaceNameInUrl(name): WorkspaceNameInUrl,
    AdminBody(options): AdminBody,
) -> HttpResult {
    context.run_request(WorkspaceAdminRequest::CreateToken(name, options), StatusCode::CREATED).await
}

pub(super) async fn revoke_token(
    context: AdminRequestContext,
    path: Result<Path<(String, String)>, PathRejection>,
) -> HttpResult {
    let (name, id) = path.map(|Path(path)| path).unwrap_or_default();
    context.run_request(WorkspaceAdminRequest::RevokeToken(name, id), StatusCode::OK).await
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
