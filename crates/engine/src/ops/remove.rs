//! `remove`: a file, link or tree goes to the trash of whoever removes it, from where it comes back until its time is
//! over. Nothing is ever taken away at once.

use serde::Deserialize;

use super::{answer::Facts, answer::iso_utc, standing};
use crate::{
    engine::Held,
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Need, Operation, Planned, Target},
    plan::{Change, Plan, Top},
    terms::{Evidence, Removable, Retention},
    view::View,
    workspace::{Last, Node, Want},
};

/// The arguments of `remove`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remove {
    path: String,
    base: Option<String>,
    #[serde(default)]
    recursive: bool,
}

impl Operation for Remove {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        let ask = Ask::spelled(&self.path, Need::Remove, Last::Keep).tree();
        Ok(vec![ask.with_base(self.base.as_deref())?])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let node = standing::present(target)?;
        let path = target.path.clone();
        if node.top == Top::Directory && view.terms.removable == Removable::NoDirectories {
            return Err(Failure::new(Kind::IsDirectory, format!("{path} is a directory"))
                .hint("only files can be removed here"));
        }
        if node.top == Top::Directory && !self.recursive && !view.workspace().list(&path)?.is_empty() {
            return Err(Failure::new(Kind::NotEmpty, format!("{path} is a directory that holds something"))
                .hint("pass recursive: true when everything in it shall go"));
        }
        let expect = standing::expected(view, &path, node, target.seen)?;
        let tree = standing::counted(view, &path, node)?;
        let kept_ms = match view.terms.retention {
            Retention::OfPrincipal => view.in_force.policy.trash_ms(&view.caller.principal),
            Retention::None => 0,
        };
        let keep_until_ms = view.workspace().now_ms().saturating_add(kept_ms);
        let evidence = held(view, target, node)?;
        let shown = path.to_string();
        let plan = Plan::of(vec![Change::Remove { path, expect, keep_until_ms, tree }]);
        Ok(Planned::Change {
            plan,
            finish: Box::new(move |committed| {
                let trash = committed.trash.first().cloned();
                let until = iso_utc(keep_until_ms);
                let id = trash.as_deref().unwrap_or("unknown");
                let text = format!(
                    "removed {shown} ({}, r{}); restore with trash {id} until {until}",
                    standing::amount(&tree),
                    committed.number
                );
                Facts::new()
                    .with("path", shown)
                    .maybe("trash", trash)
                    .with("recoverable_until", until)
                    .with("files", tree.files)
                    .with("bytes", tree.bytes)
                    .committed(committed)
                    .line(text)
                    .with_evidence(evidence)
            }),
        })
    }
}

/// The bytes that go, if the terms ask for them and they are not too many to show.
fn held(view: &View<'_>, target: &Target, node: Node) -> Result<Option<Held>, Failure> {
    if view.terms.evidence == Evidence::None || node.top != Top::File || node.size > limits::DIFF_BYTES_MAX {
        return Ok(None);
    }
    let file = view.read(&target.path, Want::Whole { limit_bytes: limits::DIFF_BYTES_MAX })?;
    Ok(view.evidence(&target.path, Some(&file.bytes), None))
}
