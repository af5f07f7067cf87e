//! Writes of an agent that the editor applied, kept so that a person can review, keep or reject the writes. The session
//! keeps the written texts in memory, because the journal does not contain them.
//!
//! The memory for written texts is limited. At the limit, the session forgets the file that was written first, and
//! later reviews report `truncated`.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use serde::Deserialize;
use stead_engine::TextWithLineAuthors;

use super::session::AcpResolvedPath;
use crate::limits::EDITOR_WRITES_BYTES_MAX;

/// The start of the period whose changes a review shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReviewStartPoint {
    /// The review shows the changes since the start of the session.
    #[default]
    Session,
    /// The review shows the changes since the last prompt.
    Turn,
}

impl ReviewStartPoint {
    /// The value of the `since` argument of the engine's review operations.
    pub(super) fn name(self) -> &'static str {
        match self {
            ReviewStartPoint::Session => "session",
            ReviewStartPoint::Turn => "turn",
        }
    }
}

/// One write that the editor applied, with the editor's text before and after the write.
#[derive(Debug)]
struct AppliedEditorWriteRecord {
    turn: u64,
    before: Option<Arc<str>>,
    after: Arc<str>,
}

impl AppliedEditorWriteRecord {
    fn byte_len(&self) -> usize {
        self.after.len() + self.before.as_ref().map_or(0, |text| text.len())
    }
}

#[derive(Debug, Default)]
struct AgentWriteHistoryOfOneFile {
    writes: Vec<AppliedEditorWriteRecord>,
    /// The last text of the file that a person accepted.
    accepted_text: Option<Arc<str>>,
}

/// The names of the two authors of a text: the agent and the person.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentAndPersonAuthorNames<'n> {
    pub(super) agent: &'n str,
    pub(super) person: &'n str,
}

/// The writes of one session that the editor applied.
#[derive(Debug, Default)]
pub(super) struct SessionEditorWriteHistory {
    /// The sequence number of the current turn.
    turn: u64,
    files: HashMap<AcpResolvedPath, AgentWriteHistoryOfOneFile>,
    /// The written files, in the order of their first write.
    write_order: VecDeque<AcpResolvedPath>,
    bytes: usize,
    /// Whether a file was dropped because of the memory limit.
    pub(super) is_incomplete: bool,
}

/// The text of a file in the editor, with the author of each part.
pub(super) struct AttributedEditorFile {
    pub(super) attributed: TextWithLineAuthors,
    /// The text before the first write; `None` if the file did not exist.
    pub(super) original_text: Option<Arc<str>>,
}

impl SessionEditorWriteHistory {
    pub(super) fn begin_turn(&mut self) {
        self.turn += 1;
    }

    /// Records a write that the editor applied.
    pub(super) fn record(&mut self, path: &AcpResolvedPath, before: Option<Arc<str>>, after: Arc<str>) {
        let write = AppliedEditorWriteRecord { turn: self.turn, before, after };
        self.bytes += write.byte_len();
        if !self.files.contains_key(path) {
            self.write_order.push_back(path.clone());
        }
        self.files.entry(path.clone()).or_default().writes.push(write);
        while self.bytes > EDITOR_WRITES_BYTES_MAX {
            let Some(file) = self.write_order.pop_front().and_then(|oldest| self.files.remove(&oldest)) else {
                return;
            };
            self.bytes -= file.writes.iter().map(AppliedEditorWriteRecord::byte_len).sum::<usize>();
            self.is_incomplete = true;
        }
    }

    /// The written files, in the order of their first write.
    pub(super) fn paths(&self) -> Vec<AcpResolvedPath> {
        self.write_order.iter().cloned().collect()
    }

    /// Whether the agent wrote this file through the editor.
    pub(super) fn contains(&self, path: &AcpResolvedPath) -> bool {
        self.files.contains_key(path)
    }

    /// Attributes each part of the editor's current text of a file to its author.
    pub(super) fn attribute_file(
        &self,
        path: &AcpResolvedPath,
        since: ReviewStartPoint,
        current_text: &str,
        names: AgentAndPersonAuthorNames<'_>,
    ) -> Option<AttributedEditorFile> {
        let file = self.files.get(path)?;
        let in_range =
            |write: &&AppliedEditorWriteRecord| since == ReviewStartPoint::Session || write.turn == self.turn;
        let first = file.writes.iter().find(in_range)?;
        let mut attributed = TextWithLineAuthors::new(first.before.as_deref().unwrap_or_default());
        for write in file.writes.iter().filter(in_range) {
            let previous = write.before.as_deref().unwrap_or_default();
            if previous != attributed.text() {
                attributed.apply_change(previous, names.person);
            }
            attributed.apply_change(&write.after, names.agent);
        }
        attributed.apply_change(current_text, names.person);
        // Only a review of the whole session starts from the accepted text. A review of a turn ignores it, because a
        // turn can be rejected as a whole.
        let accepted = file.accepted_text.as_ref().filter(|_| since == ReviewStartPoint::Session);
        let original_text = accepted.cloned().or_else(|| first.before.clone());
        if let Some(accepted) = accepted {
            attributed = attributed.with_baseline(accepted);
        }
        Some(AttributedEditorFile { attributed, original_text })
    }

    /// Records that a person accepted `text` as the content of the file.
    pub(super) fn accept(&mut self, path: &AcpResolvedPath, text: &str) {
        if let Some(file) = self.files.get_mut(path) {
            file.accepted_text = Some(text.into());
        }
    }
}
