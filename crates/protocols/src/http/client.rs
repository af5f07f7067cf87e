//! An authenticated client of a workspace: its identity, its MCP and JSON-RPC servers, and its limits.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, request::Parts},
};
use serde_json::{Map, Value};
use stead_engine::{CallByteStream, CallControl, Caller, CallerResourceLifetime, Engine, Error, SecretTransport};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    AuthenticatedClientIdentity,
    client_limits::HttpClientLimiter,
    errors::HttpRejection,
    mcp::{self, McpHttpService},
    state::{HttpServerConfig, HttpServerState},
};
use crate::{
    call_executor::{
        CallExecutor, CallRequest, CallResultOrAbortError, OtherRequestsPending, WorkspaceConcurrentCallLimiter,
    },
    dialect::{self, DialectReply, DialectSet, DialectWorkspaceRootPath},
    limits::{CLIENT_NAME_CHARS_MAX, REQUESTS_PER_CLIENT_MAX},
    native::JsonCall,
    prepared_call::PreparedCall,
    rpc::RpcServer,
};

const SESSION_HEADER: &str = "stead-session";
pub(crate) const IDEMPOTENCY_KEY_HEADER: &str = "idempotency-key";

pub(super) struct AuthenticatedHttpClient {
    pub(super) client_key: String,
    pub(super) workspace_id: String,
    pub(super) caller: Caller,
    pub(super) executor: Arc<CallExecutor>,
    /// The JSON-RPC server and the MCP services are built on first use, because most clients use only one protocol.
    rpc_server: OnceLock<Arc<RpcServer>>,
    native_dialects: Arc<DialectSet>,
    mcp_services: Mutex<HashMap<String, McpHttpService>>,
    location: DialectWorkspaceRootPath,
    pub(super) limits: Arc<HttpClientLimiter>,
}

/// The request permit counts an HTTP request against the limit of its client.
pub(super) struct ClientRequestPermit {
    pub(super) client: Arc<AuthenticatedHttpClient>,
    pub(super) permit: OwnedSemaphorePermit,
}

impl<S: Sync> FromRequestParts<S> for ClientRequestPermit {
    type Rejection = HttpRejection;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let missing = HttpRejection::unauthorized("missing token; send 'Authorization: Bearer TOKEN'");
        let client = parts.extensions.get::<Arc<AuthenticatedHttpClient>>().cloned().ok_or(missing)?;
        let permit = client.acquire_request_permit()?;
        Ok(Self { client, permit })
    }
}

#[derive(Debug, Default)]
pub(super) struct CallHeaders {
    session: Option<String>,
    idempotency_key: Option<String>,
}

impl CallHeaders {
    /// An idempotency key that is not readable text becomes an empty key, and the engine refuses a call with an empty
    /// key. Ignoring an invalid idempotency key could apply a repeated change twice.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().to_owned());
        let session = text(SESSION_HEADER).map(|session| session.chars().take(CLIENT_NAME_CHARS_MAX).collect());
        Self {
            session: session.filter(|session: &String| !session.is_empty()),
            idempotency_key: text(IDEMPOTENCY_KEY_HEADER),
        }
    }

    pub(super) fn into_parts(self) -> (Option<String>, Option<String>) {
        (self.session, self.idempotency_key)
    }

    pub(super) fn caller_in_session(&self, caller: &Caller) -> Caller {
        let mut caller = caller.clone();
        if let Some(session) = &self.session {
            caller.session.clone_from(session);
        }
        caller
    }
}

fn load_dialects(names: &[String], location: &DialectWorkspaceRootPath) -> Result<DialectSet, HttpRejection> {
    DialectSet::from_names(names, &[], location).map_err(|_| dialects_not_loaded())
}

/// The HTTP server checks its dialects at startup, so a later failure to load a dialect is an internal error.
pub(super) fn dialects_not_loaded() -> HttpRejection {
    HttpRejection::internal_error("internal error: the configured dialects cannot be loaded")
}

