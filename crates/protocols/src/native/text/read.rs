//! Renders the outcome of `read` as text.

use stead_engine::{
    limits,
    ops::{ReadArgs, ReadBytesFields, ReadLinesFields, ReadOutcome, ReadPartFields},
};
use stead_text::visible::escape_deceptive_line;

use super::{RenderableOutcome, escape_one_line};
use crate::{json_string::LONG_TEXT_BYTES_MIN, native::CallStyle};

impl RenderableOutcome for ReadOutcome {
    /// Renders the result of `read` as text; the file content is not escaped.
    fn native_text(&self, style: CallStyle) -> String {
        let next_line = |word, next: &ReadArgs| format!("\n… {word}: {}", style.render_call(next.clone()));
        match &self.part {
            ReadPartFields::Lines(part) => {
                let next = part.completeness.next_call().map(|next| next_line("truncated", next));
                render_content(self, &self.content, &describe_lines(self, part), next)
            }
            ReadPartFields::Bytes(part) => {
                let truncated = part.completeness.next_call().map(|next| next_line("truncated", next));
                let next = truncated.or_else(|| part.following.as_ref().map(|next| next_line("more", next)));
                let content = if exceeds_page(&self.content) { CONTENT_OMITTED } else { &self.content };
                render_content(self, content, &describe_bytes(self, part), next)
            }
            ReadPartFields::RawBytes(part) => escape_one_line(format!("{} bytes of {}", part.length, self.path)),
        }
    }

    fn take_long_text(&mut self) -> Option<(&'static str, String)> {
        let is_long = self.content.len() >= LONG_TEXT_BYTES_MIN;
        is_long.then(|| (r#""content":"""#, std::mem::take(&mut self.content)))
    }
}

const CONTENT_OMITTED: &str = "the content is long: it is only in the field content of the structured outcome";

fn describe_lines(outcome: &ReadOutcome, part: &ReadLinesFields) -> String {
    let ReadLinesFields { encoding, ending, lines, .. } = part;
    let shown = match lines.total {
        0 => "empty".to_owned(),
        total => format!("lines {}-{} of {total}", lines.from, lines.to),
    };
    format!(
        "{shown}, {}, {} bytes, {encoding}{}, {ending}{}",
        outcome.version.rev,
        outcome.size,
        if part.bom { " with byte-order mark" } else { "" },
        if part.ends_without_newline { ", no newline at the end" } else { "" },
    )
}

fn describe_bytes(outcome: &ReadOutcome, part: &ReadBytesFields) -> String {
    let shown = match part.bytes.total {
        0 => "empty".to_owned(),
        total => format!("bytes {}-{} of {total}", part.bytes.from, part.bytes.to),
    };
    format!("{shown}, {}, {}", outcome.version.rev, part.encoding)
}

fn render_content(outcome: &ReadOutcome, content: &str, description: &str, next: Option<String>) -> String {
    let separator = if content.is_empty() || content.ends_with(['\n', '\r']) { "" } else { "\n" };
    let path = outcome.path.to_wire();
    let next = next.unwrap_or_default();
    format!("{content}{separator}[{}: {description}]{next}", escape_deceptive_line(&path))
}

fn exceeds_page(content: &str) -> bool {
    content.len() > limits::OUTCOME_PAGE_CHARS && content.chars().nth(limits::OUTCOME_PAGE_CHARS).is_some()
}
