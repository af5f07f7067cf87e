//! Tests patches with a table of cases and with randomly generated patches.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use proptest::prelude::*;
use serde::Deserialize;
use stead_text::patch::{
    FilePatch, FinalNewlineChange, PatchApplyError, PatchApplyErrorKind, PatchChunkMatching, PatchChunkPlacementRules,
    PatchGrammar, PatchSectionKind, PatchedText, apply_chunks, find_already_applied, parse_patch,
};
use stead_text::unified::{DiffLabels, unified_diff};

const CASES: &str = include_str!("../cases/patch.yaml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchTableCase {
    id: String,
    #[serde(default)]
    strict: bool,
    name: Option<String>,
    #[serde(default)]
    before: String,
    body: Option<String>,
    patch: Option<String>,
    after: Option<String>,
    reason: Option<String>,
    places: Option<Vec<usize>>,
    already: Option<usize>,
    applied_lines: Option<Vec<usize>>,
    fault: Option<String>,
    line: Option<usize>,
    pass: Option<String>,
    repair: Option<String>,
    final_newline: Option<String>,
}

#[test]
fn every_case_of_the_table_passes() {
    let cases: Vec<PatchTableCase> = serde_yaml_ng::from_str(CASES).unwrap();
    for case in &cases {
        run_case(case);
    }
    assert!(cases.len() > 100, "the table has all cases");
}

fn run_case(case: &PatchTableCase) {
    let id = &case.id;
    let text = case
        .patch
        .clone()
        .unwrap_or_else(|| format!("*** Begin Patch\n{}*** End Patch\n", case.body.as_ref().unwrap()));
    let grammar = if case.strict { PatchGrammar::Strict } else { PatchGrammar::Tolerant };
    let name = case.name.as_deref().unwrap_or("f");
    let rules = if case.strict {
        PatchChunkPlacementRules::new(name, PatchChunkMatching::Strict)
    } else {
        PatchChunkPlacementRules::new(name, PatchChunkMatching::Tolerant)
    };
    let patch = match (parse_patch(&text, grammar), &case.fault) {
        (Ok(patch), None) => patch,
        (Err(error), Some(fault)) => {
            assert_eq!((error.fault.code(), Some(error.line)), (fault.as_str(), case.line), "{id}: {error}");
            assert!(!error.fault.expected().is_empty() && !error.to_string().is_empty(), "{id}");
            return;
        }
        (Ok(patch), Some(_)) => panic!("{id}: was parsed: {patch:?}"),
        (Err(error), None) => panic!("{id}: {error}"),
    };
    assert_eq!(already_applied_at(&case.before, &patch, &rules), case.applied_lines, "{id}");
    match (apply_to_text(&case.before, &patch, &rules), &case.reason) {
        (Ok(applied), None) => check_applied(case, &applied),
        (Err(error), Some(reason)) => check_error(case, &error, reason),
        (Ok(applied), Some(_)) => panic!("{id}: was applied: {:?}", applied.text),
        (Err(error), None) => panic!("{id}: {error}"),
    }
}

fn check_applied(case: &PatchTableCase, applied: &PatchedText) {
    let id = &case.id;
    assert_eq!(Some(&applied.text), case.after.as_ref(), "{id}");
    let first = applied.matches.first();
    if let Some(pass) = &case.pass {
        assert_eq!(first.map(|it| it.pass.name()), Some(pass.as_str()), "{id}");
    }
    let repair = first.and_then(|it| it.repair).map(stead_text::patch::PatchChunkRepair::name);
    assert_eq!(repair, case.repair.as_deref(), "{id}");
    let newline = match applied.final_newline {
        FinalNewlineChange::Unchanged => None,
        FinalNewlineChange::TerminatorAdded => Some("added"),
        FinalNewlineChange::TerminatorDropped => Some("dropped"),
    };
    assert_eq!(newline, case.final_newline.as_deref(), "{id}");
}

