//! An agent for tests, built on the official Rust ACP library. The prompt is a JSON list of steps; the agent runs the
//! steps and replies with the result of each.

use std::sync::{Arc, Mutex};

use agent_client_protocol::{
    Agent, Client, Error, Result, Stdio, on_receive_request,
    v1::{
        ConnectionTo,
        schema::{
            ClientCapabilities, ContentBlock, ContentChunk, InitializeRequest, InitializeResponse, McpServer,
            NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse, ReadTextFileRequest, SessionId,
            SessionNotification, SessionUpdate, StopReason, WriteTextFileRequest,
        },
    },
};
use serde_json::{Value, json};

/// The capabilities that the ACP client announced, and the names of the MCP servers that it passed for the session.
#[derive(Default)]
struct AcpClientCapabilitiesAndServers {
    capabilities: ClientCapabilities,
    mcp_servers: Vec<String>,
}

fn server_name(server: &McpServer) -> String {
    match server {
        McpServer::Stdio(server) => server.name.clone(),
        _ => "another kind".to_owned(),
    }
}

/// The request parameters of a step of the prompt, with the session id added.
fn session_params<T: serde::de::DeserializeOwned>(session: &SessionId, mut params: Value) -> Result<T> {
    params["sessionId"] = json!(session);
    serde_json::from_value(params).map_err(Error::into_internal_error)
}

async fn run_step(
    offer: &Mutex<AcpClientCapabilitiesAndServers>,
    client: &ConnectionTo<Client>,
    session: &SessionId,
    step: &Value,
) -> Result<Value> {
    match step[0].as_str() {
        Some("read") => {
            let request: ReadTextFileRequest = session_params(session, step[1].clone())?;
            let answer = client.send_request(request).block_task().await?;
            Ok(json!({ "content": answer.content }))
        }
        Some("write") => {
            let request: WriteTextFileRequest = session_params(session, step[1].clone())?;
            let answer = client.send_request(request).block_task().await?;
            serde_json::to_value(answer).map_err(Error::into_internal_error)
        }
        _ => {
            let offer = offer.lock().map_err(|_| Error::internal_error())?;
            let fs = &offer.capabilities.fs;
            Ok(json!({ "reads": fs.read_text_file, "writes": fs.write_text_file, "servers": offer.mcp_servers }))
        }
    }
}

async fn run_prompt(
    offer: Arc<Mutex<AcpClientCapabilitiesAndServers>>,
    client: ConnectionTo<Client>,
    request: &PromptRequest,
) -> Result<PromptResponse> {
    let Some(ContentBlock::Text(text)) = request.prompt.first() else { return Err(Error::invalid_params()) };
    let steps: Vec<Value> = serde_json::from_str(&text.text).map_err(Error::into_internal_error)?;
    let mut results = Vec::new();
    for step in &steps {
        results.push(match run_step(&offer, &client, &request.session_id, step).await {
            Ok(value) => value,
            Err(error) => serde_json::to_value(error).map_err(Error::into_internal_error)?,
        });
    }
    let chunk = ContentChunk::new(ContentBlock::from(Value::Array(results).to_string()));
    client.send_notification(SessionNotification::new(
        request.session_id.clone(),
        SessionUpdate::AgentMessageChunk(chunk),
    ))?;
    Ok(PromptResponse::new(StopReason::EndTurn))
}

#[tokio::main]
async fn main() -> Result<()> {
    let offer = Arc::new(Mutex::new(AcpClientCapabilitiesAndServers::default()));
    let (initialize_offer, session_offer, prompt_offer) = (offer.clone(), offer.clone(), offer);
    Agent
        .v1()
        .name("peer")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _client| {
                initialize_offer.lock().map_err(|_| Error::internal_error())?.capabilities =
                    request.client_capabilities;
                responder.respond(InitializeResponse::new(request.protocol_version))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, _client| {
                session_offer.lock().map_err(|_| Error::internal_error())?.mcp_servers =
                    request.mcp_servers.iter().map(server_name).collect();
                responder.respond(NewSessionResponse::new("by-rust"))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, client: ConnectionTo<Client>| {
                let (offer, connection) = (prompt_offer.clone(), client.clone());
                // A separate task: the receive loop must stay free for the client's responses.
                client.spawn(async move {
                    let outcome = run_prompt(offer, connection, &request).await;
                    responder.respond_with_result(outcome)
                })
            },
            on_receive_request!(),
        )
        .connect_to(Stdio::new())
        .await
}
