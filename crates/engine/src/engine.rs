//! The engine and the shape of a call. Owns a workspace; knows no protocol.

use std::sync::Arc;

use path::RelPath;
use serde_json::{Map, Value};

use crate::{
    approval::{ApprovalAnswer, Asking, Say},
    caller::Caller,
    control::Control,
    failure::{Failure, Kind},
    ops,
    pace::{self, Pace, Tempo},
    pipeline,
    recall::Recall,
    terms::Terms,
    workspace::Workspace,
};

/// One request as a face hands it over.
pub struct Call<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// The operation's name.
    pub operation: &'a str,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The caller's idempotency key: the same key never changes anything twice.
    pub key: Option<&'a str>,
    /// What the caller's dialect settles.
    pub terms: Terms,
    /// Deadline, cancellation, progress.
    pub control: Control<'a>,
}

impl<'a> Call<'a> {
    /// A call with default bounds.
    pub fn new(caller: &'a Caller, operation: &'a str, arguments: Map<String, Value>) -> Self {
        Self { caller, operation, arguments, key: None, terms: Terms::default(), control: Control::default() }
    }
}

/// What a call answers: an object for machines, and a compact text for models and people.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The object.
    pub json: Map<String, Value>,
    /// The text.
    pub text: String,
    /// The bytes behind it, when the terms ask for them.
    pub evidence: Vec<Held>,
    /// Which session the conversation goes on in, when the call changed that.
    pub switch: Option<Switch>,
}

/// Which session a conversation goes on in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Switch {
    /// One that was begun.
    To(String),
    /// The one it came with.
    Back,
}

impl Answer {
    /// The same answer with the bytes behind it.
    #[must_use]
    pub(crate) fn with_evidence(mut self, evidence: impl IntoIterator<Item = Held>) -> Self {
        self.evidence.extend(evidence);
        self
    }
}

/// What one file held before a call and holds after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The place.
    pub path: RelPath,
    /// Before, or what was read.
    pub before: Option<Vec<u8>>,
    /// After, when the call changed it.
    pub after: Option<Vec<u8>>,
}

/// One engine over one workspace.
#[derive(Clone)]
pub struct Engine {
    workspace: Arc<dyn Workspace>,
    asking: Asking,
    reminder: Arc<ops::Reminder>,
    recall: Arc<Recall>,
}

impl Engine {
    /// An engine over this workspace that asks a person where the policy says so.
    pub fn new(workspace: Arc<dyn Workspace>) -> Self {
        Self { workspace, asking: Asking::Ask, reminder: Arc::default(), recall: Arc::default() }
    }

    /// The same with the operator's choice of what is done where a person must be asked.
    #[must_use]
    pub fn asking(mut self, asking: Asking) -> Self {
        self.asking = asking;
        self
    }

    /// What is done where a person must be asked.
    pub fn how_it_asks(&self) -> Asking {
        self.asking
    }

    /// The workspace beneath.
    pub fn workspace(&self) -> &dyn Workspace {
        &*self.workspace
    }

    /// Whether the policy lets nobody like this caller use a tool, wherever it points: then it need not be offered. A
    /// policy that cannot be used hides nothing; the call itself is refused.
    pub fn never(&self, caller: &Caller, operation: &str, tool: Option<&str>) -> bool {
        let in_force = self.workspace.in_force();
        in_force.is_ok_and(|in_force| in_force.policy.never(&caller.principal, operation, tool))
    }

    /// How long a call is likely to take, for whoever chooses a thread for it.
    pub fn pace(&self, operation: &str, arguments: &Map<String, Value>, terms: &Terms) -> Pace {
        let tempo = ops::row(operation).map_or(Tempo::Steady, |row| row.tempo);
        pace::pace(&*self.workspace, tempo, arguments, &terms.reading)
    }

    /// How many bytes a call is likely to bring into memory, for whoever bounds that.
    pub fn weight(&self, operation: &str, arguments: &Map<String, Value>, terms: &Terms) -> u64 {
        let tempo = ops::row(operation).map_or(Tempo::Steady, |row| row.tempo);
        pace::weight(&*self.workspace, tempo, arguments, &terms.reading)
    }

    /// Takes the word of a caller's client for a person's answer, to what that caller asked itself. Only where the
    /// operator chose so.
    pub fn answer_by_client(&self, caller: &Caller, id: &str, say: Say) -> Result<(), Failure> {
        let own = self.workspace.approval(id)?;
        let is_own = own.is_some_and(|approval| approval.asked.principal == caller.principal.to_string());
        if self.asking != Asking::Client || !is_own {
            return Err(Failure::new(Kind::PolicyDenied, "what a client says is no answer here"));
        }
        let answer = ApprovalAnswer { id: id.to_owned(), say, reason: Some("said by the client".to_owned()) };
        pipeline::answer(&*self.workspace, caller, &answer)
    }

    /// Runs one call through the pipeline. Whatever happens, it leaves exactly one entry in the journal.
    pub fn call(&self, call: &Call<'_>) -> Result<Answer, Failure> {
        self.reminder.before(&*self.workspace, call);
        pipeline::run(&*self.workspace, self.asking, &self.recall, call)
            .map(|answer| self.reminder.after(&*self.workspace, call, answer))
    }
}
