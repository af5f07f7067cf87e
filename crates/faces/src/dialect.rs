//! Dialects: published vocabularies of tools, each a definition and a translation. A dialect turns a tool call into one
//! engine call under its own terms, and the outcome into the answer its document shows.
//!
//! Promises: one tool call is one engine call, so it leaves one entry; a dialect decides nothing about files, it only
//! chooses words. What is wrong with the arguments is an objection, which the engine refuses and records.

use engine::{Answer, Caller, Engine, Failure, Kind, Terms};
use serde_json::{Map, Value, json};

use crate::definition::{Broken, Definition, Operation as Tool};

pub(crate) mod acp;
mod comma;
mod handle;
mod jettson;
mod krux;
mod native;
mod settings;
mod weaver;

pub(crate) use native::failure_text;
pub use settings::{SettingError, Settings};

/// A tool call in the engine's words.
pub struct Request {
    /// The operation.
    pub operation: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// What the dialect settles about it.
    pub terms: Terms,
}

/// What a tool call answers, in the dialect's words.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The dialect's own result object.
    pub json: Map<String, Value>,
    /// What the original shows its model.
    pub text: String,
    /// Whether the dialect calls it an error.
    pub verdict: Verdict,
}

/// Whether a dialect calls an answer an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is what was asked for.
    Fine,
    /// It is an error.
    Error,
}

/// How much of the machine a dialect is set to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// The workspace.
    Workspace,
    /// Everything that the process may; the workspace is only where relative paths start.
    Machine,
}

/// One vocabulary of tools.
pub trait Dialect: Send + Sync {
    /// What it declares.
    fn definition(&self) -> &Definition;

    /// A call of one of its tools, as the engine takes it.
    fn request(&self, tool: &str, arguments: &Map<String, Value>) -> Request;

    /// What came of it, as the tool answers it.
    fn reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: Result<Answer, Failure>) -> Reply;

    /// An error as `capabilities.invoke` shows it: `type`, `message` and what to do about it.
    fn sorry(&self, reply: &Reply, failure: Option<&Failure>) -> Value {
        match failure {
            Some(failure) => {
                let hint = failure.hint.as_ref().map(|hint| json!({ "action": "hint", "description": hint }));
                json!({
                    "type": failure.kind.code(),
                    "message": failure.detail,
                    "recovery": hint.into_iter().collect::<Vec<_>>(),
                    "context": failure.facts,
                })
            }
            None => json!({ "type": "error", "message": reply.text, "recovery": [] }),
        }
    }

    /// An event of a watch, as `watched` tells it, in its own words.
    fn event(&self, native: &Map<String, Value>) -> Map<String, Value> {
        native.clone()
    }

    /// What a tool is called in the journal and in rules; nothing where it is the operation itself.
    fn full_name(&self, tool: &str) -> Option<String> {
        Some(format!("{}/{tool}", self.definition().dialect))
    }

    /// How much it is set to reach.
    fn reach(&self) -> Reach {
        Reach::Workspace
    }

    /// Narrows what a caller of this dialect may do, as its settings say. Never widens it.
    fn narrow(&self, _caller: &mut Caller) {}
}

impl dyn Dialect + '_ {
    /// A call of one of its tools with the tier that the tool's definition states. Every face asks this way.
    pub fn ask(&self, tool: &str, arguments: &Map<String, Value>) -> Request {
        let mut request = self.request(tool, arguments);
        let declared = self.definition().operation(tool).and_then(|operation| operation.tier);
        request.terms.tier = request.terms.tier.max(declared);
        request
    }

    /// Whether the policy blocks a tool for this caller, wherever it points: then it is not offered.
    pub fn is_blocked(&self, engine: &Engine, caller: &Caller, tool: &Tool) -> bool {
        engine.never(caller, tool.operation(), self.full_name(&tool.name).as_deref())
    }
}

/// How much of a wrong name is shown back.
const SHOWN_CHARS_MAX: usize = 64;

/// A call of something that is not there: refused, and recorded like any other.
pub(crate) fn unknown(name: &str, what: &str, hint: &str) -> Request {
    let shown: String = name.chars().take(SHOWN_CHARS_MAX).collect();
    let objection = Failure::new(Kind::UnknownOperation, format!("there is no {what} '{shown}'")).hint(hint);
    let terms = Terms { objection: Some(objection), ..Terms::default() };
    Request { operation: name.to_owned(), arguments: Map::new(), terms }
}

/// What a dialect knows about where it is used.
#[derive(Debug, Clone)]
pub struct Place {
    /// The absolute spelling of the workspace directory, for the dialects whose documents show it.
    pub workspace: String,
}

/// Makes a dialect from its settings.
type Make = fn(&Settings, &Place) -> Result<Box<dyn Dialect>, DialectError>;

/// Every dialect, in documentation order.
const DIALECTS: &[(&str, Make)] = &[
    ("stead", native::make),
    ("jettson", jettson::make),
    ("weaver", weaver::make),
    ("comma", comma::make),
    ("krux", krux::make),
];

