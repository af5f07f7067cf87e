//! What an operation is: it names the places it is about, and makes a plan from what it sees. It cannot write.

use path::RelPath;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{
    engine::Answer,
    failure::{Failure, Kind},
    plan::{Plan, Seen},
    version::Base,
    view::View,
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
        Failure::new(Kind::BadRequest, plain(&error.to_string()))
            .hint("check the argument names and types against the operation's definition")
    })
}

/// Serde speaks of fields; callers know arguments.
fn plain(message: &str) -> String {
    message.replace("unknown field", "unknown argument").replace("missing field", "missing argument")
}
