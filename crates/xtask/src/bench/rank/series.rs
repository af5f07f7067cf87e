//! Histories that come as patches: Debian's source packages keep what was changed since a release as a series, most of
//! them commits with their subject line. The tree is the release, before any of them.

use std::{fs, path::Path};

use super::{
    fetch,
    packages::{Purpose, sources},
    subjects::{Commit, Early},
};

/// Source packages with enough patches.
pub(super) const SERIES: &[(&str, Purpose)] =
    &[("grub2", Purpose::Tuned), ("mutter", Purpose::Measured), ("openssh", Purpose::Measured)];
/// Most patches of one package that are asked about; they are taken evenly from all of them.
const PATCHES_MAX: usize = 80;
/// Where patches are, and in which order.
const PATCHES: &str = "debian/patches";
const ORDER: &str = "series";

/// Asks about the patches of one source package.
pub(super) fn ask(name: &str) -> Result<Early, String> {
    let directory = fetch::source(name)?;
    let patches = directory.join(PATCHES);
    let commits: Vec<Commit> =
        order(&patches)?.iter().filter_map(|name| read(name, &text(&patches.join(name)).ok()?)).collect();
    // What the packager adds is not part of what is patched.
    let sources: Vec<_> =
        sources(&directory)?.into_iter().filter(|source| !source.path.starts_with("debian/")).collect();
    let step = commits.len().div_ceil(PATCHES_MAX).max(1);
    let commits: Vec<Commit> = commits.into_iter().step_by(step).collect();
    let mut early = Early::default();
    early.ask_on(&sources, &commits);
    Ok(early)
}

/// The names of the patches, in order.
fn order(patches: &Path) -> Result<Vec<String>, String> {
    let listed = text(&patches.join(ORDER))?;
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    Ok(names.filter(|name| !name.starts_with('#')).map(str::to_owned).collect())
}

/// Patches may be in the encodings of their authors.
fn text(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A patch as a commit; nothing when it has no subject.
fn read(name: &str, patch: &str) -> Option<Commit> {
    let mut lines = patch.lines();
    let first = lines.by_ref().find_map(|line| line.strip_prefix("Subject:"))?;
    let more = lines.take_while(|line| line.starts_with(' ')).map(str::trim);
    let subject: Vec<&str> = [first.trim()].into_iter().chain(more).collect();
    let subject = subject.join(" ");
    // `[PATCH 1/2]` is the sender's.
    let subject = match subject.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((_, rest)) => rest.trim().to_owned(),
        None => subject,
    };
    let changed: Vec<&str> = patch.lines().filter_map(|line| line.strip_prefix("--- ")).collect();
    let path =
        |old: &&str| old.split_once('/').map(|(_, path)| path.split('\t').next().unwrap_or(path).to_owned());
    let changed = changed.iter().filter(|old| !old.starts_with("/dev/null")).filter_map(path).collect();
    Some(Commit { name: name.to_owned(), subject, changed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_read() {
        let patch = "From: A\nSubject: [PATCH 1/2] disk: a lease\n ends\n\n--- a/src/a.c\t2020\n+++ b/src/a.c\n\
                     --- /dev/null\n+++ b/src/b.c\n";
        let commit = read("1.patch", patch).unwrap();
        assert_eq!(
            (commit.subject.as_str(), &commit.changed[..]),
            ("disk: a lease ends", &["src/a.c".to_owned()][..])
        );
        assert!(read("2.patch", "--- a/x\n").is_none());
    }
}
