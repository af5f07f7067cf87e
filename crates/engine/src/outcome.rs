//! Typed results of calls, and their conversion into the object and the text that protocols send.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use stead_journal::Digest;

use crate::{
    call_notation::CallNotation,
    engine::{BeforeAfterBytes, CallOutcome, SessionForLaterCalls},
    native_text::NativeText,
    ops::outcome_builder::format_iso_utc,
    version::Version,
    workspace::CommitReceipt,
};

/// The typed result of a successful call. The serialized fields of a result are the object that programs receive;
/// skipped fields exist only for the text or for dialects.
pub(crate) trait OperationOutcome: Serialize + NativeText + 'static {
    /// Takes the file contents before and after the call, which dialects receive beside the object.
    fn take_before_after(&mut self) -> Vec<BeforeAfterBytes> {
        Vec::new()
    }

    fn session_switch(&self) -> Option<SessionForLaterCalls> {
        None
    }
}

pub(crate) trait IntoCallOutcome {
    fn into_call_outcome(self, notation: CallNotation) -> CallOutcome;
}

impl IntoCallOutcome for CallOutcome {
    fn into_call_outcome(self, _notation: CallNotation) -> CallOutcome {
        self
    }
}

impl<T: OperationOutcome> IntoCallOutcome for T {
    fn into_call_outcome(mut self, notation: CallNotation) -> CallOutcome {
        let before_after = self.take_before_after();
        CallOutcome {
            json: to_json_object(&self),
            text: self.native_text(notation),
            before_after,
            session_switch: self.session_switch(),
        }
    }
}

/// The derived serialization of a struct to JSON cannot fail.
pub(crate) fn to_json_object(fields: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(fields) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct RecordedEntryFields {
    pub(crate) entry: u64,
    pub(crate) hash: Digest,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notices: Vec<String>,
}

impl From<&CommitReceipt> for RecordedEntryFields {
    fn from(receipt: &CommitReceipt) -> Self {
        Self { entry: receipt.entry, hash: receipt.hash, notices: receipt.notices.clone() }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct FileVersionFields {
    pub(crate) version: Version,
    pub(crate) rev: String,
}

impl FileVersionFields {
    pub(crate) fn written(version: Version, receipt: &CommitReceipt) -> Self {
        Self { version, rev: format!("r{}", receipt.entry) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UtcTime {
    pub(crate) unix_ms: i64,
}

impl std::fmt::Display for UtcTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&format_iso_utc(self.unix_ms))
    }
}

impl Serialize for UtcTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
pub(crate) fn is_zero(count: &usize) -> bool {
    *count == 0
}
