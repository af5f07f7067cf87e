//! `comma`: eleven tools around one protocol: whoever changes a file says which version was seen. Every answer is the
//! same envelope, every failure one of a closed list of kinds with what to do next.
//!
//! Promises the published sentences to the letter where the origin's code and document agree, and where they do not what
//! the document says, unless the origin's way is chosen by option. Decides nothing about files: hashes, forbidden places
//! and the trash are the engine's.

use engine::{Answer, Evidence, Failure, Kind, Listing, Terms};
use path::{Absolute, Backslash, Dots, Empty, Ending, Reading};
use serde_json::{Map, Value};

use super::{Dialect, DialectError, Place, Reply, Request, Settings};
use crate::definition::Definition;

mod apply_patch;
mod asked;
mod class;
mod collation;
mod difference;
mod edit_file;
mod envelope;

mod list_directory;
mod move_file;
mod narrowing;
mod place;
mod read_file;
mod seeking;
mod sorry;
mod tool;
mod trashing;
mod writing;

use asked::{Asked, EditHash};
use edit_file::Fuzzy;
use envelope::{Envelope, Sorry};
use list_directory::Order;
use narrowing::Narrowing;
use tool::Tool;

/// What was generated for it.
const GENERATED: &str = include_str!("../generated/comma.json");

/// Whose choices stand where the origin's code and its document differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The document's, and the stricter ones.
    Stricter,
    /// Those of the origin's code.
    Exact,
}

/// The vocabulary, as it is set.
pub(super) struct Comma {
    definition: Definition,
    workspace: String,
    reading: Reading,
    origin: Origin,
    edit_hash: EditHash,
    fuzzy: Fuzzy,
    order: Order,
    narrowing: Narrowing,
}

/// Makes it from its settings.
pub(super) fn make(settings: &Settings, place: &Place) -> Result<Box<dyn Dialect>, DialectError> {
    let exact = settings.is("origin", "exact", "stricter");
    let required = settings.is("edit_hash", "required", if exact { "optional" } else { "required" });
    let absolute =
        if settings.is("allow_absolute", "true", "false") { Absolute::BelowRoot } else { Absolute::Refuse };
    let reading = Reading {
        dots: Dots::Reenter,
        absolute,
        backslash: Backslash::Plain,
        ending: Ending::Ignored,
        empty: Empty::Refuse,
        ..Reading::default()
    };
    let edit_hash = if required { EditHash::Required } else { EditHash::Optional };
    let mut definition = Definition::read(GENERATED)?;
    if edit_hash == EditHash::Optional {
        let edit =
            definition.operations.iter_mut().filter(|operation| operation.name == Tool::EditFile.name());
        edit.flat_map(|edit| &mut edit.inputs)
            .filter(|input| input.name == "expectedSha256")
            .for_each(|input| input.required = false);
    }
    Ok(Box::new(Comma {
        definition,
        workspace: place::absolute("/", &place.workspace),
        reading,
        origin: if exact { Origin::Exact } else { Origin::Stricter },
        edit_hash,
        fuzzy: if settings.is("fuzzy", "true", if exact { "true" } else { "false" }) {
            Fuzzy::On
        } else {
            Fuzzy::Off
        },
        order: if exact { Order::Collated } else { Order::Bytes },
        narrowing: Narrowing::read(settings)?,
    }))
}

/// One call as the translations see it.
struct Scene<'a> {
    tool: Tool,
    asked: Asked<'a>,
    workspace: &'a str,
    reading: &'a Reading,
    origin: Origin,
    order: Order,
}

impl<'a> Scene<'a> {
    /// The place the call is about, as it was given.
    fn spot(&self) -> &'a str {
        self.given().into_iter().next().unwrap_or(match self.tool {
            Tool::SearchFiles | Tool::Glob => ".",
            Tool::RestoreFile => self.asked.text("trashedPath"),
            Tool::ReadFile
            | Tool::ListDirectory
            | Tool::CreateFile
            | Tool::WriteFile
            | Tool::EditFile
            | Tool::DeleteFile
            | Tool::MoveFile
            | Tool::ApplyPatch => "",
        })
    }

    /// The places that the call spells, in the order in which they are judged.
    fn given(&self) -> Vec<&'a str> {
        if self.tool == Tool::ApplyPatch {
            return apply_patch::named(self.asked.text("patch"));
        }
        self.tool.places().iter().filter_map(|name| self.asked.text_maybe(name)).collect()
    }

    /// The first place that is spelled outside the workspace.
    fn outside(&self) -> Option<&'a str> {
        self.given().into_iter().find(|given| place::is_outside(self.workspace, self.reading, given))
    }

    fn refuses_absolute(&self) -> bool {
        self.reading.absolute == Absolute::Refuse
    }
}

