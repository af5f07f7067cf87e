//! The trigrams that a search pattern requires, as a boolean condition derived from the syntax tree of the pattern.
//! Every text with a match satisfies the trigram condition, but a text without a match may satisfy it too. The trigram
//! condition has a bounded size for every search pattern.

use regex_syntax::{
    ParserBuilder,
    hir::{Class, Hir, HirKind, Repetition},
};

use super::{Trigram, for_each_trigram};
use crate::ops::SearchCaseSensitivity;

const EXACT_TEXTS_MAX: usize = 64;
const EXACT_TEXT_BYTES_MAX: usize = 256;
const EXPRESSION_SIZE_MAX: usize = 2_048;
const CLASS_MEMBERS_MAX: usize = 12;
const REPETITIONS_MAX: u32 = 16;
const TRIGRAMS_PER_TEXT_MAX: usize = 48;
const NESTING_DEPTH_MAX: u32 = 100;

/// A condition on the trigrams of a text, which every text with a match satisfies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequiredTrigrams {
    Anything,
    Trigram(Trigram),
    All(Vec<RequiredTrigrams>),
    Any(Vec<RequiredTrigrams>),
}

#[derive(Clone)]
enum PatternPartTrigramAnalysis {
    ExactTexts(Vec<Vec<u8>>),
    Requires(RequiredTrigrams),
}

impl RequiredTrigrams {
    pub(crate) fn for_regex(expression: &str, case: SearchCaseSensitivity) -> Self {
        let parsed = ParserBuilder::new()
            .nest_limit(NESTING_DEPTH_MAX)
            .utf8(false)
            .multi_line(true)
            .case_insensitive(case == SearchCaseSensitivity::Insensitive)
            .build()
            .parse(expression);
        parsed.map_or(Self::Anything, |hir| analyze_hir(&hir).into_required())
    }

    pub(crate) fn for_literal(text: &str) -> Self {
        trigrams_of_bytes(text.as_bytes())
    }

    fn all(needs: Vec<Self>) -> Self {
        let (mut all, mut size) = (Vec::new(), 0);
        for need in needs {
            size += need.size();
            // The remaining conditions are dropped. More texts then satisfy the result, which is safe.
            if size > EXPRESSION_SIZE_MAX {
                break;
            }
            match need {
                Self::Anything => {}
                Self::All(needs) => all.extend(needs),
                other @ (Self::Trigram(_) | Self::Any(_)) => all.push(other),
            }
        }
        match all.len() {
            0 => Self::Anything,
            1 => all.remove(0),
            _ => Self::All(all),
        }
    }

    pub(crate) fn any(mut needs: Vec<Self>) -> Self {
        let size: usize = needs.iter().map(Self::size).sum();
        if size > EXPRESSION_SIZE_MAX || needs.contains(&Self::Anything) {
            return Self::Anything;
        }
        needs.dedup();
        if needs.len() == 1 { needs.remove(0) } else { Self::Any(needs) }
    }

    fn size(&self) -> usize {
        match self {
            Self::Anything | Self::Trigram(_) => 1,
            Self::All(needs) | Self::Any(needs) => 1 + needs.iter().map(Self::size).sum::<usize>(),
        }
    }
}

fn trigrams_of_bytes(text: &[u8]) -> RequiredTrigrams {
    let mut grams = Vec::new();
    for_each_trigram(text, |gram| {
        if grams.len() < TRIGRAMS_PER_TEXT_MAX && !grams.contains(&gram) {
            grams.push(gram);
        }
    });
    RequiredTrigrams::all(grams.into_iter().map(RequiredTrigrams::Trigram).collect())
}

impl PatternPartTrigramAnalysis {
    fn into_required(self) -> RequiredTrigrams {
        match self {
            Self::ExactTexts(texts) => {
                RequiredTrigrams::any(texts.iter().map(|text| trigrams_of_bytes(text)).collect())
            }
            Self::Requires(need) => need,
        }
    }

    fn empty() -> Self {
        Self::ExactTexts(vec![Vec::new()])
    }

