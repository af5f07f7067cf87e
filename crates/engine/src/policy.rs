//! Which calls may run, which must be told, which wait for a person. Pure: rules and a call in, a verdict out.
//!
//! Layers stand above each other: system, organisation, agent. Within one the first rule that fits decides; across them
//! the strictest wins; where no rule fits, the tier of the tool's definition and the defaults of the layers hold. The
//! system layer has a built-in part: agents need approval for protected places, and only a rule that names such a place
//! says otherwise.

mod names;
mod parse;
pub(crate) mod rates;
mod rule;
mod tier;
mod why;

use std::sync::Arc;

use path::RelPath;

pub use parse::PolicyError;
pub use rule::Right;
pub(crate) use rule::{Action, Asked};
use rule::{Patterns, Rule};
pub use tier::{Tier, UnknownTier};
pub use why::{Verdict, Why};

use crate::{caller::Principal, plan::Top, protected, quota::Quota, workspace::Stamp};

/// Everything one policy file says.
#[derive(Debug, Clone)]
pub struct Policy {
    version: u64,
    layers: Vec<Layer>,
    reading: Reading,
}

/// Whether a policy has rules about looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Free,
    Ruled,
}

/// One layer.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    /// Its name, as refusals show it.
    pub(crate) name: String,
    kind: LayerKind,
    /// Whom it is about; nothing means everybody.
    whom: Option<Patterns>,
    default: Option<Tier>,
    rules: Vec<Rule>,
    rates: Vec<Rate>,
    quota: Quota,
    retention: Retained,
}

/// Which layer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LayerKind {
    System,
    Organisation,
    Agent,
}

/// So many calls in so much time, and what happens beyond.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    pub(crate) calls: u64,
    pub(crate) per_ms: i64,
    pub(crate) then: Tier,
    pub(crate) operations: Option<Patterns>,
    pub(crate) rights: Option<Vec<Right>>,
}

/// How long removed things stay, where a layer says so.
#[derive(Debug, Clone, Copy, Default)]
struct Retained {
    agent_ms: Option<i64>,
    user_ms: Option<i64>,
}

/// The policy that holds now, and where its file is when an agent could reach it.
#[derive(Debug, Clone)]
pub struct InForce {
    /// What it says.
    pub policy: Arc<Policy>,
    /// Its file, when that lies inside the workspace.
    pub place: Option<PolicyPlace>,
}

/// A policy file inside the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyPlace {
    /// Where it is.
    pub path: RelPath,
    /// Which file it is, by whatever other name.
    pub identity: (u64, u64),
}

impl InForce {
    /// What holds where nobody has said anything.
    pub fn built_in() -> Self {
        Self { policy: Arc::new(Policy::built_in()), place: None }
    }

    /// Whether this place, or the thing there, is the policy file itself.
    pub(crate) fn is_policy(&self, path: &RelPath, stamp: Option<Stamp>) -> bool {
        self.place.as_ref().is_some_and(|place| {
            place.path == *path || stamp.is_some_and(|stamp| stamp.identity == place.identity)
        })
    }

    /// Whether the policy file lies at or below this place.
    pub(crate) fn is_below(&self, path: &RelPath) -> bool {
        self.place.as_ref().is_some_and(|place| place.path.is_within(path))
    }
}

impl Policy {
    /// What holds where nobody has said anything. Its version is 1.
    pub fn built_in() -> Self {
        Self { version: BUILT_IN_VERSION, layers: Vec::new(), reading: Reading::Free }
    }

