//! The format of a recording, which has one JSON object per line. Unknown steps and fields are errors, so that no line
//! is skipped silently.

use serde::Deserialize;
use serde_json::{Map, Value};

pub(super) struct RecordingStep {
    pub(super) line: usize,
    pub(super) source_line: String,
    pub(super) action: RecordingStepAction,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum RecordingStepAction {
    /// Replaces the workspace of the replay by a new, empty workspace.
    NewWorkspace(RecordingNewWorkspaceStep),
    Mkdir {
        path: String,
    },
    #[serde(rename = "put")]
    WriteFile(ReplayWriteFileStep),
    Symlink {
        path: String,
        target: String,
    },
    Chmod {
        path: String,
        mode: String,
    },
    Call(Box<RecordedToolCallStep>),
    #[serde(rename = "disk")]
    ExpectFile(ReplayFileExpectation),
    #[serde(rename = "audit_entry")]
    ExpectAuditEntry {
        entry: Map<String, Value>,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordingNewWorkspaceStep {
    #[serde(default)]
    pub(super) workspace: Option<String>,
    #[serde(default)]
    pub(super) restrict: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplayWriteFileStep {
    pub(super) path: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    hex: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedToolCallStep {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) args: Map<String, Value>,
    #[serde(default)]
    pub(super) expect: Option<Map<String, Value>>,
    /// The errors about arguments with which the recorded call must fail.
    #[serde(default)]
    pub(super) schema_error: Option<Vec<ExpectedArgumentError>>,
    /// The error that the published server threw at the recorded call.
    #[serde(default)]
    pub(super) throws: Option<String>,
    #[serde(default, rename = "forbiddenGlobs")]
    pub(super) forbidden_globs: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedArgumentError {
    pub(super) path: String,
    pub(super) message: String,
}

/// The expected state of a path; a `text` of null means that the path must not exist.
#[derive(Debug, Deserialize)]
pub(super) struct ReplayFileExpectation {
    pub(super) path: String,
    #[serde(flatten)]
    pub(super) facts: Map<String, Value>,
}

pub(super) fn parse_recording(text: &str) -> Result<Vec<RecordingStep>, String> {
    let mut steps = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let action = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))?;
        steps.push(RecordingStep { line: at + 1, source_line: line.to_owned(), action });
    }
    Ok(steps)
}

impl ReplayWriteFileStep {
    pub(super) fn bytes(&self) -> Result<Vec<u8>, String> {
        match (&self.text, &self.hex) {
            (Some(text), None) => Ok(text.clone().into_bytes()),
            (None, Some(hex)) => decode_hex(hex).ok_or_else(|| format!("{}: not hexadecimal", self.path)),
            (Some(_), Some(_)) | (None, None) => Err(format!("{}: give text or hex", self.path)),
        }
    }
}

fn decode_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    rest.is_empty().then_some(())?;
    pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recording_lines_are_parsed_and_unknown_ones_rejected() {
        let steps =
            parse_recording("{\"op\":\"mkdir\",\"path\":\"a\"}\n\n{\"op\":\"put\",\"path\":\"b\",\"hex\":\"61ff\"}")
                .unwrap();
        assert_eq!(steps.iter().map(|step| step.line).collect::<Vec<_>>(), [1, 3]);
        let RecordingStepAction::WriteFile(put) = &steps[1].action else { panic!("a put") };
        assert_eq!(put.bytes(), Ok(vec![0x61, 0xff]));
        for invalid in ["{\"op\":\"fly\"}", "{}", "x", "{\"op\":\"call\",\"tool\":\"t\",\"hope\":1}"] {
            assert!(parse_recording(invalid).is_err(), "{invalid}");
        }
        assert_eq!(decode_hex("6"), None);
    }
}
