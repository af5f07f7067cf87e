//! `buffer.open`: an editor tells which text it has of a file, or takes up the text that an editor left behind. Nothing
//! on disk changes.

use serde::Deserialize;

use super::{form, on_disk, refuse_others, shown};
use crate::{
    buffers::{Buffer, BufferAsk, Standing},
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    presence::Presence,
    resolve,
    version::{Base, Version},
    view::View,
    workspace::{Committed, FileBytes},
};

/// The arguments of `buffer.open`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Open {
    path: String,
    text: Option<String>,
    base: Option<String>,
    draft: Option<String>,
}

impl Operation for Open {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        refuse_others(view)?;
        refuse_passing(view)?;
        Ok(vec![Ask::hold(&self.path)])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        if let Some(open) = view.open_buffer(&target.path)? {
            return Err(super::elsewhere(&open));
        }
        let file = on_disk(view, target)?;
        let left = self.left(view, target)?;
        match (&self.text, &self.draft) {
            (Some(_), Some(_)) => {
                Err(Failure::new(Kind::BadRequest, "a draft has its own text").hint("leave text out"))
            }
            (Some(text), None) => self.fresh(view, target, file, text, left),
            (None, _) => taken_up(view, target, file, left),
        }
    }
}

impl Open {
    /// The caller's drafts of the file, newest first; the one that is named, when one is.
    fn left(&self, view: &View<'_>, target: &Target) -> Result<Vec<Buffer>, Failure> {
        let owner = view.caller.principal.to_string();
        let mut drafts = view.drafts(&target.path)?;
        drafts.retain(|draft| draft.owner == owner && draft.standing == Standing::Draft);
        drafts.retain(|draft| self.draft.as_ref().is_none_or(|id| draft.id == *id));
        drafts.sort_by_key(|draft| std::cmp::Reverse(draft.changed_ms));
        Ok(drafts)
    }

    fn fresh(
        &self,
        view: &View<'_>,
        target: &Target,
        file: Option<FileBytes>,
        text: &str,
        mut left: Vec<Buffer>,
    ) -> Result<Planned, Failure> {
        let saved = file.as_ref().map(|file| file.version);
        let base = self.base(view, target, saved)?;
        let (text, endings) = form::bytes(text, file.as_ref().map(|file| file.bytes.as_slice()))?;
        let instead_of = needless(view, target, saved, Version::of(&text))?;
        left.retain(|draft| !instead_of.contains(&draft.id));
        let ask = BufferAsk::Open { path: target.path.clone(), text, base, endings, instead_of };
        let finish = move |buffer: &Buffer, committed: &Committed| {
            let drafts: Vec<serde_json::Value> = left
                .iter()
                .take(limits::DRAFTS_SHOWN_MAX)
                .map(|draft| serde_json::Value::Object(shown(draft, saved).object()))
                .collect();
            let line = format!("opened {} at revision {}", buffer.path, buffer.revision);
            shown(buffer, saved)
                .maybe("drafts", (!drafts.is_empty()).then_some(drafts))
                .committed(committed)
                .line(line)
        };
        Ok(Planned::Buffer { ask, finish: Box::new(finish) })
    }

    /// The version that the editor loaded.
    fn base(
        &self,
        view: &View<'_>,
        target: &Target,
        saved: Option<Version>,
    ) -> Result<Option<Version>, Failure> {
        let Some(written) = &self.base else { return Ok(saved) };
        Ok(match Base::parse(written)? {
            Base::Absent => None,
            Base::Version(version) => Some(version),
            Base::Rev(number) => Some(resolve::version_at(view, number, &target.path)?),
            Base::Prefix(digits) => {
                let fits = saved.filter(|saved| saved.to_string().starts_with(&digits));
                Some(fits.ok_or_else(|| {
                    Failure::new(Kind::Stale, format!("{} is no longer that version", target.path))
                        .hint("give the whole version, or load the file again")
                })?)
            }
        })
    }
}

/// The caller's drafts of a file that a buffer with this text stands for, and those without anything unsaved: an editor that
/// connects again and again leaves one each time.
fn needless(
    view: &View<'_>,
    target: &Target,
    saved: Option<Version>,
    text: Version,
) -> Result<Vec<String>, Failure> {
    let owner = view.caller.principal.to_string();
    let mut drafts = view.buffers()?;
    drafts.retain(|draft| {
        let is_own = draft.owner == owner && draft.standing == Standing::Draft && draft.path == target.path;
        is_own && (draft.version == text || !draft.is_unsaved(saved))
    });
    Ok(drafts.into_iter().map(|draft| draft.id).collect())
}

/// Text is open as long as somebody is there who would notice that it is not.
fn refuse_passing(view: &View<'_>) -> Result<(), Failure> {
    match view.caller.presence {
        Presence::Process | Presence::Connection(_) => Ok(()),
        Presence::Call => Err(Failure::new(
            Kind::BadRequest,
            "a buffer is open as long as its editor is connected, and a single request is no connection",
        )
        .hint("open it over a connection that stays: JSON-RPC over a WebSocket, or stead rpc")),
    }
}

/// Takes up the newest of the caller's drafts.
fn taken_up(
    view: &View<'_>,
    target: &Target,
    file: Option<FileBytes>,
    left: Vec<Buffer>,
) -> Result<Planned, Failure> {
    let none = || {
        Failure::new(Kind::NotFound, format!("there is no draft of {} to take up", target.path))
            .hint("give the text that the editor has")
    };
    let draft = left.into_iter().next().ok_or_else(none)?;
    let texts = view.workspace().buffer_text(&draft.id)?.ok_or_else(none)?;
    let text = form::text(&texts.text, draft.endings)?;
    let saved = file.map(|file| file.version);
    let finish = move |buffer: &Buffer, committed: &Committed| {
        let line = format!("took up draft {} of {}", buffer.id, buffer.path);
        shown(buffer, saved).with("text", text).committed(committed).line(line)
    };
    Ok(Planned::Buffer { ask: BufferAsk::TakeUp { id: draft.id }, finish: Box::new(finish) })
}
