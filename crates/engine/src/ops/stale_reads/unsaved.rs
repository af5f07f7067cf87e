//! Changes by editors to a file that was read: typing, saving, closing without saving. The journal has no file change
//! for these, so the buffers are compared, if there are any.

use stead_path::RelPath;

use super::{ReadVersion, SessionReads, StaleRead, read_file_of_outcome};
use crate::{
    buffers::Buffer,
    engine::CallOutcome,
    errors::Error,
    limits,
    version::Version,
    workspace::{BytesToRead, Workspace},
};

impl SessionReads {
    /// A session that wrote to unsaved text knows the resulting version.
    pub(super) fn remember_written(&mut self, outcome: &CallOutcome) {
        if let Some((path, seen)) = read_file_of_outcome(outcome).filter(|(_, seen)| seen.unsaved)
            && let Some(known) = self.reads.get_mut(&path)
        {
            *known = seen;
        }
    }

    /// Files whose unsaved text changed since they were read. Each is reported once and then dropped.
    pub(super) fn collect_unsaved_changes(&mut self, workspace: &dyn Workspace) -> Result<Vec<StaleRead>, Error> {
        if self.reads.is_empty() {
            return Ok(Vec::new());
        }
        let buffers = workspace.buffers()?;
        let open = |path: &str| buffers.iter().find(|buffer| buffer.is_open() && buffer.path.to_string() == path);
        let concerned = |(path, seen): &(&String, &ReadVersion)| seen.unsaved || open(path).is_some();
        let paths: Vec<String> = self.reads.iter().filter(concerned).map(|(path, _)| path.clone()).collect();
        let mut stale = Vec::new();
        for path in paths {
            let buffer = open(&path);
            let Some(now) = current_version(workspace, &path, buffer) else { continue };
            let Some(seen) = self.reads.get(&path).filter(|seen| seen.version != now.to_string()) else {
                continue;
            };
            if stale.len() >= limits::STALE_NOTICES_MAX {
                break;
            }
            let actor = buffer.map_or_else(|| "editor".to_owned(), |buffer| buffer.owner.clone());
            stale.push(StaleRead {
                path: path.clone(),
                from: seen.rev.clone(),
                to: now.short_form(),
                lines: None,
                actor,
            });
            self.reads.remove(&path);
            self.read_order.retain(|known| *known != path);
        }
        Ok(stale)
    }
}

/// The version that a reader of the file would get.
fn current_version(workspace: &dyn Workspace, path: &str, buffer: Option<&Buffer>) -> Option<Version> {
    let rel_path = RelPath::from_wire(path).ok()?;
    let saved = workspace.read(&rel_path, BytesToRead::VersionOnly).ok()?.version;
    Some(buffer.filter(|buffer| buffer.is_unsaved(Some(saved))).map_or(saved, |buffer| buffer.version))
}
