//! Whether lines that are there prove that a change was made before.
//!
//! Owns how much a new text must say, and how much it must have to do with the old one, before its presence means
//! anything. Never looks at where it stands.

/// The fewest characters, white space aside, that say anything.
const CHARS_MIN: usize = 10;

/// The fewest letters and digits of a word that says anything.
const WORD_CHARS_MIN: usize = 3;

/// Whether a new text that is there can only come from a change of the old one: `}` stands everywhere.
pub(crate) fn is_telling(old: &str, new: &str) -> bool {
    let weight = new.chars().filter(|c| !c.is_whitespace()).count();
    let known: std::collections::HashSet<&str> = words(old).collect();
    weight >= CHARS_MIN && words(new).any(|word| known.contains(word))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= WORD_CHARS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_tells_by_its_length_and_its_words() {
        for (old, new, tells) in [
            ("let limit = 10;", "let limit = 20;", true),
            ("limit = 10", "limit = 20", false),
            ("gamma delta", "something else", false),
            ("a = b + c", "a = b + c + d + e + f", false),
            ("größe = 1; // x", "größe = 22; // y", true),
        ] {
            assert_eq!(is_telling(old, new), tells, "{old} {new}");
        }
    }
}