fn check_error(case: &PatchTableCase, error: &PatchApplyError, expected: &str) {
    let id = &case.id;
    let (reason, lines, already) = match &error.reason {
        PatchApplyErrorKind::NotFound { already, .. } => ("not_found", None, *already),
        PatchApplyErrorKind::AnchorNotFound { .. } => ("anchor_not_found", None, None),
        PatchApplyErrorKind::Ambiguous { lines, .. } => ("ambiguous", Some(lines.clone()), None),
        PatchApplyErrorKind::Overlap { .. } => ("overlap", None, None),
        PatchApplyErrorKind::NumberOnly { .. } => ("number_only", None, None),
        PatchApplyErrorKind::Exhausted => ("exhausted", None, None),
    };
    assert_eq!((reason, lines, already), (expected, case.places.clone(), case.already), "{id}");
    assert!(!error.to_string().is_empty() && error.line > 1, "{id}");
}

fn apply_to_text(
    before: &str,
    patch: &[FilePatch],
    rules: &PatchChunkPlacementRules<'_>,
) -> Result<PatchedText, PatchApplyError> {
    apply_chunks(before, chunks_of(patch), rules)
}

fn already_applied_at(before: &str, patch: &[FilePatch], rules: &PatchChunkPlacementRules<'_>) -> Option<Vec<usize>> {
    find_already_applied(before, chunks_of(patch), rules)
}

fn chunks_of(patch: &[FilePatch]) -> &[stead_text::patch::PatchChunk] {
    assert_eq!(patch.len(), 1);
    match &patch[0].kind {
        PatchSectionKind::Update { chunks, .. }
        | PatchSectionKind::Move { chunks, .. }
        | PatchSectionKind::Delete { chunks, .. } => chunks,
        PatchSectionKind::Add { .. } => panic!("a case changes an existing text"),
    }
}

#[test]
fn sections_are_parsed() {
    let written = "*** Begin Patch\n*** Add File: a b.txt\n+one\n+\n+two\n*** Delete File: d\n\
        *** Move File: x -> y/z\n*** Move File: p -> q\n@@\n-1\n+2\n*** Update File: u\n*** Move to: v\n@@\n-1\n+2\n\
        *** Add File: open\n+x\n\\ No newline at end of file\n*** Add File: empty\n*** End Patch";
    for grammar in [PatchGrammar::Tolerant, PatchGrammar::Strict] {
        let patch = parse_patch(written, grammar).unwrap();
        let sections: Vec<String> = patch
            .iter()
            .map(|section| match &section.kind {
                PatchSectionKind::Add { path, content } => format!("{} add {path} {content:?}", section.line),
                PatchSectionKind::Update { path, chunks } => {
                    format!("{} update {path} {}", section.line, chunks.len())
                }
                PatchSectionKind::Delete { path, chunks } => {
                    format!("{} delete {path} {}", section.line, chunks.len())
                }
                PatchSectionKind::Move { from, to, chunks } => {
                    format!("{} move {from} {to} {}", section.line, chunks.len())
                }
            })
            .collect();
        let expected = [
            "2 add a b.txt \"one\\n\\ntwo\\n\"",
            "6 delete d 0",
            "7 move x y/z 0",
            "8 move p q 1",
            "12 move u v 1",
            "17 add open \"x\"",
            "20 add empty \"\"",
        ];
        assert_eq!(sections, expected);
    }
    assert!(parse_patch(written, PatchGrammar::Exact).is_err(), "to the letter a move has one spelling");
}

#[test]
fn unified_headers_give_the_section_kind() {
    let written = "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\n+y\n\
        \\ No newline at end of file\ndiff --git a/g b/g\ndeleted file mode 100644\n--- a/g\n+++ /dev/null\n\
        @@ -1 +0,0 @@\n-bye\ndiff --git a/o b/p\nsimilarity index 100%\nrename from o\nrename to p\n\
        diff --git \"a/caf\\303\\251\" \"b/caf\\303\\251\"\n\
        --- \"a/caf\\303\\251\"\t2020-01-01\n+++ \"b/caf\\303\\251\"\t2020-01-02\n@@ -1 +1 @@\n-1\n+2\n\
        diff --git a/e b/e\nnew file mode 100644\nindex 000..e69\n";
    let patch = parse_patch(written, PatchGrammar::Tolerant).unwrap();
    let actions: Vec<&PatchSectionKind> = patch.iter().map(|section| &section.kind).collect();
    assert!(matches!(actions[0], PatchSectionKind::Add { path, content } if path == "n" && content == "x\ny"));
    assert!(matches!(actions[1], PatchSectionKind::Delete { path, chunks } if path == "g" && chunks.len() == 1));
    assert!(
        matches!(actions[2], PatchSectionKind::Move { from, to, chunks } if from == "o" && to == "p" && chunks.is_empty())
    );
    assert!(matches!(actions[3], PatchSectionKind::Update { path, .. } if path == "café"));
    assert!(matches!(actions[4], PatchSectionKind::Add { path, content } if path == "e" && content.is_empty()));
}

