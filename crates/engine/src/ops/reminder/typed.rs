//! What editors do to a text that was read: somebody types on it, saves it or closes it without saving. The journal has
//! no change of a file for that, so it is held against the buffers themselves, where there are any.

use path::RelPath;

use super::{Seen, Session, Stale, shown};
use crate::{
    buffers::Buffer,
    engine::Answer,
    failure::Failure,
    limits,
    version::Version,
    workspace::{Want, Workspace},
};

impl Session {
    /// A session that wrote to unsaved text knows what it left there.
    pub(super) fn written(&mut self, answer: &Answer) {
        if let Some((path, seen)) = shown(answer).filter(|(_, seen)| seen.unsaved)
            && let Some(known) = self.read.get_mut(&path)
        {
            *known = seen;
        }
    }

    /// What is no longer as it was seen because of an editor. It is forgotten, so that it is told once.
    pub(super) fn typed(&mut self, workspace: &dyn Workspace) -> Result<Vec<Stale>, Failure> {
        if self.read.is_empty() {
            return Ok(Vec::new());
        }
        let buffers = workspace.buffers()?;
        let open =
            |path: &str| buffers.iter().find(|buffer| buffer.is_live() && buffer.path.to_string() == path);
        let concerned = |(path, seen): &(&String, &Seen)| seen.unsaved || open(path).is_some();
        let paths: Vec<String> = self.read.iter().filter(concerned).map(|(path, _)| path.clone()).collect();
        let mut stale = Vec::new();
        for path in paths {
            let buffer = open(&path);
            let Some(now) = current(workspace, &path, buffer) else { continue };
            let Some(seen) = self.read.get(&path).filter(|seen| seen.version != now.to_string()) else {
                continue;
            };
            if stale.len() >= limits::REMINDED_AT_ONCE_MAX {
                break;
            }
            let actor = buffer.map_or_else(|| "editor".to_owned(), |buffer| buffer.owner.clone());
            stale.push(Stale {
                path: path.clone(),
                from: seen.rev.clone(),
                to: now.short(),
                lines: None,
                actor,
            });
            self.read.remove(&path);
            self.order.retain(|known| *known != path);
        }
        Ok(stale)
    }
}

/// The version that a reader of the file would see.
fn current(workspace: &dyn Workspace, path: &str, buffer: Option<&Buffer>) -> Option<Version> {
    let place = RelPath::from_wire(path).ok()?;
    let saved = workspace.read(&place, Want::Nothing).ok()?.version;
    Some(buffer.filter(|buffer| buffer.is_unsaved(Some(saved))).map_or(saved, |buffer| buffer.version))
}
