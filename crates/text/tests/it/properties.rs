//! Tests properties of the public functions with randomly generated texts and bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use stead_text::diff::{self, DiffHunkRanges};
use stead_text::encoding::{Encoding, decode, detect_encoding, encode};
use stead_text::lines;
use stead_text::locate::QuoteSearchHaystack;
use stead_text::merge::{MergeResult, merge};
use stead_text::unified::{DiffLabels, unified_diff};
use stead_text::visible::{escape_deceptive, is_deceptive};

/// The generated texts have few distinct lines, so that equal lines, moves and ambiguous matches are frequent.
fn any_text() -> impl Strategy<Value = String> {
    "([a-d]{0,2}(\n|\n|\r\n|\r)){0,20}[a-dé漢]{0,2}"
}

fn any_versions() -> impl Strategy<Value = (String, String, String)> {
    let edits = || vec((0_usize..24, 0_u8..4), 0..4);
    (any_text(), edits(), edits()).prop_map(|(base, ours, theirs)| {
        let (ours, theirs) = (edit_lines(&base, &ours), edit_lines(&base, &theirs));
        (base, ours, theirs)
    })
}

fn edit_lines(base: &str, edits: &[(usize, u8)]) -> String {
    let mut result: Vec<String> = lines::iter(base).map(str::to_owned).collect();
    for &(at, kind) in edits {
        let at = at.min(result.len());
        match kind {
            0 if at < result.len() => drop(result.remove(at)),
            1 if at < result.len() => result[at] = format!("x{at}\n"),
            2 if at < result.len() => result.insert(at, result[at].clone()),
            _ => result.insert(at, format!("y{at}\n")),
        }
    }
    result.concat()
}

fn apply_hunks(old: &str, new: &str, hunks: &[DiffHunkRanges]) -> String {
    let old: Vec<&str> = lines::iter(old).collect();
    let new: Vec<&str> = lines::iter(new).collect();
    let mut result = String::new();
    let mut at = 0;
    for hunk in hunks {
        result.extend(old[at..hunk.old.start].iter().copied());
        result.extend(new[hunk.new.clone()].iter().copied());
        at = hunk.old.end;
    }
    result.extend(old[at..].iter().copied());
    result
}

