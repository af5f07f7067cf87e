//! `buffer.close` and `buffer.drop`: an editor closes its buffer, or a person drops a draft that an editor left.
//! Unsaved text is discarded; the file on disk stays as it is.

use serde::Deserialize;

use super::{describe_buffer, require_own_buffer, require_person_or_editor, saved_version};
use crate::{
    buffers::{Buffer, BufferOpenState, BufferStoreRequest},
    call_context::CallContext,
    errors::{Error, ErrorKind},
    operation::{Operation, PathAccess, PlannedEffect, RequestedPath, ResolvedTarget},
    ops::outcome_builder::shorten_for_error,
    version::Version,
    workspace::CommitReceipt,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BufferCloseArgs {
    path: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BufferDropArgs {
    draft: String,
}

impl Operation for BufferCloseArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        require_person_or_editor(context)?;
        Ok(vec![RequestedPath::read_locked(&self.path)])
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let buffer = require_own_buffer(context, &targets[0].path)?;
        let saved = saved_version(context, &buffer.path);
        Ok(plan_close(&buffer, saved, "closed"))
    }
}

impl Operation for BufferDropArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        require_person_or_editor(context)?;
        Ok(vec![RequestedPath::from_recorded_path(self.find_draft(context)?.path, PathAccess::ReadLocked)])
    }

    fn plan(&self, context: &CallContext<'_>, _targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let draft = self.find_draft(context)?;
        Ok(plan_close(&draft, saved_version(context, &draft.path), "dropped"))
    }
}

impl BufferDropArgs {
    fn find_draft(&self, context: &CallContext<'_>) -> Result<Buffer, Error> {
        let found = context.buffers()?.into_iter().find(|buffer| buffer.id == self.draft);
        let draft =
            found.filter(|buffer| buffer.open_state == BufferOpenState::Draft && context.may_read(&buffer.path));
        let draft = draft.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no draft {}", shorten_for_error(&self.draft)))
                .with_next_step("call buffer.list to list drafts")
        })?;
        if draft.owner == context.caller.principal.to_string() {
            return Ok(draft);
        }
        Err(Error::new(ErrorKind::NotOwner, format!("draft {} belongs to {}", draft.id, draft.owner)))
    }
}

fn plan_close(buffer: &Buffer, saved: Option<Version>, verb: &'static str) -> PlannedEffect {
    let lost = buffer.is_unsaved(saved);
    let build_outcome = move |buffer: &Buffer, receipt: &CommitReceipt| {
        let what = if lost { " without saving" } else { "" };
        let line = format!("{verb} {}{what}", buffer.path);
        describe_buffer(buffer, saved).with_field("discarded", lost).with_receipt(receipt).build_one_line(line)
    };
    PlannedEffect::Buffer {
        request: BufferStoreRequest::Close { id: buffer.id.clone() },
        build_outcome: Box::new(build_outcome),
    }
}
