//! Reproducible queries made from file contents: names and parts of lines as literals, and regular expressions that
//! match a line.

use super::ripgrep::RipgrepBenchPatternKind;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BenchSearchQuery {
    pub(super) text: String,
    pub(super) syntax: RipgrepBenchPatternKind,
}

/// A reproducible random number generator (splitmix).
pub(super) struct QueryRng(u64);

impl QueryRng {
    pub(super) fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`; zero if `end` is zero.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).checked_rem(end).unwrap_or(0)
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(usize::try_from(self.below(from.len() as u64)).unwrap_or(0))
    }
}

const NAME_CHARS_MIN: usize = 4;
const PART_CHARS_MAX: usize = 24;

/// A query that matches a line; `None` if the line is not suitable.
pub(super) fn query_for_line(chance: &mut QueryRng, line: &str) -> Option<BenchSearchQuery> {
    let names: Vec<&str> = line
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|name| name.len() >= NAME_CHARS_MIN)
        .collect();
    let name = *chance.pick(&names)?;
    let literal = |text: &str| BenchSearchQuery { text: text.to_owned(), syntax: RipgrepBenchPatternKind::Literal };
    let regex = |text: String| BenchSearchQuery { text, syntax: RipgrepBenchPatternKind::Regex };
    Some(match chance.below(8) {
        0 | 1 => literal(name),
        2 | 3 => {
            let part: String = line.trim().chars().take(PART_CHARS_MAX).collect();
            literal(&part)
        }
        4 => regex(format!(r"\b{name}\b")),
        5 => regex(format!(r"(?i){}\w*\s*[(:=]", &name[..NAME_CHARS_MIN])),
        6 => regex(format!(r"^\s*\S+.*{name}")),
        _ => regex(format!(r"{}[a-z_]+{}?$", &name[..2], last_literal_char(line))),
    })
}

/// The last character of a line as a regex; `.` if the character could be a metacharacter.
fn last_literal_char(line: &str) -> String {
    let last = line.trim_end().chars().last();
    last.filter(|last| last.is_ascii_alphanumeric() || ",;:".contains(*last)).map_or_else(|| ".".into(), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_generates_the_same_queries() {
        let made = || {
            let mut chance = QueryRng::from_seed(3);
            (0..50)
                .filter_map(|_| query_for_line(&mut chance, "    let config_value = parse(input);"))
                .collect::<Vec<_>>()
        };
        assert_eq!(made(), made());
        assert!(made().iter().any(|query| query.syntax == RipgrepBenchPatternKind::Regex));
        assert_eq!(query_for_line(&mut QueryRng::from_seed(1), "a = b"), None);
    }
}
