//! Renders the outcome of `search` as text.

use stead_engine::{
    limits,
    ops::{
        IncompleteSearchReason, NativeSearchOutcome, NoHitsSearchSuggestions, SearchHitsByPath, SearchOutcome,
        SearchTextRow, SearchTextRowDetailLevel, SearchedFileCountFields,
    },
};
use stead_text::visible::escape_deceptive_line;

use super::{RenderableOutcome, escape_lines, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for SearchOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        match self {
            SearchOutcome::Page(outcome) => escape_lines(match &outcome.alternatives {
                Some(alternatives) => render_no_match(outcome, alternatives, style),
                None => render_page(outcome, style),
            }),
            SearchOutcome::ByRelevance(found) => {
                escape_one_line(format!("{} of {} hits", found.hits.len(), found.total))
            }
            SearchOutcome::ByPath(found) => escape_lines(render_by_path(found)),
        }
    }
}

fn render_page(outcome: &NativeSearchOutcome, style: CallStyle) -> String {
    let NativeSearchOutcome { page, total, completeness, unlisted, .. } = outcome;
    let mut text = render_summary(outcome) + &render_rows(&page.rows);
    if let (Some(start), Some(next)) = (page.next_start, completeness.next_call()) {
        let call = style.render_command(next.clone()).unwrap_or_else(|| format!("cursor \"{start}\""));
        text.push_str(&format!("[{} more: {call}]\n", total - start));
    } else if *unlisted > 0 {
        let glob = style.render_argument_name("glob");
        text.push_str(&format!("[{unlisted} more not listed: pass a narrower path or {glob}]\n"));
    }
    let ignored = match style {
        CallStyle::Command(_) => render_ignored(&outcome.counts, style),
        CallStyle::ToolCall | CallStyle::Endpoint | CallStyle::DialectTool(_) => {
            (outcome.counts.ignored > 0).then(|| format!("{} ignored", outcome.counts.ignored))
        }
    };
    (text + &render_notes(&outcome.counts, ignored)).trim_end().to_owned()
}

fn render_summary(outcome: &NativeSearchOutcome) -> String {
    let NativeSearchOutcome { query, total, start, files_with_hits, definitions, likely_definitions, .. } = outcome;
    if *start > 0 {
        return format!("{}: from hit {} of {total}\n", escape_deceptive_line(&query.display_text()), start + 1);
    }
    let defined = match (*definitions, *likely_definitions) {
        (0, 0) => String::new(),
        (0, likely) => format!(", {}", render_count(likely, "likely definition")),
        (sure, _) => format!(", {}", render_count(sure, "definition")),
    };
    format!("{}{defined}\n", render_hit_count(*total, *files_with_hits))
}

fn render_hit_count(total: usize, files: usize) -> String {
    format!("{} in {}", render_count(total, "hit"), render_count(files, "file"))
}

