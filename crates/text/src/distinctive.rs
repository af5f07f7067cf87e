//! Decides whether the presence of a new text proves that a change was already made.
//!
//! Owns how long the new text must be, and how much it must share with the old one. Never considers its position.

/// The fewest characters, without white space, of a distinctive text.
const DISTINCTIVE_CHARS_MIN: usize = 10;

/// The fewest letters and digits of a word that counts.
const DISTINCTIVE_WORD_CHARS_MIN: usize = 3;

/// Whether `new` is unlikely to be in a file unless `old` was changed into it. A text like `}` is not: it occurs
/// everywhere.
pub(crate) fn is_distinctive(old: &str, new: &str) -> bool {
    let weight = new.chars().filter(|c| !c.is_whitespace()).count();
    let known: std::collections::HashSet<&str> = words(old).collect();
    weight >= DISTINCTIVE_CHARS_MIN && words(new).any(|word| known.contains(word))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= DISTINCTIVE_WORD_CHARS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_distinctive_by_length_or_words() {
        for (old, new, expected) in [
            ("let limit = 10;", "let limit = 20;", true),
            ("limit = 10", "limit = 20", false),
            ("gamma delta", "something else", false),
            ("a = b + c", "a = b + c + d + e + f", false),
            ("größe = 1; // x", "größe = 22; // y", true),
        ] {
            assert_eq!(is_distinctive(old, new), expected, "{old} {new}");
        }
    }
}
