//! `find`: the places below a directory whose path matches a pattern, in byte order, with size and time. A pattern
//! without a slash means a name at any depth. A name that nothing has is tried as a part of names, and when nothing
//! comes of that either the nearest names are told.

mod near;

use near::Near;
use path::RelPath;
use serde::Deserialize;
use serde_json::{Map, Value};
use text::visible::visible_line;

use super::{
    answer::{Facts, iso_utc},
    list, seek,
};
use crate::{
    failure::{Failure, Kind},
    glob::Globs,
    limits,
    operation::{Ask, Operation, Planned, Target},
    plan::Top,
    terms::Listing,
    view::View,
};

/// The arguments of `find`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Find {
    pattern: String,
    path: Option<String>,
    all: Option<bool>,
    max: Option<u64>,
}

/// One place that matches.
struct Match {
    path: RelPath,
    top: Top,
    size: u64,
    modified_ms: i64,
}

impl Operation for Find {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(vec![Ask::read(self.path.as_deref().unwrap_or("."))])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let top = &targets[0].path;
        list::directory_at(&targets[0])?;
        let pattern = match view.terms.listing {
            Listing::Page => Globs::by_name([self.pattern.as_str()])?,
            Listing::Entries(_) => Globs::new([self.pattern.as_str()])?,
        };
        let max = bounded(self.max, limits::FIND_MATCHES_DEFAULT, limits::FIND_MATCHES_MAX)?;
        view.control.count_found(0);
        let (gathered, unseen) = seek::walk(view, top, self.all.into(), &First::default, &|own, met| {
            if pattern.match_bytes(met.below()) && view.may_read(met.path) {
                own.meet(met.path, max);
                view.control.count_found(1);
            }
            Ok(())
        })?;
        let (mut first, mut total) = First::merged(gathered, max);
        let mut how = How::Itself;
        if total == 0 && view.terms.listing == Listing::Page {
            let Near { parts, total: holding, names } =
                near::look(view, top, self.all.into(), &self.pattern, max)?;
            how = if holding > 0 { How::AsPart } else { How::NotAtAll(names) };
            (first, total) = (parts, holding);
        }
        let found: Vec<Match> = first.into_iter().filter_map(|path| looked(view, path)).collect();
        let left_out = total.saturating_sub(found.len() as u64);
        let truncated = unseen.cut || left_out > 0;
        let text = twin(&found, left_out, &self.pattern, &how) + &unseen.note() + "]";
        let matches: Vec<Value> = found.iter().map(|found| Value::Object(found.object())).collect();
        let answer = Facts::new()
            .with("path", top.to_string())
            .with("matches", matches)
            .with("total", total)
            .maybe("partial", (how == How::AsPart).then_some(true))
            .maybe("nearest", how.nearest())
            .with("truncated", truncated)
            .maybe("closed", (unseen.closed > 0).then_some(unseen.closed))
            .maybe("ignored", unseen.ignored())
            .answer(text);
        Ok(Planned::Read { answer, bytes: 0 })
    }
}

/// How the pattern matched.
#[derive(Debug, PartialEq, Eq)]
enum How {
    Itself,
    /// Nothing matched it, but it is a part of names.
    AsPart,
    /// Nothing matched; these names are near.
    NotAtAll(Vec<RelPath>),
}

impl How {
    fn nearest(&self) -> Option<Vec<Value>> {
        match self {
            How::NotAtAll(names) if !names.is_empty() => {
                Some(names.iter().map(|path| path.to_string().into()).collect())
            }
            How::NotAtAll(_) | How::Itself | How::AsPart => None,
        }
    }
}

impl Match {
    fn object(&self) -> Map<String, Value> {
        Facts::new()
            .with("path", self.path.to_string())
            .with("type", super::stat::type_name(self.top))
            .with("size", self.size)
            .with("modified", iso_utc(self.modified_ms))
            .object()
    }
}

/// A match with its facts; nothing when it is gone already.
fn looked(view: &View<'_>, path: RelPath) -> Option<Match> {
    let node = seek::node(view, &path)?;
    let size = if node.top == Top::Directory { 0 } else { node.size };
    Some(Match { path, top: node.top, size, modified_ms: node.modified_ms })
}

/// The first matches by place that one thread met, and how many it met in all.
#[derive(Default)]
struct First {
    paths: Vec<RelPath>,
    total: u64,
}

impl First {
    fn meet(&mut self, path: &RelPath, max: usize) {
        self.total += 1;
        self.paths.push(path.clone());
        if self.paths.len() >= max.saturating_mul(2) {
            self.cut(max);
        }
    }

    fn cut(&mut self, max: usize) {
        self.paths.sort_unstable_by(seek::by_place);
        self.paths.truncate(max);
    }

    fn merged(gathered: Vec<Self>, max: usize) -> (Vec<RelPath>, u64) {
        let mut all = Self::default();
        for one in gathered {
            all.total += one.total;
            all.paths.extend(one.paths);
        }
        all.cut(max);
        (all.paths, all.total)
    }
}

/// A number of results that a caller asked for, within what one answer carries.
pub(super) fn bounded(asked: Option<u64>, usual: usize, most: usize) -> Result<usize, Failure> {
    match asked.map(usize::try_from) {
        None => Ok(usual),
        Some(Ok(number)) if (1..=most).contains(&number) => Ok(number),
        Some(_) => Err(Failure::new(Kind::BadRequest, format!("max is 1 to {most}"))
            .hint("ask for a smaller directory or a narrower pattern to see everything")),
    }
}

/// One line for each match, then the facts, up to where the bracket closes.
fn twin(found: &[Match], left_out: u64, pattern: &str, how: &How) -> String {
    let mut text = String::new();
    for found in found {
        let wire = found.path.to_wire();
        text.push_str(&visible_line(&wire));
        match found.top {
            Top::Directory => text.push('/'),
            Top::Link => text.push('@'),
            Top::File | Top::Special => text.push_str(&format!("  {}", found.size)),
        }
        text.push('\n');
    }
    let shown = visible_line(pattern);
    let count = found.len();
    match how {
        How::Itself => text.push_str(&format!("[{count} match {shown}")),
        How::AsPart => text.push_str(&format!("[nothing matches {shown}; {count} have it as a part")),
        How::NotAtAll(names) => {
            text.push_str(&format!("[nothing matches {shown}"));
            for (at, path) in names.iter().enumerate() {
                text.push_str(if at == 0 { "; did you mean " } else { ", " });
                text.push_str(&visible_line(&path.to_wire()));
            }
        }
    }
    if left_out > 0 {
        text.push_str(&format!(
            "; truncated, {left_out} more: name a smaller path, or raise max up to {}",
            limits::FIND_MATCHES_MAX
        ));
    }
    text
}
