//! The file methods, served by the engine. A read tells what is there; a write replaces what this session has seen, and
//! where others changed it meanwhile, both changes are merged or the write is refused.
//!
//! Promises: nothing that somebody else wrote since this session read it is lost; an answer is given to every call.

use std::sync::Arc;

use engine::{Answer, Base, Failure, Kind, Version};
use serde_json::{Value, json};
use text::{
    endings,
    merge::{ConflictRange, Merged, merge},
};
use tokio::sync::watch;

use super::{
    Endings, Proxy,
    router::{FileCall, Method},
    session::{Root, Seen, Session, Spot, Standing},
    setup::{Offer, not_absolute},
    slice::slice,
    sorry::Sorry,
};
use crate::{
    dialect::{
        Request,
        acp::{self, ReadParams, WriteParams},
    },
    limits::MERGES_MAX,
    run::{Asked, Company},
};

/// Most places of a conflict that an error names.
const CONFLICTS_SHOWN: usize = 5;

/// One file method on its way.
pub(super) struct Errand<'p> {
    pub(super) proxy: &'p Proxy,
    pub(super) session: Arc<Session>,
    pub(super) spot: Spot,
    /// The path as it was given.
    pub(super) path: String,
    pub(super) stopped: watch::Receiver<bool>,
}

/// A file as it is now.
pub(super) struct Current {
    pub(super) text: String,
    pub(super) version: Version,
}

/// Does what one call says.
pub(super) async fn serve(
    proxy: &Proxy,
    call: &FileCall,
    stopped: watch::Receiver<bool>,
) -> Result<Value, Sorry> {
    let misfit = |error: serde_json::Error| Sorry::params(error.to_string());
    match call.method {
        Method::Read => {
            let params: ReadParams = serde_json::from_slice(&call.params).map_err(misfit)?;
            let errand = Errand::begin(proxy, &params.session_id, params.path, stopped)?;
            let text = match proxy.router.editor().reads {
                Offer::Yes => errand.read_of_editor().await?,
                Offer::No => errand.read().await?,
            };
            Ok(json!({ "content": slice(&text, params.line, params.limit)? }))
        }
        Method::Write => {
            let params: WriteParams = serde_json::from_slice(&call.params).map_err(misfit)?;
            let errand = Errand::begin(proxy, &params.session_id, params.path, stopped)?;
            match proxy.router.editor().writes {
                Offer::Yes => errand.write_by_editor(params.content).await?,
                Offer::No => errand.write(params.content).await?,
            }
            Ok(json!({}))
        }
    }
}

impl<'p> Errand<'p> {
    fn begin(
        proxy: &'p Proxy,
        session: &str,
        path: String,
        stopped: watch::Receiver<bool>,
    ) -> Result<Self, Sorry> {
        let session = proxy.router.session(session).ok_or_else(|| Sorry::no_session(session))?;
        if !path.starts_with('/') {
            return Err(not_absolute(&path));
        }
        let spot = session.spot(&path).ok_or_else(|| Sorry::no_file(&path))?;
        Ok(Self { proxy, session, spot, path, stopped })
    }

    /// The whole text, remembered as what the agent knows.
    async fn read(&self) -> Result<String, Sorry> {
        let began = self.session.mark(&self.spot);
        let current = match self.call(acp::read(&self.spot.wire)).await? {
            Ok(answer) => current(answer)?,
            Err(failure) => {
                if failure.kind == Kind::NotFound {
                    self.session.remember_read(&self.spot, began, Seen::Absent);
                }
                return Err(acp::unread(&failure, &self.path));
            }
        };
        let text = current.text.as_str().into();
        let seen = Seen::Text { text, left: current.version, standing: Standing::Same };
        self.session.remember_read(&self.spot, began, seen);
        Ok(current.text)
    }

    async fn write(&self, content: String) -> Result<(), Sorry> {
        let _turn = self.session.turn(&self.spot).await;
        let seen = self.session.seen(&self.spot);
        let ours = self.formed(content, seen.as_ref());
        let mut attempt = match &seen {
            None => Attempt { content: ours.clone(), base: None },
            Some(Seen::Absent) => Attempt { content: ours.clone(), base: Some(String::new()) },
            Some(Seen::Text { left, standing: Standing::Same, .. }) => {
                Attempt { content: ours.clone(), base: Some(left.to_string()) }
            }
            Some(Seen::Text { text, standing: Standing::Merged, .. }) => self.merged(text, &ours).await?,
        };
        for _ in 0..MERGES_MAX {
            let failure = match self.put(&attempt).await? {
                Ok(version) => {
                    let standing = if attempt.content == ours { Standing::Same } else { Standing::Merged };
                    self.know(&ours, version, standing);
                    return Ok(());
                }
                Err(failure) => failure,
            };
            let known = match (&seen, failure.kind) {
                (Some(Seen::Text { text, .. }), Kind::Stale) => text.as_ref(),
                (Some(Seen::Absent), Kind::Exists) => "",
                (_, _) => return Err(Sorry::of(&failure, &self.path)),
            };
            attempt = self.merged(known, &ours).await?;
        }
        Err(Sorry::failed(
            "busy: the file keeps changing while it is written; nothing was changed; write again",
        ))
    }

