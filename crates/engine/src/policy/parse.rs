//! The parser of policy files. A line that cannot be parsed or enforced is an error with the line number, because the
//! policy could allow too much without the line. A rule with an unknown operation or tool name is an error, because the
//! rule would never match.

use std::{collections::BTreeMap, ops::Range};

use serde::Deserialize;
use toml::Spanned;

use super::{
    PathAccessRight, Policy, PolicyLayer, PolicyLayerKind, PolicyRateLimit, PolicyTrashRetention, SupervisionTier,
    UnknownPolicyTier,
    rule::{OperationOrPrincipalPatterns, PolicyRule, PolicyRulePathPatterns},
};
use crate::{
    caller::Principal,
    glob::GlobPatternSet,
    limits::{POLICY_BYTES_MAX, POLICY_RULES_MAX},
    operation::nearest_name,
    ops::OPERATIONS,
    quota::StorageQuotaLimits,
    version::Version,
};

const HOUR_MS: i64 = 60 * 60 * 1000;

/// The error for an invalid line of a policy file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct PolicyParseError {
    /// Counted from 1.
    pub line: usize,
    /// The problem in the invalid line of the policy file, and how to fix it.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFileToml {
    system: Option<PolicyLayerToml>,
    organisation: Option<PolicyLayerToml>,
    #[serde(default)]
    agent: BTreeMap<Spanned<String>, PolicyLayerToml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyLayerToml {
    default: Option<Spanned<String>>,
    #[serde(default)]
    rules: Vec<Spanned<PolicyRuleToml>>,
    rate: Option<Spanned<PolicyRateToml>>,
    #[serde(default)]
    rates: Vec<Spanned<PolicyRateToml>>,
    quota: Option<Spanned<StorageQuotaLimits>>,
    retention: Option<PolicyRetentionToml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyRuleToml {
    name: Option<String>,
    operations: Option<Spanned<Vec<String>>>,
    rights: Option<Spanned<Vec<String>>>,
    paths: Option<Spanned<Vec<String>>>,
    principals: Option<Spanned<Vec<String>>>,
    size_over: Option<u64>,
    tier: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyRateToml {
    calls: u64,
    per_seconds: u64,
    then: Spanned<String>,
    operations: Option<Spanned<Vec<String>>>,
    rights: Option<Spanned<Vec<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyRetentionToml {
    agent_hours: Option<Spanned<u32>>,
    user_hours: Option<Spanned<u32>>,
}

pub(super) fn parse_policy(text: &str) -> Result<Policy, PolicyParseError> {
    let reader = PolicyParser { text };
    if text.len() as u64 > POLICY_BYTES_MAX {
        let reason = format!("the policy is longer than {POLICY_BYTES_MAX} bytes");
        return Err(PolicyParseError { line: 1, reason });
    }
    let file: PolicyFileToml = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| reader.line_number(&span));
        PolicyParseError { line, reason: error.message().trim().replace('\n', " ") }
    })?;
    let mut layers = Vec::new();
    let fixed = [
        ("system", PolicyLayerKind::System, file.system),
        ("organisation", PolicyLayerKind::Organisation, file.organisation),
    ];
    for (name, kind, layer) in fixed {
        if let Some(layer) = layer {
            layers.push(reader.parse_layer(name.to_owned(), kind, None, layer)?);
        }
    }
    for (principal, layer) in file.agent {
        let pattern = reader.parse_principal(&principal)?;
        let name = format!("agent {pattern}");
        let principals = Some(OperationOrPrincipalPatterns::new(vec![pattern]));
        layers.push(reader.parse_layer(name, PolicyLayerKind::Agent, principals, layer)?);
    }
    let rules: usize = layers.iter().map(|layer| layer.rules.len()).sum();
    if rules > POLICY_RULES_MAX {
        let reason = format!("the policy has {rules} rules; at most {POLICY_RULES_MAX} are allowed");
        return Err(PolicyParseError { line: 1, reason });
    }
    let digest = Version::hash_bytes(text.as_bytes());
    let mut start = [0; 8];
    start.copy_from_slice(&digest.0.as_bytes()[..8]);
    Ok(Policy::from_layers(u64::from_be_bytes(start), layers))
}

struct PolicyParser<'t> {
    text: &'t str,
}

