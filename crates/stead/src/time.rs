//! Durations of flags.

use crate::output::{self, CommandError};

/// Parses a duration such as `90s`, `30m`, `2h` or `7d`, and returns milliseconds.
pub(crate) fn parse_duration(flag: &str, text: &str) -> Result<i64, CommandError> {
    stead_engine::parse_duration_ms(text).ok_or_else(|| {
        output::usage_error(format!("{flag}: '{text}' is not a duration; use a form such as 90s, 30m, 2h or 7d"))
    })
}
