//! Formats times and line ranges, and divides text into pages.

use stead_text::{lines, visible::escape_deceptive_line};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// The number of days from 0000-03-01 to 1970-01-01; years start in March, so that they end with the leap day.
const UNIX_EPOCH_DAYS: i64 = 719_468;
/// The number of days in 400 years, after which the Gregorian calendar repeats.
const CALENDAR_ERA_DAYS: i64 = 146_097;

pub fn format_line_span(first: usize, last: usize) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

pub(crate) fn format_iso_utc(unix_ms: i64) -> String {
    let (days, ms) = (unix_ms.div_euclid(DAY_MS), unix_ms.rem_euclid(DAY_MS));
    let shifted = days + UNIX_EPOCH_DAYS;
    let (era, day_of_era) = (shifted.div_euclid(CALENDAR_ERA_DAYS), shifted.rem_euclid(CALENDAR_ERA_DAYS));
    // The leap days before this day are subtracted: one per four years, except for centuries not divisible by 400.
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, the lengths of the months repeat every five months: 31, 30, 31, 30 and 31 days, together 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPageEnd {
    Complete,
    AtLine,
    InsideLine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeTextFirstPage<'a> {
    pub text: &'a str,
    /// The number of lines on the first page of a text, including a truncated line.
    pub lines: usize,
    pub end: TextPageEnd,
}

/// Returns whole lines with at most `chars_max` characters, or the start of a longer first line.
pub fn first_page(text: &str, chars_max: usize) -> OutcomeTextFirstPage<'_> {
    let (mut end, mut chars, mut count) = (0, 0, 0);
    for line in lines::iter(text) {
        chars += line.chars().count();
        if chars > chars_max {
            if count > 0 {
                return OutcomeTextFirstPage { text: &text[..end], lines: count, end: TextPageEnd::AtLine };
            }
            let inside = text.char_indices().nth(chars_max).map_or(text.len(), |(at, _)| at);
            return OutcomeTextFirstPage { text: &text[..inside], lines: 1, end: TextPageEnd::InsideLine };
        }
        end += line.len();
        count += 1;
    }
    OutcomeTextFirstPage { text, lines: count, end: TextPageEnd::Complete }
}

pub(crate) fn shorten_for_error(written: &str) -> String {
    let start: String = written.chars().take(EXCERPT_CHARS).collect();
    escape_deceptive_line(&start).into_owned()
}

const EXCERPT_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_iso_utc() {
        for (unix_ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_123, "2024-02-29T00:00:00.123Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(format_iso_utc(unix_ms), expected, "{unix_ms}");
        }
    }

    #[test]
    fn pages_end_at_line_breaks_when_possible() {
        let check = |text: &str, max: usize, expected: &str, lines: usize, cut: TextPageEnd| {
            let found = first_page(text, max);
            assert_eq!((found.text, found.lines, found.end), (expected, lines, cut), "{text:?} {max}");
        };
        check("", 4, "", 0, TextPageEnd::Complete);
        check("ab\ncd\n", 6, "ab\ncd\n", 2, TextPageEnd::Complete);
        check("ab\ncd\n", 5, "ab\n", 1, TextPageEnd::AtLine);
        check("ab\r\ncd", 4, "ab\r\n", 1, TextPageEnd::AtLine);
        check("abcdef\n", 4, "abcd", 1, TextPageEnd::InsideLine);
        check("äöü", 2, "äö", 1, TextPageEnd::InsideLine);
        check("äöü", 3, "äöü", 1, TextPageEnd::Complete);
        check("a\nbcdef", 3, "a\n", 1, TextPageEnd::AtLine);
    }
}
