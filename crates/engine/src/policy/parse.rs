//! From the text of a policy file to a policy. Whatever cannot be read, understood or enforced is an error with its line:
//! a policy that is half understood would open a door.

use std::{collections::BTreeMap, ops::Range};

use serde::Deserialize;
use toml::Spanned;

use super::{
    Layer, LayerKind, Policy, Rate, Retained, Right, Tier, names,
    rule::{Patterns, Places, Rule},
};
use crate::{caller::Principal, glob::Globs, quota::Quota, version::Version};

/// Longest policy text.
pub(crate) const POLICY_BYTES_MAX: usize = 1 << 20;
/// Most rules of one policy.
const RULES_MAX: usize = 1_000;
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Why a policy file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct PolicyError {
    /// Where, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    system: Option<LayerText>,
    organisation: Option<LayerText>,
    #[serde(default)]
    agent: BTreeMap<Spanned<String>, LayerText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerText {
    default: Option<Spanned<String>>,
    #[serde(default)]
    rules: Vec<Spanned<RuleText>>,
    rate: Option<Spanned<RateText>>,
    #[serde(default)]
    rates: Vec<Spanned<RateText>>,
    quota: Option<Spanned<QuotaText>>,
    retention: Option<RetentionText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
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
struct RateText {
    calls: u64,
    per_seconds: u64,
    then: Spanned<String>,
    operations: Option<Spanned<Vec<String>>>,
    rights: Option<Spanned<Vec<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaText {
    bytes: Option<u64>,
    files: Option<u64>,
    trash_bytes: Option<u64>,
    history_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionText {
    agent_hours: Option<Spanned<u32>>,
    user_hours: Option<Spanned<u32>>,
}

/// Reads a policy.
pub(super) fn policy(text: &str) -> Result<Policy, PolicyError> {
    let reader = Reader { text };
    if text.len() > POLICY_BYTES_MAX {
        return Err(PolicyError { line: 1, reason: format!("longer than {POLICY_BYTES_MAX} bytes") });
    }
    let file: FileText = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| reader.line(&span));
        PolicyError { line, reason: error.message().trim().replace('\n', " ") }
    })?;
    let mut layers = Vec::new();
    let fixed = [
        ("system", LayerKind::System, file.system),
        ("organisation", LayerKind::Organisation, file.organisation),
    ];
    for (name, kind, layer) in fixed {
        if let Some(layer) = layer {
            layers.push(reader.layer(name.to_owned(), kind, None, layer)?);
        }
    }
    for (whom, layer) in file.agent {
        let pattern = reader.principal(&whom)?;
        let name = format!("agent {pattern}");
        layers.push(reader.layer(name, LayerKind::Agent, Some(Patterns::new(vec![pattern])), layer)?);
    }
    let rules: usize = layers.iter().map(|layer| layer.rules.len()).sum();
    if rules > RULES_MAX {
        return Err(PolicyError {
            line: 1,
            reason: format!("{rules} rules; at most {RULES_MAX} are allowed"),
        });
    }
    let digest = Version::of(text.as_bytes());
    let mut start = [0; 8];
    start.copy_from_slice(&digest.0.as_bytes()[..8]);
    Ok(Policy::of(u64::from_be_bytes(start), layers))
}

struct Reader<'t> {
    text: &'t str,
}

