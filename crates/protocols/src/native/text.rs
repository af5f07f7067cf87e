//! Renders the results of operations as text for models and people. The text of a result is rendered from the same
//! value as the JSON object and contains no further information.

mod administration;
mod collaboration;
mod files;
mod history;
mod search;
pub(crate) mod usage;

use serde::Serialize;
use serde_json::Value;
use stead_engine::ops::BegunOrEndedWatch;
use stead_text::visible::{escape_deceptive, escape_deceptive_line};

use crate::native::{CallStyle, to_json_object};

/// The outcome of an operation, as the protocols see it.
pub trait RenderableOutcome: Serialize {
    /// Renders the outcome as text, and escapes characters that could deceive a reader.
    fn native_text(&self, style: CallStyle) -> String;

    /// Takes a long text out of the outcome. The first value is the JSON of the field that the text leaves empty.
    fn take_long_text(&mut self) -> Option<(&'static str, String)> {
        None
    }

    /// The id of the watch that the call began or ended.
    fn watch(&self) -> Option<(BegunOrEndedWatch, String)> {
        None
    }
}

/// Escapes control characters, because file names may contain any character.
fn escape_lines(text: impl AsRef<str>) -> String {
    escape_deceptive(text.as_ref()).into_owned()
}

fn escape_one_line(text: impl AsRef<str>) -> String {
    escape_deceptive_line(text.as_ref()).into_owned()
}

/// Renders each field of an outcome as one line. A text is shown without quotes.
pub(super) fn render_fields(outcome: &impl Serialize) -> String {
    let fields = to_json_object(outcome);
    let line = |(name, value): (&String, &Value)| match value.as_str() {
        Some(text) => escape_one_line(format!("{name}: {text}")),
        None => escape_one_line(format!("{name}: {value}")),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}
