//! The verdict of the policy: a tier, and the rule or default that gave the tier. Errors name this rule.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Policy;

/// How freely a call may run, from the freest tier to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisionTier {
    /// The call runs.
    #[default]
    Autonomous,
    /// The call runs and is reported to supervisors.
    Notify,
    /// The call runs once a person has approved exactly this plan.
    ApprovalRequired,
    /// The call does not run.
    Blocked,
}

impl SupervisionTier {
    /// Every tier, from the freest to the strictest.
    pub const ALL: &[SupervisionTier] = &[
        SupervisionTier::Autonomous,
        SupervisionTier::Notify,
        SupervisionTier::ApprovalRequired,
        SupervisionTier::Blocked,
    ];

    /// The word for the tier in definitions, policies and results.
    pub fn as_str(self) -> &'static str {
        match self {
            SupervisionTier::Autonomous => "autonomous",
            SupervisionTier::Notify => "notify",
            SupervisionTier::ApprovalRequired => "approval_required",
            SupervisionTier::Blocked => "blocked",
        }
    }
}

impl fmt::Display for SupervisionTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a word that names no tier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tier '{0}'; tiers are autonomous, notify, approval_required and blocked")]
pub struct UnknownPolicyTier(String);

impl FromStr for SupervisionTier {
    type Err = UnknownPolicyTier;

    fn from_str(text: &str) -> Result<Self, UnknownPolicyTier> {
        let known = SupervisionTier::ALL.iter().find(|tier| tier.as_str() == text);
        known.copied().ok_or_else(|| UnknownPolicyTier(text.chars().take(64).collect()))
    }
}
/// The tier of a call, and the reason for this tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyVerdict {
    /// The tier of the call.
    pub tier: SupervisionTier,
    /// The rule or default that gave the tier.
    pub reason: PolicyVerdictReason,
}

/// The rule or default that gave a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyVerdictReason {
    /// No rule matched, so the tier in the tool's definition applies. If the definition has no tier, the tier is
    /// autonomous.
    ToolDefault,
    /// No rule matched, so the default tier of a layer applies.
    LayerDefault {
        /// Index of the layer.
        layer: usize,
    },
    /// A rule of the policy file matched.
    Rule {
        /// Index of the layer.
        layer: usize,
        /// Index of the rule within the layer.
        rule: usize,
    },
    /// The built-in rule applies to a path whose files can execute code.
    ProtectedPath(&'static [&'static str]),
    /// A rate limit was reached.
    RateLimit {
        /// Index of the layer.
        layer: usize,
    },
    /// The operation requests or answers approvals and therefore needs no approval itself.
    ApprovalCall,
}

/// Operations that request or answer approvals. If these operations needed approval themselves, no request could be
/// answered.
const APPROVAL_OPERATIONS: &[&str] =
    &["session", "events", "alert", "alerts", "respond", "policy", "approvals", "approve", "deny"];

impl PolicyVerdict {
    /// The verdict on a call that nothing restricts.
    pub(crate) const UNRESTRICTED: PolicyVerdict =
        PolicyVerdict { tier: SupervisionTier::Autonomous, reason: PolicyVerdictReason::ToolDefault };

    /// The verdict with the stricter tier; `self` if the tiers are equal.
    #[must_use]
    pub(crate) fn stricter_of(self, other: PolicyVerdict) -> PolicyVerdict {
        if other.tier > self.tier { other } else { self }
    }

    /// The verdict for this operation. Operations that request or answer approvals need no approval themselves, but
    /// they can still be blocked.
    #[must_use]
    pub(super) fn for_operation(self, operation: &str) -> PolicyVerdict {
        if self.tier == SupervisionTier::ApprovalRequired && APPROVAL_OPERATIONS.contains(&operation) {
            return PolicyVerdict { tier: SupervisionTier::Autonomous, reason: PolicyVerdictReason::ApprovalCall };
        }
        self
    }
}

impl PolicyVerdictReason {
    /// A description of the reason, which completes a sentence such as "notes.txt is blocked by …".
    pub fn describe(&self, policy: &Policy) -> String {
        match self {
            PolicyVerdictReason::ToolDefault => "the tool's own tier, as no rule matches this call".to_owned(),
            PolicyVerdictReason::LayerDefault { layer } => {
                format!("the default of the {} layer, as no rule matches this call", policy.layer_name(*layer))
            }
            PolicyVerdictReason::Rule { layer, rule } => match policy.rule(*layer, *rule) {
                Some(rule) => {
                    format!("rule '{}' of the {} layer (line {})", rule.name, policy.layer_name(*layer), rule.line)
                }
                None => format!("a rule of the {} layer", policy.layer_name(*layer)),
            },
            PolicyVerdictReason::ProtectedPath(path) => format!(
                "built-in rule 'protected places' of the system layer: files in {} can execute code (hooks, configuration)",
                path.join("/")
            ),
            PolicyVerdictReason::RateLimit { layer } => {
                format!("the exceeded rate limit of the {} layer", policy.layer_name(*layer))
            }
            PolicyVerdictReason::ApprovalCall => {
                "calls that request or answer approvals never need approval".to_owned()
            }
        }
    }

    /// The reason as JSON, for people who write policy rules. The JSON has the kind of the reason and, if the reason is
    /// a rule, the line of the rule in the policy file.
    pub(crate) fn to_json(self, policy: &Policy) -> Value {
        match self {
            PolicyVerdictReason::ToolDefault => json!({ "by": "definition" }),
            PolicyVerdictReason::LayerDefault { .. } => json!({ "by": "default" }),
            PolicyVerdictReason::Rule { layer, rule } => {
                json!({ "by": "rule", "line": policy.rule(layer, rule).map(|rule| rule.line) })
            }
            PolicyVerdictReason::ProtectedPath(_) => json!({ "by": "protected" }),
            PolicyVerdictReason::RateLimit { .. } => json!({ "by": "rate" }),
            PolicyVerdictReason::ApprovalCall => json!({ "by": "answering" }),
        }
    }

    /// The name of the rule that applied, or a word for the default that applied. Programs and one-line notes use this
    /// name.
    pub fn short_name(&self, policy: &Policy) -> String {
        match self {
            PolicyVerdictReason::ToolDefault => "definition".to_owned(),
            PolicyVerdictReason::LayerDefault { .. } => "default".to_owned(),
            PolicyVerdictReason::Rule { layer, rule } => {
                policy.rule(*layer, *rule).map_or_else(String::new, |rule| rule.name.clone())
            }
            PolicyVerdictReason::ProtectedPath(_) => "protected places".to_owned(),
            PolicyVerdictReason::RateLimit { .. } => "rate".to_owned(),
            PolicyVerdictReason::ApprovalCall => "answering".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_ordered_and_parsed_from_their_words() {
        assert!(SupervisionTier::ALL.is_sorted());
        for tier in SupervisionTier::ALL {
            assert_eq!(tier.as_str().parse(), Ok(*tier));
            assert_eq!(serde_json::to_value(tier).unwrap(), tier.as_str());
        }
        assert!("Autonomous".parse::<SupervisionTier>().is_err());
    }
}