    /// Reads a policy file.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        parse::policy(text)
    }

    fn of(version: u64, mut layers: Vec<Layer>) -> Self {
        layers.sort_by_key(|layer| match layer.kind {
            LayerKind::System => 0,
            LayerKind::Organisation => 1,
            LayerKind::Agent => 2,
        });
        let ruled = layers.iter().any(|layer| {
            layer.rules.iter().any(|rule| rule.may_concern(Right::Read) || rule.may_concern(Right::List))
        });
        let reading = if ruled { Reading::Ruled } else { Reading::Free };
        Self { version, layers, reading }
    }

    /// Whether nothing but the built-in part holds.
    pub(crate) fn is_built_in(&self) -> bool {
        self.layers.is_empty()
    }

    /// Which text this is: the start of its sha256.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether some rule is about looking, so that every look must be judged.
    pub(crate) fn rules_reading(&self) -> bool {
        self.reading == Reading::Ruled
    }

    /// The tier of one action of one call.
    pub(crate) fn judge(&self, asked: &Asked<'_>, action: &Action<'_>) -> Verdict {
        let opinions = self.opinions(asked, action);
        let verdict = opinions.reduce(Verdict::stricter).unwrap_or_else(|| self.unruled(asked));
        verdict.for_operation(asked.operation)
    }

    /// What each layer says of an action; a layer without a fitting rule says nothing.
    pub(crate) fn opinions<'a>(
        &'a self,
        asked: &'a Asked<'_>,
        action: &'a Action<'_>,
    ) -> impl Iterator<Item = Verdict> + 'a {
        let protected = action.protected(asked);
        // Only a rule of the system layer that names the protected place lifts the protection.
        let lifted = protected.is_some_and(|place| {
            self.applying(asked)
                .filter(|(_, layer)| layer.kind == LayerKind::System)
                .any(|(_, layer)| layer.first(asked, action).is_some_and(|(_, rule)| rule.names(place)))
        });
        let built_in = protected
            .filter(|_| !lifted)
            .map(|place| Verdict { tier: Tier::ApprovalRequired, why: Why::Protected(place) });
        let ruled = self.applying(asked).filter_map(|(at, layer)| {
            let (place, rule) = layer.first(asked, action)?;
            Some(Verdict { tier: rule.tier, why: Why::Rule { layer: at, rule: place } })
        });
        built_in.into_iter().chain(ruled)
    }

    /// What holds where no rule fits: what the tool's definition says, and no less than any layer's default.
    fn unruled(&self, asked: &Asked<'_>) -> Verdict {
        let declared = Verdict { tier: asked.declared.unwrap_or_default(), why: Why::Definition };
        let defaults = self.applying(asked).filter_map(|(at, layer)| {
            layer.default.map(|tier| Verdict { tier, why: Why::Default { layer: at } })
        });
        defaults.fold(declared, Verdict::stricter)
    }

    fn applying<'a>(&'a self, asked: &'a Asked<'_>) -> impl Iterator<Item = (usize, &'a Layer)> {
        self.layers.iter().enumerate().filter(|(_, layer)| layer.is_about(asked.principal))
    }

    /// What a tree that comes back from the trash may hold is not known: every rule that could fit something below a
    /// place is taken to fit.
    pub(crate) fn judge_unseen(&self, asked: &Asked<'_>, action: &Action<'_>) -> Verdict {
        let possible = self.applying(asked).flat_map(|(at, layer)| {
            let fitting = layer.rules.iter().enumerate().filter(|(_, rule)| rule.could_fit(asked, action));
            fitting.map(move |(place, rule)| Verdict {
                tier: rule.tier,
                why: Why::Rule { layer: at, rule: place },
            })
        });
        possible.fold(self.judge(asked, action), Verdict::stricter)
    }

    /// The rates that bind a call, each with the layer it is of.
    pub(crate) fn rates<'a>(&'a self, asked: &'a Asked<'_>) -> impl Iterator<Item = (usize, &'a Rate)> {
        let of_layer = |(at, layer): (usize, &'a Layer)| layer.rates.iter().map(move |rate| (at, rate));
        self.applying(asked).flat_map(of_layer)
    }

    /// How much there may be when this principal adds to it; nothing where no layer limits anybody.
    pub fn quota(&self, principal: &Principal) -> Option<Quota> {
        let about = self.layers.iter().filter(|layer| layer.is_about(principal));
        self.has_quota().then(|| about.map(|layer| layer.quota).fold(Quota::default(), Quota::stricter))
    }

    /// Whether any layer limits anything for anybody.
    pub fn has_quota(&self) -> bool {
        self.layers.iter().any(|layer| layer.quota != Quota::default())
    }

    /// How long what this principal removes stays recoverable: as long as the strictest layer says, or as ever.
    pub(crate) fn trash_ms(&self, principal: &Principal) -> i64 {
        let said =
            self.layers.iter().filter(|layer| layer.is_about(principal)).filter_map(
                |layer| match principal {
                    Principal::Agent(_) => layer.retention.agent_ms,
                    Principal::User(_) | Principal::System | Principal::Outside => layer.retention.user_ms,
                },
            );
        said.min().unwrap_or_else(|| principal.trash_ms())
    }

    /// Whether a tool can never run for this principal, wherever it points: it need not be offered.
    pub fn never(&self, principal: &Principal, operation: &str, tool: Option<&str>) -> bool {
        let asked = Asked { principal, operation, tool, declared: None };
        self.applying(&asked).any(|(_, layer)| layer.blocks_all(&asked))
    }

    /// The name of a layer.
    pub(crate) fn layer(&self, at: usize) -> &str {
        self.layers.get(at).map_or("built-in", |layer| layer.name.as_str())
    }

    /// One rule, with its name and line.
    pub(crate) fn rule(&self, layer: usize, rule: usize) -> Option<&Rule> {
        self.layers.get(layer)?.rules.get(rule)
    }

    /// Every rule that could bind this principal, with the name of its layer.
    pub(crate) fn rules_for<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> impl Iterator<Item = (&'a str, &'a Rule)> {
        let about = self.layers.iter().filter(|layer| layer.is_about(principal));
        about
            .flat_map(|layer| layer.rules.iter().map(|rule| (layer.name.as_str(), rule)))
            .filter(|(_, rule)| rule.is_about(principal))
    }
}

