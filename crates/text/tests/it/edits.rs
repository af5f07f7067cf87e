//! Runs the table of edits in `cases/edit.yaml`.

use serde::Deserialize;
use stead_text::edit::{
    AmbiguousQuoteCandidate, EditError, EditErrorKind, EditMatchingRules, EditedText, FindReplaceEdit,
    OccurrenceSelector, QuoteNotFoundPolicy, apply_edits, apply_splices,
};

use crate::inverse_splices;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditTableCase {
    id: String,
    behaviour: String,
    #[serde(default)]
    rules: TestEditRulesPreset,
    text: String,
    edits: Vec<TestCaseEdit>,
    result: Option<String>,
    methods: Option<Vec<String>>,
    look_alikes: Option<Vec<char>>,
    error: Option<ExpectedEditError>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum TestEditRulesPreset {
    #[default]
    Native,
    Literal,
    Plain,
    Resemblance,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestCaseEdit {
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
    count: Option<usize>,
    near_line: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedEditError {
    reason: String,
    edit: usize,
    lines: Option<Vec<usize>>,
    other: Option<usize>,
    produced_by: Option<usize>,
    total: Option<usize>,
}

#[test]
fn every_case_passes() {
    let cases: Vec<EditTableCase> = serde_yaml_ng::from_str(include_str!("../cases/edit.yaml")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        if let Err(problem) = run_case(case) {
            wrong.push(format!("{} ({}): {problem}", case.id, case.behaviour));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn run_case(case: &EditTableCase) -> Result<(), String> {
    let rules = match case.rules {
        TestEditRulesPreset::Native => EditMatchingRules::NATIVE,
        TestEditRulesPreset::Literal => EditMatchingRules::LITERAL,
        TestEditRulesPreset::Plain => EditMatchingRules::PLAIN,
        TestEditRulesPreset::Resemblance => {
            EditMatchingRules { recovery: QuoteNotFoundPolicy::AcceptSimilar, ..EditMatchingRules::PLAIN }
        }
    };
    let occurrence = |given: &TestCaseEdit| match (given.all, given.count, given.near_line) {
        (true, ..) => OccurrenceSelector::All,
        (_, Some(count), _) => OccurrenceSelector::Exactly(count),
        (.., Some(line)) => OccurrenceSelector::NearestToLine(line),
        (false, None, None) => OccurrenceSelector::Only,
    };
    let edits: Vec<FindReplaceEdit<'_>> = case
        .edits
        .iter()
        .map(|given| FindReplaceEdit { old: &given.old, new: &given.new, occurrence: occurrence(given) })
        .collect();
    match (apply_edits(&case.text, &edits, rules), &case.result, &case.error) {
        (Ok(edited), Some(result), None) => check_applied(case, &edited, result),
        (Err(refusals), None, Some(expected)) => check_error(&refusals[0], expected),
        (found, ..) => Err(format!("{found:?}")),
    }
}

fn check_applied(case: &EditTableCase, edited: &EditedText, result: &str) -> Result<(), String> {
    let methods: Vec<&str> = edited.applied.iter().map(|applied| applied.method.name()).collect();
    let expected: Vec<&str> = match &case.methods {
        Some(methods) => methods.iter().map(String::as_str).collect(),
        None => vec!["exact"; case.edits.len()],
    };
    expect_equal(&edited.text.as_str(), &result)?;
    expect_equal(&methods, &expected)?;
    if let Some(expected) = &case.look_alikes {
        expect_equal(&edited.applied[0].look_alikes, expected)?;
    }
    expect_equal(&apply_splices(&edited.text, &inverse_splices(&case.text, &edited.splices)), &case.text)
}

fn check_error(refusal: &EditError, expected: &ExpectedEditError) -> Result<(), String> {
    expect_equal(&refusal.edit_index, &expected.edit)?;
    let first_lines =
        |matches: &[AmbiguousQuoteCandidate]| matches.iter().map(|found| *found.lines.start()).collect::<Vec<_>>();
    let (reason, lines) = match &refusal.reason {
        EditErrorKind::EmptyOld => ("empty_old", Vec::new()),
        EditErrorKind::NotFound(missing) => {
            expect_equal(&missing.produced_by_edit, &expected.produced_by)?;
            ("not_found", missing.nearest.iter().map(|nearest| *nearest.lines.start()).collect())
        }
        EditErrorKind::Ambiguous { matches, total, .. } => {
            expect_equal(total, &expected.total.unwrap_or(*total))?;
            ("ambiguous", first_lines(matches))
        }
        EditErrorKind::WrongCount { matches, .. } => ("wrong_count", first_lines(matches)),
        EditErrorKind::Overlap { other_edit, .. } => {
            expect_equal(&Some(*other_edit), &expected.other)?;
            ("overlap", Vec::new())
        }
        EditErrorKind::ElisionInNewText { .. } => ("elided", Vec::new()),
        EditErrorKind::Unindentable { .. } => ("unindentable", Vec::new()),
        EditErrorKind::TooLong => ("too_long", Vec::new()),
        EditErrorKind::StaleQuote(_) => ("touched", Vec::new()),
    };
    expect_equal(&reason, &expected.reason.as_str())?;
    expected.lines.as_ref().map_or(Ok(()), |expected| expect_equal(&lines, expected))
}

fn expect_equal<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("found {found:?}, expected {expected:?}")) }
}
