//! What a pattern needs of a text: grams that every text with a matching line holds. Read from the pattern's own
//! syntax tree, so that it is true of whatever the searcher finds.
//!
//! Promises: a text that does not hold what is needed has no match. Says little rather than something wrong, and stays
//! small whatever the pattern.

use regex_syntax::{
    ParserBuilder,
    hir::{Class, Hir, HirKind, Repetition},
};

use super::{Gram, grams::each};

/// Most different texts that a part of a pattern is taken for; beyond it less is said.
const TEXTS_MAX: usize = 64;
/// Longest of them, when they are put together from parts.
const TEXT_BYTES_MAX: usize = 256;
/// Most grams and their groups in one need.
const SIZE_MAX: usize = 2_048;
/// Most members of a class of characters that is taken for texts.
const CLASS_MAX: usize = 12;
/// Most repetitions that are written out.
const TIMES_MAX: u32 = 16;
/// Most grams of one text that are asked for.
const GRAMS_MAX: usize = 48;
/// Deepest nesting of a pattern that is looked at.
const NEST_MAX: u32 = 100;

/// What every text with a match holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// Nothing can be said: every text may match.
    Anything,
    /// This gram.
    Gram(Gram),
    /// All of these.
    All(Vec<Need>),
    /// One of these; of none, nothing matches.
    Any(Vec<Need>),
}

/// What is known of a part of a pattern.
#[derive(Clone)]
enum Part {
    /// It matches exactly these texts, or fewer.
    Texts(Vec<Vec<u8>>),
    /// What it matches needs this.
    Needs(Need),
}

impl Need {
    /// What a match of a regular expression needs, large and small letters told apart or not.
    pub(crate) fn of_expression(expression: &str, ignore_case: crate::ops::Cases) -> Self {
        let parsed = ParserBuilder::new()
            .nest_limit(NEST_MAX)
            .utf8(false)
            .multi_line(true)
            .case_insensitive(ignore_case == crate::ops::Cases::Same)
            .build()
            .parse(expression);
        parsed.map_or(Self::Anything, |hir| part(&hir).need())
    }

    /// What a line with this text needs.
    pub(crate) fn of_text(text: &str) -> Self {
        of_bytes(text.as_bytes())
    }

    /// All of these.
    fn all(needs: Vec<Self>) -> Self {
        let (mut all, mut size) = (Vec::new(), 0);
        for need in needs {
            size += need.size();
            // To ask for less is never wrong.
            if size > SIZE_MAX {
                break;
            }
            match need {
                Self::Anything => {}
                Self::All(needs) => all.extend(needs),
                other @ (Self::Gram(_) | Self::Any(_)) => all.push(other),
            }
        }
        match all.len() {
            0 => Self::Anything,
            1 => all.remove(0),
            _ => Self::All(all),
        }
    }

    /// One of these.
    pub(crate) fn any(mut needs: Vec<Self>) -> Self {
        let size: usize = needs.iter().map(Self::size).sum();
        if size > SIZE_MAX || needs.contains(&Self::Anything) {
            return Self::Anything;
        }
        needs.dedup();
        if needs.len() == 1 { needs.remove(0) } else { Self::Any(needs) }
    }
}

impl Need {
    fn size(&self) -> usize {
        match self {
            Self::Anything | Self::Gram(_) => 1,
            Self::All(needs) | Self::Any(needs) => 1 + needs.iter().map(Self::size).sum::<usize>(),
        }
    }
}

fn of_bytes(text: &[u8]) -> Need {
    let mut grams = Vec::new();
    each(text, |gram| {
        if grams.len() < GRAMS_MAX && !grams.contains(&gram) {
            grams.push(gram);
        }
    });
    Need::all(grams.into_iter().map(Need::Gram).collect())
}

impl Part {
    fn need(self) -> Need {
        match self {
            Self::Texts(texts) => Need::any(texts.iter().map(|text| of_bytes(text)).collect()),
            Self::Needs(need) => need,
        }
    }

    fn empty() -> Self {
        Self::Texts(vec![Vec::new()])
    }

    fn unknown() -> Self {
        Self::Needs(Need::Anything)
    }
}

fn part(hir: &Hir) -> Part {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Part::empty(),
        HirKind::Literal(literal) => Part::Texts(vec![literal.0.to_ascii_lowercase()]),
        HirKind::Class(class) => members(class).map_or_else(Part::unknown, Part::Texts),
        HirKind::Capture(capture) => part(&capture.sub),
        HirKind::Repetition(repetition) => repeated(repetition),
        HirKind::Concat(parts) => joined(parts.iter().map(part)),
        HirKind::Alternation(parts) => either(parts.iter().map(part).collect()),
    }
}