    /// What is to be written over what is there now, so that nothing of it is lost.
    async fn merged(&self, known: &str, ours: &str) -> Result<Attempt, Sorry> {
        let now = match self.call(acp::read(&self.spot.wire)).await? {
            Ok(answer) => current(answer)?,
            // Whoever took it away cannot be merged with; the agent wants it there.
            Err(failure) if failure.kind == Kind::NotFound => {
                return Ok(Attempt { content: ours.to_owned(), base: Some(String::new()) });
            }
            Err(failure) => return Err(acp::unread(&failure, &self.path)),
        };
        match merge(known, ours, &now.text) {
            Merged::Clean(content) => Ok(Attempt { content, base: Some(now.version.to_string()) }),
            Merged::Conflict(places) => Err(conflict(&self.path, &places)),
        }
    }

    /// Writes, and asks a person where one must be asked.
    async fn put(&self, attempt: &Attempt) -> Result<Result<Version, Failure>, Sorry> {
        let request = || {
            let endings = self.proxy.options.endings;
            acp::write(&self.spot.wire, attempt.content.clone(), attempt.base.clone(), endings)
        };
        let outcome = self.call(request()).await?;
        let outcome = match outcome {
            Err(failure) if matches!(failure.kind, Kind::ApprovalPending | Kind::ApprovalStale) => {
                let old = match self.call(acp::read(&self.spot.wire)).await? {
                    Ok(answer) => acp::text(answer).ok(),
                    Err(_) => None,
                };
                self.ask(&failure, old.as_deref(), &attempt.content).await?;
                self.call(request()).await?
            }
            other => other,
        };
        Ok(outcome.map(|answer| version(&answer)))
    }

    /// A content with the line endings of what the session has seen, where they are kept.
    pub(super) fn formed(&self, content: String, seen: Option<&Seen>) -> String {
        match (seen, self.proxy.options.endings) {
            (Some(Seen::Text { text, .. }), Endings::Kept) => endings::alike(&content, text).into_owned(),
            (Some(Seen::Text { .. } | Seen::Absent) | None, _) => content,
        }
    }

    /// Runs one call in the root of this errand.
    pub(super) async fn call(&self, request: Request) -> Result<Result<Answer, Failure>, Sorry> {
        let root = self.root()?;
        let asked = Asked {
            caller: root.caller.clone(),
            operation: request.operation,
            arguments: request.arguments,
            terms: request.terms,
            key: None,
            hold_ms: 0,
        };
        let pace = root.runner.pace(&asked);
        // Messages that go by must not wait for a disk, so nothing but the shortest calls runs in their thread.
        let outcome = root.runner.run(asked, pace, Company::Others, None, self.unwanted()).await;
        outcome.map_err(|broken| Sorry::failed(format!("io_error: {broken}")))
    }

    pub(super) fn root(&self) -> Result<&Root, Sorry> {
        self.session.root(&self.spot).ok_or_else(|| Sorry::no_file(&self.path))
    }

    /// Resolves once the agent, or whoever ends everything, does not want it any more.
    pub(super) async fn unwanted(&self) {
        let mut stopped = self.stopped.clone();
        if stopped.wait_for(|stopped| *stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn know(&self, text: &str, left: Version, standing: Standing) {
        self.session.remember(&self.spot, Seen::Text { text: text.into(), left, standing });
    }
}

/// One try to write.
struct Attempt {
    content: String,
    base: Option<String>,
}

/// What a read brought.
fn current(answer: Answer) -> Result<Current, Sorry> {
    let version = version(&answer);
    Ok(Current { text: acp::text(answer)?, version })
}

/// The version that an answer names.
pub(super) fn version(answer: &Answer) -> Version {
    let named = answer.json.get("version").and_then(Value::as_str).unwrap_or_default();
    match Base::parse(named) {
        Ok(Base::Version(version)) => version,
        // Every answer about a file names one; without it, the next write finds that it knows nothing.
        Ok(Base::Absent | Base::Rev(_) | Base::Prefix(_)) | Err(_) => Version::of(b""),
    }
}

/// Says where two changes meet. Lines are those of the file as it is now, counted from 1.
pub(super) fn conflict(path: &str, places: &[ConflictRange]) -> Sorry {
    let shown = places.iter().take(CONFLICTS_SHOWN).map(|place| {
        let (first, last) = (place.theirs.start + 1, place.theirs.end.max(place.theirs.start + 1));
        if first == last { format!("{first}") } else { format!("{first}-{last}") }
    });
    let lines = shown.collect::<Vec<_>>().join(", ");
    let more = if places.len() > CONFLICTS_SHOWN { " and more" } else { "" };
    Sorry::failed(format!(
        "conflict: {path} was changed by somebody else since this session read it, in lines {lines}{more}, where this \
         write changes it too; nothing was changed; read it again and write what both want"
    ))
}
