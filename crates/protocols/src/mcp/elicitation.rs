//! Asks the client's user to approve a call with a form that MCP calls elicitation. Because the client may be the agent
//! itself, an accepted form is an approval only in the mode `TrustClient`. In all other approval modes, the form names
//! a command with which a person approves the call.
//!
//! A client of a later protocol version returns a sealed request state with the user's answer. A request state is valid
//! once, for one principal and for one plan of one approval.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Mutex,
    time::Duration,
};

use rmcp::{
    model::{
        ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
        InputRequiredResult, InputResponses, RequestStateCodec, SealOptions, ServerRequest,
    },
    service::PeerRequestOptions,
};
use stead_engine::{Approval, ApprovalDecision, ApprovalMode, ApprovalPlanPreview, Caller, Engine, Error};

use super::{McpRequestContext, uses_later_protocol};
use crate::{
    error_rows::{RetryAdvice, error_row},
    limits::{ELICITATION_CHARS_MAX, OPEN_ELICITATIONS_MAX, PERMISSION_TIMEOUT},
};

const APPROVAL_INPUT_NAME: &str = "approval";

pub(super) enum ElicitationNextStep {
    /// The MCP server repeats the refused call, which the client's user may have approved.
    Retry,
    /// The MCP server returns the approval question to the client, whose next request contains the user's answer.
    InputRequired(InputRequiredResult),
    /// The MCP server returns the error with which the engine refused the call.
    Refused,
}

pub(super) struct ElicitationReply {
    pub(super) responses: Option<InputResponses>,
    pub(super) state: Option<String>,
}

impl ElicitationReply {
    fn elicited_action(
        &self,
        handle: &str,
        principal: &str,
        issued: &PendingElicitations,
    ) -> Option<ElicitationAction> {
        let response = self.responses.as_ref()?.get(APPROVAL_INPUT_NAME)?;
        let result: ElicitResult = serde_json::from_value(response.clone()).ok()?;
        issued.redeem(self.state.as_deref()?, handle, principal).then_some(result.action)
    }
}

pub(super) struct PendingElicitations {
    /// The handles of the open approval questions, oldest first; at the maximum number, the oldest handle is dropped.
    open_handles: Mutex<VecDeque<String>>,
    /// Seals request states with a random key. Without a random key, the server accepts no approval answers.
    codec: Option<RequestStateCodec>,
}

impl Default for PendingElicitations {
    fn default() -> Self {
        let mut key = [0; SEAL_KEY_BYTES];
        let codec = getrandom::fill(&mut key).ok().map(|()| RequestStateCodec::new_unchecked(key));
        Self { open_handles: Mutex::default(), codec }
    }
}

impl PendingElicitations {
    fn issue(&self, handle: &str, principal: &str) -> Option<String> {
        let mut open = crate::lock(&self.open_handles);
        open.retain(|known| known != handle);
        open.push_back(handle.to_owned());
        if open.len() > OPEN_ELICITATIONS_MAX {
            open.pop_front();
        }
        let options = SealOptions::new().associated_data(principal.as_bytes()).ttl(STATE_LIFETIME);
        self.codec.as_ref().map(|codec| codec.seal_with(handle.as_bytes(), &options))
    }

    /// Closes the approval question `handle`, and returns whether `sealed` is the request state of an open question.
    fn redeem(&self, sealed: &str, handle: &str, principal: &str) -> bool {
        let opened = self.codec.as_ref().and_then(|codec| codec.open_with(sealed, principal.as_bytes()).ok());
        if opened.is_none_or(|opened| opened != handle.as_bytes()) {
            return false;
        }
        let mut open = crate::lock(&self.open_handles);
        let before = open.len();
        open.retain(|known| known != handle);
        open.len() < before
    }
}