/// The members of a small class, large ASCII letters as small ones.
fn members(class: &Class) -> Option<Vec<Vec<u8>>> {
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut add = |text: Vec<u8>| {
        if !texts.contains(&text) {
            texts.push(text);
        }
    };
    match class {
        Class::Unicode(class) => {
            let size: usize = class.ranges().iter().map(|range| range.len()).sum();
            if size > CLASS_MAX {
                return None;
            }
            for character in class.ranges().iter().flat_map(|range| range.start()..=range.end()) {
                add(character.to_ascii_lowercase().to_string().into_bytes());
            }
        }
        Class::Bytes(class) => {
            let size: usize = class.ranges().iter().map(|range| range.len()).sum();
            if size > CLASS_MAX {
                return None;
            }
            for byte in class.ranges().iter().flat_map(|range| range.start()..=range.end()) {
                add(vec![byte.to_ascii_lowercase()]);
            }
        }
    }
    Some(texts)
}

fn repeated(repetition: &Repetition) -> Part {
    let Repetition { min, max, sub, .. } = repetition;
    match (min, max) {
        (0, Some(1)) => either(vec![Part::empty(), part(sub)]),
        (0, _) => Part::unknown(),
        (min, max) => match part(sub) {
            texts @ Part::Texts(_) if *max == Some(*min) && *min <= TIMES_MAX => {
                joined((0..*min).map(|_| texts.clone()))
            }
            // At least once, and what comes before and after may be another one.
            sub @ (Part::Texts(_) | Part::Needs(_)) => Part::Needs(sub.need()),
        },
    }
}

/// One after the other.
fn joined(parts: impl Iterator<Item = Part>) -> Part {
    let mut needs: Vec<Need> = Vec::new();
    let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
    let mut exact = true;
    for part in parts {
        match part {
            Part::Texts(more) => match crossed(&texts, &more) {
                Some(crossed) => texts = crossed,
                None => {
                    exact = false;
                    needs.push(Part::Texts(std::mem::replace(&mut texts, more)).need());
                }
            },
            Part::Needs(need) => {
                exact = false;
                needs.push(Part::Texts(std::mem::replace(&mut texts, vec![Vec::new()])).need());
                needs.push(need);
            }
        }
    }
    if exact {
        return Part::Texts(texts);
    }
    needs.push(Part::Texts(texts).need());
    Part::Needs(Need::all(needs))
}

/// Every text followed by every other; nothing when those are too many.
fn crossed(texts: &[Vec<u8>], more: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let longest = |texts: &[Vec<u8>]| texts.iter().map(Vec::len).max().unwrap_or(0);
    let long = longest(texts) + longest(more) > TEXT_BYTES_MAX;
    if long || texts.len().saturating_mul(more.len()) > TEXTS_MAX {
        return None;
    }
    let one = |text: &Vec<u8>| more.iter().map(|rest| [&text[..], rest].concat()).collect::<Vec<_>>();
    Some(texts.iter().flat_map(one).collect())
}

/// One or the other.
fn either(parts: Vec<Part>) -> Part {
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut needs: Vec<Need> = Vec::new();
    for part in parts {
        match part {
            Part::Texts(more) => texts.extend(more),
            Part::Needs(need) => needs.push(need),
        }
    }
    if needs.is_empty() && texts.len() <= TEXTS_MAX {
        return Part::Texts(texts);
    }
    needs.extend(texts.iter().map(|text| of_bytes(text)));
    Part::Needs(Need::any(needs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Cases;

    fn shown(need: &Need) -> String {
        let list = |needs: &[Need]| needs.iter().map(shown).collect::<Vec<_>>().join(" ");
        match need {
            Need::Anything => "*".to_owned(),
            Need::Gram(gram) => String::from_utf8_lossy(&gram.to_be_bytes()[1..]).into_owned(),
            Need::All(needs) => format!("({})", list(needs)),
            Need::Any(needs) => format!("[{}]", list(needs)),
        }
    }

    fn expression(expression: &str) -> String {
        shown(&Need::of_expression(expression, Cases::Differ))
    }

    #[test]
    fn texts_need_their_grams() {
        assert_eq!(shown(&Need::of_text("FooBar")), "(foo oob oba bar)");
        assert_eq!(shown(&Need::of_text("ab")), "*");
        assert_eq!(shown(&Need::of_text("aaaaa")), "aaa");
        assert_eq!(shown(&Need::of_text("é1")), "é1");
    }

    #[test]
    fn expressions_need_what_all_their_matches_hold() {
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
            assert_eq!(expression(pattern), expected, "{pattern}");
        }
        let folded = shown(&Need::of_expression("Kas", Cases::Same));
        assert!(folded.contains("kas") && folded.contains("ſ"), "{folded}");
    }

    #[test]
    fn a_pattern_of_any_size_has_a_small_need() {
        for pattern in [
            "[ab]".repeat(200),
            "(a|b|cd)?".repeat(50),
            "sk".repeat(300),
            "x{16}{16}{16}".to_owned(),
            "(a.b){16}".repeat(90),
        ] {
            let need = Need::of_expression(&pattern, Cases::Same);
            assert!(need.size() <= SIZE_MAX + 1, "{pattern}: {}", need.size());
        }
    }
}
