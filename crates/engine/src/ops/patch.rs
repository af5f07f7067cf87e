//! `patch`: many files change together, or none does. The patch is read, every place resolved and authorised, every
//! chunk placed, in memory and in the order written; only then there is one plan. Sections see what the ones before
//! them did. What is taken away goes to the trash.

mod before;
mod closest;
mod places;
mod refusal;
mod report;
mod unplaced;
mod versions;

use std::collections::BTreeMap;

use serde::Deserialize;
use text::patch::{Action, Applied, Chunk, Rules, Section, apply, parse};

use self::{
    places::Places,
    refusal::At,
    report::{Kind as Done, Report, Row},
    versions::Versions,
};
use super::{r#move::Overwrite, older::Now, parents};
use crate::{
    authorise,
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Need, Operation, Planned, Target},
    patching::{Placing, Repeated},
    plan::{Plan, Top},
    terms::Parents,
    version::Version,
    view::View,
    workspace::Last,
};

/// The arguments of `patch`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Patch {
    patch: String,
    #[serde(default)]
    base: BTreeMap<String, String>,
    #[serde(default)]
    overwrite: bool,
    #[serde(default)]
    dry_run: bool,
}

impl Operation for Patch {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        let sections = self.sections(view)?;
        for (number, section) in sections.iter().enumerate() {
            for written in versions::paths(section) {
                // Said here, the failure can name the section; the pipeline reads the path once more.
                versions::place(view, written).map_err(|failure| {
                    // No answer holds a path of the machine, not even one that the caller wrote.
                    let relative = !written.starts_with('/');
                    let failure = if relative { failure.fact("path", written) } else { failure };
                    At::of(number, section).named(failure)
                })?;
            }
        }
        Ok(sections.iter().flat_map(asked).collect())
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let sections = self.sections(view)?;
        let versions = Versions::new(view, &self.base, &sections)?;
        let mut work = Work {
            places: Places::new(view),
            view,
            versions: &versions,
            overwrite: self.overwrite.into(),
            touched: Vec::new(),
        };
        let mut rows = Vec::with_capacity(sections.len());
        let mut left = targets;
        for (number, section) in sections.iter().enumerate() {
            let (own, rest) = left.split_at(asked(section).len());
            left = rest;
            view.control.check()?;
            let at = At::of(number, section);
            rows.push(work.section(&section.action, own, at).map_err(|failure| at.named(failure))?);
        }
        let changes = work.places.changes().map_err(refusal::unwritten)?;
        let plan = Plan::of(changes);
        let before: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].is_before()).collect();
        if !before.is_empty() && !plan.is_empty() {
            return Err(refusal::partly(&sections, &before));
        }
        let report = Report::new(view, rows, &plan);
        if self.dry_run {
            // What is shown is what would be done, so it is judged in the same way.
            authorise::judge_plan(view, &plan)?;
            return Ok(Planned::Preview(report.preview()));
        }
        if plan.is_empty() {
            return Ok(Planned::Read { answer: report.unchanged(), bytes: 0 });
        }
        Ok(Planned::Change { plan, finish: Box::new(move |committed| report.done(committed)) })
    }
}

impl Patch {
    fn sections(&self, view: &View<'_>) -> Result<Vec<Section>, Failure> {
        if self.patch.len() as u64 > limits::WRITE_BYTES_MAX {
            return Err(Failure::new(Kind::TooLarge, "the patch is too large")
                .hint("split it")
                .fact("limit_bytes", limits::WRITE_BYTES_MAX));
        }
        let patch =
            parse(&self.patch, view.terms.patching.grammar).map_err(|error| refusal::malformed(&error))?;
        if patch.sections.len() > limits::PATCH_SECTIONS_MAX {
            return Err(Failure::new(
                Kind::TooMany,
                format!("the patch names {} files", patch.sections.len()),
            )
            .hint(format!("name at most {} in one patch", limits::PATCH_SECTIONS_MAX)));
        }
        Ok(patch.sections)
    }
}

