//! `list`: the names below a directory, in byte order, parents before what they hold, by page.
//!
//! A page goes on after the last entry that was shown, by its path, so that nothing is shown twice or lost when the
//! tree changes between two pages. Only what is on the page is looked at more closely.

mod cursor;
mod walk;

use cursor::After;
use path::RelPath;
use serde::Deserialize;
use serde_json::{Map, Value};
use text::visible::visible_line;
use walk::{Shown, Walk};

use super::answer::{Facts, iso_utc};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    plan::Top,
    view::View,
    workspace::Node,
};

/// The arguments of `list`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    path: Option<String>,
    depth: Option<u64>,
    all: Option<bool>,
    cursor: Option<String>,
}

/// Which names are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// All of them.
    All,
    /// Not those that start with a dot.
    Plain,
}

impl List {
    fn spelling(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }

    fn depth(&self) -> Result<usize, Failure> {
        let depth = self.depth.unwrap_or(1);
        match usize::try_from(depth) {
            Ok(depth) if (1..=limits::LIST_DEPTH_MAX).contains(&depth) => Ok(depth),
            Ok(_) | Err(_) => Err(Failure::new(Kind::BadRequest, format!("depth {depth} is not possible"))
                .hint(format!("depth is 1 to {}", limits::LIST_DEPTH_MAX))),
        }
    }

    fn names(&self) -> Names {
        if self.all == Some(true) { Names::All } else { Names::Plain }
    }
}

impl Operation for List {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        self.depth()?;
        Ok(vec![Ask::read(self.spelling())])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let top = &target.path;
        directory_at(target)?;
        let after = self.cursor.as_deref().map(|cursor| After::parse(cursor, top)).transpose()?;
        let mut walk = Walk::new(view, top, self.depth()?, self.names());
        walk.run(after.as_ref())?;
        let next = walk.rest_after.as_ref().map(|last| self.next(top, last));
        let text = twin(top, &walk);
        let entries: Vec<Value> = walk.shown.iter().map(|shown| Value::Object(object(shown))).collect();
        let answer = Facts::new()
            .with("path", top.to_string())
            .with("entries", entries)
            .maybe("total", (walk.depth == 1).then_some(walk.total))
            .maybe("hidden", (walk.hidden > 0).then_some(walk.hidden))
            .with("truncated", next.is_some())
            .maybe("next", next)
            .answer(text);
        Ok(Planned::Read { answer, bytes: 0 })
    }
}

impl List {
    fn next(&self, top: &RelPath, last: &RelPath) -> Map<String, Value> {
        Facts::new()
            .with("path", top.to_string())
            .with("depth", self.depth.unwrap_or(1))
            .maybe("all", self.all)
            .with("cursor", last.to_string())
            .object()
    }
}

pub(super) fn directory_at(target: &Target) -> Result<(), Failure> {
    let path = &target.path;
    match target.node.map(|node| node.top) {
        Some(Top::Directory) => Ok(()),
        Some(Top::File | Top::Link | Top::Special) => {
            Err(Failure::new(Kind::NotDirectory, format!("{path} is not a directory"))
                .hint(format!("call read or stat with path {path}")))
        }
        None if path.is_root() => Err(Failure::workspace_gone()),
        None => {
            let parent = path.parent().unwrap_or_default();
            Err(Failure::new(Kind::NotFound, format!("{path} does not exist"))
                .hint(format!("call list with path {parent} to see what is there")))
        }
    }
}

fn object(shown: &Shown) -> Map<String, Value> {
    Facts::new()
        .with("path", shown.path.to_string())
        .with("type", super::stat::type_name(shown.top))
        .maybe("size", shown.size)
        .maybe("error", shown.unlisted.map(Kind::code))
        .maybe("modified", shown.more.as_ref().map(|more| iso_utc(more.modified_ms)))
        .maybe("leads_to", shown.more.as_ref().and_then(|more| more.leads_to).map(led))
        .object()
}

/// What a link leads to.
fn led(node: Node) -> Value {
    let fields = Facts::new().with("type", super::stat::type_name(node.top)).with("size", node.size);
    Value::Object(fields.object())
}

/// One line for each entry, then one line of facts.
fn twin(top: &RelPath, walk: &Walk<'_, '_>) -> String {
    let mut text = String::with_capacity(walk.chars + 128);
    for shown in &walk.shown {
        text.push_str(&shown.line);
        if let Some(kind) = shown.unlisted {
            text.push_str(&format!("  ({})", kind.code()));
        }
        text.push('\n');
    }
    let place = top.to_wire();
    let count = match (walk.depth, &walk.rest_after) {
        (1, Some(_)) => format!("{} of {} entries", walk.shown.len(), walk.total),
        (_, _) if walk.shown.is_empty() && walk.hidden == 0 => "empty".to_owned(),
        (_, _) => format!("{} entries", walk.shown.len()),
    };
    let hidden = match walk.hidden {
        0 => String::new(),
        hidden => format!(", {hidden} hidden (all: true shows them)"),
    };
    text.push_str(&format!("[{}: {count}{hidden}]", visible_line(&place)));
    if let Some(last) = &walk.rest_after {
        let cursor = last.to_wire();
        let (place, cursor) = (visible_line(&place), visible_line(&cursor));
        text.push_str(&format!(
            "\n… truncated: call list with path {place}, depth {}, cursor \"{cursor}\"",
            walk.depth
        ));
    }
    text
}
