//! Other readings of a query without hits. An outcome that relies on another reading always names it.

use stead_text::rank::natural_language;

use super::matcher::{CaseSensitivity, QuerySyntax, SearchPattern, WordMatch};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueryFallback {
    /// Also match parts of words.
    WordParts,
    IgnoreCase,
    AsRegex,
    AsLiteral,
    /// Words with one edit.
    Misspelled,
    /// Each word separately.
    SeparateWords,
}

impl QueryFallback {
    /// The value in the outcome.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::WordParts => "as part of words",
            Self::IgnoreCase => "ignoring case",
            Self::AsRegex => "as a regular expression",
            Self::AsLiteral => "as plain text",
            Self::Misspelled => "spelled a little differently",
            Self::SeparateWords => "its words",
        }
    }

    /// The reading in the list of those that found nothing.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::WordParts => "parts of words",
            Self::IgnoreCase => "case-insensitive",
            Self::AsRegex => "regular expression",
            Self::AsLiteral => "plain text",
            Self::Misspelled => "similar spellings",
            Self::SeparateWords => "separate words",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueryOptions {
    pub(super) syntax: QuerySyntax,
    pub(super) word_match: WordMatch,
    pub(super) case_sensitivity: CaseSensitivity,
}

/// Other readings of the queries, closest first, without duplicates.
pub(super) fn fallback_patterns(queries: &[&str], options: QueryOptions) -> Vec<(QueryFallback, SearchPattern)> {
    let QueryOptions { syntax, word_match: words, case_sensitivity: cases } = options;
    let mut readings = Vec::new();
    let mut add = |reading: QueryFallback, queries: &[&str], syntax: QuerySyntax, cases: CaseSensitivity| {
        let pattern = SearchPattern::new(queries, syntax, WordMatch::Anywhere, cases).ok();
        readings.extend(pattern.map(|pattern| (reading, pattern)));
    };
    if words == WordMatch::WholeWord {
        add(QueryFallback::WordParts, queries, syntax, cases);
    }
    if cases == CaseSensitivity::Sensitive {
        add(QueryFallback::IgnoreCase, queries, syntax, CaseSensitivity::Insensitive);
    }
    let holds = |signs: &[char]| queries.iter().any(|query| query.contains(signs));
    match syntax {
        QuerySyntax::Literal if holds(&['|', '*', '\\', '^', '$', '[']) => {
            add(QueryFallback::AsRegex, queries, QuerySyntax::Regex, cases);
        }
        QuerySyntax::Regex if holds(&['(', '[', '{', '.', '*', '+', '?', '|', '$', '^']) => {
            add(QueryFallback::AsLiteral, queries, QuerySyntax::Literal, cases);
        }
        QuerySyntax::Literal | QuerySyntax::Regex => {}
    }
    if let (QuerySyntax::Literal, [query]) = (syntax, queries) {
        let spellings = spelling_variants(query);
        let spellings: Vec<&str> = spellings.iter().map(String::as_str).collect();
        if !spellings.is_empty() {
            add(QueryFallback::Misspelled, &spellings, QuerySyntax::Regex, CaseSensitivity::Insensitive);
        }
    }
    let words = self::split_words(queries);
    if words.len() > 1 {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        add(QueryFallback::SeparateWords, &words, QuerySyntax::Literal, CaseSensitivity::Insensitive);
    }
    readings
}

/// Regular expressions for words with one letter added, removed, changed or two transposed. Empty for anything but a
/// word, and for short words.
fn spelling_variants(query: &str) -> Vec<String> {
    let letters: Vec<char> = query.chars().collect();
    let is_word = letters.iter().all(|letter| letter.is_alphanumeric() || *letter == '_');
    if !is_word || !SPELLING_LETTERS.contains(&letters.len()) {
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

/// Lengths of words whose spelling is varied.
const SPELLING_LETTERS: std::ops::RangeInclusive<usize> = 5..=40;

/// The words of the queries; compound names are split.
pub(super) fn split_words(queries: &[&str]) -> Vec<String> {
    let mut spaced = String::new();
    let mut before = ' ';
    for letter in queries.join(" ").chars() {
        if letter.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(if letter == '_' { ' ' } else { letter });
        before = letter;
    }
    natural_language::query_words(&spaced)
}

/// Whether a file name contains the letters and digits of a query.
pub(super) fn is_similar_name(name: &str, query: &str) -> bool {
    let squeezed = |text: &str| -> String {
        text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let query = squeezed(query);
    query.len() >= SIMILAR_NAME_BYTES_MIN && squeezed(name).contains(&query)
}

/// Shorter queries match too many names.
const SIMILAR_NAME_BYTES_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::{super::matcher::HitLimits, *};
    use crate::control::CallControl;

    #[test]
    fn fallbacks_cover_other_query_interpretations() {
        use QueryFallback::{AsLiteral, AsRegex, IgnoreCase, Misspelled, SeparateWords as Each, WordParts};
        let plain = QueryOptions {
            syntax: QuerySyntax::Literal,
            word_match: WordMatch::Anywhere,
            case_sensitivity: CaseSensitivity::Sensitive,
        };
        let regex = QueryOptions { syntax: QuerySyntax::Regex, ..plain };
        let whole =
            QueryOptions { word_match: WordMatch::WholeWord, case_sensitivity: CaseSensitivity::Insensitive, ..plain };
        for (query, options, expected) in [
            ("needle", plain, &[IgnoreCase, Misspelled][..]),
            ("needle", whole, &[WordParts, Misspelled]),
            ("need", plain, &[IgnoreCase]),
            ("needle", regex, &[IgnoreCase]),
            ("fn needle", plain, &[IgnoreCase, Each]),
            ("parseHeader", plain, &[IgnoreCase, Misspelled, Each]),
            ("a.*b", plain, &[IgnoreCase, AsRegex]),
            ("(", plain, &[IgnoreCase]),
            ("x[0]", regex, &[IgnoreCase, AsLiteral]),
            ("foo|bar", plain, &[IgnoreCase, AsRegex, Each]),
        ] {
            let found: Vec<QueryFallback> =
                fallback_patterns(&[query], options).into_iter().map(|(reading, _)| reading).collect();
            assert_eq!(found, expected, "{query}");
        }
    }

    #[test]
    fn misspelled_word_finds_the_correct_one() {
        let pattern = |query: &str| {
            let spellings = spelling_variants(query);
            let spellings: Vec<&str> = spellings.iter().map(String::as_str).collect();
            SearchPattern::new(&spellings, QuerySyntax::Regex, WordMatch::Anywhere, CaseSensitivity::Insensitive)
                .expect("a pattern")
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
            let take = HitLimits { context_lines: 0, hits_max: 1, chars_max: 100, ranker: None };
            let matched = pattern(query).find_hits(text, take, &CallControl::default()).expect("a search");
            assert_eq!(matched.hits_total > 0, expected, "{query} in {text}");
        }
        assert!(spelling_variants("need").is_empty() && spelling_variants("two words").is_empty());
    }

    #[test]
    fn similar_names_ignore_case_and_separators() {
        assert!(is_similar_name("read_only.rs", "ReadOnly"));
        assert!(!is_similar_name("a.rs", "a"));
        assert!(!is_similar_name("read.rs", "ReadOnly"));
    }
}
