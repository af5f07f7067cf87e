//! Whether chunks were applied before. Owns the proof: none of their old lines is there, and all of their new ones are,
//! each in one place. Never says so of chunks that bring nothing that could be recognised.

use crate::locate::Pass;
use crate::proof;

use super::find::Search;
use super::index::Index;
use super::splice::Splice;
use super::{Chunk, Line, Reason, Rules, Side, Slips, apply};

/// The 1-based lines where the results of all chunks stand, if they were applied already.
#[must_use]
pub fn standing(text: &str, chunks: &[Chunk], rules: &Rules<'_>) -> Option<Vec<usize>> {
    let is_news = |line: &Line| line.side == Side::Add && !line.text.trim().is_empty();
    let brings = chunks.iter().any(|chunk| chunk.lines.iter().any(is_news));
    if !brings || !chunks.iter().all(is_telling) || !are_gone(text, chunks, rules) {
        return None;
    }
    let back: Vec<Chunk> = chunks.iter().map(reversed).collect();
    if back.iter().any(Chunk::only_adds) {
        return None;
    }
    let exactly = Rules { passes: &[Pass::Endings], slips: Slips::Stay, ..*rules };
    let undone = apply(text, &back, &exactly).ok()?;
    Some(undone.matched.iter().map(|matched| matched.line).collect())
}

/// Whether what a chunk adds, if anything, could only come from what it quotes.
fn is_telling(chunk: &Chunk) -> bool {
    let of = |is_wanted: fn(Side) -> bool| -> String {
        let lines = chunk.lines.iter().filter(|line| is_wanted(line.side));
        lines.flat_map(|line| [line.text.as_str(), "\n"]).collect()
    };
    let added = of(|side| side == Side::Add);
    added.is_empty() || proof::is_telling(&of(|side| side != Side::Add), &added)
}

/// Whether what the chunks quote is nowhere, as far as they change anything.
fn are_gone(text: &str, chunks: &[Chunk], rules: &Rules<'_>) -> bool {
    let index = Index::new(text);
    let mut search = Search::new(text, &index, rules);
    let untouched = Splice::new(index.lines.len());
    let changes =
        |chunk: &&Chunk| chunk.lines.iter().any(|line| matches!(line.side, Side::Add | Side::Remove));
    chunks
        .iter()
        .filter(changes)
        .all(|chunk| matches!(search.place(chunk, &untouched), Err(Reason::NotFound { .. })))
}

/// The chunk that takes another one back. Its number would count the lines of another text.
fn reversed(chunk: &Chunk) -> Chunk {
    let turned = |line: &Line| {
        let side = match line.side {
            Side::Add => Side::Remove,
            Side::Remove => Side::Add,
            Side::Keep | Side::Bare => line.side,
        };
        Line { side, ..line.clone() }
    };
    Chunk { lines: chunk.lines.iter().map(turned).collect(), near: None, ..chunk.clone() }
}