#[test]
fn mode_changes_are_rejected_not_dropped() {
    let hunk = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n";
    let made = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n";
    for (headers, body, line) in [
        ("new file mode 120000", made, 2),
        ("new file mode 160000\nindex 000..123", made, 2),
        ("new file mode 100755", made, 2),
        ("new file mode 100755\r", made, 2),
        ("old mode 100644\nnew mode 120000", hunk, 2),
        ("old mode 100644\nnew mode 100755", hunk, 2),
        ("old mode 100644\nnew mode 100755", "", 2),
        ("new mode 160000", hunk, 2),
        ("index 123..456 120000", hunk, 2),
        ("index 123..456 160000", hunk, 2),
    ] {
        let error = parse_patch(&format!("diff --git a/f b/f\n{headers}\n{body}"), PatchGrammar::Tolerant).unwrap_err();
        assert_eq!((error.fault.code(), error.line), ("unsupported", line), "{headers}");
    }
    for (headers, body) in [
        ("new file mode 100644", made),
        ("new file mode 100644\r", made),
        ("index 123..456 100644", hunk),
        ("index 123..456 100755", hunk),
        ("index 123..456", hunk),
    ] {
        assert!(
            parse_patch(&format!("diff --git a/f b/f\n{headers}\n{body}"), PatchGrammar::Tolerant).is_ok(),
            "{headers}"
        );
    }
}

#[test]
fn truncated_patches_never_delete_a_file() {
    let written = "*** Begin Patch\n*** Add File: a\n+1\n*** Update File: b\n@@\n-x\n+y\n*** Delete File: c\n\
        *** Move File: d -> e\n*** Update File: f\n*** Move to: g\n@@\n-x\n+y\n*** Add File: h\n+1\n\
        *** Delete File: i\n*** End Patch";
    let mut most = 0;
    for end in 0..=written.len() {
        if let Ok(patch) = parse_patch(&written[..end], PatchGrammar::Tolerant) {
            assert!(patch.len() >= most);
            most = patch.len();
        }
    }
    assert_eq!(most, 7);
}

#[test]
fn repetitive_text_is_patched_in_bounded_time() {
    let before = "x\n".repeat(200_000);
    let body: String = "-x\n".repeat(50_000) + "-y\n";
    let patch =
        parse_patch(&format!("*** Begin Patch\n*** Update File: f\n@@\n{body}*** End Patch"), PatchGrammar::Tolerant);
    assert!(
        apply_to_text(&before, &patch.unwrap(), &PatchChunkPlacementRules::new("f", PatchChunkMatching::Tolerant))
            .is_err()
    );
    let body: String = " x\n".repeat(50_000) + "+y\n";
    let patch =
        parse_patch(&format!("*** Begin Patch\n*** Update File: f\n@@\n{body}*** End Patch"), PatchGrammar::Tolerant);
    let error =
        apply_to_text(&before, &patch.unwrap(), &PatchChunkPlacementRules::new("f", PatchChunkMatching::Tolerant))
            .unwrap_err();
    assert!(matches!(error.reason, PatchApplyErrorKind::Exhausted | PatchApplyErrorKind::Ambiguous { .. }));
}

