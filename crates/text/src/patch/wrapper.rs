//! Wrappers of a patch: the line endings of the surrounding text, and a heredoc or code fence added by a model. Owns
//! their removal. Never parses the patch.

use super::{PatchGrammar, PatchParseError, PatchParseErrorKind, PatchSourceLine, PatchSyntaxRule};

/// The lines of a patch without its wrapper.
///
/// A text whose first line ends in `\r\n` was sent with CRLF, so each line loses one `\r`. In any other text a `\r`
/// belongs to the line.
pub(super) fn lines(text: &str, grammar: PatchGrammar) -> Result<Vec<PatchSourceLine<'_>>, PatchParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.split('\n').find(|line| !line.trim().is_empty());
    let is_crlf = first.is_some_and(|line| line.ends_with('\r'));
    let mut lines: Vec<PatchSourceLine<'_>> = text
        .split_terminator('\n')
        .zip(1..)
        .map(|(line, number)| {
            let text = if is_crlf { line.strip_suffix('\r').unwrap_or(line) } else { line };
            PatchSourceLine { number, text }
        })
        .collect();
    if grammar.outer_wrapper == PatchSyntaxRule::Accept {
        strip_outer_wrapper(&mut lines)?;
    }
    Ok(lines)
}

/// Removes a heredoc or a code fence.
fn strip_outer_wrapper(lines: &mut Vec<PatchSourceLine<'_>>) -> Result<(), PatchParseError> {
    let filled = |line: &PatchSourceLine<'_>| !line.text.trim().is_empty();
    let Some(first) = lines.iter().position(filled) else { return Ok(()) };
    let last = lines.iter().rposition(filled).unwrap_or(first);
    let opening = lines[first];
    let closing = lines[last].text.trim();
    let word = match opening.text.trim() {
        fence if fence.starts_with("```") && !fence[3..].contains('`') => "```",
        text => match heredoc_delimiter(text) {
            Some(Ok(word)) => word,
            Some(Err(())) => return Err(PatchParseErrorKind::MalformedWrapper.at_line(opening.number)),
            None => return Ok(()),
        },
    };
    if last == first || closing != word {
        return Err(PatchParseErrorKind::MalformedWrapper.at_line(opening.number));
    }
    lines.truncate(last);
    lines.drain(..=first);
    // Inside a wrapper, a patch without an end marker was truncated.
    match lines.iter().rfind(|line| filled(line)) {
        Some(end) if word != "```" && end.text.trim() != super::envelope::END => {
            Err(PatchParseErrorKind::MissingEnd.at_line(end.number))
        }
        Some(_) | None => Ok(()),
    }
}

/// The delimiter of a heredoc opened by this line; an error if its quotes do not match.
fn heredoc_delimiter(line: &str) -> Option<Result<&str, ()>> {
    let rest = line.strip_prefix("apply_patch").unwrap_or(line).trim_start().strip_prefix("<<")?;
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start();
    let (open, rest) = match rest.chars().next() {
        Some(quote @ ('\'' | '"')) => (Some(quote), &rest[1..]),
        Some(_) | None => (None, rest),
    };
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let (word, tail) = rest.split_at(end);
    let closed = match open {
        Some(quote) => tail.strip_prefix(quote) == Some(""),
        None => tail.is_empty(),
    };
    Some(if closed && !word.is_empty() { Ok(word) } else { Err(()) })
}