impl AuthenticatedHttpClient {
    pub(super) fn new(
        identity: AuthenticatedClientIdentity,
        engine: Engine,
        limits: Arc<HttpClientLimiter>,
        workspace_limit: WorkspaceConcurrentCallLimiter,
        native_dialects: Arc<DialectSet>,
    ) -> Self {
        let AuthenticatedClientIdentity { client_key, caller, workspace_id, location, opener: _ } = identity;
        let mut caller = caller.starting_session_now(engine.workspace());
        // HTTP requests are independent of each other, so the lifetime of the caller is a single call. Persistent
        // connections set another lifetime.
        caller.lifetime = CallerResourceLifetime::SingleCall;
        let executor =
            Arc::new(CallExecutor::with_slots(engine, limits.call_slots.clone()).with_workspace_limit(workspace_limit));
        Self {
            client_key,
            workspace_id,
            caller,
            executor,
            rpc_server: OnceLock::new(),
            native_dialects,
            mcp_services: Mutex::default(),
            location,
            limits,
        }
    }

    pub(super) fn rpc_server(&self, config: &HttpServerConfig) -> Result<Arc<RpcServer>, HttpRejection> {
        if let Some(rpc) = self.rpc_server.get() {
            return Ok(rpc.clone());
        }
        let dialects = load_dialects(&config.rpc_dialects, &self.location)?;
        let built = RpcServer::with_executor(self.executor.clone(), self.caller.clone(), dialects);
        Ok(self.rpc_server.get_or_init(|| built).clone())
    }

    /// A client is idle while its principal has no active request and no open stream.
    pub(super) fn is_idle(&self) -> bool {
        self.limits.is_idle()
    }

    fn acquire_request_permit(&self) -> Result<OwnedSemaphorePermit, HttpRejection> {
        let rejection = HttpRejection::too_many_requests(
            "this client has too many requests in progress; retry when some of them are answered",
        );
        self.limits.requests.clone().try_acquire_owned().map_err(|_| rejection)
    }

    pub(super) fn acquire_stream_permit(&self) -> Result<OwnedSemaphorePermit, HttpRejection> {
        let rejection =
            HttpRejection::too_many_requests("this client has too many open streams; close one, then retry");
        self.limits.streams.clone().try_acquire_owned().map_err(|_| rejection)
    }

    pub(super) fn mcp_service(
        &self,
        dialects: &[String],
        state: &HttpServerState,
    ) -> Result<McpHttpService, HttpRejection> {
        let name = dialects.join(",");
        let mut services = crate::lock(&self.mcp_services);
        if let Some(known) = services.get(&name) {
            return Ok(known.clone());
        }
        let dialect_set = load_dialects(dialects, &self.location)?;
        let built = mcp::build_service(&self.executor, &self.caller, dialect_set, state);
        services.insert(name, built.clone());
        Ok(built)
    }

    /// Runs a call that writes or reads a stream, on a thread that may block.
    pub(super) fn call_with_stream(
        &self,
        operation: &str,
        arguments: Map<String, Value>,
        stream: &dyn CallByteStream,
    ) -> Result<DialectReply, Error> {
        let control = CallControl::default().with_stream(stream);
        let call = JsonCall { control, ..JsonCall::new(&self.caller, operation, arguments) };
        call.run(self.executor.engine()).into_result()
    }

    /// Calls a native operation by its name. Dropping the future of a call cancels the engine call.
    pub(super) async fn call_operation(
        &self,
        operation: &str,
        arguments: &Map<String, Value>,
        call_headers: &CallHeaders,
    ) -> CallResultOrAbortError<DialectReply> {
        let mut translated = match self.native_dialects.find_tool(operation) {
            Some((dialect, tool)) => dialect.translate_with_tier(tool, arguments),
            None => dialect::unknown_tool_call(operation, "operation", "GET /v1/openapi.json lists the operations"),
        };
        translated.options.secrets = SecretTransport::NewSecrets;
        self.run_call(translated, call_headers).await
    }

    pub(super) async fn run_call<T: Send + 'static>(
        &self,
        call: PreparedCall<T>,
        call_headers: &CallHeaders,
    ) -> CallResultOrAbortError<T> {
        let request = CallRequest {
            idempotency_key: call_headers.idempotency_key.clone(),
            ..CallRequest::new(call_headers.caller_in_session(&self.caller), call)
        };
        // The permit of this request is added to the available permits. The request is the only request if all permits
        // are then available.
        let is_only_request = self.limits.requests.available_permits() + 1 >= REQUESTS_PER_CLIENT_MAX;
        let other_requests = if is_only_request { OtherRequestsPending::None } else { OtherRequestsPending::Waiting };
        self.executor.run(request, other_requests, None, |_| std::future::pending()).await
    }
}
