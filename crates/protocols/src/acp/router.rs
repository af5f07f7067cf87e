//! Decides for every message whether it is forwarded, changed or handled by the proxy. The router holds the
//! capabilities, sessions and pending responses of both peers, and does no I/O. The router never forwards a file method
//! of the agent to the editor.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::sync::watch;

use super::{
    AcpConnectionCallers, AcpProxyConfig, OpenedAcpSessionRoot,
    editor_requests::{EditorResponse, PendingEditorRequestTable},
    errors::AcpError,
    json_members::{self, MalformedJsonObjectError},
    message::{self, AcpMessage, AcpMessageId, AcpMessageKind},
    review::{self, AcpReviewMethod, AcpReviewMethodRequest},
    session::{AcpProxyAddedMcpServer, AcpSession},
    setup::{
        self, AcpFileCapabilities, AcpSessionSetupParams, McpServerCommand, NegotiatedAcpProtocol,
        VERSION_WITHOUT_FILES,
    },
};
use crate::{
    dialect::acp::{PROMPT_METHOD, READ_METHOD, WRITE_METHOD},
    limits::{ACP_SESSIONS_MAX, CLIENT_NAME_CHARS_MAX, REQUESTS_PENDING_MAX},
};

pub(super) const CANCEL_METHOD: &str = "$/cancel_request";

pub(super) enum AcpRoutingDecision {
    Forward,
    ForwardChanged(Vec<u8>),
    ReplyToSender(Vec<u8>),
    /// A forwarded prompt starts a turn of its session.
    ForwardPrompt(String),
    /// The agent's response confirms a new session, and the proxy forwards the response to the editor.
    ForwardSessionCreated(Arc<AcpSession>),
    /// The router has handled the line itself, so the proxy forwards nothing.
    Consumed,
    /// The roots of the session are opened before the setup request is forwarded.
    SetUpSession(AcpSessionSetupRequest),
    ServeFileCall(AcpFileCall),
    ServeReviewCall(AcpReviewMethodRequest),
}

#[derive(Debug, PartialEq)]
pub(super) struct AcpSessionSetupRequest {
    pub(super) id: AcpMessageId,
    pub(super) params: AcpSessionSetupParams,
}

pub(super) struct AcpForwardedSessionSetup {
    pub(super) agent_line: Vec<u8>,
    /// The session is `None` while the agent has not yet chosen the id of a new session.
    pub(super) session: Option<Arc<AcpSession>>,
}

#[derive(Debug, PartialEq)]
pub(super) struct AcpFileCall {
    pub(super) id: AcpMessageId,
    pub(super) method: AcpFileMethod,
    pub(super) params: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcpFileMethod {
    Read,
    Write,
}

impl AcpFileMethod {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            READ_METHOD => Some(AcpFileMethod::Read),
            WRITE_METHOD => Some(AcpFileMethod::Write),
            _ => None,
        }
    }
}

enum PendingAcpLifecycleRequest {
    Initialize,
    NewSession(Box<AcpSession>),
    /// If the agent cannot load a session, the proxy continues with the previous session of the same id.
    ExistingSession {
        id: String,
        previous: Option<Arc<AcpSession>>,
    },
    CloseSession(String),
}

#[derive(Default)]
struct AcpRouterState {
    editor_capabilities: AcpFileCapabilities,
    advertised: AcpFileCapabilities,
    wants_notices: bool,
    negotiated: Option<NegotiatedAcpProtocol>,
    pending_responses: HashMap<AcpMessageId, PendingAcpLifecycleRequest>,
    sessions: HashMap<String, Arc<AcpSession>>,
    running_calls: HashMap<AcpMessageId, watch::Sender<bool>>,
}

pub(super) struct AcpProxyMessageRouter {
    callers: AcpConnectionCallers,
    options: AcpProxyConfig,
    state: Mutex<AcpRouterState>,
    pub(super) editor_requests: PendingEditorRequestTable,
}

impl AcpProxyMessageRouter {
    pub(super) fn new(callers: AcpConnectionCallers, options: AcpProxyConfig) -> Self {
        Self { callers, options, state: Mutex::default(), editor_requests: PendingEditorRequestTable::new() }
    }

