//! File access as in the Agent Client Protocol: line ranges and whole files. Reads include unsaved text; a write is merged
//! with the person's changes since the session last read the file.

use std::sync::Arc;

use serde_json::{Value, json};
use stead_engine::{
    BeforeAfterInclusion, Call, CallOptions, CallOutcome, Caller, Engine, Error, ErrorKind, MissingBase,
    ReplacementFormat,
};

use super::into_object;

/// The files as seen by one agent session. Clones share the session.
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
    pub fn begin_turn(&self) -> Result<(), Error> {
        self.call("turn", json!({}), CallOptions::default()).map(|_| ())
    }

    /// `fs/read_text_file`: the whole text, or `limit` lines from `line` on, counted from 1 (0 counts as 1). Lines keep their
    /// terminators, so that slices can be joined. A line after the end is a bad request.
    pub fn read_text_file(&self, path: &str, line: Option<u32>, limit: Option<u32>) -> Result<String, Error> {
        let options = CallOptions { before_after: BeforeAfterInclusion::Include, ..CallOptions::default() };
        let outcome = self.call("read", json!({ "path": path }), options)?;
        let bytes = outcome.before_after.into_iter().find_map(|content| content.before).unwrap_or_default();
        let text = stead_engine::index::decode_indexable_text(&bytes)
            .ok_or_else(|| Error::new(ErrorKind::NotText, format!("{path} is not text")))?;
        slice_lines(&text, line, limit)
            .map(str::to_owned)
            .ok_or_else(|| Error::new(ErrorKind::BadRequest, format!("{path} ends before line {}", line.unwrap_or(1))))
    }

    /// `fs/write_text_file`: replaces the content, merged with changes made since this session last read the file. Keeps the
    /// encoding and line endings, and creates parent directories. Returns whether a merge was needed; if both sides changed
    /// the same lines, returns a conflict and writes nothing.
    pub fn write_text_file(&self, path: &str, content: &str) -> Result<bool, Error> {
        let options = CallOptions {
            missing_base: MissingBase::Overwrite,
            replacement_format: ReplacementFormat::MatchReplaced,
            ..CallOptions::default()
        };
        let arguments = json!({ "path": path, "content": content, "mode": "merge" });
        let outcome = self.call("write", arguments, options)?;
        Ok(outcome.json.get("merged") == Some(&Value::Bool(true)))
    }

    fn call(&self, operation: &str, arguments: Value, options: CallOptions) -> Result<CallOutcome, Error> {
        let call = Call { options, ..Call::new(&self.caller, operation, into_object(arguments)) };
        self.engine.call(&call)
    }
}

/// A range of lines, or `None` if the text ends before it. The position after the last terminator counts as a line.
fn slice_lines(text: &str, line: Option<u32>, limit: Option<u32>) -> Option<&str> {
    let skipped = usize::try_from(line.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX);
    let lines_max = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let from = starts.nth(skipped)?;
    let rest = &text[from..];
    let to = rest.split_inclusive('\n').take(lines_max).map(str::len).sum();
    rest.get(..to)
}

#[cfg(test)]
mod tests {
    use super::slice_lines;

    #[test]
    fn lines_are_sliced_like_the_reference_client() {
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
            assert_eq!(slice_lines(text, line, limit), expected, "{line:?} {limit:?}");
        }
        assert_eq!((slice_lines("", Some(1), None), slice_lines("", Some(5), None)), (Some(""), None));
        assert_eq!(slice_lines("a\r\nb", Some(2), Some(9)), Some("b"));
    }
}