/// Why a choice of dialects cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DialectError {
    /// The build is broken.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// There is no such dialect.
    #[error("there is no dialect '{0}'; there are {list}", list = names().join(", "))]
    Unknown(String),
    /// Two of them have a tool of the same name.
    #[error("{first} and {second} both have a tool '{tool}'; serve them apart")]
    Clash {
        /// The tool.
        tool: String,
        /// One dialect.
        first: String,
        /// The other.
        second: String,
    },
    /// One of them reaches the whole machine, and others beside it would too.
    #[error("{0} is set to reach beyond the workspace; serve it alone")]
    Reach(String),
    /// A setting does not fit.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

/// The names of all dialects.
pub fn names() -> Vec<&'static str> {
    DIALECTS.iter().map(|(name, _)| *name).collect()
}

/// Dialects that are served together.
pub struct Dialects(Vec<Box<dyn Dialect>>);

impl Dialects {
    /// The dialects of these names, set as said. Every setting must belong to one of them.
    pub fn choose(names: &[String], settings: &[String], place: &Place) -> Result<Self, DialectError> {
        let settings = Settings::parse(settings)?;
        let mut chosen: Vec<Box<dyn Dialect>> = Vec::new();
        for name in names {
            let make = DIALECTS.iter().find(|(known, _)| known == name).map(|(_, make)| make);
            let dialect = make.ok_or_else(|| DialectError::Unknown(name.clone()))?(&settings, place)?;
            chosen.push(dialect);
        }
        settings.check(chosen.iter().map(|dialect| dialect.definition()))?;
        refuse_clashes(&chosen)?;
        // They share one root, so whoever widens it must be alone.
        match chosen.iter().find(|dialect| dialect.reach() == Reach::Machine) {
            Some(wide) if chosen.len() > 1 => Err(DialectError::Reach(wide.definition().dialect.clone())),
            Some(_) | None => Ok(Self(chosen)),
        }
    }

    /// The native dialect alone.
    pub fn native() -> Result<Self, Broken> {
        Ok(Self(vec![Box::new(native::Native::new()?)]))
    }

    /// Every one of them.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Dialect> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The one that has this tool.
    pub fn with_tool(&self, tool: &str) -> Option<&dyn Dialect> {
        self.named(tool).map(|(dialect, _)| dialect)
    }

    /// The one that has this tool, and the tool's declared name. A dot may be spelled `__`, because many clients of MCP
    /// take no dots.
    pub fn named(&self, tool: &str) -> Option<(&dyn Dialect, &str)> {
        self.iter().find_map(|dialect| {
            let operations = &dialect.definition().operations;
            let found = operations.iter().find(|known| known.is_called(tool))?;
            Some((dialect, found.name.as_str()))
        })
    }

    /// The one of this name.
    pub(crate) fn called(&self, name: &str) -> Option<&dyn Dialect> {
        self.iter().find(|dialect| dialect.definition().dialect == name)
    }

    /// How much the widest of them is set to reach.
    pub fn reach(&self) -> Reach {
        let machine = self.iter().any(|dialect| dialect.reach() == Reach::Machine);
        if machine { Reach::Machine } else { Reach::Workspace }
    }
}

fn refuse_clashes(chosen: &[Box<dyn Dialect>]) -> Result<(), DialectError> {
    for (at, dialect) in chosen.iter().enumerate() {
        for other in &chosen[..at] {
            let (first, second) = (other.definition(), dialect.definition());
            let twice = second.operations.iter().find(|tool| first.operation(&tool.name).is_some());
            if let Some(tool) = twice {
                return Err(DialectError::Clash {
                    tool: tool.name.clone(),
                    first: first.dialect.clone(),
                    second: second.dialect.clone(),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(names: &[&str], settings: &[&str]) -> Result<Dialects, String> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let place = Place { workspace: "/srv/ws".to_owned() };
        Dialects::choose(&owned(names), &owned(settings), &place).map_err(|error| error.to_string())
    }

    #[test]
    fn a_choice_that_cannot_be_served_is_refused() {
        assert!(choose(&["stead"], &[]).is_ok());
        assert!(choose(&["stead", "jettson", "weaver"], &[]).is_ok());
        for (names, settings, word) in [
            (&["klingon"][..], &[][..], "no dialect"),
            (&["stead", "stead"], &[], "both have a tool"),
            (&["stead"], &["restrict"], "KEY=VALUE"),
            (&["stead"], &["no_such=1"], "no_such"),
            (&["weaver"], &["restrict=maybe"], "true or false"),
            (&["weaver"], &["read_bytes_max=0"], "positive"),
            (&["stead", "weaver"], &["restrict=false"], "alone"),
        ] {
            let error = choose(names, settings).map(|_| ()).expect_err("it cannot be served");
            assert!(error.contains(word), "{error}");
        }
    }
}
