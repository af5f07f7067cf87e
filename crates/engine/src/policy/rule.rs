//! Policy rules, each with a tier and the conditions under which the tier applies. The built-in rule protects files
//! through which other programs execute code, such as hooks and configuration. The built-in rule compares file names in
//! folded form, so that it protects `.GIT` like `.git`.

use serde::Serialize;
use stead_path::{FoldedName, RelPath, fold_name};

use super::{PolicyUncheckedSubtreePresence, SupervisionTier};
use crate::{caller::Principal, enum_words::enum_words, glob::GlobPatternSet};

/// An access right that a call needs on one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathAccessRight {
    /// The right to list the names in a directory.
    List,
    /// The right to read a file or the metadata of an entry.
    Read,
    Create,
    /// The right to change an existing file, directory or symlink.
    Modify,
    Delete,
}

enum_words! {
    PathAccessRight: List "list", Read "read", Create "create", Modify "modify", Delete "delete",
}

pub(crate) struct PolicyCallAttributes<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) operation: &'a str,
    pub(crate) tool: Option<&'a str>,
    pub(crate) declared_tier: Option<SupervisionTier>,
}

pub(crate) struct RequiredPathAccess<'a> {
    pub(crate) right: PathAccessRight,
    pub(crate) path: &'a RelPath,
    /// The number of bytes that the call would write to the path; `None` if unknown or if nothing is written.
    pub(crate) bytes: Option<u64>,
    pub(crate) unchecked_subtree: PolicyUncheckedSubtreePresence,
}

impl<'a> RequiredPathAccess<'a> {
    pub(crate) fn new(right: PathAccessRight, path: &'a RelPath) -> Self {
        Self { right, path, bytes: None, unchecked_subtree: PolicyUncheckedSubtreePresence::None }
    }

    pub(crate) fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }
}

/// The name patterns of a policy rule: each is an exact name, a prefix followed by `*`, or `*`.
#[derive(Debug, Clone)]
pub(crate) struct OperationOrPrincipalPatterns(Vec<String>);

impl OperationOrPrincipalPatterns {
    pub(super) fn new(patterns: Vec<String>) -> Self {
        Self(patterns)
    }

    pub(crate) fn match_name(&self, word: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => word.starts_with(start),
            None => pattern == word,
        })
    }

    /// Whether a pattern matches the operation of a call, or its tool with or without the dialect prefix.
    pub(crate) fn match_call(&self, operation: &str, tool: Option<&str>) -> bool {
        let matches_tool =
            |tool: &str| self.match_name(tool) || tool.split_once('/').is_some_and(|(_, name)| self.match_name(name));
        self.match_name(operation) || tool.is_some_and(matches_tool)
    }

    pub(crate) fn patterns(&self) -> &[String] {
        &self.0
    }
}

#[derive(Debug, Clone)]
pub(crate) struct PolicyRulePathPatterns {
    pub(super) globs: GlobPatternSet,
    pub(super) source: Vec<String>,
}

impl PolicyRulePathPatterns {
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
    pub(super) operations: Option<OperationOrPrincipalPatterns>,
    pub(super) rights: Option<Vec<PathAccessRight>>,
    pub(super) paths: Option<PolicyRulePathPatterns>,
    pub(super) principals: Option<OperationOrPrincipalPatterns>,
    pub(super) size_over: Option<u64>,
    pub(crate) tier: SupervisionTier,
}

impl PolicyRule {
    pub(super) fn matches(&self, subject: &PolicyCallAttributes<'_>, action: &RequiredPathAccess<'_>) -> bool {
        self.matches_except_path(subject, action)
            && self.paths.as_ref().is_none_or(|patterns| patterns.globs.covers(action.path))
    }

    pub(super) fn may_match_below(&self, subject: &PolicyCallAttributes<'_>, action: &RequiredPathAccess<'_>) -> bool {
        let below = |patterns: &PolicyRulePathPatterns| {
            patterns.globs.covers(action.path) || patterns.may_match_below(action.path)
        };
        self.matches_except_path(subject, action) && self.paths.as_ref().is_none_or(below)
    }

    fn matches_except_path(&self, subject: &PolicyCallAttributes<'_>, action: &RequiredPathAccess<'_>) -> bool {
        let is_larger = |limit: u64| action.bytes.is_some_and(|bytes| bytes > limit);
        self.covers_right(action.right)
            && self.matches_operation(subject)
            && self.applies_to(subject.principal)
            && self.size_over.is_none_or(is_larger)
    }

    pub(super) fn covers_right(&self, right: PathAccessRight) -> bool {
        self.rights.as_ref().is_none_or(|rights| rights.contains(&right))
            && (self.size_over.is_none() || matches!(right, PathAccessRight::Create | PathAccessRight::Modify))
    }

    pub(super) fn matches_operation(&self, subject: &PolicyCallAttributes<'_>) -> bool {
        self.operations.as_ref().is_none_or(|patterns| patterns.match_call(subject.operation, subject.tool))
    }

