//! The two conversations, carried side by side. A message that only goes by waits for nothing but the peer it goes to;
//! file methods and the roots of a session are worked on beside them.

use std::{io, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

use super::{
    Ended, Proxy,
    chain::{From, Wrap},
    files,
    message::{self, Id, Refused},
    own::Mine,
    prompt,
    reviewing::{self, OurCall},
    router::{Decision, FileCall, Setup},
    session::Session,
    setup::Server,
    sorry::Sorry,
};
use crate::{
    limits::{REQUESTS_PENDING_MAX, SHUTDOWN_WAIT},
    lines::{LineReader, Next},
};

/// The two ends of a connection.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Where bytes for a peer go.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// File calls under way.
struct Errands(JoinSet<()>);

impl Errands {
    fn new() -> Self {
        Self(JoinSet::new())
    }

    /// Begins one. With too many under way, the agent is not heard until one is done.
    async fn begin(&mut self, proxy: &Arc<Proxy>, call: FileCall) {
        while self.0.try_join_next().is_some() {}
        let Ok(slot) = proxy.slots.clone().acquire_owned().await else { return };
        let (proxy, stopped) = (proxy.clone(), proxy.router.running(&call.id));
        self.0.spawn(async move {
            let line = match files::serve(&proxy, &call, stopped).await {
                Ok(result) => message::answer(&call.id, &result),
                Err(sorry) => message::refusal(Some(&call.id), &sorry),
            };
            proxy.router.done(&call.id);
            // An agent that is gone needs no answer.
            drop(proxy.agent.send(line).await);
            drop(slot);
        });
    }

    /// Waits for all of them; none waits for a person or the editor any more.
    async fn end(&mut self, proxy: &Proxy) {
        proxy.router.close();
        while self.0.join_next().await.is_some() {}
    }
}

/// A line of the reader, or what to say about one that is too long.
async fn next(lines: &mut LineReader<Input>) -> Option<Result<Vec<u8>, Refused>> {
    loop {
        match lines.next().await {
            Next::End => return None,
            Next::Oversize(id) => {
                let sorry = Sorry::request("the message is too long");
                return Some(Err(Refused { id: id.as_ref().map(Id::of), sorry }));
            }
            Next::Line => {
                let line = lines.take();
                if !line.trim_ascii().is_empty() {
                    return Some(Ok(line));
                }
            }
        }
    }
}

impl Proxy {
    /// Carries both conversations until one side ends.
    pub(super) async fn between(self: Arc<Self>, editor: Input, agent: Input) -> io::Result<Ended> {
        let from_editor = async {
            let mut lines = LineReader::new(editor);
            while let Some(line) = next(&mut lines).await {
                match line {
                    Ok(line) => self.editor_said(line).await?,
                    Err(refused) => self.editor.send(refusal(&refused)).await?,
                }
            }
            io::Result::Ok(())
        };
        let from_agent = async {
            let mut lines = LineReader::new(agent);
            let mut errands = Errands::new();
            let mut heard = io::Result::Ok(());
            while let Some(line) = next(&mut lines).await {
                heard = match line {
                    Ok(line) => self.agent_said(line, &mut errands).await,
                    Err(refused) => self.agent.send(refusal(&refused)).await,
                };
                if heard.is_err() {
                    break;
                }
            }
            errands.end(&self).await;
            heard
        };
        tokio::pin!(from_agent);
        tokio::select! {
            heard = &mut from_agent => return self.leave(heard.map(|()| Ended::Agent)).await,
            // An agent that takes nothing more is about to end, or has: what it still says is heard.
            _ = from_editor => {}
        }
        self.router.close();
        tokio::select! {
            heard = &mut from_agent => return self.leave(heard.map(|()| Ended::Editor)).await,
            () = self.all_answered() => {}
            () = tokio::time::sleep(SHUTDOWN_WAIT) => {}
        }
        self.agent.close().await;
        // It may still have something to say; but one that does not end is for whoever started it.
        match tokio::time::timeout(SHUTDOWN_WAIT, from_agent).await {
            Ok(heard) => self.leave(heard.map(|()| Ended::Editor)).await,
            Err(_) => self.leave(Ok(Ended::Editor)).await,
        }
    }

    /// Carries the conversation with a conductor until it ends.
    pub(super) async fn in_chain(self: Arc<Self>, conductor: Input, wrap: Arc<Wrap>) -> io::Result<Ended> {
        let mut lines = LineReader::new(conductor);
        let mut errands = Errands::new();
        while let Some(line) = next(&mut lines).await {
            match line.map(|line| wrap.open(line)) {
                Ok(From::Editor(line)) => self.editor_said(line).await?,
                Ok(From::Agent(line)) => self.agent_said(line, &mut errands).await?,
                Ok(From::Answer(line)) => self.answered(line).await?,
                Err(refused) => self.editor.send(refusal(&refused)).await?,
            }
        }
        errands.end(&self).await;
        self.leave(Ok(Ended::Editor)).await
    }

    /// Resolves once no file call is under way.
    async fn all_answered(&self) {
        let all = u32::try_from(REQUESTS_PENDING_MAX).unwrap_or(u32::MAX);
        drop(self.slots.acquire_many(all).await);
    }

    async fn leave(&self, ended: io::Result<Ended>) -> io::Result<Ended> {
        self.editor.flush().await?;
        ended
    }

    async fn editor_said(self: &Arc<Self>, line: Vec<u8>) -> io::Result<()> {
        match self.router.of_editor(&line) {
            Decision::AsIs => self.agent.send(lined(line)).await,
            Decision::Changed(line) => self.agent.send(lined(line)).await,
            Decision::Back(line) => self.editor.send(line).await,
            Decision::Prompt(session) => {
                if let Some(session) = self.router.session(&session) {
                    prompt::mark(session).await;
                }
                self.agent.send(lined(line)).await
            }
            Decision::Ours(call) => self.ours(call).await,
            Decision::Kept | Decision::Files(_) | Decision::Named(_) => Ok(()),
            Decision::Setup(setup) => match self.set_up(setup, &line).await {
                Ok(line) => self.agent.send(lined(line)).await,
                Err(back) => self.editor.send(back).await,
            },
        }
    }

    async fn agent_said(self: &Arc<Self>, line: Vec<u8>, errands: &mut Errands) -> io::Result<()> {
        match self.router.of_agent(&line) {
            Decision::AsIs => self.editor.send(lined(line)).await,
            Decision::Changed(line) => self.editor.send(lined(line)).await,
            Decision::Back(line) => self.agent.send(line).await,
            Decision::Named(session) => {
                self.belongs(session).await;
                self.editor.send(lined(line)).await
            }
            Decision::Kept | Decision::Setup(_) | Decision::Ours(_) | Decision::Prompt(_) => Ok(()),
            Decision::Files(call) => {
                errands.begin(self, call).await;
                Ok(())
            }
        }
    }

    /// An answer in a chain: to a request of ours, or to one that was sent on and goes back under the same id.
    async fn answered(&self, line: Vec<u8>) -> io::Result<()> {
        match self.router.answered(&line) {
            Mine::Yes => Ok(()),
            Mine::No => {
                // What it settles is followed; it goes back whatever that is.
                let line = match self.router.of_agent(&line) {
                    Decision::Named(session) => {
                        self.belongs(session).await;
                        line
                    }
                    Decision::Changed(changed) => changed,
                    Decision::AsIs
                    | Decision::Back(_)
                    | Decision::Prompt(_)
                    | Decision::Kept
                    | Decision::Setup(_)
                    | Decision::Ours(_)
                    | Decision::Files(_) => line,
                };
                self.editor.send(lined(line)).await
            }
        }
    }

    /// Serves a method of our own beside what goes by.
    async fn ours(self: &Arc<Self>, call: OurCall) -> io::Result<()> {
        // The editor's answers come the same way, so nothing may wait here.
        let Ok(slot) = self.slots.clone().try_acquire_owned() else {
            let sorry = Sorry::failed("busy: too many calls are under way; ask again");
            return self.editor.send(message::refusal(Some(&call.id), &sorry)).await;
        };
        let proxy = self.clone();
        tokio::spawn(async move {
            let line = match reviewing::serve(&proxy, &call).await {
                Ok(result) => message::answer(&call.id, &result),
                Err(sorry) => message::refusal(Some(&call.id), &sorry),
            };
            // An editor that is gone needs no answer.
            drop(proxy.editor.send(line).await);
            drop(slot);
        });
        Ok(())
    }

    /// Opens the roots of a session: the line for the agent, or the one that goes back.
    async fn set_up(&self, setup: Setup, line: &[u8]) -> Result<Vec<u8>, Vec<u8>> {
        let (ground, roots) = (self.ground.clone(), setup.places.roots.clone());
        let opening = tokio::task::spawn_blocking(move || {
            let opened: Result<Vec<_>, Sorry> = roots
                .iter()
                .map(|root| {
                    ground.open(root).map_err(|failure| {
                        let reason = format!("{}: {}", failure.kind.code(), failure.detail);
                        Sorry::params(serde_json::json!({ "path": root, "reason": reason }))
                    })
                })
                .collect();
            let server: Option<Server> = roots.first().and_then(|root| ground.server(root));
            opened.map(|opened| (opened, server))
        });
        let opened =
            opening.await.unwrap_or_else(|_| Err(Sorry::failed("io_error: the roots cannot be opened")));
        let admitted = opened
            .and_then(|(opened, server)| self.router.admit(&setup, opened, server.as_ref(), line))
            .map_err(|sorry| message::refusal(Some(&setup.id), &sorry))?;
        if let Some(session) = admitted.named {
            self.belongs(session).await;
        }
        Ok(admitted.line)
    }

    /// Lets what the server of a session does be part of it, before anybody can have it do something. Where that fails it
    /// is recorded as a session of its own, under the name that the agent's client has.
    async fn belongs(&self, session: Arc<Session>) {
        let ground = self.ground.clone();
        let binding = tokio::task::spawn_blocking(move || match &session.served {
            Some(served) => ground.belongs(&served.directory, &served.ticket, session.shown()),
            None => Ok(()),
        });
        drop(binding.await);
    }
}

fn lined(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'\n');
    line
}

fn refusal(refused: &Refused) -> Vec<u8> {
    message::refusal(refused.id.as_ref(), &refused.sorry)
}
