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
    /// A word with one letter otherwise.
    Spelling,
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
            Self::Spelling => "spelled a little differently",
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
    if let (Syntax::Literal, [query]) = (syntax, queries) {
        let spellings = spellings(query);
        let spellings: Vec<&str> = spellings.iter().map(String::as_str).collect();
        if !spellings.is_empty() {
            add(Reading::Spelling, &spellings, Syntax::Regex, Cases::Same);
        }
    }
    let words = self::words(queries);
    if words.len() > 1 {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        add(Reading::Words, &words, Syntax::Literal, Cases::Same);
    }
    readings
}

/// Expressions for the words that one letter too many, too few or wrong, or two the wrong way round, make of a word. None
/// for what is no word, or so short that half of all words are like it.
fn spellings(query: &str) -> Vec<String> {
    let letters: Vec<char> = query.chars().collect();
    let is_word = letters.iter().all(|letter| letter.is_alphanumeric() || *letter == '_');
    if !is_word || !SPELLED_LETTERS.contains(&letters.len()) {
        return Vec::new();
    }
    let text = |letters: &[char]| letters.iter().collect::<String>();
    let mut spellings = Vec::new();
    for at in 0..letters.len() {
        let (before, after) = (text(&letters[..at]), text(&letters[at + 1..]));
        spellings.push(format!(r"\b{before}\w?{after}\b"));
        spellings.push(format!(r"\b{before}\w{}{after}\b", letters[at]));
        if let [one, two, rest @ ..] = &letters[at..] {
            spellings.push(format!(r"\b{before}{two}{one}{}\b", text(rest)));
        }
    }
    spellings.push(format!(r"\b{query}\w\b"));
    spellings
}

/// How many letters a word has whose spelling is doubted.
const SPELLED_LETTERS: std::ops::RangeInclusive<usize> = 5..=40;

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
    use super::{super::lines::Take, *};
    use crate::control::Control;

    #[test]
    fn queries_are_read_in_other_ways() {
        use Reading::{AnyCase, Expression, Parts, Spelling, Text, Words as Each};
        let plain = Manner { syntax: Syntax::Literal, words: Words::Parts, cases: Cases::Differ };
        let regex = Manner { syntax: Syntax::Regex, ..plain };
        let whole = Manner { words: Words::Whole, cases: Cases::Same, ..plain };
        for (query, manner, expected) in [
            ("needle", plain, &[AnyCase, Spelling][..]),
            ("needle", whole, &[Parts, Spelling]),
            ("need", plain, &[AnyCase]),
            ("needle", regex, &[AnyCase]),
            ("fn needle", plain, &[AnyCase, Each]),
            ("parseHeader", plain, &[AnyCase, Spelling, Each]),
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
    fn a_word_is_found_by_one_that_is_nearly_it() {
        let pattern = |query: &str| {
            let spellings = spellings(query);
            let spellings: Vec<&str> = spellings.iter().map(String::as_str).collect();
            Pattern::new(&spellings, Syntax::Regex, Words::Parts, Cases::Same).expect("a pattern")
        };
        for (query, text, expected) in [
            ("explaind", "fn explained(", true),
            ("explainned", "fn explained(", true),
            ("expalined", "Explained", true),
            ("explaimed", "explained", true),
            ("xplained", "explained", true),
            ("explaine", "explained", true),
            ("größer", "grösser", false),
            ("grösse", "größe", false),
            ("größe", "grösse gröse", true),
            ("explained", "explainers", false),
            ("explained", "unexplainedly", false),
        ] {
            let take = Take { context: 0, room: 1, chars_max: 100, place: None };
            let matched = pattern(query).hits(text, take, &Control::default()).expect("a look");
            assert_eq!(matched.total > 0, expected, "{query} in {text}");
        }
        assert!(spellings("need").is_empty() && spellings("two words").is_empty());
    }

    #[test]
    fn names_are_like_a_query_however_they_are_spelled() {
        assert!(is_like("read_only.rs", "ReadOnly"));
        assert!(!is_like("a.rs", "a"));
        assert!(!is_like("read.rs", "ReadOnly"));
    }
}
