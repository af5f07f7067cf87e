//! `find`: paths below a directory that match a pattern, in byte order, with size and time. A pattern without a slash
//! matches a name at any depth. If nothing matches, names that contain the pattern are returned, else the most
//! similar names.

mod suggestions;

use serde::Deserialize;
use serde_json::{Map, Value};
use stead_path::RelPath;
use stead_text::visible::escape_deceptive_line;
use suggestions::NearPathMatches;

use super::{
    list,
    outcome_builder::{OutcomeBuilder, format_iso_utc},
    walk,
};
use crate::{
    call_context::CallContext,
    call_options::ListingStyle,
    errors::{Error, ErrorKind},
    glob::Globs,
    limits,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    plan::FileKind,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FindArgs {
    pattern: String,
    path: Option<String>,
    all: Option<bool>,
    max: Option<u64>,
}

struct FindMatch {
    path: RelPath,
    kind: FileKind,
    size: u64,
    modified_ms: i64,
}

impl Operation for FindArgs {
    fn requested_paths(&self, _context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        Ok(vec![RequestedPath::read(self.path.as_deref().unwrap_or("."))])
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let top = &targets[0].path;
        list::require_directory(&targets[0])?;
        let pattern = match context.options.listing_style {
            ListingStyle::NativePage => Globs::from_name_patterns([self.pattern.as_str()])?,
            ListingStyle::DetailedEntries(_) => Globs::new([self.pattern.as_str()])?,
        };
        let max = bounded_limit(self.max, limits::FIND_MATCHES_DEFAULT, limits::FIND_MATCHES_MAX)?;
        context.control.report_found(0);
        let (results, omissions) =
            walk::walk_tree(context, top, self.all.into(), &FirstMatches::default, &|own, entry| {
                if pattern.matches_bytes(entry.path_below_start()) && context.may_read(entry.path) {
                    own.add(entry.path, max);
                    context.control.report_found(1);
                }
                Ok(())
            })?;
        let (mut first, mut total) = FirstMatches::merge_all(results, max);
        let mut how = FindMatchKind::Pattern;
        if total == 0 && context.options.listing_style == ListingStyle::NativePage {
            let NearPathMatches { substring_matches: parts, total: holding, nearest_names: names } =
                suggestions::find_near_matches(context, top, self.all.into(), &self.pattern, max)?;
            how = if holding > 0 { FindMatchKind::Substring } else { FindMatchKind::NearestNames(names) };
            (first, total) = (parts, holding);
        }
        let found: Vec<FindMatch> = first.into_iter().filter_map(|path| stat_match(context, path)).collect();
        let left_out = total.saturating_sub(found.len() as u64);
        let truncated = omissions.limit_reached || left_out > 0;
        let text = render_text(&found, left_out, &self.pattern, &how) + &omissions.render_note() + "]";
        let matches: Vec<Value> = found.iter().map(|found| Value::Object(found.to_json())).collect();
        let answer = OutcomeBuilder::new()
            .with_field("path", top.to_string())
            .with_field("matches", matches)
            .with_field("total", total)
            .with_some("partial", (how == FindMatchKind::Substring).then_some(true))
            .with_some("nearest", how.nearest_names_json())
            .with_field("truncated", truncated)
            .with_some("closed", (omissions.unlistable_directories > 0).then_some(omissions.unlistable_directories))
            .with_some("ignored", omissions.ignored_count())
            .build(text);
        Ok(PlannedEffect::Read { outcome: answer, bytes: 0 })
    }
}

#[derive(Debug, PartialEq, Eq)]
enum FindMatchKind {
    Pattern,
    /// No match, but some names contain the pattern.
    Substring,
    /// No match; these are the most similar names.
    NearestNames(Vec<RelPath>),
}

impl FindMatchKind {
    fn nearest_names_json(&self) -> Option<Vec<Value>> {
        match self {
            FindMatchKind::NearestNames(names) if !names.is_empty() => {
                Some(names.iter().map(|path| path.to_string().into()).collect())
            }
            FindMatchKind::NearestNames(_) | FindMatchKind::Pattern | FindMatchKind::Substring => None,
        }
    }
}

impl FindMatch {
    fn to_json(&self) -> Map<String, Value> {
        OutcomeBuilder::new()
            .with_field("path", self.path.to_string())
            .with_field("type", super::stat::file_kind_name(self.kind))
            .with_field("size", self.size)
            .with_field("modified", format_iso_utc(self.modified_ms))
            .into_json()
    }
}

/// The match with its size and time; `None` if it is gone.
fn stat_match(context: &CallContext<'_>, path: RelPath) -> Option<FindMatch> {
    let stat = walk::stat_entry(context, &path)?;
    let size = if stat.kind == FileKind::Directory { 0 } else { stat.size };
    Some(FindMatch { path, kind: stat.kind, size, modified_ms: stat.modified_ms })
}

/// The first matches of one thread in path order, and its total.
#[derive(Default)]
struct FirstMatches {
    paths: Vec<RelPath>,
    total: u64,
}

impl FirstMatches {
    fn add(&mut self, path: &RelPath, max: usize) {
        self.total += 1;
        self.paths.push(path.clone());
        if self.paths.len() >= max.saturating_mul(2) {
            self.truncate(max);
        }
    }

    fn truncate(&mut self, max: usize) {
        self.paths.sort_unstable_by(walk::compare_by_path);
        self.paths.truncate(max);
    }

    fn merge_all(results: Vec<Self>, max: usize) -> (Vec<RelPath>, u64) {
        let mut all = Self::default();
        for one in results {
            all.total += one.total;
            all.paths.extend(one.paths);
        }
        all.truncate(max);
        (all.paths, all.total)
    }
}

/// Checks a requested number of results against the maximum.
pub(super) fn bounded_limit(requested: Option<u64>, usual: usize, most: usize) -> Result<usize, Error> {
    match requested.map(usize::try_from) {
        None => Ok(usual),
        Some(Ok(number)) if (1..=most).contains(&number) => Ok(number),
        Some(_) => Err(Error::new(ErrorKind::BadRequest, format!("max is 1 to {most}"))
            .with_next_step("use a narrower path or pattern to see everything")),
    }
}

/// One line per match, then the summary, without its closing bracket.
fn render_text(found: &[FindMatch], left_out: u64, pattern: &str, how: &FindMatchKind) -> String {
    let mut text = String::new();
    for found in found {
        let wire = found.path.to_wire();
        text.push_str(&escape_deceptive_line(&wire));
        match found.kind {
            FileKind::Directory => text.push('/'),
            FileKind::Link => text.push('@'),
            FileKind::File | FileKind::Special => text.push_str(&format!("  {}", found.size)),
        }
        text.push('\n');
    }
    let shown = escape_deceptive_line(pattern);
    let count = found.len();
    match how {
        FindMatchKind::Pattern => text.push_str(&format!("[{count} match {shown}")),
        FindMatchKind::Substring => text.push_str(&format!("[no match for {shown}; {count} contain it")),
        FindMatchKind::NearestNames(names) => {
            text.push_str(&format!("[no match for {shown}"));
            for (at, path) in names.iter().enumerate() {
                text.push_str(if at == 0 { "; did you mean " } else { ", " });
                text.push_str(&escape_deceptive_line(&path.to_wire()));
            }
        }
    }
    if left_out > 0 {
        text.push_str(&format!(
            "; truncated, {left_out} more: pass a narrower path, or raise max up to {}",
            limits::FIND_MATCHES_MAX
        ));
    }
    text
}
