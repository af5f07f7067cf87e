//! Why a tier holds, so that a refusal can name the rule.

use serde_json::{Value, json};

use super::{Policy, Tier};

/// A tier and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// How far the caller may go alone.
    pub tier: Tier,
    /// Where that comes from.
    pub why: Why,
}

/// Where a tier comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// What the tool's definition says; autonomous where it says nothing.
    Definition,
    /// The default of a layer.
    Default {
        /// Which layer, counted from 0.
        layer: usize,
    },
    /// A rule.
    Rule {
        /// Which layer, counted from 0.
        layer: usize,
        /// Which of its rules, counted from 0.
        rule: usize,
    },
    /// A place that other programs run or obey.
    Protected(&'static [&'static str]),
    /// A rate of a layer is used up.
    Rate {
        /// Which layer, counted from 0.
        layer: usize,
    },
    /// It belongs to asking and answering itself.
    Answering,
}

/// The calls by which people are asked, answer, and are heard. Were they asked about, nobody could answer anything.
const ANSWERING: &[&str] =
    &["session", "events", "alert", "alerts", "respond", "policy", "approvals", "approve", "deny"];

impl Verdict {
    /// The tier that holds where nothing is said.
    pub(crate) const FREE: Verdict = Verdict { tier: Tier::Autonomous, why: Why::Definition };

    /// The stricter of two; the first where they are equal.
    #[must_use]
    pub(crate) fn stricter(self, other: Verdict) -> Verdict {
        if other.tier > self.tier { other } else { self }
    }

    /// What it means for an operation: those that belong to asking and answering may be blocked and are never asked about.
    #[must_use]
    pub(super) fn for_operation(self, operation: &str) -> Verdict {
        if self.tier == Tier::ApprovalRequired && ANSWERING.contains(&operation) {
            return Verdict { tier: Tier::Autonomous, why: Why::Answering };
        }
        self
    }
}

impl Why {
    /// What refusals and explanations show: it can stand after "because of".
    pub fn sentence(&self, policy: &Policy) -> String {
        match self {
            Why::Definition => "the tool's own tier, as no rule is about this call".to_owned(),
            Why::Default { layer } => {
                format!("the default of the {} layer, as no rule is about this call", policy.layer(*layer))
            }
            Why::Rule { layer, rule } => match policy.rule(*layer, *rule) {
                Some(rule) => {
                    format!("rule '{}' of the {} layer (line {})", rule.name, policy.layer(*layer), rule.line)
                }
                None => format!("a rule of the {} layer", policy.layer(*layer)),
            },
            Why::Protected(place) => format!(
                "built-in rule 'protected places' of the system layer: other programs run or obey what is in {}",
                place.join("/")
            ),
            Why::Rate { layer } => {
                format!("the rate limit of the {} layer, which is used up", policy.layer(*layer))
            }
            Why::Answering => "nobody is asked about a call by which people are asked and answer".to_owned(),
        }
    }

    /// The same for whoever writes a rule about it: what it is, and the line of a rule.
    pub(crate) fn cause(&self, policy: &Policy) -> Value {
        match self {
            Why::Definition => json!({ "by": "definition" }),
            Why::Default { .. } => json!({ "by": "default" }),
            Why::Rule { layer, rule } => {
                json!({ "by": "rule", "line": policy.rule(*layer, *rule).map(|rule| rule.line) })
            }
            Why::Protected(_) => json!({ "by": "protected" }),
            Why::Rate { .. } => json!({ "by": "rate" }),
            Why::Answering => json!({ "by": "answering" }),
        }
    }

    /// The short name of the rule, for machines and one-line notes.
    pub fn name(&self, policy: &Policy) -> String {
        match self {
            Why::Definition => "definition".to_owned(),
            Why::Default { .. } => "default".to_owned(),
            Why::Rule { layer, rule } => {
                policy.rule(*layer, *rule).map_or_else(String::new, |rule| rule.name.clone())
            }
            Why::Protected(_) => "protected places".to_owned(),
            Why::Rate { .. } => "rate".to_owned(),
            Why::Answering => "answering".to_owned(),
        }
    }
}