/// The places that a section is about.
fn asked(section: &Section) -> Vec<Ask> {
    match &section.action {
        Action::Add { path, .. } | Action::Update { path, .. } => vec![Ask::write(path)],
        Action::Delete { path, .. } => vec![Ask::spelled(path, Need::Remove, Last::Keep)],
        Action::Move { from, to, .. } => {
            vec![Ask::spelled(from, Need::Remove, Last::Keep), Ask::spelled(to, Need::Write, Last::Keep)]
        }
    }
}

/// A patch being gone through.
struct Work<'v, 'w> {
    view: &'v View<'w>,
    places: Places<'v, 'w>,
    versions: &'v Versions,
    overwrite: Overwrite,
    /// The places of the sections so far.
    touched: Vec<path::RelPath>,
}

impl Work<'_, '_> {
    fn section(&mut self, action: &Action, targets: &[Target], at: At) -> Result<Row, Failure> {
        for target in targets {
            self.places.enter(target);
        }
        if let (Action::Move { from, .. }, [source, place]) = (action, targets)
            && source.path == place.path
        {
            return Err(refusal::same_place(from));
        }
        self.refuse_repeated(targets)?;
        match (action, targets) {
            (Action::Add { path, content }, [target]) => self.add(path, content, target),
            (Action::Update { path, chunks }, [target]) => self.update(path, chunks, target, at),
            (Action::Delete { path, chunks }, [target]) => self.delete(path, chunks, target, at),
            (Action::Move { from, to, chunks }, [source, place]) => {
                self.rename((from, to), chunks, source, place, at)
            }
            (Action::Add { .. } | Action::Update { .. } | Action::Delete { .. } | Action::Move { .. }, _) => {
                Err(Failure::new(Kind::BadRequest, "a section names the wrong number of places"))
            }
        }
    }

    fn refuse_repeated(&mut self, targets: &[Target]) -> Result<(), Failure> {
        for target in targets {
            if self.view.terms.patching.repeated == Repeated::Refused && self.touched.contains(&target.path) {
                return Err(refusal::repeated(&target.path));
            }
        }
        self.touched.extend(targets.iter().map(|target| target.path.clone()));
        Ok(())
    }

    fn add(&mut self, written: &str, content: &str, target: &Target) -> Result<Row, Failure> {
        if let Some(row) = self.added_before(content, target)? {
            return Ok(row);
        }
        if let Some(top) = self.places.top(&target.path) {
            refusal::replaceable(&target.path, top, self.overwrite)?;
        } else {
            self.versions.absent(written, target)?;
            self.room(target)?;
        }
        let before = self.places.shown(&target.path)?;
        let row = Row::new(Done::Add, &target.path).lines(text::lines::count(content.as_bytes()), 0);
        self.places.put(&target.path, content.as_bytes().to_vec());
        Ok(row.left(content.as_bytes()).evidence(self.view, before, Some(content.as_bytes())))
    }

    fn update(&mut self, written: &str, chunks: &[Chunk], target: &Target, at: At) -> Result<Row, Failure> {
        self.present(target)?;
        self.versions.check(&mut self.places, written, target)?;
        let before = self.places.bytes(&target.path)?;
        let (bytes, applied) = match self.applied(&target.path, &before, chunks, at) {
            Ok(made) => made,
            Err(_) if self.holds(&target.path, &before, chunks)? => {
                return Ok(Row::before(Done::Update, &target.path).left(&before));
            }
            Err(failure) => return Err(failure),
        };
        let row = Row::new(Done::Update, &target.path).placed(&applied).left(&bytes);
        let row = row.evidence(self.view, Some(before), Some(&bytes));
        self.places.put(&target.path, bytes);
        Ok(row)
    }

