//! Parses ranges `a-b`, `a-` and `a`, both ends included. A number too large to represent counts as past the end; it
//! never wraps.

use super::super::outcome_builder::shorten_for_error;
use crate::errors::{Error, ErrorKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeUnit {
    /// Lines, from 1.
    Lines,
    /// Bytes, from 0.
    Bytes,
}

impl RangeUnit {
    fn argument_name(self) -> &'static str {
        match self {
            RangeUnit::Lines => "lines",
            RangeUnit::Bytes => "bytes",
        }
    }

    fn example(self) -> &'static str {
        match self {
            RangeUnit::Lines => "lines is written \"10-60\", \"10-\" or \"10\"; the first line is 1",
            RangeUnit::Bytes => "bytes is written \"0-1048575\", \"0-\" or \"0\"; the first byte is 0",
        }
    }

    fn first_index(self) -> u64 {
        match self {
            RangeUnit::Lines => 1,
            RangeUnit::Bytes => 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InclusiveRange {
    pub(super) first: u64,
    /// `None` means to the end.
    pub(super) last: Option<u64>,
}

impl InclusiveRange {
    pub(super) fn length(self) -> u64 {
        self.last.map_or(u64::MAX, |last| last.saturating_sub(self.first).saturating_add(1))
    }
}

pub(super) fn parse_range(written: &str, unit: RangeUnit) -> Result<InclusiveRange, Error> {
    let malformed = || {
        let shown = shorten_for_error(written);
        Error::new(ErrorKind::BadRequest, format!("'{shown}' is not a range of {}", unit.argument_name()))
            .with_next_step(unit.example())
    };
    let trimmed = written.trim();
    let (first, last) = match trimmed.split_once('-') {
        Some((first, "")) => (parse_number(first).ok_or_else(malformed)?, None),
        Some((first, last)) => {
            let last = parse_number(last).ok_or_else(malformed)?;
            (parse_number(first).ok_or_else(malformed)?, Some(last))
        }
        None => {
            let only = parse_number(trimmed).ok_or_else(malformed)?;
            (only, Some(only))
        }
    };
    if first < unit.first_index() || last.is_some_and(|last| last < first) {
        return Err(malformed());
    }
    Ok(InclusiveRange { first, last })
}

/// Accepts only digits.
fn parse_number(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_ranges_parse() {
        for (written, unit, first, last) in [
            ("10-60", RangeUnit::Lines, 10, Some(60)),
            ("10-", RangeUnit::Lines, 10, None),
            ("10", RangeUnit::Lines, 10, Some(10)),
            (" 1-1 ", RangeUnit::Lines, 1, Some(1)),
            ("0-1048575", RangeUnit::Bytes, 0, Some(1_048_575)),
            ("0", RangeUnit::Bytes, 0, Some(0)),
            ("1-99999999999999999999999", RangeUnit::Lines, 1, Some(u64::MAX)),
            ("99999999999999999999999-", RangeUnit::Bytes, u64::MAX, None),
        ] {
            assert_eq!(parse_range(written, unit).unwrap(), InclusiveRange { first, last }, "{written}");
        }
    }

    #[test]
    fn malformed_ranges_are_rejected() {
        for written in ["", "-", "-20", "0-5", "0", "5-4", "a-b", "1-2-3", "1..5", "+1", "1,5", "١", "-1--5", "1 - 5"]
        {
            let error = parse_range(written, RangeUnit::Lines).unwrap_err();
            assert_eq!(error.kind, ErrorKind::BadRequest, "{written}");
            assert!(error.next_step.unwrap().contains("10-60"), "{written}");
        }
        assert_eq!(parse_range("9-8", RangeUnit::Bytes).unwrap_err().kind, ErrorKind::BadRequest);
    }
}
