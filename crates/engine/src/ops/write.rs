//! `write`: a file gets new content, whole. A file that exists is replaced only by somebody who says which version was
//! seen; it keeps its encoding unless the call names another.

mod against;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};
use text::{
    diff,
    encoding::{self, Detected},
};

use self::against::Standing;
use super::{answer::Facts, encoded, encoded::Encoded, parents};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    plan::{Change, Content, Expect, Plan, Seen, Top},
    resolve,
    terms::{Form, Making, Unseen},
    version::{Base, Version},
    view::View,
    workspace::{Node, Want},
};

/// The arguments of `write`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    path: String,
    content: String,
    base: Option<String>,
    encoding: Option<String>,
    #[serde(default)]
    mode: Mode,
}

/// What happens when others changed the file since the caller saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// The write is refused.
    #[default]
    Exact,
    /// What both changed is brought together, against the base or else the text that the session last saw.
    Merge,
}

/// The file that is replaced.
struct Current {
    seen: Seen,
    /// Its bytes, when the caller may read them and they are not too many.
    bytes: Option<Vec<u8>>,
}

impl Operation for Write {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        let ask = Ask::write(&self.path);
        let base = self.base.as_deref().filter(|base| self.mode == Mode::Exact || base.is_empty());
        self.base.as_deref().map(Base::parse).transpose()?;
        Ok(vec![ask.with_base(base)?])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let current = match target.node {
            Some(node) => Some(self.current(view, target, node)?),
            None => None,
        };
        let now = Now::of(view, current.as_ref());
        let before = now.as_ref().and_then(|now| now.bytes);
        let content = formed(view.terms.form, &self.content, before);
        let endings = taken_over(&self.content, &content);
        let (content, standing) = match (self.mode, &now) {
            (Mode::Merge, Some(now)) => self.merged(view, target, now, content)?,
            (Mode::Merge, None) | (Mode::Exact, _) => (content, Standing::AsGiven),
        };
        let encoded = encoded::whole(&content, self.encoding.as_deref(), before)?;
        let version = Version::of(&encoded.bytes);
        let size = encoded.bytes.len() as u64;
        if let Some(current) = &current
            && current.seen.version == version
            && view.terms.making == Making::Here
        {
            return Ok(unchanged(view, target, &version, before, size, self.mode));
        }
        let difference = match &current {
            None => lines_changed(Some(b""), &encoded.bytes),
            Some(_) => lines_changed(before, &encoded.bytes),
        };
        let evidence = view.evidence(&target.path, before, Some(&encoded.bytes));
        let mut changes = parents::missing(view, &target.path)?;
        let Encoded { bytes, unusual } = encoded;
        changes.push(Change::Put {
            path: target.path.clone(),
            expect: current.as_ref().map_or(Expect::Absent, |current| Expect::File(current.seen)),
            content: Content::Bytes(bytes),
            version,
            size,
            mode: view.terms.privacy.mode(),
        });
        let path = target.path.to_string();
        let (created, mode) = (current.is_none(), self.mode);
        Ok(Planned::Change {
            plan: Plan::of(changes),
            finish: Box::new(move |committed| {
                let rev = format!("r{}", committed.number);
                let verb = if created { "created" } else { "wrote" };
                let lines = difference.map(|lines| format!(", +{} -{}", lines.added, lines.removed));
                let text = format!("{verb} {path} ({rev}, {size} bytes{})", lines.unwrap_or_default());
                Facts::new()
                    .with("path", path)
                    .file(&version, rev)
                    .with("size", size)
                    .with("created", created)
                    .with("changed", true)
                    .maybe("diff", difference.map(shown))
                    .extended(standing.facts(mode))
                    .maybe("encoding", unusual)
                    .maybe("line_endings", endings)
                    .committed(committed)
                    .line(text)
                    .with_evidence(evidence)
            }),
        })
    }
}

impl Write {
    /// What is there now, refused unless it is a file whose version the caller has seen.
    fn current(&self, view: &View<'_>, target: &Target, node: Node) -> Result<Current, Failure> {
        regular(target, node)?;
        let readable = view.may_read(&target.path);
        let read = |want| view.read_for_change(&target.path, want);
        let file = if readable && node.size <= limits::WRITE_BYTES_MAX {
            read(Want::Whole { limit_bytes: limits::WRITE_BYTES_MAX })?
        } else {
            read(Want::Nothing)?
        };
        // What is merged is held against what the session knows, not against a base that must be current.
        if self.mode == Mode::Exact && target.base.is_none() && view.terms.unseen == Unseen::Stays {
            return Err(base_required(view, target, &file.version));
        }
        let bytes = (readable && node.size <= limits::WRITE_BYTES_MAX).then_some(file.bytes);
        // The version that was checked against the base is the one that must still be there.
        let seen = target.seen.unwrap_or(Seen { version: file.version, stamp: file.node.stamp });
        Ok(Current { seen, bytes })
    }
}

