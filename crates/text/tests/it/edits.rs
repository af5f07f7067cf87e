//! Runs `cases/edit.yaml`.

use serde::Deserialize;
use text::edit::{Edit, Edited, Reason, Refusal, Rescue, Rules, Wanted, apply, edit, inverse};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    what: String,
    #[serde(default)]
    rules: Named,
    text: String,
    edits: Vec<Given>,
    gives: Option<String>,
    how: Option<Vec<String>>,
    look_alikes: Option<Vec<char>>,
    refused: Option<Refused>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Named {
    #[default]
    Native,
    Literal,
    Plain,
    Resemblance,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
    count: Option<usize>,
    near_line: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    reason: String,
    edit: usize,
    lines: Option<Vec<usize>>,
    other: Option<usize>,
    made_by: Option<usize>,
    total: Option<usize>,
}

#[test]
fn every_case_holds() {
    let cases: Vec<Case> = serde_yaml_ng::from_str(include_str!("../cases/edit.yaml")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        if let Err(problem) = hold(case) {
            wrong.push(format!("{} ({}): {problem}", case.id, case.what));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn hold(case: &Case) -> Result<(), String> {
    let rules = match case.rules {
        Named::Native => Rules::NATIVE,
        Named::Literal => Rules::LITERAL,
        Named::Plain => Rules::PLAIN,
        Named::Resemblance => Rules { rescue: Rescue::Resemblance, ..Rules::PLAIN },
    };
    let wanted = |given: &Given| match (given.all, given.count, given.near_line) {
        (true, ..) => Wanted::All,
        (_, Some(count), _) => Wanted::Count(count),
        (.., Some(line)) => Wanted::Near(line),
        (false, None, None) => Wanted::One,
    };
    let edits: Vec<Edit<'_>> = case
        .edits
        .iter()
        .map(|given| Edit { old: &given.old, new: &given.new, wanted: wanted(given) })
        .collect();
    match (edit(&case.text, &edits, rules), &case.gives, &case.refused) {
        (Ok(edited), Some(gives), None) => applied(case, &edited, gives),
        (Err(refusals), None, Some(expected)) => refused(&refusals[0], expected),
        (found, ..) => Err(format!("{found:?}")),
    }
}

fn applied(case: &Case, edited: &Edited, gives: &str) -> Result<(), String> {
    let how: Vec<&str> = edited.applied.iter().map(|applied| applied.how.name()).collect();
    let expected: Vec<&str> = match &case.how {
        Some(how) => how.iter().map(String::as_str).collect(),
        None => vec!["exact"; case.edits.len()],
    };
    same(&edited.text.as_str(), &gives)?;
    same(&how, &expected)?;
    if let Some(expected) = &case.look_alikes {
        same(&edited.applied[0].look_alikes, expected)?;
    }
    same(&apply(&edited.text, &inverse(&case.text, &edited.splices)), &case.text)
}

fn refused(refusal: &Refusal, expected: &Refused) -> Result<(), String> {
    same(&refusal.edit, &expected.edit)?;
    let spots = |spots: &[text::edit::Spot]| spots.iter().map(|spot| *spot.lines.start()).collect::<Vec<_>>();
    let (reason, lines) = match &refusal.reason {
        Reason::EmptyOld => ("empty_old", Vec::new()),
        Reason::NotFound(missing) => {
            same(&missing.made_by, &expected.made_by)?;
            ("not_found", missing.nearest.iter().map(|nearest| *nearest.lines.start()).collect())
        }
        Reason::Ambiguous { spots: places, total, .. } => {
            same(total, &expected.total.unwrap_or(*total))?;
            ("ambiguous", spots(places))
        }
        Reason::WrongCount { spots: places, .. } => ("wrong_count", spots(places)),
        Reason::Overlap { other, .. } => {
            same(&Some(*other), &expected.other)?;
            ("overlap", Vec::new())
        }
        Reason::Elided { .. } => ("elided", Vec::new()),
        Reason::Unindentable { .. } => ("unindentable", Vec::new()),
        Reason::TooLong => ("too_long", Vec::new()),
        Reason::Touched(_) => ("touched", Vec::new()),
    };
    same(&reason, &expected.reason.as_str())?;
    expected.lines.as_ref().map_or(Ok(()), |expected| same(&lines, expected))
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("found {found:?}, expected {expected:?}")) }
}
