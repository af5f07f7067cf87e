//! The text of typed results, for models and people. The text is rendered from the same value as the object for
//! programs and states nothing that the value does not contain.

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

use crate::call_notation::CallNotation;

pub(crate) use listed_files::render_ignored_note;

pub(crate) trait NativeText {
    /// Characters that could deceive a reader are escaped in the returned text.
    fn native_text(&self, notation: CallNotation) -> String;
}

/// File names may contain any character, so control characters are escaped.
fn escape_lines(text: impl AsRef<str>) -> String {
    escape_deceptive(text.as_ref()).into_owned()
}

fn escape_one_line(text: impl AsRef<str>) -> String {
    escape_deceptive_line(text.as_ref()).into_owned()
}
