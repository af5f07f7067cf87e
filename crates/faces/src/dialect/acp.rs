//! `acp`: the two file methods of the Agent Client Protocol. Owns their translation: absolute paths beneath a root,
//! lines that keep their terminators, the protocol's errors.
//!
//! Spoken by the proxy alone: a method name with a slash is no tool that clients of MCP take. Never answers a place
//! outside the root otherwise than one where nothing is.

use engine::{Answer, Evidence, Failure, Form, Kind, Terms, Unseen};
use path::{Absolute, Backslash, Dots, Empty, Ending, Reading, RelPath, Spelling, Trailing};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Dialect, Reply, Request, Verdict};
use crate::{
    acp::{Encodings, Endings, Keeping, Sorry, slice},
    definition::{Broken, Definition},
};

/// What was generated for it.
const GENERATED: &str = include_str!("../generated/acp.json");
/// Its name.
const NAME: &str = "acp";
/// The method that reads.
pub(crate) const READ: &str = "fs/read_text_file";
/// The method that writes.
pub(crate) const WRITE: &str = "fs/write_text_file";

/// What begins a turn: it goes on to the agent, and is marked here.
pub(crate) const PROMPT: &str = "session/prompt";

/// The parameters of a read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReadParams {
    pub(crate) session_id: String,
    pub(crate) path: String,
    pub(crate) line: Option<u32>,
    pub(crate) limit: Option<u32>,
}

/// The parameters of a write.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WriteParams {
    pub(crate) session_id: String,
    pub(crate) path: String,
    pub(crate) content: String,
    #[serde(rename = "_meta")]
    pub(crate) meta: Option<Value>,
}

/// Where an absolute path lies beneath a root of these spellings; nothing when it lies elsewhere. Dots are folded before
/// anything is looked up.
pub(crate) fn place(given: &str, spellings: &[String]) -> Option<Spelling> {
    if !given.starts_with('/') {
        return None;
    }
    let reading = Reading {
        home: RelPath::root(),
        dots: Dots::Reenter,
        absolute: Absolute::BelowRoot,
        backslash: Backslash::Plain,
        ending: Ending::Insists,
        empty: Empty::Refuse,
    };
    let beneath = |root| path::parse(given, std::slice::from_ref(root), &reading).ok();
    spellings.iter().find_map(beneath)
}

/// A place as the engine reads it.
pub(crate) fn wire(path: &RelPath, trailing: Trailing) -> String {
    match trailing {
        Trailing::Open => path.to_wire().into_owned(),
        Trailing::Directory => format!("{}/", path.to_wire()),
    }
}

/// A read of the whole file; which lines of it are answered is settled afterwards.
pub(crate) fn read(wire: &str) -> Request {
    let terms = Terms { evidence: Evidence::Bytes, ..terms(READ) };
    Request { operation: "read".to_owned(), arguments: object(json!({ "path": wire })), terms }
}

/// A write, merged with what others did since the caller saw the file. Where it has seen nothing, whatever is there is
/// replaced.
pub(crate) fn write(wire: &str, content: String, keeping: Keeping) -> Request {
    let mut arguments = object(json!({ "path": wire, "content": content, "mode": "merge" }));
    if keeping.encodings == Encodings::Utf8 {
        arguments.insert("encoding".to_owned(), "utf-8".into());
    }
    let form = match keeping.endings {
        Endings::Kept => Form::LinesOfReplaced,
        Endings::AsGiven => Form::AsGiven,
    };
    let terms = Terms { unseen: Unseen::Yields, form, evidence: Evidence::Bytes, ..terms(WRITE) };
    Request { operation: "write".to_owned(), arguments, terms }
}

/// The mark that a prompt leaves.
pub(crate) fn turn() -> Request {
    Request { operation: "turn".to_owned(), arguments: Map::new(), terms: terms(PROMPT) }
}

pub(crate) fn terms(tool: &str) -> Terms {
    Terms { tool: Some(format!("{NAME}/{tool}")), ..Terms::default() }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// The text that a read brought. Bytes that are no UTF-8 are refused: written back, they would be others.
pub(crate) fn text(answer: Answer) -> Result<String, Sorry> {
    let bytes = answer.evidence.into_iter().next().and_then(|held| held.before).unwrap_or_default();
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Sorry::failed(format!(
            "not_text: the file is not UTF-8: byte {at} does not fit; reading it would damage it"
        ))
    })
}

/// What a read that failed is called: what may not be seen is not there.
pub(crate) fn unread(failure: &Failure, path: &str) -> Sorry {
    if [Kind::OutOfScope, Kind::ProtectedPath].contains(&failure.kind) {
        return Sorry::no_file(path);
    }
    Sorry::of(failure, path)
}

/// The vocabulary over one root.
pub struct Acp {
    definition: Definition,
    spellings: Vec<String>,
}

impl Acp {
    /// The vocabulary over a root of these spellings.
    pub fn new(spellings: Vec<String>) -> Result<Self, Broken> {
        Ok(Self { definition: Definition::read(GENERATED)?, spellings })
    }

    fn asked(&self, tool: &str, arguments: &Map<String, Value>) -> Result<Request, Sorry> {
        let given = Value::Object(arguments.clone());
        let misfit = |error: serde_json::Error| Sorry::params(error.to_string());
        let place = |path: &str| {
            let spelling = place(path, &self.spellings).ok_or_else(|| Sorry::no_file(path))?;
            Ok(wire(&spelling.path, spelling.trailing))
        };
        match tool {
            READ => {
                let params: ReadParams = serde_json::from_value(given).map_err(misfit)?;
                place(&params.path).map(|wire| read(&wire))
            }
            WRITE => {
                let params: WriteParams = serde_json::from_value(given).map_err(misfit)?;
                place(&params.path).map(|wire| write(&wire, params.content, Keeping::default()))
            }
            other => Err(Sorry::method(other)),
        }
    }
}

impl Dialect for Acp {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn request(&self, tool: &str, arguments: &Map<String, Value>) -> Request {
        self.asked(tool, arguments).unwrap_or_else(|sorry| {
            let objection = Failure::new(Kind::BadRequest, sorry.json().to_string());
            let operation = if tool == WRITE { "write" } else { "read" }.to_owned();
            let terms = Terms { objection: Some(objection), ..terms(tool) };
            Request { operation, arguments: arguments.clone(), terms }
        })
    }

    fn reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: Result<Answer, Failure>) -> Reply {
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        let number =
            |name: &str| arguments.get(name).and_then(Value::as_u64).and_then(|it| it.try_into().ok());
        let told = self.asked(tool, arguments).and_then(|_| match (tool, outcome) {
            (READ, Ok(answer)) => {
                let text = text(answer)?;
                Ok(json!({ "content": slice(&text, number("line"), number("limit"))? }))
            }
            (READ, Err(failure)) => Err(unread(&failure, path)),
            (_, Ok(_)) => Ok(json!({})),
            (_, Err(failure)) => Err(Sorry::of(&failure, path)),
        });
        let (json, verdict) = match told {
            Ok(json) => (json, Verdict::Fine),
            Err(sorry) => (sorry.json(), Verdict::Error),
        };
        Reply { text: json.to_string(), json: object(json), verdict }
    }
}