    fn unknown() -> Self {
        Self::Requires(RequiredTrigrams::Anything)
    }
}

fn analyze_hir(hir: &Hir) -> PatternPartTrigramAnalysis {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => PatternPartTrigramAnalysis::empty(),
        HirKind::Literal(literal) => PatternPartTrigramAnalysis::ExactTexts(vec![literal.0.to_ascii_lowercase()]),
        HirKind::Class(class) => class_members(class)
            .map_or_else(PatternPartTrigramAnalysis::unknown, PatternPartTrigramAnalysis::ExactTexts),
        HirKind::Capture(capture) => analyze_hir(&capture.sub),
        HirKind::Repetition(repetition) => analyze_repetition(repetition),
        HirKind::Concat(parts) => concatenate_parts(parts.iter().map(analyze_hir)),
        HirKind::Alternation(parts) => alternate_parts(parts.iter().map(analyze_hir).collect()),
    }
}

fn class_members(class: &Class) -> Option<Vec<Vec<u8>>> {
    let mut members: Vec<Vec<u8>> = match class {
        Class::Unicode(class) => {
            let characters = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            let lower = characters.map(|character| character.to_ascii_lowercase().to_string().into_bytes());
            lower.take(CLASS_MEMBERS_MAX + 1).collect()
        }
        Class::Bytes(class) => {
            let bytes = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            bytes.map(|byte| vec![byte.to_ascii_lowercase()]).take(CLASS_MEMBERS_MAX + 1).collect()
        }
    };
    if members.len() > CLASS_MEMBERS_MAX {
        return None;
    }
    members.sort();
    members.dedup();
    Some(members)
}

fn analyze_repetition(repetition: &Repetition) -> PatternPartTrigramAnalysis {
    let Repetition { min, max, sub, .. } = repetition;
    match (min, max) {
        (0, Some(1)) => alternate_parts(vec![PatternPartTrigramAnalysis::empty(), analyze_hir(sub)]),
        (0, _) => PatternPartTrigramAnalysis::unknown(),
        (min, max) => match analyze_hir(sub) {
            texts @ PatternPartTrigramAnalysis::ExactTexts(_) if *max == Some(*min) && *min <= REPETITIONS_MAX => {
                concatenate_parts((0..*min).map(|_| texts.clone()))
            }
            // A match contains the repeated part at least once. The text before and after the part is unknown.
            sub @ (PatternPartTrigramAnalysis::ExactTexts(_) | PatternPartTrigramAnalysis::Requires(_)) => {
                PatternPartTrigramAnalysis::Requires(sub.into_required())
            }
        },
    }
}

fn concatenate_parts(parts: impl Iterator<Item = PatternPartTrigramAnalysis>) -> PatternPartTrigramAnalysis {
    let mut needs: Vec<RequiredTrigrams> = Vec::new();
    let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
    let mut exact = true;
    for part in parts {
        match part {
            PatternPartTrigramAnalysis::ExactTexts(more) => match cross_product(&texts, &more) {
                Some(crossed) => texts = crossed,
                None => {
                    exact = false;
                    needs.push(
                        PatternPartTrigramAnalysis::ExactTexts(std::mem::replace(&mut texts, more)).into_required(),
                    );
                }
            },
            PatternPartTrigramAnalysis::Requires(need) => {
                exact = false;
                needs.push(
                    PatternPartTrigramAnalysis::ExactTexts(std::mem::replace(&mut texts, vec![Vec::new()]))
                        .into_required(),
                );
                needs.push(need);
            }
        }
    }
    if exact {
        return PatternPartTrigramAnalysis::ExactTexts(texts);
    }
    needs.push(PatternPartTrigramAnalysis::ExactTexts(texts).into_required());
    PatternPartTrigramAnalysis::Requires(RequiredTrigrams::all(needs))
}

