//! What one recorded change is to one watch. Never tells of a place the listener may not read, and never any content.
//!
//! A directory that comes or goes as a whole is one event, whatever pattern was asked for: it carries what may fit along.
//! What goes with something above the watched place is told of the watched place itself.

use std::cell::OnceCell;

use journal::{Change, ChangeKind, State};
use path::RelPath;
use serde_json::{Map, Value};
use text::visible::visible_line;

use crate::{
    failure::Failure,
    glob::Globs,
    ops::answer::{Facts, iso_utc},
    version::Version,
    view::View,
    watching::{Depth, Happening, Watch},
    workspace::Stored,
};

/// A watch that listens; its pattern is read when it is first needed.
pub(crate) struct Watcher<'a> {
    watch: &'a Watch,
    globs: OnceCell<Option<Globs>>,
}

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) watch: String,
    pub(crate) happening: Happening,
    pub(crate) path: RelPath,
    pub(crate) new_path: Option<RelPath>,
    before: Option<Version>,
    after: Option<Version>,
    entry: u64,
    operation: String,
    actor: String,
    session: String,
    time_ms: i64,
    pub(crate) lines: Option<Vec<[usize; 2]>>,
}

impl Told {
    /// The object for machines.
    pub(crate) fn object(self) -> Map<String, Value> {
        let rev = self.after.map(|_| format!("r{}", self.entry));
        let lines = self.lines.map(|lines| lines.into_iter().map(|span| span.to_vec()).collect::<Vec<_>>());
        Facts::new()
            .with("watch", self.watch)
            .with("event", self.happening.word())
            .with("path", self.path.to_string())
            .maybe("new_path", self.new_path.map(|path| path.to_string()))
            .maybe("before", self.before.map(|version| version.to_string()))
            .maybe("version", self.after.map(|version| version.to_string()))
            .maybe("rev", rev)
            .maybe("lines", lines)
            .with("actor", self.actor)
            .with("session", self.session)
            .with("operation", self.operation)
            .with("time", iso_utc(self.time_ms))
            .with("entry", self.entry)
            .object()
    }

    /// One line for models.
    pub(crate) fn line(&self) -> String {
        let path = self.path.to_wire();
        let mut line =
            format!("r{} {} {} {}", self.entry, self.actor, self.happening.word(), visible_line(&path));
        if let Some(new_path) = &self.new_path {
            line.push_str(&format!(" -> {}", visible_line(&new_path.to_wire())));
        }
        if let Some(lines) = self.lines.as_ref().filter(|lines| !lines.is_empty()) {
            let spans: Vec<String> = lines.iter().map(|[from, to]| format!("{from}-{to}")).collect();
            line.push_str(&format!(" lines {}", spans.join(",")));
        }
        line.push('\n');
        line
    }
}

impl<'a> Watcher<'a> {
    pub(crate) fn new(watch: &'a Watch) -> Self {
        Self { watch, globs: OnceCell::new() }
    }

    /// Adds what this watch hears of a change.
    pub(crate) fn hear(
        &self,
        view: &View<'_>,
        stored: &Stored,
        change: &Change,
        told: &mut Vec<Told>,
    ) -> Result<(), Failure> {
        if stored.entry.number <= self.watch.started {
            return Ok(());
        }
        let path = RelPath::from_wire(&change.path)?;
        let to = change.to.as_deref().map(RelPath::from_wire).transpose()?;
        for (happening, path, new_path) in self.sort(view, change, path, to) {
            let entry = &stored.entry;
            told.push(Told {
                watch: self.watch.id.clone(),
                happening,
                path,
                new_path,
                before: version(&change.before),
                after: version(&change.after).filter(|_| happening != Happening::Delete),
                entry: entry.number,
                operation: entry.operation.clone(),
                actor: entry.caller.principal.clone(),
                session: entry.caller.session.clone(),
                time_ms: entry.time_ms,
                lines: None,
            });
        }
        Ok(())
    }