fn render_count(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

fn render_rows(rows: &[SearchTextRow]) -> String {
    let mut text = String::new();
    let mut previous = None;
    let mut rows = rows.iter().peekable();
    while let Some(row) = rows.next() {
        text.push_str(&row.render_heading(previous));
        text.push_str(&row.render_lines());
        if row.repeat_count > 1 {
            text.push_str(&format!(" (×{})", row.repeat_count));
        }
        let is_location = |row: &SearchTextRow| row.style == SearchTextRowDetailLevel::LocationOnly;
        let more = is_location(row) && rows.peek().is_some_and(|next| is_location(next));
        text.push_str(if more { ", " } else { "\n" });
        previous = Some(row);
    }
    text
}

fn render_notes(counts: &SearchedFileCountFields, ignored: Option<String>) -> String {
    let skipped = [(counts.binary, "not text"), (counts.unreadable, "not readable")];
    let skipped = skipped.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let notes: Vec<String> = skipped.chain(render_incomplete(counts)).chain(ignored).collect();
    if notes.is_empty() { String::new() } else { format!("[{}]\n", notes.join("; ")) }
}

fn render_incomplete(counts: &SearchedFileCountFields) -> Option<String> {
    let named = counts.left.iter().map(|file| {
        let why = match file.why {
            IncompleteSearchReason::FileTooLarge => "too large",
            IncompleteSearchReason::OutOfTime => "out of time",
            IncompleteSearchReason::LineTooLong => "line too long",
        };
        format!("{} ({why})", escape_deceptive_line(&file.path.to_wire()))
    });
    let named: Vec<String> = named.collect();
    let more = counts.large - named.len() as u64;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (counts.large > 0).then(|| format!("not fully searched: {}{more}", named.join(", ")))
}

fn render_ignored(counts: &SearchedFileCountFields, style: CallStyle) -> Option<String> {
    let count = counts.ignored;
    (count > 0).then(|| format!("{count} ignored ({} includes them)", style.render_switch("all")))
}

fn render_no_match(outcome: &NativeSearchOutcome, alternatives: &NoHitsSearchSuggestions, style: CallStyle) -> String {
    let NativeSearchOutcome { counts, query, .. } = outcome;
    let NoHitsSearchSuggestions { nearest, names, tried, out_of_time } = alternatives;
    let files = if counts.scanned == 1 { "file" } else { "files" };
    let query = query.display_text();
    let mut text = format!("no match for \"{}\" in {} {files}", escape_deceptive_line(&query), counts.scanned);
    if *out_of_time {
        text.push_str("; no time to try other interpretations");
    }
    if !tried.is_empty() {
        let tried: Vec<&str> = tried.iter().map(|fallback| fallback.describe()).collect();
        text.push_str(&format!(" (also tried {})", tried.join(", ")));
    }
    if let Some(nearest) = nearest {
        let hits = render_hit_count(nearest.total, nearest.files_with_hits);
        text.push_str(&format!("\nnearest, {}: {hits}\n{}", nearest.read, render_rows(&nearest.page.rows)));
    }
    if !names.is_empty() {
        let names: Vec<String> = names.iter().map(|path| escape_one_line(path.to_wire())).collect();
        text = format!("{}\nfiles with similar names: {}", text.trim_end(), names.join(", "));
    }
    let notes = render_notes(counts, render_ignored(counts, style));
    format!("{}\n{notes}", text.trim_end()).trim_end().to_owned()
}

fn render_by_path(found: &SearchHitsByPath) -> String {
    let SearchHitsByPath { files, total, counts, query, .. } = found;
    let mut text = String::new();
    for file in files {
        text.push_str(&format!("{}\n", escape_deceptive_line(&file.path.to_wire())));
        for line in file.hits.iter().flat_map(|hit| hit.text_lines()) {
            text.push_str(&format!("{}\n", line.render()));
        }
    }
    let listed: usize = files.iter().map(|file| file.hits.len()).sum();
    let (query, files, most) = (query.display_text(), files.len(), limits::SEARCH_HITS_MAX);
    text.push_str(&match (*total, total - listed) {
        (0, _) => format!("[no match for \"{}\" in {} files", escape_deceptive_line(&query), counts.scanned),
        (_, 0) => format!("[{total} hits in {files} files"),
        (_, left) => format!(
            "[{listed} hits in {files} files; truncated, {left} more: pass a narrower path or a glob, or raise max up \
             to {most}"
        ),
    });
    for (count, what) in [(counts.binary, "not text"), (counts.large, "too large"), (counts.unreadable, "not readable")]
    {
        if count > 0 {
            text.push_str(&format!("; {count} {what}"));
        }
    }
    text.extend(render_ignored(counts, CallStyle::ToolCall).map(|note| format!("; {note}")));
    text + "]"
}

#[cfg(test)]
mod tests {
    use stead_path::RelPath;

    use super::*;
    use stead_engine::ops::IncompletelySearchedFileRow;

    #[test]
    fn note_names_the_first_incomplete_files_and_counts_the_others() {
        assert_eq!(render_incomplete(&SearchedFileCountFields::default()), None);
        let path = RelPath::from_wire("f0").unwrap();
        let left = vec![IncompletelySearchedFileRow { path, why: IncompleteSearchReason::LineTooLong }];
        let note = render_incomplete(&SearchedFileCountFields { large: 3, left, ..SearchedFileCountFields::default() });
        assert_eq!(note.as_deref(), Some("not fully searched: f0 (line too long) and 2 more"));
    }
}
