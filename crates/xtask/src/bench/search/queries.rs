//! Queries made from what files hold, by choices that can be repeated: names and parts of lines as they are, and regular
//! expressions that are true of a line.

use super::ripgrep::Syntax;

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) text: String,
    pub(super) syntax: Syntax,
}

/// Choices that can be repeated (the splitmix sequence).
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`; zero when there is none.
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

/// Shortest name that is worth a query.
const NAME_CHARS_MIN: usize = 4;
/// Characters of a line that a literal query may have.
const PART_CHARS_MAX: usize = 24;

/// A query that is true of a line; nothing when the line gives none.
pub(super) fn from_line(chance: &mut Chance, line: &str) -> Option<Query> {
    let names: Vec<&str> = line
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|name| name.len() >= NAME_CHARS_MIN)
        .collect();
    let name = *chance.pick(&names)?;
    let literal = |text: &str| Query { text: text.to_owned(), syntax: Syntax::Literal };
    let regex = |text: String| Query { text, syntax: Syntax::Regex };
    Some(match chance.below(8) {
        0 | 1 => literal(name),
        2 | 3 => {
            let part: String = line.trim().chars().take(PART_CHARS_MAX).collect();
            literal(&part)
        }
        4 => regex(format!(r"\b{name}\b")),
        5 => regex(format!(r"(?i){}\w*\s*[(:=]", &name[..NAME_CHARS_MIN])),
        6 => regex(format!(r"^\s*\S+.*{name}")),
        _ => regex(format!(r"{}[a-z_]+{}?$", &name[..2], regex_last(line))),
    })
}

/// The last character of a line, if it means itself.
fn regex_last(line: &str) -> String {
    let last = line.trim_end().chars().last();
    last.filter(|last| last.is_ascii_alphanumeric() || ",;:".contains(*last))
        .map_or_else(|| ".".into(), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_asks_the_same() {
        let made = || {
            let mut chance = Chance::seeded(3);
            (0..50)
                .filter_map(|_| from_line(&mut chance, "    let config_value = parse(input);"))
                .collect::<Vec<_>>()
        };
        assert_eq!(made(), made());
        assert!(made().iter().any(|query| query.syntax == Syntax::Regex));
        assert_eq!(from_line(&mut Chance::seeded(1), "a = b"), None);
    }
}
