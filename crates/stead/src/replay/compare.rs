//! An answer against the recorded one, and a file against what must be there. Owns what counts as equal: error texts
//! are compared by their first words and their reason, because what stands between depends on the version of the
//! original's libraries; answers of searches are put in order first.

use faces::dialect::{Reply, Verdict};
use serde_json::{Map, Value, json};
use text::diff;

use super::{ground::Found, placeholders::Placeholders, recording::Call};

/// What differs, as two texts.
#[derive(Debug)]
pub(super) struct Mismatch {
    expected: String,
    actual: String,
}

impl Mismatch {
    pub(super) fn new(expected: impl Into<String>, actual: impl Into<String>) -> Self {
        Self { expected: expected.into(), actual: actual.into() }
    }

    fn of(expected: &Value, actual: &Value) -> Self {
        Self::new(format!("{expected:#}"), format!("{actual:#}"))
    }

    /// The lines that differ: `-` expected, `+` found.
    pub(super) fn shown(&self) -> String {
        let old: Vec<&str> = self.expected.lines().collect();
        let new: Vec<&str> = self.actual.lines().collect();
        let mut lines = Vec::new();
        for hunk in diff::hunks(&(old.join("\n") + "\n"), &(new.join("\n") + "\n")) {
            lines.extend(old.get(hunk.old).unwrap_or_default().iter().map(|line| format!("  - {line}")));
            lines.extend(new.get(hunk.new).unwrap_or_default().iter().map(|line| format!("  + {line}")));
        }
        lines.join("\n")
    }
}

/// What a step showed.
pub(super) type Judged = Result<(), Mismatch>;

/// Judges an answer; nothing when the recording does not say what it must be.
pub(super) fn answer(call: &Call, reply: &Reply, words: &mut Placeholders) -> Option<Judged> {
    if let Some(issues) = &call.schema_error {
        let told = |issue: &&super::recording::Issue| {
            !reply.text.contains(&format!("`{}`: {}", issue.path, issue.message))
        };
        let missing: Vec<String> =
            issues.iter().filter(told).map(|issue| format!("`{}`: {}", issue.path, issue.message)).collect();
        let fine = missing.is_empty() && reply.verdict == Verdict::Error;
        return Some(if fine { Ok(()) } else { Err(Mismatch::new(missing.join("\n"), reply.text.clone())) });
    }
    if let Some(thrown) = &call.throws {
        // The original broke off; ours must refuse in an orderly way.
        return Some(match reply.verdict {
            Verdict::Error => Ok(()),
            Verdict::Fine => Err(Mismatch::new(format!("an error: {thrown}"), reply.text.clone())),
        });
    }
    let expected = call.expect.as_ref()?;
    let actual = in_recorded_form(expected, &reply.json);
    let fits = object_fits(expected, &actual, words);
    Some(if fits {
        Ok(())
    } else {
        Err(Mismatch::of(&Value::Object(words.filled_in(expected)), &Value::Object(actual)))
    })
}

/// Whether two objects have the same fields, each as expected.
fn object_fits(expected: &Map<String, Value>, actual: &Map<String, Value>, words: &mut Placeholders) -> bool {
    let failed = expected.get("is_error") == Some(&Value::Bool(true));
    expected.len() == actual.len()
        && expected.iter().all(|(name, expected)| match (expected, actual.get(name)) {
            (Value::String(expected), Some(Value::String(actual))) if failed && name == "for_llm" => {
                error_fits(&words.filled(expected), actual)
            }
            (expected, Some(actual)) => value_fits(expected, actual, words),
            (_, None) => false,
        })
}

fn value_fits(expected: &Value, actual: &Value, words: &mut Placeholders) -> bool {
    match (expected, actual) {
        (Value::String(expected), Value::String(actual)) => words.fits(expected, actual),
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| value_fits(expected, actual, words))
        }
        (Value::Object(expected), Value::Object(actual)) => object_fits(expected, actual, words),
        (expected, actual) => expected == actual,
    }
}

/// `prefix: step path: reason` with the same prefix and the same reason.
fn error_fits(expected: &str, actual: &str) -> bool {
    let ends = |text: &str| {
        let (prefix, _) = text.split_once(": ")?;
        let (_, reason) = text.rsplit_once(": ")?;
        Some((prefix.to_owned(), reason.to_owned()))
    };
    expected == actual || ends(expected).is_some_and(|expected| Some(expected) == ends(actual))
}

/// The answer as recordings keep it.
fn in_recorded_form(expected: &Map<String, Value>, answer: &Map<String, Value>) -> Map<String, Value> {
    let mut actual = answer.clone();
    if expected.contains_key("for_llm") {
        // Recordings have some of the fields, and an empty text where there is none.
        let field = |name: &String| (name.clone(), actual.get(name).cloned().unwrap_or_else(|| "".into()));
        return expected.keys().map(field).collect();
    }
    if expected.contains_key("output_first_line") {
        let output = actual.remove("output").unwrap_or_default();
        let first = output.as_str().and_then(|output| output.lines().next()).unwrap_or_default();
        actual.insert("output_first_line".to_owned(), first.into());
        if let Some(Value::Array(matches)) = actual.get_mut("data").and_then(|data| data.get_mut("matches")) {
            let key = |found: &Value| {
                let path = found.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
                (path, found.get("line").and_then(Value::as_u64))
            };
            matches.sort_by_key(key);
        }
    }
    actual
}

/// Judges what is on the disk.
pub(super) fn disk(facts: &Map<String, Value>, found: Option<&Found>) -> Judged {
    let actual: Map<String, Value> = facts
        .keys()
        .map(|name| {
            let value = match (name.as_str(), found) {
                ("text", Some(Found { bytes: Some(bytes), .. })) => {
                    Value::String(String::from_utf8_lossy(bytes).into_owned())
                }
                ("hex", Some(Found { bytes: Some(bytes), .. })) => {
                    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
                }
                ("mode", Some(found)) => format!("{:o}", found.mode).into(),
                ("symlink", found) => found.is_some_and(|found| found.is_link).into(),
                (_, _) => Value::Null,
            };
            (name.clone(), value)
        })
        .collect();
    if *facts == actual {
        return Ok(());
    }
    Err(Mismatch::of(&json!(facts), &json!(actual)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_compared_by_prefix_and_reason() {
        let expected = "failed to read directory: readdirent /w/a: not a directory";
        assert!(error_fits(expected, "failed to read directory: open /w/a: not a directory"));
        assert!(!error_fits(expected, "failed to read file: open /w/a: not a directory"));
        assert!(!error_fits(expected, "failed to read directory: open /w/a: is a directory"));
        assert!(!error_fits("path is required", "content is required"));
    }

    #[test]
    fn a_difference_shows_only_what_differs() {
        let shown = Mismatch::new("a\nb\nc", "a\nx\nc").shown();
        assert_eq!(shown, "  - b\n  + x");
    }
}
