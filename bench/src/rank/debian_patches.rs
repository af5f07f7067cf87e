//! Uses the patches of Debian source packages as commits: most patches have a subject line. The search runs in the
//! unpatched source tree.

use std::{fs, path::Path};

use super::{
    commit_subjects::{RankBenchGitCommit, RankBenchTopResultCounts},
    fetch,
    packages::{RankBenchPackagePurpose, read_source_texts},
};

/// Debian source packages with enough patches for the benchmark.
pub(super) const PATCHED_PACKAGES: &[(&str, RankBenchPackagePurpose)] = &[
    ("grub2", RankBenchPackagePurpose::Tuning),
    ("mutter", RankBenchPackagePurpose::MeasurementOnly),
    ("openssh", RankBenchPackagePurpose::MeasurementOnly),
];
/// Maximum number of patches per package, sampled evenly.
const PATCHES_MAX: usize = 80;
const PATCHES_DIRECTORY: &str = "debian/patches";
const SERIES_FILE: &str = "series";

pub(super) fn measure_package(name: &str) -> Result<RankBenchTopResultCounts, String> {
    let directory = fetch::fetch_debian_source(name)?;
    let patches = directory.join(PATCHES_DIRECTORY);
    let commits: Vec<RankBenchGitCommit> = patch_names(&patches)?
        .iter()
        .filter_map(|name| parse_patch(name, &read_lossy(&patches.join(name)).ok()?))
        .collect();
    // Packaging files are not part of the patched tree.
    let sources: Vec<_> =
        read_source_texts(&directory)?.into_iter().filter(|source| !source.path.starts_with("debian/")).collect();
    let step = commits.len().div_ceil(PATCHES_MAX).max(1);
    let commits: Vec<RankBenchGitCommit> = commits.into_iter().step_by(step).collect();
    let mut early = RankBenchTopResultCounts::default();
    early.measure_on_tree(&sources, &commits);
    Ok(early)
}

/// The names of the patches in the `series` file of a Debian package.
fn patch_names(patches: &Path) -> Result<Vec<String>, String> {
    let listed = read_lossy(&patches.join(SERIES_FILE))?;
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    Ok(names.filter(|name| !name.starts_with('#')).map(str::to_owned).collect())
}

/// Reads a file as UTF-8 and replaces invalid bytes, because patches may have any encoding.
fn read_lossy(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Converts a patch to a commit; `None` if the patch has no subject line.
fn parse_patch(name: &str, patch: &str) -> Option<RankBenchGitCommit> {
    let mut lines = patch.lines();
    let first = lines.by_ref().find_map(|line| line.strip_prefix("Subject:"))?;
    let more = lines.take_while(|line| line.starts_with(' ')).map(str::trim);
    let subject: Vec<&str> = [first.trim()].into_iter().chain(more).collect();
    let subject = subject.join(" ");
    // `[PATCH 1/2]` is not part of the subject.
    let subject = match subject.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((_, rest)) => rest.trim().to_owned(),
        None => subject,
    };
    let changed: Vec<&str> = patch.lines().filter_map(|line| line.strip_prefix("--- ")).collect();
    let path = |old: &&str| old.split_once('/').map(|(_, path)| path.split('\t').next().unwrap_or(path).to_owned());
    let changed = changed.iter().filter(|old| !old.starts_with("/dev/null")).filter_map(path).collect();
    Some(RankBenchGitCommit { name: name.to_owned(), subject, changed_paths: changed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_is_parsed() {
        let patch = "From: A\nSubject: [PATCH 1/2] disk: a lease\n ends\n\n--- a/src/a.c\t2020\n+++ b/src/a.c\n\
                     --- /dev/null\n+++ b/src/b.c\n";
        let commit = parse_patch("1.patch", patch).unwrap();
        assert_eq!(
            (commit.subject.as_str(), &commit.changed_paths[..]),
            ("disk: a lease ends", &["src/a.c".to_owned()][..])
        );
        assert!(parse_patch("2.patch", "--- a/x\n").is_none());
    }
}
