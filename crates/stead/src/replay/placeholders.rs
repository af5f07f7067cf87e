//! Substitutes and matches the placeholders in recordings. The placeholders `$ROOT`, `$WS` and `$PARENT` stand for
//! directories, `$TRASH1` for a trashed item, and `<ts>` and `<tmp>` for any text.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

const TRASH_PREFIX: &str = "$TRASH";
const WILDCARDS: &[&str] = &["<ts>", "<tmp>"];
const TRASH_FIELDS: &[&str] = &["trashedTo", "overwroteTrashedTo"];

#[derive(Debug, Default)]
pub(super) struct RecordingPlaceholders {
    directories: Vec<(&'static str, String)>,
    trash: BTreeMap<usize, String>,
}

#[derive(Debug, PartialEq, Eq)]
enum RecordingExpectedTextPiece<'a> {
    Literal(&'a str),
    Wildcard,
    Trash(usize),
}

impl RecordingPlaceholders {
    pub(super) fn new(root: &str, workspace: &str) -> Self {
        let parent = workspace.rsplit_once('/').map_or("/", |(parent, _)| parent);
        let directories =
            vec![("$ROOT", root.to_owned()), ("$WS", workspace.to_owned()), ("$PARENT", parent.to_owned())];
        Self { directories, trash: BTreeMap::new() }
    }

    pub(super) fn substitute(&self, text: &str) -> String {
        let known = self.directories.iter().fold(text.to_owned(), |text, (word, path)| text.replace(word, path));
        // Placeholders with high numbers are replaced first, because `$TRASH1` is the start of `$TRASH12`.
        let trash = self.trash.iter().rev();
        trash.fold(known, |text, (number, path)| text.replace(&format!("{TRASH_PREFIX}{number}"), path))
    }

    pub(super) fn substitute_object(&self, object: &Map<String, Value>) -> Map<String, Value> {
        object.iter().map(|(name, value)| (name.clone(), self.substitute_value(value))).collect()
    }

    fn substitute_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.substitute(text).into(),
            Value::Array(items) => items.iter().map(|item| self.substitute_value(item)).collect(),
            Value::Object(object) => self.substitute_object(object).into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Returns whether a text matches the recorded text, and stores the values of new trash placeholders.
    pub(super) fn matches(&mut self, expected: &str, actual: &str) -> bool {
        let expected = self.substitute(expected);
        let pieces = split_pieces(&expected);
        let mut found = Vec::new();
        let mut rest = actual;
        let mut open: Option<&RecordingExpectedTextPiece<'_>> = None;
        for piece in &pieces {
            match (piece, open.take()) {
                (RecordingExpectedTextPiece::Literal(text), None) => match rest.strip_prefix(text) {
                    Some(after) => rest = after,
                    None => return false,
                },
                (RecordingExpectedTextPiece::Literal(text), Some(before)) => {
                    let Some(at) = rest.find(text) else { return false };
                    found.push((before, &rest[..at]));
                    rest = &rest[at + text.len()..];
                }
                (RecordingExpectedTextPiece::Wildcard | RecordingExpectedTextPiece::Trash(_), _) => open = Some(piece),
            }
        }
        match open {
            Some(last) => found.push((last, rest)),
            None if !rest.is_empty() => return false,
            None => {}
        }
        for (piece, text) in found {
            if let RecordingExpectedTextPiece::Trash(number) = piece {
                self.trash.insert(*number, text.to_owned());
            }
        }
        true
    }

    pub(super) fn bind_trash_handles(&mut self, answer: &Map<String, Value>) {
        for (name, value) in answer {
            match value {
                Value::String(place) if TRASH_FIELDS.contains(&name.as_str()) => {
                    if !self.trash.values().any(|known| known == place) {
                        let next = self.trash.keys().next_back().map_or(1, |last| last + 1);
                        self.trash.insert(next, place.clone());
                    }
                }
                Value::Object(object) => self.bind_trash_handles(object),
                Value::Array(items) => {
                    items.iter().filter_map(Value::as_object).for_each(|object| self.bind_trash_handles(object));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
    }
}

fn split_pieces(text: &str) -> Vec<RecordingExpectedTextPiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let next = WILDCARDS.iter().chain([&TRASH_PREFIX]).filter_map(|word| Some((rest.find(word)?, *word))).min();
        let Some((at, word)) = next else { break };
        if at > 0 {
            pieces.push(RecordingExpectedTextPiece::Literal(&rest[..at]));
        }
        rest = &rest[at + word.len()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match rest[..digits].parse() {
            Ok(number) if word == TRASH_PREFIX => {
                pieces.push(RecordingExpectedTextPiece::Trash(number));
                rest = &rest[digits..];
            }
            Ok(_) | Err(_) => pieces.push(RecordingExpectedTextPiece::Wildcard),
        }
    }
    if !rest.is_empty() {
        pieces.push(RecordingExpectedTextPiece::Literal(rest));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_substituted_and_bound() {
        let mut words = RecordingPlaceholders::new("/t/root", "/t/root/ws");
        assert_eq!(words.substitute("$WS/a $PARENT/b $ROOT"), "/t/root/ws/a /t/root/b /t/root");
        assert!(words.matches("trashed to $TRASH3)", "trashed to /x/y.tar.gz)"));
        assert_eq!(words.substitute("$TRASH3"), "/x/y.tar.gz");
        assert!(words.matches("$TRASH3!", "/x/y.tar.gz!") && !words.matches("$TRASH3", "/z"));
        assert!(words.matches("at <ts>", "at 12:00") && !words.matches("at <ts>.", "at 12:00"));
        assert!(words.matches("", "") && !words.matches("", "x") && !words.matches("x", ""));
        let answer = serde_json::json!({ "data": { "trashedTo": "/n" }, "list": [{ "trashedTo": "/n" }] });
        words.bind_trash_handles(answer.as_object().unwrap());
        assert_eq!(words.substitute("$TRASH4"), "/n");
    }
}