/// What the file counts as while it is written: what is there, or what whoever makes the change true holds.
struct Now<'n> {
    version: Version,
    /// Its bytes, when the caller may read them and they are not too many.
    bytes: Option<&'n [u8]>,
}

impl<'n> Now<'n> {
    fn of(view: &'n View<'_>, current: Option<&'n Current>) -> Option<Self> {
        match &view.terms.making {
            Making::Here => {
                current.map(|current| Self { version: current.seen.version, bytes: current.bytes.as_deref() })
            }
            Making::Elsewhere(held) => held.as_ref().map(|text| {
                let bytes = text.as_bytes();
                Self { version: Version::of(bytes), bytes: Some(bytes) }
            }),
        }
    }
}

/// A text in the form of what it replaces, as far as the terms say so.
fn formed<'c>(form: Form, content: &'c str, before: Option<&[u8]>) -> Cow<'c, str> {
    match (form, before) {
        (Form::AsGiven, _) | (Form::OfReplaced | Form::LinesOfReplaced, None) => Cow::Borrowed(content),
        (Form::LinesOfReplaced, Some(before)) => encoded::lines_as(content, before),
        (Form::OfReplaced, Some(before)) => Cow::Owned(encoded::formed_as(content, before)),
    }
}

/// The line endings that a content took on from what it replaces, if it had others.
fn taken_over(given: &str, formed: &str) -> Option<&'static str> {
    let has = |text: &str| text.contains("\r\n");
    match (has(given), has(formed)) {
        (false, true) => Some("crlf"),
        (true, false) => Some("lf"),
        (true, true) | (false, false) => None,
    }
}

/// Refuses whatever is not a regular file.
pub(crate) fn regular(target: &Target, node: Node) -> Result<(), Failure> {
    let path = &target.path;
    match node.top {
        Top::File => Ok(()),
        Top::Directory => Err(Failure::new(Kind::IsDirectory, format!("{path} is a directory"))
            .hint(format!("name a file, for example {path}/notes.txt"))),
        Top::Link | Top::Special => {
            Err(Failure::new(Kind::NotRegular, format!("{path} is not a regular file"))
                .hint("choose another path"))
        }
    }
}

fn base_required(view: &View<'_>, target: &Target, version: &Version) -> Failure {
    let path = &target.path;
    let failure = Failure::new(Kind::BaseRequired, format!("{path} exists and the call gives no base"))
        .hint(format!("call read with path {path}, then write again with its version as base"));
    // A hash tells whoever guesses right what is in a file, so it goes only to those who may read it.
    if view.may_read(path) { resolve::with_current(view, failure, path, *version) } else { failure }
}

fn unchanged(
    view: &View<'_>,
    target: &Target,
    version: &Version,
    before: Option<&[u8]>,
    size: u64,
    mode: Mode,
) -> Planned {
    let path = target.path.to_string();
    let rev = view.rev(&target.path, version);
    let text = format!("{path} already has this content ({rev}); nothing was changed");
    let answer = Facts::new()
        .with("path", path)
        .file(version, rev)
        .with("size", size)
        .with("created", false)
        .with("changed", false)
        .extended(Standing::AsGiven.facts(mode))
        .line(text)
        .with_evidence(view.evidence(&target.path, before, before));
    Planned::Read { answer, bytes: 0 }
}

impl Standing {
    /// What is told of it, to whoever asked for a merge.
    fn facts(&self, mode: Mode) -> serde_json::Map<String, Value> {
        let facts = match (mode, self) {
            (Mode::Exact, _) => Facts::new(),
            (Mode::Merge, Standing::AsGiven) => Facts::new().with("merged", false),
            (Mode::Merge, Standing::Merged(from)) => {
                Facts::new().with("merged", true).with("merged_from", from.clone())
            }
        };
        facts.object()
    }
}

/// The lines that change, when both sides are text that is not too long to compare.
pub(crate) fn lines_changed(before: Option<&[u8]>, after: &[u8]) -> Option<diff::Change> {
    let before = before?;
    if before.len().max(after.len()) as u64 > limits::DIFF_BYTES_MAX {
        return None;
    }
    Some(diff::summary(&decoded(before)?, &decoded(after)?))
}

fn decoded(bytes: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    match encoding::detect(bytes) {
        Detected::Text { encoding } => encoding::decode(bytes, encoding).ok(),
        Detected::Binary => None,
    }
}

fn shown(lines: diff::Change) -> Value {
    json!({ "added": lines.added, "removed": lines.removed })
}
