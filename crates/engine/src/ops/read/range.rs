//! Ranges as callers write them: `a-b`, `a-` and `a`, both ends included. Owns the parser and its refusals. A number
//! too large to hold is a number past the end, never a wrapped one.

use super::super::answer::excerpt;
use crate::failure::{Failure, Kind};

/// What a range counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Lines, from 1.
    Lines,
    /// Bytes, from 0.
    Bytes,
}

impl Unit {
    fn argument(self) -> &'static str {
        match self {
            Unit::Lines => "lines",
            Unit::Bytes => "bytes",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Unit::Lines => "lines is written \"10-60\", \"10-\" or \"10\"; the first line is 1",
            Unit::Bytes => "bytes is written \"0-1048575\", \"0-\" or \"0\"; the first byte is 0",
        }
    }

    fn first(self) -> u64 {
        match self {
            Unit::Lines => 1,
            Unit::Bytes => 0,
        }
    }
}

/// A range with both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    /// The first wanted.
    pub(super) first: u64,
    /// The last wanted; nothing means to the end.
    pub(super) last: Option<u64>,
}

impl Range {
    /// How many are asked for.
    pub(super) fn length(self) -> u64 {
        self.last.map_or(u64::MAX, |last| last.saturating_sub(self.first).saturating_add(1))
    }
}

/// Reads a range.
pub(super) fn parse(written: &str, unit: Unit) -> Result<Range, Failure> {
    let malformed = || {
        let shown = excerpt(written);
        Failure::new(Kind::BadRequest, format!("'{shown}' is not a range of {}", unit.argument()))
            .hint(unit.example())
    };
    let trimmed = written.trim();
    let (first, last) = match trimmed.split_once('-') {
        Some((first, "")) => (number(first).ok_or_else(malformed)?, None),
        Some((first, last)) => {
            let last = number(last).ok_or_else(malformed)?;
            (number(first).ok_or_else(malformed)?, Some(last))
        }
        None => {
            let only = number(trimmed).ok_or_else(malformed)?;
            (only, Some(only))
        }
    };
    if first < unit.first() || last.is_some_and(|last| last < first) {
        return Err(malformed());
    }
    Ok(Range { first, last })
}

/// Digits and nothing else.
fn number(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_written() {
        for (written, unit, first, last) in [
            ("10-60", Unit::Lines, 10, Some(60)),
            ("10-", Unit::Lines, 10, None),
            ("10", Unit::Lines, 10, Some(10)),
            (" 1-1 ", Unit::Lines, 1, Some(1)),
            ("0-1048575", Unit::Bytes, 0, Some(1_048_575)),
            ("0", Unit::Bytes, 0, Some(0)),
            ("1-99999999999999999999999", Unit::Lines, 1, Some(u64::MAX)),
            ("99999999999999999999999-", Unit::Bytes, u64::MAX, None),
        ] {
            assert_eq!(parse(written, unit).unwrap(), Range { first, last }, "{written}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for written in
            ["", "-", "-20", "0-5", "0", "5-4", "a-b", "1-2-3", "1..5", "+1", "1,5", "١", "-1--5", "1 - 5"]
        {
            let failure = parse(written, Unit::Lines).unwrap_err();
            assert_eq!(failure.kind, Kind::BadRequest, "{written}");
            assert!(failure.hint.unwrap().contains("10-60"), "{written}");
        }
        assert_eq!(parse("9-8", Unit::Bytes).unwrap_err().kind, Kind::BadRequest);
    }
}
