//! Edits: changed lines, match methods and errors.

use super::*;

#[test]
fn reports_changed_lines_before_and_after() {
    let text = "a\nb\nc\nd\n";
    let edits = [QuotedEdit::new("d\n", "D\n"), QuotedEdit::new("a\n", "A\nA2\n"), QuotedEdit::new("b\n", "")];
    let edited = apply_edits(text, &edits, EditRules::NATIVE).unwrap();
    assert_eq!(edited.text, "A\nA2\nc\nD\n");
    let lines: Vec<_> = edited
        .applied
        .iter()
        .map(|applied| (applied.changed_lines[0].before.clone(), applied.changed_lines[0].after.clone()))
        .collect();
    assert_eq!(lines, [(4..=4, 4..=4), (1..=1, 1..=2), (2..=2, 3..=3)]);
}

#[test]
fn reports_every_rejected_edit() {
    let refusals = apply_edits(
        "a a",
        &[QuotedEdit::new("a", "b"), QuotedEdit::new("", "b"), QuotedEdit::new("x", "b")],
        EditRules::NATIVE,
    )
    .unwrap_err();
    assert_eq!(refusals.iter().map(|refusal| refusal.edit_index).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_large_text_is_searched_in_bounded_time() {
    let mut text = "    some_call(with, arguments);\n".repeat(300_000);
    text.push_str("the needle\n");
    let edited = apply_edits(&text, &[QuotedEdit::new("the needle", "found")], EditRules::NATIVE).unwrap();
    assert!(edited.text.ends_with("found\n"));
    let refusals =
        apply_edits(&text, &[QuotedEdit::new("some_call(with,\n    arguments);", "x")], EditRules::NATIVE).unwrap_err();
    assert!(matches!(refusals[0].reason, EditErrorKind::NotFound(_)));
    let refusals = apply_edits(&text, &[QuotedEdit::new("some_call(", "x")], EditRules::NATIVE).unwrap_err();
    assert!(
        matches!(&refusals[0].reason, EditErrorKind::Ambiguous { total: 300_000, matches, .. } if matches.len() == DESCRIBED_MATCHES_MAX)
    );
}

/// A short call that would produce terabytes is rejected before it does.
#[test]
fn rejects_results_over_the_size_limit() {
    let text = "a".repeat(10_000);
    let new = "b".repeat(100_000);
    let all = QuotedEdit { occurrence: OccurrenceSelector::All, ..QuotedEdit::new("a", &new) };
    let refused = apply_edits(&text, &[all], EditRules::default()).unwrap_err();
    assert_eq!(refused, [EditError { edit_index: 0, reason: EditErrorKind::TooLong }]);
    let lines = "a\n".repeat(10_000);
    let several = format!("{}\n", "c\n".repeat(50_000));
    let all = QuotedEdit { occurrence: OccurrenceSelector::All, ..QuotedEdit::new("a\n", &several) };
    let refused = apply_edits(&lines, &[QuotedEdit::new("not there", ""), all], EditRules::default()).unwrap_err();
    assert_eq!(refused.len(), 1, "the first reason is told first");
    let refused = apply_edits(&lines, &[all], EditRules::default()).unwrap_err();
    assert_eq!(refused, [EditError { edit_index: 0, reason: EditErrorKind::TooLong }]);
}
