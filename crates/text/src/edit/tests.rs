//! Edits: what changed, where, and what is refused.

use super::*;

#[test]
fn changed_lines_are_told_before_and_after() {
    let text = "a\nb\nc\nd\n";
    let edits = [Edit::new("d\n", "D\n"), Edit::new("a\n", "A\nA2\n"), Edit::new("b\n", "")];
    let edited = edit(text, &edits, Rules::NATIVE).unwrap();
    assert_eq!(edited.text, "A\nA2\nc\nD\n");
    let lines: Vec<_> = edited
        .applied
        .iter()
        .map(|applied| (applied.places[0].before.clone(), applied.places[0].after.clone()))
        .collect();
    assert_eq!(lines, [(4..=4, 4..=4), (1..=1, 1..=2), (2..=2, 3..=3)]);
}

#[test]
fn every_refused_edit_is_told() {
    let refusals =
        edit("a a", &[Edit::new("a", "b"), Edit::new("", "b"), Edit::new("x", "b")], Rules::NATIVE)
            .unwrap_err();
    assert_eq!(refusals.iter().map(|refusal| refusal.edit).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_large_text_is_searched_in_bounded_time() {
    let mut text = "    some_call(with, arguments);\n".repeat(300_000);
    text.push_str("the needle\n");
    let edited = edit(&text, &[Edit::new("the needle", "found")], Rules::NATIVE).unwrap();
    assert!(edited.text.ends_with("found\n"));
    let refusals =
        edit(&text, &[Edit::new("some_call(with,\n    arguments);", "x")], Rules::NATIVE).unwrap_err();
    assert!(matches!(refusals[0].reason, Reason::NotFound(_)));
    let refusals = edit(&text, &[Edit::new("some_call(", "x")], Rules::NATIVE).unwrap_err();
    assert!(
        matches!(&refusals[0].reason, Reason::Ambiguous { total: 300_000, spots, .. } if spots.len() == SPOTS_MAX)
    );
}

/// A short call that would make terabytes is refused before they are made.
#[test]
fn what_would_be_too_long_is_not_made() {
    let text = "a".repeat(10_000);
    let new = "b".repeat(100_000);
    let all = Edit { wanted: Wanted::All, ..Edit::new("a", &new) };
    let refused = edit(&text, &[all], Rules::default()).unwrap_err();
    assert_eq!(refused, [Refusal { edit: 0, reason: Reason::TooLong }]);
    let lines = "a\n".repeat(10_000);
    let several = format!("{}\n", "c\n".repeat(50_000));
    let all = Edit { wanted: Wanted::All, ..Edit::new("a\n", &several) };
    let refused = edit(&lines, &[Edit::new("not there", ""), all], Rules::default()).unwrap_err();
    assert_eq!(refused.len(), 1, "the first reason is told first");
    let refused = edit(&lines, &[all], Rules::default()).unwrap_err();
    assert_eq!(refused, [Refusal { edit: 0, reason: Reason::TooLong }]);
}
