//! The policy decides which calls run freely, which are reported, which need approval, and which are blocked. The
//! policy module returns a verdict on a call, and the pipeline enforces the verdict.
//!
//! Within a policy layer the first matching rule decides. Across the policy layers system, organisation and agent the
//! strictest verdict wins. If no rule matches a call, the strictest default tier of the tool and the policy layers
//! applies. A built-in rule requires approval if an agent changes a protected path such as `.git`. The built-in rule is
//! overridden only by a rule of the system layer that names the protected path.

mod parse;
pub(crate) mod rate_limit;
mod rule;
mod verdict;

use std::sync::Arc;

use stead_path::RelPath;

pub use parse::PolicyParseError;
pub use rule::PathAccessRight;
use rule::{OperationOrPrincipalPatterns, PolicyRule};
pub(crate) use rule::{PolicyCallAttributes, RequiredPathAccess};
pub use verdict::{PolicyVerdict, PolicyVerdictReason, SupervisionTier, UnknownPolicyTier};

use crate::{caller::Principal, plan::FileKind, quota::StorageQuotaLimits, tree::FileIdentity};

/// A parsed policy file, or the built-in policy.
#[derive(Debug, Clone)]
pub struct Policy {
    version: u64,
    layers: Vec<PolicyLayer>,
    /// Whether any rule of the policy covers reading or listing, so that reads must be checked.
    has_read_rules: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct PolicyLayer {
    pub(crate) name: String,
    kind: PolicyLayerKind,
    /// The principals to whom the policy layer applies; `None` means everybody.
    principals: Option<OperationOrPrincipalPatterns>,
    default: Option<SupervisionTier>,
    rules: Vec<PolicyRule>,
    rate_limits: Vec<PolicyRateLimit>,
    quota: StorageQuotaLimits,
    retention: PolicyTrashRetention,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PolicyLayerKind {
    System,
    Organisation,
    Agent,
}

#[derive(Debug, Clone)]
pub(crate) struct PolicyRateLimit {
    pub(crate) calls: u64,
    pub(crate) per_ms: i64,
    pub(crate) tier_beyond: SupervisionTier,
    pub(crate) operations: Option<OperationOrPrincipalPatterns>,
    pub(crate) rights: Option<Vec<PathAccessRight>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct PolicyTrashRetention {
    agent_ms: Option<i64>,
    user_ms: Option<i64>,
}

/// The policy in force, and the location of the policy file if the file is inside the workspace.
#[derive(Debug, Clone)]
pub struct ActivePolicy {
    pub policy: Arc<Policy>,
    /// The location of the policy file; `None` if the file is not inside the workspace.
    pub file_location: Option<InWorkspacePolicyFileLocation>,
}

/// The location of a policy file inside the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InWorkspacePolicyFileLocation {
    pub path: RelPath,
    pub identity: FileIdentity,
}

impl ActivePolicy {
    /// Returns the policy that applies without a policy file.
    pub fn built_in() -> Self {
        Self { policy: Arc::new(Policy::built_in()), file_location: None }
    }

    /// Whether a path is the policy file or a hard link to the policy file.
    pub(crate) fn is_policy_file(&self, path: &RelPath, identity: Option<FileIdentity>) -> bool {
        self.file_location
            .as_ref()
            .is_some_and(|location| location.path == *path || identity == Some(location.identity))
    }

    pub(crate) fn contains_policy_file(&self, path: &RelPath) -> bool {
        self.file_location.as_ref().is_some_and(|location| location.path.is_within(path))
    }
}

impl Policy {
    /// Returns the policy that applies without a policy file; the version of this policy is 1.
    pub fn built_in() -> Self {
        Self { version: BUILT_IN_VERSION, layers: Vec::new(), has_read_rules: false }
    }

    /// Parses the text of a policy file.
    pub fn parse(text: &str) -> Result<Self, PolicyParseError> {
        parse::parse_policy(text)
    }

    fn from_layers(version: u64, mut layers: Vec<PolicyLayer>) -> Self {
        layers.sort_by_key(|layer| match layer.kind {
            PolicyLayerKind::System => 0,
            PolicyLayerKind::Organisation => 1,
            PolicyLayerKind::Agent => 2,
        });
        let mut rules = layers.iter().flat_map(|layer| &layer.rules);
        let has_read_rules =
            rules.any(|rule| rule.covers_right(PathAccessRight::Read) || rule.covers_right(PathAccessRight::List));
        Self { version, layers, has_read_rules }
    }

    pub(crate) fn is_built_in(&self) -> bool {
        self.layers.is_empty()
    }

    /// Returns the version of the policy: the first eight bytes of the sha256 of the policy file, or 1 without a file.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn restricts_reading(&self) -> bool {
        self.has_read_rules
    }

    pub(crate) fn evaluate(
        &self,
        subject: &PolicyCallAttributes<'_>,
        action: &RequiredPathAccess<'_>,
    ) -> PolicyVerdict {
        let verdicts = self.layer_verdicts(subject, action);
        let verdict = verdicts.reduce(PolicyVerdict::stricter_of).unwrap_or_else(|| self.default_verdict(subject));
        verdict.for_operation(subject.operation)
    }

    pub(crate) fn layer_verdicts<'a>(
        &'a self,
        subject: &'a PolicyCallAttributes<'_>,
        action: &'a RequiredPathAccess<'_>,
    ) -> impl Iterator<Item = PolicyVerdict> + 'a {
        let protected = action.protected_path(subject);
        // The protection of a path is lifted only by a rule of the system layer that names the protected path.
        let lifted = protected.is_some_and(|path| {
            self.layers_for(subject).filter(|(_, layer)| layer.kind == PolicyLayerKind::System).any(|(_, layer)| {
                layer.first_matching_rule(subject, action).is_some_and(|(_, rule)| rule.names_path(path))
            })
        });
        let built_in = protected.filter(|_| !lifted).map(|path| PolicyVerdict {
            tier: SupervisionTier::ApprovalRequired,
            reason: PolicyVerdictReason::ProtectedPath(path),
        });
        let ruled = self.layers_for(subject).filter_map(|(at, layer)| {
            let (index, rule) = layer.first_matching_rule(subject, action)?;
            Some(rule_verdict(at, index, rule))
        });
        built_in.into_iter().chain(ruled)
    }

    fn default_verdict(&self, subject: &PolicyCallAttributes<'_>) -> PolicyVerdict {
        let declared =
            PolicyVerdict { tier: subject.declared_tier.unwrap_or_default(), reason: PolicyVerdictReason::ToolDefault };
        let defaults = self.layers_for(subject).filter_map(|(at, layer)| {
            layer.default.map(|tier| PolicyVerdict { tier, reason: PolicyVerdictReason::LayerDefault { layer: at } })
        });
        defaults.fold(declared, PolicyVerdict::stricter_of)
    }

    fn layers_for<'a>(
        &'a self,
        subject: &'a PolicyCallAttributes<'_>,
    ) -> impl Iterator<Item = (usize, &'a PolicyLayer)> {
        self.layers.iter().enumerate().filter(|(_, layer)| layer.applies_to(subject.principal))
    }

    /// Returns the strictest verdict that the policy could give on an entry below a path, if the entries are unknown.
    pub(crate) fn evaluate_unchecked_subtree(
        &self,
        subject: &PolicyCallAttributes<'_>,
        action: &RequiredPathAccess<'_>,
    ) -> PolicyVerdict {
        let possible = self.layers_for(subject).flat_map(|(at, layer)| {
            let fitting = layer.rules.iter().enumerate().filter(|(_, rule)| rule.may_match_below(subject, action));
            fitting.map(move |(index, rule)| rule_verdict(at, index, rule))
        });
        possible.fold(self.evaluate(subject, action), PolicyVerdict::stricter_of)
    }

    pub(crate) fn rate_limits<'a>(
        &'a self,
        subject: &'a PolicyCallAttributes<'_>,
    ) -> impl Iterator<Item = (usize, &'a PolicyRateLimit)> {
        let with_index = |(at, layer): (usize, &'a PolicyLayer)| layer.rate_limits.iter().map(move |rate| (at, rate));
        self.layers_for(subject).flat_map(with_index)
    }

    /// Returns the strictest quota limits that apply to a principal; `None` if no policy layer sets a quota.
    pub fn quota(&self, principal: &Principal) -> Option<StorageQuotaLimits> {
        let applicable = self.layers.iter().filter(|layer| layer.applies_to(principal));
        self.has_quota().then(|| {
            applicable.map(|layer| layer.quota).fold(StorageQuotaLimits::default(), StorageQuotaLimits::stricter_of)
        })
    }

    /// Whether any layer of the policy sets a quota.
    pub fn has_quota(&self) -> bool {
        self.layers.iter().any(|layer| layer.quota != StorageQuotaLimits::default())
    }

    /// The trash keeps a principal's removed files for the shortest time of the policy layers, or for the default time.
    pub(crate) fn trash_retention_ms(&self, principal: &Principal) -> i64 {
        let retention_ms = |layer: &PolicyLayer| {
            if principal.is_agent() { layer.retention.agent_ms } else { layer.retention.user_ms }
        };
        let applicable = self.layers.iter().filter(|layer| layer.applies_to(principal));
        applicable.filter_map(retention_ms).min().unwrap_or_else(|| principal.trash_retention_ms())
    }

    /// Whether the policy blocks a tool for a principal on every path, so that the tool need not be offered.
    pub fn always_blocks(&self, principal: &Principal, operation: &str, tool: Option<&str>) -> bool {
        let subject = PolicyCallAttributes { principal, operation, tool, declared_tier: None };
        self.layers_for(&subject).any(|(_, layer)| layer.blocks_all(&subject))
    }

    pub(crate) fn layer_name(&self, at: usize) -> &str {
        self.layers.get(at).map_or("built-in", |layer| layer.name.as_str())
    }

    pub(crate) fn rule(&self, layer: usize, rule: usize) -> Option<&PolicyRule> {
        self.layers.get(layer)?.rules.get(rule)
    }

    pub(crate) fn rules_for<'a>(&'a self, principal: &'a Principal) -> impl Iterator<Item = (&'a str, &'a PolicyRule)> {
        let applicable = self.layers.iter().filter(|layer| layer.applies_to(principal));
        applicable
            .flat_map(|layer| layer.rules.iter().map(|rule| (layer.name.as_str(), rule)))
            .filter(|(_, rule)| rule.applies_to(principal))
    }
}

