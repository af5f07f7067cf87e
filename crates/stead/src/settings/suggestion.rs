//! "Did you mean": the known name nearest to a misspelled one.

/// Largest edit distance of a suggestion: this, or a third of the name's length.
const EDIT_DISTANCE_MAX: usize = 2;

/// The nearest known name within that distance.
pub(crate) fn nearest_name<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, name) = known.map(|name| (edit_distance(written, name), name)).min()?;
    (distance <= EDIT_DISTANCE_MAX.max(name.len() / 3)).then_some(name)
}

/// Levenshtein distance.
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, beside) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *beside);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name_is_found_only_when_close() {
        let known = ["listen", "tls_cert", "tls_key", "behind_proxy"];
        let near = |written| nearest_name(written, known.into_iter());
        assert_eq!(near("listn"), Some("listen"));
        assert_eq!(near("tls-cert"), Some("tls_cert"));
        assert_eq!(near("behindproxy"), Some("behind_proxy"));
        assert_eq!(near("colour"), None);
    }
}
