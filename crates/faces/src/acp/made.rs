//! What an agent wrote through an editor that has the files itself. No journal has the texts, because the editor makes them
//! true or not, so they are remembered here as long as the session lasts, to be shown, kept and taken back.
//!
//! Within a bound: the file that was first written goes first, and it is told that something is missing.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use engine::Traced;
use serde::Deserialize;

use super::session::Spot;
use crate::limits::MADE_BYTES_MAX;

/// From where on a session's work is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Since {
    /// The start of the session.
    #[default]
    Session,
    /// Its last prompt.
    Turn,
}

impl Since {
    /// As operations spell it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Since::Session => "session",
            Since::Turn => "turn",
        }
    }
}

/// One write: the text that the editor held, and the one it was given.
#[derive(Debug)]
struct Step {
    turn: u64,
    before: Option<Arc<str>>,
    after: Arc<str>,
}

impl Step {
    fn bytes(&self) -> usize {
        self.after.len() + self.before.as_ref().map_or(0, |text| text.len())
    }
}

#[derive(Debug, Default)]
struct File {
    steps: Vec<Step>,
    /// What a person said stands.
    kept: Option<Arc<str>>,
}

/// Who is named for what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'n> {
    pub(super) agent: &'n str,
    pub(super) person: &'n str,
}

/// The writes of one session.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// The number of the last prompt.
    turn: u64,
    files: HashMap<Spot, File>,
    /// As they were first written.
    order: VecDeque<Spot>,
    bytes: usize,
    /// Whether something was forgotten.
    pub(super) is_incomplete: bool,
}

/// What became of a file that an editor holds.
pub(super) struct Found {
    pub(super) traced: Traced,
    /// The text at first; nothing where there was no file.
    pub(super) before: Option<Arc<str>>,
}

impl Made {
    /// A prompt begins a turn.
    pub(super) fn turn(&mut self) {
        self.turn += 1;
    }

    /// The editor has written.
    pub(super) fn record(&mut self, spot: &Spot, before: Option<Arc<str>>, after: Arc<str>) {
        let step = Step { turn: self.turn, before, after };
        self.bytes += step.bytes();
        if !self.files.contains_key(spot) {
            self.order.push_back(spot.clone());
        }
        self.files.entry(spot.clone()).or_default().steps.push(step);
        while self.bytes > MADE_BYTES_MAX {
            let Some(file) = self.order.pop_front().and_then(|oldest| self.files.remove(&oldest)) else {
                return;
            };
            self.bytes -= file.steps.iter().map(Step::bytes).sum::<usize>();
            self.is_incomplete = true;
        }
    }

    /// The files, as they were first written.
    pub(super) fn spots(&self) -> Vec<Spot> {
        self.order.iter().cloned().collect()
    }

    /// Whether the editor was given this file.
    pub(super) fn has(&self, spot: &Spot) -> bool {
        self.files.contains_key(spot)
    }

    /// A file with who wrote what of the text that the editor holds now.
    pub(super) fn found(&self, spot: &Spot, since: Since, now: &str, names: Names<'_>) -> Option<Found> {
        let file = self.files.get(spot)?;
        let counts = |step: &&Step| since == Since::Session || step.turn == self.turn;
        let first = file.steps.iter().find(counts)?;
        let mut traced = Traced::new(first.before.as_deref().unwrap_or_default());
        for step in file.steps.iter().filter(counts) {
            let held = step.before.as_deref().unwrap_or_default();
            if held != traced.text() {
                traced.becomes(held, names.person);
            }
            traced.becomes(&step.after, names.agent);
        }
        traced.becomes(now, names.person);
        // A turn is taken back whatever was kept of it.
        let kept = file.kept.as_ref().filter(|_| since == Since::Session);
        let before = kept.cloned().or_else(|| first.before.clone());
        if let Some(kept) = kept {
            traced = traced.since(kept);
        }
        Some(Found { traced, before })
    }

    /// A person says that this stands.
    pub(super) fn keep(&mut self, spot: &Spot, text: &str) {
        if let Some(file) = self.files.get_mut(spot) {
            file.kept = Some(text.into());
        }
    }
}
