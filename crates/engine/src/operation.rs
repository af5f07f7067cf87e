//! What an operation is: it names the places it is about, and makes a plan from what it sees. It cannot write.

use path::RelPath;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{
    approval::{Approval, ApprovalAnswer},
    buffers::{Buffer, BufferAsk},
    desk::{DeskAsk, Desked},
    engine::Answer,
    failure::{Failure, Kind},
    plan::{Plan, Seen},
    version::Base,
    view::View,
    watching::{Watch, WatchAsk},
    workspace::{Committed, Last, Lease, LeaseAsk, Node},
};

/// What an operation does to the world: decides locking, durability and the hints faces give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing.
    Read,
    /// Adds or changes; what was there is kept.
    Write,
    /// Takes away; what was there is kept for a while.
    Destroy,
}

/// How a place is named in a call.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// By the caller, still to be resolved.
    Spelled(String),
    /// By the journal or the trash; untrusted as well, and resolved like any other.
    Known(RelPath),
}

/// What a call wants with a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Look at it or read it.
    Read,
    /// Put something there, or change what is there.
    Write,
    /// Take it away from there.
    Remove,
    /// Look at it, and let nobody change it meanwhile.
    Hold,
}

/// How far a call reaches from a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only the thing itself.
    Node,
    /// Everything below it as well: rules are judged on every descendant.
    Tree,
}

/// One place a call is about.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) place: Place,
    pub(crate) need: Need,
    pub(crate) last: Last,
    pub(crate) reach: Reach,
    pub(crate) base: Option<Base>,
}

impl Ask {
    /// A place to read, following a link in the last component.
    pub(crate) fn read(spelling: &str) -> Self {
        Self::spelled(spelling, Need::Read, Last::Follow)
    }

    /// A place to look at while nobody changes it.
    pub(crate) fn hold(spelling: &str) -> Self {
        Self::spelled(spelling, Need::Hold, Last::Follow)
    }

    /// A place to put something, following a link that ends inside.
    pub(crate) fn write(spelling: &str) -> Self {
        Self::spelled(spelling, Need::Write, Last::Follow)
    }

    pub(crate) fn spelled(spelling: &str, need: Need, last: Last) -> Self {
        Self { place: Place::Spelled(spelling.to_owned()), need, last, reach: Reach::Node, base: None }
    }

    pub(crate) fn known(path: RelPath, need: Need) -> Self {
        Self { place: Place::Known(path), need, last: Last::Keep, reach: Reach::Node, base: None }
    }

    pub(crate) fn tree(mut self) -> Self {
        self.reach = Reach::Tree;
        self
    }

    /// Adds the version the caller says it has seen.
    pub(crate) fn with_base(mut self, base: Option<&str>) -> Result<Self, Failure> {
        self.base = base.map(Base::parse).transpose()?;
        Ok(self)
    }
}

/// A resolved place beneath the root that a call will touch.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The link-free place.
    pub(crate) path: RelPath,
    /// What is there; nothing when nothing is.
    pub(crate) node: Option<Node>,
    /// The version of the file there, once checked against a base.
    pub(crate) seen: Option<Seen>,
    /// What the caller said it has seen.
    pub(crate) base: Option<Base>,
}

/// The answer of a change, made once the entry that recorded it is known.
pub(crate) type Finish = Box<dyn FnOnce(&Committed) -> Answer>;

/// The answer of a lease, made once it is recorded.
pub(crate) type FinishLease = Box<dyn FnOnce(&Lease, &Committed) -> Answer>;

/// The answer of a person's answer, made once it is recorded.
pub(crate) type FinishAnswer = Box<dyn FnOnce(&Approval, &Committed) -> Answer>;
/// The answer of something kept, made once it is recorded.
pub(crate) type FinishKept = Box<dyn FnOnce(&Desked, &Committed) -> Answer>;

/// The answer of a watch, made once it is recorded.
pub(crate) type FinishWatch = Box<dyn FnOnce(&Watch, &Committed) -> Answer>;

/// The answer of a buffer that was opened, changed or closed, made once it is recorded.
pub(crate) type FinishBuffer = Box<dyn FnOnce(&Buffer, &Committed) -> Answer>;

/// What an operation decided.
pub(crate) enum Planned {
    /// Nothing changes; this is the answer. Bytes read are counted in the journal.
    Read { answer: Answer, bytes: u64 },
    /// Nothing is changed because the caller only wanted to see the plan.
    Preview(Answer),
    /// This changes; the answer follows the commit.
    Change { plan: Plan, finish: Finish },
    /// A lease is taken or given back.
    Lease { ask: LeaseAsk, finish: FinishLease },
    /// A person answers what somebody asked.
    Answer { answer: ApprovalAnswer, finish: FinishAnswer },
    /// Something about the conversation is kept.
    Keep { ask: DeskAsk, finish: FinishKept },
    /// A watch begins or ends.
    Watch { ask: WatchAsk, finish: FinishWatch },
    /// A buffer is opened, changed or closed.
    Buffer { ask: BufferAsk, finish: FinishBuffer },
}