impl PolicyParser<'_> {
    fn line_number(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    fn error_at<T>(&self, spanned: &Spanned<T>, reason: impl Into<String>) -> PolicyParseError {
        PolicyParseError { line: self.line_number(&spanned.span()), reason: reason.into() }
    }

    fn parse_layer(
        &self,
        name: String,
        kind: PolicyLayerKind,
        principals: Option<OperationOrPrincipalPatterns>,
        text: PolicyLayerToml,
    ) -> Result<PolicyLayer, PolicyParseError> {
        let default = text.default.map(|tier| self.parse_tier(&tier)).transpose()?;
        let rules = text.rules.into_iter().map(|rule| self.parse_rule(rule)).collect::<Result<_, _>>()?;
        let rates = text.rate.into_iter().chain(text.rates);
        let rates = rates.map(|rate| self.parse_rate(rate)).collect::<Result<_, _>>()?;
        let quota = text.quota.map(|quota| self.parse_quota(&quota)).transpose()?.unwrap_or_default();
        let retention = match text.retention {
            None => PolicyTrashRetention::default(),
            Some(retention) => PolicyTrashRetention {
                agent_ms: retention.agent_hours.map(|hours| self.parse_hours(&hours)).transpose()?,
                user_ms: retention.user_hours.map(|hours| self.parse_hours(&hours)).transpose()?,
            },
        };
        Ok(PolicyLayer { name, kind, principals, default, rules, rate_limits: rates, quota, retention })
    }

    fn parse_quota(&self, quota: &Spanned<StorageQuotaLimits>) -> Result<StorageQuotaLimits, PolicyParseError> {
        if *quota.get_ref() == StorageQuotaLimits::default() {
            return Err(self.error_at(quota, "a quota needs bytes, files, trash_bytes or history_bytes"));
        }
        Ok(*quota.get_ref())
    }

    fn parse_hours(&self, hours: &Spanned<u32>) -> Result<i64, PolicyParseError> {
        match *hours.get_ref() {
            0 => Err(self.error_at(hours, "a retention time must be at least one hour")),
            hours => Ok(i64::from(hours) * HOUR_MS),
        }
    }

    fn parse_tier(&self, text: &Spanned<String>) -> Result<SupervisionTier, PolicyParseError> {
        text.get_ref().parse().map_err(|error: UnknownPolicyTier| self.error_at(text, error.to_string()))
    }

    fn parse_rule(&self, spanned: Spanned<PolicyRuleToml>) -> Result<PolicyRule, PolicyParseError> {
        let line = self.line_number(&spanned.span());
        let text = spanned.into_inner();
        let tier = self.parse_tier(&text.tier)?;
        let principals = match &text.principals {
            None => None,
            Some(listed) => {
                self.require_nonempty(listed)?;
                if let Some(word) = listed.get_ref().iter().find(|word| !is_principal_pattern(word)) {
                    let message = "is not a principal; use user:NAME, agent:NAME, user:*, agent:* or *";
                    return Err(self.error_at(listed, format!("'{word}' {message}")));
                }
                Some(OperationOrPrincipalPatterns::new(listed.get_ref().clone()))
            }
        };
        let paths = text.paths.as_ref().map(|listed| self.parse_path_patterns(listed)).transpose()?;
        Ok(PolicyRule {
            name: text.name.unwrap_or_else(|| format!("rule at line {line}")),
            line,
            operations: self.parse_call_patterns(text.operations.as_ref())?,
            rights: self.parse_rights(text.rights.as_ref())?,
            paths,
            principals,
            size_over: text.size_over,
            tier,
        })
    }

    fn parse_rate(&self, spanned: Spanned<PolicyRateToml>) -> Result<PolicyRateLimit, PolicyParseError> {
        let wrong = |reason: &str| Err(self.error_at(&spanned, reason));
        let text = spanned.get_ref();
        if text.calls == 0 || text.per_seconds == 0 {
            return wrong("calls and per_seconds must be at least 1");
        }
        let then = self.parse_tier(&text.then)?;
        if then < SupervisionTier::ApprovalRequired {
            return Err(self.error_at(&text.then, "then must be approval_required or blocked"));
        }
        let per_ms = i64::try_from(text.per_seconds).ok().and_then(|seconds| seconds.checked_mul(1000));
        let Some(per_ms) = per_ms else { return wrong("per_seconds is too large") };
        Ok(PolicyRateLimit {
            calls: text.calls,
            per_ms,
            tier_beyond: then,
            operations: self.parse_call_patterns(text.operations.as_ref())?,
            rights: self.parse_rights(text.rights.as_ref())?,
        })
    }

    fn require_nonempty(&self, listed: &Spanned<Vec<String>>) -> Result<(), PolicyParseError> {
        if listed.get_ref().is_empty() {
            return Err(self.error_at(listed, "an empty list matches nothing; omit the key to match everything"));
        }
        Ok(())
    }

    fn parse_call_patterns(
        &self,
        listed: Option<&Spanned<Vec<String>>>,
    ) -> Result<Option<OperationOrPrincipalPatterns>, PolicyParseError> {
        let Some(listed) = listed else { return Ok(None) };
        self.require_nonempty(listed)?;
        for word in listed.get_ref() {
            let plain = word.strip_suffix('*').unwrap_or(word);
            let is_prefix = plain.is_empty() || plain.ends_with(['.', '/']) || plain == word;
            if plain.contains('*') || !is_prefix || word.is_empty() {
                return Err(self.error_at(
                    listed,
                    format!("'{word}' is not an operation pattern; use an exact name, prefix.* or *"),
                ));
            }
            if let Some(message) = unknown_name_error(word) {
                return Err(self.error_at(listed, message));
            }
        }
        Ok(Some(OperationOrPrincipalPatterns::new(listed.get_ref().clone())))
    }

    fn parse_rights(
        &self,
        listed: Option<&Spanned<Vec<String>>>,
    ) -> Result<Option<Vec<PathAccessRight>>, PolicyParseError> {
        let Some(listed) = listed else { return Ok(None) };
        self.require_nonempty(listed)?;
        let right = |word: &String| {
            let known = PathAccessRight::ALL.iter().find(|right| right.as_str() == word);
            known.copied().ok_or_else(|| {
                let known: Vec<&str> = PathAccessRight::ALL.iter().map(|right| right.as_str()).collect();
                self.error_at(listed, format!("unknown right '{word}'; rights are {}", known.join(", ")))
            })
        };
        listed.get_ref().iter().map(right).collect::<Result<_, _>>().map(Some)
    }

    fn parse_path_patterns(&self, listed: &Spanned<Vec<String>>) -> Result<PolicyRulePathPatterns, PolicyParseError> {
        self.require_nonempty(listed)?;
        let patterns = listed.get_ref();
        // A leading slash anchors a single name at the root; before a longer path, it looks like an absolute path.
        let invalid = |pattern: &&String| {
            let pattern = pattern.strip_prefix('/').filter(|top| !top.contains('/')).unwrap_or(pattern);
            pattern.is_empty() || pattern.starts_with('/') || pattern.split('/').any(|part| [".", ".."].contains(&part))
        };
        if let Some(pattern) = patterns.iter().find(invalid) {
            return Err(self.error_at(
                listed,
                format!("'{pattern}' is not a path pattern; use a path relative to the workspace, without '..'"),
            ));
        }
        let globs = GlobPatternSet::from_name_patterns(patterns.iter().map(String::as_str))
            .map_err(|error| self.error_at(listed, error.message))?;
        Ok(PolicyRulePathPatterns { globs, source: patterns.clone() })
    }

    fn parse_principal(&self, principal: &Spanned<String>) -> Result<String, PolicyParseError> {
        let word = principal.get_ref();
        if word.starts_with("agent:") && is_principal_pattern(word) {
            return Ok(word.clone());
        }
        Err(self.error_at(principal, format!("'{word}' is not an agent; name the layer \"agent:NAME\" or \"agent:*\"")))
    }
}

