//! What to try when nothing was found: the query read in another way, said with the result. Never silent: an answer that
//! rests on another reading says which.

use text::rank::prose;

use super::lines::{Cases, Pattern, Syntax, Words};

/// Another reading of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Parts of words as well.
    Parts,
    /// Upper and lower case alike.
    AnyCase,
    /// A regular expression after all.
    Expression,
    /// The text itself after all.
    Text,
    /// Its words, each for itself.
    Words,
}

impl Reading {
    /// Its name in an answer.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Parts => "as part of words",
            Self::AnyCase => "ignoring case",
            Self::Expression => "as a regular expression",
            Self::Text => "as plain text",
            Self::Words => "its words",
        }
    }
}

/// How a query was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Manner {
    pub(super) syntax: Syntax,
    pub(super) words: Words,
    pub(super) cases: Cases,
}

/// Other readings of queries, the nearest first. Those that say the same again are left out.
pub(super) fn readings(queries: &[&str], manner: Manner) -> Vec<(Reading, Pattern)> {
    let Manner { syntax, words, cases } = manner;
    let mut readings = Vec::new();
    let mut add = |reading: Reading, queries: &[&str], syntax: Syntax, cases: Cases| {
        let pattern = Pattern::new(queries, syntax, Words::Parts, cases).ok();
        readings.extend(pattern.map(|pattern| (reading, pattern)));
    };
    if words == Words::Whole {
        add(Reading::Parts, queries, syntax, cases);
    }
    if cases == Cases::Differ {
        add(Reading::AnyCase, queries, syntax, Cases::Same);
    }
    let holds = |signs: &[char]| queries.iter().any(|query| query.contains(signs));
    match syntax {
        Syntax::Literal if holds(&['|', '*', '\\', '^', '$', '[']) => {
            add(Reading::Expression, queries, Syntax::Regex, cases);
        }
        Syntax::Regex if holds(&['(', '[', '{', '.', '*', '+', '?', '|', '$', '^']) => {
            add(Reading::Text, queries, Syntax::Literal, cases);
        }
        Syntax::Literal | Syntax::Regex => {}
    }
    let words = self::words(queries);
    if words.len() > 1 {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        add(Reading::Words, &words, Syntax::Literal, Cases::Same);
    }
    readings
}

/// The words of queries; those of a name are what it is put together from.
pub(super) fn words(queries: &[&str]) -> Vec<String> {
    let mut spaced = String::new();
    let mut before = ' ';
    for letter in queries.join(" ").chars() {
        if letter.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(if letter == '_' { ' ' } else { letter });
        before = letter;
    }
    prose::words(&spaced)
}

/// Whether the name of a file is like a query: the same letters and digits, or more.
pub(super) fn is_like(name: &str, query: &str) -> bool {
    let squeezed = |text: &str| -> String {
        text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let query = squeezed(query);
    query.len() >= LIKE_BYTES_MIN && squeezed(name).contains(&query)
}

/// Shorter queries are in too many names.
const LIKE_BYTES_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_in_other_ways() {
        use Reading::{AnyCase, Expression, Parts, Text, Words as Each};
        let plain = Manner { syntax: Syntax::Literal, words: Words::Parts, cases: Cases::Differ };
        let regex = Manner { syntax: Syntax::Regex, ..plain };
        let whole = Manner { words: Words::Whole, cases: Cases::Same, ..plain };
        for (query, manner, expected) in [
            ("needle", plain, &[AnyCase][..]),
            ("needle", whole, &[Parts]),
            ("fn needle", plain, &[AnyCase, Each]),
            ("parseHeader", plain, &[AnyCase, Each]),
            ("a.*b", plain, &[AnyCase, Expression]),
            ("(", plain, &[AnyCase]),
            ("x[0]", regex, &[AnyCase, Text]),
            ("foo|bar", plain, &[AnyCase, Expression, Each]),
        ] {
            let found: Vec<Reading> =
                readings(&[query], manner).into_iter().map(|(reading, _)| reading).collect();
            assert_eq!(found, expected, "{query}");
        }
    }

    #[test]
    fn names_are_like_a_query_however_they_are_spelled() {
        assert!(is_like("read_only.rs", "ReadOnly"));
        assert!(!is_like("a.rs", "a"));
        assert!(!is_like("read.rs", "ReadOnly"));
    }
}
