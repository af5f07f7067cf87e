//! `watched`: what happened at the places the caller watches, from a cursor, whoever did it. Read from the journal like
//! `changes`, so nothing is lost between two calls, and nothing is told of places the caller may not read.

pub(crate) mod follow;
pub(crate) mod story;

use serde::Deserialize;
use serde_json::Value;
use story::{Told, Watcher};

use super::{
    answer::{Facts, excerpt},
    changes::{
        cursor::{Position, Since},
        ranges::Ranges,
    },
    feed::{self, Page},
};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    watching::Watch,
    workspace::Stored,
};

/// The arguments of `watched`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Watched {
    cursor: Option<Since>,
    wait_ms: Option<u64>,
    watch: Option<String>,
    #[serde(default)]
    own: bool,
}

/// Whether the listener hears of its own changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    Told,
    Left,
}

impl Operation for Watched {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let watches = self.watches(view)?;
        let start = match &self.cursor {
            Some(cursor) => Position::start(view.workspace(), cursor)?,
            // From the first thing that any of them could tell.
            None => match watches.iter().map(|watch| watch.started).min() {
                Some(number) => Position::start(view.workspace(), &Since::Number(number))?,
                None => Position::now(view.workspace())?,
            },
        };
        let watchers: Vec<Watcher<'_>> = watches.iter().map(Watcher::new).collect();
        let own = if self.own { Own::Told } else { Own::Left };
        let page =
            feed::wait(view, self.wait_ms, start, &mut |position| gather(view, &watchers, own, position))?;
        Ok(Planned::Read { answer: answer(page, watches.len()), bytes: 0 })
    }
}

impl Watched {
    fn watches(&self, view: &View<'_>) -> Result<Vec<Watch>, Failure> {
        let mut watches = view.workspace().watches(&view.caller.principal)?;
        if let Some(wanted) = &self.watch {
            watches.retain(|watch| watch.id == *wanted);
            if watches.is_empty() {
                return Err(Failure::new(Kind::NotFound, format!("you have no watch '{}'", excerpt(wanted)))
                    .hint("call watch to begin one"));
            }
        }
        Ok(watches)
    }
}

fn answer(page: Page<Told>, watches: usize) -> crate::Answer {
    let (cursor, end) = (page.position.to_string(), page.end("watched", "cursor"));
    let mut text: String = page.events.iter().map(Told::line).collect();
    match (page.events.is_empty(), watches) {
        (true, 0) => text.push_str("you watch nothing; call watch first\n"),
        (true, _) => text.push_str("no events\n"),
        (false, _) => {}
    }
    let events: Vec<Value> = page.events.into_iter().map(|told| Value::Object(told.object())).collect();
    Facts::new()
        .with("events", events)
        .with("cursor", cursor)
        .with("watches", watches)
        .with("truncated", page.full)
        .answer(text + &end)
}

/// What these watchers hear after a position, as much as one page holds.
pub(crate) fn gather(
    view: &View<'_>,
    watchers: &[Watcher<'_>],
    own: Own,
    start: Position,
) -> Result<Page<Told>, Failure> {
    let mut ranges = Ranges::new(view.workspace());
    feed::scan(view, start, &|after| feed::changes(view, after), &mut |stored, page| {
        add(view, watchers, own, stored, page, &mut ranges, &|told| told)
    })
}

/// Adds what one entry tells, as much as fits, in the form that the page is of.
pub(super) fn add<E>(
    view: &View<'_>,
    watchers: &[Watcher<'_>],
    own: Own,
    stored: &Stored,
    page: &mut Page<E>,
    ranges: &mut Ranges<'_>,
    form: &dyn Fn(Told) -> E,
) -> Result<(), Failure> {
    let entry = &stored.entry;
    let mine = entry.caller.principal == view.caller.principal.to_string()
        && entry.caller.session == view.caller.session;
    if !(mine && own == Own::Left) {
        let skipped = page.position.delivered_of(entry.number);
        for (index, change) in entry.changes.iter().enumerate().skip(skipped) {
            if page.events.len() >= limits::CHANGES_PAGE {
                page.end_at(Position::inside(stored, index));
                return Ok(());
            }
            let mut told: Vec<Told> = Vec::new();
            for watcher in watchers {
                watcher.hear(view, stored, change, &mut told)?;
            }
            if !told.is_empty() {
                let lines = ranges.of(change)?;
                told.iter_mut().for_each(|told| told.lines.clone_from(&lines));
            }
            page.events.extend(told.into_iter().map(form));
        }
    }
    page.position = Position::past(stored);
    Ok(())
}
