//! The tiers of the policy.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The freedom of a call, from the freest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyTier {
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

impl PolicyTier {
    /// Every tier, from the freest to the strictest.
    pub const ALL: &[PolicyTier] =
        &[PolicyTier::Autonomous, PolicyTier::Notify, PolicyTier::ApprovalRequired, PolicyTier::Blocked];

    /// The tier's name in definitions, policies and results.
    pub fn as_str(self) -> &'static str {
        match self {
            PolicyTier::Autonomous => "autonomous",
            PolicyTier::Notify => "notify",
            PolicyTier::ApprovalRequired => "approval_required",
            PolicyTier::Blocked => "blocked",
        }
    }
}

impl fmt::Display for PolicyTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is not a tier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tier '{0}'; tiers are autonomous, notify, approval_required and blocked")]
pub struct UnknownPolicyTier(String);

impl FromStr for PolicyTier {
    type Err = UnknownPolicyTier;

    fn from_str(text: &str) -> Result<Self, UnknownPolicyTier> {
        let known = PolicyTier::ALL.iter().find(|tier| tier.as_str() == text);
        known.copied().ok_or_else(|| UnknownPolicyTier(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_ordered_and_parse_their_own_word() {
        assert!(PolicyTier::ALL.is_sorted());
        for tier in PolicyTier::ALL {
            assert_eq!(tier.as_str().parse(), Ok(*tier));
            assert_eq!(serde_json::to_value(tier).unwrap(), tier.as_str());
        }
        assert!("Autonomous".parse::<PolicyTier>().is_err());
    }
}
