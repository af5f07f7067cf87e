//! The form of a recording: one JSON object a line, in order. Steps prepare the tree, make a call, or say what must be
//! so. What is not known is refused, so that no line is passed over in silence.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One line.
pub(super) struct Step {
    pub(super) line: usize,
    /// The line itself, for showing.
    pub(super) text: String,
    pub(super) what: What,
}

/// What a line says.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum What {
    /// Everything starts anew, with an empty workspace.
    NewWorkspace(NewWorkspace),
    /// A directory is made.
    Mkdir { path: String },
    /// A file is written.
    Put(Put),
    /// A link is made.
    Symlink { path: String, target: String },
    /// Permission bits are set.
    Chmod { path: String, mode: String },
    /// A tool is called.
    Call(Box<Call>),
    /// What must be on the disk.
    Disk(Disk),
    /// What must be in the log, in order.
    AuditEntry { entry: Map<String, Value> },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewWorkspace {
    #[serde(default)]
    pub(super) workspace: Option<String>,
    #[serde(default)]
    pub(super) restrict: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Put {
    pub(super) path: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    hex: Option<String>,
}

/// A call, and what it must answer if that is known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) args: Map<String, Value>,
    /// The answer.
    #[serde(default)]
    pub(super) expect: Option<Map<String, Value>>,
    /// What is wrong with the arguments, by field.
    #[serde(default)]
    pub(super) schema_error: Option<Vec<Issue>>,
    /// The original broke off here.
    #[serde(default)]
    pub(super) throws: Option<String>,
    #[serde(default, rename = "forbiddenGlobs")]
    pub(super) forbidden_globs: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Issue {
    pub(super) path: String,
    pub(super) message: String,
}

/// What must be at a path; `text` that is null means nothing.
#[derive(Debug, Deserialize)]
pub(super) struct Disk {
    pub(super) path: String,
    #[serde(flatten)]
    pub(super) facts: Map<String, Value>,
}

/// Reads a recording.
pub(super) fn read(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let what = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))?;
        steps.push(Step { line: at + 1, text: line.to_owned(), what });
    }
    Ok(steps)
}

impl Put {
    /// The bytes to write.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, String> {
        match (&self.text, &self.hex) {
            (Some(text), None) => Ok(text.clone().into_bytes()),
            (None, Some(hex)) => from_hex(hex).ok_or_else(|| format!("{}: not hexadecimal", self.path)),
            (Some(_), Some(_)) | (None, None) => Err(format!("{}: give text or hex", self.path)),
        }
    }
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    rest.is_empty().then_some(())?;
    pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_strange_ones_refused() {
        let steps =
            read("{\"op\":\"mkdir\",\"path\":\"a\"}\n\n{\"op\":\"put\",\"path\":\"b\",\"hex\":\"61ff\"}")
                .unwrap();
        assert_eq!(steps.iter().map(|step| step.line).collect::<Vec<_>>(), [1, 3]);
        let What::Put(put) = &steps[1].what else { panic!("a put") };
        assert_eq!(put.bytes(), Ok(vec![0x61, 0xff]));
        for strange in ["{\"op\":\"fly\"}", "{}", "x", "{\"op\":\"call\",\"tool\":\"t\",\"hope\":1}"] {
            assert!(read(strange).is_err(), "{strange}");
        }
        assert_eq!(from_hex("6"), None);
    }
}