impl Comma {
    fn scene<'a>(&'a self, tool: Tool, arguments: &'a Map<String, Value>) -> Result<Scene<'a>, Box<Sorry>> {
        let asked = Asked::read(tool, arguments, self.edit_hash)
            .map_err(|message| Box::new(Sorry::new("unknown", message).recoverable()))?;
        let scene = Scene {
            tool,
            asked,
            workspace: &self.workspace,
            reading: &self.reading,
            origin: self.origin,
            order: self.order,
        };
        match tool {
            Tool::MoveFile => move_file::objection(&scene).map_or(Ok(scene), |sorry| Err(Box::new(sorry))),
            Tool::ReadFile
            | Tool::ListDirectory
            | Tool::SearchFiles
            | Tool::Glob
            | Tool::CreateFile
            | Tool::WriteFile
            | Tool::EditFile
            | Tool::DeleteFile
            | Tool::RestoreFile
            | Tool::ApplyPatch => Ok(scene),
        }
    }

    fn terms(&self, tool: &str) -> Terms {
        Terms {
            tool: self.full_name(tool),
            reading: self.reading.clone(),
            evidence: Evidence::Bytes,
            listing: Listing::Entries(list_directory::ENTRIES_MAX),
            ..Terms::default()
        }
    }
}

impl Dialect for Comma {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn request(&self, tool: &str, arguments: &Map<String, Value>) -> Request {
        let terms = self.terms(tool);
        let refused = |operation: &str, detail: String, terms: Terms| {
            let objection = Some(Failure::new(Kind::BadRequest, detail));
            Request {
                operation: operation.to_owned(),
                arguments: arguments.clone(),
                terms: Terms { objection, ..terms },
            }
        };
        let Some(tool) = Tool::named(tool) else {
            return refused("unknown", format!("there is no tool {tool}"), terms);
        };
        let scene = match self.scene(tool, arguments) {
            Ok(scene) => scene,
            Err(sorry) => {
                let becomes = self.definition.operation(tool.name()).and_then(|tool| tool.becomes.clone());
                return refused(&becomes.unwrap_or_default(), sorry.message().to_owned(), terms);
            }
        };
        let named = |operation: &str, (arguments, terms): (Map<String, Value>, Terms)| Request {
            operation: operation.to_owned(),
            arguments,
            terms,
        };
        match tool {
            Tool::ReadFile => named("read", (object(serde_json::json!({ "path": scene.spot() })), terms)),
            Tool::ListDirectory => named("list", (list_directory::arguments(&scene), terms)),
            Tool::SearchFiles | Tool::Glob => {
                let (operation, arguments, terms) = seeking::seeking(&scene, terms);
                named(operation, (arguments, terms))
            }
            Tool::CreateFile => named("write", writing::creating(&scene, terms)),
            Tool::WriteFile => named("write", writing::writing(&scene, terms)),
            Tool::EditFile => named("edit", edit_file::editing(&scene, self.fuzzy, terms)),
            Tool::DeleteFile => named("remove", trashing::deleting(&scene, terms)),
            Tool::RestoreFile => named("restore", trashing::restoring(&scene, terms)),
            Tool::MoveFile => named("move", move_file::moving(&scene, terms)),
            Tool::ApplyPatch => named("patch", apply_patch::patching(&scene, terms)),
        }
    }

    fn reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: Result<Answer, Failure>) -> Reply {
        let Some(tool) = Tool::named(tool) else {
            return Envelope::from(Sorry::new("unknown", format!("there is no tool {tool}"))).reply();
        };
        let envelope = match (self.scene(tool, arguments), outcome) {
            (Err(sorry), _) => Envelope::Sorry(sorry),
            (Ok(scene), Err(failure)) => failed(&scene, &failure),
            (Ok(scene), Ok(answer)) => done(&scene, &answer),
        };
        envelope.reply()
    }

    fn narrow(&self, caller: &mut engine::Caller) {
        self.narrowing.narrow(caller);
    }
}

fn failed(scene: &Scene<'_>, failure: &Failure) -> Envelope {
    let particular = match scene.tool {
        Tool::SearchFiles | Tool::Glob => seeking::unreadable(scene, failure),
        Tool::EditFile => edit_file::refused(scene, failure).map(Envelope::from),
        Tool::ApplyPatch => apply_patch::refused(scene, failure).map(Envelope::from),
        Tool::ReadFile
        | Tool::ListDirectory
        | Tool::CreateFile
        | Tool::WriteFile
        | Tool::DeleteFile
        | Tool::RestoreFile
        | Tool::MoveFile => None,
    };
    particular.unwrap_or_else(|| sorry::of(scene, failure).into())
}

fn done(scene: &Scene<'_>, answer: &Answer) -> Envelope {
    match scene.tool {
        Tool::ReadFile => read_file::reply(scene, answer),
        Tool::ListDirectory => list_directory::reply(scene, answer),
        Tool::SearchFiles | Tool::Glob => seeking::reply(scene, answer),
        Tool::CreateFile => writing::created(scene, answer),
        Tool::WriteFile => writing::written(scene, answer),
        Tool::EditFile => edit_file::edited(scene, answer),
        Tool::ApplyPatch => apply_patch::applied(scene, answer),
        Tool::DeleteFile => trashing::deleted(scene, answer),
        Tool::RestoreFile => trashing::restored(scene, answer),
        Tool::MoveFile => move_file::moved(scene, answer),
    }
}

/// The fields of an object that was written as one.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}