/// Whether a word is a principal pattern: `*`, `user:*`, `agent:build-*` or `agent:NAME`.
fn is_principal_pattern(word: &str) -> bool {
    let Some(start) = word.strip_suffix('*') else { return Principal::parse(word).is_ok() };
    start.is_empty() || ["user:", "agent:"].contains(&start) || Principal::parse(start).is_ok()
}

/// The tools of every dialect, one `DIALECT/TOOL` per line, generated from `definitions/`.
const TOOL_NAMES: &str = include_str!("tools.txt");

/// Returns the error for a word in a policy file that matches no operation or tool name.
fn unknown_name_error(word: &str) -> Option<String> {
    let matches = |name: &str| match word.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == word,
    };
    if known_names().any(matches) {
        return None;
    }
    if PathAccessRight::ALL.iter().any(|right| right.as_str() == word) {
        return Some(format!("'{word}' is a right, not an operation; use rights = [\"{word}\"]"));
    }
    let normalized = word.replace("__", ".");
    let suggestion = nearest_name(normalized.trim_end_matches(['*', '.', '/']), known_names());
    let suggestion = suggestion.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
    Some(format!("unknown operation or tool '{word}'{suggestion}"))
}

fn known_names() -> impl Iterator<Item = &'static str> + Clone {
    let bare = |tool: &'static str| tool.split_once('/').map(|(_, name)| name);
    OPERATIONS.iter().map(|row| row.name).chain(TOOL_NAMES.lines().filter_map(bare)).chain(TOOL_NAMES.lines())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_rejected_with_suggestion() {
        for fine in ["*", "remove", "filesystem.delete", "krux/filesystem.delete", "filesystem.*", "comma/*"] {
            assert_eq!(unknown_name_error(fine), None, "{fine}");
        }
        for (word, expected) in [
            ("delete", "'delete' is a right"),
            ("removee", "did you mean 'remove'?"),
            ("filesystem__delete", "did you mean 'krux/filesystem.delete'?"),
            ("filesistem.*", "unknown operation or tool"),
            ("acp/fs/write", "unknown operation or tool"),
        ] {
            let message = unknown_name_error(word).expect(word);
            assert!(message.contains(expected), "{word}: {message}");
        }
    }
}
