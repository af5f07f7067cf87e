//! Renders the outcome of `session` as text.

use stead_engine::ops::{SessionFields, SessionOutcome};
use stead_path::RelPath;

use super::{RenderableOutcome, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for SessionOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        escape_one_line(match self {
            SessionOutcome::Shown(shown) => {
                let SessionFields { session, principal, calls, readable, writable, .. } = &**shown;
                let (readable, writable) = (render_paths(readable), render_paths(writable));
                format!(
                    "session {session} of {principal}, {calls} calls so far; may read {readable} and change {writable}"
                )
            }
            SessionOutcome::Begun(begun) => match &begun.session {
                Some(new) => format!("began session {}", new.session),
                None => "no session".to_owned(),
            },
            SessionOutcome::Ended(ended) => format!("ended session {}", ended.session.session),
        })
    }
}

fn render_paths(paths: &[RelPath]) -> String {
    if paths.is_empty() {
        return "nothing".to_owned();
    }
    paths.iter().map(RelPath::to_string).collect::<Vec<_>>().join(", ")
}