const BUILT_IN_VERSION: u64 = 1;

fn rule_verdict(layer: usize, index: usize, rule: &PolicyRule) -> PolicyVerdict {
    PolicyVerdict { tier: rule.tier, reason: PolicyVerdictReason::Rule { layer, rule: index } }
}

impl PolicyLayer {
    fn applies_to(&self, principal: &Principal) -> bool {
        self.principals.as_ref().is_none_or(|patterns| patterns.match_name(&principal.to_string()))
    }

    fn first_matching_rule(
        &self,
        subject: &PolicyCallAttributes<'_>,
        action: &RequiredPathAccess<'_>,
    ) -> Option<(usize, &PolicyRule)> {
        self.rules.iter().enumerate().find(|(_, rule)| rule.matches(subject, action))
    }

    fn blocks_all(&self, subject: &PolicyCallAttributes<'_>) -> bool {
        let applicable = |rule: &&PolicyRule| rule.applies_to(subject.principal) && rule.matches_operation(subject);
        let first = self.rules.iter().find(applicable);
        first.is_some_and(|rule| rule.tier == SupervisionTier::Blocked && rule.is_unconditional())
    }
}

impl RequiredPathAccess<'_> {
    fn protected_path(&self, subject: &PolicyCallAttributes<'_>) -> Option<&'static [&'static str]> {
        let reads = matches!(self.right, PathAccessRight::List | PathAccessRight::Read);
        if reads || !subject.principal.is_agent() {
            return None;
        }
        let below = || match self.unchecked_subtree {
            PolicyUncheckedSubtreePresence::None => None,
            PolicyUncheckedSubtreePresence::Present => rule::protected_descendant(self.path),
        };
        rule::protected_ancestor(self.path).or_else(below)
    }
}

/// Whether an access affects a subtree whose entries cannot be listed and checked by the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyUncheckedSubtreePresence {
    /// The accessed path has no entries below it, or the policy checks each entry separately.
    None,
    Present,
}

pub(crate) fn read_right_for(top: Option<FileKind>) -> PathAccessRight {
    match top {
        Some(FileKind::Directory) => PathAccessRight::List,
        Some(FileKind::File | FileKind::Link | FileKind::Special) | None => PathAccessRight::Read,
    }
}