/// Applies a unified diff with code that is independent of the code that writes diffs.
fn apply_patch(old: &str, patch: &str) -> String {
    let mut source = old.split_inclusive('\n');
    let mut taken = 0;
    let mut result = String::new();
    let rows: Vec<&str> = patch.split_inclusive('\n').collect();
    for (index, row) in rows.iter().enumerate().skip(2) {
        let (mark, body) = row.split_at(1);
        let body = match rows.get(index + 1) {
            Some(next) if next.starts_with('\\') => body.strip_suffix('\n').unwrap(),
            _ => body,
        };
        match mark {
            "@" => {
                let range = row.split(' ').nth(1).unwrap().trim_start_matches('-');
                let (start, length) = range.split_once(',').unwrap_or((range, "1"));
                let first = start.parse::<usize>().unwrap() - usize::from(length != "0");
                while taken < first {
                    result.push_str(source.next().unwrap());
                    taken += 1;
                }
            }
            "-" | " " => {
                assert_eq!(source.next(), Some(body));
                taken += 1;
                if mark == " " {
                    result.push_str(body);
                }
            }
            "+" => result.push_str(body),
            _ => assert_eq!(*row, "\\ No newline at end of file\n"),
        }
    }
    result.extend(source);
    result
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn lines_concatenate_to_the_text(text in any_text()) {
        prop_assert_eq!(lines::iter(&text).collect::<String>(), text.as_str());
        prop_assert_eq!(lines::iter(&text).count(), lines::count_lines(text.as_bytes()));
        let by_number: String = (1..=lines::count_lines(text.as_bytes()))
            .map(|line| lines::slice_lines(&text, line..=line).unwrap())
            .collect();
        prop_assert_eq!(by_number, text);
    }

    #[test]
    fn line_at_finds_the_containing_line(text in any_text()) {
        let finder = QuoteSearchHaystack::new(&text);
        for line in 1..=lines::count_lines(text.as_bytes()) {
            for offset in lines::byte_range(text.as_bytes(), line..=line).unwrap() {
                prop_assert_eq!(finder.line_at(offset), line);
            }
        }
    }

    #[test]
    fn counting_in_chunks_equals_counting_at_once(text in any_text(), size in 1_usize..5) {
        let mut counter = lines::LineCounter::default();
        text.as_bytes().chunks(size).for_each(|piece| counter.feed(piece));
        prop_assert_eq!(counter.lines(), lines::count_lines(text.as_bytes()));
        prop_assert_eq!(counter.endings(), lines::count_endings(text.as_bytes()));
    }

    #[test]
    fn applying_hunks_to_old_gives_new(old in any_text(), new in any_text()) {
        prop_assert_eq!(apply_hunks(&old, &new, &diff::hunks(&old, &new)), new);
    }

    #[test]
    fn unified_diffs_apply(old in any_text(), new in any_text(), context in 0_usize..4) {
        let diff = unified_diff(&old, &new, DiffLabels { old: "a", new: "b" }, context, usize::MAX);
        prop_assert!(!diff.is_truncated());
        prop_assert_eq!(apply_patch(&old, &diff.text), new);
    }

    #[test]
    fn line_limit_is_respected(old in any_text(), new in any_text(), limit in 0_usize..12) {
        let labels = DiffLabels { old: "a", new: "b" };
        let whole = unified_diff(&old, &new, labels, 1, usize::MAX).text;
        let cut = unified_diff(&old, &new, labels, 1, limit);
        prop_assert!(whole.starts_with(&cut.text));
        prop_assert!(cut.text.matches('\n').count() <= limit);
        prop_assert_eq!(cut.text.matches('\n').count() + cut.omitted_lines, whole.matches('\n').count());
    }

    #[test]
    fn one_sided_changes_merge_to_that_side((base, ours, theirs) in any_versions()) {
        prop_assert_eq!(merge(&base, &ours, &base), MergeResult::Clean(ours.clone()));
        prop_assert_eq!(merge(&base, &base, &theirs), MergeResult::Clean(theirs));
        prop_assert_eq!(merge(&base, &ours, &ours), MergeResult::Clean(ours));
    }

    #[test]
    fn merge_is_symmetric((base, ours, theirs) in any_versions()) {
        match (merge(&base, &ours, &theirs), merge(&base, &theirs, &ours)) {
            (MergeResult::Clean(text), MergeResult::Clean(swapped)) => prop_assert_eq!(text, swapped),
            (MergeResult::Conflict(ranges), MergeResult::Conflict(swapped)) => {
                prop_assert!(!ranges.is_empty());
                prop_assert_eq!(ranges.len(), swapped.len());
            }
            (merged, swapped) => prop_assert!(false, "{merged:?} {swapped:?}"),
        }
    }

    #[test]
    fn clean_merges_contain_both_changes((base, ours, theirs) in any_versions()) {
        if let MergeResult::Clean(merged) = merge(&base, &ours, &theirs) {
            for line in lines::iter(&merged) {
                prop_assert!(lines::iter(&ours).chain(lines::iter(&theirs)).any(|known| known == line));
            }
        }
    }

    #[test]
    fn detected_text_round_trips_byte_for_byte(bytes in prop_oneof![
        vec(any::<u8>(), 0..200),
        vec(prop_oneof![8 => 0x20_u8..0x7f, 1 => 0x80_u8..=0xff], 0..200),
        vec(prop_oneof![1 => 0x20_u8..0x7f, 3 => 0x80_u8..=0xff], 0..60),
        any::<String>().prop_map(String::into_bytes),
        any::<String>().prop_map(|text| encode(&text, Encoding::Utf16LeBom).unwrap()),
        "[a-z ]{4,40}é?".prop_map(|text| encode(&text, Encoding::Utf16Be).unwrap()),
    ]) {
        if let Some(encoding) = detect_encoding(&bytes) {
            let text = decode(&bytes, encoding).unwrap();
            prop_assert_eq!(encode(&text, encoding).unwrap(), bytes);
        }
    }

    #[test]
    fn encoding_round_trips(
        text in "[ -~é€漢字かなйж¥‾−～\r\n]{0,40}",
        name in prop::sample::select(vec![
            "utf-8", "utf-8-bom", "utf-16le", "utf-16be-bom", "windows-1252", "windows-1251", "shift_jis", "euc-jp",
            "iso-2022-jp", "gbk", "gb18030", "big5", "euc-kr", "koi8-u", "macintosh", "x-user-defined",
        ]),
    ) {
        let encoding = Encoding::parse(name).unwrap();
        match encode(&text, encoding) {
            Ok(bytes) => prop_assert_eq!(decode(&bytes, encoding).unwrap(), text),
            Err(error) => prop_assert!(text.contains(error.character)),
        }
    }

    #[test]
    fn escaped_text_has_no_deceptive_characters(text in any::<String>()) {
        prop_assert!(!escape_deceptive(&text).chars().any(|c| c != '\n' && c != '\t' && is_deceptive(c)));
    }
}
