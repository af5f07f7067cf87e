//! Parses and formats times and durations in UTC.

use crate::output::{self, CommandError};

const SECOND_MS: i64 = 1000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// The number of days from 0000-03-01 to 1970-01-01. Date calculations use years that start in March, so that the leap
/// day is the last day of a year.
const EPOCH_DAYS: i64 = 719_468;
const CYCLE_DAYS: i64 = 146_097;
const YEAR_MAX: i64 = 9999;

/// Formats Unix milliseconds as `2026-05-09T07:29:33Z`.
pub(crate) fn iso_utc(unix_ms: i64) -> String {
    let (days, rest) = (unix_ms.div_euclid(DAY_MS), unix_ms.rem_euclid(DAY_MS));
    let shifted = days + EPOCH_DAYS;
    let (cycle, day) = (shifted.div_euclid(CYCLE_DAYS), shifted.rem_euclid(CYCLE_DAYS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = cycle * 400 + year + i64::from(month <= 2);
    let (hour, minute, second) = (rest / HOUR_MS, rest / MINUTE_MS % 60, rest / SECOND_MS % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Formats Unix milliseconds as `2026-05-09T07:29:33.042Z`.
pub(crate) fn iso_utc_ms(unix_ms: i64) -> String {
    let whole = iso_utc(unix_ms);
    format!("{}.{:03}Z", whole.trim_end_matches('Z'), unix_ms.rem_euclid(SECOND_MS))
}

/// Parses a time such as `2026-05-09`, `2026-05-09T07:29` or `2026-05-09T07:29:33Z`, or an age such as `90s` or `7d`.
pub(crate) fn parse_time(text: &str, now_ms: i64) -> Option<i64> {
    if let Some(ago_ms) = parse_age(text) {
        return Some(now_ms.saturating_sub(ago_ms));
    }
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let [year, month, day] = parse_numbers(date, '-')?;
    let clock = if clock.matches(':').count() == 1 { format!("{clock}:00") } else { clock.to_owned() };
    let [hour, minute, second] = parse_numbers(&clock, ':')?;
    let fits = (0..=YEAR_MAX).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !fits || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let unix_ms =
        days_since_epoch(year, month, day) * DAY_MS + hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS;
    // Rejects days that the month does not have.
    iso_utc(unix_ms).starts_with(&format!("{year:04}-{month:02}-{day:02}")).then_some(unix_ms)
}

/// Parses a duration such as `90s`, `30m`, `2h` or `7d`, and returns milliseconds.
pub(crate) fn parse_duration(flag: &str, text: &str) -> Result<i64, CommandError> {
    parse_age(text).ok_or_else(|| {
        output::usage_error(format!("{flag}: '{text}' is not a duration; use a form such as 90s, 30m, 2h or 7d"))
    })
}

fn parse_age(text: &str) -> Option<i64> {
    let unit = match text.chars().last()? {
        's' => SECOND_MS,
        'm' => MINUTE_MS,
        'h' => HOUR_MS,
        'd' => DAY_MS,
        _ => return None,
    };
    parse_number(&text[..text.len() - 1])?.checked_mul(unit)
}

fn parse_numbers<const N: usize>(text: &str, separator: char) -> Option<[i64; N]> {
    let parts: Vec<i64> = text.split(separator).map(parse_number).collect::<Option<_>>()?;
    parts.try_into().ok()
}

fn parse_number(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (cycle, year_of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    cycle * CYCLE_DAYS + year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year - EPOCH_DAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_and_formatted() {
        for (text, unix_ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T00:00:00Z", 951_782_400_000),
            ("2026-11-15T22:31:05Z", 1_794_781_865_000),
            ("1969-12-31T23:59:59Z", -1000),
            ("2100-03-01T00:00:00Z", 4_107_542_400_000),
        ] {
            assert_eq!(parse_time(text, 0), Some(unix_ms), "{text}");
            assert_eq!(iso_utc(unix_ms), text);
        }
        assert_eq!(parse_time("1970-01-02", 0), Some(DAY_MS));
        assert_eq!(parse_time("1970-01-01 01:30", 0), Some(HOUR_MS + 30 * MINUTE_MS));
        assert_eq!(parse_time("2h", 3 * HOUR_MS), Some(HOUR_MS));
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in
            ["", "h", "yesterday", "2026-13-01", "2026-02-30", "2026-01-01T25:00", "-5m", "1-2", "2026-01-01T1:2:3:4"]
        {
            assert_eq!(parse_time(text, 0), None, "{text}");
        }
    }
}
