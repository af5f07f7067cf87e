//! A call that waits for a person, put before the client's own person. A client may be the agent itself, so what comes
//! back is a yes only where the operator chose so; by default the form names the command that answers, and accepting
//! merely makes the server look again.
//!
//! What a client carries from one round to the next is an opaque handle: the approval and the plan it is bound to. It is
//! compared with what the store says, and counts once, and only where it was given out: in this very conversation.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use engine::{Approval, Asking, Caller, Engine, Failure, Kind, Say, plan_lines};
use rmcp::{
    RoleServer,
    model::{
        ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
        InputRequiredResult, InputResponses, ProtocolVersion, ServerRequest,
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
    fn action(&self, handle: &str, issued: &Issued) -> Option<ElicitationAction> {
        let given = self.responses.as_ref()?.get(QUESTION)?;
        let result: ElicitResult = serde_json::from_value(given.clone()).ok()?;
        (self.state.as_deref() == Some(handle) && issued.take(handle)).then_some(result.action)
    }
}

/// The handles that were given out in one conversation and not used yet; the oldest are forgotten first.
#[derive(Default)]
pub(super) struct Issued(Mutex<VecDeque<String>>);

impl Issued {
    fn give(&self, handle: &str) {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|known| known != handle);
        given.push_back(handle.to_owned());
        if given.len() > ISSUED_MAX {
            given.pop_front();
        }
    }

    /// Whether it was given out; it is used up by asking.
    fn take(&self, handle: &str) -> bool {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = given.len();
        given.retain(|known| known != handle);
        given.len() < before
    }
}

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
        return match brought.action(&handle, issued) {
            Some(action) => settle(engine, caller, &approval, &action),
            None => {
                issued.give(&handle);
                let request = InputRequest::Elicitation(ElicitRequest::new(form));
                let requests = BTreeMap::from([(QUESTION.to_owned(), request)]);
                Asked::First(InputRequiredResult::new(Some(requests), Some(handle)))
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
