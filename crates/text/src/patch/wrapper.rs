//! What stands around a patch: the line endings of the text that carries it, and a heredoc or a code fence that a
//! model put around it. Owns the taking off of both. Never looks at what the patch says.

use super::{Fault, Grammar, Leave, ParseError, Written};

/// The lines of a patch text without what is wrapped around it.
///
/// A text whose first line ends in `\r\n` is one that was sent with such endings, so each line loses one `\r`. In any
/// other text a `\r` belongs to the line.
pub(super) fn lines(text: &str, grammar: Grammar) -> Result<Vec<Written<'_>>, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.split('\n').find(|line| !line.trim().is_empty());
    let is_crlf = first.is_some_and(|line| line.ends_with('\r'));
    let mut lines: Vec<Written<'_>> = text
        .split_terminator('\n')
        .zip(1..)
        .map(|(line, number)| {
            let text = if is_crlf { line.strip_suffix('\r').unwrap_or(line) } else { line };
            Written { number, text }
        })
        .collect();
    if grammar.wrapper == Leave::Given {
        unwrap(&mut lines)?;
    }
    Ok(lines)
}

/// Takes off a heredoc or a fence.
fn unwrap(lines: &mut Vec<Written<'_>>) -> Result<(), ParseError> {
    let filled = |line: &Written<'_>| !line.text.trim().is_empty();
    let Some(first) = lines.iter().position(filled) else { return Ok(()) };
    let last = lines.iter().rposition(filled).unwrap_or(first);
    let opening = lines[first];
    let closing = lines[last].text.trim();
    let word = match opening.text.trim() {
        fence if fence.starts_with("```") && !fence[3..].contains('`') => "```",
        text => match heredoc(text) {
            Some(Ok(word)) => word,
            Some(Err(())) => return Err(Fault::Wrapper.at(opening.number)),
            None => return Ok(()),
        },
    };
    if last == first || closing != word {
        return Err(Fault::Wrapper.at(opening.number));
    }
    lines.truncate(last);
    lines.drain(..=first);
    // Inside a wrapper, a patch that stops short was cut.
    match lines.iter().rfind(|line| filled(line)) {
        Some(end) if word != "```" && end.text.trim() != super::envelope::END => {
            Err(Fault::NoEnd.at(end.number))
        }
        Some(_) | None => Ok(()),
    }
}

/// The word that closes a heredoc opened by this line; an error if its quotes do not match.
fn heredoc(line: &str) -> Option<Result<&str, ()>> {
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
