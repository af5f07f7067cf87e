//! `weaver`: five tools whose every answer is one text with a few marks: for whom it is and whether it is an error.
//! Owns the translation of both published generations: 0.1.2, which the document shows, and the newest one.
//!
//! Promises the published sentences to the letter, and one stricter answer: a link that leads out of the workspace is
//! refused for writing too, even when nothing is there yet.

use engine::{Answer, Evidence, Failure, Kind, Listing, Parents, Privacy, Terms, Unseen, editing::Rules};
use path::{Absolute, Backslash, Dots, Empty, Ending, Reading, RelPath};
use serde_json::{Map, Value};

use super::{Dialect, DialectError, Place, Reach, Reply, Request, Settings, Verdict};
use crate::definition::Definition;

mod asked;
mod newest;
mod pages;
mod sentence;
mod spot;

use asked::{Asked, Tool};
use pages::Paging;
use spot::Spot;

/// What was generated for it.
const GENERATED: &str = include_str!("../generated/weaver.json");
/// Most entries of one listing; the last line says when there are more.
const LIST_ENTRIES_MAX: usize = 100_000;

/// Which generation of the origin speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    /// 0.1.2: whole files, written over.
    First,
    /// The newest: pages with headers, and no overwriting unless asked.
    Newest,
}

/// The vocabulary, as it is set.
pub(super) struct Weaver {
    definition: Definition,
    /// The absolute spelling of the workspace.
    workspace: String,
    reach: Reach,
    generation: Generation,
    paging: Paging,
}

/// Makes it from its settings.
pub(super) fn make(settings: &Settings, place: &Place) -> Result<Box<dyn Dialect>, DialectError> {
    let generation =
        if settings.is("generation", "newest", "0.1.2") { Generation::Newest } else { Generation::First };
    let reach = if settings.is("restrict", "false", "true") { Reach::Machine } else { Reach::Workspace };
    let paging = Paging::from_settings(settings)?;
    let mut definition = Definition::read(GENERATED)?;
    for operation in &mut definition.operations {
        operation.inputs.retain(|input| asked::is_taken(&input.name, generation, paging.unit));
    }
    let workspace = spot::cleaned("/", &place.workspace);
    Ok(Box::new(Weaver { definition, workspace, reach, generation, paging }))
}

impl Weaver {
    /// How the origin reads a path.
    fn reading(&self) -> Reading {
        let home = match self.reach {
            Reach::Workspace => RelPath::root(),
            Reach::Machine => RelPath::from_components(
                self.workspace.split('/').filter(|name| !name.is_empty()).map(str::as_bytes),
            )
            .unwrap_or_default(),
        };
        let dots = match (self.generation, &self.reach) {
            (Generation::Newest, Reach::Workspace) => Dots::Fold,
            (Generation::First | Generation::Newest, _) => Dots::Reenter,
        };
        Reading {
            home,
            dots,
            absolute: Absolute::BelowRoot,
            backslash: Backslash::Plain,
            ending: Ending::Ignored,
            empty: Empty::Home,
        }
    }

    fn terms(&self, tool: &str) -> Terms {
        Terms {
            tool: self.full_name(tool),
            reading: self.reading(),
            unseen: Unseen::Yields,
            listing: Listing::Entries(LIST_ENTRIES_MAX),
            editing: Rules::LITERAL,
            privacy: match self.generation {
                Generation::First => Privacy::AsUsual,
                Generation::Newest => Privacy::OwnerOnly,
            },
            evidence: Evidence::Bytes,
            ..Terms::default()
        }
    }

    fn asked<'a>(&self, tool: &str, arguments: &'a Map<String, Value>) -> Result<Asked<'a>, String> {
        Asked::read(tool, arguments, self.generation, self.paging)
    }

    fn spot<'a>(&'a self, path: &'a str) -> Spot<'a> {
        Spot { workspace: &self.workspace, given: path }
    }

    /// The sentence for a call that failed.
    fn sorry(&self, asked: &Asked<'_>, failure: &Failure) -> String {
        match self.generation {
            Generation::First => sentence::of(asked, &self.spot(asked.path()), &self.reach, failure),
            Generation::Newest => newest::sentence(asked, &self.spot(asked.path()), failure),
        }
    }

    /// What is said of a call that succeeded.
    fn said(&self, asked: &Asked<'_>, answer: &Answer) -> Said {
        match asked.tool() {
            Tool::ReadFile => {
                let bytes =
                    answer.evidence.first().and_then(|held| held.before.as_deref()).unwrap_or_default();
                match self.generation {
                    Generation::First => Said::told(as_origin_text(bytes)),
                    Generation::Newest => pages::page(asked, self.paging, bytes, answer),
                }
            }
            Tool::ListDir => Said::told(listing(answer)),
            Tool::WriteFile => Said::silent(format!("File written: {}", asked.path())),
            Tool::AppendFile => Said::silent(format!("Appended to {}", asked.path())),
            Tool::EditFile => match self.generation {
                Generation::First => Said::silent(format!("File edited: {}", asked.path())),
                Generation::Newest => newest::edited(asked.path(), answer),
            },
        }
    }
}

