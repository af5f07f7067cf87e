//! Finds all occurrences of one sequence in another, in time linear in both lengths.

use super::MatchOverlapRule;

pub(super) fn in_text(text: &[u8], needle: &[u8], overlap_rule: MatchOverlapRule, most: usize) -> Vec<usize> {
    if needle.is_empty() || needle.len() > text.len() {
        return Vec::new();
    }
    let finder = memchr::memmem::Finder::new(needle);
    let Some(first) = finder.find(text) else { return Vec::new() };
    let can_overlap = match overlap_rule {
        MatchOverlapRule::NonOverlapping => false,
        MatchOverlapRule::Overlapping => prefix_table(needle).last().is_some_and(|&border| border > 0),
    };
    if can_overlap {
        return in_sequence(&text[first..], needle, most).into_iter().map(|at| first + at).collect();
    }
    finder.find_iter(&text[first..]).map(|at| first + at).take(most).collect()
}

/// Finds all occurrences of `needle` in `items`, including overlapping occurrences (Knuth–Morris–Pratt).
pub(super) fn in_sequence<T: PartialEq>(items: &[T], needle: &[T], most: usize) -> Vec<usize> {
    if needle.is_empty() || needle.len() > items.len() {
        return Vec::new();
    }
    let table = prefix_table(needle);
    let mut starts = Vec::new();
    let mut matched = 0;
    for (at, item) in items.iter().enumerate() {
        while matched > 0 && needle[matched] != *item {
            matched = table[matched - 1];
        }
        if needle[matched] == *item {
            matched += 1;
        }
        if matched == needle.len() {
            starts.push(at + 1 - matched);
            if starts.len() == most {
                break;
            }
            matched = table[matched - 1];
        }
    }
    starts
}

/// Computes the longest border of every prefix of `needle`: a shorter prefix that is also a suffix.
fn prefix_table<T: PartialEq>(needle: &[T]) -> Vec<usize> {
    let mut table = vec![0; needle.len()];
    let mut border = 0;
    for at in 1..needle.len() {
        while border > 0 && needle[at] != needle[border] {
            border = table[border - 1];
        }
        if needle[at] == needle[border] {
            border += 1;
        }
        table[at] = border;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_count_only_when_asked_for() {
        for (text, needle, overlapping, separate) in [
            ("aaa", "aa", &[0, 1][..], &[0][..]),
            ("xabababa", "aba", &[1, 3, 5], &[1, 5]),
            ("abcabc", "abc", &[0, 3], &[0, 3]),
            ("abc", "abcd", &[], &[]),
            ("abc", "", &[], &[]),
        ] {
            let find = |overlap_rule| in_text(text.as_bytes(), needle.as_bytes(), overlap_rule, usize::MAX);
            assert_eq!(find(MatchOverlapRule::Overlapping), overlapping, "{text} {needle}");
            assert_eq!(find(MatchOverlapRule::NonOverlapping), separate, "{text} {needle}");
        }
        assert_eq!(in_text(b"aaaa", b"a", MatchOverlapRule::Overlapping, 2), [0, 1]);
    }

    #[test]
    fn any_sequence_can_be_searched() {
        assert_eq!(in_sequence(&[1, 2, 1, 2, 1], &[1, 2, 1], usize::MAX), [0, 2]);
    }
}