    pub(crate) fn applies_to(&self, principal: &Principal) -> bool {
        self.principals.as_ref().is_none_or(|patterns| patterns.match_name(&principal.to_string()))
    }

    pub(super) fn is_unconditional(&self) -> bool {
        self.paths.is_none() && self.rights.is_none() && self.size_over.is_none()
    }

    /// Whether a rule names a protected path explicitly, as `**/.git/**` does but `**` does not.
    pub(super) fn names_path(&self, protected: &[&str]) -> bool {
        self.paths().iter().any(|pattern| matches_pattern(pattern, protected))
    }

    pub(crate) fn paths(&self) -> &[String] {
        self.paths.as_ref().map_or(&[][..], |patterns| &patterns.source)
    }

    pub(crate) fn operations(&self) -> &[String] {
        self.operations.as_ref().map_or(&[][..], OperationOrPrincipalPatterns::patterns)
    }

    pub(crate) fn rights(&self) -> &[PathAccessRight] {
        self.rights.as_deref().unwrap_or(&[])
    }
}

/// The protected paths as sequences of folded names; agents may read these paths but need approval to change them.
const PROTECTED_PATHS: &[&[&str]] = &[
    &[".git"],
    &[".hg"],
    &[".svn"],
    &[".jj"],
    &[".vscode"],
    &[".idea"],
    &[".claude"],
    &[".cursor"],
    &[".codex"],
    &[".gemini"],
    &[".mcp.json"],
    &["agents.md"],
    &["claude.md"],
    &["gemini.md"],
    &[".github", "workflows"],
    &[".github", "hooks"],
    &[".github", "actions"],
    &[".husky"],
    &[".envrc"],
    &[".npmrc"],
    &[".cargo", "config.toml"],
    &[".cargo", "config"],
    &["pyvenv.cfg"],
];

pub(super) fn protected_ancestor(path: &RelPath) -> Option<&'static [&'static str]> {
    let folded: Vec<_> = path.components().map(fold_name).collect();
    PROTECTED_PATHS.iter().find(|names| folded.windows(names.len()).any(|window| equals(window, names))).copied()
}

/// Finds a protected path that a tree could contain, as a tree at `.github` could contain `.github/workflows`.
pub(super) fn protected_descendant(path: &RelPath) -> Option<&'static [&'static str]> {
    let folded: Vec<_> = path.components().map(fold_name).collect();
    let ends_with =
        |start: &[&str]| folded.len() >= start.len() && equals(&folded[folded.len() - start.len()..], start);
    PROTECTED_PATHS.iter().find(|names| (1..names.len()).any(|length| ends_with(&names[..length]))).copied()
}

fn matches_pattern(pattern: &str, protected: &[&str]) -> bool {
    let folded: Vec<_> = pattern.split('/').map(|part| fold_name(part.as_bytes())).collect();
    folded.windows(protected.len()).any(|window| equals(window, protected))
}

fn equals(folded: &[FoldedName], names: &[&str]) -> bool {
    folded.iter().map(FoldedName::as_str).eq(names.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected_match(path: &str) -> Option<String> {
        protected_ancestor(&RelPath::from_wire(path).unwrap()).map(|protected| protected.join("/"))
    }

    #[test]
    fn protected_paths_match_in_every_spelling() {
        for path in [
            ".git/hooks/pre-commit",
            ".GIT/config",
            ".git./config",
            "sub/.git/config",
            "GIT~1/config",
            ".g\u{200c}it/config",
            ".mcp.json",
            "AGENTS.md",
            "deep/er/Claude.MD",
            ".github/workflows/ci.yml",
            ".cargo/config.toml",
        ] {
            assert!(protected_match(path).is_some(), "{path}");
        }
    }

    #[test]
    fn similar_unprotected_paths_are_allowed() {
        for path in ["git/x", ".github/ISSUE_TEMPLATE.md", ".gitignore", ".cargo/registry", "src/agents.rs"] {
            assert_eq!(protected_match(path), None, "{path}");
        }
    }

    #[test]
    fn trees_that_could_contain_a_protected_path_are_detected() {
        let contained =
            |path: &str| protected_descendant(&RelPath::from_wire(path).unwrap()).map(|protected| protected.join("/"));
        assert_eq!(contained("a/.GitHub").as_deref(), Some(".github/workflows"));
        assert_eq!(contained(".cargo").as_deref(), Some(".cargo/config.toml"));
        assert_eq!(contained(".github/x"), None);
        assert_eq!(contained("src"), None);
    }

    #[test]
    fn only_explicit_patterns_name_a_protected_path() {
        assert!(matches_pattern(".VSCode/**", &[".vscode"]));
        assert!(matches_pattern("sub/.github/workflows/ci.yml", &[".github", "workflows"]));
        for pattern in ["**", "*", ".v*/**", ".github/**"] {
            assert!(!matches_pattern(pattern, &[".vscode"]) && !matches_pattern(pattern, &[".github", "workflows"]));
        }
    }
}
