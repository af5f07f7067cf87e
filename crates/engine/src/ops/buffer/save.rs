//! `buffer.save`: the text of a buffer goes to disk, for an editor that leaves writing files to this server. What others
//! wrote since the text was loaded is merged with it; where the two meet, nothing is written.

use serde::Deserialize;
use text::merge::{Merged, merge};

use super::{form, on_disk, own_text, refuse_others, shown};
use crate::{
    buffers::{Becomes, Buffer, BufferStep},
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    ops::{encode_like, parents, text_of},
    plan::{Change, Content, Expect, Plan, Seen},
    version::Version,
    view::View,
    workspace::FileBytes,
};

/// The arguments of `buffer.save`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Save {
    path: String,
}

impl Operation for Save {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        refuse_others(view)?;
        Ok(vec![Ask::write(&self.path)])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let (buffer, texts) = own_text(view, &target.path)?;
        let file = on_disk(view, target)?;
        let saved = file.as_ref().map(|file| file.version);
        if Some(buffer.version) == saved {
            let line = format!("{} is saved already", buffer.path);
            let answer = shown(&buffer, saved).with("merged", false).line(line);
            return Ok(Planned::Read { answer, bytes: 0 });
        }
        let bytes = written(view, &buffer, &texts.text, file.as_ref())?;
        let version = Version::of(&bytes);
        let merged = version != buffer.version;
        let text = merged.then(|| form::text(&bytes, buffer.endings)).transpose()?;
        let becomes = match merged {
            true => Becomes::Text { text: bytes.clone(), base: version },
            false => Becomes::Saved { base: version },
        };
        let step = BufferStep { id: buffer.id.clone(), revision: buffer.revision, becomes };
        let mut changes = parents::missing(view, &target.path)?;
        let size = bytes.len() as u64;
        changes.push(Change::Put {
            path: target.path.clone(),
            expect: file.map_or(Expect::Absent, |file| {
                Expect::File(Seen { version: file.version, stamp: file.node.stamp })
            }),
            content: Content::Bytes(bytes),
            version,
            size,
            mode: view.terms.privacy.mode(),
        });
        let revision = buffer.revision + u64::from(merged);
        let now = Buffer { revision, version, size, base: Some(version), ..buffer };
        let plan = Plan { buffers: vec![step], ..Plan::of(changes) };
        let finish = move |committed: &crate::workspace::Committed| {
            let line = format!("saved {} (r{}, {size} bytes)", now.path, committed.number);
            shown(&now, Some(version))
                .with("rev", format!("r{}", committed.number))
                .with("merged", merged)
                .maybe("text", text)
                .committed(committed)
                .line(line)
        };
        Ok(Planned::Change { plan, finish: Box::new(finish) })
    }
}

/// What goes to disk: the text, or what comes of it and of what others wrote since it was loaded.
fn written(
    view: &View<'_>,
    buffer: &Buffer,
    text: &[u8],
    file: Option<&FileBytes>,
) -> Result<Vec<u8>, Failure> {
    let Some(file) = file.filter(|file| Some(file.version) != buffer.base) else {
        return Ok(text.to_vec());
    };
    let path = &buffer.path;
    let refused = |detail: String| {
        Failure::new(Kind::Conflict, detail)
            .hint(format!("look at {path} on disk; then change the buffer, or close it"))
            .fact("path", path.to_string())
            .fact("saved", file.version.to_string())
    };
    let base = match buffer.base {
        Some(base) => view.workspace().kept(&base)?,
        None => Some(Vec::new()),
    };
    let base = base.ok_or_else(|| {
        refused(format!("{path} was changed on disk since it was loaded; nothing was written"))
    })?;
    let (Some(base), Some(ours), Some(theirs)) = (text_of(&base), text_of(text), text_of(&file.bytes)) else {
        return Err(refused(format!("{path} is no longer text on disk; nothing was written")));
    };
    match merge(&base, &ours, &theirs) {
        Merged::Clean(merged) => encode_like(&merged, &file.bytes),
        Merged::Conflict(ranges) => {
            let lines: Vec<Vec<usize>> = ranges
                .iter()
                .take(limits::FAILURE_PLACES_MAX)
                .map(|range| vec![range.ours.start + 1, range.ours.end.max(range.ours.start + 1)])
                .collect();
            Err(refused(format!("{path} was changed on disk in the same lines; nothing was written"))
                .fact("lines", lines))
        }
    }
}
