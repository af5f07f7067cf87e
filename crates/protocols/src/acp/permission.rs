//! Asks the person at the editor to approve a write. The permission request is sent only to the editor; the agent does
//! not see it. The person's answer is valid only if the operator configured that clients may answer approvals. An
//! approval applies only to the exact plan in the permission request.

use serde_json::{Value, json};
use stead_engine::{ApprovalDecision, ApprovalMode, Error, ErrorKind, index::decode_indexable_text};

use super::{
    editor_requests::EditorResponse, errors::AcpError, files::AcpRunningFileCall, message, router::CANCEL_METHOD,
};
use crate::{
    limits::{PERMISSION_DIFF_BYTES_MAX, PERMISSION_TIMEOUT},
    native::without_nulls,
};

const PERMISSION_METHOD: &str = "session/request_permission";

/// The kind of a permission option is also the id of the option.
const PERMISSION_OPTIONS: &[(&str, &str, PermissionChoice)] = &[
    ("allow_once", "Allow this write", PermissionChoice::AllowOnce),
    ("allow_always", "Always allow writing this file", PermissionChoice::AllowAlways),
    ("reject_once", "Refuse this write", PermissionChoice::RejectOnce),
    ("reject_always", "Refuse every write of this file in this session", PermissionChoice::RejectAlways),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PermissionChoice {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

impl AcpRunningFileCall<'_> {
    /// Asks the person at the editor to approve a write that the engine refused with `error`. Returns `Ok` if the
    /// person at the editor approved the write.
    pub(super) async fn request_permission(&self, error: &Error) -> Result<(), AcpError> {
        let engine = self.root()?.executor.engine().clone();
        let id = error.details.approval.as_deref();
        let Some(id) = id.filter(|_| engine.approval_mode() == ApprovalMode::TrustClient) else {
            return Err(AcpError::from_error(error, &self.requested_path));
        };
        let choice = if self.session.rejects_writes(&self.resolved_path) {
            PermissionChoice::RejectAlways
        } else {
            self.prompt_user(error).await?
        };
        let decision = match choice {
            PermissionChoice::AllowOnce | PermissionChoice::AllowAlways => ApprovalDecision::Approve,
            PermissionChoice::RejectOnce | PermissionChoice::RejectAlways => ApprovalDecision::Deny,
        };
        if choice == PermissionChoice::RejectAlways {
            self.session.reject_writes(&self.resolved_path);
        }
        let (caller, approval) = (self.root()?.agent.clone(), id.to_owned());
        let root_opener = self.proxy.root_opener.clone();
        let answered = tokio::task::spawn_blocking(move || {
            // The rule must be added while the approval is still pending.
            let rule_added = match choice {
                PermissionChoice::AllowAlways => root_opener.add_allow_rule(&engine, &approval),
                PermissionChoice::AllowOnce | PermissionChoice::RejectOnce | PermissionChoice::RejectAlways => Ok(()),
            };
            engine.answer_approval_as_client(&caller, &approval, decision).and(rule_added)
        });
        match (decision, answered.await) {
            (ApprovalDecision::Approve, Ok(Ok(()))) => Ok(()),
            (ApprovalDecision::Approve, Ok(Err(error))) => Err(AcpError::from_error(&error, &self.requested_path)),
            (ApprovalDecision::Approve, Err(_)) => {
                Err(AcpError::internal_error("io_error: the approval could not be recorded"))
            }
            (ApprovalDecision::Deny, _) => {
                let refused = Error::new(ErrorKind::ApprovalDenied, "the person at the editor denied this write")
                    .with_next_step("nothing was changed; try another approach, or ask what they want instead");
                Err(AcpError::from_error(&refused, &self.requested_path))
            }
        }
    }

    async fn prompt_user(&self, error: &Error) -> Result<PermissionChoice, AcpError> {
        let text = |bytes: &Option<Vec<u8>>| Some(decode_indexable_text(bytes.as_deref()?)?.into_owned());
        let bytes = error.before_after();
        let (old, new) = bytes.map_or((None, None), |bytes| (text(&bytes.before), text(&bytes.after)));
        let params = self.permission_params(error, old.as_deref(), &new.unwrap_or_default());
        parse_choice(self.request_editor(PERMISSION_METHOD, &params).await?, error, &self.requested_path)
    }

    /// A request to the editor ends when the editor responds, or when the call is cancelled or times out.
    pub(super) async fn request_editor(&self, method: &str, params: &Value) -> Result<EditorResponse, AcpError> {
        let cancelling = self.session.until_cancelled();
        let Some(pending) = self.proxy.router.editor_requests.register() else {
            return Err(AcpError::cancelled());
        };
        self.proxy
            .editor
            .send(message::request_line(&pending.id, method, params))
            .await
            .map_err(|_| AcpError::cancelled())?;
        let reason = tokio::select! {
            response = pending.response => return response.map_err(|_| AcpError::cancelled()),
            () = self.until_cancelled() => AcpError::cancelled(),
            () = cancelling => AcpError::cancelled(),
            () = tokio::time::sleep(PERMISSION_TIMEOUT) => {
                AcpError::internal_error("deadline: the editor did not respond in time")
            }
        };
        self.proxy.router.editor_requests.cancel(&pending.id);
        let notice = message::notification_line(CANCEL_METHOD, &json!({ "requestId": pending.id }));
        // A send error means that the editor has disconnected.
        drop(self.proxy.editor.send(notice).await);
        Err(reason)
    }

    fn permission_params(&self, error: &Error, old: Option<&str>, new: &str) -> Value {
        let size = old.map_or(0, str::len) + new.len();
        let content = if size <= PERMISSION_DIFF_BYTES_MAX {
            without_nulls(json!({ "type": "diff", "path": self.requested_path, "newText": new, "oldText": old }))
        } else {
            let text = format!("replaces {} bytes with {}; too large to show", old.map_or(0, str::len), new.len());
            json!({ "type": "content", "content": { "type": "text", "text": text } })
        };
        let options =
            PERMISSION_OPTIONS.iter().map(|(kind, name, _)| json!({ "optionId": kind, "name": name, "kind": kind }));
        let approval = error.details.approval.as_deref().unwrap_or_default();
        json!({
            "sessionId": self.session.id,
            "toolCall": {
                "toolCallId": format!("stead-{approval}"),
                "title": format!("Write {}", self.requested_path),
                "kind": "edit",
                "status": "pending",
                "content": [content],
                "locations": [{ "path": self.requested_path }],
            },
            "options": options.collect::<Vec<_>>(),
        })
    }
}

/// A response that selects none of the four permission options is not an approval.
fn parse_choice(response: EditorResponse, error: &Error, path: &str) -> Result<PermissionChoice, AcpError> {
    let Ok(result) = response else { return Err(AcpError::from_error(error, path)) };
    let outcome = &result["outcome"];
    let selected = PERMISSION_OPTIONS.iter().find(|(kind, ..)| outcome["optionId"] == *kind);
    match (outcome["outcome"].as_str(), selected) {
        (Some("selected"), Some((.., choice))) => Ok(*choice),
        (Some("cancelled"), _) => Err(AcpError::cancelled()),
        (_, _) => Err(AcpError::from_error(error, path)),
    }
}