fn any_text() -> impl Strategy<Value = String> {
    let line = ("[abc ]{0,2}", prop_oneof![6 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\r")]);
    (prop::collection::vec(line, 0..12), "[abc]{0,2}")
        .prop_map(|(lines, rest)| lines.into_iter().map(|(body, end)| body + end).collect::<String>() + &rest)
}

fn any_patch_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("*** Begin Patch"),
        Just("*** End Patch"),
        Just("*** Update File: f"),
        Just("*** Add File: g"),
        Just("*** Delete File: h"),
        Just("*** Move to: i"),
        Just("*** Move File: f -> j"),
        Just("*** End of File"),
        Just("\\ No newline at end of file"),
        Just("@@"),
        Just("@@ a"),
        Just("@@ -1,2 +1,2 @@"),
        Just("--- a/f"),
        Just("+++ b/f"),
        Just("diff --git a/f b/f"),
        Just("<<EOF"),
        Just("EOF"),
        Just("-a"),
        Just("+b"),
        Just(" c"),
        Just("-\\ta\\nb"),
        Just("a"),
        Just(""),
        Just("é\r"),
    ];
    prop::collection::vec(line, 0..24).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn applying_a_diff_gives_the_target(old in any_text(), new in any_text(), context in 1_usize..4) {
        let labels = DiffLabels { old: "a/f", new: "b/f" };
        let written = unified_diff(&old, &new, labels, context, usize::MAX).text;
        if old == new {
            prop_assert!(written.is_empty());
            return Ok(());
        }
        let patch = parse_patch(&written, PatchGrammar::Tolerant).unwrap();
        let applied = apply_to_text(&old, &patch, &PatchChunkPlacementRules::new("f", PatchChunkMatching::Tolerant));
        prop_assert_eq!(applied.map(|applied| applied.text), Ok(new), "{}", written);
    }

    #[test]
    fn arbitrary_text_does_not_panic(
        written in prop_oneof![any_patch_text(), any_patch_text().prop_map(|s| format!("*** Begin Patch\n*** Update File: f\n{s}")), ".{0,200}"],
        before in any_text(),
    ) {
        for grammar in [PatchGrammar::Tolerant, PatchGrammar::Strict, PatchGrammar::Exact] {
            let Ok(patch) = parse_patch(&written, grammar) else { continue };
            prop_assert!(!patch.is_empty());
            for section in &patch {
                let (PatchSectionKind::Update { chunks, .. } | PatchSectionKind::Move { chunks, .. } | PatchSectionKind::Delete { chunks, .. }) =
                    &section.kind
                else { continue };
                for rules in [PatchChunkPlacementRules::new("f", PatchChunkMatching::Tolerant), PatchChunkPlacementRules::new("f", PatchChunkMatching::Strict)] {
                    let _applied = apply_chunks(&before, chunks, &rules);
                }
            }
        }
    }

    #[test]
    fn bytes_outside_the_change_are_preserved(lines in prop::collection::vec(("[a-z]{1,3}[ \t]{0,2}", prop_oneof![Just("\n"), Just("\r\n"), Just("\r")]), 3..20), at in 0_usize..20) {
        // Numbers make every line unique, so that only one position matches.
        let lines: Vec<String> = lines.iter().enumerate().map(|(n, (body, end))| format!("{n}{body}{end}")).collect();
        let at = 1 + at % (lines.len() - 2);
        let body = |n: usize| lines[n].trim_end().to_owned();
        let written = format!(
            "*** Begin Patch\n*** Update File: f\n@@\n {}\n-{}\n+new\n {}\n*** End Patch\n",
            body(at - 1), body(at), body(at + 1)
        );
        let before = lines.concat();
        let applied = apply_to_text(&before, &parse_patch(&written, PatchGrammar::Tolerant).unwrap(), &PatchChunkPlacementRules::new("f", PatchChunkMatching::Tolerant)).unwrap();
        let (head, tail) = (lines[..at].concat(), lines[at + 1..].concat());
        prop_assert!(applied.text.starts_with(&head) && applied.text.ends_with(&tail));
        prop_assert_eq!(applied.text.len() - head.len() - tail.len(), "new".len() + stead_text::lines::split_terminator(&lines[at]).1.len());
    }
}
