//! A call that waits for a person, put before the client's own person. A client may be the agent itself, so what comes
//! back is a yes only where the operator chose so; by default the form names the command that answers, and accepting
//! merely makes the server look again.
//!
//! What a client carries from one round to the next is sealed: the approval and the plan it is bound to, for this principal,
//! under a key that only this process has. It is compared with what the store says, counts once, and only where it was given
//! out.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use engine::{Approval, Asking, Caller, Engine, Failure, Kind, Say, plan_lines};
use rmcp::{
    RoleServer,
    model::{
        ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
        InputRequiredResult, InputResponses, ProtocolVersion, RequestStateCodec, SealOptions, ServerRequest,
    },
    service::{PeerRequestOptions, RequestContext},
};
use serde_json::Value;

use crate::limits::{QUESTION_CHARS_MAX, QUESTION_WAIT};

/// The name of the one question in a result that needs input.
const QUESTION: &str = "approval";

/// What became of a question that was put before the client.
pub(super) enum Asked {
    /// The call is made again.
    Again,
    /// The client must answer first, with its next request.
    First(InputRequiredResult),
    /// The refusal stands.
    Refused,
}

/// What a client sent along when it came back.
pub(super) struct Brought {
    pub(super) responses: Option<InputResponses>,
    pub(super) state: Option<String>,
}

impl Brought {
    /// What the client said to this question; nothing when it did not answer, or another one, or was never asked.
    fn action(&self, handle: &str, principal: &str, issued: &Issued) -> Option<ElicitationAction> {
        let given = self.responses.as_ref()?.get(QUESTION)?;
        let result: ElicitResult = serde_json::from_value(given.clone()).ok()?;
        issued.take(self.state.as_deref()?, handle, principal).then_some(result.action)
    }
}

/// The handles that were given out and not used yet, and what seals them; the oldest are forgotten first.
pub(super) struct Issued {
    open: Mutex<VecDeque<String>>,
    /// Nothing on a machine that has no random bytes: then nothing that is brought counts.
    seal: Option<RequestStateCodec>,
}

impl Default for Issued {
    /// Nothing yet, under a key of its own.
    fn default() -> Self {
        let mut key = [0; SEAL_BYTES];
        let seal = getrandom::fill(&mut key).ok().map(|()| RequestStateCodec::new_unchecked(key));
        Self { open: Mutex::default(), seal }
    }
}

impl Issued {
    /// What the client carries of a handle.
    fn give(&self, handle: &str, principal: &str) -> Option<String> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|known| known != handle);
        open.push_back(handle.to_owned());
        if open.len() > ISSUED_MAX {
            open.pop_front();
        }
        let options = SealOptions::new().associated_data(principal.as_bytes()).ttl(STATE_LASTS);
        self.seal.as_ref().map(|seal| seal.seal_with(handle.as_bytes(), &options))
    }

    /// Whether this is what was given out for the handle; it is used up by asking.
    fn take(&self, sealed: &str, handle: &str, principal: &str) -> bool {
        let opened = self.seal.as_ref().and_then(|seal| seal.open_with(sealed, principal.as_bytes()).ok());
        if opened.is_none_or(|opened| opened != handle.as_bytes()) {
            return false;
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let before = open.len();
        open.retain(|known| known != handle);
        open.len() < before
    }
}

/// Bytes of the key that seals.
const SEAL_BYTES: usize = RequestStateCodec::MIN_KEY_LENGTH;
/// How long what a client carries can be brought back.
const STATE_LASTS: Duration = Duration::from_secs(24 * 60 * 60);
/// Questions of one conversation that can be open at the same time.
const ISSUED_MAX: usize = 256;

/// Puts a call that waits before the client's person, in the way of its protocol.
pub(super) async fn put(
    engine: &Engine,
    caller: &Caller,
    failure: &Failure,
    (brought, issued): (&Brought, &Issued),
    context: &RequestContext<RoleServer>,
) -> Asked {
    let can_ask = context.client_capabilities().is_some_and(|client| client.elicitation.is_some());
    let Some(approval) = waiting(engine, failure).filter(|_| can_ask) else { return Asked::Refused };
    let handle = format!("{}.{}", approval.id, approval.asked.plan);
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(&approval, engine.how_it_asks()),
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    };
    let is_modern =
        context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    if is_modern {
        let principal = caller.principal.to_string();
        return match brought.action(&handle, &principal, issued) {
            Some(action) => settle(engine, caller, &approval, &action),
            None => {
                let sealed = issued.give(&handle, &principal);
                let request = InputRequest::Elicitation(ElicitRequest::new(form));
                let requests = BTreeMap::from([(QUESTION.to_owned(), request)]);
                Asked::First(InputRequiredResult::new(Some(requests), sealed))
            }
        };
    }
    let mut options = PeerRequestOptions::no_options();
    options.timeout = Some(QUESTION_WAIT);
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let Ok(sent) = context.peer.send_cancellable_request(request, options).await else {
        return Asked::Refused;
    };
    match sent.await_response().await {
        Ok(rmcp::model::ClientResult::ElicitResult(result)) => {
            match settle(engine, caller, &approval, &result.action) {
                // Nobody had answered before, so a look is worth it.
                Asked::Refused if result.action == ElicitationAction::Accept => Asked::Again,
                other @ (Asked::Again | Asked::First(_) | Asked::Refused) => other,
            }
        }
        Ok(_) | Err(_) => Asked::Refused,
    }
}

/// The approval that a refused call waits for.
fn waiting(engine: &Engine, failure: &Failure) -> Option<Approval> {
    if ![Kind::ApprovalPending, Kind::ApprovalStale].contains(&failure.kind) {
        return None;
    }
    let id = failure.facts.get("approval")?.as_str()?;
    engine.workspace().approval(id).ok().flatten()
}

/// What a client's word is worth.
fn settle(engine: &Engine, caller: &Caller, approval: &Approval, action: &ElicitationAction) -> Asked {
    let say = match action {
        ElicitationAction::Accept => Say::Yes,
        ElicitationAction::Decline => Say::No,
        // Cancelled, or a word that a later protocol brings.
        ElicitationAction::Cancel | _ => return Asked::Refused,
    };
    match engine.how_it_asks() {
        Asking::Client => match engine.answer_by_client(caller, &approval.id, say) {
            Ok(()) => Asked::Again,
            Err(_) => Asked::Refused,
        },
        // The call was just made again and still waits: nobody has answered where it counts.
        Asking::Ask | Asking::Deny | Asking::Allow => Asked::Refused,
    }
}

/// What the person reads.
fn message(approval: &Approval, asking: Asking) -> String {
    let plan: Value = serde_json::from_str(&approval.asked.shown).unwrap_or_default();
    let asked = &approval.asked;
    let mut text = format!(
        "{} wants {}, which needs a person because of {}.\n",
        asked.principal,
        approval.wanted(),
        asked.why
    );
    for line in plan_lines(&plan) {
        text.push_str(&line);
        text.push('\n');
    }
    let cut: String = text.chars().take(QUESTION_CHARS_MAX).collect();
    let rest = if cut.len() < text.len() { "\n… more is shown by the command below\n" } else { "" };
    let id = &approval.id;
    let how = match asking {
        Asking::Client => "Accept to let this run once; decline to refuse it.".to_owned(),
        Asking::Ask | Asking::Deny | Asking::Allow => format!(
            "To allow it, run `stead approvals approve {id}` in a terminal, then accept here. Accepting alone allows nothing."
        ),
    };
    format!("{cut}{rest}{how}")
}
