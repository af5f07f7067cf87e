//! Forwards messages between the editor and the agent. File methods and reviews run in their own tasks, so that a slow
//! one does not delay forwarded messages.

use std::{io, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

use super::{
    AcpConnectionClosedBy, AcpProxy,
    conductor::{AcpConductorEnvelopeCodec, LineFromAcpConductor},
    errors::AcpError,
    files,
    message::{self, AcpMessageError, AcpMessageId},
    review::{self, AcpReviewMethodRequest},
    router::{AcpFileCall, AcpRoutingDecision, AcpSessionSetupRequest},
    session::{AcpSession, record_turn},
    setup::McpServerCommand,
};
use crate::{
    limits::{REQUESTS_PENDING_MAX, SHUTDOWN_TIMEOUT},
    lines::{LineReader, LineReaderEvent, into_line},
};

/// The stream of messages that an editor or an agent sends.
pub type BoxedAcpMessageReader = Box<dyn AsyncRead + Send + Unpin>;
/// The stream of messages that an editor or an agent receives.
pub type BoxedAcpMessageWriter = Box<dyn AsyncWrite + Send + Unpin>;

#[derive(Default)]
struct AcpFileCallTasks(JoinSet<()>);

impl AcpFileCallTasks {
    /// Starts a file call of the agent. If too many file calls run, the proxy reads no more from the agent until a call
    /// ends.
    async fn spawn_call(&mut self, proxy: &Arc<AcpProxy>, call: AcpFileCall) {
        while self.0.try_join_next().is_some() {}
        let Ok(slot) = proxy.call_slots.clone().acquire_owned().await else { return };
        let (proxy, cancelled) = (proxy.clone(), proxy.router.register_call(&call.id));
        self.0.spawn(async move {
            let line = message::result_line(&call.id, files::serve_file_call(&proxy, &call, cancelled).await);
            proxy.router.finish_call(&call.id);
            // A send error means that the agent has disconnected.
            drop(proxy.agent.send(line).await);
            drop(slot);
        });
    }

    async fn finish_all(&mut self, proxy: &AcpProxy) {
        proxy.router.cancel_all_calls();
        while self.0.join_next().await.is_some() {}
    }
}

async fn next_line(lines: &mut LineReader<BoxedAcpMessageReader>) -> Option<Result<Vec<u8>, AcpMessageError>> {
    loop {
        match lines.next().await {
            LineReaderEvent::End => return None,
            LineReaderEvent::Oversized(id) => {
                let error = AcpError::invalid_request("the message is too long");
                return Some(Err(AcpMessageError { id: id.as_ref().map(AcpMessageId::from_json), error }));
            }
            LineReaderEvent::Line => {
                let line = lines.take_line();
                if !line.trim_ascii().is_empty() {
                    return Some(Ok(line));
                }
            }
        }
    }
}

impl AcpProxy {
    pub(super) async fn run_between(
        self: Arc<Self>,
        editor: BoxedAcpMessageReader,
        agent: BoxedAcpMessageReader,
    ) -> io::Result<AcpConnectionClosedBy> {
        let from_editor = async {
            let mut lines = LineReader::new(editor);
            while let Some(line) = next_line(&mut lines).await {
                match line {
                    Ok(line) => self.handle_editor_line(line).await?,
                    Err(rejected) => self.editor.send(error_response_line(&rejected)).await?,
                }
            }
            io::Result::Ok(())
        };
        let from_agent = async {
            let mut lines = LineReader::new(agent);
            let mut file_tasks = AcpFileCallTasks::default();
            let mut result = io::Result::Ok(());
            while let Some(line) = next_line(&mut lines).await {
                result = match line {
                    Ok(line) => self.handle_agent_line(line, &mut file_tasks).await,
                    Err(rejected) => self.agent.send(error_response_line(&rejected)).await,
                };
                if result.is_err() {
                    break;
                }
            }
            file_tasks.finish_all(&self).await;
            result
        };
        tokio::pin!(from_agent);
        tokio::select! {
            result = &mut from_agent => return self.flush_editor(result.map(|()| AcpConnectionClosedBy::Agent)).await,
            // A write error means that the agent is exiting. The remaining output of the agent is still read.
            _ = from_editor => {}
        }
        self.router.cancel_all_calls();
        tokio::select! {
            result = &mut from_agent => return self.flush_editor(result.map(|()| AcpConnectionClosedBy::Editor)).await,
            () = self.until_calls_finished() => {}
            () = tokio::time::sleep(SHUTDOWN_TIMEOUT) => {}
        }
        self.agent.close().await;
        // The agent may send more output before it exits. If the agent does not exit, the caller of this function ends
        // the agent's process.
        match tokio::time::timeout(SHUTDOWN_TIMEOUT, from_agent).await {
            Ok(result) => self.flush_editor(result.map(|()| AcpConnectionClosedBy::Editor)).await,
            Err(_) => self.flush_editor(Ok(AcpConnectionClosedBy::Editor)).await,
        }
    }

    pub(super) async fn run_in_chain(
        self: Arc<Self>,
        conductor: BoxedAcpMessageReader,
        envelope: Arc<AcpConductorEnvelopeCodec>,
    ) -> io::Result<AcpConnectionClosedBy> {
        let mut lines = LineReader::new(conductor);
        let mut file_tasks = AcpFileCallTasks::default();
        while let Some(line) = next_line(&mut lines).await {
            match line.map(|line| envelope.unwrap_line(line)) {
                Ok(LineFromAcpConductor::FromEditor(line)) => self.handle_editor_line(line).await?,
                Ok(LineFromAcpConductor::FromAgent(line)) => self.handle_agent_line(line, &mut file_tasks).await?,
                Ok(LineFromAcpConductor::Response(line)) => self.handle_response(line, &mut file_tasks).await?,
                Err(rejected) => self.editor.send(error_response_line(&rejected)).await?,
            }
        }
        file_tasks.finish_all(&self).await;
        self.flush_editor(Ok(AcpConnectionClosedBy::Editor)).await
    }

    async fn until_calls_finished(&self) {
        let all = u32::try_from(REQUESTS_PENDING_MAX).unwrap_or(u32::MAX);
        drop(self.call_slots.acquire_many(all).await);
    }

    async fn flush_editor(&self, ended: io::Result<AcpConnectionClosedBy>) -> io::Result<AcpConnectionClosedBy> {
        self.editor.flush().await?;
        ended
    }

    async fn handle_editor_line(self: &Arc<Self>, line: Vec<u8>) -> io::Result<()> {
        match self.router.route_from_editor(&line) {
            AcpRoutingDecision::Forward => self.agent.send(into_line(line)).await,
            AcpRoutingDecision::ForwardChanged(changed) => self.agent.send(into_line(changed)).await,
            AcpRoutingDecision::ReplyToSender(line) => self.editor.send(line).await,
            AcpRoutingDecision::ForwardPrompt(session) => {
                if let Some(session) = self.router.find_session(&session) {
                    record_turn(session).await;
                }
                self.agent.send(into_line(line)).await
            }
            AcpRoutingDecision::ServeReviewCall(call) => self.serve_review_call(call).await,
            AcpRoutingDecision::Consumed
            | AcpRoutingDecision::ServeFileCall(_)
            | AcpRoutingDecision::ForwardSessionCreated(_) => Ok(()),
            AcpRoutingDecision::SetUpSession(setup) => match self.set_up_session(setup, &line).await {
                Ok(line) => self.agent.send(into_line(line)).await,
                Err(back) => self.editor.send(back).await,
            },
        }
    }

    async fn handle_agent_line(self: &Arc<Self>, line: Vec<u8>, file_tasks: &mut AcpFileCallTasks) -> io::Result<()> {
        match self.router.route_from_agent(&line) {
            AcpRoutingDecision::Forward => self.editor.send(into_line(line)).await,
            AcpRoutingDecision::ForwardChanged(line) => self.editor.send(into_line(line)).await,
            AcpRoutingDecision::ReplyToSender(line) => self.agent.send(line).await,
            AcpRoutingDecision::ForwardSessionCreated(session) => {
                self.bind_server_to_session(session).await;
                self.editor.send(into_line(line)).await
            }
            AcpRoutingDecision::Consumed
            | AcpRoutingDecision::SetUpSession(_)
            | AcpRoutingDecision::ServeReviewCall(_)
            | AcpRoutingDecision::ForwardPrompt(_) => Ok(()),
            AcpRoutingDecision::ServeFileCall(call) => {
                file_tasks.spawn_call(self, call).await;
                Ok(())
            }
        }
    }

    async fn handle_response(self: &Arc<Self>, line: Vec<u8>, file_tasks: &mut AcpFileCallTasks) -> io::Result<()> {
        if matches!(self.router.route_from_editor(&line), AcpRoutingDecision::Consumed) {
            return Ok(());
        }
        self.handle_agent_line(line, file_tasks).await
    }

    async fn serve_review_call(self: &Arc<Self>, call: AcpReviewMethodRequest) -> io::Result<()> {
        // A review call must not wait for a call slot: running calls wait for the editor's responses, which arrive on
        // the same connection.
        let Ok(slot) = self.call_slots.clone().try_acquire_owned() else {
            let error = AcpError::internal_error("busy: too many concurrent calls; retry later");
            return self.editor.send(message::error_line(Some(&call.id), &error)).await;
        };
        let proxy = self.clone();
        tokio::spawn(async move {
            let line = message::result_line(&call.id, review::run_review_call(&proxy, &call).await);
            // A send error means that the editor has disconnected.
            drop(proxy.editor.send(line).await);
            drop(slot);
        });
        Ok(())
    }

    /// Opens the roots of an ACP session, and returns a setup request for the agent or an error response for the
    /// editor.
    async fn set_up_session(&self, setup: AcpSessionSetupRequest, line: &[u8]) -> Result<Vec<u8>, Vec<u8>> {
        let (root_opener, roots) = (self.root_opener.clone(), setup.params.roots.clone());
        let opening = tokio::task::spawn_blocking(move || {
            let opened: Result<Vec<_>, AcpError> = roots
                .iter()
                .map(|root| {
                    root_opener.open_root(root).map_err(|error| {
                        let reason = format!("{}: {}", error.kind.code(), error.message);
                        AcpError::invalid_params(serde_json::json!({ "path": root, "reason": reason }))
                    })
                })
                .collect();
            let server: Option<McpServerCommand> = roots.first().and_then(|root| root_opener.mcp_server_command(root));
            opened.map(|opened| (opened, server))
        });
        let opened =
            opening.await.unwrap_or_else(|_| Err(AcpError::internal_error("io_error: opening the roots was aborted")));
        let admitted = opened
            .and_then(|(opened, server)| self.router.admit_session(&setup, opened, server.as_ref(), line))
            .map_err(|error| message::error_line(Some(&setup.id), &error))?;
        if let Some(session) = admitted.session {
            self.bind_server_to_session(session).await;
        }
        Ok(admitted.agent_line)
    }

    /// Binds the ticket of an MCP server to its session before the agent can call that server. If a ticket cannot be
    /// bound, the calls of its MCP server belong to a session with the agent's client name.
    async fn bind_server_to_session(&self, session: Arc<AcpSession>) {
        let root_opener = self.root_opener.clone();
        let binding = tokio::task::spawn_blocking(move || match &session.mcp_server {
            Some(server) => root_opener.bind_server_to_session(&server.directory, &server.ticket, session.journal_id()),
            None => Ok(()),
        });
        drop(binding.await);
    }
}

fn error_response_line(rejected: &AcpMessageError) -> Vec<u8> {
    message::error_line(rejected.id.as_ref(), &rejected.error)
}
