//! A text as a forgiving eye sees it, with the way back to its bytes.
//!
//! Owns which differences each pass overlooks. Promises that every range of the folded text maps back to the bytes it
//! came from, and that dropped characters at its edges stay outside. Folding is for finding: nothing folded is ever
//! written anywhere.

use std::ops::Range;

use crate::lines;

/// How much a fold overlooks; each includes the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// `\r\n` and a lone `\r` are `\n`.
    Endings,
    /// Space and tab at the end of a line are not there.
    TrailingSpace,
    /// Dashes, quotation marks and spaces that look alike are the ASCII one.
    LookAlike,
}

/// A folded text and where its bytes came from.
#[derive(Debug)]
pub(super) struct Folded {
    pub(super) text: String,
    /// Stretches of the folded text in order.
    runs: Vec<Run>,
    /// Whether white space was dropped from an unterminated last line.
    pub(super) tail_dropped: bool,
}

/// A stretch of the folded text, up to the start of the next.
#[derive(Debug, Clone, Copy)]
struct Run {
    folded: usize,
    original: usize,
    /// For a single folded byte, how many bytes it stands for; `None` when bytes are as they were.
    stands_for: Option<usize>,
}

impl Folded {
    pub(super) fn new(text: &str, fold: Fold) -> Self {
        let mut folded =
            Self { text: String::with_capacity(text.len()), runs: Vec::new(), tail_dropped: false };
        let mut at = 0;
        let mut verbatim_to = None;
        for line in lines::iter(text) {
            let (body, terminator) = lines::split_terminator(line);
            let kept = trimmed(body, fold);
            folded.push_body(kept, at, fold, &mut verbatim_to);
            if kept.len() < body.len() {
                folded.tail_dropped = terminator.is_empty();
            }
            let terminator_at = at + body.len();
            if terminator == "\n" {
                folded.push_verbatim("\n", terminator_at, &mut verbatim_to);
            } else if !terminator.is_empty() {
                folded.push_instead('\n', terminator_at, terminator.len(), &mut verbatim_to);
            }
            at += line.len();
        }
        folded
    }

    /// The bytes of the original that `range` (not empty) of the folded text came from.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.run_at(range.start);
        let start = match first.stands_for {
            Some(_) => first.original,
            None => first.original + (range.start - first.folded),
        };
        let last = self.run_at(range.end - 1);
        let end = match last.stands_for {
            Some(length) => last.original + length,
            None => last.original + (range.end - last.folded),
        };
        start..end
    }

    fn run_at(&self, at: usize) -> Run {
        let after = self.runs.partition_point(|run| run.folded <= at);
        self.runs.get(after.wrapping_sub(1)).copied().unwrap_or(Run {
            folded: 0,
            original: 0,
            stands_for: None,
        })
    }

    fn push_body(&mut self, body: &str, at: usize, fold: Fold, verbatim_to: &mut Option<usize>) {
        if fold != Fold::LookAlike || body.is_ascii() {
            self.push_verbatim(body, at, verbatim_to);
            return;
        }
        let mut from = 0;
        for (offset, character) in body.char_indices() {
            let Some(plain) = plain(character) else { continue };
            self.push_verbatim(&body[from..offset], at + from, verbatim_to);
            self.push_instead(plain, at + offset, character.len_utf8(), verbatim_to);
            from = offset + character.len_utf8();
        }
        self.push_verbatim(&body[from..], at + from, verbatim_to);
    }

    /// Adds bytes as they are, continuing the run before where nothing lies between.
    fn push_verbatim(&mut self, piece: &str, at: usize, verbatim_to: &mut Option<usize>) {
        if piece.is_empty() {
            return;
        }
        if *verbatim_to != Some(at) {
            self.runs.push(Run { folded: self.text.len(), original: at, stands_for: None });
        }
        self.text.push_str(piece);
        *verbatim_to = Some(at + piece.len());
    }

    /// Adds one plain character in the place of `length` bytes.
    fn push_instead(&mut self, plain: char, at: usize, length: usize, verbatim_to: &mut Option<usize>) {
        self.runs.push(Run { folded: self.text.len(), original: at, stands_for: Some(length) });
        self.text.push(plain);
        *verbatim_to = None;
    }
}

fn trimmed(body: &str, fold: Fold) -> &str {
    match fold {
        Fold::Endings => body,
        Fold::TrailingSpace => body.trim_end_matches([' ', '\t']),
        Fold::LookAlike => body.trim_end_matches(|c| matches!(plain(c).unwrap_or(c), ' ' | '\t')),
    }
}

/// The ASCII character that `character` is mistaken for, if it is one of those.
pub(super) fn plain(character: char) -> Option<char> {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some('-'),
        '\u{2018}'..='\u{201b}' => Some('\''),
        '\u{201c}'..='\u{201f}' => Some('"'),
        '\u{00a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
        _ => None,
    }
}

/// `body` with every look-alike made plain and white space dropped from its end.
pub(crate) fn plain_body(body: &str) -> String {
    let kept = trimmed(body, Fold::LookAlike);
    if kept.is_ascii() {
        return kept.to_owned();
    }
    kept.chars().map(|c| plain(c).unwrap_or(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_finds_its_way_back() {
        let text = "a \r\n\u{201c}b\u{201d}\u{a0}\t\rc\n\nd – e ";
        let folded = Folded::new(text, Fold::LookAlike);
        assert_eq!(folded.text, "a\n\"b\"\nc\n\nd - e");
        assert!(folded.tail_dropped);
        let back = |from, to| &text[folded.original(&(from..to))];
        assert_eq!(back(0, 1), "a");
        assert_eq!(back(0, 2), "a \r\n");
        assert_eq!(back(1, 2), "\r\n");
        assert_eq!(back(2, 5), "\u{201c}b\u{201d}");
        assert_eq!(back(5, 6), "\r");
        assert_eq!(back(6, 9), "c\n\n");
        assert_eq!(back(9, folded.text.len()), "d – e");
    }

    #[test]
    fn a_fold_overlooks_what_it_says_and_no_more() {
        let text = "x \r\ny–\n";
        assert_eq!(Folded::new(text, Fold::Endings).text, "x \ny–\n");
        assert_eq!(Folded::new(text, Fold::TrailingSpace).text, "x\ny–\n");
        assert_eq!(Folded::new(text, Fold::LookAlike).text, "x\ny-\n");
        assert!(!Folded::new(text, Fold::LookAlike).tail_dropped);
    }
}
