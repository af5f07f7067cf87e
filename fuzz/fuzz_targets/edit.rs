//! Fuzz target: edits change only the byte ranges that they report, and the inverse of the reported splices undoes the
//! edits.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use stead_text::edit::{
    EditMatchingRules, QuoteNotFoundPolicy, OccurrenceSelector, FindReplaceEdit, apply_edits, TextSplice, apply_splices,
    apply_to_newer_text,
};

#[derive(Arbitrary, Debug)]
struct EditFuzzInput {
    text: String,
    base: Option<String>,
    edits: Vec<(FuzzQuote, String, u8)>,
    policy_choice: u8,
}

/// The text that an edit replaces: arbitrary, or an excerpt of the edited text, so that matches are frequent.
#[derive(Arbitrary, Debug)]
enum FuzzQuote {
    Any(String),
    Excerpt { start: u16, length: u8 },
}

impl FuzzQuote {
    fn resolve_text(&self, text: &str) -> String {
        match self {
            FuzzQuote::Any(any) => any.clone(),
            FuzzQuote::Excerpt { start, length } => {
                text.chars().skip(usize::from(*start)).take(usize::from(*length)).collect()
            }
        }
    }
}

fn wanted_from_choice(choice: u8) -> OccurrenceSelector {
    match choice % 4 {
        0 => OccurrenceSelector::Only,
        1 => OccurrenceSelector::All,
        2 => OccurrenceSelector::Exactly(usize::from(choice / 4)),
        _ => OccurrenceSelector::NearestToLine(usize::from(choice / 4)),
    }
}

fuzz_target!(|input: EditFuzzInput| {
    let rules = match input.policy_choice % 4 {
        0 => EditMatchingRules::NATIVE,
        1 => EditMatchingRules::LITERAL,
        2 => EditMatchingRules::PLAIN,
        _ => EditMatchingRules { recovery: QuoteNotFoundPolicy::AcceptSimilar, ..EditMatchingRules::PLAIN },
    };
    let owned: Vec<(String, &str, u8)> =
        input.edits.iter().map(|(old, new, choice)| (old.resolve_text(&input.text), new.as_str(), *choice)).collect();
    let edits: Vec<FindReplaceEdit<'_>> = owned
        .iter()
        .map(|(old, new, choice)| FindReplaceEdit { old, new, occurrence: wanted_from_choice(*choice) })
        .collect();
    let outcome = match &input.base {
        Some(base) => apply_to_newer_text(base, &input.text, &edits, rules),
        None => apply_edits(&input.text, &edits, rules),
    };
    if let Ok(edited) = outcome {
        assert_eq!(apply_splices(&input.text, &edited.splices), edited.text);
        let inverse = inverse_splices(&input.text, &edited.splices);
        assert_eq!(apply_splices(&edited.text, &inverse), input.text);
    }
});

/// Computes the splices that turn the result of applying `splices` to `text` back into `text`.
fn inverse_splices(text: &str, splices: &[TextSplice]) -> Vec<TextSplice> {
    let (mut removed, mut inserted) = (0, 0);
    splices
        .iter()
        .map(|splice| {
            let start = splice.bytes.start - removed + inserted;
            removed += splice.bytes.len();
            inserted += splice.text.len();
            TextSplice { bytes: start..start + splice.text.len(), text: text[splice.bytes.clone()].to_owned() }
        })
        .collect()
}