    fn sort(
        &self,
        view: &View<'_>,
        change: &Change,
        path: RelPath,
        to: Option<RelPath>,
    ) -> Vec<(Happening, RelPath, Option<RelPath>)> {
        let carrying = carries(change);
        let here = self.hears(view, &path, carrying);
        let one = |happening: Happening, path: RelPath| {
            if self.watch.wants(happening) { vec![(happening, path, None)] } else { Vec::new() }
        };
        match (change.kind, to) {
            (ChangeKind::Rename, Some(to)) => match (here, self.hears(view, &to, carrying)) {
                (true, true) if self.watch.wants(Happening::Rename) => {
                    vec![(Happening::Rename, path, Some(to))]
                }
                (true, true) => {
                    let mut both = one(Happening::Delete, path);
                    both.append(&mut one(Happening::Create, to));
                    both
                }
                (true, false) => one(Happening::Delete, path),
                (false, true) if !self.fits(&to) => one(Happening::Rescan, to),
                (false, true) => one(Happening::Create, to),
                (false, false) if self.is_below(view, &path) => {
                    one(Happening::Delete, self.watch.path.clone())
                }
                (false, false) if self.is_below(view, &to) => one(Happening::Rescan, self.watch.path.clone()),
                (false, false) => Vec::new(),
            },
            (ChangeKind::Copy, Some(to)) if self.hears(view, &to, carrying) => {
                one(if self.fits(&to) { Happening::Create } else { Happening::Rescan }, to)
            }
            (ChangeKind::Copy, _) => Vec::new(),
            (ChangeKind::Rescan, _) if self.watch.reaches(&path) && view.may_pass(&path) => {
                one(Happening::Rescan, path)
            }
            (ChangeKind::Rescan, _) if self.is_below(view, &path) => {
                one(Happening::Rescan, self.watch.path.clone())
            }
            (ChangeKind::Remove, _) if here => one(Happening::Delete, path),
            (ChangeKind::Remove, _) if self.is_below(view, &path) => {
                one(Happening::Delete, self.watch.path.clone())
            }
            (ChangeKind::Create | ChangeKind::MakeDir | ChangeKind::MakeLink, _) if here => {
                one(if self.fits(&path) { Happening::Create } else { Happening::Rescan }, path)
            }
            // A whole tree came back above the place.
            (ChangeKind::Create, _)
                if self.is_below(view, &path) && matches!(change.after, State::Tree { .. }) =>
            {
                one(Happening::Rescan, self.watch.path.clone())
            }
            (ChangeKind::Modify | ChangeKind::SetMode, _) if here => one(Happening::Modify, path),
            (
                ChangeKind::Create
                | ChangeKind::Modify
                | ChangeKind::Remove
                | ChangeKind::Rename
                | ChangeKind::MakeDir
                | ChangeKind::MakeLink
                | ChangeKind::SetMode
                | ChangeKind::Rescan,
                _,
            ) => Vec::new(),
        }
    }

    /// Whether the watched place lies below this one, and the listener may know.
    fn is_below(&self, view: &View<'_>, above: &RelPath) -> bool {
        self.watch.path != *above && self.watch.path.is_within(above) && view.may_read(&self.watch.path)
    }

    /// Whether a place is in reach, fits the pattern or carries along what may fit it, and may be read.
    fn hears(&self, view: &View<'_>, path: &RelPath, carrying: Carrying) -> bool {
        let deep = carrying == Carrying::Tree && self.watch.depth == Depth::Deep;
        self.watch.reaches(path) && view.may_read(path) && (deep || self.fits(path))
    }

    fn fits(&self, path: &RelPath) -> bool {
        let read = || self.watch.glob.as_deref().and_then(|glob| Globs::by_name([glob]).ok());
        match (self.globs.get_or_init(read), path.below(&self.watch.path)) {
            (Some(globs), Some(below)) => below.is_root() || globs.matches(&below),
            (None, Some(_)) => true,
            (_, None) => false,
        }
    }
}

/// What a change takes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrying {
    /// Only what is at the place itself.
    Itself,
    /// Everything below it.
    Tree,
}

fn carries(change: &Change) -> Carrying {
    let tree = |state: &State| matches!(state, State::Tree { version: None, .. });
    let directory = |state: &State| tree(state) || matches!(state, State::Directory { .. });
    let whole = match change.kind {
        ChangeKind::Rename | ChangeKind::Copy => directory(&change.before) || directory(&change.after),
        ChangeKind::Remove => directory(&change.before),
        ChangeKind::Create => tree(&change.after),
        ChangeKind::Modify
        | ChangeKind::MakeDir
        | ChangeKind::MakeLink
        | ChangeKind::SetMode
        | ChangeKind::Rescan => false,
    };
    if whole { Carrying::Tree } else { Carrying::Itself }
}

fn version(state: &State) -> Option<Version> {
    match state {
        State::File { version, .. } | State::Tree { version: Some(version), .. } => Some(Version(*version)),
        State::Absent
        | State::Directory { .. }
        | State::Link { .. }
        | State::Tree { version: None, .. }
        | State::Unknown { .. } => None,
    }
}
