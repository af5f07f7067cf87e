//! What a server offers besides the operations of its dialects: tools, prompts and resources of somebody else, said in the
//! protocol's own words.
//!
//! Owns the way to such content and back. Promises: what a dialect has stays the dialect's, an annex is asked only for the
//! rest; what it answers is checked against the protocol's types before a client sees it. Never reaches the engine.

use std::{pin::Pin, sync::Arc};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        ErrorCode, InputRequiredResult, Prompt, Resource, ResourceTemplate, ServerCapabilities,
        ServerNotification, ServerRequest, Tool,
    },
    service::RequestContext,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

/// Somebody who offers something besides operations.
pub trait Annex: Send + Sync + 'static {
    /// What the server can do on top, as the protocol writes capabilities.
    fn capabilities(&self) -> Map<String, Value>;

    /// What a list has on top. Asked once.
    fn listed(&self, list: List) -> Vec<Value>;

    /// Answers a request; nothing when it is not about anything of its own.
    fn answer<'a>(&'a self, asked: Asked<'a>, client: Client<'a>) -> Answering<'a>;
}

/// The outcome of a request, when it comes.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Option<Result<Value, Refusal>>> + Send + 'a>>;

/// The lists that can be longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    ResourceTemplates,
}

/// A request as it came.
#[derive(Debug)]
pub struct Asked<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its parameters.
    pub params: Value,
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The protocol's number for it.
    pub code: i32,
    /// What people read.
    pub message: String,
    /// What programs read.
    pub facts: Option<Value>,
}

/// What an annex says is not what the protocol knows.
#[derive(Debug, thiserror::Error)]
#[error("what is offered besides operations is not in the protocol's words: {0}")]
pub struct AnnexError(#[from] serde_json::Error);

/// Whoever made the request.
pub struct Client<'a>(pub(super) &'a RequestContext<RoleServer>);

impl Client<'_> {
    /// What it says that it can do.
    pub fn capabilities(&self) -> Value {
        written(&self.0.client_capabilities())
    }

    /// What it sent along with the request.
    pub fn meta(&self) -> Value {
        written(&self.0.meta)
    }

    /// Tells it something while the request runs; nothing comes back, not even whether it arrived.
    pub async fn tell(&self, method: &str, params: Value) {
        if let Ok(notice) =
            serde_json::from_value::<ServerNotification>(json!({ "method": method, "params": params }))
        {
            // A client that is gone hears nothing; the request ends by itself.
            drop(self.0.peer.send_notification(notice).await);
        }
    }

    /// Asks it something while the request runs: only those of the `initialize` era can be asked so.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        let broken = |message: String| Refusal { code: ErrorCode::INTERNAL_ERROR.0, message, facts: None };
        let request: ServerRequest = serde_json::from_value(json!({ "method": method, "params": params }))
            .map_err(|error| broken(error.to_string()))?;
        let answered = self.0.peer.send_request(request).await.map_err(|error| broken(error.to_string()))?;
        Ok(written(&answered))
    }
}

/// A value as the protocol writes it. What cannot be written is absent.
fn written(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// An annex whose lists were read.
pub struct Annexed {
    annex: Arc<dyn Annex>,
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
}

impl Annexed {
    /// Reads the lists.
    pub fn new(annex: Arc<dyn Annex>) -> Result<Self, AnnexError> {
        Ok(Self {
            tools: read(annex.listed(List::Tools))?,
            prompts: read(annex.listed(List::Prompts))?,
            resources: read(annex.listed(List::Resources))?,
            templates: read(annex.listed(List::ResourceTemplates))?,
            annex,
        })
    }

    /// The capabilities of a server with this annex.
    pub(super) fn capabilities(&self, own: &ServerCapabilities) -> ServerCapabilities {
        let mut all = written(own);
        if let Some(all) = all.as_object_mut() {
            all.extend(self.annex.capabilities());
        }
        serde_json::from_value(all).unwrap_or_else(|_| own.clone())
    }

    /// Asks for the result of a request; nothing when it is not about anything of the annex.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: &impl Serialize,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<Value, ErrorData>> {
        let asked = Asked { method, params: written(params) };
        let outcome = self.annex.answer(asked, Client(context)).await?;
        let outcome = outcome.map(|mut result| {
            // Later clients must be told, earlier ones never see it.
            if let Some(result) = result.as_object_mut() {
                result.entry("resultType").or_insert_with(|| json!("complete"));
            }
            result
        });
        Some(
            outcome
                .map_err(|refusal| ErrorData::new(ErrorCode(refusal.code), refusal.message, refusal.facts)),
        )
    }
}

/// A list in the protocol's types.
fn read<T: DeserializeOwned>(entries: Vec<Value>) -> Result<Vec<T>, AnnexError> {
    entries.into_iter().map(|entry| serde_json::from_value(entry).map_err(AnnexError)).collect()
}

/// A result in the protocol's type.
pub(super) fn result<T: DeserializeOwned>(outcome: Result<Value, ErrorData>) -> Result<T, ErrorData> {
    serde_json::from_value(outcome?).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A result that may be a question back.
pub(super) fn response<T, R>(outcome: Result<Value, ErrorData>) -> Result<R, ErrorData>
where
    T: DeserializeOwned + Into<R>,
    InputRequiredResult: Into<R>,
{
    let asks = outcome.as_ref().is_ok_and(|result| result["resultType"] == "input_required");
    if asks {
        result::<InputRequiredResult>(outcome).map(Into::into)
    } else {
        result::<T>(outcome).map(Into::into)
    }
}
