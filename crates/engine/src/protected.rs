//! Places that other programs run or obey: writing there is writing code. Compared by folded key, at any depth, so
//! that no spelling of `.git` slips through.

use path::{RelPath, fold};

/// Sequences of names, in folded form, that agents may read but not change.
const PROTECTED: &[&[&str]] = &[
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

/// The protected sequence a path lies on or below, if any, as it is written in documents.
pub(crate) fn rule(path: &RelPath) -> Option<String> {
    let folded: Vec<_> = path.components().map(fold).collect();
    PROTECTED.iter().find_map(|rule| {
        let hit = folded.windows(rule.len()).any(|window| window.iter().zip(*rule).all(|(key, part)| key.as_str() == *part));
        hit.then(|| rule.join("/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(path: &str) -> Option<String> {
        rule(&RelPath::from_wire(path).unwrap())
    }

    #[test]
    fn every_spelling_of_a_protected_place_is_one() {
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
            assert!(hit(path).is_some(), "{path}");
        }
    }

    #[test]
    fn neighbours_are_free() {
        for path in ["git/x", ".github/ISSUE_TEMPLATE.md", ".gitignore", ".cargo/registry", "src/agents.rs"] {
            assert_eq!(hit(path), None, "{path}");
        }
    }
}
