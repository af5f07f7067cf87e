//! Licence expressions: which of them a list of allowed licences satisfies.
//!
//! Owns a small reading of SPDX expressions: `OR`, `AND`, `WITH`, parentheses, and the old `/` for `OR`. An expression
//! that cannot be read is a problem, never a yes.

use std::{collections::BTreeSet, iter::Peekable, vec::IntoIter};

type Words = Peekable<IntoIter<String>>;

/// Whether the allowed licences satisfy the expression.
pub(super) fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
    let mut words = words.into_iter().peekable();
    let answer = either(&mut words, allowed)?;
    match words.next() {
        None => Ok(answer),
        Some(word) => Err(format!("unexpected '{word}'")),
    }
}

fn either(words: &mut Words, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let mut answer = both(words, allowed)?;
    while words.next_if_eq("OR").is_some() {
        answer |= both(words, allowed)?;
    }
    Ok(answer)
}

fn both(words: &mut Words, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let mut answer = single(words, allowed)?;
    while words.next_if_eq("AND").is_some() {
        answer &= single(words, allowed)?;
    }
    Ok(answer)
}

fn single(words: &mut Words, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let word = words.next().ok_or("ends too early")?;
    match word.as_str() {
        "(" => {
            let answer = either(words, allowed)?;
            words.next_if_eq(")").ok_or("a parenthesis stays open")?;
            Ok(answer)
        }
        ")" | "OR" | "AND" | "WITH" => Err(format!("unexpected '{word}'")),
        licence => match words.next_if_eq("WITH") {
            None => Ok(allowed.contains(licence)),
            Some(_) => {
                let exception = words.next().ok_or("ends too early")?;
                Ok(allowed.contains(&format!("{licence} WITH {exception}")))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str) -> Result<bool, String> {
        is_allowed(expression, &["MIT", "Zlib"].map(str::to_owned).into())
    }

    #[test]
    fn expressions_are_judged() {
        for good in
            ["MIT", "GPL-3.0-only OR MIT", "MIT/Apache-2.0", "MIT AND (Zlib OR Other)", "X WITH Y OR MIT"]
        {
            assert_eq!(check(good), Ok(true), "{good}");
        }
        for bad in ["GPL-3.0-only", "MIT AND Other", "(Other OR GPL-3.0-only) AND MIT", "MIT WITH Y"] {
            assert_eq!(check(bad), Ok(false), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_yes() {
        for broken in ["", "MIT OR", "(MIT", "MIT)", "AND MIT", "MIT Zlib", "MIT WITH"] {
            assert!(check(broken).is_err(), "{broken}");
        }
    }
}
