//! An agent on the official Rust library. It does what the prompt says, a list of steps as JSON, and answers with what
//! came of each.

use std::sync::{Arc, Mutex};

use agent_client_protocol::{
    Agent, Client, Error, Result, Stdio, on_receive_request,
    v1::{
        ConnectionTo,
        schema::{
            ClientCapabilities, ContentBlock, ContentChunk, InitializeRequest, InitializeResponse, McpServer,
            NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse, ReadTextFileRequest,
            SessionId, SessionNotification, SessionUpdate, StopReason, WriteTextFileRequest,
        },
    },
};
use serde_json::{Value, json};

/// What it was told.
#[derive(Default)]
struct Told {
    offers: ClientCapabilities,
    servers: Vec<String>,
}

fn name(server: &McpServer) -> String {
    match server {
        McpServer::Stdio(server) => server.name.clone(),
        _ => "another kind".to_owned(),
    }
}

/// The parameters of a step, with the session they are for.
fn within<T: serde::de::DeserializeOwned>(session: &SessionId, mut given: Value) -> Result<T> {
    given["sessionId"] = json!(session);
    serde_json::from_value(given).map_err(Error::into_internal_error)
}

async fn step(
    told: &Mutex<Told>,
    client: &ConnectionTo<Client>,
    session: &SessionId,
    step: &Value,
) -> Result<Value> {
    match step[0].as_str() {
        Some("read") => {
            let request: ReadTextFileRequest = within(session, step[1].clone())?;
            let answer = client.send_request(request).block_task().await?;
            Ok(json!({ "content": answer.content }))
        }
        Some("write") => {
            let request: WriteTextFileRequest = within(session, step[1].clone())?;
            let answer = client.send_request(request).block_task().await?;
            serde_json::to_value(answer).map_err(Error::into_internal_error)
        }
        _ => {
            let told = told.lock().map_err(|_| Error::internal_error())?;
            let fs = &told.offers.fs;
            Ok(json!({ "reads": fs.read_text_file, "writes": fs.write_text_file, "servers": told.servers }))
        }
    }
}

async fn play(
    told: Arc<Mutex<Told>>,
    client: ConnectionTo<Client>,
    request: &PromptRequest,
) -> Result<PromptResponse> {
    let Some(ContentBlock::Text(text)) = request.prompt.first() else { return Err(Error::invalid_params()) };
    let steps: Vec<Value> = serde_json::from_str(&text.text).map_err(Error::into_internal_error)?;
    let mut came = Vec::new();
    for one in &steps {
        came.push(match step(&told, &client, &request.session_id, one).await {
            Ok(value) => value,
            Err(error) => serde_json::to_value(error).map_err(Error::into_internal_error)?,
        });
    }
    let chunk = ContentChunk::new(ContentBlock::from(Value::Array(came).to_string()));
    client.send_notification(SessionNotification::new(
        request.session_id.clone(),
        SessionUpdate::AgentMessageChunk(chunk),
    ))?;
    Ok(PromptResponse::new(StopReason::EndTurn))
}

#[tokio::main]
async fn main() -> Result<()> {
    let told = Arc::new(Mutex::new(Told::default()));
    let (opened, begun, prompted) = (told.clone(), told.clone(), told);
    Agent
        .v1()
        .name("peer")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _client| {
                opened.lock().map_err(|_| Error::internal_error())?.offers = request.client_capabilities;
                responder.respond(InitializeResponse::new(request.protocol_version))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, _client| {
                begun.lock().map_err(|_| Error::internal_error())?.servers =
                    request.mcp_servers.iter().map(name).collect();
                responder.respond(NewSessionResponse::new("by-rust"))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, client: ConnectionTo<Client>| {
                let (told, caller) = (prompted.clone(), client.clone());
                // Beside the loop that hears the answers.
                client.spawn(async move {
                    let outcome = play(told, caller, &request).await;
                    responder.respond_with_result(outcome)
                })
            },
            on_receive_request!(),
        )
        .connect_to(Stdio::new())
        .await
}
