//! `reject`: a person says that something shall not stand. An ordinary change, all files of a call together: what the
//! session put into a file goes, what it took comes back, and what others wrote stays.

use path::RelPath;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Since, Whose, hunk,
    keep::{nothing, unknown},
    refuse_agents,
    tracks::{self, Tracked},
    whose,
};
use crate::{
    failure::{Failure, Kind},
    operation::{Ask, Need, Operation, Planned, Target},
    ops::{answer::Facts, encode_like, parents},
    plan::{Change, Content, Expect, Mode, Plan, Top, Tree},
    version::Version,
    view::View,
};

/// The arguments of `reject`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reject {
    path: Option<String>,
    hunk: Option<String>,
    session: Option<String>,
    author: Option<String>,
    #[serde(default)]
    since: Since,
    #[serde(default)]
    dry_run: bool,
}

/// What becomes of one file.
enum Back {
    /// These changes take it back.
    Changes(Vec<Change>),
    /// It stays as it is, because of this.
    Left(&'static str),
}

impl Operation for Reject {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        refuse_agents(view)?;
        if self.hunk.is_some() && self.path.is_none() {
            return Err(Failure::new(Kind::BadRequest, "a hunk is one of a file").hint("name its path"));
        }
        if let Some(path) = &self.path {
            return Ok(vec![Ask::write(path)]);
        }
        let whose = whose(view, self.author.as_deref(), self.session.as_deref())?;
        let files = tracks::find(view, &whose, self.since, None)?.files;
        if files.is_empty() {
            return Err(nothing(&whose, self.since));
        }
        let places = files.into_iter().flat_map(|file| [Some(file.path), file.moved_from]).flatten();
        Ok(places.map(|place| Ask::known(place, Need::Write)).collect())
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let whose = whose(view, self.author.as_deref(), self.session.as_deref())?;
        let only: Option<&RelPath> =
            targets.first().map(|target| &target.path).filter(|_| self.path.is_some());
        let work = tracks::find(view, &whose, self.since, only)?;
        let (mut changes, mut done, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for file in &work.files {
            // One that was changed for the first time since the places were locked waits for the next call.
            if !targets.iter().any(|target| target.path == file.path) {
                continue;
            }
            match self.back(view, file, &whose)? {
                Back::Changes(more) => {
                    changes.extend(more);
                    done.push(file.path.to_string());
                }
                Back::Left(reason) => left.push(json!({ "path": file.path.to_string(), "reason": reason })),
            }
        }
        if changes.is_empty() {
            return Err(nothing(&whose, self.since).fact("left", left));
        }
        let plan = Plan::of(changes);
        if self.dry_run {
            crate::authorise::judge_plan(view, &plan)?;
            return Ok(Planned::Preview(
                told(&whose, &done, &left).answer(format!("would reject {}", done.join(", "))),
            ));
        }
        let finish = move |committed: &crate::workspace::Committed| {
            let mut text = format!("rejected {} (r{})", done.join(", "), committed.number);
            for left in &left {
                text.push_str(&format!("\nleft {}: {}", word(left, "path"), word(left, "reason")));
            }
            told(&whose, &done, &left).committed(committed).answer(text)
        };
        Ok(Planned::Change { plan, finish: Box::new(finish) })
    }
}

fn word<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn told(whose: &Whose, done: &[String], left: &[Value]) -> Facts {
    Facts::new()
        .with("author", whose.principal.clone())
        .with("session", whose.session.clone())
        .with("rejected", done.to_vec())
        .maybe("left", (!left.is_empty()).then(|| left.to_vec()))
}

impl Reject {
    /// What takes back the session's part of a file.
    fn back(&self, view: &View<'_>, file: &Tracked, whose: &Whose) -> Result<Back, Failure> {
        let Some((blame, hunks)) = &file.text else { return from_trash(view, file) };
        let chosen: Vec<&hunk::Hunk> = match &self.hunk {
            None => hunks.iter().filter(|hunk| hunk.by.contains(&whose.principal)).collect(),
            Some(name) => {
                let found = hunks.iter().find(|hunk| hunk.name == *name).ok_or_else(|| unknown(name))?;
                if !found.by.contains(&whose.principal) {
                    return Err(Failure::new(
                        Kind::Conflict,
                        format!("hunk {name} is not by {}", whose.principal),
                    )
                    .hint("edit the file to change what others wrote")
                    .fact("by", found.by.iter().cloned().collect::<Vec<_>>()));
                }
                vec![found]
            }
        };
        if chosen.is_empty() {
            return self.moved_back(view, file);
        }
        let before = file.before.as_deref().unwrap_or_default();
        let text = hunk::taken_back(before, blame, &chosen, &whose.principal);
        let Some(now) = &file.now else { return restored(view, file, &text) };
        if file.before.is_none() && text.is_empty() {
            return Ok(Back::Changes(vec![removed(view, file, now)]));
        }
        let bytes = encode_like(&text, &now.bytes)?;
        let version = Version::of(&bytes);
        if version == now.seen.version {
            return Ok(Back::Left("it is already as it would be"));
        }
        Ok(Back::Changes(vec![Change::Put {
            path: file.path.clone(),
            expect: Expect::File(now.seen),
            size: bytes.len() as u64,
            content: Content::Bytes(bytes),
            version,
            mode: Mode::Keep,
        }]))
    }

