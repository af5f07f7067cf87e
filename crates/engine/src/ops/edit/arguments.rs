//! The arguments of `edit`, as models send them. Owns what is read as what was meant: a list that came as a string, a
//! number that came as a fraction; and what is named instead: fields of other vocabularies, edits in the wrong place.

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value};
use text::edit::{Edit as Quoted, Wanted};

use super::bad;
use crate::{failure::Failure, limits};

/// The arguments of `edit`.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(super) path: String,
    pub(super) edits: Vec<One>,
    pub(super) base: Option<String>,
    pub(super) mode: Mode,
    pub(super) dry_run: bool,
}

/// One edit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct One {
    pub(super) old: String,
    pub(super) new: String,
    #[serde(default, deserialize_with = "whole")]
    count: Option<usize>,
    #[serde(default, deserialize_with = "whole")]
    near_line: Option<usize>,
    #[serde(default)]
    all: bool,
}

/// How much an old base may matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// The base must be current.
    Strict,
    /// An old base is fine where every quoted place stands untouched.
    #[default]
    Anchored,
    /// What changed elsewhere is merged, if that is clean.
    Merge,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain {
    path: String,
    #[serde(deserialize_with = "list")]
    edits: Vec<One>,
    base: Option<String>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    dry_run: bool,
}

/// What other vocabularies call the quoted and the new text.
const MISPLACED: &[&str] = &[
    "old",
    "new",
    "old_string",
    "new_string",
    "old_str",
    "new_str",
    "old_text",
    "new_text",
    "oldString",
    "newString",
    "oldText",
    "newText",
    "search",
    "replace",
    "replacement",
    "count",
    "near_line",
    "all",
    "replace_all",
];

impl<'de> Deserialize<'de> for Edit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Map::<String, Value>::deserialize(deserializer)?;
        if let Some(name) = MISPLACED.iter().find(|name| given.contains_key(**name)) {
            return Err(D::Error::custom(format!(
                "`{name}` does not stand by itself: give `edits`: [{{\"old\": \"…\", \"new\": \"…\"}}]"
            )));
        }
        let Plain { path, edits, base, mode, dry_run } =
            Plain::deserialize(Value::Object(given)).map_err(D::Error::custom)?;
        Ok(Self { path, edits, base, mode, dry_run })
    }
}

impl Edit {
    /// The edits as they are judged.
    pub(super) fn quoted(&self) -> Result<Vec<Quoted<'_>>, Failure> {
        if self.edits.is_empty() {
            return Err(bad("there is no edit").hint("give edits: [{\"old\": \"…\", \"new\": \"…\"}]"));
        }
        if self.edits.len() > limits::EDITS_MAX {
            return Err(bad(format!("{} edits are more than {}", self.edits.len(), limits::EDITS_MAX))
                .hint("split them over several calls"));
        }
        let quoted = |(index, one): (usize, &'_ One)| -> Result<Wanted, Failure> {
            match (one.count, one.near_line, one.all) {
                (None, None, false) => Ok(Wanted::One),
                (Some(count), None, false) if count > 0 => Ok(Wanted::Count(count)),
                (None, Some(line), false) => Ok(Wanted::Near(line)),
                (None, None, true) => Ok(Wanted::All),
                (_, _, _) => Err(bad(format!("edit {index} says more than one of count, near_line and all"))
                    .hint("count: how many places there are, all replaced; near_line: only the nearest; all: every place")
                    .fact("edit", index)),
            }
        };
        self.edits
            .iter()
            .enumerate()
            .map(|(index, one)| Ok(Quoted { old: &one.old, new: &one.new, wanted: quoted((index, one))? }))
            .collect()
    }
}

/// The edits, also when they come as one JSON text or as a single edit.
fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<One>, D::Error> {
    let mut value = Value::deserialize(deserializer)?;
    if let Value::String(text) = &value {
        value = serde_json::from_str(text)
            .map_err(|error| D::Error::custom(format!("edits is a string that is no JSON list: {error}")))?;
    }
    let items = match value {
        Value::Array(items) => items,
        single @ Value::Object(_) => vec![single],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(D::Error::custom("edits is not a list of {\"old\": …, \"new\": …}"));
        }
    };
    items.into_iter().map(|item| One::deserialize(item).map_err(D::Error::custom)).collect()
}

/// A whole number, also when it comes as `3.0` or `"3"`.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let text = match &value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    };
    let digits = text.strip_suffix(".0").unwrap_or(&text);
    digits.parse().map(Some).map_err(|_| D::Error::custom(format!("{value} is not a whole number")))
}
