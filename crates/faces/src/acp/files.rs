//! The file methods, served by the engine. A read tells what is there; a write replaces what this session has seen, and
//! where others changed it meanwhile, the engine merges both changes or refuses the write. What the session has seen is
//! remembered here.
//!
//! Promises: nothing that somebody else wrote since this session read it is lost; an answer is given to every call.

use std::sync::Arc;

use engine::{Answer, Caller, Failure, Kind, Making};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    Proxy,
    form::{Keeping, Written},
    reviewing,
    router::{FileCall, Method},
    session::{Root, Seen, Session, Spot},
    setup::{Offer, not_absolute},
    slice::slice,
    sorry::Sorry,
};
use crate::{
    dialect::{
        Request,
        acp::{self, ReadParams, WriteParams},
    },
    run::{Asked, Company},
};

/// One file method on its way.
pub(super) struct Errand<'p> {
    pub(super) proxy: &'p Proxy,
    pub(super) session: Arc<Session>,
    pub(super) spot: Spot,
    /// The path as it was given.
    pub(super) path: String,
    pub(super) stopped: watch::Receiver<bool>,
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
            let keeping = proxy.options.keeping.asked(params.meta.as_ref())?;
            let written = match proxy.router.editor().writes {
                Offer::Yes => errand.write_by_editor(&params.content, keeping).await?,
                Offer::No => errand.write(&params.content, keeping).await?,
            };
            Ok(written.json())
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
        let text = match self.call(acp::read(&self.spot.wire)).await? {
            Ok(answer) => acp::text(answer)?,
            Err(failure) => {
                if failure.kind == Kind::NotFound {
                    self.session.remember_read(&self.spot, began, Seen::Absent);
                }
                return Err(acp::unread(&failure, &self.path));
            }
        };
        self.session.remember_read(&self.spot, began, Seen::Text(text.as_str().into()));
        Ok(text)
    }

    /// Writes what the agent gives, merged with what others did since the session saw the file.
    async fn write(&self, content: &str, keeping: Keeping) -> Result<Written, Sorry> {
        let _turn = self.session.turn(&self.spot).await;
        let answer = self.put(content, keeping, &Making::Here).await?;
        self.session.remember(&self.spot, Seen::Text(content.into()));
        Ok(Written::of(content, &answer))
    }

    /// Has the engine write, or say what is to be written, and asks a person where one must be asked.
    pub(super) async fn put(
        &self,
        content: &str,
        keeping: Keeping,
        making: &Making,
    ) -> Result<Answer, Sorry> {
        let knows = self.session.seen(&self.spot).map(|seen| match seen {
            Seen::Absent => Arc::from(""),
            Seen::Text(text) => text,
        });
        let request = || {
            let Request { operation, arguments, mut terms } =
                acp::write(&self.spot.wire, content.to_owned(), keeping);
            (terms.knows, terms.making) = (knows.clone(), making.clone());
            Request { operation, arguments, terms }
        };
        let outcome = match self.call(request()).await? {
            Err(failure) if matches!(failure.kind, Kind::ApprovalPending | Kind::ApprovalStale) => {
                self.ask(&failure).await?;
                self.call(request()).await?
            }
            other => other,
        };
        if let Err(failure) = &outcome
            && failure.kind == Kind::Locked
            && self.proxy.router.listens() == Offer::Yes
        {
            // An editor that is gone needs no notice.
            drop(self.proxy.editor.send(reviewing::locked(&self.session, &self.path, failure)).await);
        }
        outcome.map_err(|failure| Sorry::of(&failure, &self.path))
    }

    /// Runs one call in the root of this errand.
    pub(super) async fn call(&self, request: Request) -> Result<Result<Answer, Failure>, Sorry> {
        let root = self.root()?;
        self.call_as(root.caller.clone(), request).await
    }

    /// The same for somebody else.
    pub(super) async fn call_as(
        &self,
        caller: Caller,
        request: Request,
    ) -> Result<Result<Answer, Failure>, Sorry> {
        let root = self.root()?;
        let asked = Asked {
            caller,
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
}
