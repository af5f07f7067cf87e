//! Files for a sentence: how well the words of a question fit what a file holds, defines and is called.
//!
//! A word counts more the fewer files hold it, less with every further line, and more in a definition or a name than in
//! passing. A file that has all of a few words comes before one that has some of them many times.

use super::{Language, Role, Standing, role};

/// Words that say nothing about where something is.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has", "have",
    "how", "if", "in", "into", "is", "it", "its", "no", "not", "of", "on", "one", "only", "or", "so", "some",
    "than", "that", "the", "their", "them", "then", "there", "they", "this", "to", "too", "up", "was", "we",
    "what", "when", "where", "which", "who", "why", "with", "you",
];
/// Endings that leave the same word when they are taken off, the longest first.
const ENDINGS: &[&str] =
    &["ations", "ation", "ings", "ing", "ies", "ied", "ers", "ed", "es", "er", "s", "e", "y"];
/// What is left of a word at least.
const STEM_CHARS_MIN: usize = 3;
/// Most words of a question that count.
const WORDS_MAX: usize = 24;
/// How fast further lines count less, and how much the length of a file matters.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;
/// What a word counts in a line that defines something, and in the path, in plain lines.
const DEFINITION_LINES: f64 = 4.0;
const PATH_LINES: f64 = 6.0;
const STEM_LINES: f64 = 12.0;
/// Most words of a question for which having all of them comes before everything else.
const ALL_WORDS_MAX: usize = 4;
/// What a file counts that describes rather than does, and at least what a test counts, in percent: who asks with words
/// may well mean a test.
const PROSE_PERCENT: u32 = 50;
const TEST_PERCENT: u32 = 50;

/// The words of a question: in lower case, without those that say nothing, cut to what their forms share.
pub fn words(question: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in question.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
        let word = word.to_lowercase();
        let stem = stem(word.trim_matches('_'));
        let says = stem.chars().count() > 1 && !STOP_WORDS.contains(&word.as_str());
        if says && !words.iter().any(|known| known == stem) {
            words.push(stem.to_owned());
        }
    }
    words.truncate(WORDS_MAX);
    words
}

fn stem(word: &str) -> &str {
    let cut = |ending: &str| word.strip_suffix(ending).filter(|rest| rest.chars().count() >= STEM_CHARS_MIN);
    ENDINGS.iter().find_map(|ending| cut(ending)).unwrap_or(word)
}

/// How often the words are in a file.
#[derive(Debug, Clone)]
pub struct Tally {
    path: String,
    bytes: u64,
    language: Language,
    lines: Vec<f64>,
}

impl Tally {
    /// A file in which nothing was found yet.
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
        Self { path: path.to_owned(), bytes, language: Language::of(path), lines }
    }

    /// Counts a line, and says what it is worth beside the file's other lines: more words first, then definitions.
    pub fn add(&mut self, line: &str, words: &[String]) -> u32 {
        let lower = line.to_lowercase();
        let mut worth = 0;
        for (count, word) in self.lines.iter_mut().zip(words) {
            let Some(at) = lower.find(word.as_str()) else { continue };
            // Lower case can be longer than what it was made of; then places do not match and nothing is defined.
            let defines = lower.len() == line.len()
                && role(self.language, line, &(at..at + word.len())) == Role::Definition;
            *count += if defines { DEFINITION_LINES } else { 1.0 };
            worth += if defines { 3 } else { 2 };
        }
        worth
    }

    fn standing(&self) -> f64 {
        let standing = Standing::of(&self.path);
        let percent = match (standing, self.language) {
            (_, Language::Markdown) => standing.percent().min(PROSE_PERCENT),
            (Standing::Test, _) => standing.percent().max(TEST_PERCENT),
            (_, _) => standing.percent(),
        };
        f64::from(percent) / 100.0
    }

    /// How many of the words are in the file or its path.
    pub fn present(&self) -> usize {
        self.lines.iter().filter(|count| **count > 0.0).count()
    }
}

/// What each file is worth, from all files that hold at least one word.
pub fn scores(tallies: &[Tally], files: u64) -> Vec<f64> {
    let width = tallies.first().map_or(0, |tally| tally.lines.len());
    let total = (files.max(tallies.len() as u64)) as f64;
    let rarity = |word: usize| {
        let holding = tallies.iter().filter(|tally| tally.lines[word] > 0.0).count() as f64;
        (1.0 + (total - holding + 0.5) / (holding + 0.5)).ln()
    };
    let rarities: Vec<f64> = (0..width).map(rarity).collect();
    let whole: f64 = rarities.iter().sum();
    let mean = tallies.iter().map(|tally| tally.bytes as f64).sum::<f64>() / (tallies.len().max(1) as f64);
    let score = |tally: &Tally| {
        let length = 1.0 - LENGTH + LENGTH * tally.bytes as f64 / mean.max(1.0);
        let mut sum = 0.0;
        let mut covered = 0.0;
        for (count, rarity) in tally.lines.iter().zip(&rarities) {
            sum += rarity * count * (SATURATION + 1.0) / (count + SATURATION * length);
            covered += if *count > 0.0 { *rarity } else { 0.0 };
        }
        sum * (0.5 + covered / whole.max(f64::MIN_POSITIVE)) * tally.standing()
    };
    tallies.iter().map(score).collect()
}

/// The order of files, as indexes, the best first: those with all the words, then by what they are worth.
pub fn order(tallies: &[Tally], files: u64) -> Vec<usize> {
    let scores = scores(tallies, files);
    let all = |at: usize| {
        let words = tallies[at].lines.len();
        words <= ALL_WORDS_MAX && tallies[at].present() == words
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
    fn words_are_cut_to_what_their_forms_share() {
        for (question, expected) in [
            ("Where is the parser defined?", &["pars", "defin"][..]),
            ("parse parsing parsed", &["pars"]),
            ("disk: a lease ends", &["disk", "leas", "end"]),
            ("is it so", &[]),
            ("read_only", &["read_onl"]),
        ] {
            assert_eq!(words(question), expected, "{question}");
        }
    }

    fn best(question: &str, files: &[(&str, &str)]) -> Vec<String> {
        let words = words(question);
        let mut tallies = Vec::new();
        for (path, text) in files {
            let mut tally = Tally::new(path, text.len() as u64, &words);
            for line in text.lines() {
                tally.add(line, &words);
            }
            tallies.push(tally);
        }
        order(&tallies, files.len() as u64).into_iter().map(|at| tallies[at].path.clone()).collect()
    }

    #[test]
    fn all_words_come_before_many_times_one() {
        let files = [("a.rs", "lease\nlease\nlease\nlease"), ("b.rs", "a lease\nit ends"), ("c.rs", "ends")];
        assert_eq!(best("lease ends", &files), ["b.rs", "a.rs", "c.rs"]);
    }

    #[test]
    fn names_and_definitions_count_more_and_tests_less() {
        let files = [
            ("x.rs", "lease"),
            ("lease.rs", "lease"),
            ("y.rs", "fn lease() {}"),
            ("tests/z.rs", "fn lease() {}"),
        ];
        assert_eq!(best("lease", &files), ["lease.rs", "y.rs", "x.rs", "tests/z.rs"]);
    }
}
