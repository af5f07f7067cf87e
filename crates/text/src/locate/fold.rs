//! Text normalised ("folded") for lenient matching, with a mapping back to the original bytes.
//!
//! Folded text is used only for searching and is never written.

use std::ops::Range;

use super::FuzzyTextMatchPass;
use crate::lines;

#[derive(Debug)]
pub(super) struct NormalizedText {
    pub(super) text: String,
    runs: Vec<NormalizedTextRun>,
    /// Whether white space was dropped at the end of an unterminated last line.
    pub(super) tail_dropped: bool,
}

/// A run of the folded text: unchanged bytes, or one ASCII character that replaces original bytes.
#[derive(Debug, Clone, Copy)]
struct NormalizedTextRun {
    folded: usize,
    original: usize,
    /// The number of original bytes that the ASCII character replaces; `None` if the run is unchanged.
    replaced_bytes: Option<usize>,
}

impl NormalizedText {
    pub(super) fn new(text: &str, pass: FuzzyTextMatchPass) -> Self {
        let mut folded = Self { text: String::with_capacity(text.len()), runs: Vec::new(), tail_dropped: false };
        let mut at = 0;
        let mut verbatim_to = None;
        for line in lines::iter(text) {
            let (body, terminator) = lines::split_terminator(line);
            let trimmed = trim_trailing_space(body, pass);
            folded.push_body(trimmed, at, pass, &mut verbatim_to);
            if trimmed.len() < body.len() {
                folded.tail_dropped = terminator.is_empty();
            }
            let terminator_at = at + body.len();
            if terminator == "\n" {
                folded.push_verbatim("\n", terminator_at, &mut verbatim_to);
            } else if !terminator.is_empty() {
                folded.push_replacement('\n', terminator_at, terminator.len(), &mut verbatim_to);
            }
            at += line.len();
        }
        folded
    }

    /// Maps a non-empty range of the folded text to the original bytes.
    pub(super) fn original_range(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.run_at(range.start);
        let start = match first.replaced_bytes {
            Some(_) => first.original,
            None => first.original + (range.start - first.folded),
        };
        let last = self.run_at(range.end - 1);
        let end = match last.replaced_bytes {
            Some(length) => last.original + length,
            None => last.original + (range.end - last.folded),
        };
        start..end
    }

    fn run_at(&self, at: usize) -> NormalizedTextRun {
        let after = self.runs.partition_point(|run| run.folded <= at);
        let start = NormalizedTextRun { folded: 0, original: 0, replaced_bytes: None };
        self.runs.get(after.wrapping_sub(1)).copied().unwrap_or(start)
    }

    fn push_body(&mut self, body: &str, at: usize, pass: FuzzyTextMatchPass, verbatim_to: &mut Option<usize>) {
        if pass < FuzzyTextMatchPass::LookAlike || body.is_ascii() {
            self.push_verbatim(body, at, verbatim_to);
            return;
        }
        let mut from = 0;
        for (offset, character) in body.char_indices() {
            let Some(plain) = plain_look_alike(character) else { continue };
            self.push_verbatim(&body[from..offset], at + from, verbatim_to);
            self.push_replacement(plain, at + offset, character.len_utf8(), verbatim_to);
            from = offset + character.len_utf8();
        }
        self.push_verbatim(&body[from..], at + from, verbatim_to);
    }

    fn push_verbatim(&mut self, piece: &str, at: usize, verbatim_to: &mut Option<usize>) {
        if piece.is_empty() {
            return;
        }
        if *verbatim_to != Some(at) {
            self.runs.push(NormalizedTextRun { folded: self.text.len(), original: at, replaced_bytes: None });
        }
        self.text.push_str(piece);
        *verbatim_to = Some(at + piece.len());
    }

    fn push_replacement(&mut self, plain: char, at: usize, length: usize, verbatim_to: &mut Option<usize>) {
        self.runs.push(NormalizedTextRun { folded: self.text.len(), original: at, replaced_bytes: Some(length) });
        self.text.push(plain);
        *verbatim_to = None;
    }
}

fn trim_trailing_space(body: &str, pass: FuzzyTextMatchPass) -> &str {
    match pass {
        FuzzyTextMatchPass::Exact | FuzzyTextMatchPass::LineEndings => body,
        FuzzyTextMatchPass::TrailingSpace => body.trim_end_matches([' ', '\t']),
        FuzzyTextMatchPass::LookAlike | FuzzyTextMatchPass::Indentation => {
            body.trim_end_matches(|c| matches!(plain_look_alike(c).unwrap_or(c), ' ' | '\t'))
        }
    }
}

pub(super) fn plain_look_alike(character: char) -> Option<char> {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some('-'),
        '\u{2018}'..='\u{201b}' => Some('\''),
        '\u{201c}'..='\u{201f}' => Some('"'),
        '\u{00a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
        _ => None,
    }
}

/// Removes trailing white space from `body` and replaces look-alike characters by ASCII characters.
pub(crate) fn replace_look_alikes(body: &str) -> String {
    let trimmed = trim_trailing_space(body, FuzzyTextMatchPass::LookAlike);
    if trimmed.is_ascii() {
        return trimmed.to_owned();
    }
    trimmed.chars().map(|c| plain_look_alike(c).unwrap_or(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folded_byte_maps_back_to_the_original() {
        let text = "a \r\n\u{201c}b\u{201d}\u{a0}\t\rc\n\nd – e ";
        let folded = NormalizedText::new(text, FuzzyTextMatchPass::LookAlike);
        assert_eq!(folded.text, "a\n\"b\"\nc\n\nd - e");
        assert!(folded.tail_dropped);
        let back = |from, to| &text[folded.original_range(&(from..to))];
        assert_eq!(back(0, 1), "a");
        assert_eq!(back(0, 2), "a \r\n");
        assert_eq!(back(1, 2), "\r\n");
        assert_eq!(back(2, 5), "\u{201c}b\u{201d}");
        assert_eq!(back(5, 6), "\r");
        assert_eq!(back(6, 9), "c\n\n");
        assert_eq!(back(9, folded.text.len()), "d – e");
    }

    #[test]
    fn each_fold_level_ignores_only_its_differences() {
        let text = "x \r\ny–\n";
        assert_eq!(NormalizedText::new(text, FuzzyTextMatchPass::LineEndings).text, "x \ny–\n");
        assert_eq!(NormalizedText::new(text, FuzzyTextMatchPass::TrailingSpace).text, "x\ny–\n");
        assert_eq!(NormalizedText::new(text, FuzzyTextMatchPass::LookAlike).text, "x\ny-\n");
        assert!(!NormalizedText::new(text, FuzzyTextMatchPass::LookAlike).tail_dropped);
    }
}
