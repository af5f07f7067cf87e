//! The form of a file that an agent writes: which line endings and encoding it keeps, and what the agent is told of it.
//! Owns the words for that in `_meta`. Pure.

use engine::{Answer, index::text_of};
use serde_json::{Map, Value, json};

use super::sorry::Sorry;

/// Where what is ours stands in `_meta`.
const OURS: &str = "stead";

/// Whether a file keeps its line endings when an agent writes text that has none but LF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Endings {
    /// It does.
    #[default]
    Kept,
    /// What the agent gives is written.
    AsGiven,
}

/// Whether a file keeps its encoding, its byte order mark included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encodings {
    /// It does.
    #[default]
    Kept,
    /// What the agent gives is written in UTF-8.
    Utf8,
}

/// What of a file's form is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keeping {
    /// What becomes of line endings.
    pub endings: Endings,
    /// What becomes of encodings.
    pub encodings: Encodings,
}

impl Keeping {
    /// The same as one call asks for it in its `_meta`.
    pub(super) fn asked(mut self, meta: Option<&Value>) -> Result<Self, Sorry> {
        let ours = meta.and_then(|meta| meta.get(OURS));
        let word = |name: &str| ours.and_then(|ours| ours.get(name));
        match word("lineEndings").map(Value::as_str) {
            None => {}
            Some(Some("kept")) => self.endings = Endings::Kept,
            Some(Some("given")) => self.endings = Endings::AsGiven,
            Some(_) => return Err(Sorry::params("_meta.stead.lineEndings is kept or given")),
        }
        match word("encoding").map(Value::as_str) {
            None => {}
            Some(Some("kept")) => self.encodings = Encodings::Kept,
            Some(Some("utf-8")) => self.encodings = Encodings::Utf8,
            Some(_) => return Err(Sorry::params("_meta.stead.encoding is kept or utf-8")),
        }
        Ok(self)
    }
}

/// What became of a write, as far as it is not what the agent gave.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// The line endings that the text took on.
    endings: Option<&'static str>,
    /// The encoding that the file kept, where it is not plain UTF-8.
    encoding: Option<String>,
    /// Whether what others changed was merged in.
    merged: Option<bool>,
}

impl Written {
    /// What an answer says about a content.
    pub(super) fn of(content: &str, answer: &Answer) -> Self {
        let after = answer.evidence.first().and_then(|held| held.after.as_deref());
        let after = after.and_then(text_of).unwrap_or_default();
        let took_over = after.contains("\r\n") && !content.contains("\r\n");
        let said = |name: &str| answer.json.get(name);
        let merged = match said("merged") {
            Some(merged) => merged == &Value::Bool(true),
            // Whoever makes it true elsewhere is told the whole text alone.
            None => !after.is_empty() && plain(&after) != plain(content),
        };
        Self {
            endings: took_over.then_some("crlf"),
            encoding: said("encoding").and_then(Value::as_str).map(str::to_owned),
            merged: merged.then_some(true),
        }
    }

    /// The answer to the agent.
    pub(super) fn json(&self) -> Value {
        let fields = [
            ("lineEndings", self.endings.map(Value::from)),
            ("encoding", self.encoding.as_deref().map(Value::from)),
            ("merged", self.merged.map(Value::from)),
        ];
        let told: Map<String, Value> =
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        if told.is_empty() { json!({}) } else { json!({ "_meta": { OURS: told } }) }
    }
}

fn plain(text: &str) -> String {
    text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_asks_for_what_it_wants() {
        let asked = |meta: Value| Keeping::default().asked(Some(&meta));
        assert_eq!(asked(json!({ "other": 1 })).unwrap(), Keeping::default());
        let given = asked(json!({ "stead": { "lineEndings": "given", "encoding": "utf-8" } })).unwrap();
        assert_eq!(given, Keeping { endings: Endings::AsGiven, encodings: Encodings::Utf8 });
        let kept = given.asked(Some(&json!({ "stead": { "lineEndings": "kept" } }))).unwrap();
        assert_eq!(kept, Keeping { endings: Endings::Kept, encodings: Encodings::Utf8 });
        for wrong in
            [json!({ "lineEndings": "lf" }), json!({ "encoding": 7 }), json!({ "encoding": "utf-16" })]
        {
            assert_eq!(asked(json!({ "stead": wrong })).unwrap_err().code(), -32602);
        }
    }
}
