//! Times and durations as people write them, in UTC.

use serde::{Serialize, Serializer};

use crate::ops::text_pages::format_iso_utc;

const SECOND_MS: i64 = 1000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// The number of days from 0000-03-01 to 1970-01-01. Date calculations use years that start in March, so that the leap
/// day is the last day of a year.
const EPOCH_DAYS: i64 = 719_468;
const CYCLE_DAYS: i64 = 146_097;
const YEAR_MAX: i64 = 9999;

/// A time in UTC that is shown to the second, for example `2026-05-09T07:29:33Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub struct UtcSecond {
    pub unix_ms: i64,
}

impl std::fmt::Display for UtcSecond {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format_iso_utc(self.unix_ms);
        write!(f, "{}Z", text.rsplit_once('.').map_or(text.as_str(), |(seconds, _)| seconds))
    }
}

impl Serialize for UtcSecond {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Parses a time such as `2026-05-09`, `2026-05-09T07:29` or `2026-05-09T07:29:33Z`, or an age such as `90s` or `7d`.
pub fn parse_utc_time(text: &str, now_ms: i64) -> Option<i64> {
    if let Some(ago_ms) = parse_duration_ms(text) {
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
    format_iso_utc(unix_ms).starts_with(&format!("{year:04}-{month:02}-{day:02}")).then_some(unix_ms)
}

/// Parses a duration such as `90s`, `30m`, `2h` or `7d`, and returns milliseconds.
pub fn parse_duration_ms(text: &str) -> Option<i64> {
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
            assert_eq!(parse_utc_time(text, 0), Some(unix_ms), "{text}");
            assert_eq!(UtcSecond { unix_ms }.to_string(), text);
        }
        assert_eq!(parse_utc_time("1970-01-02", 0), Some(DAY_MS));
        assert_eq!(parse_utc_time("1970-01-01 01:30", 0), Some(HOUR_MS + 30 * MINUTE_MS));
        assert_eq!(parse_utc_time("2h", 3 * HOUR_MS), Some(HOUR_MS));
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in
            ["", "h", "yesterday", "2026-13-01", "2026-02-30", "2026-01-01T25:00", "-5m", "1-2", "2026-01-01T1:2:3:4"]
        {
            assert_eq!(parse_utc_time(text, 0), None, "{text}");
        }
    }
}
