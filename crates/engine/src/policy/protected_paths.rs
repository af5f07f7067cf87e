//! Protected paths: files through which other programs execute code, such as hooks and configuration. Names are compared
//! at any depth and in folded form, so that every spelling of `.git` that a file system accepts is found.

use stead_path::{FoldedName, RelPath, fold_name};

/// The protected paths, each as a sequence of folded names. Agents may read them, but need approval to change them.
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

/// The protected path that this path is or lies below, if any.
pub(crate) fn protected_ancestor(path: &RelPath) -> Option<&'static [&'static str]> {
    let folded: Vec<_> = path.components().map(fold_name).collect();
    PROTECTED_PATHS.iter().find(|names| folded.windows(names.len()).any(|window| equals(window, names))).copied()
}

/// The protected path that a tree at this path could contain, if any: this path ends with its first names.
pub(crate) fn protected_descendant(path: &RelPath) -> Option<&'static [&'static str]> {
    let folded: Vec<_> = path.components().map(fold_name).collect();
    let ends_with =
        |start: &[&str]| folded.len() >= start.len() && equals(&folded[folded.len() - start.len()..], start);
    PROTECTED_PATHS.iter().find(|names| (1..names.len()).any(|length| ends_with(&names[..length]))).copied()
}

/// Whether a pattern of a rule names a protected path explicitly.
pub(crate) fn matches_pattern(pattern: &str, protected: &[&str]) -> bool {
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
