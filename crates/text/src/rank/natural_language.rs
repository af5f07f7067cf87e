//! Ranking of files for a question in words, by their content, definitions and paths.
//!
//! A word counts more the fewer files have it, less with every further line, and more in a definition or a name than
//! elsewhere. A file with all of a few words comes before one with some of them many times.

use super::{FileCategory, Language, SymbolRole, role_of_hit};

const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has", "have", "how", "if",
    "in", "into", "is", "it", "its", "no", "not", "of", "on", "one", "only", "or", "so", "some", "than", "that", "the",
    "their", "them", "then", "there", "they", "this", "to", "too", "up", "was", "we", "what", "when", "where", "which",
    "who", "why", "with", "you",
];
/// Suffixes that stemming removes, longest first.
const WORD_SUFFIXES: &[&str] =
    &["ations", "ation", "ings", "ing", "ies", "ied", "ers", "ed", "es", "er", "s", "e", "y"];
/// The shortest stem.
const STEM_CHARS_MIN: usize = 3;
/// The most words of a question that count.
const WORDS_MAX: usize = 24;
/// BM25 parameters: saturation of repeated words, and weight of the file length.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;
/// Weight of a word in a defining line, in the path and in the file stem, in plain lines.
const DEFINITION_LINES: f64 = 4.0;
const PATH_LINES: f64 = 6.0;
const STEM_LINES: f64 = 12.0;
/// Up to this many words, files with all of them come first.
const ALL_WORDS_MAX: usize = 4;
/// Factors for documentation, and the least one for tests: a question may well be about a test.
const DOCUMENTATION_PERCENT: u32 = 50;
const TEST_PERCENT: u32 = 50;

/// The words of a question: lower case, without stop words, stemmed.
pub fn query_words(question: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in question.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
        let word = word.to_lowercase();
        let stem = word_stem(word.trim_matches('_'));
        let says = stem.chars().count() > 1 && !STOP_WORDS.contains(&word.as_str());
        if says && !words.iter().any(|known| known == stem) {
            words.push(stem.to_owned());
        }
    }
    words.truncate(WORDS_MAX);
    words
}

fn word_stem(word: &str) -> &str {
    let cut = |ending: &str| word.strip_suffix(ending).filter(|rest| rest.chars().count() >= STEM_CHARS_MIN);
    WORD_SUFFIXES.iter().find_map(|ending| cut(ending)).unwrap_or(word)
}

/// The word counts of one file.
#[derive(Debug, Clone)]
pub struct FileWordCounts {
    path: String,
    bytes: u64,
    language: Language,
    lines: Vec<f64>,
}

impl FileWordCounts {
    /// A file without matches yet.
    pub fn new(path: &str, bytes: u64, words: &[String]) -> Self {
        let mut lines = vec![0.0; words.len()];
        let lower = path.to_lowercase();
        let name = lower.rsplit('/').next().unwrap_or(&lower);
        for (count, word) in lines.iter_mut().zip(words) {
            if name.contains(word.as_str()) {
                *count = STEM_LINES;
            } else if lower.contains(word.as_str()) {
                *count = PATH_LINES;
            }
        }
        Self { path: path.to_owned(), bytes, language: Language::from_path(path), lines }
    }

    /// Counts a line and returns its score among the file's lines: more words first, then definitions.
    pub fn add_line(&mut self, line: &str, words: &[String]) -> u32 {
        let lower = line.to_lowercase();
        let mut worth = 0;
        for (count, word) in self.lines.iter_mut().zip(words) {
            let Some(at) = lower.find(word.as_str()) else { continue };
            // Lower case can have another length; offsets then do not match, and the line counts as no definition.
            let defines = lower.len() == line.len()
                && role_of_hit(self.language, line, &(at..at + word.len())) == SymbolRole::Definition;
            *count += if defines { DEFINITION_LINES } else { 1.0 };
            worth += if defines { 3 } else { 2 };
        }
        worth
    }

