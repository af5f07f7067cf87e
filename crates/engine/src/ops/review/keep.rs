//! `keep`: a person says that something stands. It leaves the list of what is to be reviewed; no file changes.

use path::RelPath;
use serde::Deserialize;

use super::{
    Since, Whose, hunk, refuse_agents,
    tracks::{self, Tracked},
    whose,
};
use crate::{
    desk::{DeskAsk, Desked, Reviewed},
    failure::{Failure, Kind},
    operation::{Ask, Operation, Planned, Target},
    ops::{answer::Facts, encode_like},
    view::View,
    workspace::Committed,
};

/// The arguments of `keep`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keep {
    path: Option<String>,
    hunk: Option<String>,
    session: Option<String>,
    author: Option<String>,
}

impl Operation for Keep {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        refuse_agents(view)?;
        if self.hunk.is_some() && self.path.is_none() {
            return Err(Failure::new(Kind::BadRequest, "a hunk is one of a file").hint("name its path"));
        }
        Ok(self.path.iter().map(|path| Ask::read(path)).collect())
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let whose = whose(view, self.author.as_deref(), self.session.as_deref())?;
        let only: Option<&RelPath> = targets.first().map(|target| &target.path);
        let work = tracks::find(view, &whose, Since::Session, only)?;
        if work.files.is_empty() {
            return Err(nothing(&whose, Since::Session));
        }
        let mut kept = Vec::new();
        for file in &work.files {
            kept.push(Reviewed { path: file.path.clone(), text: self.stands(file)? });
        }
        let paths: Vec<String> = kept.iter().map(|kept| kept.path.to_string()).collect();
        let Whose { principal, session } = whose;
        let ask = DeskAsk::Reviewed { principal: principal.clone(), session: session.clone(), kept };
        let finish = move |_: &Desked, committed: &Committed| {
            let text = format!("kept {}", paths.join(", "));
            Facts::new()
                .with("author", principal)
                .with("session", session)
                .with("kept", paths)
                .committed(committed)
                .answer(text)
        };
        Ok(Planned::Keep { ask, finish: Box::new(finish) })
    }
}

impl Keep {
    /// What the next review of a file begins with.
    fn stands(&self, file: &Tracked) -> Result<Option<Vec<u8>>, Failure> {
        let Some(name) = &self.hunk else { return Ok(file.now.as_ref().map(|now| now.bytes.clone())) };
        let (blame, hunks) = file.text.as_ref().ok_or_else(|| unknown(name))?;
        let found = hunks.iter().find(|hunk| hunk.name == *name).ok_or_else(|| unknown(name))?;
        let before = file.before.as_deref().unwrap_or_default();
        let text = hunk::applied(before, blame.text(), &[found]);
        let model = file.now.as_ref().map_or(before.as_bytes(), |now| now.bytes.as_slice());
        encode_like(&text, model).map(Some)
    }
}

pub(super) fn unknown(name: &str) -> Failure {
    Failure::new(Kind::NotFound, format!("there is no hunk {} any more", crate::ops::answer::excerpt(name)))
        .hint("call review again: a hunk that was changed has another name")
}

pub(super) fn nothing(whose: &Whose, since: Since) -> Failure {
    let Whose { principal, session } = whose;
    match since {
        Since::Session => Failure::new(
            Kind::NothingToDo,
            format!("{principal} has changed nothing in session {session} that is to be reviewed"),
        )
        .hint("call review to see what is there"),
        Since::Turn => Failure::new(
            Kind::NothingToDo,
            format!("{principal} has changed nothing in the last turn of session {session}"),
        )
        .hint("call review to see what the turns before it changed"),
    }
}
