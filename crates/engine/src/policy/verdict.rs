//! The verdict of the policy on a call: a supervision tier, and the rule or default that gave the tier.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::Policy;
use crate::enum_words::enum_words;

/// The supervision tier of a call says how freely the call may run; tiers are ordered from the freest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SupervisionTier {
    /// A call of this supervision tier runs without approval and without a report.
    #[default]
    Autonomous,
    /// A call of this supervision tier runs without approval and is reported to supervisors.
    Notify,
    /// A call of this supervision tier runs only after a person has approved exactly its plan.
    ApprovalRequired,
    Blocked,
}

enum_words! {
    SupervisionTier: Autonomous "autonomous", Notify "notify", ApprovalRequired "approval_required", Blocked "blocked",
}

impl fmt::Display for SupervisionTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a word that names no supervision tier.
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
/// The supervision tier of a call, and the reason for the tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyVerdict {
    pub tier: SupervisionTier,
    pub reason: PolicyVerdictReason,
}

/// The policy rule or default that gave a call its supervision tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyVerdictReason {
    /// The tier in the tool's definition applies, because no policy rule matched.
    ToolDefault,
    /// The default tier of a policy layer applies, because no policy rule matched.
    LayerDefault {
        layer: usize,
    },
    Rule {
        layer: usize,
        rule: usize,
    },
    /// The built-in rule applies, because files at this protected path can execute code.
    ProtectedPath(&'static [&'static str]),
    /// The call exceeds a rate limit of the policy.
    RateLimit {
        layer: usize,
    },
    /// The operation never needs approval, because agents and people communicate through operations such as `approve`.
    ApprovalCall,
}

const APPROVAL_OPERATIONS: &[&str] =
    &["session", "events", "alert", "alerts", "respond", "policy", "approvals", "approve", "deny"];

impl PolicyVerdict {
    pub(crate) const UNRESTRICTED: PolicyVerdict =
        PolicyVerdict { tier: SupervisionTier::Autonomous, reason: PolicyVerdictReason::ToolDefault };

    /// Returns the verdict with the stricter supervision tier, or `self` if the tiers are equal.
    #[must_use]
    pub(crate) fn stricter_of(self, other: PolicyVerdict) -> PolicyVerdict {
        if other.tier > self.tier { other } else { self }
    }

    /// Exempts operations such as `approve` from approval; a blocked operation stays blocked.
    #[must_use]
    pub(super) fn for_operation(self, operation: &str) -> PolicyVerdict {
        if self.tier == SupervisionTier::ApprovalRequired && APPROVAL_OPERATIONS.contains(&operation) {
            return PolicyVerdict { tier: SupervisionTier::Autonomous, reason: PolicyVerdictReason::ApprovalCall };
        }
        self
    }
}

impl PolicyVerdictReason {
    /// Describes the reason for a verdict as the end of a sentence such as "notes.txt is blocked by …".
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

    /// Returns the name of the policy rule that gave a verdict, or a word such as `default`.
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
