//! Places that other programs run or obey: writing there is writing code. Compared by folded key, at any depth, so
//! that no spelling of `.git` slips through.

use path::{RelPath, fold};

/// Sequences of names, in folded form, that agents may read, and change only with approval.
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

/// The protected sequence a path lies on or below, if any.
pub(crate) fn place(path: &RelPath) -> Option<&'static [&'static str]> {
    let folded: Vec<_> = path.components().map(fold).collect();
    PROTECTED
        .iter()
        .find(|rule| {
            folded
                .windows(rule.len())
                .any(|window| window.iter().zip(**rule).all(|(key, part)| key.as_str() == *part))
        })
        .copied()
}

/// The protected sequence that a tree at this path could hold further down, if any: the path ends in its beginning.
pub(crate) fn leading(path: &RelPath) -> Option<&'static [&'static str]> {
    let folded: Vec<_> = path.components().map(fold).collect();
    let ends_in = |start: &[&str]| {
        folded.len() >= start.len()
            && folded[folded.len() - start.len()..].iter().zip(start).all(|(key, part)| key.as_str() == *part)
    };
    PROTECTED.iter().find(|rule| (1..rule.len()).any(|length| ends_in(&rule[..length]))).copied()
}

/// Whether a pattern speaks of a protected sequence by name.
pub(crate) fn is_named(pattern: &str, place: &[&str]) -> bool {
    let folded: Vec<_> = pattern.split('/').map(|part| fold(part.as_bytes())).collect();
    folded
        .windows(place.len())
        .any(|window| window.iter().zip(place).all(|(key, part)| key.as_str() == *part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(path: &str) -> Option<String> {
        place(&RelPath::from_wire(path).unwrap()).map(|place| place.join("/"))
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

    #[test]
    fn the_way_to_a_protected_place_is_known() {
        let leads = |path: &str| leading(&RelPath::from_wire(path).unwrap()).map(|place| place.join("/"));
        assert_eq!(leads("a/.GitHub").as_deref(), Some(".github/workflows"));
        assert_eq!(leads(".cargo").as_deref(), Some(".cargo/config.toml"));
        assert_eq!(leads(".github/x"), None);
        assert_eq!(leads("src"), None);
    }

    #[test]
    fn a_pattern_names_a_place_or_merely_covers_it() {
        assert!(is_named(".VSCode/**", &[".vscode"]));
        assert!(is_named("sub/.github/workflows/ci.yml", &[".github", "workflows"]));
        for pattern in ["**", "*", ".v*/**", ".github/**"] {
            assert!(!is_named(pattern, &[".vscode"]) && !is_named(pattern, &[".github", "workflows"]));
        }
    }
}
