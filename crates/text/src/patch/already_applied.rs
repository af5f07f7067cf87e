//! Detection of patches that are already applied. Owns the proof: no old line is present, and all new lines are, each
//! in one position. Never reports it for chunks whose new lines are not distinctive.

use crate::distinctive;
use crate::locate::MatchPass;

use super::chunk_search::PatchChunkLocator;
use super::line_edits::LineEdits;
use super::line_index::LineIndex;
use super::{PatchApplyErrorKind, PatchChunk, PatchLine, PatchLineKind, PatchRules, SlipRepair, apply_chunks};

/// The 1-based lines of the results of all chunks, if they are already applied.
#[must_use]
pub fn find_already_applied(text: &str, chunks: &[PatchChunk], rules: &PatchRules<'_>) -> Option<Vec<usize>> {
    let is_news = |line: &PatchLine| line.kind == PatchLineKind::Add && !line.text.trim().is_empty();
    let brings = chunks.iter().any(|chunk| chunk.lines.iter().any(is_news));
    if !brings || !chunks.iter().all(is_distinctive_chunk) || !are_old_lines_absent(text, chunks, rules) {
        return None;
    }
    let back: Vec<PatchChunk> = chunks.iter().map(reverse_chunk).collect();
    if back.iter().any(PatchChunk::only_adds) {
        return None;
    }
    let exactly = PatchRules { passes: &[MatchPass::LineEndings], slip_repair: SlipRepair::Off, ..*rules };
    let undone = apply_chunks(text, &back, &exactly).ok()?;
    Some(undone.matches.iter().map(|matched| matched.line).collect())
}

/// Whether the added lines, if any, are distinctive.
fn is_distinctive_chunk(chunk: &PatchChunk) -> bool {
    let of = |is_wanted: fn(PatchLineKind) -> bool| -> String {
        let lines = chunk.lines.iter().filter(|line| is_wanted(line.kind));
        lines.flat_map(|line| [line.text.as_str(), "\n"]).collect()
    };
    let added = of(|side| side == PatchLineKind::Add);
    added.is_empty() || distinctive::is_distinctive(&of(|side| side != PatchLineKind::Add), &added)
}

/// Whether the old lines of all changing chunks are absent.
fn are_old_lines_absent(text: &str, chunks: &[PatchChunk], rules: &PatchRules<'_>) -> bool {
    let index = LineIndex::new(text);
    let mut search = PatchChunkLocator::new(text, &index, rules);
    let untouched = LineEdits::new(index.lines.len());
    let changes = |chunk: &&PatchChunk| {
        chunk.lines.iter().any(|line| matches!(line.kind, PatchLineKind::Add | PatchLineKind::Remove))
    };
    chunks
        .iter()
        .filter(changes)
        .all(|chunk| matches!(search.place_chunk(chunk, &untouched), Err(PatchApplyErrorKind::NotFound { .. })))
}

/// The reverse of a chunk, without the declared position, which refers to another text.
fn reverse_chunk(chunk: &PatchChunk) -> PatchChunk {
    let turned = |line: &PatchLine| {
        let side = match line.kind {
            PatchLineKind::Add => PatchLineKind::Remove,
            PatchLineKind::Remove => PatchLineKind::Add,
            PatchLineKind::Context | PatchLineKind::Unmarked => line.kind,
        };
        PatchLine { kind: side, ..line.clone() }
    };
    PatchChunk { lines: chunk.lines.iter().map(turned).collect(), declared_position: None, ..chunk.clone() }
}
