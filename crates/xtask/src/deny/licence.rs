//! Evaluates SPDX licence expressions against a list of allowed licences.
//!
//! Supports `OR`, `AND`, `WITH`, parentheses, and the old `/` for `OR`. A licence expression that cannot be parsed is
//! an error.

use std::{collections::BTreeSet, iter::Peekable, vec::IntoIter};

type LicenceTokens = Peekable<IntoIter<String>>;

pub(super) fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
    let mut words = words.into_iter().peekable();
    let answer = parse_or(&mut words, allowed)?;
    match words.next() {
        None => Ok(answer),
        Some(word) => Err(format!("unexpected '{word}'")),
    }
}

fn parse_or(words: &mut LicenceTokens, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let mut answer = parse_and(words, allowed)?;
    while words.next_if_eq("OR").is_some() {
        answer |= parse_and(words, allowed)?;
    }
    Ok(answer)
}

fn parse_and(words: &mut LicenceTokens, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let mut answer = parse_single(words, allowed)?;
    while words.next_if_eq("AND").is_some() {
        answer &= parse_single(words, allowed)?;
    }
    Ok(answer)
}

fn parse_single(words: &mut LicenceTokens, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let word = words.next().ok_or("ends too early")?;
    match word.as_str() {
        "(" => {
            let answer = parse_or(words, allowed)?;
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

    fn is_allowed_by_defaults(expression: &str) -> Result<bool, String> {
        is_allowed(expression, &["MIT", "Zlib"].map(str::to_owned).into())
    }

    #[test]
    fn licence_expressions_are_evaluated() {
        for good in ["MIT", "GPL-3.0-only OR MIT", "MIT/Apache-2.0", "MIT AND (Zlib OR Other)", "X WITH Y OR MIT"] {
            assert_eq!(is_allowed_by_defaults(good), Ok(true), "{good}");
        }
        for bad in ["GPL-3.0-only", "MIT AND Other", "(Other OR GPL-3.0-only) AND MIT", "MIT WITH Y"] {
            assert_eq!(is_allowed_by_defaults(bad), Ok(false), "{bad}");
        }
    }

    #[test]
    fn malformed_expression_is_not_allowed() {
        for broken in ["", "MIT OR", "(MIT", "MIT)", "AND MIT", "MIT Zlib", "MIT WITH"] {
            assert!(is_allowed_by_defaults(broken).is_err(), "{broken}");
        }
    }
}
