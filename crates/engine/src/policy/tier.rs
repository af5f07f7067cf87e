//! How far a caller may go alone.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// How far a caller may go alone. Ordered: the later, the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// It runs.
    #[default]
    Autonomous,
    /// It runs, and whoever supervises is told.
    Notify,
    /// It runs once a person has said yes to exactly this.
    ApprovalRequired,
    /// It does not run.
    Blocked,
}

impl Tier {
    /// Every tier, from the freest to the strictest.
    pub const ALL: &[Tier] = &[Tier::Autonomous, Tier::Notify, Tier::ApprovalRequired, Tier::Blocked];

    /// The stable word that definitions, policies and answers use.
    pub fn word(self) -> &'static str {
        match self {
            Tier::Autonomous => "autonomous",
            Tier::Notify => "notify",
            Tier::ApprovalRequired => "approval_required",
            Tier::Blocked => "blocked",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that is no tier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tier '{0}'; tiers are autonomous, notify, approval_required and blocked")]
pub struct UnknownTier(String);

impl FromStr for Tier {
    type Err = UnknownTier;

    fn from_str(text: &str) -> Result<Self, UnknownTier> {
        let known = Tier::ALL.iter().find(|tier| tier.word() == text);
        known.copied().ok_or_else(|| UnknownTier(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_ordered_and_have_one_word_each() {
        assert!(Tier::ALL.is_sorted());
        for tier in Tier::ALL {
            assert_eq!(tier.word().parse(), Ok(*tier));
            assert_eq!(serde_json::to_value(tier).unwrap(), tier.word());
        }
        assert!("Autonomous".parse::<Tier>().is_err());
    }
}
