//! `buffer.change`: an editor tells what somebody typed. An editor that has not heard yet what an agent wrote is merged
//! with it, and gets the text that came of it; where the two meet it is told both, and nothing is lost on either side.

use serde::Deserialize;
use text::merge::{Merged, merge};

use super::{form, on_disk, own_text, refuse_others, shown, typed, typed::Typed};
use crate::{
    buffers::{Buffer, BufferAsk, BufferText},
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    workspace::Committed,
};

/// The arguments of `buffer.change`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    path: String,
    revision: u64,
    text: Option<String>,
    edits: Option<Vec<Typed>>,
}

/// The text after a change, as the editor holds it.
struct Came {
    text: String,
    /// Whether it is another one than the editor sent.
    merged: bool,
}

impl Operation for Change {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        refuse_others(view)?;
        Ok(vec![Ask::hold(&self.path)])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let (buffer, texts) = own_text(view, &target.path)?;
        let file = on_disk(view, target)?;
        let saved = file.as_ref().map(|file| file.version);
        let came = self.judge(&texts)?;
        let before = file.as_ref().map_or(texts.text.as_slice(), |file| file.bytes.as_slice());
        let (text, endings) = form::bytes(&came.text, Some(before))?;
        // What was saved since is what is typed on now.
        let base = if Some(buffer.version) == saved { saved } else { buffer.base };
        let ask = BufferAsk::Change { id: buffer.id, revision: buffer.revision, text, base, endings };
        let finish = move |buffer: &Buffer, committed: &Committed| {
            let verb = if came.merged { "merged into" } else { "changed" };
            let line = format!("{verb} {} at revision {}", buffer.path, buffer.revision);
            shown(buffer, saved)
                .with("merged", came.merged)
                .maybe("text", came.merged.then_some(came.text))
                .committed(committed)
                .line(line)
        };
        Ok(Planned::Buffer { ask, finish: Box::new(finish) })
    }
}

impl Change {
    /// What the buffer becomes.
    fn judge(&self, texts: &BufferText) -> Result<Came, Failure> {
        let buffer = &texts.buffer;
        let now = form::text(&texts.text, buffer.endings)?;
        let known = match self.revision {
            revision if revision == buffer.revision => now.clone(),
            revision if revision == buffer.held_revision => form::text(&texts.held, buffer.endings)?,
            _ => return Err(self.stale(buffer, now)),
        };
        let sent = match (&self.text, &self.edits) {
            (Some(text), None) => text.clone(),
            (None, Some(edits)) => typed::apply(&known, edits)?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(Failure::new(Kind::BadRequest, "give either text or edits"));
            }
        };
        if self.revision == buffer.revision {
            return Ok(Came { text: sent, merged: false });
        }
        match merge(&known, &sent, &now) {
            Merged::Clean(text) => Ok(Came { merged: text != sent, text }),
            Merged::Conflict(ranges) => {
                let lines: Vec<Vec<usize>> = ranges
                    .iter()
                    .take(limits::FAILURE_PLACES_MAX)
                    .map(|range| vec![range.theirs.start + 1, range.theirs.end.max(range.theirs.start + 1)])
                    .collect();
                let detail = format!("{} was changed in the same lines; nothing was lost", buffer.path);
                let failure = Failure::new(Kind::Conflict, detail)
                    .hint("show both texts; then send what it shall be, with the revision given here");
                Err(with_text(failure, buffer, now).fact("lines", lines))
            }
        }
    }

    fn stale(&self, buffer: &Buffer, now: String) -> Failure {
        let detail = format!("{} has no revision {} any more", buffer.path, self.revision);
        let failure = Failure::new(Kind::Stale, detail)
            .hint("bring what was typed together with this text; then send it with the revision given here");
        with_text(failure, buffer, now)
    }
}

/// Adds what the buffer holds now.
fn with_text(failure: Failure, buffer: &Buffer, text: String) -> Failure {
    failure
        .fact("path", buffer.path.to_string())
        .fact("revision", buffer.revision)
        .fact("version", buffer.version.to_string())
        .fact("text", text)
}
