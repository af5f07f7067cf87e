//! The arguments of `edit`, including mistakes that models often make. `edit` accepts a list of edits written as a
//! string, and a whole number written as `3.0`. If the caller uses a field name of another tool, the error of `edit`
//! names the right field.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{
        Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::error::Category;
use stead_text::edit::{EditMatchingRules, FindReplaceEdit, OccurrenceSelector};

use super::bad_request;
use crate::{errors::Error, limits, outcome::is_default};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct EditArgs {
    pub path: String,
    #[serde(deserialize_with = "deserialize_edit_list")]
    pub edits: Vec<EditItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: StaleEditHandling,
    #[serde(default, skip_serializing_if = "is_default")]
    pub dry_run: bool,
    #[serde(skip)]
    pub rules: EditMatchingRules,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditItem {
    pub old: String,
    pub new: String,
    #[serde(default, deserialize_with = "deserialize_whole_number", skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    #[serde(default, deserialize_with = "deserialize_whole_number", skip_serializing_if = "Option::is_none")]
    pub near_line: Option<usize>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StaleEditHandling {
    Strict,
    /// `edit` accepts an older base if the text at every quoted place is unchanged.
    #[default]
    Anchored,
    /// `edit` merges its edits with all changes made to the file since the base.
    Merge,
}

const MISPLACED_EDIT_FIELDS: &str = "old new old_string new_string old_str new_str old_text new_text oldString \
    newString oldText newText search replace replacement count near_line all replace_all";

impl Serialize for EditArgs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for EditArgs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer).map_err(|error| {
            let message = error.to_string();
            let unknown =
                message.strip_prefix("unknown field `").and_then(|rest| rest.split_once("`, expected one of `path`"));
            match unknown.filter(|(name, _)| MISPLACED_EDIT_FIELDS.split(' ').any(|field| field == *name)) {
                Some((name, _)) => D::Error::custom(format!(
                    "`{name}` belongs to an edit: pass `edits`: [{{\"old\": \"…\", \"new\": \"…\"}}]"
                )),
                None => error,
            }
        })
    }
}

impl EditArgs {
    pub(super) fn quoted_edits(&self) -> Result<Vec<FindReplaceEdit<'_>>, Error> {
        if self.edits.is_empty() {
            return Err(bad_request("edits is empty").with_next_step("pass edits: [{\"old\": \"…\", \"new\": \"…\"}]"));
        }
        if self.edits.len() > limits::EDITS_MAX {
            return Err(bad_request(format!(
                "{} edits exceed the limit of {} per call",
                self.edits.len(),
                limits::EDITS_MAX
            ))
            .with_next_step("split the edits over several calls"));
        }
        let occurrence = |index: usize, edit: &EditItem| match (edit.count, edit.near_line, edit.all) {
            (None, None, false) => Ok(OccurrenceSelector::Only),
            (Some(count), None, false) if count > 0 => Ok(OccurrenceSelector::Exactly(count)),
            (None, Some(line), false) => Ok(OccurrenceSelector::NearestToLine(line)),
            (None, None, true) => Ok(OccurrenceSelector::All),
            (_, _, _) => Err(bad_request(format!("edit {index} sets more than one of count, near_line and all"))
                .with_next_step("pass only one: count (exact number of matches), near_line (nearest match) or all")
                .with_edit(index)),
        };
        let quoted = self.edits.iter().enumerate().map(|(index, edit)| {
            Ok(FindReplaceEdit { old: &edit.old, new: &edit.new, occurrence: occurrence(index, edit)? })
        });
        quoted.collect()
    }
}

fn deserialize_edit_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<EditItem>, D::Error> {
    deserializer.deserialize_any(EditListVisitor)
}

/// Accepts a list of edits, a single edit, or either one as a JSON string.
struct EditListVisitor;

impl<'de> Visitor<'de> for EditListVisitor {
    type Value = Vec<EditItem>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of {\"old\": …, \"new\": …}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, item: A) -> Result<Self::Value, A::Error> {
        EditItem::deserialize(MapAccessDeserializer::new(item)).map(|item| vec![item])
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        let mut json = serde_json::Deserializer::from_str(text);
        let edits = json.deserialize_any(self).and_then(|edits| json.end().map(|()| edits));
        edits.map_err(|error| match error.classify() {
            Category::Data => E::custom(error),
            Category::Io | Category::Syntax | Category::Eof => {
                E::custom(format!("edits is a string that is not a JSON list: {error}"))
            }
        })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WholeNumberSpelling {
    Number(f64),
    Text(String),
    Other(IgnoredAny),
}

/// Accepts a whole number in the forms `3`, `3.0` and `"3"`.
fn deserialize_whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let text = match Option::deserialize(deserializer)? {
        None => return Ok(None),
        Some(WholeNumberSpelling::Number(number)) => number.to_string(),
        Some(WholeNumberSpelling::Text(text)) => text.trim().to_owned(),
        Some(WholeNumberSpelling::Other(_)) => "this".to_owned(),
    };
    let digits = text.strip_suffix(".0").unwrap_or(&text);
    digits.parse().map(Some).map_err(|_| D::Error::custom(format!("{text} is not a whole number")))
}
