//! Tests properties of edits with randomly generated texts and quotes.

use proptest::collection::vec;
use proptest::prelude::*;
use stead_text::edit::{
    EditError, EditMatchingRules, EditedText, FindReplaceEdit, OccurrenceSelector, QuoteNotFoundPolicy, apply_edits,
    apply_splices, apply_to_newer_text,
};
use stead_text::lines;
use stead_text::locate::{FuzzyTextMatchPass, QuoteSearchHaystack, QuoteSearchOptions};

use crate::inverse_splices;

/// The generated texts have few distinct words, so that a generated quote often has one or more matches.
fn any_text() -> impl Strategy<Value = String> {
    "([ \t]{0,2}(a|b|let x|\u{201c}q\u{201d}|\u{a0}|é漢|12\t|\\\\n|)[ ]{0,1}(\n|\n|\r\n|\r)){0,12}(a|b| )?"
}

fn any_occurrence() -> impl Strategy<Value = OccurrenceSelector> {
    prop_oneof![
        4 => Just(OccurrenceSelector::Only),
        1 => (0_usize..4).prop_map(OccurrenceSelector::Exactly),
        2 => Just(OccurrenceSelector::All),
        1 => (0_usize..14).prop_map(OccurrenceSelector::NearestToLine),
    ]
}

fn any_rules() -> impl Strategy<Value = EditMatchingRules> {
    prop_oneof![
        4 => Just(EditMatchingRules::NATIVE),
        1 => Just(EditMatchingRules::LITERAL),
        1 => Just(EditMatchingRules::PLAIN),
        1 => Just(EditMatchingRules { recovery: QuoteNotFoundPolicy::AcceptSimilar, ..EditMatchingRules::PLAIN }),
    ]
}

/// A generated quote is usually a part of the generated text, with or without small differences.
fn any_quote(text: String) -> impl Strategy<Value = String> {
    let count = lines::count_lines(text.as_bytes()) + 1;
    let part = (0..count, 1_usize..4, 0_u8..6).prop_map(move |(first, length, way)| {
        let part = lines::slice_lines(&text, first + 1..=first + length).unwrap_or_default();
        match way {
            0 => part.replace("\r\n", "\n").replace('\r', "\n"),
            1 => lines::iter(part).map(|line| format!("  {line}")).collect(),
            2 => part.replace(['\u{201c}', '\u{201d}'], "\"").replace('\u{a0}', " "),
            3 => lines::iter(part).map(|line| format!("{}\n", line.trim_end())).collect(),
            4 => part.trim().to_owned(),
            _ => part.to_owned(),
        }
    });
    prop_oneof![5 => part, 1 => any_text()]
}

type RandomEdit = (String, String, OccurrenceSelector);

fn any_edits() -> impl Strategy<Value = (String, Vec<RandomEdit>)> {
    any_text().prop_flat_map(|text| {
        let one = (any_quote(text.clone()), any_text(), any_occurrence());
        (Just(text), vec(one, 1..4))
    })
}

fn apply_random_edits(
    text: &str,
    given: &[RandomEdit],
    rules: EditMatchingRules,
) -> Result<EditedText, Vec<EditError>> {
    let edits: Vec<FindReplaceEdit<'_>> =
        given.iter().map(|(old, new, wanted)| FindReplaceEdit { old, new, occurrence: *wanted }).collect();
    apply_edits(text, &edits, rules)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn text_outside_splices_is_unchanged_and_edits_are_invertible(
        (text, given) in any_edits(),
        rules in any_rules(),
    ) {
        let Ok(edited) = apply_random_edits(&text, &given, rules) else { return Ok(()) };
        prop_assert_eq!(&apply_splices(&text, &edited.splices), &edited.text);
        prop_assert_eq!(apply_splices(&edited.text, &inverse_splices(&text, &edited.splices)), text.clone());
        let mut end = 0;
        for splice in &edited.splices {
            prop_assert!(splice.bytes.start >= end && splice.bytes.end >= splice.bytes.start);
            prop_assert!(text.is_char_boundary(splice.bytes.start) && text.is_char_boundary(splice.bytes.end));
            end = splice.bytes.end;
        }
    }

    #[test]
    fn order_of_edits_does_not_matter((text, given) in any_edits(), rules in any_rules()) {
        let turned: Vec<RandomEdit> = given.iter().rev().cloned().collect();
        match (apply_random_edits(&text, &given, rules), apply_random_edits(&text, &turned, rules)) {
            (Ok(one), Ok(other)) => prop_assert_eq!(one.text, other.text),
            (Err(_), Err(_)) => {}
            (one, other) => prop_assert!(false, "{:?} {:?}", one, other),
        }
    }

    #[test]
    fn an_exact_unique_quote_is_replaced_literally(
        (before, old, after) in (any_text(), "[a-z]{1,3}", any_text()),
        new in "[A-Z$\\\\&]{0,4}",
    ) {
        let text = format!("{before}<{old}>{after}");
        let quote = format!("<{old}>");
        let edited = apply_random_edits(&text, &[(quote, new.clone(), OccurrenceSelector::Only)], EditMatchingRules::NATIVE);
        prop_assert_eq!(edited.map(|edited| edited.text), Ok(format!("{before}{new}{after}")));
    }

    #[test]
    fn matched_text_equals_the_quote_under_its_pass((text, quote) in any_text().prop_flat_map(|text| (Just(text.clone()), any_quote(text)))) {
        let found = QuoteSearchHaystack::new(&text).find(&quote, QuoteSearchOptions::LENIENT);
        let bare = |text: &str| -> Vec<String> {
            let plain = text.replace(['\u{201c}', '\u{201d}'], "\"").replace('\u{a0}', " ");
            let mut bare: Vec<String> = lines::iter(&plain).map(|line| line.trim().to_owned()).collect();
            // Trailing blank lines of a quote do not match alone.
            while bare.last().is_some_and(String::is_empty) {
                bare.pop();
            }
            bare
        };
        for hit in &found.matches {
            let there = &text[hit.bytes.clone()];
            if found.pass == FuzzyTextMatchPass::Exact {
                prop_assert_eq!(there, &quote);
            }
            prop_assert_eq!(bare(there), bare(&quote), "{:?}", found.pass);
        }
    }

    #[test]
    fn rebasing_onto_an_unchanged_base_changes_nothing((text, given) in any_edits()) {
        let edits: Vec<FindReplaceEdit<'_>> =
            given.iter().map(|(old, new, wanted)| FindReplaceEdit { old, new, occurrence: *wanted }).collect();
        let plain = apply_edits(&text, &edits, EditMatchingRules::NATIVE).map(|edited| edited.text).ok();
        prop_assert_eq!(apply_to_newer_text(&text, &text, &edits, EditMatchingRules::NATIVE).map(|edited| edited.text).ok(), plain);
    }

    #[test]
    fn rebasing_never_panics((text, given) in any_edits(), current in any_text()) {
        let edits: Vec<FindReplaceEdit<'_>> =
            given.iter().map(|(old, new, wanted)| FindReplaceEdit { old, new, occurrence: *wanted }).collect();
        if let Ok(edited) = apply_to_newer_text(&text, &current, &edits, EditMatchingRules::NATIVE) {
            prop_assert_eq!(apply_splices(&edited.text, &inverse_splices(&current, &edited.splices)), current);
        }
    }
}
