//! `buffer.list`: which files are open in editors, how their text stands to the disk, and what editors left behind.

use serde::Deserialize;
use serde_json::Value;

use super::{form, refuse_others, saved_version, shown, state};
use crate::{
    buffers::Buffer,
    failure::Failure,
    limits,
    operation::{Ask, Operation, Planned, Target},
    ops::answer::Facts,
    view::View,
};

/// The arguments of `buffer.list`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    path: Option<String>,
}

impl Operation for List {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        refuse_others(view)?;
        Ok(self.path.iter().map(|path| Ask::read(path)).collect())
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let mut buffers = view.buffers()?;
        buffers.retain(|buffer| view.may_read(&buffer.path));
        if let Some(target) = targets.first() {
            buffers.retain(|buffer| buffer.path == target.path);
        }
        // What an editor left behind that is on disk is nothing to take up.
        buffers.retain(|buffer| buffer.is_live() || buffer.is_unsaved(saved_version(view, &buffer.path)));
        let total = buffers.len();
        let mut lines = String::new();
        let mut rows = Vec::new();
        for buffer in buffers.iter().take(limits::BUFFERS_LISTED_MAX) {
            let saved = saved_version(view, &buffer.path);
            let text = if targets.is_empty() { None } else { own_text(view, buffer)? };
            lines.push_str(&format!(
                "{} {} {} r{} {}\n",
                buffer.id,
                state(buffer, saved),
                buffer.path,
                buffer.revision,
                buffer.owner
            ));
            rows.push(Value::Object(shown(buffer, saved).maybe("text", text).object()));
        }
        let left = total - rows.len();
        if total == 0 {
            lines.push_str("nothing is open\n");
        } else if left > 0 {
            lines.push_str(&format!("… and {left} more: name a path\n"));
        }
        let answer = Facts::new().with("buffers", rows).with("truncated", left > 0).answer(lines);
        Ok(Planned::Read { answer, bytes: 0 })
    }
}

/// The text of one of the caller's own, as its editor holds it.
fn own_text(view: &View<'_>, buffer: &Buffer) -> Result<Option<String>, Failure> {
    if buffer.owner != view.caller.principal.to_string() {
        return Ok(None);
    }
    let texts = view.workspace().buffer_text(&buffer.id)?;
    texts.map(|texts| form::text(&texts.text, texts.buffer.endings)).transpose()
}
