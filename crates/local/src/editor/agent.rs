//! The files of a workspace as agents of the Agent Client Protocol ask for them: whole lines by number, and whole files.
//! Unsaved text is what is read, and a write is merged with what the person did since the session last read.

use std::sync::Arc;

use engine::{Answer, Call, Caller, Engine, Evidence, Failure, Form, Kind, Terms, Unseen};
use serde_json::{Value, json};

use super::fields;

/// The files as one session of an agent has them. Clones share the session.
#[derive(Clone)]
pub struct AgentFiles {
    engine: Engine,
    caller: Arc<Caller>,
}

impl AgentFiles {
    pub(super) fn new(engine: Engine, caller: Caller) -> Self {
        Self { engine, caller: Arc::new(caller) }
    }

    /// Marks the start of a turn, which can be reviewed and rejected as one.
    pub fn turn(&self) -> Result<(), Failure> {
        self.call("turn", json!({}), Terms::default()).map(|_| ())
    }

    /// `fs/read_text_file`: the text, or `limit` lines of it from `line` on, counted from 1 (0 is taken for 1). Every line
    /// keeps its terminator, so that slices put together are the file. A line after the end is a bad request.
    pub fn read_text_file(
        &self,
        path: &str,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, Failure> {
        let terms = Terms { evidence: Evidence::Bytes, ..Terms::default() };
        let answer = self.call("read", json!({ "path": path }), terms)?;
        let bytes = answer.evidence.into_iter().find_map(|held| held.before).unwrap_or_default();
        let text = engine::index::text_of(&bytes)
            .ok_or_else(|| Failure::new(Kind::NotText, format!("{path} is not text")))?;
        slice(&text, line, limit).map(str::to_owned).ok_or_else(|| {
            Failure::new(Kind::BadRequest, format!("{path} ends before line {}", line.unwrap_or(1)))
        })
    }

    /// `fs/write_text_file`: the file holds this from now on, with what others changed since this session last read it, and
    /// in the encoding and with the line endings that it has. Directories above it are made. Says whether something was
    /// merged; where both changed the same lines it is a conflict, and nothing is written.
    pub fn write_text_file(&self, path: &str, content: &str) -> Result<bool, Failure> {
        let terms = Terms { unseen: Unseen::Yields, form: Form::OfReplaced, ..Terms::default() };
        let arguments = json!({ "path": path, "content": content, "mode": "merge" });
        let answer = self.call("write", arguments, terms)?;
        Ok(answer.json.get("merged") == Some(&Value::Bool(true)))
    }

    fn call(&self, operation: &str, arguments: Value, terms: Terms) -> Result<Answer, Failure> {
        let call = Call { terms, ..Call::new(&self.caller, operation, fields(arguments)) };
        self.engine.call(&call)
    }
}

/// Lines of a text; nothing when it ends before the first of them. The place after the last terminator counts as a line.
fn slice(text: &str, line: Option<u32>, limit: Option<u32>) -> Option<&str> {
    let skipped = usize::try_from(line.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX);
    let wanted = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let from = starts.nth(skipped)?;
    let rest = &text[from..];
    let to = rest.split_inclusive('\n').take(wanted).map(str::len).sum();
    rest.get(..to)
}

#[cfg(test)]
mod tests {
    use super::slice;

    #[test]
    fn lines_are_cut_as_the_reference_client_cuts_them() {
        let text = "one\ntwo\nthree\nfour\n";
        for (line, limit, expected) in [
            (None, None, Some(text)),
            (Some(3), None, Some("three\nfour\n")),
            (None, Some(2), Some("one\ntwo\n")),
            (Some(2), Some(2), Some("two\nthree\n")),
            (Some(0), None, Some(text)),
            (None, Some(0), Some("")),
            (Some(5), None, Some("")),
            (Some(6), None, None),
            (Some(u32::MAX), Some(u32::MAX), None),
        ] {
            assert_eq!(slice(text, line, limit), expected, "{line:?} {limit:?}");
        }
        assert_eq!((slice("", Some(1), None), slice("", Some(5), None)), (Some(""), None));
        assert_eq!(slice("a\r\nb", Some(2), Some(9)), Some("b"));
    }
}