    pub(super) fn route_from_editor(&self, line: &[u8]) -> AcpRoutingDecision {
        let message = match AcpMessage::parse(line) {
            Ok(message) => message,
            Err(rejected) => return reply_with_error(rejected.id.as_ref(), &rejected.error),
        };
        match &message.kind {
            AcpMessageKind::Response { id } => {
                match self.editor_requests.resolve(id, || editor_response(line, &message)) {
                    true => AcpRoutingDecision::Consumed,
                    false => AcpRoutingDecision::Forward,
                }
            }
            AcpMessageKind::Request { id, method } => match method.as_str() {
                "initialize" => self.handle_initialize(id, line),
                "session/new" | "session/load" | "session/resume" | "session/fork" => {
                    match setup::parse_setup_params(message.params_bytes(line)) {
                        Ok(mut params) => {
                            // In a fork request, `session_id` is the id of the source session, not of the new session.
                            let names_session = matches!(method.as_str(), "session/load" | "session/resume");
                            params.session_id = params.session_id.filter(|_| names_session);
                            AcpRoutingDecision::SetUpSession(AcpSessionSetupRequest { id: id.clone(), params })
                        }
                        Err(error) => reply_with_error(Some(id), &error),
                    }
                }
                "session/close" | "session/delete" => {
                    let mut state = crate::lock(&self.state);
                    if let Some(session) = session_id_in(message.params_bytes(line))
                        && state.pending_responses.len() < REQUESTS_PENDING_MAX
                    {
                        state.pending_responses.insert(id.clone(), PendingAcpLifecycleRequest::CloseSession(session));
                    }
                    AcpRoutingDecision::Forward
                }
                PROMPT_METHOD => session_id_in(message.params_bytes(line))
                    .map_or(AcpRoutingDecision::Forward, AcpRoutingDecision::ForwardPrompt),
                other => AcpReviewMethod::from_name(other).map_or(AcpRoutingDecision::Forward, |method| {
                    let params = message.params_bytes(line).to_vec();
                    AcpRoutingDecision::ServeReviewCall(AcpReviewMethodRequest { id: id.clone(), method, params })
                }),
            },
            AcpMessageKind::Notification { method } => {
                if method == "session/cancel"
                    && let Some(session) =
                        session_id_in(message.params_bytes(line)).and_then(|id| self.find_session(&id))
                {
                    session.cancel();
                }
                AcpRoutingDecision::Forward
            }
        }
    }

    pub(super) fn route_from_agent(&self, line: &[u8]) -> AcpRoutingDecision {
        let message = match AcpMessage::parse(line) {
            Ok(message) => message,
            Err(rejected) => return reply_with_error(rejected.id.as_ref(), &rejected.error),
        };
        match &message.kind {
            AcpMessageKind::Response { id } => self.track_response(id, line, &message),
            AcpMessageKind::Request { id, method: name } => match AcpFileMethod::from_name(name) {
                None => AcpRoutingDecision::Forward,
                Some(method) if !self.offers_file_method(method) => {
                    reply_with_error(Some(id), &AcpError::method_not_found(name))
                }
                Some(method) => {
                    let params = message.params_bytes(line).to_vec();
                    AcpRoutingDecision::ServeFileCall(AcpFileCall { id: id.clone(), method, params })
                }
            },
            // A file method without an id cannot get a response.
            AcpMessageKind::Notification { method } if AcpFileMethod::from_name(method).is_some() => {
                AcpRoutingDecision::Consumed
            }
            AcpMessageKind::Notification { method } if method == CANCEL_METHOD => {
                let range = json_members::find_member(message.params_bytes(line), "requestId");
                let id = range.and_then(|range| serde_json::from_slice(&message.params_bytes(line)[range]).ok());
                match id.is_some_and(|id: Value| self.cancel_call(&AcpMessageId::from_json(&id))) {
                    true => AcpRoutingDecision::Consumed,
                    false => AcpRoutingDecision::Forward,
                }
            }
            AcpMessageKind::Notification { .. } => AcpRoutingDecision::Forward,
        }
    }

    pub(super) fn admit_session(
        &self,
        setup: &AcpSessionSetupRequest,
        opened: Vec<OpenedAcpSessionRoot>,
        server: Option<&McpServerCommand>,
        line: &[u8],
    ) -> Result<AcpForwardedSessionSetup, AcpError> {
        let mut state = crate::lock(&self.state);
        let negotiated = state.negotiated.unwrap_or(NegotiatedAcpProtocol { version: 1, stdio_servers: true });
        let added = match server.filter(|_| negotiated.stdio_servers) {
            Some(server) => setup::add_mcp_server(line, server, negotiated).map_err(params_not_object_error)?,
            None => None,
        };
        let ticket = server.filter(|_| added.is_some()).and_then(|server| server.ticket.clone());
        let server = ticket.zip(setup.params.roots.first().cloned());
        let mut session = AcpSession::new(&self.callers, opened);
        session.mcp_server = server.map(|(ticket, directory)| AcpProxyAddedMcpServer { directory, ticket });
        if state.pending_responses.len() >= REQUESTS_PENDING_MAX || state.sessions.len() >= ACP_SESSIONS_MAX {
            return Err(AcpError::internal_error("too_many: too many open sessions; close one first"));
        }
        let mut known = None;
        let pending = match &setup.params.session_id {
            Some(id) => {
                // The session is registered now, because the agent may request files while it loads the session.
                let session = Arc::new(session.with_id(id.clone(), printable_session_id(id)));
                known = Some(session.clone());
                PendingAcpLifecycleRequest::ExistingSession {
                    id: id.clone(),
                    previous: state.sessions.insert(id.clone(), session),
                }
            }
            None => PendingAcpLifecycleRequest::NewSession(Box::new(session)),
        };
        state.pending_responses.insert(setup.id.clone(), pending);
        Ok(AcpForwardedSessionSetup { agent_line: added.unwrap_or_else(|| line.to_vec()), session: known })
    }

    pub(super) fn find_session(&self, id: &str) -> Option<Arc<AcpSession>> {
        crate::lock(&self.state).sessions.get(id).cloned()
    }

