//! What holds for any edits of any text.

use proptest::collection::vec;
use proptest::prelude::*;
use text::edit::{Edit, Edited, Refusal, Rescue, Rules, Wanted, anchored, apply, edit, inverse};
use text::lines;
use text::locate::{Finder, Matching, Pass};

/// Few distinct words, so that quotes are often found, often twice, and often by a lenient pass.
fn any_text() -> impl Strategy<Value = String> {
    "([ \t]{0,2}(a|b|let x|\u{201c}q\u{201d}|\u{a0}|é漢|12\t|\\\\n|)[ ]{0,1}(\n|\n|\r\n|\r)){0,12}(a|b| )?"
}

fn any_wanted() -> impl Strategy<Value = Wanted> {
    prop_oneof![
        4 => Just(Wanted::One),
        1 => (0_usize..4).prop_map(Wanted::Count),
        2 => Just(Wanted::All),
        1 => (0_usize..14).prop_map(Wanted::Near),
    ]
}

fn any_rules() -> impl Strategy<Value = Rules> {
    prop_oneof![
        4 => Just(Rules::NATIVE),
        1 => Just(Rules::LITERAL),
        1 => Just(Rules::PLAIN),
        1 => Just(Rules { rescue: Rescue::Resemblance, ..Rules::PLAIN }),
    ]
}

/// A quote: some lines of the text, perhaps written another way, or anything at all.
fn any_quote(text: String) -> impl Strategy<Value = String> {
    let count = lines::count(text.as_bytes()) + 1;
    let part = (0..count, 1_usize..4, 0_u8..6).prop_map(move |(first, length, way)| {
        let part = lines::slice(&text, first + 1..=first + length).unwrap_or_default();
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

type Given = (String, String, Wanted);

fn any_edits() -> impl Strategy<Value = (String, Vec<Given>)> {
    any_text().prop_flat_map(|text| {
        let one = (any_quote(text.clone()), any_text(), any_wanted());
        (Just(text), vec(one, 1..4))
    })
}

fn run(text: &str, given: &[Given], rules: Rules) -> Result<Edited, Vec<Refusal>> {
    let edits: Vec<Edit<'_>> =
        given.iter().map(|(old, new, wanted)| Edit { old, new, wanted: *wanted }).collect();
    edit(text, &edits, rules)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn nothing_outside_the_spans_changes_and_all_can_be_taken_back(
        (text, given) in any_edits(),
        rules in any_rules(),
    ) {
        let Ok(edited) = run(&text, &given, rules) else { return Ok(()) };
        prop_assert_eq!(&apply(&text, &edited.splices), &edited.text);
        prop_assert_eq!(apply(&edited.text, &inverse(&text, &edited.splices)), text.clone());
        let mut end = 0;
        for splice in &edited.splices {
            prop_assert!(splice.bytes.start >= end && splice.bytes.end >= splice.bytes.start);
            prop_assert!(text.is_char_boundary(splice.bytes.start) && text.is_char_boundary(splice.bytes.end));
            end = splice.bytes.end;
        }
    }

    #[test]
    fn order_does_not_matter((text, given) in any_edits(), rules in any_rules()) {
        let turned: Vec<Given> = given.iter().rev().cloned().collect();
        match (run(&text, &given, rules), run(&text, &turned, rules)) {
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
        let edited = run(&text, &[(quote, new.clone(), Wanted::One)], Rules::NATIVE);
        prop_assert_eq!(edited.map(|edited| edited.text), Ok(format!("{before}{new}{after}")));
    }

    #[test]
    fn what_is_found_says_the_same((text, quote) in any_text().prop_flat_map(|text| (Just(text.clone()), any_quote(text)))) {
        let found = Finder::new(&text).find(&quote, Matching::LENIENT);
        let bare = |text: &str| -> Vec<String> {
            let plain = text.replace(['\u{201c}', '\u{201d}'], "\"").replace('\u{a0}', " ");
            let mut bare: Vec<String> = lines::iter(&plain).map(|line| line.trim().to_owned()).collect();
            // Blank space at the very end of a quote is at no place of its own.
            while bare.last().is_some_and(String::is_empty) {
                bare.pop();
            }
            bare
        };
        for place in &found.places {
            let there = &text[place.bytes.clone()];
            if found.pass == Pass::Exact {
                prop_assert_eq!(there, &quote);
            }
            prop_assert_eq!(bare(there), bare(&quote), "{:?}", found.pass);
        }
    }

    #[test]
    fn an_unchanged_base_is_no_base((text, given) in any_edits()) {
        let edits: Vec<Edit<'_>> =
            given.iter().map(|(old, new, wanted)| Edit { old, new, wanted: *wanted }).collect();
        let plain = edit(&text, &edits, Rules::NATIVE).map(|edited| edited.text).ok();
        prop_assert_eq!(anchored(&text, &text, &edits, Rules::NATIVE).map(|edited| edited.text).ok(), plain);
    }

    #[test]
    fn an_old_base_never_panics((text, given) in any_edits(), current in any_text()) {
        let edits: Vec<Edit<'_>> =
            given.iter().map(|(old, new, wanted)| Edit { old, new, wanted: *wanted }).collect();
        if let Ok(edited) = anchored(&text, &current, &edits, Rules::NATIVE) {
            prop_assert_eq!(apply(&edited.text, &inverse(&current, &edited.splices)), current);
        }
    }
}