    fn delete(&mut self, written: &str, chunks: &[Chunk], target: &Target, at: At) -> Result<Row, Failure> {
        if self.places.top(&target.path).is_none() && self.removed_before(target) {
            return Ok(Row::before(Done::Delete, &target.path));
        }
        let top = self.there(target)?;
        if top == Top::Directory {
            return Err(refusal::directory(&target.path));
        }
        if top == Top::File {
            self.versions.check(&mut self.places, written, target)?;
        }
        let mut row = Row::new(Done::Delete, &target.path);
        if !chunks.is_empty() {
            self.present(target)?;
            let before = self.places.bytes(&target.path)?;
            let (bytes, applied) = self.applied(&target.path, &before, chunks, at)?;
            if !bytes.is_empty() {
                return Err(refusal::more_than_deleted(&target.path));
            }
            row = row.placed(&applied);
        }
        let before = if top == Top::File { self.places.shown(&target.path)? } else { None };
        self.places.take(&target.path);
        Ok(row.evidence(self.view, before, None))
    }

    fn rename(
        &mut self,
        (written, to): (&str, &str),
        chunks: &[Chunk],
        source: &Target,
        place: &Target,
        at: At,
    ) -> Result<Row, Failure> {
        if let Some(row) = self.moved_before(chunks, source, place)? {
            return Ok(row);
        }
        let top = self.there(source)?;
        if top == Top::Directory {
            return Err(refusal::directory(&source.path));
        }
        if top == Top::File {
            self.versions.check(&mut self.places, written, source)?;
        }
        match self.places.top(&place.path) {
            Some(over) => refusal::replaceable(&place.path, over, self.overwrite)?,
            None => {
                self.versions.absent(to, place)?;
                self.room(place)?;
            }
        }
        let mut row = Row::new(Done::Move, &source.path).to(&place.path);
        let mut before = if top == Top::File { self.places.shown(&source.path)? } else { None };
        let mut after = before.clone();
        let mut changed = None;
        if !chunks.is_empty() {
            self.present(source)?;
            let old = self.places.bytes(&source.path)?;
            let (bytes, applied) = self.applied(&source.path, &old, chunks, at)?;
            row = row.placed(&applied);
            (before, after) = (Some(old.clone()), Some(bytes.clone()));
            changed = (bytes != old).then_some(bytes);
        }
        self.places.rename(&source.path, &place.path);
        if let Some(bytes) = changed {
            row = row.left(&bytes);
            self.places.put(&place.path, bytes);
        } else if top == Top::File {
            row = row.version(self.places.version(&place.path)?);
        }
        Ok(row.evidence(self.view, before, after.as_deref()))
    }

    /// Refuses a new place whose directory is missing, where the terms ask for it.
    fn room(&self, target: &Target) -> Result<(), Failure> {
        match self.view.terms.parents {
            Parents::Made => Ok(()),
            Parents::Required => parents::missing(self.view, &target.path)
                .map(drop)
                .map_err(|failure| failure.fact("path", target.path.to_string())),
        }
    }

    /// What is there, or what may have been meant.
    fn there(&self, target: &Target) -> Result<Top, Failure> {
        self.places.top(&target.path).ok_or_else(|| closest::missing(self.view, &target.path))
    }

    /// The same for a place that must hold a file.
    fn present(&self, target: &Target) -> Result<(), Failure> {
        match self.there(target)? {
            Top::File => Ok(()),
            Top::Directory => Err(refusal::directory(&target.path)),
            Top::Link | Top::Special => Err(refusal::not_regular(&target.path)),
        }
    }

    fn rules<'n>(&self, name: &'n str) -> Rules<'n> {
        match self.view.terms.patching.placing {
            Placing::Tolerant => Rules::tolerant(name),
            Placing::Strict => Rules::strict(name),
        }
    }

    /// The bytes that chunks make of others.
    fn applied(
        &self,
        path: &path::RelPath,
        before: &[u8],
        chunks: &[Chunk],
        at: At,
    ) -> Result<(Vec<u8>, Applied), Failure> {
        let (text, encoding) = places::decoded(path, before, self.view.terms.patching.binary)?;
        let name = path.to_string();
        let rules = self.rules(&name);
        let applied = apply(&text, chunks, &rules).map_err(|error| {
            let now = Now { path, version: Version::of(before), text: &text };
            unplaced::unplaced(self.view, now, &error, at)
        })?;
        let bytes = places::encoded(path, &applied.text, encoding)?;
        Ok((bytes, applied))
    }
}
