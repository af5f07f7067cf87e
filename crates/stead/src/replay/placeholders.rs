//! The words in a recording that stand for something of the moment: `$ROOT`, `$WS` and `$PARENT` for directories,
//! `$TRASH1`, `$TRASH2`, … for what was trashed, `<ts>` and `<tmp>` for anything. Owns filling them in and matching
//! them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What stands for a thing in the trash, before its number.
const TRASH: &str = "$TRASH";
/// What stands for anything.
const ANYTHING: &[&str] = &["<ts>", "<tmp>"];
/// The fields of an answer that name things in the trash.
const TRASH_FIELDS: &[&str] = &["trashedTo", "overwroteTrashedTo"];

/// What the words stand for.
#[derive(Debug, Default)]
pub(super) struct Placeholders {
    directories: Vec<(&'static str, String)>,
    trash: BTreeMap<usize, String>,
}

/// A piece of an expected text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Literal(&'a str),
    Anything,
    Trash(usize),
}

impl Placeholders {
    /// The words for a workspace and what holds it.
    pub(super) fn new(root: &str, workspace: &str) -> Self {
        let parent = workspace.rsplit_once('/').map_or("/", |(parent, _)| parent);
        let directories =
            vec![("$ROOT", root.to_owned()), ("$WS", workspace.to_owned()), ("$PARENT", parent.to_owned())];
        Self { directories, trash: BTreeMap::new() }
    }

    /// A text with everything filled in that is known.
    pub(super) fn filled(&self, text: &str) -> String {
        let known =
            self.directories.iter().fold(text.to_owned(), |text, (word, path)| text.replace(word, path));
        // The longest number first: `$TRASH1` is the start of `$TRASH12`.
        let trash = self.trash.iter().rev();
        trash.fold(known, |text, (number, place)| text.replace(&format!("{TRASH}{number}"), place))
    }

    /// The same for a whole object.
    pub(super) fn filled_in(&self, object: &Map<String, Value>) -> Map<String, Value> {
        object.iter().map(|(name, value)| (name.clone(), self.filled_value(value))).collect()
    }

    fn filled_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.filled(text).into(),
            Value::Array(items) => items.iter().map(|item| self.filled_value(item)).collect(),
            Value::Object(object) => self.filled_in(object).into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Whether a text is what is expected. Words for the trash that stand for nothing yet take what they find.
    pub(super) fn fits(&mut self, expected: &str, actual: &str) -> bool {
        let expected = self.filled(expected);
        let pieces = pieces(&expected);
        let mut found = Vec::new();
        let mut rest = actual;
        let mut open: Option<&Piece<'_>> = None;
        for piece in &pieces {
            match (piece, open.take()) {
                (Piece::Literal(text), None) => match rest.strip_prefix(text) {
                    Some(after) => rest = after,
                    None => return false,
                },
                (Piece::Literal(text), Some(before)) => {
                    let Some(at) = rest.find(text) else { return false };
                    found.push((before, &rest[..at]));
                    rest = &rest[at + text.len()..];
                }
                (Piece::Anything | Piece::Trash(_), _) => open = Some(piece),
            }
        }
        match open {
            Some(last) => found.push((last, rest)),
            None if !rest.is_empty() => return false,
            None => {}
        }
        for (piece, text) in found {
            if let Piece::Trash(number) = piece {
                self.trash.insert(*number, text.to_owned());
            }
        }
        true
    }

    /// Numbers what an answer says was trashed, if nothing stands for it yet.
    pub(super) fn learn(&mut self, answer: &Map<String, Value>) {
        for (name, value) in answer {
            match value {
                Value::String(place) if TRASH_FIELDS.contains(&name.as_str()) => {
                    if !self.trash.values().any(|known| known == place) {
                        let next = self.trash.keys().next_back().map_or(1, |last| last + 1);
                        self.trash.insert(next, place.clone());
                    }
                }
                Value::Object(object) => self.learn(object),
                Value::Array(items) => {
                    items.iter().filter_map(Value::as_object).for_each(|object| self.learn(object));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
    }
}

/// Cuts an expected text at the words that stand for something else.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let next = ANYTHING.iter().chain([&TRASH]).filter_map(|word| Some((rest.find(word)?, *word))).min();
        let Some((at, word)) = next else { break };
        if at > 0 {
            pieces.push(Piece::Literal(&rest[..at]));
        }
        rest = &rest[at + word.len()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match rest[..digits].parse() {
            Ok(number) if word == TRASH => {
                pieces.push(Piece::Trash(number));
                rest = &rest[digits..];
            }
            Ok(_) | Err(_) => pieces.push(Piece::Anything),
        }
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_filled_in_and_learned() {
        let mut words = Placeholders::new("/t/root", "/t/root/ws");
        assert_eq!(words.filled("$WS/a $PARENT/b $ROOT"), "/t/root/ws/a /t/root/b /t/root");
        assert!(words.fits("trashed to $TRASH3)", "trashed to /x/y.tar.gz)"));
        assert_eq!(words.filled("$TRASH3"), "/x/y.tar.gz");
        assert!(words.fits("$TRASH3!", "/x/y.tar.gz!") && !words.fits("$TRASH3", "/z"));
        assert!(words.fits("at <ts>", "at 12:00") && !words.fits("at <ts>.", "at 12:00"));
        assert!(words.fits("", "") && !words.fits("", "x") && !words.fits("x", ""));
        let answer = serde_json::json!({ "data": { "trashedTo": "/n" }, "list": [{ "trashedTo": "/n" }] });
        words.learn(answer.as_object().unwrap());
        assert_eq!(words.filled("$TRASH4"), "/n");
    }
}