impl Reader<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    fn wrong<T>(&self, spanned: &Spanned<T>, reason: impl Into<String>) -> PolicyError {
        PolicyError { line: self.line(&spanned.span()), reason: reason.into() }
    }

    fn layer(
        &self,
        name: String,
        kind: LayerKind,
        whom: Option<Patterns>,
        text: LayerText,
    ) -> Result<Layer, PolicyError> {
        let default = text.default.map(|tier| self.tier(&tier)).transpose()?;
        let rules = text.rules.into_iter().map(|rule| self.rule(rule)).collect::<Result<_, _>>()?;
        let rates = text.rate.into_iter().chain(text.rates);
        let rates = rates.map(|rate| self.rate(rate)).collect::<Result<_, _>>()?;
        let quota = text.quota.map(|quota| self.quota(quota)).transpose()?.unwrap_or_default();
        let retention = match text.retention {
            None => Retained::default(),
            Some(said) => Retained {
                agent_ms: said.agent_hours.map(|hours| self.hours(&hours)).transpose()?,
                user_ms: said.user_hours.map(|hours| self.hours(&hours)).transpose()?,
            },
        };
        Ok(Layer { name, kind, whom, default, rules, rates, quota, retention })
    }

    fn quota(&self, spanned: Spanned<QuotaText>) -> Result<Quota, PolicyError> {
        let text = spanned.get_ref();
        let quota = Quota {
            bytes: text.bytes,
            files: text.files,
            trash_bytes: text.trash_bytes,
            history_bytes: text.history_bytes,
        };
        if quota == Quota::default() {
            return Err(self.wrong(&spanned, "a quota names bytes, files, trash_bytes or history_bytes"));
        }
        Ok(quota)
    }

    fn hours(&self, hours: &Spanned<u32>) -> Result<i64, PolicyError> {
        match *hours.get_ref() {
            0 => Err(self.wrong(hours, "retention is at least one hour")),
            hours => Ok(i64::from(hours) * HOUR_MS),
        }
    }

    fn tier(&self, text: &Spanned<String>) -> Result<Tier, PolicyError> {
        text.get_ref().parse().map_err(|error: super::UnknownTier| self.wrong(text, error.to_string()))
    }

    fn rule(&self, spanned: Spanned<RuleText>) -> Result<Rule, PolicyError> {
        let line = self.line(&spanned.span());
        let text = spanned.into_inner();
        let tier = self.tier(&text.tier)?;
        let principals = match &text.principals {
            None => None,
            Some(listed) => {
                self.filled(listed)?;
                let wrong = |word: &&String| !is_principal(word);
                if let Some(word) = listed.get_ref().iter().find(wrong) {
                    return Err(self.wrong(listed, bad_principal(word)));
                }
                Some(Patterns::new(listed.get_ref().clone()))
            }
        };
        let paths = text.paths.as_ref().map(|listed| self.places(listed)).transpose()?;
        Ok(Rule {
            name: text.name.unwrap_or_else(|| format!("rule at line {line}")),
            line,
            operations: text.operations.as_ref().map(|listed| self.calls(listed)).transpose()?,
            rights: text.rights.as_ref().map(|listed| self.rights(listed)).transpose()?,
            paths,
            principals,
            size_over: text.size_over,
            tier,
        })
    }

    fn rate(&self, spanned: Spanned<RateText>) -> Result<Rate, PolicyError> {
        let wrong = |reason: &str| Err(self.wrong(&spanned, reason));
        let text = spanned.get_ref();
        if text.calls == 0 || text.per_seconds == 0 {
            return wrong("calls and per_seconds are at least 1");
        }
        let then = self.tier(&text.then)?;
        if then < Tier::ApprovalRequired {
            return Err(self.wrong(&text.then, "beyond a rate comes approval_required or blocked"));
        }
        let per_ms = i64::try_from(text.per_seconds).ok().and_then(|seconds| seconds.checked_mul(1000));
        let Some(per_ms) = per_ms else { return wrong("per_seconds is too large") };
        Ok(Rate {
            calls: text.calls,
            per_ms,
            then,
            operations: text.operations.as_ref().map(|listed| self.calls(listed)).transpose()?,
            rights: text.rights.as_ref().map(|listed| self.rights(listed)).transpose()?,
        })
    }

    fn filled(&self, listed: &Spanned<Vec<String>>) -> Result<(), PolicyError> {
        if listed.get_ref().is_empty() {
            return Err(
                self.wrong(listed, "an empty list fits nothing; leave the key out to mean everything")
            );
        }
        Ok(())
    }

    fn calls(&self, listed: &Spanned<Vec<String>>) -> Result<Patterns, PolicyError> {
        self.filled(listed)?;
        for word in listed.get_ref() {
            let plain = word.strip_suffix('*').unwrap_or(word);
            let is_prefix = plain.is_empty() || plain.ends_with(['.', '/']) || plain == word;
            if plain.contains('*') || !is_prefix || word.is_empty() {
                return Err(self.wrong(
                    listed,
                    format!("'{word}' is no pattern of operations; they are exact, prefix.* or *"),
                ));
            }
            if let Some(objection) = names::objection(word) {
                return Err(self.wrong(listed, objection));
            }
        }
        Ok(Patterns::new(listed.get_ref().clone()))
    }

    fn rights(&self, listed: &Spanned<Vec<String>>) -> Result<Vec<Right>, PolicyError> {
        self.filled(listed)?;
        let right = |word: &String| {
            let known = Right::ALL.iter().find(|right| right.word() == word);
            known.copied().ok_or_else(|| {
                let known: Vec<&str> = Right::ALL.iter().map(|right| right.word()).collect();
                self.wrong(listed, format!("there is no right '{word}'; rights are {}", known.join(", ")))
            })
        };
        listed.get_ref().iter().map(right).collect()
    }

    fn places(&self, listed: &Spanned<Vec<String>>) -> Result<Places, PolicyError> {
        self.filled(listed)?;
        let written = listed.get_ref();
        // Where a slash begins more than one name, a place of the machine was meant.
        let odd = |pattern: &&String| {
            let pattern = pattern.strip_prefix('/').filter(|top| !top.contains('/')).unwrap_or(pattern);
            pattern.is_empty()
                || pattern.starts_with('/')
                || pattern.split('/').any(|part| [".", ".."].contains(&part))
        };
        if let Some(pattern) = written.iter().find(odd) {
            return Err(self.wrong(
                listed,
                format!(
                    "'{pattern}' is no pattern of paths; they are relative to the workspace, without '..'"
                ),
            ));
        }
        let globs = Globs::by_name(written.iter().map(String::as_str))
            .map_err(|failure| self.wrong(listed, failure.detail))?;
        Ok(Places { globs, written: written.clone() })
    }

    /// The principal that an agent layer is about.
    fn principal(&self, whom: &Spanned<String>) -> Result<String, PolicyError> {
        let word = whom.get_ref();
        if word.starts_with("agent:") && is_principal(word) {
            return Ok(word.clone());
        }
        Err(self.wrong(whom, format!("'{word}' is no agent; a layer is about \"agent:NAME\" or \"agent:*\"")))
    }
}

/// `*`, `user:*`, `agent:build-*`, `agent:NAME`.
fn is_principal(word: &str) -> bool {
    let Some(start) = word.strip_suffix('*') else { return Principal::parse(word).is_ok() };
    start.is_empty() || ["user:", "agent:"].contains(&start) || Principal::parse(start).is_ok()
}

fn bad_principal(word: &str) -> String {
    format!("'{word}' is no principal; they are user:NAME, agent:NAME, user:*, agent:* or *")
}
