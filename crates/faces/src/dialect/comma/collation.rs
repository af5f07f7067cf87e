//! The order of names in the origin's listings: punctuation, then digits, then letters without regard to case and
//! accents, which only decide between names that are otherwise the same. Enough for names in Latin letters; others come
//! behind them by code point.

use std::cmp::Ordering;

/// Punctuation in its order; what is missing here comes before all of it.
const MARKS: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Letters with accents, each behind the letter it is sorted with.
const ACCENTED: &[(char, &str)] = &[
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

/// Compares two names.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let keys = |name: &str| name.chars().map(key).collect::<Vec<_>>();
    let (a_keys, b_keys) = (keys(a), keys(b));
    let by = |part: fn(&Key) -> (u8, u32)| a_keys.iter().map(part).cmp(b_keys.iter().map(part));
    by(|key| key.letter)
        .then_with(|| by(|key| (0, key.accent)))
        .then_with(|| by(|key| (0, key.case)))
        .then_with(|| a.cmp(b))
}

/// Where a character stands, by three keys of falling weight.
struct Key {
    letter: (u8, u32),
    accent: u32,
    case: u32,
}

fn key(c: char) -> Key {
    let plain = |group, at| Key { letter: (group, at), accent: 0, case: 0 };
    if let Some(at) = MARKS.chars().position(|mark| mark == c) {
        return plain(1, u32::try_from(at).unwrap_or(u32::MAX));
    }
    if c.is_ascii_digit() {
        return plain(2, u32::from(c));
    }
    let small = c.to_lowercase().next().unwrap_or(c);
    let case = u32::from(small != c);
    let row =
        ACCENTED.iter().find_map(|(letter, row)| Some((*letter, row.chars().position(|one| one == small)?)));
    match row {
        Some((letter, at)) => {
            Key { letter: (3, u32::from(letter)), accent: u32::try_from(at + 1).unwrap_or(u32::MAX), case }
        }
        None if c.is_alphabetic() => Key { letter: (3, u32::from(small)), accent: 0, case },
        None if c.is_ascii() => plain(0, u32::from(c)),
        None => plain(4, u32::from(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_as_the_origin_lists_them() {
        let mut names = vec!["é.txt", "B.txt", "b.txt", "a.txt", "9", "10", ".hid", "_u", "f", "E", "e"];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(names, ["_u", ".hid", "10", "9", "a.txt", "b.txt", "B.txt", "e", "E", "é.txt", "f"]);
    }
}
