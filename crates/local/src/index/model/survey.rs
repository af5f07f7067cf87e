//! Answering from the model: what a walk below a place would meet, and which files it would have to look into.

use engine::{
    index::{Need, Survey},
    limits,
};
use path::RelPath;

use super::{Counts, Halt, Model, NOBODY};
use crate::index::segment::Files;

/// Most files that are looked into one after the other; beyond it a walk on several threads is as good.
pub(in crate::index) const CANDIDATES_MAX: usize = 2_000;

impl Model {
    /// What a walk of plain names below a directory would meet now; nothing when it is not in the model, or when too
    /// much would have to be looked into. The model is fresh.
    pub(in crate::index) fn survey(&self, start: &RelPath, need: &Need) -> Result<Option<Survey>, Halt> {
        let is_open = |number: &u32| self.folder(*number).is_some_and(|folder| folder.counts.closed == 0);
        let Some(start) = self.find(start).filter(is_open) else { return Ok(None) };
        let mut survey = Survey::default();
        let mut met = vec![false; self.directories.len()];
        let mut total = Counts::default();
        let mut waiting = vec![start];
        while let Some(number) = waiting.pop() {
            let (Some(folder), Some(met)) = (self.folder(number), met.get_mut(number as usize)) else {
                continue;
            };
            *met = true;
            total.add(&folder.counts);
            waiting.extend(&folder.below);
            for (name, _) in &folder.others {
                survey.candidates.extend(folder.path.join(name).ok());
            }
            if survey.candidates.len() > CANDIDATES_MAX || total.entries >= limits::TREE_ENTRIES_MAX {
                return Ok(None);
            }
        }
        survey.texts = total.texts;
        survey.bytes = total.bytes;
        survey.binary = total.binary;
        survey.ignored = total.ignored;
        survey.closed = total.closed;
        let holding = self.snapshot.files_with(need)?;
        for ((segment, files), owners) in self.snapshot.segments.iter().zip(holding).zip(&self.owners) {
            let is_met = |owner: u32| owner != NOBODY && met.get(owner as usize).copied().unwrap_or(false);
            let stands_here = |file: &u32| owners.get(*file as usize).is_some_and(|owner| is_met(*owner));
            let Files::Only(mut files) = files else { return Ok(None) };
            files.retain(stands_here);
            if survey.candidates.len() + files.len() > CANDIDATES_MAX {
                return Ok(None);
            }
            for (path, size) in segment.paths(&files)? {
                // It is counted when it is looked into.
                survey.texts = survey.texts.saturating_sub(1);
                survey.bytes = survey.bytes.saturating_sub(size);
                survey.candidates.push(path);
            }
        }
        Ok(Some(survey))
    }

    /// The directory at a path.
    fn find(&self, path: &RelPath) -> Option<u32> {
        path.components().try_fold(0, |number, name| self.below(number, name))
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.texts += other.texts;
        self.bytes += other.bytes;
        self.binary += other.binary;
        self.ignored += other.ignored;
        self.closed += other.closed;
    }
}
