//! Finds changed files between versions of the same crate, in the source directory of cargo's registry.
//!
//! Each version of a crate is compared with the next one.

use std::{fs, io, path::Path};

use super::{BenchOldAndNewText, is_handwritten_text};

/// The files that differ between consecutive versions of a crate in `directory`.
pub(super) fn changed_files(directory: &Path) -> Result<Vec<BenchOldAndNewText>, String> {
    let failed = |error: io::Error| format!("{}: {error}", directory.display());
    let mut crates: Vec<(String, Vec<u64>, String)> = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        crates.extend(split_name_and_version(&name).map(|(name_of_crate, version)| (name_of_crate, version, name)));
    }
    crates.sort();
    let mut pairs = Vec::new();
    for neighbours in crates.windows(2) {
        if let [(older, _, from), (newer, _, to)] = neighbours
            && older == newer
        {
            collect_changes(&directory.join(from), &directory.join(to), &mut pairs).map_err(failed)?;
        }
    }
    Ok(pairs)
}

/// Splits `serde-1.0.2` into name and sortable version.
fn split_name_and_version(directory: &str) -> Option<(String, Vec<u64>)> {
    let dash = directory
        .match_indices('-')
        .map(|(at, _)| at)
        .find(|at| directory[at + 1..].starts_with(|c: char| c.is_ascii_digit()))?;
    let (name, version) = (&directory[..dash], &directory[dash + 1..]);
    let numbers = version.split(['.', '-', '+']).map_while(|number| number.parse().ok()).collect();
    Some((name.to_owned(), numbers))
}

fn collect_changes(from: &Path, to: &Path, pairs: &mut Vec<BenchOldAndNewText>) -> io::Result<()> {
    let mut entries = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (old, new) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() && new.is_dir() {
            collect_changes(&old, &new, pairs)?;
        } else if kind.is_file() && new.is_file() {
            let name = new.display().to_string();
            let (old, new) = (fs::read(old)?, fs::read(new)?);
            if old != new
                && is_handwritten_text(&name, &old)
                && is_handwritten_text(&name, &new)
                && let (Ok(old), Ok(new)) = (String::from_utf8(old), String::from_utf8(new))
            {
                pairs.push(BenchOldAndNewText { name, old, new });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_name_is_split_into_crate_and_version() {
        assert_eq!(split_name_and_version("serde-1.0.2"), Some(("serde".to_owned(), vec![1, 0, 2])));
        assert_eq!(split_name_and_version("imara-diff-0.2.10"), Some(("imara-diff".to_owned(), vec![0, 2, 10])));
        assert_eq!(split_name_and_version("README"), None);
    }

    #[test]
    fn only_neighbouring_versions_are_compared() {
        let place = tempfile::tempdir().unwrap();
        for (version, text) in [("a-1.10.0", "3\n"), ("a-1.9.0", "2\n"), ("a-1.2.0", "1\n"), ("b-1.0.0", "4\n")] {
            fs::create_dir_all(place.path().join(version).join("src")).unwrap();
            fs::write(place.path().join(version).join("src/lib.rs"), text).unwrap();
        }
        let pairs = changed_files(place.path()).unwrap();
        let texts: Vec<(&str, &str)> = pairs.iter().map(|pair| (&*pair.old, &*pair.new)).collect();
        assert_eq!(texts, [("1\n", "2\n"), ("2\n", "3\n")]);
    }
}
