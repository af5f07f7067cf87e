//! Protected paths: files that other programs execute or obey. Names are compared in folded form at any depth, so
//! that no spelling of `.git` is missed.

use stead_path::{RelPath, fold_name};

/// Sequences of folded names that agents may read, but change only with approval.
const PROTECTED_PATTERNS: &[&[&str]] = &[
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

/// The protected sequence at or above a path, if any.
pub(crate) fn protected_ancestor(path: &RelPath) -> Option<&'static [&'static str]> {
    let folded: Vec<_> = path.components().map(fold_name).collect();
    PROTECTED_PATTERNS
        .iter()
        .find(|rule| {
            folded.windows(rule.len()).any(|window| window.iter().zip(**rule).all(|(key, part)| key.as_str() == *part))
        })
        .copied()
}

/// The protected sequence that a tree at this path could contain, if any: the path ends in its beginning.
pub(crate) fn protected_descendant(path: &RelPath) -> Option<&'static [&'static str]> {
    let folded: Vec<_> = path.components().map(fold_name).collect();
    let ends_in = |start: &[&str]| {
        folded.len() >= start.len()
            && folded[folded.len() - start.len()..].iter().zip(start).all(|(key, part)| key.as_str() == *part)
    };
    PROTECTED_PATTERNS.iter().find(|rule| (1..rule.len()).any(|length| ends_in(&rule[..length]))).copied()
}

/// Whether a pattern names a protected sequence explicitly.
pub(crate) fn matches_pattern(pattern: &str, protected: &[&str]) -> bool {
    let folded: Vec<_> = pattern.split('/').map(|part| fold_name(part.as_bytes())).collect();
    folded.windows(protected.len()).any(|window| window.iter().zip(protected).all(|(key, part)| key.as_str() == *part))
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
    fn parents_of_protected_paths_are_detected() {
        let leads =
            |path: &str| protected_descendant(&RelPath::from_wire(path).unwrap()).map(|protected| protected.join("/"));
        assert_eq!(leads("a/.GitHub").as_deref(), Some(".github/workflows"));
        assert_eq!(leads(".cargo").as_deref(), Some(".cargo/config.toml"));
        assert_eq!(leads(".github/x"), None);
        assert_eq!(leads("src"), None);
    }

    #[test]
    fn patterns_naming_a_path_differ_from_covering_ones() {
        assert!(matches_pattern(".VSCode/**", &[".vscode"]));
        assert!(matches_pattern("sub/.github/workflows/ci.yml", &[".github", "workflows"]));
        for pattern in ["**", "*", ".v*/**", ".github/**"] {
            assert!(!matches_pattern(pattern, &[".vscode"]) && !matches_pattern(pattern, &[".github", "workflows"]));
        }
    }
}
