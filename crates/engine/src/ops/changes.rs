//! `changes`: the journal read forward from a cursor. Never silent about a gap: a cursor that does not fit this
//! journal is answered with `history_lost`, and a page that is full says so.

pub(super) mod cursor;
pub(super) mod follow;
pub(super) mod ranges;

use cursor::{Position, Since};
use ranges::Ranges;
use serde::Deserialize;
use serde_json::Value;

use super::{
    answer::{Facts, iso_utc},
    feed::{self, Page, Told},
    recorded::Shown,
};
use crate::{
    failure::Failure,
    limits,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    workspace::Stored,
};

/// The arguments of `changes`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Changes {
    since: Since,
    wait_ms: Option<u64>,
}

impl Operation for Changes {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let start = Position::start(view.workspace(), &self.since)?;
        let page = feed::wait(view, self.wait_ms, start, &mut |position| gather(view, position))?;
        Ok(Planned::Read { answer: page.answer("no changes", "changes"), bytes: 0 })
    }
}

fn gather(view: &View<'_>, start: Position) -> Result<Page<Told>, Failure> {
    let (mut ranges, mut chars) = (Ranges::new(view.workspace()), 0);
    feed::scan(view, start, &|after| feed::changes(view, after), &mut |stored, page| {
        add(view, stored, page, &mut ranges, &mut chars)
    })
}

/// Adds the changes of one entry, as many as fit.
fn add(
    view: &View<'_>,
    stored: &Stored,
    page: &mut Page<Told>,
    ranges: &mut Ranges<'_>,
    chars: &mut usize,
) -> Result<(), Failure> {
    let entry = &stored.entry;
    let skipped = page.position.delivered_of(entry.number);
    for (index, change) in entry.changes.iter().enumerate().skip(skipped) {
        let Some(shown) = Shown::seen_by(view, change) else { continue };
        let lines = ranges.of(change)?;
        let mut line =
            format!("r{} {} {}: {}", entry.number, entry.caller.principal, entry.operation, shown.line());
        if let Some(lines) = &lines {
            let spans: Vec<String> = lines.iter().map(|[from, to]| format!("{from}-{to}")).collect();
            line.push_str(&format!(" lines {}", spans.join(",")));
        }
        line.push('\n');
        *chars += line.chars().count();
        let crowded = page.events.len() == limits::CHANGES_PAGE || *chars > limits::PAGE_CHARS;
        if crowded && !page.events.is_empty() {
            page.end_at(Position::inside(stored, index));
            return Ok(());
        }
        let rev = shown.left.map(|_| format!("r{}", entry.number));
        let event = Facts::new()
            .with("entry", entry.number)
            .with("time", iso_utc(entry.time_ms))
            .with("principal", entry.caller.principal.clone())
            .with("operation", entry.operation.clone())
            .extended(shown.object())
            .maybe("rev", rev)
            .maybe(
                "lines",
                lines.map(|lines| lines.into_iter().map(|span| span.to_vec()).collect::<Vec<_>>()),
            );
        page.events.push((Value::Object(event.object()), line));
    }
    page.position = Position::past(stored);
    Ok(())
}