/// The version of the policy that holds where nobody has said anything.
const BUILT_IN_VERSION: u64 = 1;

impl Layer {
    fn is_about(&self, principal: &Principal) -> bool {
        self.whom.as_ref().is_none_or(|whom| whom.fit(&principal.to_string()))
    }

    fn first(&self, asked: &Asked<'_>, action: &Action<'_>) -> Option<(usize, &Rule)> {
        self.rules.iter().enumerate().find(|(_, rule)| rule.fits(asked, action))
    }

    /// Whether the first rule about a tool blocks it wherever it points.
    fn blocks_all(&self, asked: &Asked<'_>) -> bool {
        let about = |rule: &&Rule| rule.is_about(asked.principal) && rule.is_of(asked);
        match self.rules.iter().find(about) {
            Some(rule) => rule.tier == Tier::Blocked && rule.is_unconditional(),
            None => false,
        }
    }
}

impl Action<'_> {
    /// The protected place that an agent would change with this.
    fn protected(&self, asked: &Asked<'_>) -> Option<&'static [&'static str]> {
        match (asked.principal, self.right) {
            (Principal::Agent(_), Right::Create | Right::Modify | Right::Delete) => match self.below {
                Below::Nothing => protected::place(self.path),
                Below::Unseen => protected::place(self.path).or_else(|| protected::leading(self.path)),
            },
            (Principal::Agent(_), Right::List | Right::Read) => None,
            (Principal::User(_) | Principal::System | Principal::Outside, _) => None,
        }
    }
}

/// Whether an action brings more than its own place along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    /// No, or what is below is judged by itself.
    Nothing,
    /// A tree that cannot be looked through.
    Unseen,
}

/// What it takes to look at a thing.
pub(crate) fn looking(top: Option<Top>) -> Right {
    match top {
        Some(Top::Directory) => Right::List,
        Some(Top::File | Top::Link | Top::Special) | None => Right::Read,
    }
}