/// One operation, decoded from its arguments.
pub(crate) trait Operation {
    /// The places the call is about, in the order the plan receives them.
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure>;

    /// What would change, from what is seen. Called again when the world moved.
    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure>;
}

/// Decodes arguments, naming the right argument when one is unknown or missing.
pub(crate) fn decode<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, Failure> {
    T::deserialize(Value::Object(arguments.clone())).map_err(|error| {
        let message = plain(&error.to_string());
        let message = match misfit::<T>(arguments, &message) {
            Some(name) => format!("argument `{name}`: {message}"),
            None => message,
        };
        let hint = match meant(&message) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "check the argument names and types against the operation's definition".to_owned(),
        };
        Failure::new(Kind::BadRequest, message).hint(hint)
    })
}

/// The argument whose value does not fit: alone it makes the decoder say the same. Nothing for a message that names its
/// argument itself; like [`meant`] this is for people and models, and nothing else hangs on the decoder's wording.
fn misfit<'a, T: DeserializeOwned>(arguments: &'a Map<String, Value>, message: &str) -> Option<&'a String> {
    if ["unknown argument", "missing argument"].iter().any(|start| message.starts_with(start)) {
        return None;
    }
    let alone = |(name, value): &(&'a String, &Value)| {
        let alone = Map::from_iter([((*name).clone(), (*value).clone())]);
        T::deserialize(Value::Object(alone)).is_err_and(|error| error.to_string() == message)
    };
    arguments.iter().find(alone).map(|(name, _)| name)
}

/// Serde speaks of fields; callers know arguments.
fn plain(message: &str) -> String {
    message.replace("unknown field", "unknown argument").replace("missing field", "missing argument")
}

/// The known argument nearest to an unknown one. The decoder's message is the only place that lists both; when its
/// wording changes, the suggestion goes away and nothing else.
fn meant(message: &str) -> Option<&str> {
    let listed = message.strip_prefix("unknown argument ")?;
    let mut names = listed.split('`').skip(1).step_by(2);
    let given = names.next()?;
    nearest(given, names)
}

/// Most single-character edits between a name and the one that was meant.
const EDITS_MAX: usize = 2;

/// The name that is contained in the given one or contains it, or else the one with the fewest edits.
pub(crate) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let given = given.to_lowercase();
    let akin = |name: &&str| given.contains(*name) || (given.len() > 1 && name.contains(given.as_str()));
    let by_edits = |name: &'a str| (edits(given.as_bytes(), name.as_bytes()), name);
    let few = |(edits, name): &(usize, &str)| *edits <= EDITS_MAX && edits * 2 <= name.len();
    known
        .clone()
        .filter(akin)
        .max_by_key(|name| name.len())
        .or_else(|| known.map(by_edits).filter(few).min().map(|(_, name)| name))
}

/// How many bytes must be added, taken away or changed to make one name of the other.
pub(crate) fn edits(from: &[u8], to: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_argument_that_does_not_fit_is_named() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Asked {
            #[expect(dead_code, reason = "only decoded")]
            path: String,
            #[expect(dead_code, reason = "only decoded")]
            max: Option<u64>,
        }
        for (arguments, expected) in [
            (json!({ "path": 5 }), "argument `path`: invalid type: integer `5`, expected a string"),
            (json!({ "path": "a", "max": "b" }), "argument `max`: invalid type: string \"b\", expected u64"),
            (json!({ "max": 1 }), "missing argument `path`"),
            (json!({ "path": "a", "x": 1 }), "unknown argument `x`, expected `path` or `max`"),
        ] {
            let arguments = arguments.as_object().expect("an object");
            assert_eq!(decode::<Asked>(arguments).expect_err("a misfit").detail, expected);
        }
    }

    #[test]
    fn the_nearest_argument_is_named() {
        let known = ["path", "lines", "bytes", "as"];
        for (given, expected) in [
            ("file_path", Some("path")),
            ("PATH", Some("path")),
            ("pth", Some("path")),
            ("line", Some("lines")),
            ("byte_range", None),
            ("x", None),
            ("encoding", None),
        ] {
            assert_eq!(nearest(given, known.into_iter()), expected, "{given}");
        }
        assert_eq!(meant("unknown argument `pat`, expected `path`"), Some("path"));
        assert_eq!(meant("missing argument `path`"), None);
    }
}