const SEAL_KEY_BYTES: usize = RequestStateCodec::MIN_KEY_LENGTH;
const STATE_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Asks the client's user to approve a refused call. A client gets the approval question as a request of the server, or
/// as the call's result in later MCP versions.
pub(super) async fn elicit_approval(
    engine: &Engine,
    caller: &Caller,
    error: &Error,
    (reply, issued): (&ElicitationReply, &PendingElicitations),
    context: &McpRequestContext,
) -> ElicitationNextStep {
    let can_ask = context.client_capabilities().is_some_and(|client| client.elicitation.is_some());
    let Some(approval) = pending_approval(engine, error).filter(|_| can_ask) else {
        return ElicitationNextStep::Refused;
    };
    let handle = format!("{}.{}", approval.id, approval.request.plan_digest);
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: elicitation_message(&approval, engine.approval_mode()),
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    };
    if uses_later_protocol(context) {
        let principal = caller.principal.to_string();
        return match reply.elicited_action(&handle, &principal, issued) {
            Some(action) => apply_answer(engine, caller, &approval, &action),
            None => {
                let sealed = issued.issue(&handle, &principal);
                let request = InputRequest::Elicitation(ElicitRequest::new(form));
                let requests = BTreeMap::from([(APPROVAL_INPUT_NAME.to_owned(), request)]);
                ElicitationNextStep::InputRequired(InputRequiredResult::new(Some(requests), sealed))
            }
        };
    }
    let mut options = PeerRequestOptions::no_options();
    options.timeout = Some(PERMISSION_TIMEOUT);
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let Ok(sent) = context.peer.send_cancellable_request(request, options).await else {
        return ElicitationNextStep::Refused;
    };
    match sent.await_response().await {
        Ok(rmcp::model::ClientResult::ElicitResult(result)) => {
            match apply_answer(engine, caller, &approval, &result.action) {
                // The user may have approved the call on the command line before accepting the form.
                ElicitationNextStep::Refused if result.action == ElicitationAction::Accept => {
                    ElicitationNextStep::Retry
                }
                other @ (ElicitationNextStep::Retry
                | ElicitationNextStep::InputRequired(_)
                | ElicitationNextStep::Refused) => other,
            }
        }
        Ok(_) | Err(_) => ElicitationNextStep::Refused,
    }
}

fn pending_approval(engine: &Engine, error: &Error) -> Option<Approval> {
    if error_row(error.kind).retry != RetryAdvice::AfterApproval {
        return None;
    }
    let id = error.details.approval.as_deref()?;
    engine.workspace().approval(id).ok().flatten()
}

fn apply_answer(
    engine: &Engine,
    caller: &Caller,
    approval: &Approval,
    action: &ElicitationAction,
) -> ElicitationNextStep {
    let decision = match action {
        ElicitationAction::Accept => ApprovalDecision::Approve,
        ElicitationAction::Decline => ApprovalDecision::Deny,
        // The protocol library may add actions that this code does not know.
        ElicitationAction::Cancel | _ => return ElicitationNextStep::Refused,
    };
    match engine.approval_mode() {
        ApprovalMode::TrustClient => match engine.answer_approval_as_client(caller, &approval.id, decision) {
            Ok(()) => ElicitationNextStep::Retry,
            Err(_) => ElicitationNextStep::Refused,
        },
        // The call was just refused again, so no person has approved it.
        ApprovalMode::AskPerson | ApprovalMode::DenyAll | ApprovalMode::AllowAll => ElicitationNextStep::Refused,
    }
}

fn elicitation_message(approval: &Approval, mode: ApprovalMode) -> String {
    let plan = ApprovalPlanPreview::parse(&approval.request.plan_preview);
    let request = &approval.request;
    let mut text = format!(
        "{} requests {}. It needs approval because of {}.\n",
        request.principal,
        approval.tool_or_operation(),
        request.reason
    );
    for line in plan.render_lines() {
        text.push_str(&line);
        text.push('\n');
    }
    let cut: String = text.chars().take(ELICITATION_CHARS_MAX).collect();
    let rest = if cut.len() < text.len() { "\n… truncated; the command below shows everything\n" } else { "" };
    let id = &approval.id;
    let how = match mode {
        ApprovalMode::TrustClient => "Accept to let this run once; decline to refuse it.".to_owned(),
        ApprovalMode::AskPerson | ApprovalMode::DenyAll | ApprovalMode::AllowAll => format!(
            "To allow it, run `stead approvals approve {id}` in a terminal, then accept here. Accepting alone allows nothing."
        ),
    };
    format!("{cut}{rest}{how}")
}
