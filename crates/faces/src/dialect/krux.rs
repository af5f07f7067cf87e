//! `krux`: capabilities by dotted names, with tiers, absolute paths, and errors that name what to call next. Owns that
//! translation. Promises the documented fields, and that every way out of an error is a call that exists.

use engine::{Answer, Failure, Kind, Offer, Terms};
use serde_json::{Map, Value, json};

use super::{Dialect, DialectError, Place, Reply, Request, Settings, Verdict};
use crate::definition::{Definition, Operation};

mod asked;
mod desk;
mod encoding;
mod files;
mod moving;
mod seeking;
mod sorry;
mod spot;
mod tool;
mod watching;
mod ways;

use asked::Asked;
use spot::Spots;
use tool::{File, Tool};

/// What was generated for it.
const GENERATED: &str = include_str!("../generated/krux.json");

/// The vocabulary.
pub(super) struct Krux {
    definition: Definition,
    spots: Spots,
}

/// Makes it; it has no settings.
pub(super) fn make(_settings: &Settings, place: &Place) -> Result<Box<dyn Dialect>, DialectError> {
    let definition = Definition::read(GENERATED)?;
    Ok(Box::new(Krux { definition, spots: Spots::new(&place.workspace) }))
}

/// One call, as every part of the translation sees it.
struct Scene<'a> {
    krux: &'a Krux,
    tool: Tool,
    asked: Asked<'a>,
}

impl Krux {
    /// Every capability, for a call that asks which of them the policy leaves.
    fn offers(&self) -> Vec<Offer> {
        let offer = |one: &Operation| Offer {
            operation: one.operation().to_owned(),
            tool: self.full_name(&one.name),
        };
        self.definition.operations.iter().map(offer).collect()
    }

    fn scene<'a>(&'a self, tool: &str, arguments: &'a Map<String, Value>) -> Result<Scene<'a>, Failure> {
        let missing = || Failure::new(Kind::UnknownOperation, "there is no such capability");
        let declared = self.definition.operation(tool).ok_or_else(missing)?;
        let known = Tool::named(tool).ok_or_else(missing)?;
        let asked = Asked::read(declared, arguments)?;
        Ok(Scene { krux: self, tool: known, asked })
    }
}

impl Scene<'_> {
    /// The engine's operation with its arguments, under these terms.
    fn translated(&self, terms: Terms) -> Result<Request, Failure> {
        match self.tool {
            Tool::File(file) => files::request(self, file, terms),
            Tool::Moving(moving) => moving::request(self, moving, terms),
            Tool::Seek(seek) => seeking::request(self, seek, terms),
            Tool::Watch(watching) => watching::request(self, watching, terms),
            Tool::Desk(desk) => Ok(desk::request(self, desk, terms)),
        }
    }

    /// What a call that succeeded answers.
    fn told(&self, answer: &Answer) -> Result<Value, Failure> {
        match self.tool {
            Tool::File(file) => files::told(self, file, answer),
            Tool::Moving(moving) => Ok(moving::told(self, moving, answer)),
            Tool::Seek(seek) => Ok(seeking::told(self, seek, answer)),
            Tool::Watch(watching) => Ok(watching::told(self, watching, answer)),
            Tool::Desk(desk) => Ok(desk::told(self, desk, answer)),
        }
    }
}

impl Dialect for Krux {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn request(&self, tool: &str, arguments: &Map<String, Value>) -> Request {
        let terms = Terms { tool: self.full_name(tool), reading: spot::reading(), ..Terms::default() };
        let asked = self.scene(tool, arguments).and_then(|scene| scene.translated(terms.clone()));
        asked.unwrap_or_else(|failure| {
            let operation = self.definition.operation(tool).and_then(|known| known.becomes.clone());
            let terms = Terms { objection: Some(failure), ..terms };
            let operation = operation.unwrap_or_else(|| "unknown".to_owned());
            Request { operation, arguments: arguments.clone(), terms }
        })
    }

    fn reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: Result<Answer, Failure>) -> Reply {
        let told = outcome.and_then(|answer| self.scene(tool, arguments)?.told(&answer));
        let (json, verdict) = match told {
            Ok(json) => (json, Verdict::Fine),
            Err(failure) => match (Tool::named(tool), failure.kind) {
                // What is not there is an answer of its own here.
                (Some(Tool::File(File::Stat)), Kind::NotFound | Kind::NotDirectory) => {
                    (json!({ "exists": false }), Verdict::Fine)
                }
                (known, _) => (sorry::object(self, tool, known, arguments, &failure), Verdict::Error),
            },
        };
        let text = json.to_string();
        Reply { json: object(json), text, verdict }
    }

    fn event(&self, native: &Map<String, Value>) -> Map<String, Value> {
        watching::event(&self.spots, native)
    }

    fn sorry(&self, reply: &Reply, _failure: Option<&Failure>) -> Value {
        let mut error = Map::new();
        for (name, value) in &reply.json {
            let name = if name == "error" { "type" } else { name };
            error.insert(name.to_owned(), value.clone());
        }
        Value::Object(error)
    }
}

fn object(json: Value) -> Map<String, Value> {
    match json {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}
