//! What an editor asks about an agent's work: `_stead/review`, `_stead/keep`, `_stead/reject` and `_stead/undo_turn`, and
//! what it is told of a lease that stood in an agent's way. The engine answers for files; for those that the editor holds
//! itself, what it was given is remembered here, and taken back through the editor.
//!
//! Asked as the person at the editor, in the session's roots alone. Nothing of it comes from the agent or reaches it.

use std::{collections::HashSet, sync::Arc};

use engine::{Answer, Failure, Kind, Making};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::{
    Proxy,
    files::Errand,
    made::{Found, Names, Since},
    message::{self, Id},
    scan::Misshapen,
    session::{Session, Spot},
    sorry::Sorry,
    splice,
};
use crate::{
    dialect::{Request, acp},
    limits::REVIEW_TEXT_BYTES_MAX,
};

/// How our methods begin.
const PREFIX: &str = "_stead/";
/// What is said to an editor that listens when a lease stands in an agent's way.
const LOCKED: &str = "_stead/locked";

/// Our methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OurMethod {
    Review,
    Keep,
    Reject,
    UndoTurn,
}

const METHODS: &[(&str, OurMethod)] = &[
    ("review", OurMethod::Review),
    ("keep", OurMethod::Keep),
    ("reject", OurMethod::Reject),
    ("undo_turn", OurMethod::UndoTurn),
];

impl OurMethod {
    pub(super) fn named(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX)?;
        METHODS.iter().find(|(known, _)| *known == rest).map(|(_, method)| *method)
    }
}

/// One call of ours.
#[derive(Debug, PartialEq)]
pub(super) struct OurCall {
    pub(super) id: Id,
    pub(super) method: OurMethod,
    /// Its params, as they came.
    pub(super) params: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    session_id: String,
    path: Option<String>,
    hunk: Option<String>,
    #[serde(default)]
    since: Since,
}

/// The answer to `initialize` with what the editor may ask.
pub(super) fn announced(line: &[u8]) -> Result<Vec<u8>, Misshapen> {
    let methods: Vec<String> = METHODS.iter().map(|(name, _)| format!("{PREFIX}{name}")).collect();
    splice::put(line, &["result", "_meta", "stead"], &json!({ "methods": methods }))
}

/// The line that tells of a lease.
pub(super) fn locked(session: &Session, path: &str, failure: &Failure) -> Vec<u8> {
    let fact = |name: &str| failure.facts.get(name).cloned().unwrap_or_default();
    let params = json!({
        "sessionId": session.id, "path": path, "holder": fact("holder"), "endsMs": fact("ends_ms"),
        "detail": failure.detail,
    });
    message::notification(LOCKED, &params)
}

/// Does what one call says.
pub(super) async fn serve(proxy: &Proxy, call: &OurCall) -> Result<Value, Sorry> {
    let mut params: Params =
        serde_json::from_slice(&call.params).map_err(|error| Sorry::params(error.to_string()))?;
    if params.hunk.is_some() && params.path.is_none() {
        return Err(Sorry::params("a hunk is one of a file: name its path"));
    }
    if call.method == OurMethod::UndoTurn {
        params.since = Since::Turn;
    }
    let session =
        proxy.router.session(&params.session_id).ok_or_else(|| Sorry::no_session(&params.session_id))?;
    let only = match &params.path {
        None => None,
        Some(path) => Some(session.spot(path).ok_or_else(|| Sorry::no_file(path))?),
    };
    let (_going, stopped) = watch::channel(false);
    let look = Look { proxy, session, params, only, stopped };
    match call.method {
        OurMethod::Review => look.review().await,
        OurMethod::Keep => look.keep().await,
        OurMethod::Reject | OurMethod::UndoTurn => look.reject().await,
    }
}

/// One look at a session's work.
struct Look<'p> {
    proxy: &'p Proxy,
    session: Arc<Session>,
    params: Params,
    only: Option<Spot>,
    stopped: watch::Receiver<bool>,
}