impl Dialect for Weaver {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn request(&self, tool: &str, arguments: &Map<String, Value>) -> Request {
        let terms = self.terms(tool);
        match self.asked(tool, arguments) {
            Ok(asked) => {
                let parents = match (asked.tool(), self.generation) {
                    (Tool::AppendFile, Generation::First) => Parents::Required,
                    (_, Generation::First | Generation::Newest) => Parents::Made,
                };
                let terms = Terms { parents, ..terms };
                Request { operation: asked.operation().to_owned(), arguments: asked.arguments(), terms }
            }
            Err(sentence) => {
                let objection = Some(Failure::new(Kind::BadRequest, sentence));
                let operation = Tool::named(tool).map_or("unknown", Tool::operation).to_owned();
                Request { operation, arguments: arguments.clone(), terms: Terms { objection, ..terms } }
            }
        }
    }

    fn reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: Result<Answer, Failure>) -> Reply {
        let said = match (self.asked(tool, arguments), outcome) {
            (Err(sentence), _) => Said::error(sentence),
            (Ok(asked), Err(failure)) => Said::error(self.sorry(&asked, &failure)),
            (Ok(asked), Ok(answer)) => self.said(&asked, &answer),
        };
        said.reply()
    }

    fn reach(&self) -> Reach {
        self.reach.clone()
    }
}

/// One answer: a text and its marks.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    for_llm: String,
    for_user: String,
    mark: Mark,
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// A text for the model, and perhaps one for the person.
    Told,
    /// Only for the model.
    Silent,
    /// An error.
    Error,
}

impl Said {
    fn told(for_llm: String) -> Self {
        Self { for_llm, for_user: String::new(), mark: Mark::Told }
    }

    fn silent(for_llm: String) -> Self {
        Self { for_llm, for_user: String::new(), mark: Mark::Silent }
    }

    fn error(for_llm: String) -> Self {
        Self { for_llm, for_user: String::new(), mark: Mark::Error }
    }

    /// The origin's result object; an empty text for the person is left out.
    fn reply(self) -> Reply {
        let mut json = Map::new();
        json.insert("for_llm".into(), self.for_llm.clone().into());
        if !self.for_user.is_empty() {
            json.insert("for_user".into(), self.for_user.into());
        }
        json.insert("silent".into(), (self.mark == Mark::Silent).into());
        json.insert("is_error".into(), (self.mark == Mark::Error).into());
        json.insert("async".into(), false.into());
        let verdict = match self.mark {
            Mark::Error => Verdict::Error,
            Mark::Told | Mark::Silent => Verdict::Fine,
        };
        Reply { json, text: self.for_llm, verdict }
    }
}

/// Bytes as the origin's JSON shows them: every byte that is no text is one replacement character.
fn as_origin_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// One line for each entry, in the order of their bytes. A link is a file, wherever it leads.
fn listing(answer: &Answer) -> String {
    let entries = answer.json.get("entries").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut text = String::new();
    for entry in entries {
        let word = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let place = RelPath::from_wire(word("path")).unwrap_or_default();
        let name = place.components().next_back().map(as_origin_text).unwrap_or_default();
        text.push_str(if word("type") == "directory" { "DIR:  " } else { "FILE: " });
        text.push_str(&name);
        text.push('\n');
    }
    if answer.json.get("truncated") == Some(&Value::Bool(true)) {
        text.push_str(&format!("[TRUNCATED - more than {LIST_ENTRIES_MAX} entries]\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_that_is_no_text_is_one_mark() {
        assert_eq!(as_origin_text(b"a\xe2\x82b"), "a\u{fffd}\u{fffd}b");
        assert_eq!(as_origin_text("ä".as_bytes()), "ä");
    }

    #[test]
    fn an_empty_text_for_the_person_is_left_out() {
        let reply = Said::silent("x".to_owned()).reply();
        let expected =
            serde_json::json!({ "for_llm": "x", "silent": true, "is_error": false, "async": false });
        assert_eq!(Value::Object(reply.json), expected);
        assert_eq!(Said::error("x".to_owned()).reply().verdict, Verdict::Error);
    }
}
