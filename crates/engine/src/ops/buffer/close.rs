//! `buffer.close` and `buffer.drop`: an editor lets go of its text, or a person of what an editor left behind. What was
//! not saved is gone then; the disk is the truth.

use serde::Deserialize;

use super::{own, refuse_others, saved_version, shown};
use crate::{
    buffers::{Buffer, BufferAsk, Standing},
    failure::{Failure, Kind},
    operation::{Ask, Need, Operation, Planned, Target},
    ops::answer::excerpt,
    version::Version,
    view::View,
    workspace::Committed,
};

/// The arguments of `buffer.close`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Close {
    path: String,
}

/// The arguments of `buffer.drop`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drop {
    draft: String,
}

impl Operation for Close {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        refuse_others(view)?;
        Ok(vec![Ask::hold(&self.path)])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let buffer = own(view, &targets[0].path)?;
        let saved = saved_version(view, &buffer.path);
        Ok(let_go(&buffer, saved, "closed"))
    }
}

impl Operation for Drop {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        refuse_others(view)?;
        Ok(vec![Ask::known(self.find(view)?.path, Need::Hold)])
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let draft = self.find(view)?;
        Ok(let_go(&draft, saved_version(view, &draft.path), "dropped"))
    }
}

impl Drop {
    fn find(&self, view: &View<'_>) -> Result<Buffer, Failure> {
        let found = view.buffers()?.into_iter().find(|buffer| buffer.id == self.draft);
        let draft = found.filter(|buffer| buffer.standing == Standing::Draft && view.may_read(&buffer.path));
        let draft = draft.ok_or_else(|| {
            Failure::new(Kind::NotFound, format!("there is no draft {}", excerpt(&self.draft)))
                .hint("call buffer.list to see which there are")
        })?;
        if draft.owner == view.caller.principal.to_string() {
            return Ok(draft);
        }
        Err(Failure::new(Kind::NotOwner, format!("draft {} is of {}", draft.id, draft.owner)))
    }
}

fn let_go(buffer: &Buffer, saved: Option<Version>, verb: &'static str) -> Planned {
    let lost = buffer.is_unsaved(saved);
    let finish = move |buffer: &Buffer, committed: &Committed| {
        let what = if lost { " without saving" } else { "" };
        let line = format!("{verb} {}{what}", buffer.path);
        shown(buffer, saved).with("discarded", lost).committed(committed).line(line)
    };
    Planned::Buffer { ask: BufferAsk::Close { id: buffer.id.clone() }, finish: Box::new(finish) }
}
