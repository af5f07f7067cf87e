//! The one shape of every answer: `ok`, `output`, `data`, `error`. What is absent is left out, never null.

use serde_json::{Map, Value};

use crate::dialect::{Reply, Verdict};

/// The fields of an object, in the order they are given.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Value::Object(fields.0)
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Envelope {
    /// It is what was asked for.
    Done { output: String, data: Fields },
    /// It is an error.
    Sorry(Box<Sorry>),
}

/// An error.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sorry {
    kind: &'static str,
    message: String,
    path: Option<String>,
    details: Option<Fields>,
    recovery: Recovery,
    data: Option<Fields>,
}

/// Whether trying again can help.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Recovery {
    /// It cannot; a hint may still say why.
    None(Option<String>),
    /// It can.
    Possible(Option<String>),
}

impl Sorry {
    pub(super) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            path: None,
            details: None,
            recovery: Recovery::None(None),
            data: None,
        }
    }

    pub(super) fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    pub(super) fn details(mut self, details: Fields) -> Self {
        self.details = Some(details);
        self
    }

    pub(super) fn beside(mut self, data: Fields) -> Self {
        self.data = Some(data);
        self
    }

    /// Trying again can help, in this way.
    pub(super) fn next(mut self, action: impl Into<String>) -> Self {
        self.recovery = Recovery::Possible(Some(action.into()));
        self
    }

    /// Trying again can help.
    pub(super) fn recoverable(mut self) -> Self {
        self.recovery = Recovery::Possible(None);
        self
    }

    /// Says what else there is; trying the same again cannot help.
    pub(super) fn instead(mut self, action: impl Into<String>) -> Self {
        self.recovery = Recovery::None(Some(action.into()));
        self
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    fn error(&self) -> Fields {
        let (recoverable, action) = match &self.recovery {
            Recovery::None(action) => (false, action),
            Recovery::Possible(action) => (true, action),
        };
        Fields::new()
            .with("kind", self.kind)
            .with("message", self.message.clone())
            .with("recoverable", recoverable)
            .maybe("path", self.path.clone())
            .maybe("details", self.details.clone())
            .maybe("suggestedNextAction", action.clone())
    }

    fn text(&self) -> String {
        match &self.recovery {
            Recovery::Possible(Some(action)) => format!("{}\n\nNext step: {action}", self.message),
            Recovery::Possible(None) | Recovery::None(_) => self.message.clone(),
        }
    }
}

impl From<Sorry> for Envelope {
    fn from(sorry: Sorry) -> Self {
        Envelope::Sorry(Box::new(sorry))
    }
}

impl Envelope {
    pub(super) fn done(output: impl Into<String>, data: Fields) -> Self {
        Envelope::Done { output: output.into(), data }
    }

    pub(super) fn reply(self) -> Reply {
        match self {
            Envelope::Done { output, data } => {
                let fields = Fields::new().with("ok", true).with("output", output.clone()).with("data", data);
                Reply { json: fields.0, text: output, verdict: Verdict::Fine }
            }
            Envelope::Sorry(sorry) => {
                let fields = Fields::new()
                    .with("ok", false)
                    .with("output", sorry.message.clone())
                    .maybe("data", sorry.data.clone())
                    .with("error", sorry.error());
                Reply { json: fields.0, text: sorry.text(), verdict: Verdict::Error }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_keys_are_left_out_and_the_next_step_is_told() {
        let reply = Envelope::from(Sorry::new("not_found", "Gone: a").at("a").next("Look around.")).reply();
        assert_eq!(
            Value::Object(reply.json),
            json!({ "ok": false, "output": "Gone: a", "error": {
                "kind": "not_found", "message": "Gone: a", "recoverable": true, "path": "a",
                "suggestedNextAction": "Look around." } })
        );
        assert_eq!(reply.text, "Gone: a\n\nNext step: Look around.");
        let hinted = Envelope::from(Sorry::new("binary_file", "No").instead("Use another.")).reply();
        assert_eq!((hinted.text.as_str(), hinted.verdict), ("No", Verdict::Error));
    }
}