    /// A file that was only moved goes back to where it was.
    fn moved_back(&self, view: &View<'_>, file: &Tracked) -> Result<Back, Failure> {
        let (Some(origin), Some(now)) = (&file.moved_from, &file.now) else {
            return Ok(Back::Left("others changed it, not the session"));
        };
        if view.workspace().stat(origin)?.is_some() {
            return Ok(Back::Left("something else is at its old place"));
        }
        let mut changes = parents::missing(view, origin)?;
        changes.push(Change::Move {
            from: file.path.clone(),
            to: origin.clone(),
            expect: Expect::File(now.seen),
            over: Expect::Absent,
            tree: Tree { top: Top::File, files: 1, directories: 0, bytes: now.bytes.len() as u64 },
        });
        Ok(Back::Changes(changes))
    }
}

/// A file that the session removed comes back from the trash, where its bytes are kept nowhere else.
fn from_trash(view: &View<'_>, file: &Tracked) -> Result<Back, Failure> {
    let item = match &file.trash {
        Some(id) => view.workspace().trashed(id)?,
        None => return Ok(Back::Left("it is not text, or no longer kept")),
    };
    let Some(item) = item else { return Ok(Back::Left("it is no longer in the trash")) };
    if view.workspace().stat(&file.path)?.is_some() {
        return Ok(Back::Left("something else is in its place"));
    }
    let mut changes = parents::missing(view, &file.path)?;
    changes.push(Change::Restore { trash: item.id, path: file.path.clone(), tree: item.tree });
    Ok(Back::Changes(changes))
}

/// A file that the session removed comes back.
fn restored(view: &View<'_>, file: &Tracked, text: &str) -> Result<Back, Failure> {
    if view.workspace().stat(&file.path)?.is_some() {
        return Ok(Back::Left("something else is in its place"));
    }
    let bytes = text.as_bytes().to_vec();
    let mut changes = parents::missing(view, &file.path)?;
    changes.push(Change::Put {
        path: file.path.clone(),
        expect: Expect::Absent,
        size: bytes.len() as u64,
        version: Version::of(&bytes),
        content: Content::Bytes(bytes),
        mode: Mode::Keep,
    });
    Ok(Back::Changes(changes))
}

/// A file that the session made, and in which nobody else wrote, goes to the trash.
fn removed(view: &View<'_>, file: &Tracked, now: &tracks::Now) -> Change {
    let kept_ms = view.in_force.policy.trash_ms(&view.caller.principal);
    Change::Remove {
        path: file.path.clone(),
        expect: Expect::File(now.seen),
        keep_until_ms: view.workspace().now_ms().saturating_add(kept_ms),
        tree: Tree { top: Top::File, files: 1, directories: 0, bytes: now.bytes.len() as u64 },
    }
}
