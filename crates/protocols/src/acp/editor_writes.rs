//! Writes of an agent that the editor applied, kept so that a person can review, keep or reject the writes. The journal
//! does not contain texts that the editor wrote, so the ACP session keeps them in memory. An ACP session at its memory
//! limit forgets the file that was written first, and its reviews report `truncated`.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use stead_engine::{AuthoredTextWithReviewBaseline, ops::SessionOrTurnStart};

use super::session::AcpResolvedPath;
use crate::limits::EDITOR_WRITES_BYTES_MAX;

#[derive(Debug)]
struct EditorWriteBeforeAfterTexts {
    turn: u64,
    before: Option<Arc<str>>,
    after: Arc<str>,
}

impl EditorWriteBeforeAfterTexts {
    fn byte_len(&self) -> usize {
        self.after.len() + self.before.as_ref().map_or(0, |text| text.len())
    }
}

#[derive(Debug, Default)]
struct AgentWriteHistoryOfOneFile {
    writes: Vec<EditorWriteBeforeAfterTexts>,
    /// The last text of the file that a person accepted.
    accepted_text: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct AgentAndPersonAuthorNames<'n> {
    pub(super) agent: &'n str,
    pub(super) person: &'n str,
}

#[derive(Debug, Default)]
pub(super) struct SessionEditorWriteHistory {
    turn: u64,
    files: HashMap<AcpResolvedPath, AgentWriteHistoryOfOneFile>,
    write_order: VecDeque<AcpResolvedPath>,
    bytes: usize,
    /// The write history of an ACP session is incomplete if the session forgot a file at its memory limit.
    pub(super) is_incomplete: bool,
}

pub(super) struct AttributedEditorFile {
    pub(super) attributed: AuthoredTextWithReviewBaseline,
    /// The original text is `None` if the agent's first write created the file.
    pub(super) original_text: Option<Arc<str>>,
}

impl SessionEditorWriteHistory {
    pub(super) fn begin_turn(&mut self) {
        self.turn += 1;
    }

    pub(super) fn record(&mut self, path: &AcpResolvedPath, before: Option<Arc<str>>, after: Arc<str>) {
        let write = EditorWriteBeforeAfterTexts { turn: self.turn, before, after };
        self.bytes += write.byte_len();
        if !self.files.contains_key(path) {
            self.write_order.push_back(path.clone());
        }
        self.files.entry(path.clone()).or_default().writes.push(write);
        while self.bytes > EDITOR_WRITES_BYTES_MAX {
            let Some(file) = self.write_order.pop_front().and_then(|oldest| self.files.remove(&oldest)) else {
                return;
            };
            self.bytes -= file.writes.iter().map(EditorWriteBeforeAfterTexts::byte_len).sum::<usize>();
            self.is_incomplete = true;
        }
    }

    pub(super) fn paths(&self) -> Vec<AcpResolvedPath> {
        self.write_order.iter().cloned().collect()
    }

    pub(super) fn contains(&self, path: &AcpResolvedPath) -> bool {
        self.files.contains_key(path)
    }

    pub(super) fn attribute_file(
        &self,
        path: &AcpResolvedPath,
        since: SessionOrTurnStart,
        current_text: &str,
        names: AgentAndPersonAuthorNames<'_>,
    ) -> Option<AttributedEditorFile> {
        let file = self.files.get(path)?;
        let in_range =
            |write: &&EditorWriteBeforeAfterTexts| since == SessionOrTurnStart::Session || write.turn == self.turn;
        let first = file.writes.iter().find(in_range)?;
        let mut attributed = AuthoredTextWithReviewBaseline::new(first.before.as_deref().unwrap_or_default());
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
        let accepted = file.accepted_text.as_ref().filter(|_| since == SessionOrTurnStart::Session);
        let original_text = accepted.cloned().or_else(|| first.before.clone());
        if let Some(accepted) = accepted {
            attributed = attributed.with_baseline(accepted);
        }
        Some(AttributedEditorFile { attributed, original_text })
    }

    pub(super) fn accept(&mut self, path: &AcpResolvedPath, text: &str) {
        if let Some(file) = self.files.get_mut(path) {
            file.accepted_text = Some(text.into());
        }
    }
}
