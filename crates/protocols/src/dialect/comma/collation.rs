//! The order of names in the original's listings: punctuation, digits, then letters. Case and accents only break ties.
//! Covers Latin letters; others follow by code point.

use std::cmp::Ordering;

/// Punctuation in order; any other sorts before it.
const PUNCTUATION_ORDER: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Accented letters, by the letter they sort with.
const ACCENTED_LETTERS: &[(char, &str)] = &[
    ('a', "àáâãäåāăą"),
    ('c', "çćĉċč"),
    ('d', "ďđ"),
    ('e', "èéêëēĕėęě"),
    ('g', "ĝğġģ"),
    ('h', "ĥħ"),
    ('i', "ìíîïĩīĭįı"),
    ('j', "ĵ"),
    ('k', "ķ"),
    ('l', "ĺļľŀł"),
    ('n', "ñńņňŉ"),
    ('o', "òóôõöøōŏő"),
    ('r', "ŕŗř"),
    ('s', "śŝşš"),
    ('t', "ţťŧ"),
    ('u', "ùúûüũūŭůűų"),
    ('w', "ŵ"),
    ('y', "ýÿŷ"),
    ('z', "źżž"),
];

pub(super) fn compare_names(a: &str, b: &str) -> Ordering {
    let keys = |name: &str| name.chars().map(collation_key).collect::<Vec<_>>();
    let (a_keys, b_keys) = (keys(a), keys(b));
    let by = |part: fn(&CollationKey) -> (u8, u32)| a_keys.iter().map(part).cmp(b_keys.iter().map(part));
    by(|key| key.letter)
        .then_with(|| by(|key| (0, key.accent)))
        .then_with(|| by(|key| (0, key.case)))
        .then_with(|| a.cmp(b))
}

/// Sort keys of a character, most significant first.
struct CollationKey {
    letter: (u8, u32),
    accent: u32,
    case: u32,
}

fn collation_key(c: char) -> CollationKey {
    let plain = |group, index| CollationKey { letter: (group, index), accent: 0, case: 0 };
    if let Some(index) = PUNCTUATION_ORDER.chars().position(|mark| mark == c) {
        return plain(1, u32::try_from(index).unwrap_or(u32::MAX));
    }
    if c.is_ascii_digit() {
        return plain(2, u32::from(c));
    }
    let lowercase = c.to_lowercase().next().unwrap_or(c);
    let case = u32::from(lowercase != c);
    let row = ACCENTED_LETTERS
        .iter()
        .find_map(|(letter, row)| Some((*letter, row.chars().position(|one| one == lowercase)?)));
    match row {
        Some((letter, index)) => {
            CollationKey { letter: (3, u32::from(letter)), accent: u32::try_from(index + 1).unwrap_or(u32::MAX), case }
        }
        None if c.is_alphabetic() => CollationKey { letter: (3, u32::from(lowercase)), accent: 0, case },
        None if c.is_ascii() => plain(0, u32::from(c)),
        None => plain(4, u32::from(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_like_the_original() {
        let mut names = vec!["é.txt", "B.txt", "b.txt", "a.txt", "9", "10", ".hid", "_u", "f", "E", "e"];
        names.sort_by(|a, b| compare_names(a, b));
        assert_eq!(names, ["_u", ".hid", "10", "9", "a.txt", "b.txt", "B.txt", "e", "E", "é.txt", "f"]);
    }
}