    pub(super) fn editor_capabilities(&self) -> AcpFileCapabilities {
        crate::lock(&self.state).editor_capabilities
    }

    pub(super) fn wants_notices(&self) -> bool {
        crate::lock(&self.state).wants_notices
    }

    pub(super) fn register_call(&self, id: &AcpMessageId) -> watch::Receiver<bool> {
        let (cancel, cancelled) = watch::channel(false);
        crate::lock(&self.state).running_calls.insert(id.clone(), cancel);
        cancelled
    }

    pub(super) fn finish_call(&self, id: &AcpMessageId) {
        crate::lock(&self.state).running_calls.remove(id);
    }

    pub(super) fn cancel_all_calls(&self) {
        self.editor_requests.close();
        for cancel in crate::lock(&self.state).running_calls.values() {
            cancel.send_replace(true);
        }
    }

    /// Cancels a running call of the proxy, and returns whether the call exists.
    fn cancel_call(&self, id: &AcpMessageId) -> bool {
        crate::lock(&self.state).running_calls.get(id).is_some_and(|cancel| {
            cancel.send_replace(true);
            true
        })
    }

    fn handle_initialize(&self, id: &AcpMessageId, line: &[u8]) -> AcpRoutingDecision {
        let rewrite = match setup::rewrite_initialize(line, self.options.file_capabilities) {
            Ok(rewrite) => rewrite,
            Err(malformed) => return reply_with_error(Some(id), &params_not_object_error(malformed)),
        };
        let mut state = crate::lock(&self.state);
        (state.editor_capabilities, state.advertised, state.wants_notices) =
            (rewrite.editor_capabilities, rewrite.advertised, rewrite.wants_notices);
        state.pending_responses.insert(id.clone(), PendingAcpLifecycleRequest::Initialize);
        AcpRoutingDecision::ForwardChanged(rewrite.agent_line)
    }

    fn offers_file_method(&self, method: AcpFileMethod) -> bool {
        let state = crate::lock(&self.state);
        let is_advertised = match method {
            AcpFileMethod::Read => state.advertised.read_text_file,
            AcpFileMethod::Write => state.advertised.write_text_file,
        };
        is_advertised && state.negotiated.is_none_or(|negotiated| negotiated.version < VERSION_WITHOUT_FILES)
    }

    fn track_response(&self, id: &AcpMessageId, line: &[u8], message: &AcpMessage) -> AcpRoutingDecision {
        let mut state = crate::lock(&self.state);
        let Some(pending) = state.pending_responses.remove(id) else { return AcpRoutingDecision::Forward };
        let result = message.result.clone().map(|range| &line[range]);
        match (pending, result) {
            (PendingAcpLifecycleRequest::Initialize, Some(result)) => {
                state.negotiated = Some(setup::parse_initialize_result(result));
                return review::advertise_methods(line)
                    .map_or(AcpRoutingDecision::Forward, AcpRoutingDecision::ForwardChanged);
            }
            (PendingAcpLifecycleRequest::NewSession(session), Some(result)) => {
                if let Some(id) = session_id_in(result) {
                    let created = Arc::new(session.with_id(id.clone(), printable_session_id(&id)));
                    state.sessions.insert(id, created.clone());
                    return AcpRoutingDecision::ForwardSessionCreated(created);
                }
            }
            // The request failed, so the previous session is restored.
            (PendingAcpLifecycleRequest::ExistingSession { id, previous }, None) => match previous {
                Some(previous) => drop(state.sessions.insert(id, previous)),
                None => drop(state.sessions.remove(&id)),
            },
            (PendingAcpLifecycleRequest::CloseSession(id), Some(_)) => drop(state.sessions.remove(&id)),
            (PendingAcpLifecycleRequest::ExistingSession { .. }, Some(_)) => {}
            (
                PendingAcpLifecycleRequest::Initialize
                | PendingAcpLifecycleRequest::NewSession(_)
                | PendingAcpLifecycleRequest::CloseSession(_),
                None,
            ) => {}
        }
        AcpRoutingDecision::Forward
    }
}

fn printable_session_id(id: &str) -> String {
    id.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(CLIENT_NAME_CHARS_MAX).collect()
}

fn session_id_in(params: &[u8]) -> Option<String> {
    let range = json_members::find_member(params, "sessionId")?;
    serde_json::from_slice(&params[range]).ok()
}

fn reply_with_error(id: Option<&AcpMessageId>, error: &AcpError) -> AcpRoutingDecision {
    AcpRoutingDecision::ReplyToSender(message::error_line(id, error))
}

fn params_not_object_error(MalformedJsonObjectError: MalformedJsonObjectError) -> AcpError {
    AcpError::invalid_params("the params are not a JSON object")
}

fn editor_response(line: &[u8], message: &AcpMessage) -> EditorResponse {
    let value = |range: std::ops::Range<usize>| serde_json::from_slice::<Value>(&line[range]).unwrap_or_default();
    match (&message.result, &message.error) {
        (_, Some(error)) => Err(value(error.clone())),
        (result, None) => Ok(result.clone().map(value).unwrap_or_default()),
    }
}
