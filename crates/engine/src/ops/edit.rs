//! `edit`: quoted text of one file is replaced. All edits of a call are judged against the same bytes, and all apply or
//! none does. A base that is no longer current does no harm where every quoted place still stands as it was seen;
//! whoever wants more asks for a merge, and whoever wants less for the current base only.

mod arguments;
mod basis;
mod refusal;
mod report;

use std::borrow::Cow;

use text::{
    edit::{Applied, Edit as Quoted, Edited, EmptyOld, How, anchored, edit, reformatted},
    lines,
    locate::Pass,
    merge::{self, Merged},
};

pub(crate) use self::arguments::Edit;
use self::{
    arguments::Mode,
    basis::{Basis, Old},
    report::{Report, Standing},
};
use super::{diff, encoded, older, parents, standing::too_large_to_change, write};
use crate::{
    authorise,
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    plan::{Change, Content, Expect, Plan, Seen},
    version::{Base, Version},
    view::View,
    workspace::Want,
};

/// The file as it is.
pub(crate) struct Current {
    bytes: Vec<u8>,
    text: String,
    version: Version,
    /// What a commit must still find.
    expect: Expect,
}

/// The text after all edits, and how it came about.
struct Outcome {
    text: String,
    /// What became of each edit; nothing when a merge decided.
    edited: Option<Edited>,
    standing: Standing,
}

impl Operation for Edit {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        // Any other base than "nothing may be there" is judged here, edit by edit.
        let ask = Ask::write(&self.path);
        match self.base.as_deref().map(Base::parse).transpose()? {
            Some(Base::Absent) => Ok(vec![ask.with_base(Some(""))?]),
            Some(Base::Version(_) | Base::Rev(_) | Base::Prefix(_)) | None => Ok(vec![ask]),
        }
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let edits = self.quoted()?;
        let current = self.current(view, target)?;
        let outcome = self.judge(view, target, &current, &edits)?;
        let encoded = encoded::whole(&outcome.text, None, Some(&current.bytes))?;
        let version = Version::of(&encoded.bytes);
        let report = Report::new(view, target, &current, &outcome, &encoded, version);
        let created = current.expect == Expect::Absent;
        if encoded.bytes == current.bytes && !created {
            return Ok(Planned::Read { answer: report.unchanged(view, target), bytes: 0 });
        }
        let mut changes = parents::missing(view, &target.path)?;
        changes.push(Change::Put {
            path: target.path.clone(),
            expect: current.expect,
            version,
            size: encoded.bytes.len() as u64,
            content: Content::Bytes(encoded.bytes),
            mode: view.terms.privacy.mode(),
        });
        let plan = Plan::of(changes);
        if self.dry_run {
            // What is shown is what would be done, so it is judged in the same way.
            authorise::judge_plan(view, &plan)?;
            return Ok(Planned::Preview(report.preview(&current.text, &outcome.text)));
        }
        Ok(Planned::Change { plan, finish: Box::new(move |committed| report.done(committed)) })
    }
}

impl Edit {
    /// What is there now. Nothing counts as an empty text for a single edit that quotes nothing.
    fn current(&self, view: &View<'_>, target: &Target) -> Result<Current, Failure> {
        let Some(node) = target.node else {
            // Where an empty quote has a meaning of its own, it makes no file.
            let creates = view.terms.editing.empty_old == EmptyOld::Refused
                && matches!(self.edits.as_slice(), [only] if only.old.is_empty());
            if !creates || self.base.as_deref().is_some_and(|base| !base.is_empty()) {
                return Err(older::gone(view, target, self.base.as_deref()));
            }
            let bytes = Vec::new();
            let version = Version::of(&bytes);
            return Ok(Current { bytes, text: String::new(), version, expect: Expect::Absent });
        };
        write::regular(target, node)?;
        let file = view
            .read(&target.path, Want::Whole { limit_bytes: limits::WRITE_BYTES_MAX })
            .map_err(|failure| too_large_to_change(&target.path, failure))?;
        let text = diff::text_of(&file.bytes).map(Cow::into_owned);
        let text = text.ok_or_else(|| refusal::not_text(&target.path))?;
        let seen = Seen { version: file.version, stamp: file.node.stamp };
        Ok(Current { text, version: file.version, expect: Expect::File(seen), bytes: file.bytes })
    }

