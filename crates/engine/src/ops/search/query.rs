//! What is looked for: one text, or several of which any will do.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    failure::{Failure, Kind},
    terms::Evidence,
    view::View,
};

/// The query of a search, as it is given.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "a text, or a list of texts")]
pub(super) enum Query {
    /// One text, or one for each line.
    Text(String),
    /// A list of texts.
    Any(Vec<String>),
}

impl Query {
    /// The texts. A vocabulary that brings bytes has its own rules for lines, so there the text is one.
    pub(super) fn texts(&self, view: &View<'_>) -> Result<Vec<&str>, Failure> {
        let texts: Vec<&str> = match (self, view.terms.evidence) {
            (Self::Text(text), Evidence::Bytes) => vec![text],
            (Self::Text(text), Evidence::None) => text.split('\n').collect(),
            (Self::Any(texts), _) => texts.iter().map(String::as_str).collect(),
        };
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            return Err(Failure::new(Kind::BadRequest, "the query is empty").hint("say what to look for"));
        }
        Ok(texts)
    }

    /// The query as an answer repeats it.
    pub(super) fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) if text.contains('\n') => text.replace('\n', " | ").into(),
            Self::Text(text) => text.as_str().into(),
            Self::Any(texts) => texts.join(" | ").into(),
        }
    }
}
