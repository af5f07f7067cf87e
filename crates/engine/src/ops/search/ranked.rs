//! Hits with their lines, what was meant first, for a dialect that shows both: one list over all files.

use std::sync::Arc;

use path::RelPath;
use serde_json::Value;

use super::{
    Found,
    lines::{Hit, cut},
    page::by_role,
};
use crate::{
    limits,
    operation::Planned,
    ops::{answer::Facts, seek},
};

/// The best hits in their order.
pub(super) fn planned(found: &Found, top: &RelPath, unseen: seek::Unseen, max: usize) -> Planned {
    let order = by_role(&found.files);
    let best = order.iter().take(max).filter_map(|(file, number)| {
        let (path, hits) = found.files.get(*file)?;
        Some(shown(path, hits.get(*number)?))
    });
    let hits: Vec<Value> = best.collect();
    let count = hits.len();
    let answer = Facts::new()
        .with("path", top.to_string())
        .with("hits", hits)
        .with("total", found.total)
        .with("scanned", found.scanned)
        .with("truncated", unseen.cut || count < found.total)
        .line(format!("{count} of {} hits", found.total));
    Planned::Read { answer, bytes: found.bytes }
}

fn shown(path: &RelPath, hit: &Hit) -> Value {
    let around = |lines: &[Arc<str>]| -> Vec<String> {
        lines.iter().map(|line| cut(line, 1, limits::SEARCH_LINE_CHARS_MAX)).collect()
    };
    let facts = Facts::new()
        .with("path", path.to_string())
        .with("line", hit.line)
        .with("column", hit.column)
        .with("text", hit.text.clone())
        .with("before", around(&hit.before))
        .with("after", around(&hit.after))
        .with("points", hit.weight.points);
    Value::Object(facts.object())
}