    /// Applies the edits to what is there, as far as the base and the mode allow.
    fn judge(
        &self,
        view: &View<'_>,
        target: &Target,
        current: &Current,
        edits: &[Quoted<'_>],
    ) -> Result<Outcome, Failure> {
        let rules = view.terms.editing;
        let refused = |refusals: Vec<text::edit::Refusal>, basis: Option<&Old>| {
            refusal::refused(view, target, current, edits, &refusals, basis)
        };
        let basis = basis::of(view, target, current, self.base.as_deref())?;
        match (basis, self.mode) {
            (Basis::None | Basis::Current, _) => {
                let edited = edit(&current.text, edits, rules).map_err(|refusals| refused(refusals, None))?;
                Ok(Outcome::of(edited, Standing::Current))
            }
            (Basis::Old(old), Mode::Strict) => Err(refusal::stale(view, target, current, Some(&old))),
            (Basis::Unknown(_), Mode::Strict) => Err(refusal::stale(view, target, current, None)),
            (Basis::Unknown(written), Mode::Anchored | Mode::Merge) => {
                let edited = edit(&current.text, edits, rules).map_err(|refusals| refused(refusals, None))?;
                // Nobody can tell what changed since, so only whole lines that are quoted as they stand are safe: a part
                // of a line may be a part of another one now.
                let is_safe = |(applied, quoted): (&Applied, &Quoted<'_>)| {
                    is_as_quoted(&applied.how) && covers_lines(&current.text, applied, quoted.old)
                };
                if edited.applied.iter().zip(edits).all(is_safe) {
                    return Ok(Outcome::of(edited, Standing::Unverified { from: written }));
                }
                Err(refusal::stale(view, target, current, None))
            }
            (Basis::Old(old), mode @ (Mode::Anchored | Mode::Merge)) => {
                match anchored(&old.text, &current.text, edits, rules) {
                    Ok(edited) => Ok(Outcome::of(edited, Standing::rebased(&old, &current.text))),
                    Err(refusals) if mode == Mode::Anchored => Err(refused(refusals, Some(&old))),
                    Err(refusals) => match edit(&old.text, edits, rules) {
                        Ok(edited) => merged(view, target, current, &old, edits, &edited.text),
                        Err(_) => Err(refused(refusals, Some(&old))),
                    },
                }
            }
        }
    }
}

impl Outcome {
    fn of(edited: Edited, standing: Standing) -> Self {
        Self { text: edited.text.clone(), edited: Some(edited), standing }
    }
}

/// Brings what the edits make of the base together with what others made of it.
fn merged(
    view: &View<'_>,
    target: &Target,
    current: &Current,
    old: &Old,
    edits: &[Quoted<'_>],
    ours: &str,
) -> Result<Outcome, Failure> {
    match merge::merge(&old.text, ours, &current.text) {
        Merged::Clean(text) => {
            Ok(Outcome { text, edited: None, standing: Standing::merged(old, &current.text) })
        }
        Merged::Conflict(ranges) => {
            // What a formatter did to the quoted lines is no conflict of meaning.
            if let Ok(edited) = reformatted(&old.text, &current.text, edits, view.terms.editing) {
                return Ok(Outcome::of(edited, Standing::merged(old, &current.text)));
            }
            Err(refusal::conflict(view, target, current, old, ours, &ranges))
        }
    }
}

/// Whether a quote stands in the text as it was written.
fn is_as_quoted(how: &How) -> bool {
    match how {
        How::Pass(pass) => *pass <= Pass::Endings,
        How::Unchanged | How::AlreadyApplied => true,
        How::Unnumbered(_) | How::Unescaped(_) | How::Fallback(_) => false,
    }
}

/// Whether the lines that an edit was applied to are those it quotes, from end to end.
fn covers_lines(text: &str, applied: &Applied, quote: &str) -> bool {
    let quoted: Vec<&str> = lines::iter(quote).map(str::trim).collect();
    applied.places.iter().all(|place| {
        let there = lines::slice(text, place.before.clone()).unwrap_or_default();
        lines::iter(there).map(str::trim).eq(quoted.iter().copied())
    })
}

/// A failure of arguments.
fn bad(detail: impl AsRef<str>) -> Failure {
    Failure::new(Kind::BadRequest, detail)
}
