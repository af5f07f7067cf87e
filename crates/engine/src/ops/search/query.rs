//! The query of a search: one text, or several texts of which any may match. If a query has no hits, `search` tries
//! alternative interpretations of the query and names the one with hits.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use stead_text::rank::natural_language;

use crate::{
    call_context::CallContext,
    call_options::BeforeAfterContentInclusion,
    errors::{Error, ErrorKind},
    ops::search::matcher::{QuerySyntax, SearchCaseSensitivity, SearchPattern, WordMatchMode},
};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a text, or a list of texts")]
pub enum SearchQueryTexts {
    /// The query is one text, or several texts separated by line feeds.
    Text(String),
    AnyOf(Vec<String>),
}

impl Default for SearchQueryTexts {
    fn default() -> Self {
        Self::AnyOf(Vec::new())
    }
}

impl SearchQueryTexts {
    /// A dialect with its own outcome format does not split a query at line feeds.
    pub(super) fn texts(&self, context: &CallContext<'_>) -> Result<Vec<&str>, Error> {
        let texts: Vec<&str> = match (self, context.options.before_after) {
            (Self::Text(text), BeforeAfterContentInclusion::Include) => vec![text],
            (Self::Text(text), BeforeAfterContentInclusion::Omit) => text.split('\n').collect(),
            (Self::AnyOf(texts), _) => texts.iter().map(String::as_str).collect(),
        };
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        if texts.is_empty() {
            let error = Error::new(ErrorKind::BadRequest, "the query is empty");
            return Err(error.with_next_step("pass a text to search for"));
        }
        Ok(texts)
    }

    pub fn display_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) if text.contains('\n') => text.replace('\n', " | ").into(),
            Self::Text(text) => text.as_str().into(),
            Self::AnyOf(texts) => texts.join(" | ").into(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlternativeQueryInterpretation {
    WordParts,
    IgnoreCase,
    AsRegex,
    AsLiteral,
    Misspelled,
    SeparateWords,
}

impl AlternativeQueryInterpretation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::WordParts => "as part of words",
            Self::IgnoreCase => "ignoring case",
            Self::AsRegex => "as a regular expression",
            Self::AsLiteral => "as plain text",
            Self::Misspelled => "spelled a little differently",
            Self::SeparateWords => "its words",
        }
    }

    pub fn describe(self) -> &'static str {
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
pub(super) struct SearchQueryOptions {
    pub(super) syntax: QuerySyntax,
    pub(super) word_match: WordMatchMode,
    pub(super) case_sensitivity: SearchCaseSensitivity,
}

/// Returns the alternative interpretations of a search query, the closest interpretation first.
pub(super) fn fallback_patterns(
    queries: &[&str],
    options: SearchQueryOptions,
) -> Vec<(AlternativeQueryInterpretation, SearchPattern)> {
    let SearchQueryOptions { syntax, word_match, case_sensitivity: cases } = options;
    let mut fallbacks = Vec::new();
    let mut add = |fallback: AlternativeQueryInterpretation,
                   queries: &[&str],
                   syntax: QuerySyntax,
                   cases: SearchCaseSensitivity| {
        let pattern = SearchPattern::new(queries, syntax, WordMatchMode::Anywhere, cases).ok();
        fallbacks.extend(pattern.map(|pattern| (fallback, pattern)));
    };
    if word_match == WordMatchMode::WholeWord {
        add(AlternativeQueryInterpretation::WordParts, queries, syntax, cases);
    }
    if cases == SearchCaseSensitivity::Sensitive {
        add(AlternativeQueryInterpretation::IgnoreCase, queries, syntax, SearchCaseSensitivity::Insensitive);
    }
    let contains_any = |signs: &[char]| queries.iter().any(|query| query.contains(signs));
    match syntax {
        QuerySyntax::Literal if contains_any(&['|', '*', '\\', '^', '$', '[']) => {
            add(AlternativeQueryInterpretation::AsRegex, queries, QuerySyntax::Regex, cases);
        }
        QuerySyntax::Regex if contains_any(&['(', '[', '{', '.', '*', '+', '?', '|', '$', '^']) => {
            add(AlternativeQueryInterpretation::AsLiteral, queries, QuerySyntax::Literal, cases);
        }
        QuerySyntax::Literal | QuerySyntax::Regex => {}
    }
    if let (QuerySyntax::Literal, [query]) = (syntax, queries) {
        let spellings = spelling_variants(query);
        let spellings: Vec<&str> = spellings.iter().map(String::as_str).collect();
        if !spellings.is_empty() {
            add(
                AlternativeQueryInterpretation::Misspelled,
                &spellings,
                QuerySyntax::Regex,
                SearchCaseSensitivity::Insensitive,
            );
        }
    }
    let words = split_words(queries);
    if words.len() > 1 {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        add(
            AlternativeQueryInterpretation::SeparateWords,
            &words,
            QuerySyntax::Literal,
            SearchCaseSensitivity::Insensitive,
        );
    }
    fallbacks
}

/// The regular expressions for a word with one letter added, removed or changed, or with two letters transposed.
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

/// The lengths of query words, in letters, for which `search` tries other spellings.
const SPELLING_LETTERS: std::ops::RangeInclusive<usize> = 5..=40;

/// Splits search queries into words, and compound names such as `parseHeader` into their parts.
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

/// Whether a file name contains a query, if only letters and digits are compared and case is ignored.
pub(super) fn is_similar_name(name: &str, query: &str) -> bool {
    let normalize = |text: &str| -> String {
        text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let query = normalize(query);
    query.len() >= SIMILAR_NAME_BYTES_MIN && normalize(name).contains(&query)
}

/// The minimum length of a query that is compared with file names; shorter queries match too many names.
const SIMILAR_NAME_BYTES_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{control::CallControl, ops::search::matcher::SearchHitCollectionOptions};

    #[test]
    fn fallbacks_cover_other_query_interpretations() {
        use AlternativeQueryInterpretation::{
            AsLiteral, AsRegex, IgnoreCase, Misspelled, SeparateWords as Each, WordParts,
        };
        let plain = SearchQueryOptions {
            syntax: QuerySyntax::Literal,
            word_match: WordMatchMode::Anywhere,
            case_sensitivity: SearchCaseSensitivity::Sensitive,
        };
        let regex = SearchQueryOptions { syntax: QuerySyntax::Regex, ..plain };
        let whole = SearchQueryOptions {
            word_match: WordMatchMode::WholeWord,
            case_sensitivity: SearchCaseSensitivity::Insensitive,
            ..plain
        };
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
            let found: Vec<AlternativeQueryInterpretation> =
                fallback_patterns(&[query], options).into_iter().map(|(fallback, _)| fallback).collect();
            assert_eq!(found, expected, "{query}");
        }
    }

    #[test]
    fn misspelled_word_finds_the_correct_one() {
        let pattern = |query: &str| {
            let spellings = spelling_variants(query);
            let spellings: Vec<&str> = spellings.iter().map(String::as_str).collect();
            SearchPattern::new(
                &spellings,
                QuerySyntax::Regex,
                WordMatchMode::Anywhere,
                SearchCaseSensitivity::Insensitive,
            )
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
            let take = SearchHitCollectionOptions { context_lines: 0, hits_max: 1, chars_max: 100, ranker: None };
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
