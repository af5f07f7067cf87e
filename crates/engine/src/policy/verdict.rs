//! The verdict of the policy and its reason, so that an error can name the rule.

use serde_json::{Value, json};

use super::{Policy, PolicyTier};

/// A tier and its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyVerdict {
    /// The tier of the call.
    pub tier: PolicyTier,
    /// The source of the tier.
    pub reason: PolicyReason,
}

/// The source of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyReason {
    /// The tool's declared tier; autonomous if it has none.
    ToolDefault,
    /// The default of a layer.
    LayerDefault {
        /// Index of the layer.
        layer: usize,
    },
    /// A rule.
    Rule {
        /// Index of the layer.
        layer: usize,
        /// Index of the rule within the layer.
        rule: usize,
    },
    /// The built-in protection of a path that other programs execute or obey.
    ProtectedPath(&'static [&'static str]),
    /// A rate limit was reached.
    RateLimit {
        /// Index of the layer.
        layer: usize,
    },
    /// The call itself requests or answers approvals.
    ApprovalCall,
}

/// Operations that request or answer approvals. If they needed approval, nobody could answer anything.
const APPROVAL_OPERATIONS: &[&str] =
    &["session", "events", "alert", "alerts", "respond", "policy", "approvals", "approve", "deny"];

impl PolicyVerdict {
    /// The verdict if nothing restricts a call.
    pub(crate) const UNRESTRICTED: PolicyVerdict =
        PolicyVerdict { tier: PolicyTier::Autonomous, reason: PolicyReason::ToolDefault };

    /// The stricter of two; the first if they are equal.
    #[must_use]
    pub(crate) fn stricter_of(self, other: PolicyVerdict) -> PolicyVerdict {
        if other.tier > self.tier { other } else { self }
    }

    /// Lifts a required approval for operations that request or answer approvals; they can still be blocked.
    #[must_use]
    pub(super) fn for_operation(self, operation: &str) -> PolicyVerdict {
        if self.tier == PolicyTier::ApprovalRequired && APPROVAL_OPERATIONS.contains(&operation) {
            return PolicyVerdict { tier: PolicyTier::Autonomous, reason: PolicyReason::ApprovalCall };
        }
        self
    }
}

impl PolicyReason {
    /// The reason in words, fit to follow "because of".
    pub fn describe(&self, policy: &Policy) -> String {
        match self {
            PolicyReason::ToolDefault => "the tool's own tier, as no rule matches this call".to_owned(),
            PolicyReason::LayerDefault { layer } => {
                format!("the default of the {} layer, as no rule matches this call", policy.layer_name(*layer))
            }
            PolicyReason::Rule { layer, rule } => match policy.rule(*layer, *rule) {
                Some(rule) => {
                    format!("rule '{}' of the {} layer (line {})", rule.name, policy.layer_name(*layer), rule.line)
                }
                None => format!("a rule of the {} layer", policy.layer_name(*layer)),
            },
            PolicyReason::ProtectedPath(place) => format!(
                "built-in rule 'protected places' of the system layer: files in {} can execute code (hooks, configuration)",
                place.join("/")
            ),
            PolicyReason::RateLimit { layer } => {
                format!("the rate limit of the {} layer, which is exceeded", policy.layer_name(*layer))
            }
            PolicyReason::ApprovalCall => "calls that request or answer approvals never need approval".to_owned(),
        }
    }

    /// The reason for authors of rules: its kind, and the line of a rule.
    pub(crate) fn to_json(self, policy: &Policy) -> Value {
        match self {
            PolicyReason::ToolDefault => json!({ "by": "definition" }),
            PolicyReason::LayerDefault { .. } => json!({ "by": "default" }),
            PolicyReason::Rule { layer, rule } => {
                json!({ "by": "rule", "line": policy.rule(layer, rule).map(|rule| rule.line) })
            }
            PolicyReason::ProtectedPath(_) => json!({ "by": "protected" }),
            PolicyReason::RateLimit { .. } => json!({ "by": "rate" }),
            PolicyReason::ApprovalCall => json!({ "by": "answering" }),
        }
    }

    /// The short name of the rule, for programs and one-line notes.
    pub fn short_name(&self, policy: &Policy) -> String {
        match self {
            PolicyReason::ToolDefault => "definition".to_owned(),
            PolicyReason::LayerDefault { .. } => "default".to_owned(),
            PolicyReason::Rule { layer, rule } => {
                policy.rule(*layer, *rule).map_or_else(String::new, |rule| rule.name.clone())
            }
            PolicyReason::ProtectedPath(_) => "protected places".to_owned(),
            PolicyReason::RateLimit { .. } => "rate".to_owned(),
            PolicyReason::ApprovalCall => "answering".to_owned(),
        }
    }
}
