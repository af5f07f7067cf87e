//! `append`: text goes to the end of a file, in the file's own encoding; a file that is missing is made. The file is
//! replaced whole like any other, so a reader never sees half of it and a hard-linked twin stays as it was.

use serde::Deserialize;

use super::{answer::Facts, encoded, parents, standing::too_large_to_change, write};
use crate::{
    failure::Failure,
    limits,
    operation::{Ask, Operation, Planned, Target},
    plan::{Change, Content, Expect, Plan, Seen},
    version::Version,
    view::View,
    workspace::Want,
};

/// The arguments of `append`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Append {
    path: String,
    content: String,
    base: Option<String>,
}

impl Operation for Append {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(vec![Ask::write(&self.path).with_base(self.base.as_deref())?])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let (mut bytes, expect) = match target.node {
            None => (Vec::new(), Expect::Absent),
            Some(node) => {
                write::regular(target, node)?;
                // Whoever may add to a file need not be allowed to read it: nothing of it is answered.
                let want = Want::Whole { limit_bytes: limits::WRITE_BYTES_MAX };
                let file = view
                    .read_for_change(&target.path, want)
                    .map_err(|failure| too_large_to_change(&target.path, failure))?;
                let seen = target.seen.unwrap_or(Seen { version: file.version, stamp: file.node.stamp });
                (file.bytes, Expect::File(seen))
            }
        };
        let added = encoded::tail(&self.content, &bytes)?;
        let created = expect == Expect::Absent;
        if added.bytes.is_empty() && !created {
            return Ok(unchanged(view, target, &bytes));
        }
        let added_bytes = added.bytes.len();
        bytes.extend_from_slice(&added.bytes);
        let version = Version::of(&bytes);
        let size = bytes.len() as u64;
        let mut changes = parents::missing(view, &target.path)?;
        let path = target.path.clone();
        changes.push(Change::Put {
            path,
            expect,
            content: Content::Bytes(bytes),
            version,
            size,
            mode: view.terms.privacy.mode(),
        });
        let path = target.path.to_string();
        Ok(Planned::Change {
            plan: Plan::of(changes),
            finish: Box::new(move |committed| {
                let rev = format!("r{}", committed.number);
                let text = format!("appended {added_bytes} bytes to {path} ({rev}, {size} bytes)");
                Facts::new()
                    .with("path", path)
                    .file(&version, rev)
                    .with("size", size)
                    .with("created", created)
                    .with("changed", true)
                    .maybe("encoding", added.unusual)
                    .committed(committed)
                    .line(text)
            }),
        })
    }
}

fn unchanged(view: &View<'_>, target: &Target, bytes: &[u8]) -> Planned {
    let version = Version::of(bytes);
    let path = target.path.to_string();
    let rev = view.rev(&target.path, &version);
    let answer = Facts::new()
        .with("path", path.clone())
        .file(&version, rev)
        .with("size", bytes.len())
        .with("created", false)
        .with("changed", false)
        .line(format!("nothing to append to {path}; nothing was changed"));
    Planned::Read { answer, bytes: 0 }
}
