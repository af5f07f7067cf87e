//! The envelope of every reply, with the members `ok`, `output`, `data` and `error`, and the hashes and diffs in
//! `data`. A member without a value is left out of the reply; no member is null.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use stead_engine::Version;
use stead_text::unified::jsdiff;

use super::errors::CommaErrorKind;
use crate::{
    dialect::{DialectReply, ReplyStatus},
    native::without_nulls,
};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum CommaReplyEnvelope {
    Success { output: String, data: Value },
    Error(Box<CommaToolError>),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommaToolError {
    kind: CommaErrorKind,
    message: String,
    recoverable: bool,
    path: Option<String>,
    details: Option<Value>,
    suggested_next_action: Option<String>,
    #[serde(skip)]
    data: Option<Value>,
}

impl CommaToolError {
    pub(super) fn new(kind: CommaErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            recoverable: false,
            path: None,
            details: None,
            suggested_next_action: None,
            data: None,
        }
    }

    pub(super) fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    pub(super) fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    pub(super) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(super) fn retry_with(mut self, action: impl Into<String>) -> Self {
        (self.recoverable, self.suggested_next_action) = (true, Some(action.into()));
        self
    }

    pub(super) fn retryable(mut self) -> Self {
        (self.recoverable, self.suggested_next_action) = (true, None);
        self
    }

    pub(super) fn do_instead(mut self, action: impl Into<String>) -> Self {
        self.suggested_next_action = Some(action.into());
        self
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    fn to_text(&self) -> String {
        match &self.suggested_next_action {
            Some(action) if self.recoverable => format!("{}\n\nNext step: {action}", self.message),
            Some(_) | None => self.message.clone(),
        }
    }
}

impl From<CommaToolError> for CommaReplyEnvelope {
    fn from(error: CommaToolError) -> Self {
        CommaReplyEnvelope::Error(Box::new(error))
    }
}

impl CommaReplyEnvelope {
    /// The members of `data` that have no value are left out.
    pub(super) fn success(output: impl Into<String>, data: Value) -> Self {
        CommaReplyEnvelope::Success { output: output.into(), data: without_nulls(data) }
    }

    pub(super) fn into_reply(self) -> DialectReply {
        let (json, text, status) = match self {
            CommaReplyEnvelope::Success { output, data } => {
                (json!({ "ok": true, "output": output, "data": data }), output, ReplyStatus::Success)
            }
            CommaReplyEnvelope::Error(error) => {
                let json = json!({
                    "ok": false, "output": error.message, "data": error.data, "error": without_nulls(json!(error)),
                });
                (without_nulls(json), error.to_text(), ReplyStatus::Error)
            }
        };
        DialectReply { json: json.to_string(), text, status }
    }
}

pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    Version::hash_bytes(bytes).to_string()
}

pub(super) fn diff_exact(name: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    jsdiff::jsdiff_patch(name, &lossy_text(before), &lossy_text(after))
}

pub(super) fn diff_normalized(name: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    jsdiff::jsdiff_patch(name, &normalize_text(&lossy_text(before)), &normalize_text(&lossy_text(after)))
}

pub(super) fn normalize_text(text: &str) -> String {
    text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n")
}

fn lossy_text(bytes: Option<&[u8]>) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omits_absent_fields_and_includes_retry_advice() {
        let reply = CommaReplyEnvelope::from(
            CommaToolError::new(CommaErrorKind::NotFound, "Gone: a").with_path("a").retry_with("Look around."),
        )
        .into_reply();
        assert_eq!(
            Value::Object(reply.json_fields()),
            json!({ "ok": false, "output": "Gone: a", "error": {
                "kind": "not_found", "message": "Gone: a", "recoverable": true, "path": "a",
                "suggestedNextAction": "Look around." } })
        );
        assert_eq!(reply.text, "Gone: a\n\nNext step: Look around.");
        let hinted =
            CommaReplyEnvelope::from(CommaToolError::new(CommaErrorKind::BinaryFile, "No").do_instead("Use another."))
                .into_reply();
        assert_eq!((hinted.text.as_str(), hinted.status), ("No", ReplyStatus::Error));
    }
}
