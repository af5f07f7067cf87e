//! Ranks files for a question in natural language, by their content, definitions and paths.
//!
//! A word that fewer files contain has more weight. Every further line with the same word adds less to the score.

use super::{ProgrammingLanguage, SearchRankFileCategory, SymbolRole, role_of_hit};

const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has", "have", "how", "if",
    "in", "into", "is", "it", "its", "no", "not", "of", "on", "one", "only", "or", "so", "some", "than", "that", "the",
    "their", "them", "then", "there", "they", "this", "to", "too", "up", "was", "we", "what", "when", "where", "which",
    "who", "why", "with", "you",
];
/// The suffixes are sorted so that stemming removes the longest suffix.
const WORD_SUFFIXES: &[&str] =
    &["ations", "ation", "ings", "ing", "ies", "ied", "ers", "ed", "es", "er", "s", "e", "y"];
const STEM_CHARS_MIN: usize = 3;
const WORDS_MAX: usize = 24;
/// The BM25 parameter for the saturation of repeated words.
const SATURATION: f64 = 1.2;
/// The BM25 parameter for the weight of the file length.
const LENGTH_WEIGHT: f64 = 0.75;
/// The weight of a line that defines a word, relative to a line that only contains the word.
const DEFINITION_LINES: f64 = 4.0;
/// The weight of a word in the path of a file, relative to a line that contains the word.
const PATH_LINES: f64 = 6.0;
/// The weight of a word in the name of a file, relative to a line that contains the word.
const STEM_LINES: f64 = 12.0;
/// The most words of a question for which files that contain all the words are ranked first.
const ALL_WORDS_MAX: usize = 4;
/// The largest percentage of its score that a documentation file keeps.
const DOCUMENTATION_PERCENT: u32 = 50;
/// The least percentage of its score that a test file keeps, because a question may be about a test.
const TEST_PERCENT: u32 = 50;

/// Splits a question into lower-case words without stop words, reduced to their stems.
pub fn query_words(question: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in question.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
        let word = word.to_lowercase();
        let stem = word_stem(word.trim_matches('_'));
        let is_useful = stem.chars().count() > 1 && !STOP_WORDS.contains(&word.as_str());
        if is_useful && !words.iter().any(|known| known == stem) {
            words.push(stem.to_owned());
        }
    }
    words.truncate(WORDS_MAX);
    words
}

fn word_stem(word: &str) -> &str {
    let without = |suffix: &str| word.strip_suffix(suffix).filter(|stem| stem.chars().count() >= STEM_CHARS_MIN);
    WORD_SUFFIXES.iter().find_map(|suffix| without(suffix)).unwrap_or(word)
}

/// For one file, the weighted number of lines that contain each word of a question.
#[derive(Debug, Clone)]
pub struct FileQueryWordCounts {
    path: String,
    bytes: u64,
    language: ProgrammingLanguage,
    /// The weighted number of lines that contain each word of the question.
    lines: Vec<f64>,
}

impl FileQueryWordCounts {
    /// Starts the word counts of a file with the words in its path; the lines of the file are added later.
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
        Self { path: path.to_owned(), bytes, language: ProgrammingLanguage::from_path(path), lines }
    }

    /// Counts the question's words in a line of the file and returns the score of the line. The score of a line is
    /// higher for more words of the question and for definitions.
    pub fn add_line(&mut self, line: &str, words: &[String]) -> u32 {
        let lower = line.to_lowercase();
        let mut score = 0;
        for (count, word) in self.lines.iter_mut().zip(words) {
            let Some(at) = lower.find(word.as_str()) else { continue };
            // If the lower-case line has another length, its offsets do not fit the original line.
            let defines = lower.len() == line.len()
                && role_of_hit(self.language, line, &(at..at + word.len())) == SymbolRole::Definition;
            *count += if defines { DEFINITION_LINES } else { 1.0 };
            score += if defines { 3 } else { 2 };
        }
        score
    }

    fn category_factor(&self) -> f64 {
        let category = SearchRankFileCategory::from_path(&self.path);
        let percent = match (category, self.language) {
            (_, ProgrammingLanguage::Markdown) => category.score_percent().min(DOCUMENTATION_PERCENT),
            (SearchRankFileCategory::Test, _) => category.score_percent().max(TEST_PERCENT),
            (_, _) => category.score_percent(),
        };
        f64::from(percent) / 100.0
    }

    /// Returns the number of distinct words of the question that the file or its path contains.
    pub fn distinct_words_found(&self) -> usize {
        self.lines.iter().filter(|count| **count > 0.0).count()
    }
}

/// Computes the score of each file for a question. Every file in `files` contains at least one word of the question.
/// The number `total_files` also counts the searched files without a word of the question.
fn score_files(files: &[FileQueryWordCounts], total_files: u64) -> Vec<f64> {
    let word_count = files.first().map_or(0, |file| file.lines.len());
    let total = (total_files.max(files.len() as u64)) as f64;
    let rarity = |word: usize| {
        let with_word = files.iter().filter(|file| file.lines[word] > 0.0).count() as f64;
        (1.0 + (total - with_word + 0.5) / (with_word + 0.5)).ln()
    };
    let rarities: Vec<f64> = (0..word_count).map(rarity).collect();
    let all_rarities: f64 = rarities.iter().sum();
    let mean_bytes = files.iter().map(|file| file.bytes as f64).sum::<f64>() / (files.len().max(1) as f64);
    let score = |file: &FileQueryWordCounts| {
        let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * file.bytes as f64 / mean_bytes.max(1.0);
        let mut sum = 0.0;
        let mut covered = 0.0;
        for (count, rarity) in file.lines.iter().zip(&rarities) {
            sum += rarity * count * (SATURATION + 1.0) / (count + SATURATION * length);
            covered += if *count > 0.0 { *rarity } else { 0.0 };
        }
        sum * (0.5 + covered / all_rarities.max(f64::MIN_POSITIVE)) * file.category_factor()
    };
    files.iter().map(score).collect()
}

/// Returns the indexes of the ranked files, best score first. For a short question, files with all its words come
/// first.
pub fn rank_files(files: &[FileQueryWordCounts], total_files: u64) -> Vec<usize> {
    let scores = score_files(files, total_files);
    let has_all_words = |at: usize| {
        let words = files[at].lines.len();
        words <= ALL_WORDS_MAX && files[at].distinct_words_found() == words
    };
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by(|&a, &b| {
        let by_score = scores[b].total_cmp(&scores[a]);
        has_all_words(b).cmp(&has_all_words(a)).then(by_score).then_with(|| files[a].path.cmp(&files[b].path))
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
        let mut counted = Vec::new();
        for (path, text) in files {
            let mut counts = FileQueryWordCounts::new(path, text.len() as u64, &words);
            for line in text.lines() {
                counts.add_line(line, &words);
            }
            counted.push(counts);
        }
        rank_files(&counted, files.len() as u64).into_iter().map(|at| counted[at].path.clone()).collect()
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
