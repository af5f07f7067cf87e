//! Line endings and encoding of the files that an agent writes. The members of `_meta.stead` set the format in a write
//! request, and report the format in the response.

use serde::Serialize;
use serde_json::{Value, json};
use stead_engine::{CallReply, SuccessfulCallResult, index::decode_indexable_text, ops::WriteOutcome};

use super::errors::AcpError;
use crate::native::without_nulls;

/// The member of `_meta` that contains all members that this project defines.
const META_KEY: &str = "stead";

/// Whether a file keeps its line endings when an agent writes text with LF only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteLineEndingPolicy {
    #[default]
    Keep,
    AsGiven,
}

/// Whether a file keeps its encoding and its byte order mark when an agent writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteEncodingPolicy {
    #[default]
    Keep,
    Utf8,
}

/// The line endings and the encoding of the files that agents write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteFormatPolicy {
    pub line_endings: WriteLineEndingPolicy,
    pub encoding: WriteEncodingPolicy,
}

impl WriteFormatPolicy {
    pub(super) fn with_call_meta(mut self, meta: Option<&Value>) -> Result<Self, AcpError> {
        let stead_meta = meta.and_then(|meta| meta.get(META_KEY));
        let member = |name: &str| stead_meta.and_then(|stead_meta| stead_meta.get(name));
        match member("lineEndings").map(Value::as_str) {
            None => {}
            Some(Some("kept")) => self.line_endings = WriteLineEndingPolicy::Keep,
            Some(Some("given")) => self.line_endings = WriteLineEndingPolicy::AsGiven,
            Some(_) => return Err(AcpError::invalid_params("_meta.stead.lineEndings must be kept or given")),
        }
        match member("encoding").map(Value::as_str) {
            None => {}
            Some(Some("kept")) => self.encoding = WriteEncodingPolicy::Keep,
            Some(Some("utf-8")) => self.encoding = WriteEncodingPolicy::Utf8,
            Some(_) => return Err(AcpError::invalid_params("_meta.stead.encoding must be kept or utf-8")),
        }
        Ok(self)
    }
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcpWriteAdjustments {
    /// The response to a write reports the line endings only if the write converted them.
    line_endings: Option<&'static str>,
    /// The response to a write reports the encoding of the file only if the encoding is not plain UTF-8.
    encoding: Option<&'static str>,
    merged: Option<bool>,
}

impl AcpWriteAdjustments {
    pub(super) fn from_reply(content: &str, reply: &CallReply<WriteOutcome>) -> Self {
        let after = reply.before_after.first().and_then(|bytes| bytes.after.as_deref());
        let after = after.and_then(decode_indexable_text).unwrap_or_default();
        let converted = after.contains("\r\n") && !content.contains("\r\n");
        let outcome = match &reply.result {
            SuccessfulCallResult::Done(outcome) => Some(outcome),
            SuccessfulCallResult::AlreadyDone(_) | SuccessfulCallResult::LeftToEditor => None,
        };
        // If the editor applies the write, there is no outcome, so the whole texts are compared.
        let differs = || !after.is_empty() && normalize_text(&after) != normalize_text(content);
        Self {
            line_endings: converted.then_some("crlf"),
            encoding: outcome.and_then(|outcome| outcome.encoding),
            merged: outcome.and_then(|outcome| outcome.merged).unwrap_or_else(differs).then_some(true),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let report = without_nulls(json!(self));
        if report == json!({}) { report } else { json!({ "_meta": { META_KEY: report } }) }
    }
}

fn normalize_text(text: &str) -> String {
    text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_meta_overrides_format_policy() {
        let with_meta = |meta: Value| WriteFormatPolicy::default().with_call_meta(Some(&meta));
        assert_eq!(with_meta(json!({ "other": 1 })).unwrap(), WriteFormatPolicy::default());
        let given = with_meta(json!({ "stead": { "lineEndings": "given", "encoding": "utf-8" } })).unwrap();
        assert_eq!(
            given,
            WriteFormatPolicy { line_endings: WriteLineEndingPolicy::AsGiven, encoding: WriteEncodingPolicy::Utf8 }
        );
        let kept = given.with_call_meta(Some(&json!({ "stead": { "lineEndings": "kept" } }))).unwrap();
        assert_eq!(
            kept,
            WriteFormatPolicy { line_endings: WriteLineEndingPolicy::Keep, encoding: WriteEncodingPolicy::Utf8 }
        );
        for wrong in [json!({ "lineEndings": "lf" }), json!({ "encoding": 7 }), json!({ "encoding": "utf-16" })] {
            assert_eq!(with_meta(json!({ "stead": wrong })).unwrap_err().code(), -32602);
        }
    }
}
