//! Properties of the public functions, over generated texts and bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use text::diff::{self, Hunk};
use text::encoding::{Detected, Encoding, decode, detect, encode};
use text::lines;
use text::merge::{Merged, merge, merge_bytes};
use text::unified::{Labels, unified};
use text::visible::{is_deceptive, visible};

/// Few distinct lines and every terminator, so that equal lines, moves and ambiguous places are frequent.
fn any_text() -> impl Strategy<Value = String> {
    "([a-d]{0,2}(\n|\n|\r\n|\r)){0,20}[a-dé漢]{0,2}"
}

/// A text and two versions of it with some lines replaced, removed or doubled.
fn any_versions() -> impl Strategy<Value = (String, String, String)> {
    let edits = || vec((0_usize..24, 0_u8..4), 0..4);
    (any_text(), edits(), edits()).prop_map(|(base, ours, theirs)| {
        let (ours, theirs) = (edited(&base, &ours), edited(&base, &theirs));
        (base, ours, theirs)
    })
}

fn edited(base: &str, edits: &[(usize, u8)]) -> String {
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

fn apply(old: &str, new: &str, hunks: &[Hunk]) -> String {
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

/// A small reader of unified diffs, independent of the writer: the new text that `patch` makes of `old`.
fn patched(old: &str, patch: &str) -> String {
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
    fn lines_put_together_are_the_text(text in any_text()) {
        prop_assert_eq!(lines::iter(&text).collect::<String>(), text.as_str());
        prop_assert_eq!(lines::iter(&text).count(), lines::count(text.as_bytes()));
        let by_number: String = (1..=lines::count(text.as_bytes()))
            .map(|line| lines::slice(&text, line..=line).unwrap())
            .collect();
        prop_assert_eq!(by_number, text);
    }

    #[test]
    fn every_byte_is_on_the_line_that_contains_it(text in any_text()) {
        for line in 1..=lines::count(text.as_bytes()) {
            for offset in lines::byte_range(text.as_bytes(), line..=line).unwrap() {
                prop_assert_eq!(lines::line_at(text.as_bytes(), offset), line);
            }
        }
    }

    #[test]
    fn counting_in_pieces_is_counting(text in any_text(), size in 1_usize..5) {
        let mut counter = lines::Counter::default();
        text.as_bytes().chunks(size).for_each(|piece| counter.feed(piece));
        prop_assert_eq!(counter.lines(), lines::count(text.as_bytes()));
        prop_assert_eq!(counter.endings(), lines::endings(text.as_bytes()));
    }

    #[test]
    fn hunks_lead_from_old_to_new(old in any_text(), new in any_text()) {
        prop_assert_eq!(apply(&old, &new, &diff::hunks(&old, &new)), new);
    }

    #[test]
    fn a_unified_diff_applies(old in any_text(), new in any_text(), context in 0_usize..4) {
        let diff = unified(&old, &new, Labels { old: "a", new: "b" }, context, usize::MAX);
        prop_assert!(!diff.truncated());
        prop_assert_eq!(patched(&old, &diff.text), new);
    }

    #[test]
    fn a_limit_of_lines_is_kept(old in any_text(), new in any_text(), limit in 0_usize..12) {
        let labels = Labels { old: "a", new: "b" };
        let whole = unified(&old, &new, labels, 1, usize::MAX).text;
        let cut = unified(&old, &new, labels, 1, limit);
        prop_assert!(whole.starts_with(&cut.text));
        prop_assert!(cut.text.matches('\n').count() <= limit);
        prop_assert_eq!(cut.text.matches('\n').count() + cut.omitted_lines, whole.matches('\n').count());
    }

    #[test]
    fn one_sided_changes_merge_to_that_side((base, ours, theirs) in any_versions()) {
        prop_assert_eq!(merge(&base, &ours, &base), Merged::Clean(ours.clone()));
        prop_assert_eq!(merge(&base, &base, &theirs), Merged::Clean(theirs));
        prop_assert_eq!(merge(&base, &ours, &ours), Merged::Clean(ours));
    }

    #[test]
    fn sides_are_equal_and_bytes_merge_like_text((base, ours, theirs) in any_versions()) {
        let merged = merge(&base, &ours, &theirs);
        let bytes = merge_bytes(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        match (&merged, merge(&base, &theirs, &ours), bytes) {
            (Merged::Clean(text), Merged::Clean(swapped), Merged::Clean(bytes)) => {
                prop_assert_eq!(text, &swapped);
                prop_assert_eq!(text.as_bytes(), bytes);
            }
            (Merged::Conflict(ranges), Merged::Conflict(swapped), Merged::Conflict(bytes)) => {
                prop_assert!(!ranges.is_empty());
                prop_assert_eq!(ranges, &bytes);
                prop_assert_eq!(ranges.len(), swapped.len());
            }
            (merged, swapped, bytes) => prop_assert!(false, "{merged:?} {swapped:?} {bytes:?}"),
        }
    }

    #[test]
    fn a_clean_merge_holds_the_lines_of_both_changes((base, ours, theirs) in any_versions()) {
        if let Merged::Clean(merged) = merge(&base, &ours, &theirs) {
            for line in lines::iter(&merged) {
                prop_assert!(lines::iter(&ours).chain(lines::iter(&theirs)).any(|known| known == line));
            }
        }
    }

    #[test]
    fn what_is_called_text_comes_back_byte_for_byte(bytes in prop_oneof![
        vec(any::<u8>(), 0..200),
        vec(prop_oneof![8 => 0x20_u8..0x7f, 1 => 0x80_u8..=0xff], 0..200),
        vec(prop_oneof![1 => 0x20_u8..0x7f, 3 => 0x80_u8..=0xff], 0..60),
        any::<String>().prop_map(String::into_bytes),
        any::<String>().prop_map(|text| encode(&text, Encoding::Utf16LeBom).unwrap()),
        "[a-z ]{4,40}é?".prop_map(|text| encode(&text, Encoding::Utf16Be).unwrap()),
    ]) {
        if let Detected::Text { encoding } = detect(&bytes) {
            let text = decode(&bytes, encoding).unwrap();
            prop_assert_eq!(encode(&text, encoding).unwrap(), bytes);
        }
    }

    #[test]
    fn what_is_encoded_decodes_to_the_same(
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
    fn nothing_deceptive_is_visible(text in any::<String>()) {
        prop_assert!(!visible(&text).chars().any(|c| c != '\n' && c != '\t' && is_deceptive(c)));
    }
}
