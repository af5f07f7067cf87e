//! Renders the results of operations as text for models and people. The text of a result is rendered from the same
//! value as the JSON object and contains no further information.

mod administration;
mod alerts;
mod approvals;
mod buffers;
mod copy;
mod events;
mod history;
mod listed_files;
mod lock;
mod moved_files;
mod policy;
mod read;
mod review;
mod search;
mod session;
pub(crate) mod usage;
mod watch;
mod written_files;

use stead_text::visible::{escape_deceptive, escape_deceptive_line};

use crate::native::CallNotation;

pub(crate) trait NativeTextRenderable {
    /// Renders the result as text, and escapes characters that could deceive a reader.
    fn native_text(&self, notation: CallNotation) -> String;
}

/// Escapes control characters, because file names may contain any character.
fn escape_lines(text: impl AsRef<str>) -> String {
    escape_deceptive(text.as_ref()).into_owned()
}

fn escape_one_line(text: impl AsRef<str>) -> String {
    escape_deceptive_line(text.as_ref()).into_owned()
}
