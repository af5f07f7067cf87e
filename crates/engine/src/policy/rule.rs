//! A policy rule: its tier, and the conditions on operation, right, path, principal and size under which it applies.

use serde::Serialize;
use stead_path::RelPath;

use super::{PolicyTier, UncheckedSubtree, protected_paths};
use crate::{caller::Principal, glob::Globs};

/// The right that a call needs on one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessRight {
    /// List the names in a directory.
    List,
    /// Read a file, or stat an entry.
    Read,
    /// Create an entry.
    Create,
    /// Change an entry.
    Modify,
    /// Remove an entry.
    Delete,
}

impl AccessRight {
    /// Every right.
    pub const ALL: &[AccessRight] =
        &[AccessRight::List, AccessRight::Read, AccessRight::Create, AccessRight::Modify, AccessRight::Delete];

    /// The word used in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            AccessRight::List => "list",
            AccessRight::Read => "read",
            AccessRight::Create => "create",
            AccessRight::Modify => "modify",
            AccessRight::Delete => "delete",
        }
    }
}

/// The part of a call that is the same for all its paths.
pub(crate) struct PolicySubject<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) operation: &'a str,
    pub(crate) tool: Option<&'a str>,
    /// The tier in the tool's definition, if it has one.
    pub(crate) declared_tier: Option<PolicyTier>,
}

/// A right that a call needs on one path.
pub(crate) struct PolicyAction<'a> {
    pub(crate) right: AccessRight,
    pub(crate) path: &'a RelPath,
    /// The number of bytes that the call would write to the path.
    pub(crate) bytes: Option<u64>,
    pub(crate) unchecked_subtree: UncheckedSubtree,
}

impl<'a> PolicyAction<'a> {
    pub(crate) fn new(right: AccessRight, path: &'a RelPath) -> Self {
        Self { right, path, bytes: None, unchecked_subtree: UncheckedSubtree::None }
    }

    pub(crate) fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }
}

/// Name patterns, any of which may match: an exact name, a prefix followed by `*`, or `*`.
#[derive(Debug, Clone)]
pub(crate) struct NamePatterns(Vec<String>);

impl NamePatterns {
    pub(super) fn new(patterns: Vec<String>) -> Self {
        Self(patterns)
    }

    pub(crate) fn match_name(&self, word: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => word.starts_with(start),
            None => pattern == word,
        })
    }

    /// Whether a pattern matches a call: its operation, or its tool with or without the dialect.
    pub(crate) fn match_call(&self, operation: &str, tool: Option<&str>) -> bool {
        let matches_tool =
            |tool: &str| self.match_name(tool) || tool.split_once('/').is_some_and(|(_, name)| self.match_name(name));
        self.match_name(operation) || tool.is_some_and(matches_tool)
    }

    pub(crate) fn patterns(&self) -> &[String] {
        &self.0
    }
}

/// Compiled path patterns, with their text in the policy file.
#[derive(Debug, Clone)]
pub(crate) struct PathPatterns {
    pub(super) globs: Globs,
    pub(super) source: Vec<String>,
}

impl PathPatterns {
    /// Whether a pattern could match an entry below a path.
    fn may_match_below(&self, path: &RelPath) -> bool {
        self.source.iter().any(|pattern| {
            let parts = pattern.strip_prefix('/').unwrap_or(pattern).split('/');
            let literal = parts.take_while(|part| !part.contains(['*', '?', '[', '{', '\\']));
            let anywhere = !pattern.contains('/');
            let mut pairs = path.components().zip(literal);
            anywhere || pairs.all(|(name, part)| name == part.as_bytes())
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct PolicyRule {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(super) operations: Option<NamePatterns>,
    pub(super) rights: Option<Vec<AccessRight>>,
    pub(super) paths: Option<PathPatterns>,
    pub(super) principals: Option<NamePatterns>,
    pub(super) size_over: Option<u64>,
    pub(crate) tier: PolicyTier,
}

impl PolicyRule {
    pub(super) fn matches(&self, subject: &PolicySubject<'_>, action: &PolicyAction<'_>) -> bool {
        self.matches_except_path(subject, action)
            && self.paths.as_ref().is_none_or(|patterns| patterns.globs.covers(action.path))
    }

    /// Whether the rule could match an entry below the action's path.
    pub(super) fn may_match_below(&self, subject: &PolicySubject<'_>, action: &PolicyAction<'_>) -> bool {
        let below =
            |patterns: &PathPatterns| patterns.globs.covers(action.path) || patterns.may_match_below(action.path);
        self.matches_except_path(subject, action) && self.paths.as_ref().is_none_or(below)
    }

    fn matches_except_path(&self, subject: &PolicySubject<'_>, action: &PolicyAction<'_>) -> bool {
        let is_larger = |limit: u64| action.bytes.is_some_and(|bytes| bytes > limit);
        self.covers_right(action.right)
            && self.matches_operation(subject)
            && self.applies_to(subject.principal)
            && self.size_over.is_none_or(is_larger)
    }

    pub(super) fn covers_right(&self, right: AccessRight) -> bool {
        self.rights.as_ref().is_none_or(|rights| rights.contains(&right))
            && (self.size_over.is_none() || matches!(right, AccessRight::Create | AccessRight::Modify))
    }

    pub(super) fn matches_operation(&self, subject: &PolicySubject<'_>) -> bool {
        self.operations.as_ref().is_none_or(|patterns| patterns.match_call(subject.operation, subject.tool))
    }

    pub(crate) fn applies_to(&self, principal: &Principal) -> bool {
        self.principals.as_ref().is_none_or(|patterns| patterns.match_name(&principal.to_string()))
    }

    pub(super) fn is_unconditional(&self) -> bool {
        self.paths.is_none() && self.rights.is_none() && self.size_over.is_none()
    }

    /// Whether a path pattern names this protected path explicitly. A pattern that merely covers it does not count.
    pub(super) fn names_path(&self, protected: &[&str]) -> bool {
        self.paths().iter().any(|pattern| protected_paths::matches_pattern(pattern, protected))
    }

    pub(crate) fn paths(&self) -> &[String] {
        self.paths.as_ref().map_or(&[][..], |patterns| &patterns.source)
    }

    pub(crate) fn operations(&self) -> &[String] {
        self.operations.as_ref().map_or(&[][..], NamePatterns::patterns)
    }

    pub(crate) fn rights(&self) -> &[AccessRight] {
        self.rights.as_deref().unwrap_or(&[])
    }
}