    fn category_factor(&self) -> f64 {
        let category = FileCategory::from_path(&self.path);
        let percent = match (category, self.language) {
            (_, Language::Markdown) => category.score_percent().min(DOCUMENTATION_PERCENT),
            (FileCategory::Test, _) => category.score_percent().max(TEST_PERCENT),
            (_, _) => category.score_percent(),
        };
        f64::from(percent) / 100.0
    }

    /// The number of distinct words in the file or its path.
    pub fn distinct_words_found(&self) -> usize {
        self.lines.iter().filter(|count| **count > 0.0).count()
    }
}

/// The score of each file, from all files with at least one word.
pub fn score_files(tallies: &[FileWordCounts], files: u64) -> Vec<f64> {
    let width = tallies.first().map_or(0, |tally| tally.lines.len());
    let total = (files.max(tallies.len() as u64)) as f64;
    let rarity = |word: usize| {
        let holding = tallies.iter().filter(|tally| tally.lines[word] > 0.0).count() as f64;
        (1.0 + (total - holding + 0.5) / (holding + 0.5)).ln()
    };
    let rarities: Vec<f64> = (0..width).map(rarity).collect();
    let whole: f64 = rarities.iter().sum();
    let mean = tallies.iter().map(|tally| tally.bytes as f64).sum::<f64>() / (tallies.len().max(1) as f64);
    let score = |tally: &FileWordCounts| {
        let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * tally.bytes as f64 / mean.max(1.0);
        let mut sum = 0.0;
        let mut covered = 0.0;
        for (count, rarity) in tally.lines.iter().zip(&rarities) {
            sum += rarity * count * (SATURATION + 1.0) / (count + SATURATION * length);
            covered += if *count > 0.0 { *rarity } else { 0.0 };
        }
        sum * (0.5 + covered / whole.max(f64::MIN_POSITIVE)) * tally.category_factor()
    };
    tallies.iter().map(score).collect()
}

/// The order of files as indexes, best first: those with all words, then by score.
pub fn rank_files(tallies: &[FileWordCounts], files: u64) -> Vec<usize> {
    let scores = score_files(tallies, files);
    let all = |at: usize| {
        let words = tallies[at].lines.len();
        words <= ALL_WORDS_MAX && tallies[at].distinct_words_found() == words
    };
    let mut order: Vec<usize> = (0..tallies.len()).collect();
    order.sort_by(|&a, &b| {
        let by_score = scores[b].total_cmp(&scores[a]);
        all(b).cmp(&all(a)).then(by_score).then_with(|| tallies[a].path.cmp(&tallies[b].path))
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflected_words_share_a_stem() {
        for (question, expected) in [
            ("Where is the parser defined?", &["pars", "defin"][..]),
            ("parse parsing parsed", &["pars"]),
            ("disk: a lease ends", &["disk", "leas", "end"]),
            ("is it so", &[]),
            ("read_only", &["read_onl"]),
        ] {
            assert_eq!(query_words(question), expected, "{question}");
        }
    }

    fn best_files(question: &str, files: &[(&str, &str)]) -> Vec<String> {
        let words = query_words(question);
        let mut tallies = Vec::new();
        for (path, text) in files {
            let mut tally = FileWordCounts::new(path, text.len() as u64, &words);
            for line in text.lines() {
                tally.add_line(line, &words);
            }
            tallies.push(tally);
        }
        rank_files(&tallies, files.len() as u64).into_iter().map(|at| tallies[at].path.clone()).collect()
    }

    #[test]
    fn files_with_all_words_rank_before_frequent_single_words() {
        let files = [("a.rs", "lease\nlease\nlease\nlease"), ("b.rs", "a lease\nit ends"), ("c.rs", "ends")];
        assert_eq!(best_files("lease ends", &files), ["b.rs", "a.rs", "c.rs"]);
    }

    #[test]
    fn paths_and_definitions_score_more_and_tests_less() {
        let files =
            [("x.rs", "lease"), ("lease.rs", "lease"), ("y.rs", "fn lease() {}"), ("tests/z.rs", "fn lease() {}")];
        assert_eq!(best_files("lease", &files), ["lease.rs", "y.rs", "x.rs", "tests/z.rs"]);
    }
}
