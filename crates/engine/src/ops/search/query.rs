//! The query: one text, or several of which any may match.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    call_context::CallContext,
    call_options::BeforeAfterInclusion,
    errors::{Error, ErrorKind},
};

#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "a text, or a list of texts")]
pub(super) enum SearchQuery {
    /// One text, or one per line.
    Text(String),
    AnyOf(Vec<String>),
}

impl SearchQuery {
    /// The query texts. A dialect that reads raw bytes has its own line rules, so its text is not split.
    pub(super) fn texts(&self, context: &CallContext<'_>) -> Result<Vec<&str>, Error> {
        let texts: Vec<&str> = match (self, context.options.before_after) {
            (Self::Text(text), BeforeAfterInclusion::Include) => vec![text],
            (Self::Text(text), BeforeAfterInclusion::Omit) => text.split('\n').collect(),
            (Self::AnyOf(texts), _) => texts.iter().map(String::as_str).collect(),
        };
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            return Err(
                Error::new(ErrorKind::BadRequest, "the query is empty").with_next_step("pass a text to search for")
            );
        }
        Ok(texts)
    }

    /// The query as shown in the outcome.
    pub(super) fn display_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) if text.contains('\n') => text.replace('\n', " | ").into(),
            Self::Text(text) => text.as_str().into(),
            Self::AnyOf(texts) => texts.join(" | ").into(),
        }
    }
}