fn cross_product(texts: &[Vec<u8>], more: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let longest = |texts: &[Vec<u8>]| texts.iter().map(Vec::len).max().unwrap_or(0);
    let long = longest(texts) + longest(more) > EXACT_TEXT_BYTES_MAX;
    if long || texts.len().saturating_mul(more.len()) > EXACT_TEXTS_MAX {
        return None;
    }
    let one = |text: &Vec<u8>| more.iter().map(|rest| [&text[..], rest].concat()).collect::<Vec<_>>();
    Some(texts.iter().flat_map(one).collect())
}

fn alternate_parts(parts: Vec<PatternPartTrigramAnalysis>) -> PatternPartTrigramAnalysis {
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut needs: Vec<RequiredTrigrams> = Vec::new();
    for part in parts {
        match part {
            PatternPartTrigramAnalysis::ExactTexts(more) => texts.extend(more),
            PatternPartTrigramAnalysis::Requires(need) => needs.push(need),
        }
    }
    if needs.is_empty() && texts.len() <= EXACT_TEXTS_MAX {
        return PatternPartTrigramAnalysis::ExactTexts(texts);
    }
    needs.extend(texts.iter().map(|text| trigrams_of_bytes(text)));
    PatternPartTrigramAnalysis::Requires(RequiredTrigrams::any(needs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_required(need: &RequiredTrigrams) -> String {
        let list = |needs: &[RequiredTrigrams]| needs.iter().map(render_required).collect::<Vec<_>>().join(" ");
        match need {
            RequiredTrigrams::Anything => "*".to_owned(),
            RequiredTrigrams::Trigram(gram) => String::from_utf8_lossy(&gram.to_be_bytes()[1..]).into_owned(),
            RequiredTrigrams::All(needs) => format!("({})", list(needs)),
            RequiredTrigrams::Any(needs) => format!("[{}]", list(needs)),
        }
    }

    fn required_for_regex(expression: &str) -> String {
        render_required(&RequiredTrigrams::for_regex(expression, SearchCaseSensitivity::Sensitive))
    }

    #[test]
    fn literal_requires_its_trigrams() {
        assert_eq!(render_required(&RequiredTrigrams::for_literal("FooBar")), "(foo oob oba bar)");
        assert_eq!(render_required(&RequiredTrigrams::for_literal("ab")), "*");
        assert_eq!(render_required(&RequiredTrigrams::for_literal("aaaaa")), "aaa");
        assert_eq!(render_required(&RequiredTrigrams::for_literal("é1")), "é1");
    }

    #[test]
    fn regex_requires_the_trigrams_common_to_all_matches() {
        for (pattern, expected) in [
            ("abc", "abc"),
            ("^abc$", "abc"),
            ("abc.*def", "(abc def)"),
            ("abc|def", "[abc def]"),
            ("(abc|de)f", "[(abc bcf) def]"),
            ("ab[cd]e", "[(abc bce) (abd bde)]"),
            ("abc?d", "[abd (abc bcd)]"),
            ("(abc)+x", "abc"),
            ("(abc)*", "*"),
            ("a{4}", "aaa"),
            ("abc|.*", "*"),
            ("\\w+", "*"),
            ("a)|(bcd", "*"),
            ("\\bfoo\\b", "foo"),
            ("(?i)abc", "abc"),
            ("abc\\s+def", "(abc def)"),
            ("x(abc.|def.)y", "[abc def]"),
            ("", "*"),
        ] {
            assert_eq!(required_for_regex(pattern), expected, "{pattern}");
        }
        let folded = render_required(&RequiredTrigrams::for_regex("Kas", SearchCaseSensitivity::Insensitive));
        assert!(folded.contains("kas") && folded.contains("ſ"), "{folded}");
    }

    #[test]
    fn required_trigrams_stay_bounded_for_large_patterns() {
        for pattern in [
            "[ab]".repeat(200),
            "(a|b|cd)?".repeat(50),
            "sk".repeat(300),
            "x{16}{16}{16}".to_owned(),
            "(a.b){16}".repeat(90),
        ] {
            let need = RequiredTrigrams::for_regex(&pattern, SearchCaseSensitivity::Insensitive);
            assert!(need.size() <= EXPRESSION_SIZE_MAX + 1, "{pattern}: {}", need.size());
        }
    }
}