/// What was done, and what was left.
#[derive(Default)]
struct Done {
    paths: Vec<String>,
    left: Vec<Value>,
}

impl Look<'_> {
    /// The files with their hunks, and each as a difference.
    async fn review(&self) -> Result<Value, Sorry> {
        let (mut files, mut room) = (Vec::new(), REVIEW_TEXT_BYTES_MAX);
        let mut is_truncated = self.session.made().is_incomplete;
        for root in self.roots() {
            let answer = match self.ask(root, "review", self.arguments(root)).await? {
                Ok(answer) => answer,
                // A file that only the editor has.
                Err(failure) if failure.kind == Kind::NotFound && !self.held().is_empty() => continue,
                Err(failure) => return Err(self.sorry(&failure)),
            };
            is_truncated |= answer.json.get("truncated") == Some(&Value::Bool(true));
            for file in answer.json.get("files").and_then(Value::as_array).into_iter().flatten() {
                files.push(self.file(root, file, &mut room).await?);
            }
        }
        for spot in self.held() {
            files.extend(self.held_file(&spot, &mut room).await?);
        }
        Ok(json!({
            "sessionId": self.session.id, "since": self.params.since.word(), "files": files, "truncated": is_truncated,
        }))
    }

    /// One file that the engine knows.
    async fn file(&self, root: usize, listed: &Value, room: &mut usize) -> Result<Value, Sorry> {
        let wire = listed["path"].as_str().unwrap_or_default();
        let mut arguments = self.arguments(root);
        arguments.insert("path".to_owned(), wire.into());
        let answer = self.ask(root, "review", arguments).await?.map_err(|failure| self.sorry(&failure))?;
        // It may have been kept or taken back since it was listed.
        let whole = answer.json.get("files").and_then(|files| files.get(0)).unwrap_or(listed);
        let path = self.absolute(root, wire);
        let mut told = json!({
            "path": path, "change": whole["change"], "actors": whole["actors"], "hunks": whole["hunks"],
        });
        for (name, fact) in
            [("lineEndings", "line_endings"), ("encoding", "encoding"), ("hunksLeftOut", "hunks_left_out")]
        {
            if let Some(value) = whole.get(fact) {
                told[name] = value.clone();
            }
        }
        if let Some(from) = whole.get("moved_from").and_then(Value::as_str) {
            told["movedFrom"] = self.absolute(root, from).into();
        }
        let text = |name: &str| whole.get(name).and_then(Value::as_str);
        // Without a difference it is no text, or no longer kept.
        let texts = whole.get("diff").map(|_| (text("old_text"), text("new_text").unwrap_or_default()));
        told["content"] = content(&path, texts, room);
        self.add_lease(root, wire, &mut told).await;
        Ok(told)
    }

    /// One file that the editor holds; nothing when it is as it was.
    async fn held_file(&self, spot: &Spot, room: &mut usize) -> Result<Option<Value>, Sorry> {
        let Some((found, now)) = self.found(spot).await? else { return Ok(None) };
        let hunks = found.traced.hunks();
        if hunks.is_empty() {
            return Ok(None);
        }
        let path = self.errand(spot).path;
        let change = if found.before.is_none() { "create" } else { "modify" };
        let mut actors: Vec<Value> =
            hunks.iter().flat_map(|hunk| hunk["by"].as_array().cloned().unwrap_or_default()).collect();
        actors.sort_by_key(Value::to_string);
        actors.dedup();
        let mut told =
            json!({ "path": path, "change": change, "actors": actors, "hunks": hunks, "inEditor": true });
        told["content"] = content(&path, Some((found.before.as_deref(), &now)), room);
        self.add_lease(spot.root, &spot.wire, &mut told).await;
        Ok(Some(told))
    }

    /// Says that something stands.
    async fn keep(&self) -> Result<Value, Sorry> {
        let mut done = Done::default();
        for root in self.roots() {
            let mut arguments = self.arguments(root);
            arguments.remove("since");
            self.settle(root, "keep", arguments, &mut done).await?;
        }
        for spot in self.held() {
            let Some((found, _)) = self.found(&spot).await? else { continue };
            if let Some(kept) = found.traced.kept(self.params.hunk.as_deref()) {
                self.session.made().keep(&spot, &kept);
                done.paths.push(self.errand(&spot).path);
            }
        }
        self.told("kept", done)
    }

    /// Takes something back.
    async fn reject(&self) -> Result<Value, Sorry> {
        let mut done = Done::default();
        for root in self.roots() {
            self.settle(root, "reject", self.arguments(root), &mut done).await?;
        }
        for spot in self.held() {
            self.take_back(&spot, &mut done).await?;
        }
        self.told("rejected", done)
    }

    /// Takes back what the editor was given, through the editor.
    async fn take_back(&self, spot: &Spot, done: &mut Done) -> Result<(), Sorry> {
        let errand = self.errand(spot);
        let _turn = self.session.turn(spot).await;
        let Some((found, now)) = self.found(spot).await? else { return Ok(()) };
        let Some(person) = self.session.root(spot).map(|root| root.person.clone()) else { return Ok(()) };
        let agent = self.agent(spot.root);
        let Some(text) = found.traced.without(self.params.hunk.as_deref(), &agent) else { return Ok(()) };
        let Request { operation, arguments, mut terms } =
            acp::write(&spot.wire, text.clone(), Default::default());
        (terms.knows, terms.making) =
            (Some(now.as_str().into()), Making::Elsewhere(Some(now.as_str().into())));
        let allowed = errand.call_as(person, Request { operation, arguments, terms }).await?;
        if let Err(failure) = allowed {
            done.left.push(json!({ "path": errand.path, "reason": failure.detail }));
            return Ok(());
        }
        if errand.give(&text).await.is_err() {
            done.left.push(json!({ "path": errand.path, "reason": "the editor did not write it" }));
            return Ok(());
        }
        if found.before.is_none() && text.is_empty() {
            let reason = "it is empty now: an editor removes no files";
            done.left.push(json!({ "path": errand.path, "reason": reason }));
        }
        done.paths.push(errand.path);
        Ok(())
    }

    /// Has the engine keep or take back what it knows of a root. Nothing to do is nothing wrong here.
    async fn settle(
        &self,
        root: usize,
        operation: &str,
        arguments: Map<String, Value>,
        done: &mut Done,
    ) -> Result<(), Sorry> {
        let word = if operation == "keep" { "kept" } else { "rejected" };
        let listed = |answer: &Answer, name: &str| {
            answer.json.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        match self.ask(root, operation, arguments).await? {
            Ok(answer) => {
                let paths = listed(&answer, word);
                done.paths
                    .extend(paths.iter().filter_map(Value::as_str).map(|wire| self.absolute(root, wire)));
                for mut left in listed(&answer, "left") {
                    left["path"] = self.absolute(root, left["path"].as_str().unwrap_or_default()).into();
                    done.left.push(left);
                }
                Ok(())
            }
            Err(failure) if failure.kind == Kind::NothingToDo => Ok(()),
            // A hunk may be one of the text that the editor holds.
            Err(failure) if failure.kind == Kind::NotFound && !self.held().is_empty() => Ok(()),
            Err(failure) => Err(self.sorry(&failure)),
        }
    }

    fn told(&self, word: &str, done: Done) -> Result<Value, Sorry> {
        let Done { mut paths, left } = done;
        if paths.is_empty() && left.is_empty() {
            let what = if self.params.hunk.is_some() {
                "there is no such hunk"
            } else {
                "there is nothing to review"
            };
            return Err(Sorry::params(format!("nothing_to_do: {what}")));
        }
        paths.sort();
        paths.dedup();
        Ok(json!({ "sessionId": self.session.id, word: paths, "left": left }))
    }

    /// The roots that are meant, each workspace once.
    fn roots(&self) -> Vec<usize> {
        let mut known = HashSet::new();
        let roots = self.session.roots().iter().enumerate();
        roots
            .filter(|(at, _)| self.only.as_ref().is_none_or(|only| only.root == *at))
            .filter(|(_, root)| known.insert(root.runner.engine().workspace().profile().id.clone()))
            .map(|(at, _)| at)
            .collect()
    }

    /// The files that are meant, among those that the editor was given.
    fn held(&self) -> Vec<Spot> {
        let made = self.session.made();
        match &self.only {
            Some(only) => made.has(only).then(|| only.clone()).into_iter().collect(),
            None => made.spots(),
        }
    }

    /// A file that the editor was given, as it holds it now.
    async fn found(&self, spot: &Spot) -> Result<Option<(Found, String)>, Sorry> {
        let now = self.errand(spot).theirs().await?.unwrap_or_default();
        let person =
            self.session.root(spot).map(|root| root.person.principal.to_string()).unwrap_or_default();
        let agent = self.agent(spot.root);
        let names = Names { agent: &agent, person: &person };
        let found = self.session.made().found(spot, self.params.since, &now, names);
        Ok(found.map(|found| (found, now)))
    }

    fn agent(&self, root: usize) -> String {
        self.session.roots().get(root).map(|root| root.caller.principal.to_string()).unwrap_or_default()
    }

    fn arguments(&self, root: usize) -> Map<String, Value> {
        let fields = [
            ("session", Some(self.session.shown().into())),
            ("author", Some(self.agent(root).into())),
            ("since", Some(self.params.since.word().into())),
            ("path", self.only.as_ref().map(|only| only.wire.as_str().into())),
            ("hunk", self.params.hunk.as_deref().map(Value::from)),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Asks the engine of a root, as the person at the editor.
    async fn ask(
        &self,
        root: usize,
        operation: &str,
        mut arguments: Map<String, Value>,
    ) -> Result<Result<Answer, Failure>, Sorry> {
        let Some(opened) = self.session.roots().get(root) else {
            return Err(Sorry::failed("io_error: the root is gone"));
        };
        if operation == "review" {
            arguments.remove("hunk");
        }
        let request = Request {
            operation: operation.to_owned(),
            arguments,
            terms: acp::terms(&format!("{PREFIX}{operation}")),
        };
        self.errand(&self.session.top(root)).call_as(opened.person.clone(), request).await
    }

    /// Whoever holds a file, where somebody does.
    async fn add_lease(&self, root: usize, wire: &str, told: &mut Value) {
        let (Some(spot), Some(opened)) = (self.session.spot_in(root, wire), self.session.roots().get(root))
        else {
            return;
        };
        let engine = opened.runner.engine().clone();
        let looked = tokio::task::spawn_blocking(move || engine.workspace().leases(&[spot.path]));
        if let Ok(Ok(leases)) = looked.await
            && let Some(lease) = leases.first()
        {
            told["lease"] = json!({ "holder": lease.holder, "endsMs": lease.ends_ms });
        }
    }

    fn errand(&self, spot: &Spot) -> Errand<'_> {
        let path = self.session.absolute(spot).unwrap_or_else(|| spot.wire.clone());
        Errand {
            proxy: self.proxy,
            session: self.session.clone(),
            spot: spot.clone(),
            path,
            stopped: self.stopped.clone(),
        }
    }

    fn absolute(&self, root: usize, wire: &str) -> String {
        let spot = self.session.spot_in(root, wire);
        spot.and_then(|spot| self.session.absolute(&spot)).unwrap_or_else(|| wire.to_owned())
    }

    fn sorry(&self, failure: &Failure) -> Sorry {
        Sorry::of(failure, self.params.path.as_deref().unwrap_or_default())
    }
}

/// Both texts as the protocol shows a difference; a remark where that cannot be.
fn content(path: &str, texts: Option<(Option<&str>, &str)>, room: &mut usize) -> Value {
    let remark = |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    let Some((old, new)) = texts else { return remark("not text, or no longer kept") };
    let size = old.map_or(0, str::len) + new.len();
    if size > *room {
        return remark("too much to show here: ask for this file alone");
    }
    *room -= size;
    json!([{ "type": "diff", "path": path, "oldText": old, "newText": new }])
}
