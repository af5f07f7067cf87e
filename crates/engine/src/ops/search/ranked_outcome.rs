//! Ranked hits with their lines in one list over all files, for a dialect that shows both.

use std::sync::Arc;

use serde_json::Value;
use stead_path::RelPath;

use super::{
    SearchResults,
    matcher::{SearchHit, cut_around_column},
    page::order_by_role,
};
use crate::{
    limits,
    operation::PlannedEffect,
    ops::{outcome_builder::OutcomeBuilder, walk},
};

pub(super) fn ranked_outcome(
    found: &SearchResults,
    top: &RelPath,
    omissions: walk::WalkOmissions,
    max: usize,
) -> PlannedEffect {
    let order = order_by_role(&found.files);
    let best = order.iter().take(max).filter_map(|(file, number)| {
        let (path, hits) = found.files.get(*file)?;
        Some(ranked_hit_json(path, hits.get(*number)?))
    });
    let hits: Vec<Value> = best.collect();
    let count = hits.len();
    let answer = OutcomeBuilder::new()
        .with_field("path", top.to_string())
        .with_field("hits", hits)
        .with_field("total", found.hits_total)
        .with_field("scanned", found.files_searched)
        .with_field("truncated", omissions.limit_reached || count < found.hits_total)
        .build_one_line(format!("{count} of {} hits", found.hits_total));
    PlannedEffect::Read { outcome: answer, bytes: found.bytes_searched }
}

fn ranked_hit_json(path: &RelPath, hit: &SearchHit) -> Value {
    let around = |lines: &[Arc<str>]| -> Vec<String> {
        lines.iter().map(|line| cut_around_column(line, 1, limits::SEARCH_LINE_CHARS_MAX)).collect()
    };
    let fields = OutcomeBuilder::new()
        .with_field("path", path.to_string())
        .with_field("line", hit.line)
        .with_field("column", hit.column)
        .with_field("text", hit.text.clone())
        .with_field("before", around(&hit.before))
        .with_field("after", around(&hit.after))
        .with_field("points", hit.weight.points);
    Value::Object(fields.into_json())
}
