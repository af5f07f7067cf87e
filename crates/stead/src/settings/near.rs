//! Which known name somebody may have meant.

/// How far a name may be from what was written: this, or a third of its length.
const DISTANCE_MAX: usize = 2;

/// The known name that is nearest, if one is near.
pub(crate) fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, name) = known.map(|name| (distance(written, name), name)).min()?;
    (distance <= DISTANCE_MAX.max(name.len() / 3)).then_some(name)
}

/// Letters that must be put in, taken out or changed to make one of the other.
fn distance(one: &str, other: &str) -> usize {
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
    fn what_was_meant_is_found_and_nothing_is_made_up() {
        let known = ["listen", "tls_cert", "tls_key", "behind_proxy"];
        let near = |written| nearest(written, known.into_iter());
        assert_eq!(near("listn"), Some("listen"));
        assert_eq!(near("tls-cert"), Some("tls_cert"));
        assert_eq!(near("behindproxy"), Some("behind_proxy"));
        assert_eq!(near("colour"), None);
    }
}
